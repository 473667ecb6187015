"""What this room refuses: one line that names the argument and says what is allowed, or what to do."""

import math

import pytest

from dpbench import algorithms
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.accounting.pure import advanced_composition_epsilon0
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import profile, trade_off
from dpbench.privacy.correlated import sensitivity
from dpbench.privacy.data_budget import BudgetSpent, DataBudget
from dpbench.privacy.ledger import (
    ZCDP,
    CountedRelease,
    Gaussian,
    Laplace,
    Poisson,
    PureDP,
    Relation,
    WithoutReplacement,
)
from dpbench.privacy.mechanisms import Mechanisms

RELEASES = (CountedRelease(Gaussian(2.0), 1, "g"),)
MEANINGLESS = [(kind, bad) for kind in (Gaussian, Laplace, PureDP, ZCDP) for bad in (0.0, -1.0, math.inf, math.nan)]


def mechanisms(relation):
    return Mechanisms(["key"], Budget(1.0, 1e-6, relation, "tight"), declared=relation)


def budget(path=None, epsilon=10, delta=1e-8):
    return DataBudget.create(path, epsilon=epsilon, delta=delta)


def twice(path):
    budget(path)
    budget(path)


def cut_off(path):
    path.touch()
    DataBudget(path)


CREATE = "DataBudget.create(file, epsilon=…, delta=…)"
REFUSED = [  # call of a path, error, the argument that the line names, what it says of it
    (lambda _: gaussian_mu(1.0, 0.0), UserError, "delta", "must be in"),
    (lambda _: gaussian_mu(-1.0, 1e-6), UserError, "epsilon", "non-negative"),
    (lambda _: advanced_composition_epsilon0(1.0, 4, 0.0), UserError, "delta", "must be in"),
    (lambda _: advanced_composition_epsilon0(-1.0, 4, 1e-6), UserError, "epsilon", "positive number"),
    (lambda _: algorithms.get("dp-sgd").accounting("as-released-code"), UserError, "accounting", "apply to dp-sgd"),
    (lambda _: profile(RELEASES, Relation.ADD_REMOVE, [1.0]), UserError, "deltas", "each must be in"),
    (lambda _: trade_off(RELEASES, Relation.ADD_REMOVE, [-0.1]), UserError, "alphas", "each must be in"),
    (lambda _: sensitivity(9, 3, 4), PrivacyError, "bands", "1..3"),
    *((lambda _, rate=rate: Poisson(rate, Gaussian(1.0)), PrivacyError, "rate", "(0, 1]")
      for rate in (0.0, -0.1, 1.1, math.nan)),
    *((lambda _, m=m: WithoutReplacement(10, m, Gaussian(1.0)), PrivacyError, "m ", "1..10") for m in (0, 11)),
    (lambda _: mechanisms(Relation.ADD_REMOVE).poisson(10, 1.5, "b"), PrivacyError, "rate", "(0, 1]"),
    (lambda _: mechanisms(Relation.REPLACE_ONE).without_replacement(10, 11, "b"), PrivacyError, "m ", "1..10"),
    *((lambda _, kind=kind, bad=bad: kind(bad), PrivacyError, kind.__name__, "positive and finite")
      for kind, bad in MEANINGLESS),
    (lambda _: budget().charge("a fit", (), 1.0, 1e-7), BudgetSpent, "δ = 1e-08", "a smaller δ"),
    (lambda _: DataBudget(3, 1e-6), UserError, "DataBudget", CREATE),
    (lambda path: DataBudget(path, epsilon=3, delta=1e-6), UserError, "DataBudget", CREATE),
    (twice, UserError, "b exists", "DataBudget(file) goes on with it"),
    (cut_off, UserError, "b is empty", "delete it"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "argument", "says"), REFUSED)
def test_a_refusal_names_the_argument_and_what_is_allowed(call, error, argument, says, tmp_path):
    with pytest.raises(error) as refusal:
        call(tmp_path / "b")
    line = str(refusal.value)
    assert argument in line
    assert says in line
    assert "\n" not in line
