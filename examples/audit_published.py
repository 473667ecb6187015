"""Learners that authors published: `dpbench audit --algo examples/audit_published.py:boosted --eps 1` audits one.

PUBLISHED names a folder with the authors' files as they are: BoostedAdaSSP.py of github.com/shuaitang/BoostedAdaSSP and
tukey.py of github.com/google-research/google-research, folder dp_regression. What the audit finds, and the same by
hand, is in docs/guides/library_errata.md.
"""

import importlib
import os
import sys

import numpy as np

from dpbench.auditing.foreign import Pair, Target

DELTA_TUKEY, DELTA_BOOSTED = 1e-2, 1e-6


def published(name):
    """The module of that name in the folder PUBLISHED."""
    folder = os.environ.get("PUBLISHED")
    if folder is None:
        raise RuntimeError("set PUBLISHED to the folder that holds the authors' files")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def tukey_em(X, y, epsilon, rng):
    """Whether the test of TukeyEM passed, on models (m, 1); it returns zeros where not."""
    np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002, the authors' draws are NumPy's own
    return [float(np.any(published("tukey").dp_tukey(X, epsilon, DELTA_TUKEY)))]


def boosted_adassp(X, y, epsilon, rng):
    """Coefficients of one round of boosting."""
    state = np.random.RandomState(int(rng.integers(2**31)))
    model = published("BoostedAdaSSP").BoostedAdaSSP(
        epsilon=epsilon, delta=DELTA_BOOSTED, num_iterations=1, random_state=state
    )
    return model.fit(X, y).ensemble_theta


def models(above, below=112, m=300):
    """(m, 1) models: `below` of them at -1, `above` at 1, the others at 0."""
    found = np.zeros((m, 1))
    found[:below], found[m - above :] = -1.0, 1.0
    return found, np.zeros(m)


def one_label(label, n=20):
    """(X, y) of n rows at 1 with label 0, but for one."""
    return np.ones((n, 1)), np.concatenate([[label], np.zeros(n - 1)])


tukey = Target(
    tukey_em, "TukeyEM, its test", delta=DELTA_TUKEY, pairs=(Pair(models(112), models(111), "a model at 1, or at 0"),)
)
boosted = Target(
    boosted_adassp,
    "BoostedAdaSSP, one round",
    delta=DELTA_BOOSTED,
    row_norm=1.0,
    pairs=(Pair(one_label(1.0), one_label(-1.0), "a label of 1, or of -1"),),
)
