"""Places from made-up rows: what a score is, and that nobody gains by what is left out or by who else is there."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.leaderboard import places
from dpbench.leaderboard.places import AUTO, CLIP, NOTHING
from dpbench.problems import Problem

PROBLEMS = ["a", "b", "c", "d", "e"]
SCALE = places.Scale(places.EXCESS, dict.fromkeys(PROBLEMS, 1.0))
FAMILIES = {"a": "one", "b": "one"}


def rows(**methods):
    """method → {problem: losses by seed}: rows of results."""
    listed = [
        {"problem": p, "epsilon": 1.0, "algorithm": m, "settings": "{}", "seed": seed, "timed": 0, "excess": v,
         "status": "done" if np.isfinite(v) else "diverged", "counts_public": ""}
        for m, found in methods.items() for p, values in found.items() for seed, v in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(listed)


def table(planned=None, **methods):
    """`scored` of these methods, all planned on every problem."""
    means = places.means(places.losses(rows(**methods)))
    planned = [(p, 1.0, m) for m in methods for p in PROBLEMS] if planned is None else planned
    return places.scored(means, SCALE, planned)


def on_all(values):
    """problem → one loss."""
    return {p: [v] for p, v in zip(PROBLEMS, values, strict=True)}


def order(scored):
    return [one.algorithm for one in places.placements(places.by_family(scored, FAMILIES))]


@pytest.mark.parametrize(
    ("excess", "null", "expected"),
    [(1.0, 1.0, 0.0), (0.1, 1.0, -1.0), (0.2, 2.0, -1.0), (1e-9, 1.0, -CLIP), (0.0, 1.0, -CLIP), (1e9, 1.0, CLIP),
     (math.inf, 1.0, CLIP), (math.nan, 1.0, CLIP), (1.0, 0.0, CLIP), (100.0, 1.0, 2.0), (500.0, 1.0, math.log10(500)),
     (2000.0, 1.0, 3.0), (1 / 2000, 1.0, -3.0)],
)  # fmt: skip
def test_a_score_is_decades_above_nothing(excess, null, expected):
    assert places.score(excess, null) == pytest.approx(expected)


def test_a_held_out_loss_scores_by_the_share_of_the_gain_that_is_kept():
    """0.7 by w = 0 and 0.2 without privacy: 0.3 keeps 80 %; better than without privacy is 100 %, no result -100 %."""
    scale = places.Scale(places.HELD, {"a": 0.7}, {"a": 0.2})
    scores = scale.scores("a", [0.3, 0.7, 0.2, 0.1, 0.8, 9.0, math.inf, math.nan])
    assert scale.kept(scores).tolist() == pytest.approx([0.8, 0, 1, 1, -0.2, -1, -1, -1])
    assert SCALE.kept(np.array([-1.0, 0.0, 3.0])).tolist() == pytest.approx([0.9, 0, -1])
    held = rows(a={"a": [0.3]}, b={"a": [0.5]}).assign(held_loss=[0.3, math.nan])
    found = places.scored(places.means(places.losses(held, places.HELD)), scale, [("a", 1.0, "c")])
    assert dict(zip(found["algorithm"], found["score"], strict=True)) == pytest.approx(
        {"a": -0.8, "b": 1, "c": 1, NOTHING: 0}
    )


def test_a_diverged_seed_a_failed_run_and_a_missing_cell_score_the_worst():
    failed = rows(c={"a": [0.1]}).assign(status="defect", excess=0.1)
    means = places.means(places.losses(pd.concat([rows(a={"a": [0.1, np.inf]}, b={"b": [0.1]}), failed])))
    found = places.scored(means, SCALE, [("a", 1.0, "b"), ("c", 1.0, "a")])
    scores = {(row.problem, row.algorithm): row.score for row in found.itertuples()}
    assert scores["a", "a"] == scores["a", "b"] == scores["a", "c"] == CLIP
    assert scores["b", "b"] == pytest.approx(-1)
    assert ("c", "a") not in scores  # a problem that nobody ran is no problem of the board
    assert scores["a", NOTHING] == scores["b", NOTHING] == 0.0


def test_a_problem_that_not_every_own_method_was_run_on_waits():
    means = places.means(places.losses(rows(a={"a": [0.1], "b": [0.1]}, b={"a": [0.1]}, theirs={"b": [0.1]})))
    planned = [(p, 1.0, m) for p in ("a", "b", "c") for m in ("a", "b")]
    kept, left, waiting = places.finished(means, planned)
    assert set(kept["problem"]) == {"a"}
    assert left == [("a", 1.0, "a"), ("a", 1.0, "b")]
    assert waiting == 1  # b; nobody has begun c
    plugin = [(p, 1.0, "plugin") for p in ("a", "b", "c")]  # an installed method without rows changes nothing
    unchanged = places.finished(means, planned + plugin, {"plugin"})
    assert unchanged[1:] == (left, waiting)
    assert set(unchanged[0]["problem"]) == {"a"}
    run = pd.concat([means, means[means["problem"].eq("b")].assign(algorithm="plugin")])
    _, left, _ = places.finished(run, planned + plugin, {"plugin"})
    assert ("a", 1.0, "plugin") in left
    assert ("b", 1.0, "plugin") not in left
    elsewhere = places.means(places.losses(rows(theirs={"d": [0.1]})))  # rows do not make a problem one of the board's
    assert places.finished(elsewhere, planned)[0].empty
    failed = rows(b={"b": [0.1]}).assign(status="defect")
    with_failure = places.means(places.losses(pd.concat([rows(a={"b": [0.1]}), failed])))
    assert set(places.finished(with_failure, planned)[0]["problem"]) == {"b"}


def test_timed_rows_do_not_count_and_an_excess_of_nothing_is_no_success():
    timed = rows(a={"a": [1e-3]}).assign(timed=1)
    found = places.losses(pd.concat([rows(a={"a": [0.5]}), timed, rows(b={"a": [np.nan]}).assign(status="done")]))
    assert found["loss"].tolist() == [0.5, math.inf]


def test_settings_are_picked_by_the_lowest_of_what_is_named_and_the_first_of_equals():
    tried = pd.DataFrame({"group": [1, 1, 1, 2], "by": [2.0, 1.0, 1.0, 9.0], "other": [0.0, 5.0, 4.0, 1.0]})
    assert places.pick(tried, ["group"], "by")["other"].tolist() == [5.0, 1.0]


losses = st.lists(st.floats(1e-4, 1e4), min_size=len(PROBLEMS), max_size=len(PROBLEMS))


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(a=losses, b=losses, c=losses, left_out=st.sets(st.sampled_from(PROBLEMS)))
def test_leaving_out_problems_never_improves_a_place(a, b, c, left_out):
    full = {
        m: {p: [v] for p, v in zip(PROBLEMS, values, strict=True)} for m, values in {"a": a, "b": b, "c": c}.items()
    }
    planned = [(p, 1.0, m) for m in full for p in PROBLEMS]
    fewer = full | {"a": {p: v for p, v in full["a"].items() if p not in left_out}}
    before, after = order(table(planned, **full)), order(table(planned, **fewer))
    assert after.index("a") >= before.index("a")
    assert [m for m in after if m != "a"] == [m for m in before if m != "a"]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(a=losses, b=losses, c=losses)
def test_an_entrant_changes_the_order_of_no_pair(a, b, c):
    full = {
        m: {p: [v] for p, v in zip(PROBLEMS, values, strict=True)} for m, values in {"a": a, "b": b, "c": c}.items()
    }
    without = {m: full[m] for m in ("a", "b")}
    assert [m for m in order(table(**full)) if m != "c"] == order(table(**without))


def test_families_count_once_however_many_problems_they_have():
    found = places.by_family(table(a={p: [0.1] for p in PROBLEMS}, b={"a": [10.0], "b": [10.0]}), FAMILIES)
    assert list(found.index) == ["c", "d", "e", "one"]
    assert found.loc["one", "b"] == pytest.approx(1.0)
    assert found["a"].mean() == pytest.approx(-1.0)


def test_what_takes_from_the_data_unpaid_is_listed_and_has_no_place():
    scored = table(a={p: [0.01] for p in PROBLEMS}, b={p: [0.1] for p in PROBLEMS})
    lines = places.placements(places.by_family(scored, FAMILIES), {"a": "M_j"})
    assert [(one.algorithm, one.place) for one in lines] == [("a", 0), ("b", 1), (NOTHING, 2)]


def test_the_default_is_the_chosen_method_of_each_problem_and_missing_where_it_is():
    scored = table([("c", 1.0, "b")], a={"a": [0.1], "c": [0.5]}, b={"b": [0.01]})
    found = places.with_auto(scored, {"a": "a", "b": "b", "c": "b"})
    auto = {row.problem: row.score for row in found[found["algorithm"] == AUTO].itertuples()}
    assert auto == {"a": pytest.approx(-1), "b": pytest.approx(-2), "c": CLIP}
    nowhere = places.with_auto(scored, {"a": "a method without a row"})
    assert nowhere[nowhere["algorithm"] == AUTO]["score"].tolist() == [CLIP]


def test_told_apart_is_by_the_difference_from_the_first():
    noise = {p: 10.0 ** -(0.2 + i / 2) for i, p in enumerate(PROBLEMS)}  # families differ, the methods' ratio does not
    scored = table(a={p: [v] for p, v in noise.items()}, b={p: [1.5 * v] for p, v in noise.items()})
    scored = scored[scored["algorithm"] != NOTHING]
    lines = {one.algorithm: one for one in places.placements(places.by_family(scored, {}))}
    assert not lines["a"].apart
    assert lines["b"].apart
    assert lines["b"].low < lines["a"].score  # their own intervals overlap


@pytest.mark.parametrize("families", [3, 12])
def test_intervals_hold_for_all_methods_at_once(families):
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        values = rng.standard_normal((families, 6)) * np.arange(1, 7)
        half = places.simultaneous(values)
        held += bool((np.abs(values.mean(axis=0)) <= half).all())
    assert held / 200 >= 0.9  # 95 % but for the noise of 200


def test_one_family_says_nothing_and_equal_scores_leave_no_width():
    assert np.isinf(places.simultaneous(np.ones((1, 3)))).all()
    assert places.simultaneous(np.ones((5, 2))).tolist() == [0.0, 0.0]


def test_the_price_of_tuning_is_by_shared_cells_alone():
    rule = places.means(places.losses(rows(a={"a": [1.0], "b": [1.0], "c": [1.0]}, b={"c": [1.0]})))
    other = places.means(places.losses(rows(a={"a": [2.0], "b": [8.0], "d": [1e-9]}, c={"a": [1e-9]})))
    found = places.price(rule, other, {})
    assert (found.combinations, found.families) == (2, 2)
    assert found.ratio == pytest.approx(4.0)
    assert found.low < 4 < found.high
    assert places.price(rule, other, FAMILIES).families == 1
    assert places.price(rule, other.iloc[:0], {}).combinations == 0


def test_every_problem_of_the_grid_has_a_null_and_the_drawn_ones_the_right_one():
    from dpbench.leaderboard import nulls, tracks
    from dpbench.problems import build

    problems = {p for blocks in tracks.grid().values() for b in blocks if "places" in b.artefacts for p in b.problems}
    assert problems <= set(nulls.nulls())
    held, best = nulls.nulls("held"), nulls.nulls("best")
    assert best.keys() <= held.keys()
    assert all(best[name] < held[name] for name in best)
    assert (held["iris"], best["iris"]) == pytest.approx(nulls.held_losses(build("iris"))[:2])
    for name in ("gen-tiny", "gen-friedman", "diabetes-ridge"):
        assert nulls.nulls()[name] == pytest.approx(nulls.null_excess(build(name)), rel=1e-6)


def test_the_board_has_many_families_of_all_sizes():
    from dpbench.leaderboard import headline, tracks

    problems = {block.problems[0] for block in tracks.default_blocks("full", tracks.grid())}
    families = {tracks.families().get(p, p) for p in problems}
    assert len(families) >= 40
    assert sum(not headline.is_drawn(p) for p in {tracks.families().get(p, p): p for p in problems}.values()) >= 30
    assert set(tracks.families()) <= problems
    sizes = [tracks.size(p) for p in problems]
    assert min(n for n, _ in sizes) <= 300 < 100_000 <= max(n for n, _ in sizes)
    assert max(d for _, d in sizes) >= 20_000
    assert {tracks.kind(p) for p in problems} == {kind for kind in tracks.KINDS if not kind.startswith(tracks.PERSONS)}


def test_a_table_of_places_is_means_with_intervals_of_students_t():
    """Four families, two methods with a spread: half-widths by hand, for two at once (Šidák)."""
    from scipy import stats

    scores = pd.DataFrame({"b": [-1.0, -0.5, -0.5, 0.0], "a": [-2.9, -2.9, -2.9, -2.9], "c": [2.5, 1.0, 2.0, 2.5],
                           NOTHING: [0.0] * 4})  # fmt: skip
    t = stats.t.ppf((1 + 0.95**0.5) / 2, 3)
    half = {name: t * scores[name].std() / 2 for name in "bc"}
    lines = places.placements(scores, {"a": "M_j"})
    assert [(one.algorithm, one.place, one.apart) for one in lines] == [
        ("a", 0, False), ("b", 1, False), (NOTHING, 2, False), ("c", 3, True)]  # fmt: skip
    found = {one.algorithm: (one.score, one.low, one.high) for one in lines}
    assert found["a"] == pytest.approx((-2.9, -2.9, -2.9))
    assert found["b"] == pytest.approx((-0.5, -0.5 - half["b"], -0.5 + half["b"]))
    assert found["c"] == pytest.approx((2.0, 2.0 - half["c"], 3.0))  # scores end at 3
    assert found[NOTHING] == (0.0, 0.0, 0.0)
    assert lines[1].interval == f"-0.50 [{-0.5 - half['b']:.2f}, {-0.5 + half['b']:.2f}]"
    assert places.placements(scores.head(0)) == []


def test_a_price_is_the_ratio_of_mean_losses_over_families_with_its_interval():
    from scipy import stats

    def losses_of(**values):
        return places.means(places.losses(rows(a={p: [v] for p, v in values.items()})))

    rule = losses_of(a=1.0, b=1.0, c=2.0, d=0.0, e=0.0)
    found = places.price(rule, losses_of(a=10.0, b=1000.0, c=2.0, d=0.0, e=1.0), FAMILIES)
    logs = np.array([2.0, 0.0, 0.0, -CLIP])  # a and b are one family; nothing lost and something lost is the clip
    half = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    assert found[:3] == pytest.approx((10 ** logs.mean(), 10 ** (logs.mean() - half), 10 ** (logs.mean() + half)))
    assert (found.combinations, found.families) == (5, 4)
    assert np.isnan(places.price(rule, rule.head(0), {})[:3]).all()


def test_what_w_0_and_the_optimum_lose_is_written_for_what_is_fetched_and_the_rest_stays(tmp_path, monkeypatch):
    from dpbench.leaderboard import nulls, tracks
    from dpbench.problems import catalogue

    names = ["gen-tiny", "iris", "a-name-with-old-numbers", "gen-small"]
    monkeypatch.setattr(nulls, "FILE", tmp_path / "nulls.toml")
    monkeypatch.setattr(tracks, "grid", lambda: {"full": [SimpleNamespace(problems=names[:3])]})
    monkeypatch.setattr(catalogue, "recipe_of", lambda name: SimpleNamespace(dataset=name))
    monkeypatch.setattr(nulls.datasets, "available", lambda name: name in ("gen-tiny", "iris"))
    (tmp_path / "nulls.toml").write_text("[excess]\na-name-with-old-numbers = 0.5\ngone = 1.0\n[held]\n[best]\n")
    drawn, held = (SimpleNamespace(held_out=one) for one in (None, (1, 2)))
    monkeypatch.setattr(nulls, "build", lambda name: held if name == "iris" else drawn)
    monkeypatch.setattr(nulls, "null_excess", lambda problem: 1 / 3)
    for gain, best in ((1.99, {}), (2.0, {"iris": 3.0}), (1.99, {})):  # at least two standard errors, now
        nulls.nulls.cache_clear()
        monkeypatch.setattr(nulls, "held_losses", lambda problem, gain=gain: (5.0, 5.0 - gain, 1.0))
        nulls.main()
        nulls.nulls.cache_clear()
        assert nulls.nulls() == {"a-name-with-old-numbers": 0.5, "gen-tiny": 0.3333333333, "iris": 0.3333333333}
        assert nulls.nulls("held") == {"iris": 5.0}
        assert nulls.nulls("best") == best
    nulls.nulls.cache_clear()


def test_a_gain_on_rows_held_out_has_the_error_of_a_mean_of_differences():
    from dpbench.leaderboard import nulls

    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (60, 2)), rng.uniform(-1, 1, 60)
    problem = Problem(X[:40], y[:40], loss="squared", l2=0.1)
    problem.held_out = X[40:], y[40:]
    w = problem.optimum().w
    of_each = [(y[40:] - X[40:] @ each) ** 2 / 2 for each in (0 * w, w)]
    error = (of_each[0] - of_each[1]).std(ddof=1) / 20**0.5
    assert nulls.held_losses(problem) == pytest.approx((*(one.mean() for one in of_each), error))
