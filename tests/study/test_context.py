"""The rows of an experiment, of one data set a problem; what is computed of them is computed once."""

import pytest

from dpbench import datasets, experiments
from dpbench.errors import UserError
from dpbench.run.store import Store
from dpbench.study.context import Context, contexts, memoised
from tests.batches import write


def row(algorithm, problem="synthetic", epsilon=1.0, **columns):
    return {"algorithm": algorithm, "problem": problem, "epsilon": epsilon, "seed": 0, "settings": "{}", "timed": 0,
            "status": "done", "excess": 0.5, "relation": "add-remove", "accounting": "bs16",
            "key": f"{algorithm}/{problem}/{epsilon}", **columns}  # fmt: skip


def test_rows_of_one_problem_on_two_data_sets_are_an_error_not_a_mean(tmp_path):
    def context():
        return next(contexts(experiments.get("second_order"), "quick", tmp_path))

    store = Store(tmp_path, "quick", "second_order")
    write(store, [row("dp-gd")], [])
    wanted = context().jobs("fig2")[:2]
    for digest, job in zip(("a" * 64, "b" * 64), wanted, strict=True):
        write(store, [row(job.algorithm, key=job.key, data_sha256=digest)], [])
    with pytest.raises(UserError, match="rows of problem synthetic were made on different data"):
        context().rows("fig2")


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


@pytest.mark.parametrize("fetched", [True, False])
def test_a_gap_is_told_alike_where_the_data_are_fetched_and_where_not(tmp_path, monkeypatch, fetched):
    monkeypatch.setattr(datasets, "available", lambda name: fetched)
    context = Context(experiments.get("second_order"), "full", Store(tmp_path, "full", "second_order"))
    command = "dpbench run --experiment second_order/fig6 --profile full"
    assert context.why_missing("fig6", "protein") == f"not run\ndpbench fetch protein\n{command}"
    assert context.why_missing("fig6", "synthetic") == context.why_missing("fig6") == f"not run\n{command}"
