"""dpbench's own estimators and `fit` to audit: `dpbench audit --algo examples/audit_dpbench.py:classifier --eps 1`.

What differs between the neighbours is what data have: a class, a category, a missing value, an outlier, a label beyond
the public ones. Noise comes from the operating system, as in a release, so two audits differ a little.
"""

import warnings

import numpy as np

import dpbench
from dpbench.auditing.functions import AuditTarget, Pair

CLASSES = ("a", "b", "c")
ROWS = np.array([[1.0, 1.0], [2.0, 0.0], [1.0, 3.0], [4.0, 2.0], [3.0, 1.0], [2.0, 2.0], [1.0, 0.0], [2.0, 1.0]])
LABELS = np.array([0.0, 1.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0])


def _replaced(words, row, label, instead, other, times):
    """Neighbours of which the last row is one or another; times: of all rows."""
    X, y = np.tile(ROWS, (times, 1)), np.tile(LABELS, times)
    first, second = (X.copy(), y.copy()), (X.copy(), y.copy())
    first[0][-1], first[1][-1] = row, label
    second[0][-1], second[1][-1] = instead, other
    return Pair(first, second, words)


def _pairs(times=1):
    return (
        _replaced("either corner and label", [10, 10], 1.0, [0, 0], 0.0, times),
        _replaced("an outlier, or a row inside", [1e6, 1e6], 1.0, [1, 1], 1.0, times),
        _replaced("a missing value, or none", [np.nan, 2], 0.0, [10, 2], 1.0, times),
        _replaced("another category", [0, 10], 2.0, [10, 0], 0.0, times),
        _replaced("a label beyond the public ones", [5, 5], 7.0, [5, 5], 1.0, times),
    )


PAIRS = _pairs()


def _classifier(X, y, epsilon, rng, *, classes=CLASSES):
    names = np.array([*CLASSES, *"defghij"])[y.astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dpbench.PrivateClassifier(epsilon=epsilon, classes=classes, bounds=(0, 10)).fit(X, names)
    return np.append(np.ravel(model.coef_), model.intercept_)


def _classes_of_data(X, y, epsilon, rng):
    return _classifier(X, y, epsilon, rng, classes=None)


def _regressor(X, y, epsilon, rng):
    model = dpbench.PrivateRegressor(epsilon=epsilon, bounds=(0, 10), target_bounds=(0, 2)).fit(X, y)
    return np.append(model.coef_, model.intercept_)


def _fit(X, y, epsilon, rng):
    rows = np.clip(np.nan_to_num(X), -10, 10) / 15
    return dpbench.fit(rows, np.where(y > 0, 1, -1), algorithm="dp-gd", epsilon=epsilon, relation="replace-one", T=5).w


def _coordinates(X, y, epsilon, rng):
    call = {"algorithm": "dp-gcd", "scales": "bound", "passes": 2.0, "step": 2.0}  # no length of a row may show
    return dpbench.fit(X / 15, np.where(y > 0, 1, -1), epsilon=epsilon, **call).w


DELTA = len(ROWS) ** -2.0
classifier = AuditTarget(_classifier, "PrivateClassifier", delta=DELTA, pairs=PAIRS)
classes_of_data = AuditTarget(_classes_of_data, "PrivateClassifier, classes read off y", delta=DELTA, pairs=PAIRS)
regressor = AuditTarget(_regressor, "PrivateRegressor", delta=DELTA, pairs=PAIRS)
# Of eight rows the median alone is released; from 106 on, at ε = 1, a window, and from 144 on means in it too.
few = AuditTarget(_regressor, "PrivateRegressor, few rows", delta=(15 * len(ROWS)) ** -2.0, pairs=_pairs(15))
windowed = AuditTarget(_regressor, "PrivateRegressor, windowed", delta=(20 * len(ROWS)) ** -2.0, pairs=_pairs(20))
fit = AuditTarget(_fit, "dpbench.fit, dp-gd", delta=DELTA, pairs=PAIRS)
coordinates = AuditTarget(_coordinates, "dpbench.fit, dp-gcd", delta=DELTA, pairs=PAIRS)
