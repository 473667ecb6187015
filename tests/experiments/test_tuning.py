"""The "best" of a grid: over the tuned settings alone."""

import pandas as pd
import pytest

from dpbench.experiments.tuning import best_settings
from dpbench.jobs import make_job
from dpbench.results import RUNS


def frame(*cases):
    """Rows of dp-gd on synthetic at ε = 1 from (settings of the job, excess); `step` completed as the runner does."""
    rows = []
    for settings, excess in cases:
        for seed in range(2):
            job = make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=seed, settings=settings)
            T, step = settings.get("T", 100), settings.get("step", 4.0)
            rows.append(
                {"key": job.key, "problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "seed": seed, "timed": 0,
                 "excess": excess, "status": "done", "T": T, "accounting": "bs16",
                 "settings": f'{{"T":{T},"step":{step}}}'}
            )  # fmt: skip
    return pd.DataFrame(rows, columns=list(RUNS))


def tuned(runs, fixed=None, tuned=("T",)):
    return best_settings(runs, "synthetic", "dp-gd", 1.0, fixed or {}, list(tuned))


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
