"""The benchmarks' own logic; what they measure is not tested here."""

import numpy as np
import pytest

from benchmarks import iteration_bench, tables, textbook
from benchmarks.cluster_simulation import makespan
from benchmarks.machine import Roofline
from dpbench.algorithms.registry import BUILTIN


@pytest.mark.parametrize(
    ("seconds", "workers", "overhead", "driver", "expected"),
    [
        ([3.0, 2.0, 2.0], 2, 0.0, 0.0, 4.0),  # list scheduling
        ([1.0] * 10, 10, 0.0, 0.0, 1.0),
        ([1.0] * 10, 1, 0.5, 0.0, 15.0),
        ([1.0] * 10, 1, 0.0, 0.5, 15.0),  # one worker waits for the driver each time
        ([0.0] * 1000, 1000, 0.0, 0.01, 10.0),  # the driver is the limit
        ([1.0], 1000, 0.25, 0.5, 1.75),
    ],
)
def test_simulated_schedules_whose_length_is_known(seconds, workers, overhead, driver, expected):
    assert makespan(seconds, workers, overhead, driver) == pytest.approx(expected)


def test_the_roofline_is_the_slower_of_arithmetic_and_memory():
    machine = Roofline(flops=10.0, bandwidth=2.0)
    assert machine.seconds(20.0, 2.0) == 2.0
    assert machine.seconds(20.0, 8.0) == 4.0


def test_every_algorithm_that_iterates_is_measured_against_a_textbook_version():
    for name in BUILTIN.keys() - {"adassp", "dp-chebyshev"}:  # which solves once
        assert iteration_bench.case_of(name).textbook is not None, name


FUNCTIONS = {getattr(case.textbook, "func", case.textbook).__name__ for case in iteration_bench.CASES.values()}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_textbook_versions_run(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) / 4
    y = np.where(X @ np.ones(4) + 0.1 * rng.standard_normal(300) > 0, 1.0, -1.0)
    w = getattr(textbook, name)(X, y, 5, rng)
    assert w.shape == (4,)
    assert np.isfinite(w).all()
    if name not in ("zeroth_order", "sgd_one", "trust_region"):  # for another loss, five rows, a step that overshoots
        assert textbook.value(X, y, w) < textbook.value(X, y, np.zeros(4))


def test_one_line_is_measured_and_printed(monkeypatch):
    monkeypatch.setattr(iteration_bench, "ADULT", (500, 5))
    monkeypatch.setattr(iteration_bench, "ROUNDS", 1)
    problem = iteration_bench._logistic()
    monkeypatch.setitem(iteration_bench.PROBLEMS, "logistic", lambda: problem)
    machine = Roofline(1e10, 1e10)
    (line,) = iteration_bench.lines(machine, ["dp-gd"])
    assert min(line.single, line.batched, line.textbook) > 0
    assert line.roofline == pytest.approx(4 * 500 * 5 / 1e10)
    assert tables.cells(line)[0] == "dp-gd"
    text = tables.markdown([line], {"processor": "p"}, machine, (0.0, 0.0))
    assert len({row.count("|") for row in text.splitlines() if row.startswith("|")}) == 1
