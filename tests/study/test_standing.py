"""Runs are counted once each, however many blocks ask for them, and each for what it is."""

import json
import re
import shutil
from pathlib import Path

import pytest

from dpbench import experiments
from dpbench.run import runner
from dpbench.run.job import JobSeries, make_job
from dpbench.run.row import Point, Row
from dpbench.run.store import Ended, Store
from dpbench.study.grid import GridEntry
from dpbench.study.plan import RunCount, plan, run_counts

ROOT = Path(__file__).parents[2]


def series(seeds, repetitions=(0,), T=3, trace=False, problem="synthetic"):
    job = make_job(problem=problem, algorithm="dp-gd", epsilon=1.0, seed=0, settings={"T": T}, trace=trace)
    return JobSeries(job, range(seeds), list(repetitions))


def test_each_run_counts_once_and_for_what_it_is():
    one = series(6)
    found = dict(zip(one.keys, ["done", "diverged", "out of reach", "defect"], strict=False))
    count = RunCount(Ended(found, lambda: set(one.keys[:1])))
    assert count.of([one])[:2] == ((6, 2, 1, 1), {"synthetic"})
    assert count.of([one, series(6, trace=True)])[:2] == (
        (6, 3, 1, 1),
        {"synthetic"},
    )  # the same: one has no trace
    assert count.of([series(6, trace=True)])[:2] == ((6, 3, 1, 1), {"synthetic"})
    assert count.of([one, series(8)])[:2] == (
        (8, 4, 1, 1),
        {"synthetic"},
    )  # of its seeds six are those of `one`
    assert count.of([one, series(6, [1, 2])])[:2] == ((18, 14, 1, 1), {"synthetic"})
    assert [count.of([series(n, T=4)])[0][0] for n in range(1, 40)] == [*range(1, 40)]  # each is freed before the next
    assert count.of([one, series(6, T=4)])[:2] == ((12, 8, 1, 1), {"synthetic"})


def test_the_cost_is_that_of_the_missing_runs_alone():
    def hours(count, *of):
        return count.of(of)[2]

    one, longer = series(6), series(6, T=300)
    nothing = RunCount(Ended({}, set))
    assert hours(nothing, longer) > 50 * hours(nothing, one) > 0
    half = RunCount(Ended(dict.fromkeys(one.keys[:3], "done"), set))
    assert hours(half, one) == hours(nothing, one) / 2
    assert hours(half, one, one) == hours(half, one)
    assert hours(RunCount(Ended(dict.fromkeys(one.keys, "done"), set)), one) == 0


def test_only_problems_with_missing_runs_are_unfinished():
    one, other = series(2), series(2, problem="a1a")
    assert RunCount(Ended(dict.fromkeys(one.keys, "done"), set)).of([one, other])[:2] == ((4, 2, 0, 0), {"a1a"})


def test_the_keys_of_a_series_are_those_of_its_jobs():
    one = series(3, [1, 2])
    assert one.keys == [job.key for job in one.jobs]


def test_run_starts_as_many_runs_as_status_and_pages_count(tmp_path, monkeypatch):
    """Also of a run whose row is there and whose trace is not."""
    blocks = [
        GridEntry(artefacts=["a"], problems=["synthetic"], algorithms=["dp-gd"], epsilon=[1.0], seeds=4,
                  settings={"T": 3}, trace=trace)
        for trace in (False, True)
    ]  # fmt: skip
    store = Store(tmp_path, "quick", "made_up")
    first, *_ = keys = plan(blocks, store).series[0].keys
    rows = zip(keys, ["done", "done", "defect"], strict=False)
    store.write([Row(key=key, status=status) for key, status in rows], [Point(key=first, iteration=0)])
    planned, started = plan(blocks, store), []
    monkeypatch.setattr(runner, "batches", lambda jobs, workers=1: started.extend(jobs) or [])
    runner.run(planned.jobs, store)
    (whole, missing, failed, beyond), *_ = RunCount(store.ended()).of(planned.series)
    assert (whole, missing, failed, beyond) == (4, 2, 1, 0)
    assert {job.key for job in started} == {*keys} - {first}
    assert runner.estimate(planned.jobs, store, 1) > runner.estimate(planned.jobs[:1], store, 1)


@pytest.mark.thorough_for("second_order")
@pytest.mark.parametrize("name", [one for one in experiments.BUILTIN if one != "leaderboard"])
def test_status_run_and_the_committed_pages_count_the_same_rows(name, tmp_path, monkeypatch):
    """Of every artefact of a paper; `run` is asked for the smallest of those that lack some, or of all."""
    shutil.copytree(ROOT / "results" / "full" / name, tmp_path / "full" / name)
    experiment, store = experiments.get(name), Store(tmp_path, "full", name)
    page = json.loads((ROOT / "figures" / "full" / name / "artefacts.json").read_text(encoding="utf-8"))["artefacts"]
    gaps = {one["name"]: [gap for gap in one["gaps"] if "dpbench run" in gap] for one in page}
    counts = {one.artefact.partition("/")[2]: one for one in run_counts(experiment, "full", store)}
    assert len(counts) > 4
    for artefact, count in counts.items():
        told = [int(gap.split()[0].replace(",", "")) for gap in gaps[artefact] if re.match(r"[\d,]+ of the ", gap)]
        assert told == [count.missing] * bool(count.missing), artefact
        assert count.missing or not gaps[artefact], artefact  # a gap that no run fills is none
    least = min(counts, key=lambda one: (not counts[one].missing, counts[one].done))
    planned, started = plan(experiment.blocks("full", least), store), []
    monkeypatch.setattr(runner, "batches", lambda jobs, workers=1: started.extend(jobs) or [])
    monkeypatch.setattr(runner, "_heal", lambda jobs: None)
    runner.run(planned.jobs, store)
    assert len(started) == counts[least].missing + counts[least].failed
