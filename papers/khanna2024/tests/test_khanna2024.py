"""The track runs, shares its keys with the leaderboard, and is judged."""

import dpbench
from dpbench import datasets, experiments
from dpbench.study.context import contexts
from dpbench.study.plan import plan


def test_its_runs_are_the_leaderboards_own():
    ours, board = experiments.get("khanna2024"), experiments.get("leaderboard")
    keys = plan([one for one in ours.blocks("full") if one.problems == ["gen-wide"]], None).keys
    assert keys
    assert keys <= plan([one for one in board.blocks("full", "places") if one.problems == ["gen-wide"]], None).keys


def test_the_quick_profile_is_drawn_and_judged(tmp_path):
    if not datasets.available("madelon"):
        return
    runs = dpbench.run_experiment("khanna2024", profile="quick", results=tmp_path, jobs=1)
    assert set(runs.summary.statuses) == {"done"}
    one = experiments.get("khanna2024")
    (context,) = contexts(one, "quick", tmp_path)
    figure, table = (artefact.render(context) for artefact in one.artefacts)
    assert not figure.gaps
    assert table.frame["family"].tolist() == ["coordinate descent", "Frank-Wolfe"]
    judged = dpbench.scorecard("khanna2024", profile="quick", results=tmp_path).verdicts
    assert judged["verdict"].iloc[0] in ("held", "not held")
