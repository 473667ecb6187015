"""The rows of an experiment, of one data set a problem; what is computed of them is computed once."""

import pandas as pd
import pytest

from dpbench import datasets, experiments
from dpbench.errors import UserError
from dpbench.run.store import Store
from dpbench.study.context import Context, contexts, memoised
from dpbench.study.grid import GridEntry
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


def block(**more):
    """A block of the artefact "t", whose rows `behind` tells of."""
    whole = {"problems": ["synthetic", "a1a"], "algorithms": ["dp-gd", "dp-sgd"], "epsilon": [1.0], "seeds": 2}
    return GridEntry(**whole | {"artefacts": ["t"]} | more)


TUNED = {"settings": {"T": "best", "step": ["best"], "clip": "best"}}
TRIES = block(artefacts=[], problems=["adult"], settings={"T": [3, 5]})


@pytest.mark.parametrize(
    ("blocks", "rows", "told"),
    [
        ([block()], [row("dp-gd"), row("dp-gd", seed=1)],
         "n = 10,000; 2 seeds; accounting bs16; add-remove neighbours"),
        ([block()], [row("dp-gd")], "n = 10,000; 1 seed; accounting bs16; add-remove neighbours"),
        ([block()], [row("dp-gd"), row("dp-sgd"), row("dp-sgd", seed=1), row("dp-gd", "a1a", accounting="tight")],
         "n = 10,000 to 30,956; 1 to 2 seeds; accounting bs16 or tight; add-remove neighbours"),
        # Of the timed runs alone where there are no others; those of other problems and methods are not shown.
        ([block()], [row("dp-gd"), row("dp-gd", timed=1, seed=1), row("aop", seed=2), row("dp-gd", "adult", seed=3)],
         "n = 10,000; 1 seed; accounting bs16; add-remove neighbours"),
        ([block()], [row("dp-gd", timed=1, seed=seed, relation=None) for seed in (1, 2, 2)],
         "n = 10,000; 2 seeds; accounting bs16; unknown neighbours"),
        ([block()], [row("dp-gd", seed=seed, accounting=None) for seed in (0, 1)],
         "n = 10,000; 2 seeds; accounting unknown; add-remove neighbours"),
        ([block(problems=["nowhere"])], [row("dp-gd", "nowhere")], "1 seed; accounting bs16; add-remove neighbours"),
        ([block()], [], ""),
        # Blocks that only try settings are not of the artefact.
        ([block(**TUNED), block(settings={"T": "best"}), TRIES], [row("dp-gd"), row("dp-gd", "adult")],
         "n = 10,000; 1 seed; accounting bs16; add-remove neighbours; "
         "T, clip tuned to the lowest mean, on the same seeds (not private)"),
        ([block(**TUNED, held_out=True)], [row("dp-gd")],
         "n = 10,000; 1 seed; accounting bs16; add-remove neighbours; "
         "T, clip tuned to the lowest mean, chosen on half of the seeds, scored on the others (not private)"),
        ([TRIES], [row("dp-gd"), row("dp-gd", "adult")], "n = 45,222; 1 seed; accounting bs16; add-remove neighbours"),
    ],
)  # fmt: skip
def test_what_is_behind_an_artefact_is_told_in_a_sentence(monkeypatch, blocks, rows, told):
    monkeypatch.setattr(Context, "blocks", lambda context, artefact: blocks)
    monkeypatch.setattr(Context, "rows", lambda context, artefact: pd.DataFrame(rows, columns=[*row("")]))
    assert Context(None, "quick", None).behind("t") == (f"Rows: {told}." if told else "")


def test_a_gap_names_the_command_that_fills_it():
    context = Context(experiments.get("second_order"), "full", None)
    run = "dpbench run --experiment second_order/fig2 --profile full"
    assert context.command("") == "dpbench run --experiment second_order --profile full"
    assert context.gap("fig2", "a1a") == f"a1a: {run}"
    assert context.why_missing("fig2", "covertype12-logistic") == f"not run\ndpbench fetch covertype12\n{run}"
