"""Losses with public weights of the classes: what a row may move, and the minimiser."""

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.problems import losses
from dpbench.problems.losses import Weighted

BASES = [("logistic", (0.1, 1.0), [-1.0, 1.0]), ("softmax-3", (0.2, 1.0, 0.5), [0.0, 1.0, 2.0])]


def gradient(loss, x, y, W):
    """(outputs·d,) of one row, by the loss alone."""
    z = (np.atleast_2d(W) @ x)[:, None]
    c = loss.derivative(z, np.array([y]), np.empty_like(z))
    return (c * x).ravel()


@pytest.mark.parametrize(("name", "weights", "labels"), BASES)
def test_a_replaced_row_moves_the_sum_by_twice_the_bound_at_most_and_nearly_does(name, weights, labels):
    """All of the sensitivity that methods scale their noise by: 2·lipschitz·R, over rows, labels and models."""
    generator = np.random.default_rng(0)
    loss, most = Weighted(losses.get(name), weights), 0.0
    for _ in range(1000):
        W = generator.normal(size=(loss.outputs, 20)) * 10 ** generator.uniform(-1, 3)
        x = generator.normal(size=20)
        x /= np.linalg.norm(x)
        opposite = 2 * np.linalg.pinv(W) @ (W @ x) - x  # as long, the same predictions, nearly the other direction
        one, other = (gradient(loss, row, generator.choice(labels), W) for row in (x, opposite))
        most = max(most, np.linalg.norm(one - other))
    bound = 2 * loss.lipschitz
    assert 0.9 * bound < most <= bound * (1 + 1e-12)
    assert loss.lipschitz == losses.get(name).lipschitz * max(weights)


@pytest.mark.parametrize(("name", "weights", "labels"), BASES)
def test_a_weight_multiplies_the_loss_of_its_class_alone(name, weights, labels):
    base, generator = losses.get(name), np.random.default_rng(0)
    loss = Weighted(base, weights)
    z, y = generator.normal(size=(2 * loss.outputs, 6)), np.array(labels * 6)[:6]
    v = np.array([weights[labels.index(one)] for one in y])
    for function in ("value", "derivative"):
        weighted, plain = (getattr(one, function)(z.copy(), y, np.empty_like(z)) for one in (loss, base))
        np.testing.assert_allclose(weighted, v * plain)
    slopes = loss.derivative(z.copy(), y, np.empty_like(z)).reshape(2, loss.outputs, 6)
    lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
    for bound in (0.05, np.median(lengths), loss.lipschitz, 2 * loss.lipschitz):
        short = loss.bounded(z.copy(), y, bound, np.empty_like(z)).reshape(slopes.shape)
        np.testing.assert_allclose(short, slopes * np.minimum(1, bound / lengths), rtol=1e-12)
    losses.check(loss)
    assert not loss.logistic  # objective perturbation must not take its Jacobian for free


def test_the_generic_check_finds_its_constants():
    loss = Weighted(losses.get("logistic"), (0.3, 1.0))
    plain = type("Plain", (losses.Loss,), {
        "name": "plain", "convex": True, "binary": True, "lipschitz": 1.0, "smoothness": 0.25,
        "hessian_lipschitz": loss.hessian_lipschitz, "value": lambda self, *a: loss.value(*a),
        "derivative": lambda self, *a: loss.derivative(*a),
        "second_derivative": lambda self, *a: loss.second_derivative(*a),
    })()  # fmt: skip
    losses.check(plain)
    type(plain).lipschitz = 0.9
    with pytest.raises(UserError, match="lipschitz"):
        losses.check(plain)


@pytest.mark.parametrize("base", [losses.Softmax(3), Weighted(losses.get("logistic"), (0.3, 1.0))])
def test_a_class_derived_from_one_that_is_proved_is_not_taken_at_its_word(base):
    kind = type(base)
    steep = type("Steep", (kind,), {"derivative": lambda self, z, y, out: 5 * kind.derivative(self, z, y, out)})
    loss = object.__new__(steep)
    vars(loss).update(vars(base))
    losses.check(base)
    with pytest.raises(UserError, match=r"softmax alone may|is not what it declares"):
        losses.check(loss)


@pytest.mark.parametrize("weights", [(1.0,), (2.0, 1.0), (0.0, 1.0), (-1.0, 1.0)])
def test_weights_that_do_not_fit_are_refused(weights):
    with pytest.raises(UserError, match="class_weight: 2 weights"):
        Weighted(losses.get("logistic"), weights)
