import dataclasses

import numpy as np
import pandas as pd
import pytest

from dpbench import algorithms, experiments
from dpbench.experiments.leaderboard import guide, summary
from dpbench.experiments.leaderboard.figures import efficient, fill_styles, name_front, named
from dpbench.experiments.leaderboard.tables import failures
from dpbench.leaderboard import entrants
from dpbench.leaderboard.ranking import LEVELS, board, overall
from dpbench.privacy.relation import Relation
from dpbench.run.results import Store
from dpbench.run.runner import run
from dpbench.study.context import Context
from dpbench.study.grid import BEST, GridEntry, load_grid
from dpbench.study.plan import plan
from dpbench.study.standing import standing
from dpbench.study.style import look

FEW = ["dp-gd", "dp-newton-hess-clip", "aop", "dp-gd-laplace"]
GRID = """
[[quick]]
artefacts = ["overall", "ranking_mid", "pareto_mid", "summary", "fits"]
problems = ["synthetic"]
algorithms = ["dp-gd", "dp-newton-hess-clip", "aop", "dp-gd-laplace", "dp-nag"]
epsilon = [1]
seeds = 2
[[quick]]
artefacts = ["pareto_mid"]
problems = ["synthetic"]
algorithms = ["dp-gd", "dp-newton-hess-clip", "aop", "dp-gd-laplace", "dp-nag"]
epsilon = [1]
seeds = 1
timed = 1
"""


def test_every_private_method_enters_once_and_no_other():
    names = entrants.entrants()
    behind = {algorithms.resolve(name)[0].name for name in names}
    private = {n for n in algorithms.names() if algorithms.resolve(n)[0].private}
    assert behind == {algorithms.resolve(n)[0].name for n in private}
    assert "dp-newton" not in names  # every variant of it has an alias
    assert {"dp-newton-hess-clip", "dp-gd", "o2nc-tree"} <= set(names)
    assert not {"dp-gd-oracle", "damped-newton", "o2nc"} & set(names)


def test_tuning_names_methods_and_settings_that_exist():
    for profile in ("full", "quick"):
        for name in entrants.entrants():
            method, fixed = algorithms.resolve(name)
            grid = entrants.candidates(name, profile)
            assert set(grid) <= set(method.Settings.__struct_fields__) - set(fixed), name
            assert len(grid) <= 2
            assert np.prod([len(values) for values in grid.values()]) <= (12 if profile == "full" else 4)
        known = {*algorithms.names(), "default"}
        assert set(entrants._tuning()[profile]) <= known
    assert set(entrants.excluded()) <= set(algorithms.names())


@pytest.mark.parametrize(
    ("problem", "name", "why"),
    [
        ("synthetic", "dp-gd", ""),
        ("synthetic", "dp-nag", "strong convexity"),
        ("log1-unit", "dp-nag", ""),
        ("log1-unit", "dp-newton-hess-clip", "regulariser l2"),
        ("square-unit", "dp-gd", "loss squared is not covered"),
        ("synthetic", "dp-gd-oracle", "not private"),
        ("synthetic", "dp-gcd-gs-q", "l1 alone"),
    ],
)
def test_who_fits_is_decided_by_what_the_method_declares(problem, name, why):
    found = entrants.reason(problem, name)
    assert (why in found) if why else found == ""


def test_blocks_have_one_relation_and_admissible_candidates_only():
    block = GridEntry(artefacts=[], problems=["log1-unit"], algorithms=["every"], epsilon=[1.0], seeds=2)
    blocks = entrants.expand(block, "full")
    assert {b.relation for b in blocks} == {"replace-one"}
    assert {b.delta for b in blocks} == {"n^-2", 0.0}
    jobs = plan(blocks, None).jobs
    assert {job.neighbours for job in jobs} == {Relation.REPLACE_ONE}
    # a thousand rows: o2nc's M = 2,000 is not one of the candidates
    assert all("M" not in b.settings for b in blocks if b.algorithms == ["o2nc-tree"])
    timed = GridEntry(artefacts=[], problems=["log1-unit"], algorithms=["dp-gd"], epsilon=[1.0], seeds=1, timed=1)
    assert entrants.expand(timed, "full")[0].settings == {"T": BEST}


