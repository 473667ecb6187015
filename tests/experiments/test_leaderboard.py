"""The leaderboard's artefacts from a few real runs, and from made-up boards."""

import pandas as pd
import pytest

from dpbench import experiments
from dpbench.experiments.leaderboard import board, tables
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.places import AUTO, NOTHING
from dpbench.run.results import Store
from dpbench.run.runner import run
from dpbench.study.context import Context
from dpbench.study.grid import GridEntry
from dpbench.study.plan import plan
from dpbench.study.style import figure_style

BOARD = experiments.get("leaderboard")
DRAWN = ("answers", "places", "heat_mid", "cost", "duels", "price", "methods", "problems", "fits", "submitted")


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The quick profile's tracks on one problem of each loss."""
    store = Store(tmp_path_factory.mktemp("board"), "quick", "leaderboard")
    names = ("diabetes-ridge", "gen-tiny")
    blocks = [b for b in BOARD.blocks("quick") if b.problems[0] in names]
    for waits in (False, True):
        assert run(plan([b for b in blocks if b.waits == waits], store).runnable, store).failed == 0
    return Context(BOARD, "quick", store)


def test_every_row_is_replace_one_within_its_budget(context):
    runs = context.runs
    assert set(runs["relation"]) == {"replace-one"}
    assert runs["private"].all()
    assert (runs["epsilon_planned"] <= 1 + 1e-6).all()


@pytest.mark.parametrize("name", DRAWN)
def test_artefacts_render_and_without_rows_name_the_command(context, name, tmp_path):
    one = next(a for a in BOARD.artefacts if a.name == name)
    with figure_style():
        output = one.render(context)
        output.save(tmp_path / name, one.title)
        empty = one.render(Context(BOARD, "quick", Store(tmp_path, "quick", "leaderboard")))
        empty.save(tmp_path / f"{name}-empty", one.title)
    assert not output.gaps or name == "cost"
    assert empty.gaps or name in ("problems", "fits", "submitted")
    assert all("dpbench run --experiment leaderboard/" in line for line in empty.gaps)


def test_nothing_and_the_default_are_entrants_of_every_cell(context):
    found = board.board(context)
    for _, cell in found.scores.groupby(["problem", "epsilon"]):
        assert {NOTHING, AUTO} <= set(cell["algorithm"])
    assert found.scores.query("algorithm == 'nothing'")["score"].eq(0).all()
    assert set(found.unpaid) == {"dp-cd"}
    lines = places.standing(found.matrix(1.0), found.unpaid)
    assert next(one.place for one in lines if one.algorithm == "dp-cd") == 0
    assert "¶" in found.label("dp-cd")


def made_up(**scores):
    """A board of one kind: method → its scores on five problems."""
    problems = ["a1a-ridge", "ijcnn-ridge", "digits-ridge", "protein-ridge", "madelon-unit"]
    rows = [(p, 1.0, m, v) for m, values in scores.items() for p, v in zip(problems, values, strict=True)]
    table = pd.DataFrame(rows, columns=["problem", "epsilon", "algorithm", "score"])
    return board.Board(table, pd.DataFrame({"seeds": []}), {}, {}, {"dp-gd": 0.25})


@pytest.mark.parametrize(
    ("scores", "use", "sure"),
    [
        ({"dp-gd": [-2.0, -2.1, -1.9, -2.0, -2.0], "dp-mf": [-1.0, -1.1, -0.9, -1.0, -1.0]}, "DP-GD",
         "5 families; alone"),
        ({"dp-gd": [-2.0, -2.1, -1.9, -2.0, -2.0], "dp-mf": [-1.9, -2.2, -1.9, -2.0, -1.9]}, "DP-GD",
         "5 families; not told apart: DP-MF"),
        ({"dp-gd": [0.5] * 5, "dp-mf": [0.1] * 5}, "nothing: no method is better than w = 0", "5 families; alone"),
        ({"dp-gd": [-2.0, 1.5, -1.0, 0.9, -1.5], "dp-mf": [0.9] * 5}, "DP-GD (not told apart from nothing)",
         "5 families; not told apart: DP-MF"),
    ],
)  # fmt: skip
def test_the_answer_follows_from_the_scores(scores, use, sure):
    found = made_up(**scores, nothing=[0.0] * 5, auto=[0.2] * 5)
    told = tables.answer(found, places.standing(found.matrix(1.0)))
    assert (told[0], told[2]) == (use, sure)
    assert told[3] == "0.20 [0.20, 0.20]"
    assert told[4] == ("0" if use.startswith("nothing") else "0.25")


def test_a_submission_counts_as_missing_on_all_of_a_kind_that_it_has_rows_of():
    from dpbench.leaderboard.submitted import Submitted

    rows = pd.DataFrame({"problem": ["digits-ridge"]})
    one = Submitted({"method": "theirs", "title": "Theirs"}, [], {"placed": True}, rows)
    planned = [("digits-ridge", 1.0, "dp-gd"), ("protein-ridge", 1.0, "dp-gd"), ("a1a", 1.0, "dp-gd")]
    assert board._admitted(one, planned) == [("digits-ridge", 1.0, "theirs"), ("protein-ridge", 1.0, "theirs")]
    assert not Submitted({}, [], {}, rows).placed


def test_the_cost_is_the_least_of_three_times():
    block = next(b for b in BOARD.grid()["full"] if b.timed)
    assert (block.timed, block.seeds, block.epsilon) == (3, 1, [1])
    assert all(
        one.timed == 3 for one in tracks.expand(GridEntry(**{f: getattr(block, f) for f in block.__struct_fields__}))
    )


def test_compaction_drops_the_rows_that_no_grid_asks_for(tmp_path):
    import dpbench

    store = Store(tmp_path, "quick", "leaderboard")
    asked = sorted(plan(BOARD.blocks("quick"), None).keys)[:3]
    row = {"problem": "gen-tiny", "algorithm": "dp-gd", "status": "done", "timed": 0}
    store.write([row | {"key": key} for key in [*asked, "stale"]], [])
    assert dpbench.board_compact(profile="quick", results=tmp_path) == (3, 1)
    assert set(store.runs()["key"]) == set(asked)
    assert dpbench.board_compact(profile="quick", results=tmp_path) == (3, 0)
