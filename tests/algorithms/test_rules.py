"""What a method takes where nobody said: below the papers, and the same for every product."""

import subprocess
import sys

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.errors import UserError
from dpbench.problems import Declaration


@pytest.mark.thorough
def test_a_product_loads_no_module_of_the_papers():
    code = "import sys, dpbench.own.estimators, dpbench.comparing.own_data, dpbench.submitting.checking; "
    code += "print(*[name for name in sys.modules if name.startswith('dpbench.experiments')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, "objpert"),
        ({"l2": 0.1}, "objpert"),
        ({"n": 1501, "d": 1501}, "dp-gd-average"),
        ({"delta": 0.0}, "objpert-pure"),
        ({"l1": 0.1}, "objpert"),
        ({"l1": 0.1, "d": 51}, "dp-gcd"),
        ({"n": 600, "d": 20_000}, "objpert"),
        ({"n": 2000, "d": 2000}, "dp-gd-average"),
        ({"loss": "softmax-3", "d": 60}, "dp-gd-average"),
        ({"loss": "squared", "n": 20_000}, "dp-gd-average"),
        ({"loss": "squared", "n": 20_001}, "boosted-ssp"),
        ({"loss": "squared", "n": 20_001, "l1": 0.1}, "dp-gd-average"),
        ({"loss": "squared", "d": 1501}, "dp-gd-average"),
        ({"loss": "squared", "l1": 0.1}, "dp-gd-average"),
        ({"loss": "squared", "l1": 0.1, "d": 51}, "dp-gcd"),
        ({"loss": "softmax-3", "l1": 0.1, "d": 600}, "dp-gd-average"),
        ({"loss": "pseudo-huber"}, "objpert"),
    ],
)
def test_a_method_is_chosen_by_public_numbers_alone(given, chosen):
    given = {"n": 1000, "d": 20} | given
    delta = given.pop("delta", 1e-6)
    assert rules.method(Declaration(**given), delta) == chosen


@pytest.mark.parametrize(
    ("given", "last", "then"),
    [
        ({}, 1500, "dp-gd-average"),
        ({"l1": 0.1}, 50, "dp-gcd"),
        ({"loss": "squared"}, 500, "boosted-ssp"),
        ({"loss": "squared", "n": 20_001}, 1500, "dp-gd-average"),
        ({"loss": "pseudo-huber", "l1": 0.1}, 50, "dp-gcd"),
    ],
)
def test_a_rule_holds_up_to_and_with_its_last_column(given, last, then):
    one, at, beyond = (rules.method(Declaration(**{"n": 2000, "d": d, **given})) for d in (1, last, last + 1))
    assert one == at != beyond == then


def test_what_auto_chooses_takes_the_problem():
    """A rule for a method that refuses its problems would be told at the first fit."""
    for rule in rules.CHOICES:
        loss = {"softmax": "softmax-3", "quantile": "quantile-0.9"}.get(rule.family, rule.family)
        penalty = {} if rule.l1 is False else {"l1": 0.01}
        problem = Declaration(1000, 30, loss=loss, row_bound=1.0, l2=0.01, **penalty)
        method, fixed = algorithms.resolve(rule.method)
        method.needs.check(problem, method.name)
        assert (rules.delta(method) == 0) == rule.pure
        assert not fixed


@pytest.mark.parametrize("n", [50, 1000, 10**6])
def test_the_greedy_rule_gives_no_less_at_a_larger_epsilon(n):
    """More coordinates, a smaller bias, and no number of passes that composes to noise without end."""
    found = [rules.public_settings("dp-gcd", n, 200, epsilon) for epsilon in 10 ** np.linspace(-6, 6, 49)]
    for name, least, most in (("passes", 1, rules.WORK / (4 * n * 200)), ("clip", 0.3, 1.0)):
        values = [one[name] for one in found]
        assert values == sorted(values)
        assert least <= values[0] < values[-1] <= max(most, least)
    assert {(one["scales"], one["step"]) for one in found} == {("bound", 100.0)}


@pytest.mark.parametrize(
    ("given", "delta", "message"),
    [
        (
            {"loss": "squared"},
            0.0,
            "no rule chooses one for squared loss at δ = 0 at d = 20; give delta > 0, as delta=",
        ),
        ({"loss": "softmax-4"}, 0.0, "softmax-4 loss at δ = 0"),
        ({"d": 1501}, 0.0, "logistic loss at δ = 0 at d = 1501"),
        ({"loss": "sigmoid"}, 1e-6, "sigmoid loss"),
    ],
)
def test_no_rule_is_told(given, delta, message):
    with pytest.raises(UserError, match=message):
        rules.method(Declaration(**({"n": 1000, "d": 20} | given)), delta)


def test_accounting_is_the_best_there_is_and_delta_one_for_all():
    found = {name: rules.accounting(algorithms.resolve(name)[0]) for name in ("dp-gd", "aop", "opt-ls", "dp-sgd-1")}
    assert found == {"dp-gd": "tight", "aop": "tight", "opt-ls": "cks20", "dp-sgd-1": "rdp"}
    assert {"tight", "rdp"} <= set(algorithms.get("dp-sgd").accountings)
    assert rules.accounting(algorithms.get("dp-sgd")) == "tight"
    assert rules.delta(algorithms.get("dp-nag")) == 0
    assert rules.delta(algorithms.get("opt")) == "n^-2"
    assert set(rules.INSTEAD) <= set(algorithms.names())


