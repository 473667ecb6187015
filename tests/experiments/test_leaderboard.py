"""The leaderboard's artefacts from a few real runs, and from made-up boards."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import experiments
from dpbench.experiments.leaderboard import artefacts, board
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.headline import Against, Kept
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, EXCESS, HELD, NOTHING, Scale
from dpbench.problems import build
from dpbench.problems.scores import held_out_scores
from dpbench.run.runner import run
from dpbench.run.store import Store
from dpbench.study.context import Context
from dpbench.study.grid import GridEntry
from dpbench.study.plan import plan
from dpbench.study.style import figure_style
from tests.batches import write

BOARD = experiments.get("leaderboard")
DRAWN = (
    "kept",
    "against",
    "against_excess",
    "reach",
    "needed",
    "places",
    "heat_mid",
    "price",
    "problems",
    "fits",
    "submitted",
    "held_out",
)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The quick profile's tracks on one problem of each loss."""
    store = Store(tmp_path_factory.mktemp("board"), "quick", "leaderboard")
    names = ("diabetes-ridge", "gen-tiny", "iris")
    blocks = [b for b in BOARD.blocks("quick") if b.problems[0] in names]
    for waits in (False, True):
        assert run(plan([b for b in blocks if b.waits == waits], store).runnable, store).failed == 0
    return Context(BOARD, "quick", store)


@pytest.mark.thorough
def test_every_row_is_replace_one_within_its_budget(context):
    runs = context.runs
    assert set(runs["relation"]) == {"replace-one"}
    assert runs["private"].all()
    assert (runs["epsilon_planned"] <= 1 + 1e-6).all()


@pytest.mark.thorough
@pytest.mark.parametrize("name", DRAWN)
def test_artefacts_render_and_without_rows_name_the_command(context, name, tmp_path):
    one = next(a for a in BOARD.artefacts if a.name == name)
    with figure_style():
        output = one.render(context)
        output.save(tmp_path / name, one.title)
        empty = one.render(Context(BOARD, "quick", Store(tmp_path, "quick", "leaderboard")))
        empty.save(tmp_path / f"{name}-empty", one.title)
    assert not output.gaps
    assert empty.gaps or name in ("problems", "fits", "submitted")
    assert all("dpbench run --experiment leaderboard/" in line for line in empty.gaps)


def test_a_heat_map_marks_the_worst_score_and_what_does_not_apply_is_not_the_white_of_0(monkeypatch):
    scores = pd.DataFrame(
        {
            "problem": ["iris", "iris", "gen-tiny"], "epsilon": 1.0, "algorithm": ["dp-gd", "dp-adam", "dp-gd"],
            "score": [places.CLIP, -1.0, 0.0],
        }
    )  # fmt: skip
    placed = [SimpleNamespace(algorithm=name, place=1, score=-1.0) for name in ("dp-gd", "dp-adam")]
    made = SimpleNamespace(scores=scores, placed=lambda epsilon: placed, label=str)
    monkeypatch.setattr(artefacts, "board", lambda context: made)
    with figure_style():
        figure, _ = artefacts.heat(None, 1.0)
        real, drawn = figure.figure.axes[:2]
        assert [text.get_position() for text in real.texts if text.get_text() == "×"] == [(0, 0)]
        assert figure.figure.axes[2].get_xlabel() == "log10 of the excess loss over that of w = 0"
        assert [axis.get_ylabel() for axis in (real, drawn)] == ["real data", "drawn data"]
        assert [[text.get_text() for text in axis.get_yticklabels()] for axis in (real, drawn)] == [
            ["iris"],
            ["gen-tiny"],
        ]
        (image,) = drawn.images
        zero, missing = image.to_rgba(image.get_array())[0, :, :3]
    assert abs(zero - missing).min() > 0.15


def test_nothing_and_the_default_are_entrants_of_every_cell(context):
    found = board.board(context)
    for _, cell in found.scores.groupby(["problem", "epsilon"]):
        assert {NOTHING, AUTO} <= set(cell["algorithm"])
    assert found.scores.query("algorithm == 'nothing'")["score"].eq(0).all()
    assert not found.unpaid  # dp-cd's scales come from the bound on the rows
    assert next(one.place for one in found.placed(1.0) if one.algorithm == "dp-cd") > 0
    assert "¶" not in found.label("dp-cd")


