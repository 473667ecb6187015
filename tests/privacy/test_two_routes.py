"""What sets the noise and what checks it share no code, and a mutant of either fails the run."""

import ast
import functools
import sys
from typing import get_args

import pytest

from dpbench.algorithms import aop
from dpbench.privacy import Budget, Relation, accounting, budget, check, verify
from dpbench.privacy.accounting import loss_distribution, renyi
from dpbench.privacy.accounting.pure import likely_multiplier
from dpbench.privacy.ledger import (
    ZCDP,
    Allocated,
    BestOfRuns,
    BoundedRange,
    ConvexPerturbation,
    CountedRelease,
    DrawAfterTest,
    Gaussian,
    Laplace,
    LastIterate,
    LogisticPerturbation,
    ObjectivePerturbation,
    OneRun,
    Poisson,
    PoissonReplaced,
    PureDP,
    Radial,
    RadialPerturbation,
    Sketch,
    WithoutReplacement,
    scaled,
)
from tests.sources import MODULES, walked

PRIVACY = {name for name in MODULES if name.startswith("dpbench.privacy")}


@functools.cache
def imported(name):
    """The modules of the privacy room that the file imports or names, at its top or within a function."""
    found = set()
    for node in walked(name):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= parts if parts <= PRIVACY else parts | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant):
            found.add(node.value)
    return found & PRIVACY - {name}


def reached(start):
    seen, todo = set(), [start]
    while todo:
        new = imported(todo.pop()) - seen
        seen |= new
        todo += new
    return seen


def test_no_calibrator_reaches_verify_and_verify_reaches_no_calibrator():
    assert reached("dpbench.privacy.verify") == {f"dpbench.privacy.{m}" for m in ("half_planes", "ledger")}
    assert sum(name.startswith("dpbench.privacy.accounting") for name in PRIVACY) > 8
    # What reads what was released, when it is, and sets no noise.
    reading = {f"dpbench.privacy.{name}" for name in ("check", "profile", "data_budget", "statement")}
    for name in PRIVACY - reading:
        assert not reading & reached(name), name
        assert "dpbench.privacy.verify" not in reached(name), name
        assert name == "dpbench.privacy.verify" or "dpbench.privacy.half_planes" not in reached(name), name
    second = reading | {"dpbench.privacy.verify", "dpbench.privacy.half_planes"}
    for name in MODULES:
        if name.startswith(("dpbench.algorithms", "dpbench.problems")):  # methods set noise too
            assert not second & imported(name), name
    assert {"dpbench.privacy.verify", "dpbench.privacy.accounting.tight"} <= reached("dpbench.privacy.check")