def test_an_artefact_has_the_rows_of_its_own_epsilon_alone():
    """Candidates are tuned at each ε by themselves: no block of another one is taken along."""
    for level, epsilon in LEVELS.items():
        for name in (f"ranking_{level}", f"pareto_{level}"):
            blocks = experiments.get("leaderboard").blocks("full", name)
            assert {each for block in blocks for each in block.epsilon} == {epsilon}


def rows(**methods):
    """Rows of one cell: method → losses by seed, NaN for a diverged one."""
    listed = []
    for name, losses in methods.items():
        for seed, loss in enumerate(losses):
            status = "diverged" if np.isnan(loss) else "done"
            listed.append({"problem": "p", "epsilon": 1.0, "algorithm": name, "settings": '{"T": 1}', "seed": seed,
                           "excess": loss, "objective": 1 + loss, "status": status, "timed": 0, "seconds": np.nan,
                           "accounting": "tight", "relation": "replace-one", "delta": 1e-6, "epsilon_planned": 1.0,
                           "private": True, "counts_public": "",
                           "accuracy": 0.5})  # fmt: skip
    return pd.DataFrame(listed)


def test_names_of_a_front_cross_nothing_that_is_drawn_and_stay_in_their_panel():
    from matplotlib import pyplot

    cell = pd.DataFrame(
        {
            "algorithm": ["opt-b", "dp-newton-minibatch-hess-add", "aop", "dp-gd", "dp-sgd", "adassp"],
            "seconds": [0.001, 0.05, 0.06, 0.08, 5.0, 0.5],
            "mean": [0.5, 0.2, 0.19, 0.1, 0.09, 0.4],
            "se": 0.001,
        }
    )
    canvas, axis = pyplot.subplots(figsize=(2, 2.7), layout="constrained")
    axis.set(xscale="log", yscale="log", xlim=(0.0001, 10), ylim=(0.05, 1))
    canvas.draw_without_rendering()
    front = efficient(cell)
    name_front(axis, cell, front)
    names = [text.get_window_extent() for text in axis.texts]
    assert {"OPT-B", "DP-GD", "DP-SGD"} <= {text.get_text() for text in axis.texts}
    axis.step([*front["seconds"], 10], [*front["mean"], 0.09], where="post")
    line = axis.lines[0].get_transform().transform_path(axis.lines[0].get_path())
    dots = axis.transData.transform(cell[["seconds", "mean"]])
    for i, name in enumerate(names):
        assert not name.count_overlaps(names[:i] + names[i + 1 :])
        assert not name.count_contains(dots)
        assert not line.cleaned().intersects_bbox(name, filled=False)
        assert axis.bbox.x0 < name.x0 < name.x1 < axis.bbox.x1
    pyplot.close(canvas)


def test_ranks_ties_and_standard_errors():
    table = board(rows(a=[1.0, 1.2], b=[1.1, 1.3], c=[5.0, 5.2], d=[0.1, np.nan])).set_index("algorithm")
    assert list(table.index) == ["a", "b", "c", "d"]
    assert table.loc["a", "mean"] == pytest.approx(1.1)
    assert table.loc["a", "se"] == pytest.approx(0.1)
    assert list(table["rank"]) == [1, 2, 3, 4]
    assert list(table["beaten_by"]) == [0, 0, 2, 3]  # b is 0.1 ± 0.14 behind a: tied with it
    assert np.isinf(table.loc["d", "mean"])


def test_the_best_settings_speak_for_a_method_and_its_timed_run_gives_the_seconds():
    worse = rows(a=[3.0, 3.0]).assign(settings='{"T": 2}')
    timed = rows(a=[1.0]).assign(timed=1, seconds=0.25)
    other = worse.iloc[:1].assign(timed=1, seconds=9.0)
    table = board(pd.concat([worse, rows(a=[1.0, 2.0]), timed, other], ignore_index=True))
    assert len(table) == 1
    assert (table.loc[0, "settings"], table.loc[0, "mean"], table.loc[0, "seconds"]) == ('{"T": 1}', 1.5, 0.25)


