"""greedy_coordinate's regularisation weights: the frozen numbers are those that the data give."""

import numpy as np
import pytest

from dpbench.experiments.greedy_coordinate import weights
from dpbench.problems import build, catalogue
from dpbench.problems.problem import Problem

FROZEN = {name: catalogue.recipe_of(name).weights for name in (*weights.L2, *weights.NONZEROS)}


def check(name):
    weight, count = weights.find(name)
    assert FROZEN[name] == {"l2" if count is None else "l1": weight}
    if count is not None:
        assert count == weights.NONZEROS[name]
        w = build(name).optimum()
        assert np.count_nonzero(w.w) == count
        assert w.certificate <= 1e-10


@pytest.mark.parametrize("name", ["log1", "log2", "square"])
def test_frozen_weights_of_synthetic_problems(name):
    check(name)


@pytest.mark.parametrize("name", ["california", "mtp", "mtp-qsar", "madelon", "madelon-l1"])
def test_frozen_weights_of_real_problems(name, real_data):
    real_data(catalogue.dataset_of(name))
    check(name)


@pytest.mark.slow
def test_frozen_weight_of_dorothea(real_data):
    real_data("dorothea")
    check("dorothea")


def planted(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 12))
    return Problem(X, X[:, :4] @ [4.0, -3.0, 2.0, 1.0] + rng.standard_normal(40), loss="squared")


@pytest.mark.parametrize("nonzeros", [1, 3, 6])
def test_l1_weight_is_the_largest_with_that_many_non_zeros(nonzeros):
    problem = planted(3)
    weight, count = weights.l1_weight(problem, nonzeros)
    assert count == nonzeros
    larger = weight * np.geomspace(1.0012, 5, 300)
    counts = [np.count_nonzero(weights._solution(problem, one, None)) for one in larger]
    assert nonzeros not in counts


def test_a_count_that_no_weight_has_gives_the_nearest():
    x = np.random.default_rng(0).standard_normal((30, 1))
    problem = Problem(np.hstack([x, x[::-1], -x[::-1]]), x[:, 0] * 3, loss="squared")
    weight, count = weights.l1_weight(problem, 7, longest=200)
    assert count < 7
    assert weight > 0
