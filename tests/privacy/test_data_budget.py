"""A budget per data set: all fits are charged, also after a crash and from other processes; nobody gets beyond it."""

import copy
import json
import math
import multiprocessing
import pickle

import pytest

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.privacy.data_budget import BudgetSpent, DataBudget
from dpbench.privacy.ledger import Entry, Gaussian, Laplace


def gaussian(epsilon, delta, releases=1):
    """A plan of Gaussians that costs (ε, δ)."""
    return (Entry(Gaussian(math.sqrt(releases) / gaussian_mu(epsilon, delta)), releases, "gradient"),)


def spend(budget, epsilon=1.0, delta=1e-8, composition=None, **more):
    with budget.charge(epsilon, delta, **{"what": "a fit", "gaussian": True} | more) as settle:
        settle(gaussian(epsilon, delta) if composition is None else composition)


def test_gaussian_fits_cost_the_root_of_their_number():
    budget = DataBudget(3, 1e-6)
    for _ in range(4):
        spend(budget)
    assert budget.epsilon_spent == pytest.approx(gaussian_epsilon(2 * gaussian_mu(1, 1e-8), 1e-6), rel=1e-4)
    assert len(budget.charges) == 4


def test_the_fit_that_would_go_beyond_is_refused_before_it_and_not_charged():
    budget, done = DataBudget(3, 1e-6), 0
    while budget.epsilon_spent < 2.7:
        spend(budget)
        done += 1
    refused = r"ε = 1, δ = 1e-08\) and the \d+ before it the data would cost ε = .* more than 3; ask for"
    with pytest.raises(BudgetSpent, match=refused):
        spend(budget)
    assert len(budget.charges) == done >= 4  # basic composition would end at 3
    assert budget.epsilon_spent <= 3 * (1 + 1e-6)
    spend(budget, 0.01)  # less is admitted


def test_what_is_not_gaussian_alone_adds_up():
    budget = DataBudget(2.5, 1e-6)
    pure = (Entry(Laplace(1.0), 1, "noise"),)
    for _ in range(2):
        spend(budget, 1.0, 0.0, pure, gaussian=False)
    assert budget.epsilon_spent == pytest.approx(2)
    with pytest.raises(BudgetSpent):
        spend(budget, 1.0, 0.0, pure, gaussian=False)
    spend(budget, 0.4, 1e-8)
    assert 2 < budget.epsilon_spent <= 2.4


def test_the_deltas_of_fits_leave_none_for_the_rest():
    budget = DataBudget(10, 1e-8)
    with pytest.raises(BudgetSpent, match="leave nothing of the budget's δ = 1e-08; ask for a smaller δ"):
        spend(budget, 1.0, 1e-7, gaussian=False, composition=gaussian(1.0, 1e-7))


def test_a_fit_that_raises_stays_charged(tmp_path):
    budget = DataBudget(3, 1e-6, file=tmp_path / "b.json")
    with pytest.raises(RuntimeError), budget.charge(1, 1e-8, what="a fit", gaussian=True):
        raise RuntimeError
    again = DataBudget(3, 1e-6, file=tmp_path / "b.json")
    assert [one.releases for one in again.charges] == [None]
    assert again.epsilon_spent == pytest.approx(gaussian_epsilon(gaussian_mu(1, 1e-8), 1e-6), rel=1e-4)


def test_a_plan_that_is_not_what_was_charged_is_refused_and_stays_charged():
    budget = DataBudget(9, 1e-6)
    with pytest.raises(PrivacyError, match="planned ε = 2"):
        spend(budget, 1.0, 1e-8, gaussian(2.0, 1e-8))
    with pytest.raises(PrivacyError, match="more than the Gaussians"):
        spend(budget, 1.0, 1e-8, (Entry(Laplace(2.0), 1, "noise"),))
    assert len(budget.charges) == 2


def _in_another_process(budget):
    try:
        spend(budget)
    except BudgetSpent:
        return 0
    return 1


def test_processes_share_the_file_and_together_stay_within(tmp_path):
    budget = DataBudget(2, 1e-6, file=tmp_path / "b.json")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        done = sum(pool.map(_in_another_process, [budget] * 9))
    assert done == len(budget.charges) < 9
    assert budget.epsilon_spent <= 2 * (1 + 1e-6)


def test_clones_spend_the_same_budget_and_one_without_a_file_stays_at_home():
    budget = DataBudget(3, 1e-6)
    assert copy.deepcopy(budget) is budget
    with pytest.raises(UserError, match="give it a file"):
        pickle.dumps(budget)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}'])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "b.json").write_text(content)
    with pytest.raises(UserError, match=r"b\.json cannot be read .* without it nobody knows what is spent"):
        DataBudget(3, 1e-6, file=tmp_path / "b.json")


def test_a_file_with_another_budget_or_a_doctored_charge_is_refused(tmp_path):
    file = tmp_path / "b.json"
    spend(DataBudget(3, 1e-6, file=file))
    with pytest.raises(UserError, match="holds ε = 3"):
        DataBudget(30, 1e-6, file=file)
    state = json.loads(file.read_text())
    state["charges"][0]["releases"][0]["release"]["noise_multiplier"] = -1
    file.write_text(json.dumps(state))
    with pytest.raises(UserError, match="cannot be read"):
        DataBudget(3, 1e-6, file=file)


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"delta": 0}, {"delta": 1}, {"relation": "friends"}])
def test_an_argument_that_does_not_fit_is_named(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        DataBudget(**{"epsilon": 1, "delta": 1e-6} | wrong)


def test_a_fit_under_other_neighbours_is_refused():
    with pytest.raises(UserError, match="under add-remove neighbours, the budget under replace-one"):
        spend(DataBudget(3, 1e-6), relation="add-remove")
