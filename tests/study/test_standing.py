"""Runs are counted once each, however many blocks ask for them, and each for what it is."""

from dpbench.run.job import Series, make_job
from dpbench.study.standing import _Count


def series(seeds, repetitions=(0,), T=3, trace=False, problem="synthetic"):
    job = make_job(problem=problem, algorithm="dp-gd", epsilon=1.0, seed=0, settings={"T": T}, trace=trace)
    return Series(job, range(seeds), list(repetitions))


def test_each_run_counts_once_and_for_what_it_is():
    one = series(6)
    found = dict(zip(one.keys, ["done", "diverged", "out of reach", "defect"], strict=False))
    count = _Count(found)
    assert count.of([one]) == (6, 2, 1, 1, {"synthetic"})
    assert count.of([one, series(6, trace=True)]) == (6, 2, 1, 1, {"synthetic"})  # a trace makes no other run
    assert count.of([one, series(8)]) == (8, 4, 1, 1, {"synthetic"})  # eight seeds, of which six are those of `one`
    assert count.of([one, series(6, [1, 2])]) == (18, 14, 1, 1, {"synthetic"})
    assert count.of([one, series(6, T=4)]) == (12, 8, 1, 1, {"synthetic"})


def test_only_problems_with_missing_runs_are_unfinished():
    one, other = series(2), series(2, problem="a1a")
    assert _Count(dict.fromkeys(one.keys, "done")).of([one, other]) == (4, 2, 0, 0, {"a1a"})


def test_the_keys_of_a_series_are_those_of_its_jobs():
    one = series(3, [1, 2])
    assert one.keys == [job.key for job in one.jobs]
