"""Every private method at every ε: a model and a ledger that both routes accept, or one clear line."""

import numpy as np
import pytest

from dpbench.algorithms import get, rules
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.registry import BUILTIN
from dpbench.algorithms.rules import public_settings
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import check, guarantee
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems import Declaration
from dpbench.run.job import delta_value
from tests.algorithms.test_contract import FEW, fitting_problem
from tests.batches import run_batch

DEFAULTS = ("boosted-ssp", "dp-gd-average", "objpert-pure", "dp-chebyshev", "output-perturbation", "dp-adam")
FAR = (1e-6, 1e-3, 30.0, 1e3, 1e6)


def line_of(name, epsilon):
    """The line that a user reads where there is no model; "" where there is one, within ε by both routes."""
    method = get(name)
    problem = fitting_problem(method)
    values = {k: v for k, v in FEW.items() if k in method.Settings.__struct_fields__}
    try:
        settings = method.complete(problem, make_settings(method, values))
        mode, relation = method.accounting(rules.accounting(method)), method.under(rules.RELATION)
        budget = Budget(epsilon, delta_value(rules.delta(method), problem.n), relation, mode)
        run = run_batch(problem, method, [settings], np.full((1, problem.d), 0.1), budget, ["any"])
    except UserError as error:
        return str(error)
    found = guarantee(run.mechanisms.ledger, 0, budget, method.labels)
    assert not found.error
    if name in DEFAULTS:
        assert np.isfinite(run.W).all()
    return ""


@pytest.mark.parametrize("epsilon", FAR)
@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_method_gives_a_model_at_any_epsilon(name, epsilon):
    assert line_of(name, epsilon) == ""


@pytest.mark.thorough_for("*-1e-06", "*-1000000.0")
@pytest.mark.parametrize("epsilon", [1e-6, 200.0, 1e6])
@pytest.mark.parametrize("name", ["objpert", "aop"])
def test_objective_perturbation_gives_a_model_at_any_epsilon(name, epsilon):
    assert line_of(name, epsilon) == ""


@pytest.mark.thorough
@pytest.mark.parametrize("n", [50, 2000, 300_000])
@pytest.mark.parametrize("epsilon", [*FAR, 599.0, 1000.0, 2000.0])
def test_the_greedy_default_has_a_plan_within_epsilon_at_any(epsilon, n):
    """Of hundreds of pure releases at ε = 1000 the second accountant's grid finds up to 0.1 % more than ours."""
    method = get("dp-gcd")
    budget = Budget(epsilon, n**-2.0, rules.RELATION, "tight")
    mechanisms = Mechanisms(["one"], budget)
    settings = make_settings(method, public_settings("dp-gcd", n, 60, epsilon))
    method.plan(Declaration(n, 60, l1=1e-3, row_bound=1.0), mechanisms, settings)
    assert not check(mechanisms.ledger.planned(0), budget).error


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", FAR)
@pytest.mark.parametrize("name", [name for name in BUILTIN if get(name).private])
def test_any_method_gives_a_model_or_one_line(name, epsilon):
    line = line_of(name, epsilon)
    assert "\n" not in line
    assert not line or "epsilon" in line or "ε" in line
