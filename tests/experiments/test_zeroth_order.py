"""zeroth_order: ρ and ε, fitted exponents, that artefacts and claims say what the rows say and can say no."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from dpbench import experiments
from dpbench.experiments.base import plan
from dpbench.experiments.zeroth_order import claims, study
from dpbench.privacy.tree import node
from dpbench.report import Context
from dpbench.report.style import figure_style
from dpbench.results import Store
from dpbench.runner import run


@pytest.fixture(scope="module")
def experiment():
    return experiments.get("zeroth_order")


def claim(experiment, name):
    return next(one for one in experiment.claims if one.name == name).check


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
    return pd.DataFrame({"set.M": np.repeat(M, len(values[0])), "measured": np.concatenate(values)})


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
    assert {one.check(context).held for one in experiment.claims} == {None}


def test_a_small_run_fills_every_artefact(experiment, tmp_path):
    """Jobs of the quick grid, cut down: M, draws and seeds are the smallest that still draw something."""
    store = Store(tmp_path, "quick", "zeroth_order")
    wanted = []
    for job in plan(experiment.blocks("quick"), None).jobs:
        values = json.loads(job.settings)
        cheap = values.get("M", 0) <= 1000 and values.get("b", 1) == 1 and values.get("t", 0) <= 63
        if job.problem == "phase-5" and job.seed < 2 and cheap:
            wanted.append(job)
    summary = run(wanted, store)
    assert set(summary.statuses) == {"done"}
    context = Context(experiment, "quick", store)
    runs = context.runs
    private = runs[runs["private"]]
    assert (private["epsilon_spent"] <= private["epsilon"]).all()
    assert (private["relation"] == "replace-one").all()
    assert runs.loc[runs["algorithm"] == "o2nc-tree", "measured"].notna().all()
    for artefact in experiment.artefacts:
        with figure_style():
            output = artefact.render(context)
            output.save(tmp_path / artefact.name, artefact.title)
    for name in ("grad_variance", "diff_variance", "unbiased", "tree_noise", "guarantee"):
        assert claim(experiment, name)(context).held, name


def verdict(monkeypatch, check, rows):
    monkeypatch.setattr(claims, "studied", lambda context, artefact: rows)
    return check(None).held


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


@pytest.mark.parametrize(("power", "held"), [(-0.6, True), (-0.1, False), (0.3, False)])
def test_the_claim_on_the_rate_can_fail(experiment, monkeypatch, power, held):
    M = np.array([10_000, 31_623, 100_000])
    rng = np.random.default_rng(2)
    rows = rows_of(M, [m**power * 50 * (1 + 0.05 * rng.standard_normal(20)) for m in M])
    rows = rows.assign(algorithm="o2nc", rho=np.inf, problem="phase-5", T=100.0)
    assert verdict(monkeypatch, claim(experiment, "rate"), rows) is held
