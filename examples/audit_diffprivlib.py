"""Learners of diffprivlib 0.6 to audit: `dpbench audit --algo examples/audit_diffprivlib.py:linear --eps 1`.

Needs the extra `rivals`. What the audit finds, and the same by hand, is in docs/guides/library_errata.md.
"""

import numpy as np

from dpbench.auditing.functions import AuditTarget, Pair


def logistic_regression(X, y, epsilon, rng, *, data_norm=1.0, C=1.0):
    """diffprivlib's LogisticRegression without intercept, for rows with ‖x‖₂ ≤ data_norm."""
    from diffprivlib.models import LogisticRegression

    seed = int(rng.integers(2**31))
    model = LogisticRegression(epsilon=epsilon, data_norm=data_norm, C=C, fit_intercept=False, random_state=seed)
    return model.fit(X, y).coef_


def linear_regression(X, y, epsilon, rng, *, bounds=(0.0, 100.0)):
    """diffprivlib's LinearRegression without intercept, entries and labels within `bounds`."""
    from diffprivlib.models import LinearRegression

    seed = int(rng.integers(2**31))
    model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=bounds, fit_intercept=False, random_state=seed)
    return model.fit(X, y).coef_


def long_rows(X, y, epsilon, rng):
    """Rows of norm up to 100, as they are where nobody has scaled them, and a strong regulariser."""
    return logistic_regression(X, y, epsilon, rng, data_norm=100.0, C=1 / 250)


def with_intercept(X, y, epsilon, rng):
    """Whether a fit at the defaults has long coefficients of opposite signs, as a row near the margin makes them."""
    from diffprivlib.models import LogisticRegression

    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=int(rng.integers(2**31))).fit(X, y)
    w, c = model.coef_.item(), model.intercept_.item()
    return [float(w * c < 0 and 5 < abs(c) < 15 and abs(w + c) < 4)]


def rows(*points):
    """X (n, 1) and y (n,) of (x, y) pairs."""
    x, y = zip(*points, strict=True)
    return np.array(x, dtype=float)[:, None], np.array(y, dtype=float)


logistic = AuditTarget(logistic_regression, "diffprivlib LogisticRegression", labels=(0.0, 1.0))
logistic_long_rows = AuditTarget(
    long_rows,
    "diffprivlib LogisticRegression, data_norm 100",
    low=-100.0,
    high=100.0,
    labels=(0.0, 1.0),
    pairs=(Pair(rows((0, 0), (0, 1), (100, 1)), rows((0, 0), (0, 1), (0, 1)), "a row of norm 100, or 0"),),
)
logistic_classes = AuditTarget(
    logistic_regression,
    "diffprivlib LogisticRegression, one row alone in its class",
    labels=(0.0, 1.0),
    pairs=(Pair(rows((1, 0), (1, 0), (1, 1)), rows((1, 0), (1, 0), (1, 0)), "the only row of class 1, or of class 0"),),
)
logistic_intercept = AuditTarget(
    with_intercept,
    "diffprivlib LogisticRegression with its intercept",
    labels=(0.0, 1.0),
    pairs=(Pair(rows((0, 0), (0, 1), (1, 0)), rows((0, 0), (0, 1), (0, 0)), "a row at 1, or at 0"),),
)
linear = AuditTarget(
    linear_regression,
    "diffprivlib LinearRegression, bounds [0, 100]",
    low=0.0,
    high=100.0,
    labels=(0.0, 100.0),
    pairs=(Pair(rows((1, 0), (100, 0)), rows((1, 0), (0, 0)), "a row at the upper bound, or at the lower one"),),
)
