"""The three tracks: rules that see no data, an oracle scored on other seeds, a standing with intervals."""

import numpy as np
import pandas as pd
import pytest

from dpbench import algorithms, experiments
from dpbench.algorithms.rules import RULES, gradient_steps, public_rho, public_settings
from dpbench.errors import UserError
from dpbench.experiments.tracks import tables
from dpbench.experiments.tracks.ranking import KINDS, kind, losses, standing, tuned
from dpbench.leaderboard import entrants
from dpbench.leaderboard import tracks as study
from dpbench.problems import catalogue
from dpbench.run.results import Store
from dpbench.run.runner import run
from dpbench.study.context import Context
from dpbench.study.grid import BEST, GridEntry
from dpbench.study.plan import plan

TRACKS = experiments.get("tracks")


@pytest.mark.parametrize("name", entrants.entrants())
def test_a_rule_gives_settings_that_the_method_takes(name):
    method, fixed = algorithms.resolve(name)
    for n, d, epsilon in ((442, 10, 0.1), (30_956, 124, 1.0), (800, 88_119, 10.0), (495_141, 54, 10.0)):
        settings = public_settings(name, n, d, epsilon)
        assert not set(settings) & set(fixed)
        algorithms.base.make_settings(method, fixed | settings)
        assert settings == public_settings(name, n, d, epsilon)


def test_rules_are_of_methods_that_exist_and_follow_their_derivation():
    assert {algorithms.get(name).name for name in RULES} == set(RULES)
    rho = public_rho(10_000, 1.0)
    assert rho + 2 * np.sqrt(rho * np.log(1e8)) == pytest.approx(1.0)
    T = gradient_steps(10_000, 1.0)
    assert pytest.approx(T, abs=0.5) == (rho * 1e8) ** (1 / 3)  # least of 64/(8T) + 4T²/(ρn²) where 8/T² = 8T/(ρn²)
    assert gradient_steps(100, 0.01) == 3
    assert gradient_steps(10**6, 10.0) == 300
    with pytest.raises(UserError, match="unknown algorithm"):
        public_settings("dp-gf", 10, 1, 1.0)


def test_a_method_of_ones_own_may_have_its_own_rule(monkeypatch):
    monkeypatch.setattr(type(algorithms.get("aop")), "public_settings", lambda self, n, d, epsilon: {"T": n + d})
    assert public_settings("aop", 10, 2, 1.0) == {"T": 12}


def test_problems_are_many_and_of_all_kinds_and_sizes():
    names = TRACKS.problems("full")
    sizes = [study.size(name) for name in names]
    assert len(names) >= 20
    assert {kind(name) for name in names} == set(KINDS)
    assert min(n for n, _ in sizes) < 500 < 450_000 < max(n for n, _ in sizes)
    assert (min(d for _, d in sizes), max(d for _, d in sizes)) == (8, 88_119)
    assert all(catalogue.recipe_of(name).row_bound in (1.0, "unit") for name in names)


def test_knobs_and_exclusions_name_what_exists():
    assert set(study.excluded()) <= set(algorithms.names())
    for name in entrants.entrants():
        tuned_setting = study.knob(name)
        assert not tuned_setting or tuned_setting in algorithms.resolve(name)[0].Settings.__struct_fields__


def block(track, **changes):
    given = {"problems": ["diabetes-ridge"], "algorithms": ["every"], "epsilon": [1.0], "seeds": 3}
    return GridEntry(settings={study.TRACK: track}, **given | changes)


def test_a_track_gives_each_method_its_settings():
    default = {b.algorithms[0]: b for b in study.expand(block("default"))}
    assert set(default) == {"adassp", "boosted-ssp", "dp-cd", "dp-gcd", "dp-gd-average", "dp-sgd-1"}
    assert default["dp-cd"].settings == public_settings("dp-cd", 442, 10, 1.0)
    assert {b.relation for b in default.values()} == {"replace-one"}
    tune = {b.algorithms[0]: b.settings for b in study.expand(block(study.TUNE))}
    assert tune["dp-cd"]["clip"] == [0.1, 0.3, 0.9]
    assert "adassp" not in tune  # nothing to tune
    oracle = {b.algorithms[0]: b.settings for b in study.expand(block("oracle"))}
    assert (oracle["dp-cd"]["clip"], oracle["adassp"]) == (BEST, {})
    assert not study.expand(block("default", algorithms=["dp-gd"]))  # squared loss is not for it


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The default and the oracle's track of two methods on one problem."""
    store = Store(tmp_path_factory.mktemp("tracks"), "quick", "tracks")
    for artefact in ("default", "oracle"):
        blocks = [b for b in TRACKS.blocks("quick", artefact) if b.problems == ["diabetes-ridge"]]
        for waits in (False, True):
            assert run(plan([b for b in blocks if b.waits == waits], store).runnable, store).failed == 0
    return Context(TRACKS, "quick", store)


