"""Rows of one's own beside an experiment's: in every artefact that has their problem and ε, and nowhere else."""

import pytest

from dpbench import experiments
from dpbench.errors import UserError
from dpbench.run.store import Store
from dpbench.study.context import Context, contexts, memoised
from tests.batches import write


def row(algorithm, problem="synthetic", epsilon=1.0, **columns):
    return {"algorithm": algorithm, "problem": problem, "epsilon": epsilon, "seed": 0, "settings": "{}", "timed": 0,
            "status": "done", "excess": 0.5, "relation": "add-remove", "accounting": "bs16",
            "key": f"{algorithm}/{problem}/{epsilon}", **columns}  # fmt: skip


@pytest.fixture
def folders(tmp_path):
    write(Store(tmp_path, "quick", "second_order"), [row("dp-gd")], [])
    mine = Store(tmp_path, "adhoc", "mine")
    trace = {"key": "mine/synthetic/1.0", "iteration": 1, "passes": 1.0, "excess": 0.2}
    write(mine, [row("mine"), row("mine", epsilon=0.77), row("mine", problem="log1"), row("dp-gd", seed=9)], [trace])
    return tmp_path, mine.folder


def context(folders, beside=()):
    (found,) = contexts(experiments.get("second_order"), "quick", folders[0], beside)
    return found


def test_they_join_where_problem_and_epsilon_are_asked_for(folders):
    alone, together = context(folders), context(folders, [folders[1]])
    assert set(together.rows("fig2")["algorithm"]) - set(alone.rows("fig2")["algorithm"]) == {"mine"}
    assert len(together.rows("fig2").query("algorithm == 'mine'")) == 1  # not ε = 0.77, not log1, not again dp-gd
    assert together.drawn_beside("fig2") == ["mine (add-remove, bs16 accounting)"]
    assert together.algorithms("fig2") == [*alone.algorithms("fig2"), "mine"]
    assert not alone.drawn_beside("fig2")
    traced = together.traces(together.rows("fig2").query("algorithm == 'mine'"))
    assert list(traced["excess"]) == [0.2]


def test_rows_of_one_problem_on_two_data_sets_are_an_error_not_a_mean(folders):
    store = Store(folders[0], "quick", "second_order")
    wanted = context(folders).jobs("fig2")[:2]
    for digest, job in zip(("a" * 64, "b" * 64), wanted, strict=True):
        write(store, [row(job.algorithm, key=job.key, data_sha256=digest)], [])
    with pytest.raises(UserError, match="rows of problem synthetic were made on different data"):
        context(folders).rows("fig2")


def test_a_folder_without_rows_is_named(folders, tmp_path):
    with pytest.raises(UserError, match=r"nothing has no rows; give a folder like results/adhoc"):
        context(folders, [tmp_path / "nothing"])


def test_figures_of_the_papers_are_not_overwritten():
    import dpbench

    with pytest.raises(UserError, match="give a folder of your own"):
        dpbench.report(beside=["results/adhoc/mine"])


def test_what_is_kept_is_computed_once_for_each_context_and_arguments(tmp_path):
    asked = []

    @memoised
    def found(context, name, *, times=1):
        asked.append(name)
        return [context.profile, name * times]

    one, other = (Context(None, profile, Store(tmp_path, profile, "leaderboard")) for profile in ("quick", "full"))
    assert found(one, "a") is found(one, "a")
    assert [found(one, "a"), found(other, "a"), found(one, "b"), found(one, "a", times=2)] == [
        ["quick", "a"], ["full", "a"], ["quick", "b"], ["quick", "aa"]
    ]  # fmt: skip
    assert asked == ["a", "a", "b", "a"]
