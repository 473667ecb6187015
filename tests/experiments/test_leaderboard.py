"""The leaderboard's artefacts from a few real runs, and from made-up boards."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import experiments
from dpbench.experiments.leaderboard import artefacts, board
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, NOTHING
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
