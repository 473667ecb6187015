"""What a run may release is said before it, checked before any data are touched, and held against its ledger after."""

import numpy as np
import pytest

from dpbench.algorithms import names, resolve
from dpbench.algorithms.base import make_settings
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee
from dpbench.privacy.ledger import Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems import Declaration
from dpbench.run import execute
from dpbench.run.job import make_job
from tests.algorithms.conftest import small_problem
from tests.batches import run_batch

FEW = {"T": 6, "passes": 1.0, "cap": 3, "D": 5.0, "inner": 2, "alpha": 0.5, "M": 64, "lambda0": 0.1, "m": 24}
# T' of these is a function of L, which is read off the data where it is not given: checked by what they released.
BY_DATA = {"dp-nag-opt", "dp-masg-opt"}
PRIVATE = [name for name in names(plugins=False, wrappers=True) if resolve(name)[0].private]


def made(name, accounting, relation):
    """(algorithm, problem, settings, budget, mechanisms after a run of two)."""
    algorithm, fixed = resolve(name)
    loss = "logistic" if "logistic" in algorithm.needs.covered else algorithm.needs.covered[0]
    ridge = {"l2": 0.02} if "l2" in algorithm.needs.regularisers else {}
    problem = small_problem(loss=loss, bound=algorithm.needs.row_norm, **ridge)
    few = {k: v for k, v in FEW.items() if k in algorithm.Settings.__struct_fields__ and k not in fixed}
    settings = algorithm.complete(problem, make_settings(algorithm, {**fixed, **few}))
    mode = algorithm.accounting(accounting)
    budget = Budget(1.0, 0.0 if mode == "pure" or algorithm.delta == 0 else 1e-5, relation, mode)
    run = run_batch(problem, algorithm, [settings] * 2, np.zeros((2, problem.d)), budget, ["a", "b"])
    return algorithm, problem, settings, budget, run.mechanisms


@pytest.mark.thorough_for("*-tight", "2opt-b-paper", "objpert-paper")
@pytest.mark.parametrize("accounting", ["paper", "tight"])
@pytest.mark.parametrize("name", PRIVATE)
def test_the_plan_is_what_the_ledger_has_and_needs_no_data(name, accounting):
    algorithm, _ = resolve(name)
    if accounting == "tight" and "tight" not in algorithm.accountings:
        pytest.skip("it has no tight accounting")
    for relation in {algorithm.relation, Relation.REPLACE_ONE}:
        algorithm, problem, settings, budget, after = made(name, accounting, relation)
        declared = budget.relation if algorithm.either else algorithm.relation
        before = Mechanisms(["plan"], budget, declared=declared)
        bare = problem.bare
        assert type(bare) is Declaration
        algorithm.plan(bare, before, settings)
        plan = before.ledger.planned(0)
        if name in BY_DATA:
            assert not plan
            continue
        assert plan
        if not algorithm.stops_early:
            assert after.ledger.of(0) == plan
        assert after.ledger.planned(0) == plan
        if not algorithm.flaw(settings, budget.accounting):
            assert not guarantee(after.ledger, 0, budget, algorithm.labels).error


PLUGIN = """
from dpbench.algorithms.base import Algorithm, Disclosure
from dpbench.privacy.ledger import at_rho

class Mine(Algorithm):
    name = "mine"
    discloses = (Disclosure("gradient", "the gradient", add_remove="L₀/n"),)

    def plan(self, problem, mechanisms, settings):
        {plan}

    def run(self, problem, W, mechanisms, settings, trace):
        open({mark!r}, "w").close()
        rho = mechanisms.budget.rho
        return {run}
"""
ONE = 'mechanisms.plan("gradient", at_rho(mechanisms.budget.rho), 1)'
RELEASE = 'mechanisms.gaussian(W, sensitivity=problem.lipschitz / problem.n, rho=rho, label="gradient")'


@pytest.mark.parametrize(
    ("plan", "run", "words", "ran"),
    [
        (ONE, RELEASE, "", True),
        (ONE.replace(", 1)", ", 4)"), RELEASE, "its plan: the ledger composes to ε = ", False),
        (ONE.replace('"gradient"', '"other"'), RELEASE, "its plan: other: released, but never declared", False),
        ("return problem.X", RELEASE, "AttributeError: 'Declaration' object has no attribute 'X'", False),
        (ONE, RELEASE.replace("rho=rho", "rho=rho / 2"), "the ledger composes to ε = ", True),
        (ONE, f"{RELEASE} + {RELEASE}", "the ledger composes to ε = ", True),
    ],
    ids=["sound", "too much", "undeclared", "on the data", "other noise", "twice"],
)
def test_a_plan_is_checked_before_the_run_and_the_run_against_the_plan(tmp_path, plan, run, words, ran):
    mark = tmp_path / "ran"
    (tmp_path / "mine.py").write_text(PLUGIN.format(plan=plan, run=run, mark=str(mark)))
    job = make_job(problem="synthetic", algorithm=f"{tmp_path / 'mine.py'}:Mine", epsilon=1.0, seed=0)
    ((row,), _) = execute.execute([job])
    assert mark.exists() == ran
    assert (row.status == "done") == (not words)
    assert words in row.error
