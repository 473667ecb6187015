import platform
from types import SimpleNamespace

import numpy as np
import pytest

from dpbench.problems import build
from dpbench.run import execute
from dpbench.run.execute import environment
from dpbench.run.job import make_job


def test_the_line_names_interpreter_libraries_and_machine():
    line = environment()
    assert f"Python {platform.python_version()}" in line
    assert f"numpy {np.__version__}" in line
    assert platform.machine() in line
    assert "\n" not in line


def test_a_support_is_counted_against_the_optimums_column_by_column():
    optimum = SimpleNamespace(w=np.array([1.0, 3.0, 0.0, 0.0]))
    W = np.array([[1.0, 0.0, 2.0, -1.0], [0.0, 0.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0]])
    sparse, plain = SimpleNamespace(l1=0.1), SimpleNamespace(l1=0.0)
    found = {name: counts.tolist() for name, counts in execute._support(sparse, W, optimum).items()}
    assert found == {"support_correct": [1, 0, 2], "support_wrong": [2, 0, 0]}
    assert execute._support(plain, W, optimum) == execute._support(sparse, W, None) == {}


def test_a_row_and_its_trace_say_the_same_of_a_run():
    jobs = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=seed, settings={"T": 3}, trace=True)
        for seed in (0, 1)
    ]
    rows, points = execute.execute(jobs)
    problem = build("synthetic")
    best = problem.optimum().value
    for job, row in zip(jobs, rows, strict=True):
        mine = [point for point in points if point.key == job.key == row.key]
        assert [(point.iteration, point.passes, point.seconds) for point in mine] == [(t, t, None) for t in range(4)]
        assert mine[-1].excess == pytest.approx(row.excess) == pytest.approx(row.objective - best)
        assert mine[0].excess > 0
        assert (row.seed, row.T, row.status, row.private, row.planted) == (job.seed, 3, "done", True, None)
        assert (row.accounting, row.relation, row.delta) == ("bs16", "add-remove", problem.n**-2.0)
        assert (row.seconds, row.diagnostics, row.counts_public, row.code) == (None, None, "", "built in")
        assert row.epsilon_accounted == pytest.approx(row.epsilon_planned, rel=0.3)
        assert row.epsilon_realised == row.epsilon_planned <= 1
        assert 0.5 < row.accuracy < 1
        assert 0 < row.gradient_norm < 1
        assert row.data_sha256 == problem.data_hash
    assert rows[0].objective != rows[1].objective
