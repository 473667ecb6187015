"""How a run ended is said by the runner alone, in one of six words; a plug-in cannot say it of itself."""

import re

import pandas as pd
import pytest
from msgspec.structs import replace

from dpbench.errors import DataError, NotAtHand, OutOfReach, PrivacyError, UserError, WorkerDied
from dpbench.run import outcomes, runner
from dpbench.run.execute import execute, failed_row
from dpbench.run.job import make_job
from dpbench.run.row import DIAGNOSTICS, FILLED
from dpbench.run.store import Store

LIAR = """
from dpbench.algorithms.base import Algorithm, Diagnostic, Disclosure, RunResult

SAID = {said!r}

class Liar(Algorithm):
    name = "liar"
    discloses = (Disclosure("gradient", "the gradient", add_remove="L₀/n"),)
    diagnostics = tuple(Diagnostic(name, "what it says of itself") for name in {declared!r})

    def run(self, problem, W, mechanisms, settings, trace):
        G = problem.gradient(W)
        for _ in range({times}):  # each at the whole budget
            rho = mechanisms.budget.rho
            noisy = mechanisms.gaussian(G, sensitivity=problem.lipschitz / problem.n, rho=rho, label="gradient")
        return RunResult(W - noisy, {{name: [value] * len(W) for name, value in SAID.items()}})

    def measure(self, problem, outcome, settings, generators):
        return {{name: [value] * len(outcome.W) for name, value in {measured!r}.items()}}
"""
FLATTERY = {
    "status": "done",
    "private": True,
    "epsilon_planned": 0.99,
    "epsilon_accounted": 0.99,
    "checked_by": "dp_accounting exact Gaussian",
    "error": "",
}


@pytest.fixture
def job(tmp_path):
    def make(said=(), declared=(), times=3, measured=()):
        path = tmp_path / "liar.py"
        path.write_text(LIAR.format(said=dict(said), declared=list(declared), times=times, measured=dict(measured)))
        return make_job(problem="synthetic", algorithm=f"{path}:Liar", epsilon=1.0, seed=0)

    return make


@pytest.mark.parametrize("declared", [(), tuple(FLATTERY)], ids=["undeclared", "declared"])
@pytest.mark.parametrize("by", ["said", "measured"])
def test_a_method_that_writes_the_columns_of_the_check_has_failed(job, declared, by):
    ((row,), _) = execute([job(**{by: FLATTERY}, declared=declared)])
    assert row.status == "defect"
    assert "checked_by" in row.error
    assert row.epsilon_planned is row.checked_by is None


def test_an_overspender_with_columns_of_its_own_is_told_by_the_check(job):
    ((row,), _) = execute([job({"praise": "within ε"}, ["praise"])])
    assert (row.status, row.private) == ("defect", False)
    assert row.epsilon_planned > 1.5
    assert "more than the 1 asked for" in row.error


def test_a_column_of_its_own_is_kept_and_needs_a_value_per_replicate(job, tmp_path):
    store = Store(tmp_path, "p", "e")
    assert runner.run([job({"solver": "newton", "notes": "ok"}, ["solver", "notes"], times=1)], store).failed == 0
    (row,) = store.rows("")
    assert (row.status, row.private, row.notes) == ("done", True, "ok")
    assert row.diagnostics == {"solver": "newton"}


def test_what_an_algorithm_may_fill_and_what_the_runner_does_are_apart():
    assert not DIAGNOSTICS & FILLED
    assert {*FLATTERY, "key", "algorithm", "objective", "excess", "relation", "diagnostics"} <= FILLED


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (UserError("T must be at least 1"), "refused"),
        (DataError("X has NaN: row 3"), "refused"),
        (NotAtHand("Error: no files"), "refused"),
        (OutOfReach("epsilon"), "out of reach"),
        (PrivacyError("the ledger composes to more"), "defect"),
        (ZeroDivisionError("division by zero"), "defect"),
        (WorkerDied("killed"), "died"),
        (MemoryError(), "died"),
    ],
)
def test_an_exception_says_by_its_class_how_a_run_ended(error, word):
    assert outcomes.status_of(error) == word


def test_results_are_what_there_is_to_judge_and_the_worst_word_wins():
    assert list(outcomes.has_result(pd.Series([*outcomes.OUTCOMES]))) == [True, True, False, False, False, False]
    assert outcomes.worst(["done", "refused", "diverged"]) == "refused"
    assert outcomes.worst(["refused", "defect", "died"]) == "defect"


def test_the_row_of_a_run_that_failed_says_of_what_it_is_and_why():
    def failed(error, algorithm="dp-gd", planted=1.0, **more):
        job = make_job(problem="synthetic", algorithm=algorithm, epsilon=1.0, seed=3, **more)
        return failed_row(replace(job, planted=planted), error)

    try:
        raise ValueError("a matrix\nis singular")
    except ValueError as error:
        defect = failed(error)
    assert defect.status == "defect"
    assert re.fullmatch(r"ValueError: a matrix is singular \(test_outcomes.py:\d+\)", defect.error)
    assert defect.traceback.startswith("Traceback")
    assert (defect.problem, defect.algorithm, defect.epsilon, defect.seed) == ("synthetic", "dp-gd", 1.0, 3)
    refused = failed(UserError("no such rows"), delta=1e-6)
    assert (refused.status, refused.error, refused.traceback) == ("refused", "no such rows", "")
    assert [one.delta for one in (defect, refused)] == [None, 1e-6]  # n^-2 of data that may not be there
    unmarked = [
        failed(UserError("x"), **more).private for more in ({}, {"planted": 0.5}, {"algorithm": "damped-newton"})
    ]
    assert unmarked == [True, False, False]
