"""The benchmarks' own logic; what they measure is not tested here."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks import fresh_numbers, iteration_bench, other_libraries, plan_coverage, tables, textbook
from benchmarks.cluster_simulation import makespan
from benchmarks.machine import Roofline
from dpbench.algorithms.registry import BUILTIN

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("seconds", "workers", "overhead", "driver", "expected"),
    [
        ([3.0, 2.0, 2.0], 2, 0.0, 0.0, 4.0),  # list scheduling
        ([1.0] * 10, 10, 0.0, 0.0, 1.0),
        ([1.0] * 10, 1, 0.5, 0.0, 15.0),
        ([1.0] * 10, 1, 0.0, 0.5, 15.0),  # one worker waits for the driver each time
        ([0.0] * 1000, 1000, 0.0, 0.01, 10.0),  # the driver is the limit
        ([1.0], 1000, 0.25, 0.5, 1.75),
    ],
)
def test_simulated_schedules_whose_length_is_known(seconds, workers, overhead, driver, expected):
    assert makespan(seconds, workers, overhead, driver) == pytest.approx(expected)


def test_the_roofline_is_the_slower_of_arithmetic_and_memory():
    machine = Roofline(flops=10.0, bandwidth=2.0)
    assert machine.seconds(20.0, 2.0) == 2.0
    assert machine.seconds(20.0, 8.0) == 4.0


def test_every_algorithm_that_iterates_is_measured_against_a_textbook_version():
    for name in BUILTIN.keys() - {"adassp", "dp-chebyshev", "tukey-em"}:  # which solves once
        assert iteration_bench.case_of(name).textbook is not None, name


FUNCTIONS = {getattr(case.textbook, "func", case.textbook).__name__ for case in iteration_bench.CASES.values()}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_textbook_versions_run(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) / 4
    y = np.where(X @ np.ones(4) + 0.1 * rng.standard_normal(300) > 0, 1.0, -1.0)
    w = getattr(textbook, name)(X, y, 5, rng)
    assert w.shape == (4,)
    assert np.isfinite(w).all()
    if name not in ("zeroth_order", "sgd_one", "trust_region"):  # for another loss, five rows, a step that overshoots
        assert textbook.value(X, y, w) < textbook.value(X, y, np.zeros(4))


def test_one_line_is_measured_and_printed(monkeypatch):
    monkeypatch.setattr(iteration_bench, "ADULT", (500, 5))
    monkeypatch.setattr(iteration_bench, "ROUNDS", 1)
    problem = iteration_bench._logistic()
    monkeypatch.setitem(iteration_bench.PROBLEMS, "logistic", lambda: problem)
    machine = Roofline(1e10, 1e10)
    (line,) = iteration_bench.lines(machine, ["dp-gd"])
    assert not isinstance(line, str), line  # says why it was not measured
    assert min(line.single, line.batched, line.textbook) > 0
    assert line.roofline == pytest.approx(4 * 500 * 5 / 1e10)
    assert tables.cells(line)[0] == "dp-gd"
    text = tables.markdown([line], {"processor": "p"}, machine, (0.0, 0.0))
    assert len({row.count("|") for row in text.splitlines() if row.startswith("|")}) == 1


def test_the_page_of_other_libraries_follows_from_its_rows():
    """The tables, the counts behind them by another route, and what the guide says in words."""
    rows = other_libraries.read()
    page = (other_libraries.RESULTS / "other_libraries.md").read_text(encoding="utf-8")
    assert page == other_libraries.tables(rows)
    frame = pd.DataFrame(rows).replace("", np.nan)
    frame[["epsilon", "auc", "r2"]] = frame[["epsilon", "auc", "r2"]].astype(float)
    assert frame[frame["library"] == "diffprivlib"].groupby(["data", "epsilon"])["seed"].nunique().eq(10).all()
    wide = frame.pivot_table(index=["data", "epsilon", "seed"], columns="library", values=["auc", "r2"])
    words = {}
    for score in ("auc", "r2"):
        gaps = (wide[score, "dpbench"] - wide[score, "diffprivlib"]).dropna().groupby(["data", "epsilon"])
        tests = gaps.apply(lambda gap: stats.ttest_1samp(gap, 0).pvalue)
        words[score] = np.where(tests > 0.05, "level", np.where(gaps.mean() > 0, "ahead", "behind")).tolist()
        counted = other_libraries.counts(other_libraries.collected(rows), "dpbench", score)
        assert counted == {word: words[score].count(word) for word in counted}
    guide = " ".join((ROOT / "docs/guides/other_libraries.md").read_text(encoding="utf-8").split())
    same, trees = (
        other_libraries.counts(other_libraries.collected(rows), "dpbench", "auc", model)
        for model in ("diffprivlib, our ridge", "DP-EBM")
    )
    assert (
        f"level in {same['level']} of {sum(same.values())} comparisons by AUC, and dpbench is ahead in {same['ahead']}"
        in guide
    )
    two = {name for name, *_ in (key for key in other_libraries.collected(rows) if key[1] == "diffprivlib, our ridge")}
    for library, words_of in (
        ("dpbench", "and dpbench is ahead in {0}, not in {1} "),
        ("dpbench, δ = 0", "in {0}, not in {1})"),
    ):
        at_both = [
            sum(
                cell.word == "ahead" and cell.data in two
                for cell in other_libraries.cells(other_libraries.collected(rows), library, "auc", rival)
            )
            for rival in ("diffprivlib, our ridge", "diffprivlib")
        ]
        assert words_of.format(*at_both) in guide
    assert f"is ahead by AUC in {trees['behind']} of {sum(trees.values())} and behind in {trees['ahead']}." in guide


def test_what_the_guide_says_of_the_cells_behind_is_in_the_rows():
    found = other_libraries.collected(other_libraries.read())
    behind = {(cell.data, cell.epsilon) for cell in cells_behind(found, "dpbench", ("accuracy", "auc", "r2"))}
    assert behind == {("Default", 1.0), *(("diamonds, carat", epsilon) for epsilon in other_libraries.EPSILONS)}
    pure = cells_behind(found, "dpbench, δ = 0", ("accuracy", "auc", "log_loss"))
    assert {(cell.data, cell.epsilon) for cell in pure} == {("breast cancer", 3.0)}

    def mean(data, library, epsilon, score):
        return np.mean(found[data, library, epsilon, score])

    for epsilon, worse in ((0.3, True), (1.0, True), (3.0, False)):  # what the ridge does to the other library, too
        gap = mean("breast cancer", "diffprivlib", epsilon, "log_loss")
        assert bool(gap > mean("breast cancer", "diffprivlib, our ridge", epsilon, "log_loss")) is worse
    for model in ("diffprivlib, random forest", "DP-EBM"):
        assert mean("breast cancer", model, 1.0, "accuracy") > mean("breast cancer", "dpbench", 1.0, "accuracy")
    carat = [mean("diamonds, carat", "dpbench", epsilon, "r2") for epsilon in other_libraries.EPSILONS]
    assert [f"{score:.2f}" for score in carat] == ["0.84", "0.85", "0.85"]
    assert f"{mean('diamonds, carat', 'not private', np.inf, 'r2'):.2f}" == "0.86"


def cells_behind(found, library, scores):
    return [cell for score in scores for cell in other_libraries.cells(found, library, score) if cell.word == "behind"]


def test_the_page_of_planning_follows_from_its_rows():
    plans, found = plan_coverage.read(plan_coverage.PLANS), plan_coverage.came_out()
    page = (plan_coverage.measured.RESULTS / "plan_coverage.md").read_text(encoding="utf-8")
    assert page == plan_coverage.table(plans, found)
    assert not plan_coverage.FRESH.keys() & {*plan_coverage.SEEN, *fresh_numbers.TABLES}
    assert len(plan_coverage.FRESH) == 23
    guide = " ".join((ROOT / "docs" / "guides" / "planning.md").read_text(encoding="utf-8").split())

    def share(sets, known, scores):
        each = [plan_coverage.held(plans, found, sets, known, score)[:2] for score in scores]
        means, cells = np.sum(each, axis=0)
        assert cells >= 27
        return f"{100 * means / cells:.0f}"

    kinds = {"all": plan_coverage.SCORES, "classes": ["AUC", "accuracy", "log loss"], "log loss": ["log loss"]}
    kinds["numbers"] = ["R²"]
    both = {
        kind: [share(sets, "nothing", scores) for sets in (plan_coverage.FRESH, plan_coverage.FRESH_WIDE)]
        for kind, scores in kinds.items()
    }
    assert "contain {} % of the mean scores with tight bounds and {} % with wide ones".format(*both.pop("all")) in guide
    for kind, shares in both.items():
        assert "{} {} and {} %".format(kind, *shares) in guide
    scores, _ = fresh_numbers.read()
    held = {bounds: [] for bounds in fresh_numbers.BOUNDS}
    for line in fresh_numbers._read(fresh_numbers.PLANS):
        mean = np.mean(scores[line["data"], line["bounds"], fresh_numbers.DEFAULT, float(line["epsilon"])])
        held[line["bounds"]].append(float(line["low"]) <= mean <= float(line["high"]))
    tight, wide = (f"{100 * np.mean(held[bounds]):.0f}" for bounds in fresh_numbers.BOUNDS)
    assert (
        f"and on twelve newer tables of [numbers](defaults.md#numbers-a-window-around-the-target) {tight} and {wide} %"
        in guide
    )
    guesses, rows = (share(plan_coverage.FRESH, known, plan_coverage.SCORES) for known in ("guesses", "older rows"))
    assert f"{guesses} % with guesses and {rows} % with older rows" in guide
    assert f"{share(plan_coverage.SEEN, 'nothing', plan_coverage.SCORES)} % of the cells of the 55 seen" in guide


def test_what_a_plan_holds_is_counted_by_hand():
    plans = [
        {"data": name, "known": "nothing", "epsilon": "1.0", "score": "AUC", "low": "0.5", "high": high}
        for name, high in (("a", "0.7"), ("b", "0.55"))
    ]
    found = {(name, "dpbench", 1.0, "auc"): [0.52, 0.60, 0.68] for name in "ab"}
    counted = plan_coverage.held(plans, found, {"a": None, "b": None}, "nothing", "AUC")
    assert counted == (1, 2, 4, pytest.approx(0.125))
    assert plan_coverage.held(plans, found, {"a": None}, "nothing", "AUC")[:3] == (1, 1, 3)


def test_fresh_tables_are_in_no_other_list_and_a_cell_below_the_line_counts():
    assert len(fresh_numbers.TABLES) == 12
    assert not fresh_numbers.TABLES.keys() & plan_coverage.ALL.keys()
    found = {
        (name, bounds, "m", epsilon): [-0.02, -0.02] if (name, bounds, epsilon) == ("a", "wide", 3.0) else [0.0, 0.1]
        for name in ("a", "b", "few")
        for bounds in fresh_numbers.BOUNDS
        for epsilon in fresh_numbers.EPSILONS
    }
    assert fresh_numbers.bad(found, {"a": 800, "b": 900, "few": 799}, "m") == (1, 8)


def test_the_page_of_fresh_numbers_is_that_of_its_scores():
    found, rows = fresh_numbers.read()
    page = (other_libraries.RESULTS / "fresh_numbers.md").read_text(encoding="utf-8")
    assert page == fresh_numbers.table(found, rows)
    assert set(rows) == set(fresh_numbers.TABLES)
    assert all(met for _, _, met in fresh_numbers.rule(found, rows)), "else the guide says what is missed"


@pytest.mark.parametrize("part", [None, 0, 1, 2, 3])
def test_a_default_that_misses_a_part_of_the_rule_is_told(part):
    """Each of the others has an R² of .3; tables a and b have 1,000 rows, `few` has 500."""
    ways = (fresh_numbers.DEFAULT, "public bounds", "dp-gd-average", fresh_numbers.RIVAL)
    cells = itertools.product(("a", "b", "few"), fresh_numbers.BOUNDS, ways, fresh_numbers.EPSILONS)
    found = {one: [0.4 if one[2] == fresh_numbers.DEFAULT else 0.3] for one in cells}
    for name, bounds, way, epsilon in list(found):
        if way == fresh_numbers.DEFAULT and (
            (part == 0 and (name, bounds, epsilon) == ("a", "wide", 3.0))  # 1 of 8 cells
            or (part == 1 and epsilon == 3.0)
        ):
            found[name, bounds, way, epsilon] = [-0.02] if part == 0 else [0.295]
        if part == 2 and (way, bounds, epsilon) == ("public bounds", "tight", 0.3):
            found[name, bounds, way, epsilon] = [0.411]
        if part == 3 and (way, name) == ("dp-gd-average", "few"):
            found[name, bounds, way, epsilon] = [0.401]
    met = [one for _, _, one in fresh_numbers.rule(found, {"a": 1000, "b": 1000, "few": 500})]
    assert met == [one != part for one in range(4)]
