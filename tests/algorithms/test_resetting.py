"""Going back to the start: what it does, what it leaves alone, and which radius keeps ε."""

import numpy as np
import pytest

from dpbench.algorithms import get, resetting
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent
from dpbench.problems import damped_newton
from tests.algorithms.conftest import run, small_problem

METHODS = ("dp-newton", "damped-newton", "dp-newton-minibatch")


def test_rows_outside_the_ball_and_no_others_are_back_at_their_own_start():
    W = np.array([[3.0, 4.0], [3.0, 4.1], [np.nan, 0.0], [np.inf, 0.0]])
    start = np.arange(8.0).reshape(4, 2)
    back = resetting.back_inside(W, start, 5.0)
    np.testing.assert_array_equal(back, [W[0], start[1], start[2], start[3]])
    assert resetting.back_inside(W, start, np.inf) is W


@pytest.mark.parametrize("name", METHODS)
def test_a_run_ends_at_its_start_when_the_last_iterate_is_outside(name):
    """Every iterate is: the run is then its own start, whatever was released."""
    problem = small_problem()
    start = np.random.default_rng(3).standard_normal((3, problem.d)) / 1e4
    far = run(name, problem, T=3, epsilon=0.05, start=start)
    assert (np.linalg.norm(far.W, axis=1) > 1e-3).all()
    np.testing.assert_array_equal(run(name, problem, T=3, epsilon=0.05, start=start, reset=1e-3).W, start)


@pytest.mark.parametrize("name", METHODS)
def test_a_wide_radius_changes_nothing(name):
    problem = small_problem()
    free, held = (run(name, problem, T=4, reset=reset) for reset in (None, 1e12))
    np.testing.assert_array_equal(free.W, held.W)


def test_the_published_radius_is_of_the_optimum():
    problem = small_problem()
    norm = np.linalg.norm(damped_newton.solve(problem, 1e-9))
    assert resetting.radius(problem, "optimum") == pytest.approx(100 * norm + 200, rel=1e-12)
    assert resetting.radius(problem, 7.0) == 7.0
    assert resetting.radius(problem, None) == np.inf


@pytest.mark.parametrize("name", ["dp-newton", "dp-newton-minibatch"])
def test_the_public_radius_keeps_epsilon_and_the_published_one_does_not(name):
    method = get(name)
    assert method.flaw(make_settings(method, {"reset": 1000.0}), "bs16") == ""
    assert "w*" in method.flaw(make_settings(method, {"reset": "optimum"}), "bs16")
    problem = small_problem()
    reset = run(name, problem, T=3, reset=0.5)
    assert spent(reset.mechanisms.ledger.of(0), problem.n**-2.0, Relation.ADD_REMOVE).epsilon <= 1.0


def test_settings_are_read_from_the_command_line_and_refused_in_one_line():
    method = get("dp-newton")
    assert make_settings(method, {"reset": "1000"}).reset == 1000.0
    assert make_settings(method, {"reset": "optimum"}).reset == "optimum"
    for wrong in ("0", "nearest"):
        with pytest.raises(UserError, match="reset"):
            make_settings(method, {"reset": wrong})
