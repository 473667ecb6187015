"""Learners that authors published: `dpbench audit --algo examples/audit_published.py:boosted --eps 1` audits one.

PUBLISHED names a folder with the authors' files as they are: BoostedAdaSSP.py of github.com/shuaitang/BoostedAdaSSP,
tukey.py of github.com/google-research/google-research, folder dp_regression, and the folders of
github.com/sunblaze-ucb/dpml-benchmark. What the audit finds, and the same by hand, is in docs/guides/library_errata.md.
"""

import functools
import importlib
import os
import sys

import numpy as np

from dpbench.auditing.foreign import Pair, Target

DELTA_TUKEY, DELTA_BOOSTED, DELTA_AMP = 1e-2, 1e-6, 1e-6


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


@functools.cache
def amp_noise(n, d, epsilon, gamma):
    """(256, d) each: the objective's and the output's noise by the byte that seeds them, and the ridge Λ."""
    ridge = 2 / (0.099 * epsilon)  # twice the smoothness over the tenth of 0.99 ε that the Jacobian has
    deviations = [
        sensitivity * (1 + np.sqrt(2 * np.log(1 / (share * DELTA_AMP)))) / (part * epsilon)
        for sensitivity, share, part in ((2 / n, 0.99, 0.891), (n * gamma / ridge, 0.01, 0.01))
    ]
    states = [np.random.RandomState(byte) for byte in range(256)]
    objective, output = np.array(
        [[state.normal(scale=scale, size=d) for scale in deviations] for state in states]
    ).swapaxes(0, 1)
    return objective, output, ridge


def without_noise(w, n, epsilon, gamma):
    """What the rows put into the first coefficient: the others, whose columns are 0, tell the byte of the noise."""
    objective, output, ridge = amp_noise(n, len(w), epsilon, gamma)
    noise = output - n * objective / ridge
    byte = np.linalg.norm(noise[:, 1:] - w[1:], axis=1).argmin()
    return w[0] - noise[byte, 0]


def amp_logistic(X, y, epsilon, rng):
    """Approximate minima perturbation; the noise is of the authors' own seed, so `rng` is not asked."""
    amp = published("algorithms.approximate_minima_perturbation").ApproximateMinimaPerturbationLR
    w, gamma = amp.run_classification(X, y, epsilon, DELTA_AMP, None)
    return [without_noise(w, len(y), epsilon, gamma)]


def first_row(label, n=100, d=5):
    """(X, y) of n rows at 0 but for the first, which is the first unit vector with that label."""
    return np.eye(1, n * d).reshape(n, d), np.concatenate([[label], np.ones(n - 1)])


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
amp = Target(
    amp_logistic,
    "approximate minima perturbation",
    d=5,
    delta=DELTA_AMP,
    row_norm=1.0,
    pairs=(Pair(first_row(1.0), first_row(-1.0), "a label of 1, or of -1"),),
)