def test_what_is_unpaid_is_told_by_the_code_of_dpbench_and_by_the_rows_of_others():
    def told(name, settings="{}", unpaid=""):
        return board._unpaid({"algorithm": name, "settings": settings, "unpaid": unpaid})[1]

    assert "mean square" in told("dp-gcd")
    assert told("dp-gcd", '{"scales": "bound"}', "an older row's words") == ""
    assert "eigenvalue" in told("dp-nag", '{"T": 3}')
    assert told("theirs", unpaid="the mean") == "the mean"


def test_a_submission_counts_as_missing_on_all_of_a_kind_that_it_has_rows_of():
    from dpbench.leaderboard.stored import Submitted

    rows = pd.DataFrame({"problem": ["digits-ridge"]})
    one = Submitted({"method": "theirs", "title": "Theirs"}, {"placed": True}, rows)
    planned = [("digits-ridge", 1.0, "dp-gd"), ("protein-ridge", 1.0, "dp-gd"), ("a1a", 1.0, "dp-gd")]
    assert board._admitted(one, planned) == [("digits-ridge", 1.0, "theirs"), ("protein-ridge", 1.0, "theirs")]
    assert not Submitted({}, {"placed": False}, rows).placed
    assert one.placed


def test_a_score_on_a_private_copy_is_of_that_copy():
    """Whatever the excess loss of w = 0 is on the public problem; rows on public data stay as they are."""
    from dpbench.leaderboard.stored import Submitted

    rows = pd.DataFrame({"problem": ["digits-ridge", "a1a"], "excess": [0.1, 0.1]})
    one = Submitted({}, {"placed": True, "nulls": {"digits-ridge": 0.4}}, rows)
    found = one.comparable({"digits-ridge": 0.2, "a1a": 0.5})["excess"]
    assert places.score(found[0], 0.2) == pytest.approx(places.score(0.1, 0.4))
    assert found[1] == 0.1


def test_the_cost_is_the_least_of_three_times():
    block = next(b for b in BOARD.grid()["full"] if b.timed)
    assert (block.timed, block.seeds, block.epsilon) == (3, 1, [1])
    assert all(
        one.timed == 3 for one in tracks.expand(GridEntry(**{f: getattr(block, f) for f in block.__struct_fields__}))
    )


def test_compaction_drops_the_rows_that_no_grid_asks_for(tmp_path):
    store = Store(tmp_path, "quick", "leaderboard")
    asked = sorted(plan(BOARD.blocks("quick"), None).keys)[:3]
    row = {"problem": "gen-tiny", "algorithm": "dp-gd", "status": "done", "timed": 0}
    write(store, [row | {"key": key} for key in [*asked, "stale"]], [])
    assert dpbench.compact("leaderboard", profile="quick", results=tmp_path)["leaderboard"] == (3, 1)
    assert set(store.runs()["key"]) == set(asked)
    assert dpbench.compact("leaderboard", profile="quick", results=tmp_path)["leaderboard"] == (3, 0)


def test_compaction_keeps_the_rows_of_what_waits_for_tuning(tmp_path):
    """Settings that are chosen from rows are not known before these are there: what lies there may be of them."""
    waits = plan(experiments.get("second_order").blocks("full"), None).unknown
    problem, algorithm = sorted(waits)[0]
    store = Store(tmp_path, "full", "second_order")
    row = {"status": "done", "timed": 0}
    write(store, [row | {"key": "tuned", "problem": problem, "algorithm": algorithm},
                  row | {"key": "stale", "problem": "no such", "algorithm": algorithm}], [])  # fmt: skip
    assert dpbench.compact("second_order", results=tmp_path) == {"second_order": (1, 1)}
    assert set(store.runs()["key"]) == {"tuned"}


def test_held_out_rows_score_by_loss_against_that_of_nothing(context):
    """By another route: w = 0 has ln 2; a run's score is of its loss on the rows held out alone."""
    rows = context.rows("held_out")
    assert set(rows["problem"]) == {"iris"}
    assert rows["held_loss"].between(0.2, 2.0).all()
    found = board.board(context, places.HELD)
    table = found.scores.set_index("algorithm")["score"]
    mean = rows[rows["algorithm"].eq(found.choice["iris"])]["held_loss"].mean()
    kept = (math.log(2) - mean) / (math.log(2) - nulls("best")["iris"])
    assert found.kept(1.0).tolist() == [-table[AUTO]] == [-table[found.choice["iris"]]] == pytest.approx([kept])
    assert table[NOTHING] == 0.0
    assert len(found.kept(1.0, loss="squared")) == 0
    told = artefacts.held_out(context)[0].data
    assert sorted(told["place"]) == list(range(1, len(told) + 1))
    assert told.sort_values("place")["median"].is_monotonic_decreasing
    problem = build("iris")
    found = held_out_scores(problem.loss, *problem.held_out, np.zeros((1, 5)), np.zeros(5), 0.0)
    assert found["held_loss"][0] == pytest.approx(math.log(2)) == pytest.approx(nulls("held")["iris"])


