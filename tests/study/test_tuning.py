"""The "best" of a grid: over the tuned settings alone."""

import numpy as np
import pandas as pd
import pytest

from dpbench.run.job import make_job
from dpbench.run.row import RUNS
from dpbench.study.tuning import RunColumns, Tuner, best, choose, chosen


def frame(*cases):
    """Rows of dp-gd on synthetic at ε = 1 from (settings of the job, excess); `step` completed as the runner does."""
    rows = []
    for settings, excess in cases:
        losses = np.broadcast_to(excess, (2,)) if np.ndim(excess) == 0 else excess
        for seed, loss in enumerate(losses):
            job = make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=seed, settings=settings)
            T, step = settings.get("T", 100), settings.get("step", 4.0)
            rows.append(
                {"key": job.key, "problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "seed": seed, "timed": 0,
                 "excess": loss, "status": "done", "T": T, "accounting": "bs16",
                 "settings": f'{{"T":{T},"step":{step}}}'}
            )  # fmt: skip
    return pd.DataFrame(rows, columns=list(RUNS))


def tuned(runs, fixed=None, tuned=("T",), **rule):
    columns = RunColumns(
        *(runs[name].astype(object).where(runs[name].notna(), None).tolist() for name in RunColumns._fields)
    )
    return Tuner(columns).best("synthetic", "dp-gd", 1.0, fixed or {}, list(tuned), **rule)


def test_the_lowest_mean_wins():
    assert tuned(frame(({"T": 10}, 0.3), ({"T": 30}, 0.1), ({"T": 100}, 0.2))) == {"T": 30}


def test_a_sweep_over_another_setting_does_not_decide():
    runs = frame(({"T": 10}, 0.3), ({"T": 30}, 0.2), ({"T": 100, "step": 8.0}, 0.1))
    assert tuned(runs) == {"T": 30}
    assert tuned(runs, {"step": 8.0}) == {"T": 100}
    assert tuned(runs, tuned=("T", "step")) == {"T": 100, "step": 8.0}


def test_without_rows_there_is_no_best():
    assert tuned(frame()) is None
    assert tuned(frame(({"T": 10}, 0.3)), {"step": 2.0}) is None


def test_a_diverged_seed_disqualifies_its_setting():
    runs = frame(({"T": 10}, 0.3), ({"T": 30}, 0.1))
    runs.loc[runs["T"].eq(30) & runs["seed"].eq(1), "status"] = "diverged"
    assert tuned(runs) == {"T": 10}


def test_best_values_come_back_as_numbers():
    assert tuned(frame(({"T": 10, "step": 2.0}, 0.3)), tuned=("T", "step"))["step"] == pytest.approx(2.0)


def arrays(losses):
    return {setting: {seed: np.array([loss]) for seed, loss in seeds.items()} for setting, seeds in losses.items()}


def test_settings_are_compared_on_the_seeds_that_all_of_them_have():
    losses = {80: dict.fromkeys(range(5), 0.2) | dict.fromkeys(range(5, 15), 0.0), 300: dict.fromkeys(range(5), 0.1)}
    assert choose(arrays(losses), "none") == (300, 0, [0, 1, 2, 3, 4])
    assert choose(arrays(losses), "halves") == (300, 0, [1, 3])
    assert choose(arrays(losses), 3) == (300, 0, [3, 4])
    assert choose(arrays(losses), 0) is None


def test_a_member_that_diverged_under_one_seed_is_not_chosen():
    sweeps = {"a": {0: np.array([np.nan, 0.3]), 1: np.array([0.1, 0.3])}, "b": {0: np.array([np.nan]), 1: np.zeros(1)}}
    assert choose(sweeps) == ("a", 1, [0, 1])


def test_a_lucky_half_chooses_and_the_other_half_tells():
    """Of equally good settings the minimum over all seeds is below the truth; the held-out score is not."""
    rng = np.random.default_rng(1)
    scores = {"none": [], "halves": []}
    for _ in range(200):
        losses = {T: dict(enumerate(rng.normal(1.0, 1.0, 10))) for T in range(8)}
        for split, found in scores.items():
            winner, _, seeds = choose(arrays(losses), split)
            found.append(np.mean([losses[winner][seed] for seed in seeds]))
    assert np.mean(scores["none"]) < 0.7
    assert np.mean(scores["halves"]) == pytest.approx(1.0, abs=0.1)  # s.e. 0.03


def test_a_grid_still_being_run_is_not_compared():
    losses = {10: dict.fromkeys(range(15), 0.2), 30: dict.fromkeys(range(4), 0.1)}
    assert choose(arrays(losses), "halves")[0] == 10
    assert choose({}, "halves") is None


@pytest.mark.thorough_for("none")
@pytest.mark.parametrize("split", ["none", "halves"])
def test_tables_and_grids_tune_by_one_rule(split):
    """`best` (tables, figures) and `best_settings` (a grid's "best") on rows where seeds, halves and means disagree."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        cases = [({"T": T}, rng.exponential(size=seeds)) for T, seeds in ((10, 15), (30, 9), (100, 5), (300, 2))]
        runs = frame(*cases)
        (row,) = best(runs, split=split).itertuples()
        assert tuned(runs, split=split) == {"T": row.T}


def test_several_rows_of_a_seed_count_as_their_mean_and_all_of_them_are_scored():
    """As an -opt method that is asked for T and for 2T, and runs the same T' twice."""
    rows = pd.DataFrame(
        [("a", 0, 0.1), ("b", 0, 0.2), ("a", 0, 0.5), ("b", 1, 0.2), ("a", 1, 0.2), ("b", 1, 0.3)],
        columns=["setting", "seed", "excess"],
    ).assign(problem="p")
    assert chosen(rows, ["problem"], ["setting"]).index.tolist() == [1, 3, 5]
    assert chosen(rows, ["problem"], ["setting"], split=1)["excess"].tolist() == [0.2, 0.3]
    assert chosen(rows.assign(other=-rows["excess"]), ["problem"], ["setting"], "other").index.tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("losses", "ends"),
    [
        ({3: 0.1, 10: 0.2, 30: 0.3}, (3, "smallest")),
        ({3: 0.2, 10: 0.1, 30: 0.3}, (10, "")),
        ({3: 0.3, 10: 0.2, 30: 0.1}, (30, "largest")),
        ({1: 0.1, 10: 0.2}, (1, "")),  # no T is smaller
        ({10: 0.1}, (10, "")),  # nothing else was tried
        ({3: 0.1, 10: 0.1}, (3, "smallest")),  # of equals the smallest
    ],
)
def test_a_table_says_where_the_best_T_ends_the_grid(losses, ends):
    runs = frame(*(({"T": T}, loss) for T, loss in losses.items()))
    (row,) = best(runs).itertuples()
    assert (row.T, row.at_end) == ends
    assert row.seeds == 2


@pytest.mark.parametrize(
    ("sizes", "compared"),
    [
        ((5, 10), True),
        ((4, 10), False),
        ((4, 8), True),
        ((3, 8), False),
        ((1, 2), True),
        ((0, 4), False),
        ((5, 99), True),
    ],
)
def test_a_setting_is_compared_with_half_the_seeds_of_another_or_five(sizes, compared):
    few, many = sizes
    losses = arrays({"few": dict.fromkeys(range(few), 0.1), "many": dict.fromkeys(range(many), 0.2)})
    assert choose(losses)[0] == ("few" if compared else "many")
