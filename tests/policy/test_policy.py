"""What a method takes where nobody said: below the papers, and the same for every product."""

import subprocess
import sys

import pytest

from dpbench import algorithms
from dpbench.errors import UserError
from dpbench.policy import auto, terms
from dpbench.problems import Declaration


@pytest.mark.parametrize("what", ["dpbench.estimators", "dpbench.comparing.own_data", "dpbench.submitting.checking"])
def test_a_product_loads_no_module_of_the_papers(what):
    code = f"import sys, {what}; print(*[name for name in sys.modules if name.startswith('dpbench.experiments')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, "aop"),
        ({"l2": 0.1}, "dp-gd"),
        ({"epsilon": 21.0}, "dp-gd"),
        ({"d": 1501}, "dp-gd"),
        ({"models": 3}, "dp-gd"),
        ({"models": 2, "epsilon": 25.0}, "aop"),  # 25/√2 is below the limit of one model
        ({"loss": "squared"}, "adassp"),
    ],
)
def test_a_method_is_chosen_by_public_numbers_alone(given, chosen):
    given = {"n": 1000, "d": 20, "epsilon": 1.0, "models": 1, "loss": "logistic", "l2": 0.0} | given
    target = Declaration(given["n"], given["d"], loss=given["loss"], l2=given["l2"])
    assert auto.method(target, given["epsilon"], given["models"]) == chosen


def test_no_rule_is_told():
    with pytest.raises(UserError, match="no rule chooses one for squared loss at d = 2000"):
        auto.method(Declaration(1000, 2000, loss="squared"), 1.0)


def test_accounting_is_the_best_there_is_and_delta_one_for_all():
    found = {name: terms.accounting(algorithms.resolve(name)[0]) for name in ("dp-gd", "aop", "opt-ls", "dp-sgd-1")}
    assert found == {"dp-gd": "tight", "aop": "tight", "opt-ls": "cks20", "dp-sgd-1": "rdp"}
    assert terms.delta(algorithms.get("dp-nag")) == 0
    assert terms.delta(algorithms.get("opt")) == "n^-2"
    assert set(terms.INSTEAD) <= set(algorithms.names())