TAKEN = {"iris": "dp-sgd", "diabetes-ridge": "aop", "gen-tiny": "dp-gd"}
ENTERED = {name: (("aop" if name == "diabetes-ridge" else "dp-gd"), "dp-sgd", "dp-gcd") for name in TAKEN}


def made_board(column):
    """Three methods on two real problems and a drawn one, of which no rows are held out, at two ε on six seeds."""
    problems = [*TAKEN][: 2 if column == HELD else 3]
    scale = Scale(column, dict.fromkeys(problems, 0.8), dict.fromkeys(problems, 0.3) if column == HELD else None)
    at = [(p, e, name, 0.3 + (0.31 + 0.11 * i + 0.07 * j) / e**0.3) for i, p in enumerate(problems)
          for j, name in enumerate(ENTERED[p]) for e in (0.1, 1.0)]  # fmt: skip
    losses = pd.DataFrame([(*one, loss + 0.013 * seed) for *one, loss in at for seed in range(6)],
                          columns=[*places.METHOD, "loss"])  # fmt: skip
    means = losses.groupby(places.METHOD)["loss"].mean().reset_index()
    scores = [float(scale.scores(p, mean)) for p, mean in zip(means["problem"], means["loss"], strict=True)]
    scored = means.drop(columns="loss").assign(score=scores)
    nothing = scored.drop_duplicates(places.COMPARISON).assign(algorithm=NOTHING, score=0.0)
    choice = {p: TAKEN[p] for p in problems}
    table = places.with_auto(pd.concat([scored, nothing]), choice, scale.worst)
    seconds, waiting = {"dp-gd": 0.123, "aop": 12.3}, 3 if column == EXCESS else 0
    return board.Board(scale, table, losses, {"dp-gcd": "scales"}, {}, seconds, choice, waiting)


def of_track(context, track):
    """Twice, and half, the mean loss of the public rule; what was tuned within ε is not on the drawn problem."""
    table = pd.DataFrame(
        [(p, e, name, 0.1 + 0.1 * i) for i, p in enumerate(TAKEN) for name in ENTERED[p] for e in (0.1, 1.0)],
        columns=[*places.METHOD, "mean"],
    )
    factor = {"default": 1.0, "nearby": 0.5, "private": 2.0}[track]
    table = table.assign(mean=table["mean"] * factor)
    return table[table["problem"].ne("gen-tiny") & table["epsilon"].eq(1.0)] if track == "private" else table


@pytest.fixture
def made(monkeypatch):
    """A function that renders an artefact of the made-up board."""
    boards = {column: made_board(column) for column in (HELD, EXCESS)}
    monkeypatch.setattr(artefacts, "board", lambda context, column=EXCESS: boards[column])
    monkeypatch.setattr(artefacts, "track_means", of_track)
    context = SimpleNamespace(gap=lambda name, what: f"{what} of {name}", problems=lambda name: [*TAKEN], store=None)
    known = {one.name: one for one in BOARD.artefacts}
    with figure_style():
        yield lambda name: known[name].render(context)