# A plan per accounting and kind of release, as algorithms make them: (accounting, relation, δ, plan at z = 1).
ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
FIXED = ((WithoutReplacement(900, 20, Gaussian(1.0)), 50),)
COINS = ((Poisson(0.05, Gaussian(1.0)), 50),)
CALIBRATED = {
    **{mode: (mode, ADD_REMOVE, 1e-6, ((Gaussian(1.0), 20),)) for mode in ("text", "bs16", "cks20", "standard", "rdp")},
    "text, with a line search": ("text", REPLACE_ONE, 1e-6, ((Gaussian(1.0), 20), (PureDP(1.0), 10))),
    "bs16, Poisson samples": ("bs16", ADD_REMOVE, 1e-6, COINS),
    "standard, fixed samples": ("standard", REPLACE_ONE, 1e-6, FIXED),
    "rdp, fixed samples": ("rdp", REPLACE_ONE, 1e-6, FIXED),
    "poisson": ("poisson", ADD_REMOVE, 1e-6, COINS),
    "tight, Gaussian": ("tight", ADD_REMOVE, 1e-6, ((Gaussian(1.0), 20),)),
    "tight, Poisson": ("tight", ADD_REMOVE, 1e-6, COINS),
    "tight, allocated rows": ("tight", ADD_REMOVE, 1e-6, ((Allocated(20, Gaussian(1.0)), 3),)),
    "tight, sketches and sums": ("tight", ADD_REMOVE, 1e-6, ((Sketch(450, 0.01, 1e-8), 1), (Gaussian(4.0), 3))),
    "tight, Poisson, replaced": ("tight", REPLACE_ONE, 1e-6, ((PoissonReplaced(0.05, Gaussian(1.0)), 50),)),
    "tight, fixed samples": ("tight", REPLACE_ONE, 1e-6, FIXED),
    "tight, Laplace and selections": ("tight", REPLACE_ONE, 1e-6, ((Laplace(1.0), 20), (PureDP(1.0), 20))),
    "tight, Gaussian and selections": ("tight", REPLACE_ONE, 1e-6, ((Gaussian(1.0), 20), (PureDP(0.5), 9))),
    "tight, last iterate": ("tight", REPLACE_ONE, 1e-6, ((LastIterate(1.0, 40, 0.95), 1),)),
    "standard, last iterate": ("standard", REPLACE_ONE, 1e-6, ((LastIterate(1.0, 40, 0.95), 1),)),
    "tight, logistic perturbation": ("tight", REPLACE_ONE, 1e-6, ((LogisticPerturbation(1.0, 0.1), 1),)),
    "tight, any convex loss": ("tight", REPLACE_ONE, 1e-6, ((ConvexPerturbation(1.0, 0.1), 1),)),
    "tight, one row": ("tight", ADD_REMOVE, 1e-6, ((LogisticPerturbation(1.0, 0.1, ADD_REMOVE), 1),)),
    "tight, one row, any loss": ("tight", ADD_REMOVE, 1e-6, ((ConvexPerturbation(1.0, 0.1, ADD_REMOVE), 1),)),
    "advanced": ("advanced", REPLACE_ONE, 1e-6, ((Laplace(1.0), 20), (PureDP(1.0), 20))),
    "pure, radial": (
        "pure",
        REPLACE_ONE,
        0.0,
        ((Radial(1.0), 3), (RadialPerturbation(1.0, 1e-3, REPLACE_ONE), 1)),
    ),
    "tight, bounded range": ("tight", REPLACE_ONE, 1e-6, ((BoundedRange(1.0), 20), (Gaussian(2.0), 3))),
    "tight, a draw behind a test": ("tight", REPLACE_ONE, 1e-6, ((DrawAfterTest(1.0, 1.5, 1e-6, 1e-7), 1),)),
    "tight, a draw and a Gaussian": (
        "tight",
        REPLACE_ONE,
        1e-6,
        ((DrawAfterTest(1.0, 1.5, 1e-7, 1e-7), 1), (Gaussian(3.0), 4)),
    ),
    "pure": ("pure", REPLACE_ONE, 0.0, ((WithoutReplacement(900, 20, Laplace(1.0)), 50),)),
    "tight, zCDP": ("tight", REPLACE_ONE, 1e-6, ((ZCDP(0.1), 5),)),
    "tight, best of runs": ("tight", REPLACE_ONE, 1e-6, ((BestOfRuns(((Gaussian(1.0), 2),), "geometric", 6.0), 1),)),
    "pure, best of runs": ("pure", REPLACE_ONE, 0.0, ((BestOfRuns(((Laplace(1.0), 2),), "geometric", 6.0), 1),)),
    "as-released-code": ("as-released-code", ADD_REMOVE, 1e-6, ((Gaussian(1.0), 20),)),  # sound from ε = 0.15 on
    "released-july": ("released-july", ADD_REMOVE, 1e-6, ((Gaussian(1.0), 20),)),
    "released-february": ("released-february", ADD_REMOVE, 1e-6, ((Gaussian(1.0), 20),)),  # from ε = 0.35 on
    "basic": ("basic", REPLACE_ONE, 1e-6, ()),  # calibrated by aop itself
}


def test_every_accounting_and_every_kind_of_release_has_a_plan():
    ours = {name for name in accounting.names() if type(accounting.get(name)).__module__ in MODULES}
    assert {mode for mode, *_ in CALIBRATED.values()} == ours
    kinds = {type(release) for *_, plan in CALIBRATED.values() for release, _ in plan}
    assert kinds | {ObjectivePerturbation} == {*get_args(OneRun), BestOfRuns}


def test_an_accounting_is_one_file(tmp_path, monkeypatch):
    """The diff of docs/guides/experiment.md, and nothing besides."""
    (tmp_path / "quarter.py").write_text(
        "from dpbench.privacy.accounting.zcdp import ZeroConcentrated\n\n\n"
        "class Quarter(ZeroConcentrated):\n    name = 'quarter'\n\n"
        "    def to_rho(self, epsilon, delta):\n        return epsilon / 4\n\n"
        "    def to_epsilon(self, rho, delta):\n        return 4 * rho\n"
    )
    monkeypatch.setattr(accounting, "__path__", [*accounting.__path__, str(tmp_path)])
    found = accounting._of_this_folder()
    monkeypatch.delitem(sys.modules, "dpbench.privacy.accounting.quarter")
    assert found.keys() - accounting.names() == {"quarter"}
    assert found["quarter"].rho(1.0, 1e-6) == 0.25


def released(case):
    """What a run calibrated by the accounting releases, and its budget."""
    name, relation, delta, plan = CALIBRATED[case]
    asked = Budget(1.0, delta, relation, name)
    if name == "basic":
        return objective_perturbation(1.0, delta), asked
    z = asked.noise_scale(plan)
    return tuple(CountedRelease(scaled(release, z), count, f"{i}") for i, (release, count) in enumerate(plan)), asked


