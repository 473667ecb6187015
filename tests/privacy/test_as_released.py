"""The conversion of second_order's released code: what it returns, and that it is marked as no guarantee."""

import pytest

from dpbench.algorithms import get
from dpbench.errors import UserError
from dpbench.privacy import accounting
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent
from tests.algorithms.conftest import run, small_problem

N = 53_121


@pytest.mark.parametrize(
    ("n", "last"), [(10_000, 0.27), (12_000, 0.28), (30_956, 0.29), (45_220, 0.30), (53_121, 0.30)]
)
def test_the_state_of_february_returns_its_own_start(n, last):
    released, honest, delta = accounting.get("released-february"), accounting.get("bs16"), n**-2.0
    for epsilon in (0.01, 0.1, last):
        assert released.rho(epsilon, delta) == 5e-3
    for epsilon in (last + 0.01, 1.0, 10.0):
        assert released.rho(epsilon, delta) == pytest.approx(honest.rho(epsilon, delta), rel=1e-6)


@pytest.mark.parametrize(("n", "spends"), [(10_000, 0.577), (30_956, 0.615), (45_220, 0.627), (53_121, 0.632)])
def test_what_its_start_spends(n, spends):
    assert accounting.get("released-february").epsilon(5e-3, n**-2.0) == pytest.approx(spends, abs=5e-4)


def test_the_former_name_of_july_is_its_alias():
    july, former = accounting.get("released-july"), accounting.get("as-released-code")
    assert [july.rho(e, N**-2.0) for e in (0.05, 0.2, 1.0)] == [former.rho(e, N**-2.0) for e in (0.05, 0.2, 1.0)]
    assert (july.flaw, july.start) == (former.flaw, former.start)


def test_it_returns_its_start_at_small_epsilon_and_the_root_elsewhere():
    released, honest = accounting.get("as-released-code"), accounting.get("bs16")
    for epsilon in (0.01, 0.03, 0.1, 0.11):
        assert released.rho(epsilon, N**-2.0) == 1e-3
    for epsilon in (0.15, 0.3, 1.0, 3.0, 10.0):
        assert released.rho(epsilon, N**-2.0) == pytest.approx(honest.rho(epsilon, N**-2.0), rel=1e-6)
    assert released.epsilon(1e-3, N**-2.0) == pytest.approx(0.276, abs=5e-4)


@pytest.mark.parametrize("name", ["dp-gd", "dp-newton", "damped-newton"])
def test_its_runs_are_no_guarantee(name):
    method = get(name)
    assert method.accounting("as-released-code") == "as-released-code"
    assert "0.001" in method.flaw(method.Settings(), "as-released-code")
    assert method.flaw(method.Settings(), "bs16") == ""


def test_methods_without_that_conversion_refuse_it():
    with pytest.raises(UserError, match="does not apply to dp-sgd"):
        get("dp-sgd").accounting("as-released-code")


def test_the_second_route_finds_what_was_spent():
    problem = small_problem()
    result = run("dp-gd", problem, epsilon=0.01, accounting="as-released-code", T=2)
    assert spent(result.mechanisms.ledger.of(0), problem.n**-2.0, Relation.ADD_REMOVE).epsilon > 0.1