TABLES = {
    "kept": """
        held-out loss | real (2) | -66 % (-70 % to -62 %); 0 of 2, p = 1 | 14 % (12 % to 16 %); 2 of 2, p = 0.2
        held-out loss | n < 1,500 (2) | -66 % (-70 % to -62 %); 0 of 2, p = 1 | 14 % (12 % to 16 %); 2 of 2, p = 0.2
        training objective | all (3) | -46 % (-60 % to -41 %); 0 of 3, p = 1 | 6 % (-1 % to 8 %); 2 of 3, p = 0.5
        training objective | real (2) | -41 % (-44 % to -39 %); 0 of 2, p = 1 | 8 % (7 % to 10 %); 2 of 2, p = 0.2
        training objective | drawn (1) | -74 % (-74 % to -74 %); 0 of 1, p = 1 | -8 % (-8 % to -8 %); 0 of 1, p = 1
        training objective | n < 1,500 (3) | -46 % (-60 % to -41 %); 0 of 3, p = 1 | 6 % (-1 % to 8 %); 2 of 3, p = 0.5
    """,
    "held_out": """
        two classes | DP-GD | 2: -30 % (-30 % to -30 %) | 1: 32 % (32 % to 32 %)
        two classes | nothing (w = 0) | 1: 0 % (0 % to 0 %) | 3: 0 % (0 % to 0 %)
        two classes | DP-SGD (the default) | 3: -58 % (-58 % to -58 %) | 2: 18 % (18 % to 18 %)
        two classes | DP-GCD ¶ | –: -86 % (-86 % to -86 %) | –: 3 % (3 % to 3 %)
        numbers | nothing (w = 0) | 1: 0 % (0 % to 0 %) | 2: 0 % (0 % to 0 %)
        numbers | AOP (replace-one) (the default) | 2: -74 % (-74 % to -74 %) | 1: 10 % (10 % to 10 %)
        numbers | DP-SGD | 3: -100 % (-100 % to -100 %) | 3: -5 % (-5 % to -5 %)
        numbers | DP-GCD ¶ | –: -100 % (-100 % to -100 %) | –: -19 % (-19 % to -19 %)
    """,
    "against": """
        AOP (replace-one) | it is the default | it is the default
        DP-GD | -28 [-33, -23] on 1: the other | -14 [-19, -9] on 1: the other
        DP-SGD | +13 [0, 28] on 2: not distinguishable | +7 [0, 17] on 2: not distinguishable
    """,
    "against_excess": """
        AOP (replace-one) | it is the default | it is the default
        DP-GD | 0.03 [0.00, 0.07] on 2: not distinguishable | 0.02 [0.00, 0.06] on 2: not distinguishable
        DP-SGD | -0.03 [-0.05, 0.00] on 3: not distinguishable | -0.02 [-0.04, 0.00] on 3: not distinguishable
    """,
    "needed": """
        iris | real | held-out loss | 113 | 113 | 113 (DP-GD)
        gen-tiny | drawn | training objective | 300 | – | –
        diabetes-ridge | real | held-out loss | 442 | 442 | 442 (AOP (replace-one))
    """,
    "places": """
        nothing (w = 0) | 1: 0.00 [0.00, 0.00] | 4: 0.00 [0.00, 0.00] | –
        AOP (replace-one) | 2: 0.06 [-0.49, 0.60] | 3: -0.01 [-0.10, 0.08] | 12
        DP-GD | 3: 0.11 [-0.59, 0.80] | 1: -0.02 [-0.40, 0.36] | 0.12
        the default (auto) | 4: 0.18 [-0.13, 0.49] | 2: -0.01 [-0.26, 0.23] | –
        DP-SGD | 5: 0.21 [-0.21, 0.63] | 5: 0.01 [-0.32, 0.34] | –
        DP-GCD ¶ | –: 0.25 [-0.12, 0.63] | –: 0.05 [-0.26, 0.35] | –
    """,
    "price": """
        tuned within ε: three values around the rule | – | 2.00 [2.00, 2.00] (combinations: 6, families: 2)
        the best of three values around the rule (free here, not private) | {half} | {half}
    """.replace("{half}", "0.50 [0.50, 0.50] (combinations: 9, families: 3)"),
    "problems": """
        iris | 113 | 5 | logistic + ridge | iris | 0.423 | 3
        diabetes-ridge | 442 | 10 | squared + ridge | diabetes-ridge | 0.0281 | 3
        gen-tiny | 300 | 5 | logistic + ridge | gen-tiny | 0.289 | 3
    """,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_made_up_board_has_these_tables(made, name):
    lines = [" | ".join(map(str, line)) for line in made(name).frame.to_numpy()]
    assert lines == [line.strip() for line in TABLES[name].strip().splitlines()]
    assert made(name).gaps == []


def test_the_words_of_a_made_up_board_count_what_it_shows(made):
    kept, held, placed, price = (made(name) for name in ("kept", "held_out", "places", "price"))
    assert "keeps 14 % of the gain without privacy: median of 2 tables at ε = 1" in kept.finding
    assert "of each of 31 real tables" in kept.method
    assert "less than two standard errors on them: forest, smokers." in kept.method
    assert "protected: 1 with two classes and 1 with numbers." in held.caption
    assert "on 3 problems in 3 families" in placed.caption
    waiting = "3 (problem, ε) are not scored yet: the runs of some method on them are not made."
    assert (waiting in placed.method, waiting in held.method) == (True, False)
    assert price.finding == "Tuning within ε multiplies the excess loss by 2.00"
    assert list(made("against").data.columns)[:2] == ["epsilon", "algorithm"]
    assert made("kept").data.groupby("loss").size().to_dict() == {EXCESS: 8, HELD: 4}
    assert made("needed").data["loss"].tolist() == [made("needed").frame["loss"][i] for i in range(3)]
    assert "told" not in placed.data


def test_who_is_on_no_problem_is_told_once_for_each_reason(made, monkeypatch):
    reasons = {(problem, name): "a" for problem in ("iris", "gen-tiny") for name in ("dp-gd", "aop")}
    reasons |= {(problem, "dp-sgd"): "b" for problem in TAKEN} | {("iris", "dp-cd"): "c", ("iris", "opt"): "d"}
    monkeypatch.setattr(artefacts.entrants, "entrants", lambda: ["dp-gd", "dp-sgd", "aop", "dp-cd", "opt"])
    monkeypatch.setattr(artefacts.entrants, "reason", lambda problem, name: reasons.get((problem, name), ""))
    monkeypatch.setattr(artefacts.tracks, "excluded", lambda: {"opt": "too slow"})
    assert made("fits").frame.to_numpy().tolist() == [
        ["iris, gen-tiny", "DP-GD; AOP (replace-one)", "a"], ["all", "DP-SGD", "b"], ["iris", "DP-CD", "c"]
    ]  # fmt: skip
    assert made("problems").method.endswith(f"Not on the board: {artefacts.look('opt').label}: too slow.")


def test_the_default_is_drawn_against_n_times_epsilon_and_the_median_of_real_problems(made):
    figure = made("reach")
    for axis, (column, problems) in zip(figure.figure.axes, ((HELD, 2), (EXCESS, 3)), strict=True):
        table = figure.data[figure.data["loss"].eq(column)]
        *lines, median, zero = [(line.get_xdata(), line.get_ydata()) for line in axis.lines]
        assert len(lines) == problems
        assert [(x * (1 - 1e-9) > 10).all() for x, _ in lines] == [True] * problems
        for (x, y), (_, own) in zip(lines, table.groupby("problem"), strict=True):
            assert x.tolist() == pytest.approx([tracks.size(own["problem"].iloc[0])[0] * e for e in (0.1, 1.0)])
            assert y.tolist() == own["kept"].tolist()
        # 11.3, 44.2, 113 and 442 lie nearest to these half decades.
        assert median[0] == pytest.approx([10.0, 10**1.5, 100.0, 10**2.5])
        real = table[table["problem"].ne("gen-tiny")].sort_values("reach")["kept"]
        assert list(median[1]) == real.tolist()
        assert list(zero[1]) == [0, 0]
        assert axis.get_ylabel() == ("share of the gain that is kept" if column == HELD else "")
        assert axis.get_xscale() == "log"
    assert figure.data.index.is_unique
    labels = figure.figure.legends[0].get_texts()
    assert [one.get_text() for one in labels] == ["a real problem", "median of the real ones", "a drawn problem"]


@pytest.mark.parametrize(
    ("one", "held", "excess"),
    [
        (Against("a", 4, -0.1249, -0.2049, -0.001, 3, 0), "+12 [0.1, 20] on 4: the default",
         "-0.12 [-0.20, 0.00] on 4: the default"),
        (Against("a", 4, 0.1249, 0.0049, 0.2049, 1, 0), "-12 [-20, -0.5] on 4: the other",
         "0.12 [0.00, 0.20] on 4: the other"),
        (Against("a", 4, 0.0, -0.005, 0.0, 1, 3), "+0 [0, 0] on 4: not distinguishable",
         "0.00 [-0.01, 0.00] on 4: not distinguishable"),
        (Against("a", 4, 0.0, 0.0, 0.0, 0, 4), "it is the default", "it is the default"),
    ],
)  # fmt: skip
def test_an_end_that_is_not_0_is_not_told_as_0(one, held, excess):
    assert (artefacts._against(one, HELD), artefacts._against(one, EXCESS)) == (held, excess)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (Kept("all", 26, 0.87, 0.58, 0.97, 26, 2**-26), "87 % (58 % to 97 %); 26 of 26, p < .001"),
        (Kept("all", 9, 0.995, 0.5, 1.0, 9, 0.00195), "99.5 % (50 % to 100 %); 9 of 9, p = 0.002"),
        (Kept("all", 10, 0.5, 0.5, 0.5, 10, 0.001), "50 % (50 % to 50 %); 10 of 10, p = 0.001"),
        (Kept("all", 0, math.nan, math.nan, math.nan, 0, math.nan), "–"),
    ],
)
def test_what_is_kept_is_told_with_its_quartiles_and_its_chance(one, told):
    assert artefacts._kept(one) == told


