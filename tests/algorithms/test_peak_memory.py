"""The peak memory of the eigenvalue modification is measured, in a process of its own."""

import functools

import numpy as np
import pytest

from dpbench.algorithms import get
from dpbench.algorithms.base import RunResult
from dpbench.algorithms.newton import peak_of_modification
from tests.algorithms.conftest import small_problem


@functools.cache
def extra(d, modification):
    before, peak = peak_of_modification(np.eye(d), modification)
    return peak - before


@pytest.mark.thorough
def test_it_sees_the_arrays_that_the_modification_makes():
    """Clip makes the d × d eigenvectors at least; add a copy and its factor. Neither makes a hundred matrices."""
    d = 400
    matrix = 8 * d**2
    for modification in ("clip", "add"):
        assert 1.5 * matrix <= extra(d, modification) <= 100 * matrix


@pytest.mark.thorough
def test_it_grows_with_the_square_of_the_dimension():
    assert extra(800, "clip") >= 2.5 * extra(400, "clip")


def test_dp_newton_measures_on_demand(monkeypatch):
    monkeypatch.setattr("dpbench.algorithms.newton.peak_of_modification", lambda H, modification: (10, 35))
    algorithm = get("dp-newton")
    problem = small_problem()
    outcome = RunResult(np.zeros((2, problem.d)))
    assert algorithm.measure(problem, outcome, algorithm.Settings(), [None] * 2) == {}
    columns = algorithm.measure(problem, outcome, algorithm.Settings(measure_memory=True), [None] * 2)
    assert columns["measured"] == [25, 25]
    assert columns["notes"] == ["peak of the process 35 bytes"] * 2