COORDINATES = {"clip": 0.3, "scales": "bound", "step": 5.0}
NEWTON = {"T": 3, "lambda0": 0.16}
BY_HAND = {
    ("dp-gd", "dp-gd-last"): {"T": 26},
    ("dp-sgd",): {"T": 26, "rate": 0.1},
    ("dp-mf",): {"epochs": 6, "batches": 4},
    ("dp-newton",): {"T": 3},
    ("dp-newton-minibatch", "dp-newton-general"): NEWTON,
    ("cubic-newton",): {"T": 1},
    ("dp-gd-laplace",): {"T": 30, "c": 0.082},
    ("dp-hb", "dp-nag", "dp-masg"): {"T": 30, "c": 0.0027},
    ("dp-nag-opt", "dp-masg-opt"): {"T": 100, "c": 0.082},
    ("dp-cd",): {"passes": 2.2, **COORDINATES},
    ("dp-gcd",): {"passes": 6.0, **COORDINATES},
    ("dp-sgd-1",): {"passes": 0.3, "clip": 1.0, "step": 0.023},
    ("o2nc-tree", "o2nc-naive"): {"radius": 1.0},
    ("opt", "opt-b", "2opt", "2opt-b", "dp-tr", "dp-tr-b", "dp-gd-2ns"): {"alpha": 0.1},
    ("opt-ls", "2opt-ls"): {"alpha": 0.2},
}


def test_what_a_user_gets_without_a_choice_is_worked_out_by_hand():
    """At n = 1,000, d = 10, ε = 1: ρ = (1/(√14.82 + √13.82))² = 0.01747, with 2 ln n = 13.82.

    Gradient steps: (ρn²)^⅓ = 25.9. Newton's: 2·log₁₀ 1,000 - 3 = 3 with λ₀ = 5/√1,000 = 0.158. Laplace noise: c = 0.3
    √(64/600)·1,000/1,200 = 0.0817, over 30 with momentum. Passes of dp-cd: 0.17·1,000 √ρ/10 = 2.25; of dp-gcd: √1,000/5
    = 6.3; the step of dp-sgd-1: 4 √(0.1/3,000) = 0.0231.
    """
    assert {name for names in BY_HAND for name in names} == {*rules.RULES}
    for names, settings in BY_HAND.items():
        assert [rules.public_settings(name, 1000, 10, 1.0) for name in names] == [settings] * len(names)


@pytest.mark.parametrize(
    ("name", "n", "d", "epsilon", "name_of", "value"),
    [
        ("dp-gd", 4, 2, 0.01, "T", 3),  # the fewest steps
        ("dp-gd", 10**6, 10**5, 1.0, "T", 2),  # 4nd = 4·10¹¹ flops a step: no more than two of 10¹² flops
        ("dp-newton", 100, 2, 0.5, "T", 2),
        ("dp-newton", 10**9, 2, 100.0, "T", 10),
        ("dp-newton-general", 100, 2, 0.5, "lambda0", 0.25),
        ("dp-newton-general", 10**9, 2, 100.0, "lambda0", 0.01),
        ("dp-nag-opt", 10, 10**4, 1e-4, "c", 1e-4),
        ("dp-nag-opt", 10**6, 2, 100.0, "c", 1.0),
        ("dp-cd", 1000, 1000, 0.01, "passes", 0.1),
        ("dp-cd", 10**5, 4, 4.0, "passes", 3.0),
        ("dp-cd", 1000, 1, 1.0, "step", 1.0),
        ("dp-gcd", 100, 10, 0.1, "passes", 1.0),
        ("dp-gcd", 300, 10, 1.0, "passes", 2.0),  # few releases: nε/150
        ("dp-gcd", 1000, 10, 600.0, "passes", 160.0),  # √600,000/5 in two digits, and no more at a larger ε
        ("dp-gcd", 1000, 10, 1000.0, "passes", 160.0),
        ("dp-gcd", 10**6, 10**4, 1.0, "passes", 25.0),  # by the work
        ("dp-gcd", 10_000, 10, 1.0, "clip", 0.6),  # 0.3·√(10,000/2,500)
        ("dp-gcd", 10**6, 10, 1.0, "clip", 1.0),
        ("dp-sgd-1", 1000, 10, 0.25, "step", 0.012),  # half of that at ε = 1
        ("dp-sgd-1", 1000, 10, 4.0, "step", 0.023),
    ],
)
def test_a_rule_stops_at_its_bounds(name, n, d, epsilon, name_of, value):
    assert rules.public_settings(name, n, d, epsilon)[name_of] == value


def test_rules_of_newtons_methods_by_hand():
    """At n = 1,000 and ε = 0.5: 2·log₁₀ 500 - 3 = 2.4 steps, and λ₀ = 5/√500."""
    assert rules.public_settings("dp-newton-general", 1000, 10, 0.5) == {"T": 2, "lambda0": 0.22}
    assert rules.public_settings("dp-newton-minibatch", 1000, 10, 20.0) == {"T": 6, "lambda0": 0.035}
    assert rules.public_settings("cubic-newton", 1000, 10, 20.0)["T"] == 3
    assert rules.public_settings("dp-mf", 1000, 10, 0.5)["epochs"] == max(
        1, round(rules.gradient_steps(1000, 10, 0.5) / 4)
    )