def objective_perturbation(epsilon, delta):
    split = aop.split_budget(epsilon, delta)
    b = ObjectivePerturbation(likely_multiplier(split.noise, split.delta), split.jacobian, split.delta)
    output = Gaussian(likely_multiplier(split.output, split.output_delta))
    return CountedRelease(b, 1, "objective"), CountedRelease(output, 1, "output")


@pytest.fixture(autouse=True)
def fresh():
    """Empty caches: a mutant must not be answered from them, nor leave anything behind."""
    caches = (budget._noise_scale, check.check, verify._spent, renyi.noise_scale, loss_distribution._epsilon)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def third(function):
    def mutant(*args):
        found = function(*args)
        return None if found is None else found / 3

    return mutant


@pytest.mark.parametrize("case", CALIBRATED)
def test_both_routes_agree_on_every_calibration(case):
    composition, asked = released(case)
    found = check.check(composition, asked)
    assert not found.error
    assert found.accounted == pytest.approx(1.0, rel=1e-3)
    assert 0.5 < found.epsilon <= 1 + 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("case", CALIBRATED)
def test_a_calibrator_that_thinks_it_spends_a_third_fails_the_run(case, monkeypatch):
    kind = type(accounting.get(CALIBRATED[case][0]))
    scale, rho = kind.noise_scale, kind.rho
    monkeypatch.setattr(kind, "noise_scale", lambda self, plan, after, e, delta: scale(self, plan, after, 3 * e, delta))
    monkeypatch.setattr(kind, "rho", lambda self, e, delta: rho(self, 3 * e, delta))
    split = aop.split_budget
    monkeypatch.setattr(aop, "split_budget", lambda e, delta: split(3 * e, delta))
    composition, asked = released(case)
    assert "more than the 1 asked for" in check.check(composition, asked).error


@pytest.mark.parametrize("case", CALIBRATED)
def test_a_second_route_that_finds_a_third_fails_the_run(case, monkeypatch):
    composition, asked = released(case)
    spent = verify.spent

    def mutant(*args):
        found = spent(*args)
        return verify.Spent(found.epsilon / 3, found.checked_by)

    monkeypatch.setattr(check, "spent", mutant)
    assert "two computations of ε disagree" in check.check(composition, asked).error


@pytest.mark.parametrize("case", CALIBRATED)
def test_an_accounting_that_claims_a_third_of_what_was_spent_fails_the_run(case, monkeypatch):
    composition, asked = released(case)
    kind = type(accounting.get(CALIBRATED[case][0]))
    monkeypatch.setattr(kind, "epsilon_of", third(kind.epsilon_of))
    assert "two computations of ε disagree" in check.check(composition, asked).error


@pytest.mark.parametrize("case", ["tight, Poisson", "tight, Poisson, replaced", "tight, Laplace and selections"])
def test_the_arithmetic_of_either_route_alone_fails_the_run(case, monkeypatch):
    """The mutant that a calibration by the check's own code would hide: the loss distribution's ε × 1/3."""
    right, asked = released(case)
    with monkeypatch.context() as patch:
        patch.setattr(loss_distribution, "epsilon_of", third(loss_distribution.epsilon_of))
        budget._noise_scale.cache_clear()
        wrong, _ = released(case)
        assert check.check(right, asked).error
    check.check.cache_clear()
    assert "more than the 1 asked for" in check.check(wrong, asked).error
    theirs = verify._pld
    monkeypatch.setattr(verify, "_pld", lambda *a: verify.Spent(theirs(*a).epsilon / 3, "mutant"))
    verify._spent.cache_clear()
    assert check.check(right, asked).error


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return W", "nothing was released"),
        ("return mechanisms.gaussian(W, sensitivity=0.0, rho=1e-9, label='g')", "g: released without noise"),
        ("return mechanisms.gaussian(W, sensitivity=1.0, rho=1e-9, label='h')", "h: released, but never declared"),
        ("return mechanisms.gaussian(W, sensitivity=1.0, rho=1e-9, label='g')", ""),
    ],
)
def test_a_private_run_releases_something_declared_and_nothing_without_noise(body, words, tmp_path):
    from dpbench.run.execute import execute
    from dpbench.run.job import make_job

    path = tmp_path / "mine.py"
    path.write_text(
        "from dpbench.algorithms.base import Algorithm, Disclosure\n\n\n"
        "class Mine(Algorithm):\n"
        "    name = 'mine'\n"
        "    discloses = (Disclosure('g', 'the iterate'),)\n\n"
        f"    def run(self, problem, W, mechanisms, settings, trace):\n        {body}\n"
    )
    ((row,), _) = execute([make_job(algorithm=f"{path}:Mine", problem="synthetic", epsilon=1.0, seed=0)])
    assert words in row.error
    assert (row.status, row.private) == (("defect", False) if words else ("done", True))