def test_the_means_of_a_track_are_of_its_own_seeds(context):
    """Of dp-cd, which is tuned on diabetes-ridge: seeds 0 to 9 choose among nearby values, the others are scored."""
    runs = context.runs[context.runs["problem"].eq("diabetes-ridge")]
    rule = runs["algorithm"].eq("dp-cd") & runs["settings"].str.contains('"clip":0.3,')
    own = runs[rule].sort_values("seed")["excess"].tolist()
    private = runs[runs["algorithm"].eq("private-tuning")]["excess"]
    for track, wanted, seeds in (("default", own[:5], 5), ("nearby", own[10:], 5), ("private", private, 5)):
        table = board.track_means(context, track).set_index(["problem", "algorithm"])
        one = table.loc[("diabetes-ridge", "dp-cd")]
        assert (one["mean"], one["seeds"]) == (pytest.approx(np.mean(wanted)), seeds)
        assert {*table.index.get_level_values("problem")} >= {"diabetes-ridge"}
        assert (("iris", "dp-gd") in table.index) == (track == "default")


def test_a_submission_is_a_line_with_how_it_ran_and_what_it_planned_for(made, monkeypatch):
    rows = pd.DataFrame({"problem": ["a", "b", "b"], "epsilon": [1.0, 2.0, 1.0], "epsilon_planned": [0.5, 2.0, 0.9]})
    manifest = {"title": "Theirs", "author": "Ada", "licence": "", "sha256": {"method.py": "ab" * 32}}
    checked = {"how": "isolated", "code_version": "0.3", "archive_sha256": "cd" * 32}
    found = [SimpleNamespace(manifest=manifest, checked=checked, placed=True, rows=rows),
             SimpleNamespace(manifest=manifest | {"library": "x", "author": "", "licence": "MIT"},
                             checked=checked | {"how": "served"}, placed=False, rows=rows[:1])]  # fmt: skip
    monkeypatch.setattr(artefacts, "submissions", lambda store: found)
    table = made("submitted")
    ends = ["ab" * 8, "0.3", "cd" * 8]
    assert table.frame.to_numpy().tolist() == [
        ["Theirs †", "isolated", "3 on 2 problems", "0.50 to 1.00 of what was asked", "Ada", "–", *ends],
        ["Theirs ‡", "served: no place", "1 on 1 problems", "0.50 to 0.50 of what was asked", "–", "MIT", *ends],
    ]
    assert "None so far" not in table.caption
    found = []
    assert made("submitted").caption.endswith("None so far.")


