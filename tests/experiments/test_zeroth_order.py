"""zeroth_order: ρ and ε, fitted exponents, that artefacts and claims say what the rows say and can say no."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbench import experiments
from dpbench.experiments.zeroth_order import claims, reached, study
from dpbench.privacy.tree import node
from dpbench.run.results import Store
from dpbench.run.runner import run
from dpbench.study.context import Context
from dpbench.study.plan import plan
from dpbench.study.style import figure_style
from dpbench.study.verdict import HELD, NOT_ENOUGH, NOT_HELD, NOT_TESTABLE, OPEN


@pytest.fixture(scope="module")
def experiment():
    return experiments.get("zeroth_order")


def claim(experiment, name):
    return next(one for one in experiment.claims if one.name == name).judge


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_the_grids_epsilons_are_those_of_round_rhos(experiment, profile):
    blocks = [b for b in experiment.blocks(profile) if "o2nc-tree" in b.algorithms]
    rhos = {study.rho_of(e) for block in blocks for e in block.epsilon}
    allowed = np.array([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100])
    assert all(np.abs(rho / allowed - 1).min() < 1e-4 for rho in rhos)
    assert len(rhos) >= 6


def test_rho_and_epsilon():
    assert study.rho_of(0.5 + math.sqrt(2 * math.log(1e6))) == pytest.approx(1.0)


def test_a_full_plan_has_every_artefact_and_no_failing_job(experiment):
    for artefact in experiment.artefacts:
        assert plan(experiment.blocks("full", artefact.name), None).jobs


def rows_of(M, values):
    seeds = np.tile(np.arange(len(values[0])), len(M))
    return pd.DataFrame({"set.M": np.repeat(M, len(values[0])), "measured": np.concatenate(values), "seed": seeds})


def test_a_planted_exponent_is_found_within_its_interval():
    rng = np.random.default_rng(0)
    M = np.array([1000, 3162, 10_000, 31_623, 100_000])
    rows = rows_of(M, [m**-0.4 * 5 * rng.gamma(2, 0.5, 30) for m in M])
    fitted = study.slope(rows)
    assert fitted.lower < -0.4 < fitted.upper
    assert (fitted.low, fitted.high) == (10_000, 100_000)
    assert fitted.upper - fitted.lower < 0.6
    assert study.slope(rows[rows["set.M"] == 1000]) is None


def test_exponents_of_the_theorem():
    assert study.exponent("o2nc", 100, 100) == -1 / 3
    assert study.exponent("o2nc-tree", 100, 100) == -1 / 3
    assert study.exponent("o2nc-tree", 120, 100) == -1 / 2
    assert study.exponent("o2nc-naive", 120, 100) == -1 / 3


def test_without_rows_artefacts_show_gaps_and_claims_stay_open(experiment, tmp_path):
    context = Context(experiment, "quick", Store(tmp_path, "quick", "zeroth_order"))
    for artefact in experiment.artefacts:
        with figure_style():
            output = artefact.render(context)
            output.save(tmp_path / artefact.name, artefact.title)
        assert any("dpbench run --experiment zeroth_order/" in gap for gap in output.gaps)
        assert "Not in the paper" in output.caption
    assert {verdict.word for one in experiment.claims for verdict in one.judge(context)} == {NOT_ENOUGH}


def test_a_small_run_fills_every_artefact(experiment, tmp_path):
    """Jobs of the quick grid, cut down: M, draws and seeds are the smallest that still draw something."""
    store = Store(tmp_path, "quick", "zeroth_order")
    wanted = []
    for job in plan(experiment.blocks("quick"), None).jobs:
        values = json.loads(job.settings)
        cheap = values.get("M", 0) <= 1000 and values.get("b", 1) <= 4 and values.get("t", 0) <= 63
        if job.problem == "phase-5" and job.seed < (1 if job.algorithm == "probe-estimator" else 2) and cheap:
            wanted.append(job)
    summary = run(wanted, store)
    assert set(summary.statuses) == {"done"}
    context = Context(experiment, "quick", store)
    runs = context.runs
    private = runs[runs["private"]]
    assert (private["epsilon_planned"] <= private["epsilon"]).all()
    assert (private["relation"] == "replace-one").all()
    assert runs.loc[runs["algorithm"] == "o2nc-tree", "measured"].notna().all()
    for artefact in experiment.artefacts:
        with figure_style():
            output = artefact.render(context)
            output.save(tmp_path / artefact.name, artefact.title)
    for name in ("grad_variance", "diff_variance", "unbiased", "tree_noise", "guarantee"):
        assert claim(experiment, name)(context)[0].held, name


def verdict(monkeypatch, check, rows):
    return judged(monkeypatch, check, rows)[0].held


def judged(monkeypatch, check, rows):
    context = SimpleNamespace(command=lambda artefact: "")
    for module in (claims, reached):
        monkeypatch.setattr(module, "needed", lambda context, artefact: rows)
    return check(context)


def tree_rows(factor=1.0, power=2.0):
    lines = []
    for T in (64, 256, 1024):
        std2 = 25.0 * T**-power
        for mechanism, noise in (("tree", len(node(T - 1)) * std2 * factor), ("naive", 100.0)):
            bound = {"tree": (math.floor(math.log2(T - 1)) + 1) * std2, "naive": 100.0}[mechanism]
            lines.append((mechanism, T, T - 1, noise, 0.02 * noise, bound))
    names = ["set.mechanism", "set.T", "set.t", "measured", "measured_error", "bound"]
    return pd.DataFrame(lines, columns=names)


def test_claims_on_noise_can_fail(experiment, monkeypatch):
    noise, below = claim(experiment, "tree_noise"), claim(experiment, "tree_below_naive")
    assert verdict(monkeypatch, noise, tree_rows())
    assert verdict(monkeypatch, noise, tree_rows(factor=0.5)) is False
    assert verdict(monkeypatch, noise, tree_rows(factor=1.3)) is False
    assert verdict(monkeypatch, below, tree_rows())
    assert verdict(monkeypatch, below, tree_rows(power=1.0)) is False


def test_the_claim_on_free_privacy_can_fail(experiment, monkeypatch):
    def rows(tree):
        rng = np.random.default_rng(1)
        levels = {("o2nc", np.inf): 0.1} | {("o2nc-tree", rho): value for rho, value in tree.items()}
        data = [(a, r, v * (1 + 0.05 * rng.standard_normal())) for (a, r), v in levels.items() for _ in range(20)]
        return pd.DataFrame(data, columns=["algorithm", "rho", "measured"])

    check = claim(experiment, "privacy_for_free")
    assert verdict(monkeypatch, check, rows({0.1: 0.3, 1.0: 0.1, 10.0: 0.1}))
    assert verdict(monkeypatch, check, rows({0.1: 0.3, 1.0: 0.2, 10.0: 0.1})) is False  # free from 10 > 10·√5·0.1
    assert verdict(monkeypatch, check, rows({0.1: 0.3, 1.0: 0.2, 10.0: 0.2})) is False
    assert verdict(monkeypatch, check, rows({0.1: 0.1, 1.0: 0.1, 10.0: 0.1})) is None


def rate_rows(power, gap=1e-3):
    """Stationarity 50·M^power at δ = 0.1, T = 100: Theorem 4.9 allows 2(gap + 0.2)·100/(0.1·M) and more."""
    M = np.array([10_000, 31_623, 100_000])
    rng = np.random.default_rng(2)
    rows = rows_of(M, [m**power * 50 * (1 + 0.05 * rng.standard_normal(20)) for m in M])
    return rows.assign(algorithm="o2nc", rho=np.inf, problem="phase-5", T=100.0,
                       **{"set.gap": gap, "set.radius": 0.1})  # fmt: skip


@pytest.mark.parametrize(("power", "word"), [(-0.6, HELD), (-0.1, NOT_HELD), (0.3, NOT_TESTABLE), (0.0, NOT_TESTABLE)])
def test_the_claim_on_the_rate_can_fail(experiment, monkeypatch, power, word):
    """Runs that end where they start have no rate: that is not testable, and neither held nor not."""
    (found,) = judged(monkeypatch, claim(experiment, "rate"), rate_rows(power))
    assert found.word == word


def test_a_wide_interval_of_the_rate_is_open(experiment, monkeypatch):
    rows = rate_rows(-0.35)
    rng = np.random.default_rng(3)
    rows["measured"] *= rng.gamma(3.0, 1 / 3, len(rows))
    (found,) = judged(monkeypatch, claim(experiment, "rate"), rows)
    assert found.word == OPEN
    assert "either" in found.numbers


@pytest.mark.parametrize(
    ("M", "measured", "word"), [(1e5, 0.1, NOT_TESTABLE), (1e12, 0.001, HELD), (1e12, 0.1, NOT_HELD)]
)
def test_the_bound_is_not_testable_where_it_is_above_the_start(experiment, monkeypatch, M, measured, word):
    T = round((math.sqrt(5) * 0.1 * M / 0.55) ** (2 / 3))
    rows = rows_of(np.array([100.0, M]), [np.full(5, 0.146), np.full(5, measured) * (1 + 1e-3 * np.arange(5))])
    rows = rows.assign(
        algorithm="o2nc", rho=np.inf, problem="phase-5", T=float(T), **{"set.gap": 0.45, "set.radius": 0.1}
    )
    (found,) = judged(monkeypatch, claim(experiment, "bound"), rows)
    assert found.word == word


def test_the_bound_is_corollary_4_7_with_the_constants_of_its_lemmas():
    rows = pd.DataFrame({
        "problem": ["phase-5"] * 2, "T": [64.0, 64.0], "rho": [np.inf, 2.0], "set.M": [12800.0] * 2,
        "set.gap": [0.3] * 2, "set.radius": [0.1] * 2,
    })  # fmt: skip
    first = (0.3 + 0.2) / (0.1 / 64 * 6400)  # (F + 2Lδ)/(DKT)
    np.testing.assert_allclose(study.first_term(rows), first)
    variance = 80 * 5 / 64
    noise = 7 * 5 * 7 * (4 * 5 / (64 * 2.0)) ** 2  # h nodes of variance d·h·s²/ρ², h = 7
    for n, bound in zip((0.0, noise), study.whole_bound(rows), strict=True):
        assert bound == pytest.approx(first + math.sqrt(3 * (variance + 1 + n) / 64) + 2 * math.sqrt(variance + n))


def levels(found):
    """Rows of the figure privacy_for_free: {(algorithm, ρ): level}, 20 seeds, both measures alike."""
    rng = np.random.default_rng(4)
    data = [(a, r, v * (1 + 0.02 * rng.standard_normal())) for (a, r), v in found.items() for _ in range(20)]
    frame = pd.DataFrame(data, columns=["algorithm", "rho", "measured"])
    return frame.assign(objective=frame["measured"], problem="phase-5", **{"set.M": 1e5})


def test_the_claim_on_the_crossover_can_fail(experiment, monkeypatch):
    def words(tree, naive):
        rows = levels({("o2nc-tree", r): v for r, v in tree.items()} | {("o2nc-naive", r): v for r, v in naive.items()})
        return {one.word for one in judged(monkeypatch, claim(experiment, "crossover"), rows)}

    assert words({1.0: 0.1, 10.0: 0.1}, {1.0: 0.2, 10.0: 0.05}) == {HELD}
    assert words({1.0: 0.2, 10.0: 0.05}, {1.0: 0.1, 10.0: 0.1}) == {NOT_HELD}
    assert words({1.0: 0.1, 10.0: 0.1}, {1.0: 0.2, 10.0: 0.2}) == {OPEN}


def test_the_claims_on_the_tree_and_on_first_order_can_fail(experiment, monkeypatch):
    further, first = claim(experiment, "tree_reaches_further"), claim(experiment, "first_order")
    for tree, other, held in ((0.1, 0.2, True), (0.2, 0.1, False), (0.1, 0.1, None)):
        assert verdict(monkeypatch, further, levels({("o2nc-tree", 1.0): tree, ("o2nc-naive", 1.0): other})) is held
        gradient = levels({("o2nc-naive-gradient", 1.0): tree, ("o2nc-tree", 1.0): other})
        assert verdict(monkeypatch, first, gradient) is held


@pytest.mark.parametrize(("power", "held"), [(0.1, True), (0.8, False)])
def test_the_claim_on_the_dimension_can_fail(experiment, monkeypatch, power, held):
    rng = np.random.default_rng(5)
    names = {5: "phase-5", 20: "phase-5-in-20", 100: "phase-5-in-100"}
    data = [(names[d], 0.01 * d**power * (1 + 0.05 * rng.standard_normal()), T) for d in names for T in [100.0] * 20]
    rows = pd.DataFrame(data, columns=["problem", "measured", "T"]).assign(
        algorithm="o2nc", rho=np.inf, **{"set.M": 1e5}
    )
    assert verdict(monkeypatch, claim(experiment, "dimension"), rows) is held


@pytest.mark.parametrize(("power", "held"), [(0.0, True), (1.0, False)])
def test_the_claim_on_the_variance_in_d_can_fail(experiment, monkeypatch, power, held):
    cells = [(d, b, seed) for d in (5, 20, 100) for b in (1.0, 4.0) for seed in (0, 1)]
    rows = pd.DataFrame({
        "problem": [f"phase-{d}" for d, _, _ in cells], "set.estimator": "grad", "set.quantity": "variance",
        "set.b": [b for _, b, _ in cells], "set.distance": 0.1,
        "measured": [d**power / b * (1 + 0.01 * seed) for d, b, seed in cells],
    })  # fmt: skip
    assert verdict(monkeypatch, claim(experiment, "grad_variance_in_d"), rows) is held
