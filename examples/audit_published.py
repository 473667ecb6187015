"""Learners that authors published: `dpbench audit --algo examples/audit_published.py:boosted --eps 1` audits one.

PUBLISHED names a folder with the authors' files as they are: BoostedAdaSSP.py of github.com/shuaitang/BoostedAdaSSP,
tukey.py of github.com/google-research/google-research, folder dp_regression, the folders of
github.com/sunblaze-ucb/dpml-benchmark, and tensorflow_privacy of github.com/tensorflow/privacy, which needs
tensorflow-cpu 2.15. What the audit finds, and the same by hand, is in docs/guides/library_errata.md.
"""

import functools
import importlib
import os
import sys
import types

import numpy as np

from dpbench.auditing.functions import AuditTarget, Pair

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


def psgd_noise(d, epsilon, *, passes, rate, batch):
    """(256, d) the output's noise by the byte that seeds it, for Lipschitz constant 1."""
    scale = np.sqrt(2 * np.log(2 / DELTA_AMP)) * 2 * passes * rate / batch / epsilon
    return np.array([np.random.RandomState(byte).normal(scale=scale, size=d) for byte in range(256)])


def psgd_logistic(X, y, epsilon, rng):
    """The first coefficient of permutation SGD without its noise, which the others, whose columns are 0, name."""
    psgd = published("algorithms.psgd").PrivateConvexPSGDLR
    w = psgd.run_classification(X, y, epsilon, DELTA_AMP, None, learning_rate=0.1, num_iters=5, b=50)
    noise = psgd_noise(len(w), epsilon, passes=5, rate=0.1, batch=50)
    return [w[0] - noise[np.linalg.norm(noise[:, 1:] - w[1:], axis=1).argmin(), 0]]


def first_row(label, n=100, d=5):
    """(X, y) of n rows at 0 but for the first, which is the first unit vector with that label."""
    return np.eye(1, n * d).reshape(n, d), np.concatenate([[label], np.ones(n - 1)])


def bolt_on_training(X, y, rng, *, epochs=20, penalty=1.0):
    """(w (d,), bias) of bolt-on's SGD on logistic loss, one row a step, before its scaling and noise."""
    w, bias, t = rng.uniform(-1, 1, X.shape[1]), 0.0, 0
    for _ in range(epochs):
        for i in rng.permutation(len(X)):
            rate = min(1 / (1 + penalty), 1 / (penalty * max(t, 1)))
            residual = 1 / (1 + np.exp(-X[i] @ w - bias)) - y[i]
            w, bias, t = w - rate * (residual * X[i] + penalty * w), bias - rate * residual, t + 1
    return w, bias


@functools.cache
def bolt_on_module():
    """TensorFlow and the modules `optimizers` and `losses`, with the names that they import and 2.15 has no longer."""
    import tensorflow as tf
    from tensorflow.python.framework import ops

    ops.convert_to_tensor_v2 = tf.convert_to_tensor
    moved = "framework", "framework.ops", "ops", "ops.math_ops", "platform", "platform.tf_logging", "keras"
    keras = "losses", "regularizers", "utils", "utils.losses_utils", "optimizer_v2", "optimizer_v2.optimizer_v2"
    for name in ("", *moved, *(f"keras.{each}" for each in keras)):
        module = importlib.import_module(f"tensorflow.python.{name}".rstrip("."))
        sys.modules[f"tensorflow.compat.v1.python.{name}".rstrip(".")] = module
    for name in ("tensorflow_privacy", "tensorflow_privacy.privacy", "tensorflow_privacy.privacy.bolt_on"):
        sys.modules[name] = types.ModuleType(name)  # whose own __init__ would import the whole library
        sys.modules[name].__path__ = [os.path.join(os.environ.get("PUBLISHED", "."), *name.split("."))]
    return (
        tf,
        published("tensorflow_privacy.privacy.bolt_on.optimizers"),
        published("tensorflow_privacy.privacy.bolt_on.losses"),
    )


def bolt_on_release(w, bias, n, epsilon, batch=1):
    """(kernel (d,), bias) as the library's context manager leaves them."""
    tf, optimizers, losses = bolt_on_module()
    layer = types.SimpleNamespace(kernel=tf.constant(w[:, None], tf.float32), bias=tf.constant([bias]), units=1)
    loss = losses.StrongConvexBinaryCrossentropy(reg_lambda=1.0, c_arg=1.0, radius_constant=1.0)
    with optimizers.BoltOn(tf.keras.optimizers.legacy.SGD(), loss)("laplace", epsilon, [layer], 1.0, n, batch):
        pass
    return layer.kernel.numpy()[:, 0], layer.bias.numpy().item()


def bolt_on_logistic(X, y, epsilon, rng):
    """The kernel alone; a seed of the program's own, so that the library's constant one is of no help to the audit."""
    tf, _, _ = bolt_on_module()
    tf.random.set_seed(int(rng.integers(2**31)))
    return bolt_on_release(*bolt_on_training(X, y, rng), len(y), epsilon)[0]


def one_long_row(label, n=20):
    """(X, y) of n rows at 0 with labels 0 and 1 by turns, but for one at 1."""
    return np.eye(1, n).T, np.append(label, np.resize([0.0, 1.0], n - 1))


def models(above, below=112, m=300):
    """(m, 1) models: `below` of them at -1, `above` at 1, the others at 0."""
    found = np.zeros((m, 1))
    found[:below], found[m - above :] = -1.0, 1.0
    return found, np.zeros(m)


def one_label(label, n=20):
    """(X, y) of n rows at 1 with label 0, but for one."""
    return np.ones((n, 1)), np.concatenate([[label], np.zeros(n - 1)])


tukey = AuditTarget(
    tukey_em, "TukeyEM, its test", delta=DELTA_TUKEY, pairs=(Pair(models(112), models(111), "a model at 1, or at 0"),)
)
boosted = AuditTarget(
    boosted_adassp,
    "BoostedAdaSSP, one round",
    delta=DELTA_BOOSTED,
    row_norm=1.0,
    pairs=(Pair(one_label(1.0), one_label(-1.0), "a label of 1, or of -1"),),
)
amp = AuditTarget(
    amp_logistic,
    "approximate minima perturbation",
    d=5,
    delta=DELTA_AMP,
    row_norm=1.0,
    pairs=(Pair(first_row(1.0), first_row(-1.0), "a label of 1, or of -1"),),
)
psgd = AuditTarget(
    psgd_logistic,
    "permutation SGD",
    d=5,
    delta=DELTA_AMP,
    row_norm=1.0,
    pairs=(Pair(first_row(1.0), first_row(-1.0), "a label of 1, or of -1"),),
)
bolt_on = AuditTarget(
    bolt_on_logistic,
    "TensorFlow Privacy, bolt-on, batches of one row",
    row_norm=1.0,
    labels=(0.0, 1.0),
    pairs=(Pair(one_long_row(1.0), one_long_row(0.0), "a label of 1, or of 0"),),
)
