"""dp-gd-last: what its guarantee takes for granted of a step."""

import numpy as np
import pytest

from dpbench.algorithms import resolve
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.gradient_descent import contraction
from dpbench.problems import Problem


@pytest.mark.parametrize("share", [0.5, 1.0, 1.5, 1.95])
def test_no_step_contracts_less_than_it_says(share):
    """Near 0, where the logistic loss is steepest, along a row and across it: c is the larger of both, and reached."""
    X, l2 = np.array([[1.0, 0.0], [1.0, 0.0]]), 0.1
    problem = Problem(X, np.array([1.0, -1.0]), loss="logistic", l2=l2, row_bound=1.0)
    step = share / (0.25 + l2)
    method, _ = resolve("dp-gd-last")
    c = contraction(problem, make_settings(method, {"step": step}))
    W = 1e-5 * np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    moved = W - step * problem.gradient(W)
    reached = np.linalg.norm(moved[:2] - moved[2], axis=1) / 1e-5
    assert reached.max() == pytest.approx(c, rel=1e-6)
    assert reached == pytest.approx([abs(1 - share), 1 - step * l2], abs=1e-6)