def test_of_equal_settings_the_timed_one_is_shown():
    equal = rows(a=[1.0, 1.0]).assign(settings='{"T": 0}')
    timed = rows(a=[1.0]).assign(timed=1, seconds=0.25)
    table = board(pd.concat([equal, rows(a=[1.0, 1.0]), timed], ignore_index=True))
    assert (table.loc[0, "settings"], table.loc[0, "seconds"]) == ('{"T": 1}', 0.25)


def test_without_an_optimum_the_objective_ranks():
    table = board(rows(a=[1.0, 1.0], b=[0.5, 0.5]).assign(excess=np.nan))
    assert list(table["algorithm"]) == ["b", "a"]
    assert table.loc[0, "mean"] == 1.5


def test_overall_counts_rivals_beaten_and_puts_the_rarely_seen_last():
    one = rows(a=[1.0, 1.0], b=[2.0, 2.0], c=[3.0, 3.0])
    two = rows(b=[1.0, 1.0], a=[2.0, 2.0], c=[3.0, 3.0]).assign(problem="q")
    three = rows(a=[1.0, 1.0], b=[2.0, 2.0], e=[0.1, 0.1]).assign(problem="r")
    result = overall(board(pd.concat([one, two, three], ignore_index=True))).set_index("algorithm")
    assert list(result.index) == ["a", "b", "c", "e"]
    assert result.loc["a", "share"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert result.loc["a", "mean_rank"] == pytest.approx(5 / 3)
    assert (result.loc["e", "cells"], result.loc["e", "leads"]) == (1, 1)


def test_the_words_follow_the_numbers():
    table = board(rows(**{"dp-gd": [1.0, 1.2], "aop": [1.1, 1.3], "dp-nag": [5.0, 5.2]}))
    text = summary.leader(table)
    assert "DP-GD has the lowest mean excess loss, 1.1 ± 0.1, of 3 methods" in text
    assert "AOP (replace-one) is within two standard errors" in text
    assert "DP-NAG, is at 4.64 times" in text
    assert summary.over_all(table)[0].startswith("DP-GD does best over all")
    assert summary.leader(board(rows(a=[np.nan, np.nan]))) == "No method ends with a finite loss."
    assert summary.names(["a", "b", "c", "d"]) == "a, b, c and 1 more"


def test_the_front_has_no_row_that_another_beats_in_both():
    cell = pd.DataFrame({"algorithm": list("abcd"), "seconds": [1.0, 2, 3, 4], "mean": [3.0, 4, 1, 2]})
    assert list(efficient(cell)["algorithm"]) == ["a", "c"]


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    (folder / "grid.toml").write_text(GRID)
    experiment = experiments.get("leaderboard")
    store = Store(folder / "results", "quick", "leaderboard")
    blocks = experiment.blocks("quick", config=folder / "grid.toml")
    for part in ([b for b in blocks if not b.tuned], [b for b in blocks if b.tuned]):
        assert run(plan(part, store).runnable, store).failed == 0
    grid = load_grid(folder / "grid.toml")
    mine = dataclasses.replace(experiment)
    object.__setattr__(mine, "grid", lambda config=None: grid)
    return Context(mine, "quick", store)


def test_every_row_is_replace_one_within_its_budget(context):
    runs = context.runs
    assert set(runs["algorithm"]) == set(FEW)
    assert set(runs["relation"]) == {"replace-one"}
    assert runs["private"].all()
    assert (runs["epsilon_planned"] <= 1 + 1e-6).all()
    assert set(runs[runs["algorithm"] == "dp-gd"]["delta"]) == {1e-8}
    assert runs[runs["timed"] > 0]["seconds"].notna().all()


@pytest.mark.parametrize("artefact", ["overall", "ranking_mid", "pareto_mid", "summary", "fits"])
def test_artefacts_render_from_rows_without_gaps(context, artefact, tmp_path):
    from dpbench.study.style import figure_style

    one = next(a for a in context.experiment.artefacts if a.name == artefact)
    with figure_style():
        output = one.render(context)
        output.save(tmp_path / artefact, one.title)
    text = (tmp_path / f"{artefact}.md").read_text()
    assert not output.gaps
    if artefact != "fits":
        assert "eplace-one" in output.caption
        assert len(pd.read_csv(tmp_path / f"{artefact}.csv")) == 4
    else:
        assert "strong convexity" in text


@pytest.mark.parametrize("artefact", ["overall", "ranking_mid", "pareto_mid", "summary"])
def test_no_rows_are_a_gap_with_the_command(context, artefact, tmp_path):
    from dpbench.study.style import figure_style

    empty = Context(context.experiment, "quick", Store(tmp_path, "quick", "leaderboard"))
    one = next(a for a in context.experiment.artefacts if a.name == artefact)
    with figure_style():
        output = one.render(empty)
    assert any("dpbench run --experiment leaderboard/" in line for line in output.gaps)


def cells(**means):
    """A table of problems and methods: method → (mean, se) per problem."""
    rows = [
        {"problem": problem, "epsilon": 1.0, "algorithm": name, "mean": mean, "se": se, "seeds": 5, "seconds": 1.0 + i,
         "accounting": "tight"}
        for name, values in means.items()
        for i, (problem, (mean, se)) in enumerate(values.items())
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    table["rank"] = table.groupby("problem")["mean"].rank(method="min").astype(int)
    return table.assign(beaten_by=table["rank"] - 1)


def test_bootstrap_intervals_hold_the_share_and_widen_with_the_errors():
    def drawn(se):
        problems = ("a", "b", "c")
        means = {"dp-gd": 1.0, "aop": 1.1, "opt": 5.0}
        found = guide.intervals(cells(**{m: dict.fromkeys(problems, (v, se)) for m, v in means.items()}), draws=400)
        return found.set_index("algorithm")

    sure, unsure = drawn(1e-9), drawn(0.2)
    assert sure.loc["dp-gd", ["low", "high", "rank_low", "rank_high"]].tolist() == [1, 1, 1, 1]
    assert sure.loc["opt", ["low", "high", "rank_low", "rank_high"]].tolist() == [0, 0, 3, 3]
    assert unsure.loc["dp-gd", ["rank_low", "rank_high"]].tolist() == [1, 2]
    assert unsure.loc["opt", "rank_low"] == 3


def test_methods_in_few_cells_have_an_interval_and_no_rank():
    means = {m: dict.fromkeys("abc", (v, 0.01)) for m, v in {"dp-gd": 1.0, "opt": 2.0}.items()}
    found = guide.intervals(cells(**means, aop={"a": (0.1, 0.01)}), draws=200).set_index("algorithm")
    assert found.loc["aop", ["low", "high"]].tolist() == [1, 1]
    assert np.isnan(found.loc["aop", "rank_low"])
    assert found.loc["dp-gd", ["rank_low", "rank_high"]].tolist() == [1, 1]


def test_at_most_ten_methods_are_drawn_in_colour_and_no_two_alike():
    table = cells(**{name: {"a": (1.0 + i, 0.1)} for i, name in enumerate(entrants.entrants())})
    shown = named(table)
    fills = fill_styles(shown)
    assert len(shown) == 10
    assert shown[0] == table["algorithm"][0]  # alone on the front
    assert len({(look(name).colour, look(name).marker, fills[name]) for name in shown}) == 10


def test_an_epsilon_out_of_reach_is_not_applicable(tmp_path):
    store = Store(tmp_path, "full", "leaderboard")
    one = experiments.get("leaderboard")
    job = next(iter(plan(one.blocks("full", "ranking_low"), store).by_key.values()))
    error = "epsilon: 0.1: no noise gives it"
    store.write([{"key": job.key, "problem": job.problem, "algorithm": job.algorithm, "status": "out of reach",
                  "error": error}], [])  # fmt: skip
    found = {each.artefact: each for each in standing(one, "full", store)}["leaderboard/ranking_low"]
    assert (found.failed, found.done) == (0, 0)
    assert "1 not applicable: ε is out of reach" in found.notes
    assert failures(store.runs()) == []
    store.write([{"key": "other", "problem": "a1a", "algorithm": "dp-gd", "status": "defect", "error": "boom"}], [])
    assert failures(store.runs()) == ["dp-gd on a1a: boom"]