def test_without_rows_each_artefact_of_the_board_has_a_gap(made, monkeypatch):
    none = {column: made_board(column) for column in (HELD, EXCESS)}
    none = {
        column: replace(one, scores=one.scores[:0], losses=one.losses[:0], choice={}) for column, one in none.items()
    }
    monkeypatch.setattr(artefacts, "board", lambda context, column=EXCESS: none[column])
    monkeypatch.setattr(artefacts, "track_means", lambda context, track: of_track(context, track)[:0])
    rows = ("kept", "held_out", "against", "against_excess", "needed", "places", "price")
    assert {name: made(name).gaps for name in rows} == {name: [f"every row of {name}"] for name in rows}
    heats = [f"heat_{name}" for name in board.LEVELS]
    assert [made(name).gaps for name in heats] == [[f"every cell of {name}"] for name in heats]
    assert len(made("heat_mid").figure.axes) == 1
    assert [line[-1] for line in made("problems").frame.to_numpy()] == ["0", "0", "0"]
    assert made("reach").gaps == ["every line of reach"]
    assert [axis.get_xscale() for axis in made("reach").figure.axes] == ["linear", "linear"]
    assert made("kept").finding == made("price").finding == ""
    assert made("held_out").caption.endswith("protected: none. A method is listed where it runs on all.")
