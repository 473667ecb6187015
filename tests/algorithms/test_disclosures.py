"""What algorithms declare of their releases, held against what they draw: labels, kinds of noise, sensitivities."""

import math
import re
import unicodedata

import numpy as np
import pytest

from dpbench.algorithms import get, objective_perturbation
from dpbench.algorithms.aop import split_budget
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.objective_perturbation import pure_ridge
from dpbench.algorithms.output_perturbation import phases, schedule
from dpbench.algorithms.registry import BUILTIN
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import accounting, correlated
from dpbench.privacy.accounting.objective_perturbation import free_curvature
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee
from dpbench.privacy.disclosure import MECHANISMS, Disclosure, undeclared
from dpbench.privacy.ledger import (
    BestOfRuns,
    BoundedRange,
    CountedRelease,
    DrawAfterTest,
    Gaussian,
    Laplace,
    LastIterate,
    Ledger,
    LogisticPerturbation,
    ObjectivePerturbation,
    Poisson,
    PoissonReplaced,
    PureDP,
    Radial,
    RadialPerturbation,
    Relation,
    WithoutReplacement,
)
from tests.algorithms.conftest import small_problem
from tests.algorithms.test_contract import fitting_problem
from tests.batches import run_batch

SAMPLED = (Poisson, PoissonReplaced, WithoutReplacement)
TYPES = {
    "Gaussian": Gaussian,
    "Gaussian, symmetric": Gaussian,
    "Gaussian on a sample": SAMPLED,
    "Gaussian, symmetric, on a sample": SAMPLED,
    "Gaussian in a single pass": Gaussian,
    "tree": Gaussian,
    "correlated Gaussian": Gaussian,
    "last iterate": LastIterate,
    "objective perturbation": (ObjectivePerturbation, LogisticPerturbation),
    "Laplace": Laplace,
    "Laplace on a sample": WithoutReplacement,
    "radial": Radial,
    "objective perturbation, radial": RadialPerturbation,
    "exponential": BoundedRange,
    "draw by depth": DrawAfterTest,
    "noisy max": PureDP,
    "sparse vector": PureDP,
    "best of runs": BestOfRuns,
}
FEW = {"T": 3, "cap": 20, "passes": 1.5, "alpha": 1e4, "inner": 20}
# Beside the defaults: settings under which a method releases something else.
OTHERS = {
    "dp-newton": [{"modification": "add"}, {"lambda0": 0.2}, {"modification": "add", "lambda0": 0.2}],
    "dp-newton-minibatch": [{"modification": "clip"}],
    "dp-newton-general": [{"modification": "add", "lambda0": 0.1}],
    "dp-gcd": [{"selection": "published"}, {"scales": "bound"}],
    "dp-cd": [{"scales": "bound"}],
    "dp-gd-laplace": [{"m": 100}],
}
RELEASED_ONLY = {"norm_g", "norm_v", "max", "method"}  # names in formulas that a run, not its settings, gives a value
LARGEST = {"C_j", "s"}  # of coordinates or iterates: the formula is of the largest


def test_every_mechanism_says_in_which_norm_it_is_and_by_which_theorem():
    norms = {"Laplace": "ℓ₁", "Laplace on a sample": "ℓ₁", "exponential": "each score", "noisy max": "each score",
             "sparse vector": "each query", "draw by depth": "distance", "best of runs": "the method's"}  # fmt: skip
    for name, (norm, theorem) in MECHANISMS.items():
        assert norm == norms.get(name, "Frobenius" if "symmetric" in name else "ℓ₂"), name
        assert re.search(r"\(\d{4}\)|\.py|the upper triangle|the two above", theorem), name


def test_every_mechanism_has_a_kind_of_release():
    assert TYPES.keys() == MECHANISMS.keys()


def cases():
    for name in BUILTIN:
        method = get(name)
        for other in [{}, *OTHERS.get(name, [])]:
            for mode in ("paper", *({"tight"} & set(method.accountings))):
                relations = {method.relation, Relation.REPLACE_ONE, *(Relation if method.either else ())}
                for relation in sorted(relations):  # in one order for all workers
                    words = ",".join(f"{k}={v}" for k, v in other.items())
                    yield pytest.param(name, other, mode, relation, id=f"{name}-{words}-{mode}-{relation.value}")


