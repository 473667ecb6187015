"""tukey-em: its models, how many of them, and what a fit says where the rows are too few or the test fails."""

import numpy as np
import pytest

from dpbench.algorithms import get
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.exponential_mechanism import calibrated, fewest, least_squares
from dpbench.errors import UserError
from dpbench.own.fit import fit
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_every_model_is_least_squares_on_its_part(l2):
    problem = small_problem(n=107, d=3, loss="squared", l2=l2)
    rows, m = np.random.default_rng(0).permutation(107), 10
    found = least_squares(problem, rows, m, l2)
    for i in range(m):
        mine = [*rows[10 * i : 10 * i + 10], *([rows[100 + i]] if i < 7 else [])]
        X, y = problem.X[mine], problem.y[mine]
        if l2:
            X = np.vstack([X, np.sqrt(l2 * len(mine)) * np.eye(3)])
            y = np.append(y, np.zeros(3))
        np.testing.assert_allclose(found[i], np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-8)


def test_one_row_replaced_or_gone_moves_one_model():
    problem = small_problem(n=60, d=2, loss="squared")
    rows = np.random.default_rng(0).permutation(60)
    models = least_squares(problem, rows, 12, 0.0)
    for x in (-problem.X[7], np.zeros(2)):
        other = small_problem(n=60, d=2, loss="squared")
        other.X[7] = x
        moved = (least_squares(other, rows, 12, 0.0) != models).any(axis=1)
        assert moved.sum() == 1


def test_a_row_beside_which_the_ridge_is_lost_moves_one_model_and_stops_nothing():
    problem = small_problem(n=60, d=2, loss="squared", l2=1e-3)
    rows = np.random.default_rng(0).permutation(60)
    models = least_squares(problem, rows, 12, 1e-3)
    problem.X[7] = 1e40
    found = least_squares(problem, rows, 12, 1e-3)
    assert (found != models).any(axis=1).sum() == 1
    assert np.isfinite(found).all()


def test_no_length_of_rows_or_labels_is_asked_for():
    rng = np.random.default_rng(0)
    X = 1e3 * rng.standard_normal((6000, 2))
    y = X @ [2.0, -1.0] + rng.standard_normal(6000)
    found = fit(X, y, algorithm="tukey-em", loss="squared", epsilon=3.0, seed=0)
    np.testing.assert_allclose(found.w, [2.0, -1.0], atol=1e-3)


def test_fewer_models_are_asked_for_as_epsilon_grows():
    m = [fewest(5, calibrated(epsilon, 1e-9), 10**6) for epsilon in np.geomspace(0.01, 1e6, 20)]
    assert m == sorted(m, reverse=True)
    assert m[-1] >= 12


def test_too_few_rows_are_one_line_and_an_m_of_ones_own_returns_zero():
    problem = small_problem(n=400, d=4, loss="squared")
    with pytest.raises(UserError, match=r"^epsilon: at ε = 0\.1 tukey-em takes more than 100 models of 4 rows each"):
        run("tukey-em", problem, epsilon=0.1)
    with pytest.raises(UserError, match="m is at most 100"):
        run("tukey-em", problem, m=101)
    result = run("tukey-em", problem, epsilon=0.1, m=100)
    assert (result.W == 0).all()
    assert result.columns["notes"] == ["the test failed: 0 was released"] * 2


def test_the_public_rule_is_what_a_fit_takes():
    settings = get("tukey-em").public_settings(20640, 8, 1.0)
    assert settings == {"m": fewest(8, calibrated(1.0, 20640**-2.0), 2580)}
    assert get("tukey-em").public_settings(442, 10, 1.0) == {"m": 44}


def test_on_a_linear_model_it_is_what_was_expected():
    """5.5e-7 ± 1.8e-7 by a prototype of another code, of any scale of features: half of d·σ²/n for the mean of all."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50_000, 5)) * [1, 3, 0.1, 10, 1]
    problem = Problem(X, X @ rng.standard_normal(5) + 0.1 * rng.standard_normal(50_000), loss="squared")
    ends = run("tukey-em", problem, delta=50_000**-2.0, seeds=10, m=1000).W
    excess = problem.value(ends) - problem.optimum().value
    se = excess.std(ddof=1) / np.sqrt(10)
    assert abs(excess.mean() - 5.5e-7) <= 3 * np.hypot(se, 1.8e-7)


def test_its_one_pass_over_the_rows_is_traced():
    method, problem, points = get("tukey-em"), small_problem(n=1200, d=2, loss="squared"), []
    settings = make_settings(method, {"m": 60})
    mechanisms = Mechanisms(["one"], Budget(5.0, 1e-6, Relation.REPLACE_ONE, "tight"))
    result = method.run(
        problem, np.zeros((1, 2)), mechanisms, settings, lambda t, W, passes: points.append((t, W, passes))
    )
    assert [(t, passes) for t, _, passes in points] == [(1, 1)]
    np.testing.assert_array_equal(points[0][1], result.W)