def test_the_oracle_is_scored_on_other_seeds_at_what_the_plan_took(context):
    rows = context.rows("oracle")
    scored = tuned(rows)
    assert set(scored["seed"]) == set(range(study.TUNED_ON, 15))
    assert set(scored["algorithm"]) == {"adassp", "dp-cd"}
    assert scored.groupby("algorithm")["settings"].nunique().eq(1).all()
    tried = losses(rows).query("algorithm == 'dp-cd' and seed < 10").groupby("settings")["loss"].mean()
    assert len(tried) == 3
    assert set(scored.query("algorithm == 'dp-cd'")["settings"]) == {tried.idxmin()}


@pytest.mark.parametrize("artefact", ["answers", "default", "oracle", "submitted", "problems"])
def test_artefacts_render(context, artefact, tmp_path):
    one = next(a for a in TRACKS.artefacts if a.name == artefact)
    output = one.render(context)
    output.save(tmp_path / artefact, one.title)
    assert output.frame.empty == (artefact == "submitted")
    empty = one.render(Context(TRACKS, "quick", Store(tmp_path, "quick", "tracks")))
    assert empty.gaps or artefact in ("submitted", "problems")


def test_who_is_on_fewer_than_half_of_the_problems_has_no_place(context, monkeypatch):
    found = rows(a={"p": [1.0], "q": [2.0], "r": [1.0]}, b={"p": [1.1], "q": [2.1], "r": [1.1]}, c={"p": [0.5]})
    monkeypatch.setattr(tables, "track_rows", lambda context, track: found)
    shown = tables.table(context, "oracle").frame
    assert shown[["#", "method"]].to_numpy().tolist() == [["1", "a"], ["2", "b"], ["–", "c"]]


def rows(**methods):
    """method → {problem: losses by seed}."""
    listed = [
        {"problem": p, "epsilon": 1.0, "algorithm": m, "settings": "{}", "seed": seed, "timed": 0,
         "status": "done" if np.isfinite(v) else "diverged", "excess": v}
        for m, found in methods.items() for p, values in found.items() for seed, v in enumerate(values)
    ]  # fmt: skip
    return losses(pd.DataFrame(listed))


def test_standing_is_the_geometric_mean_of_what_each_is_behind():
    spread = np.array([0.98, 1.0, 1.02, 1.0])
    table = rows(
        a={"p": 1 * spread, "q": 4 * spread, "r": 1 * spread},
        b={"p": 2 * spread, "q": 2 * spread, "r": 2 * spread},
        c={"p": 50 * spread, "q": [np.inf, 1, 1, 1], "r": 60 * spread},
        d={"q": 0.5 * spread},
    )
    found = standing(table).set_index("algorithm")
    assert list(found.index) == ["a", "b", "c", "d"]  # d is on one problem of three
    assert found.loc["a", "times"] == pytest.approx(8 ** (1 / 3), rel=1e-6)  # 1, 4/0.5, 1
    assert found.loc["b", "times"] == pytest.approx((2 * 4 * 2) ** (1 / 3), rel=1e-6)
    assert found.loc["c", "times"] == pytest.approx((50 * 1000 * 60) ** (1 / 3), rel=1e-6)  # diverged: 1000 times
    assert list(found["leads"]) == [True, True, False, False]  # on q, b is better than a
    assert (found["low"] <= found["times"]).all()
    assert (found["times"] <= found["high"]).all()
    assert found.loc["a", "share"] == pytest.approx((1 + 1 / 3 + 1) / 3)


def test_who_is_worse_on_every_problem_is_told_apart():
    values = np.array([0.9, 1.0, 1.1, 1.0, 0.95, 1.05])
    problems = "pqrstu"
    table = rows(a=dict.fromkeys(problems, values), b=dict.fromkeys(problems, 1.5 * values))
    found = standing(table).set_index("algorithm")
    assert list(found["leads"]) == [True, False]
    assert found.loc["b", "low"] > 1
    same = standing(rows(a=dict.fromkeys(problems, values), b=dict.fromkeys(problems, values[::-1] * 1.01)))
    assert same["leads"].all()