def names_of(problem, settings, budget):
    """The names that the formulas are in."""
    found = {"n": problem.n, "d": problem.d, "L0": problem.lipschitz, "L1": problem.smoothness, "R": problem.row_bound}
    found |= {"B_g": 1.0, "B_H": 1.0, "r": 20.0, "l": 1.0, "sqrt": math.sqrt, "s": 1.0, "γ": problem.n**-2.0}
    found |= {f: getattr(settings, f) for f in settings.__struct_fields__ if f in ("m", "D", "T", "B", "clip")}
    found["B"] = getattr(settings, "label_bound", found.get("B"))
    if "clip" in found:
        M = problem.coordinate_constants
        if getattr(settings, "scales", "data") == "bound":
            M = np.full(problem.d, problem.loss.smoothness * problem.row_bound**2 + problem.l2)
        found |= {"C": found["clip"], "M": M.sum(), "C_j": found["clip"] * np.sqrt(M / M.sum()).max()}
    if found.get("T"):
        found["h"] = math.floor(math.log2(found["T"])) + 1
    if hasattr(settings, "epochs") and hasattr(settings, "batch"):
        found |= {"η": (made := schedule(problem, budget, settings)).step, "b": made.batch}
        c = 1 - made.step * problem.l2
        found["Q"] = sum(c ** (problem.n // made.batch * p) for p in range(made.passes))
    if hasattr(settings, "phases"):
        found["ridge_i"] = phases(problem, budget, settings).ridges[0] + problem.l2  # the largest sensitivity's
    if hasattr(settings, "bands"):
        k, b = settings.epochs, settings.batches
        found["c"] = correlated.sensitivity(k * b, b, settings.bands)
    if hasattr(settings, "radius") and "clip" in found:
        found["B"] = settings.radius
    if getattr(settings, "lambda0", None):
        found["λ0"] = settings.lambda0
    if budget.accounting == "basic":
        rows = 2 if budget.relation is Relation.REPLACE_ONE else 1
        found["ridge"] = rows * problem.smoothness / split_budget(budget.epsilon, budget.delta).jacobian / problem.n
    if budget.accounting == "tight" and hasattr(settings, "safety") and not hasattr(settings, "clip"):
        found["ridge"] = objective_perturbation.whole_ridge(problem, budget, settings.safety) / problem.n
    elif hasattr(settings, "ridge") and hasattr(settings, "radius"):
        moved = (2 if budget.relation is Relation.REPLACE_ONE else 1) * problem.lipschitz / problem.n
        least = (2 * problem.smoothness * moved**2 / (2 * budget.rho) / settings.radius**2) ** (1 / 3)
        found["ridge"] = max(problem.l2, least)
    elif hasattr(settings, "output"):
        s = (2 if budget.relation is Relation.REPLACE_ONE else 1) / ((1 - settings.output) * budget.epsilon)
        found["ridge"] = pure_ridge(problem.n, problem.d, s, problem.l2, 1.0, settings.safety) / problem.n
    elif budget.accounting == "tight":
        found["ridge"] = problem.smoothness / free_curvature(budget.epsilon, budget.delta, budget.relation) / problem.n
    return found


def value_of(formula, names):
    """A declared formula as a number; None where it holds what only a run knows."""
    text = formula.replace("²", "**2").replace("·", "*").replace("‖g̃‖", "norm_g").replace("‖v‖", "norm_v")
    text = re.sub(r"√(\w+)", r"sqrt(\1)", unicodedata.normalize("NFKC", text)).replace("√", "sqrt")
    if RELEASED_ONLY & set(re.findall(r"\w+", text)):
        return None
    return eval(text, {"__builtins__": {}}, names)


@pytest.mark.thorough_for("2opt-b-*", "aop--tight-*", "dp-sgd-1-*", "dp-tr-b-*")
@pytest.mark.parametrize(("name", "other", "mode", "relation"), list(cases()))
def test_what_is_drawn_is_what_was_declared(name, other, mode, relation):
    method = get(name)
    l1 = {"l1": 1e-3} if other.get("selection") == "published" else {}
    problem = small_problem(loss="squared", **l1) if l1 else fitting_problem(method)
    values = {k: v for k, v in FEW.items() if k in method.Settings.__struct_fields__} | other
    settings = method.complete(problem, make_settings(method, values))
    delta = {"n^-2": problem.n**-2.0, "n^-1": 1 / problem.n}.get(method.delta, method.delta)
    budget = Budget(1.0, delta, relation, method.accounting(mode))
    start = small_problem(n=2, d=problem.d, seed=3).X[:1]
    try:
        run = run_batch(problem, method, [settings], start, budget, ["disclosures"])
    except PrivacyError:  # no guarantee under this relation
        assert relation is not method.relation
        return
    ledger = run.mechanisms.ledger
    assert not undeclared(ledger.of(0), method.labels)
    names = names_of(problem, settings, budget)
    for entry, row in zip(ledger.planned(0), ledger.summary(), strict=True):
        if "sensitivity" not in row or name == "dp-sgd-1":  # planned and not made; in units of a step's own
            continue
        high = float(row["sensitivity"].rpartition(" to ")[2])
        declared = [one for one in method.discloses if one.label == entry.label]
        declared = [one for one in declared if isinstance(entry.release, TYPES[one.mechanism])]
        if mode == "tight":
            declared = [one for one in declared if "tight" in one.when] or declared
        else:
            declared = [one for one in declared if "tight" not in one.when]
        assert declared, f"{entry.label}: {entry.release} is of no kind that was declared"
        formulas = [one.add_remove if relation is Relation.ADD_REMOVE else one.replace_one for one in declared]
        found = [value_of(formula, names) for formula in formulas]
        if None in found:
            continue
        if any(LARGEST & set(re.findall(r"\w+", formula)) for formula in formulas):
            assert any(high <= one * (1 + 1e-3) for one in found)
        else:
            assert any(high == pytest.approx(one, rel=1e-3) for one in found), (row, formulas, found)


def test_twice_the_sensitivity_is_of_all_of_it():
    assert Disclosure("g", "", add_remove="L₀/n").replace_one == "2·L₀/n"
    assert Disclosure("g", "", add_remove="L₀ + L₁").replace_one == "2·(L₀ + L₁)"
    assert Disclosure("g", "", add_remove="(L₀ + L₁)/n").replace_one == "2·(L₀ + L₁)/n"
    with pytest.raises(PrivacyError, match="did you mean Laplace"):
        Disclosure("g", "", "laplase")


def test_a_label_never_declared_is_named():
    released = (CountedRelease(Gaussian(1.0), 1, "gradient"), CountedRelease(Gaussian(1.0), 1, "peek"))
    assert undeclared(released, {"gradient"}).startswith("peek: released, but never declared")
    assert undeclared(released, {"gradient", "peek"}) == ""


# Planned and realised


BUDGET = Budget(1.0, 1e-5, Relation.REPLACE_ONE, "standard")


def stopped(planned, made):
    """A ledger that planned Gaussians of these counts at z = 20, and made those."""
    ledger = Ledger(1)
    if planned:
        ledger.plan(Gaussian(20.0), "gradient", planned)
    ledger.record(Gaussian(20.0), "gradient", count=made)
    return ledger


def test_a_run_that_stops_early_is_guaranteed_what_it_planned():
    found = guarantee(stopped(20, 3), 0, BUDGET, {"gradient"})
    whole, part = (guarantee(stopped(0, made), 0, BUDGET, {"gradient"}) for made in (20, 3))
    assert (found.planned, found.realised) == (whole.planned, part.planned)
    assert whole.planned == whole.realised
    assert found.error == ""
    assert [row["planned"] for row in stopped(20, 3).summary()] == [20]
    assert [row["count"] for row in stopped(20, 3).summary()] == [3]


def test_a_plan_beyond_the_budget_fails_however_early_the_run_stopped():
    found = guarantee(stopped(200, 1), 0, BUDGET, {"gradient"})
    assert found.realised < 1 < found.planned
    assert "more than the 1 asked for" in found.error


def test_more_than_was_planned_fails_within_the_budget():
    assert "gradient: released more often" in guarantee(stopped(3, 4), 0, BUDGET, {"gradient"}).error
    ledger = stopped(3, 3)
    ledger.record(Gaussian(30.0), "gradient")
    assert "at other noise, than was planned" in guarantee(ledger, 0, BUDGET, {"gradient"}).error


def test_a_plan_of_no_release_composes_with_the_others():
    """As the second phase of 2opt-ls has it where the cap ends in the first."""
    ledger = stopped(20, 3)
    ledger.plan(PureDP(0.01), "line search", 2)
    ledger.plan(PureDP(0.02), "line search", 0)
    found = guarantee(ledger, 0, BUDGET, {"gradient", "line search"})
    assert found.error == ""
    assert found.planned > guarantee(stopped(20, 3), 0, BUDGET, {"gradient"}).planned
    ledger.record(PureDP(0.02), "line search")
    assert "line search: released more often" in guarantee(ledger, 0, BUDGET, {"gradient", "line search"}).error


def test_a_plan_of_which_nothing_was_made_released_nothing():
    assert "nothing was released" in guarantee(stopped(3, 0), 0, BUDGET, {"gradient"}).error


@pytest.mark.thorough_for("2opt-b", "dp-tr-b", "opt-b")
@pytest.mark.parametrize(
    "name", ["opt", "2opt", "opt-ls", "2opt-ls", "dp-tr", "dp-gd-2ns", "opt-b", "2opt-b", "dp-tr-b"]
)
def test_a_method_that_may_stop_early_plans_all_of_its_budget(name):
    """What is planned spends what the accounting lets it, wherever the run stops; several replicates differ in that."""
    method, problem = get(name), fitting_problem(get(name))
    settings = method.complete(problem, make_settings(method, {"alpha": 0.5}))
    mode = method.accounting("tight" if "tight" in method.accountings else "paper")
    budget = Budget(4.0, 1 / problem.n, Relation.REPLACE_ONE, mode)
    start = small_problem(n=3, d=problem.d, seed=5).X
    run = run_batch(problem, method, [settings] * 3, start, budget, ["a", "b", "c"])
    assert method.stops_early
    found = [guarantee(run.mechanisms.ledger, i, budget, method.labels) for i in range(3)]
    assert [one.error for one in found] == [""] * 3
    assert all(one.realised <= one.planned <= 4.0 * (1 + 1e-6) for one in found)
    assert len({one.planned for one in found}) == 1
    if accounting.get(mode).name == "tight":
        assert found[0].planned >= 0.98 * 4.0


def test_what_counts_as_public_follows_the_settings():
    method = get("dp-nag")
    assert "top eigenvalue" in method.public(make_settings(method, {}))
    assert method.public(make_settings(method, {"L": 3.0})) == ""
    assert "mean square" in get("dp-cd").public(make_settings(get("dp-cd"), {}))
    assert get("dp-cd").public(make_settings(get("dp-cd"), {"scales": "bound"})) == ""
    assert get("dp-sgd-1").public(make_settings(get("dp-sgd-1"), {})) == ""
    assert get("dp-gd").public(make_settings(get("dp-gd"), {})) == ""


def test_a_method_without_a_guarantee_says_what_it_takes():
    for name in BUILTIN:
        method = get(name)
        assert bool(method.unpaid) != method.private, name
        assert bool(method.discloses) or not method.private, name


def test_unknown_names_are_refused():
    with pytest.raises(UserError):
        get("dp-nothing")


def spends_with_tight():
    """Every private method that `tight` can calibrate; those whose accounting takes seconds are slow."""
    for name in BUILTIN:
        if (
            get(name).private
            and "tight" in get(name).accountings
            and "method" not in get(name).Settings.__struct_fields__
        ):
            slow = [pytest.mark.slow] if name in ("aop", "objpert", "dp-sgd-1", "2opt-b", "dp-cd", "2opt") else []
            yield pytest.param(name, marks=slow)


@pytest.mark.parametrize("name", list(spends_with_tight()))
def test_tight_plans_next_to_all_of_epsilon(name):
    """At least 0.98 of it, by the accountant that did not set the noise."""
    method, problem = get(name), fitting_problem(get(name))
    values = {k: v for k, v in FEW.items() if k in method.Settings.__struct_fields__}
    settings = method.complete(problem, make_settings(method, values))
    delta = {"n^-2": problem.n**-2.0, "n^-1": 1 / problem.n}.get(method.delta, method.delta)
    budget = Budget(1.0, delta, Relation.REPLACE_ONE, method.accounting("tight"))
    start = small_problem(n=2, d=problem.d, seed=3).X[:1]
    ledger = run_batch(problem, method, [settings], start, budget, ["share"]).mechanisms.ledger
    found = guarantee(ledger, 0, budget, method.labels)
    assert found.error == ""
    assert 0.98 <= found.planned <= 1 + 1e-6
