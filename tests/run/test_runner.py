"""Resuming, batching, and what happens when workers die."""

import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dpbench import cli
from dpbench.algorithms.gradient_descent import DPGradientDescent
from dpbench.datasets import own
from dpbench.errors import UserError
from dpbench.run import cluster, execute, executors, runner
from dpbench.run.bind import BoundRun
from dpbench.run.job import make_job
from dpbench.run.runner import Pace, seconds
from dpbench.run.store import Ended, Store
from tests import processes
from tests.batches import write


def jobs(seeds=4, T=20, **more):
    given = {"problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0} | more
    return [make_job(seed=seed, settings={"T": T}, **given) for seed in range(seeds)]


def grid():
    """A few batches of different cost: two algorithms, two T."""
    return [
        *jobs(4, 20),
        *jobs(4, 50),
        *jobs(3, 3, algorithm="dp-newton-hess-clip"),
        *jobs(3, 2, algorithm="dp-newton-qu-add", trace=True),
    ]


def values(store):
    runs = store.runs().sort_values("key")
    return runs.drop(columns=["experiment", "code_version"]).to_json(orient="records")


@pytest.mark.thorough
def test_same_bytes_for_one_worker_and_two(tmp_path):
    one, two = Store(tmp_path, "one", "e"), Store(tmp_path, "two", "e")
    runner.run(grid(), one, workers=1)
    runner.run(grid(), two, workers=2)
    assert values(one) == values(two)
    assert one.traces().to_json() == two.traces().to_json()


def test_a_result_does_not_depend_on_its_batch(tmp_path):
    together, apart = Store(tmp_path, "a", "e"), Store(tmp_path, "b", "e")
    runner.run(jobs(4), together)
    for job in jobs(4):
        runner.run([job], apart)
    left, right = (s.runs().sort_values("key")["objective"].to_numpy() for s in (together, apart))
    np.testing.assert_allclose(left, right, rtol=1e-9)


def test_finished_runs_are_found_and_failed_ones_tried_again(tmp_path):
    store = Store(tmp_path, "p", "e")
    first = runner.run(jobs(3), store)
    assert (first.found, first.statuses["done"]) == (0, 3)
    again = runner.run(jobs(5), store)
    assert (again.found, again.statuses["done"]) == (3, 2)
    assert len(store.runs()) == 5


def test_a_trace_that_is_asked_for_later_is_made(tmp_path):
    store = Store(tmp_path, "p", "e")
    runner.run(jobs(1), store)
    assert store.traces().empty
    runner.run(jobs(1, trace=True), store)
    trace = store.traces()
    assert trace["iteration"].max() == 20
    assert trace.sort_values("iteration")["excess"].iloc[-1] == pytest.approx(store.runs()["excess"].iloc[0])
    assert len(store.runs()) == 1


def test_rows_say_what_was_spent_and_under_what(tmp_path):
    store = Store(tmp_path, "p", "e")
    runner.run(jobs(1) + jobs(1, accounting="tight"), store)
    for row in store.rows(""):
        assert row.relation == "add-remove"
        assert row.accounting in ("bs16", "tight")
        assert row.private
        assert row.delta == pytest.approx(1e-8)
        assert 0.95 <= row.epsilon_accounted <= 1 + 1e-6
        assert row.epsilon_planned <= row.epsilon_accounted * (1 + 1e-6)
        assert row.epsilon_planned > (0.95 if row.accounting == "tight" else 0.7)
        assert row.checked_by
        assert row.seconds is None
        assert row.settings["step"] == pytest.approx(4.0, rel=1e-6)
        assert len(row.data_sha256) == 64


@pytest.mark.thorough
def test_only_runs_that_were_timed_alone_carry_seconds(tmp_path):
    store = Store(tmp_path, "p", "e")
    runner.run(jobs(1) + jobs(1, timed=1) + jobs(1, timed=2), store, workers=2)
    runs = store.runs().set_index("timed")
    assert np.isnan(runs.loc[0, "seconds"])
    assert (runs.loc[[1, 2], "seconds"] > 0).all()
    assert runs["objective"].nunique() == 1


def test_threads_that_share_a_blas_each_have_one_of_its_threads(monkeypatch):
    """A batch that ends must not give those that still run more."""
    widths = []

    def slow(batch):
        rows = execute.execute(batch)
        time.sleep(0.2)  # others of the first round have ended by now, and with them their own limits
        widths.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return rows

    monkeypatch.setattr(cluster, "execute", slow)
    with threadpool_limits(2):
        todo = [[job] for job in jobs(4)]
        assert len(list(executors.results(todo, executors.Local(2, "threading")))) == 4
    assert set(widths) == {1}


@pytest.mark.parametrize(("limit", "expected"), [(10.0, 2.0), (0.5, 1.0)])
def test_a_short_timed_run_is_measured_the_second_time(limit, expected, monkeypatch):
    made = []

    def run(*arguments, **options):
        made.append(1)
        return real(*arguments, **options)._replace(seconds=float(len(made)))

    real = BoundRun.run
    monkeypatch.setattr(BoundRun, "run", run)
    monkeypatch.setattr(execute, "REHEARSED", limit)
    rows, _ = execute.execute(jobs(1, timed=1))
    assert [row.seconds for row in rows] == [expected]
    made.clear()
    execute.execute(jobs(1))
    assert len(made) == 1


def test_a_failing_job_is_a_row_and_the_sweep_goes_on(tmp_path):
    store = Store(tmp_path, "p", "e")
    bad = [make_job(problem="synthetic", algorithm="dp-newton", epsilon=1, seed=0, settings={"lambda0": 1e-9, "T": 1})]
    summary = runner.run(bad + jobs(2), store)
    assert summary.failed == 1
    assert summary.statuses["done"] == 2
    row = store.runs().query("status == 'refused'").iloc[0]
    assert "1/(4n)" in row.error


EXITING = """
import os
from dpbench.algorithms import registry
from dpbench.algorithms.base import Algorithm, Disclosure
class Exiting(Algorithm):
    name = "exiting"
    discloses = (Disclosure("w", "the iterate"),)
    def run(self, problem, W, mechanisms, settings, trace):
        {ends}
"""


@pytest.mark.thorough_for("raise SystemExit*", "os.closerange*", "registry.EXIT*")
@pytest.mark.parametrize(("ends", "status", "told"), [
    ("raise SystemExit(0)", "defect", "SystemExit: 0"), ("raise OSError('a\\x1b[2Jb')", "defect", "OSError: a [2Jb"),
    ("raise KeyboardInterrupt", "defect", "KeyboardInterrupt"),
    ("os._exit(0)", "defect", "SystemExit: 0"), ("registry.EXIT(0)", "died", "died 3 times (it ended with 0)"),
    ("os.closerange(3, 64)", "died", "its worker process died 3 times"),
])  # fmt: skip
def test_a_method_that_exits_is_a_failed_row_and_no_end_of_the_command(tmp_path, ends, status, told):
    """Else `dpbench run` ended with that code, 0, and said nothing."""
    (tmp_path / "exiting.py").write_text(EXITING.format(ends=ends))
    store = Store(tmp_path, "p", "e")
    job = make_job(problem="synthetic", algorithm=f"{tmp_path / 'exiting.py'}:Exiting", epsilon=1, seed=0)
    summary = runner.run([job, *jobs(1)], store)
    assert summary.statuses == {status: 1, "done": 1}
    assert told in summary.failures[0].error


@pytest.mark.thorough
def test_a_method_that_kills_its_group_ends_its_own_run_alone(tmp_path):
    """os.kill(0, 9) took the command with it, without a word."""
    (tmp_path / "killing.py").write_text(EXITING.format(ends="os.kill(0, 9)"))
    command = ["run", "--algo", "killing.py:Exiting", "--dataset", "synthetic", "--seeds", "1", "--jobs", "1"]
    process = processes.start(tmp_path, cli.main, command, log=tmp_path / "log")
    process.join(60)
    assert process.exitcode == 1
    assert "its worker process died 3 times (it ended with -9)" in (tmp_path / "log").read_text()


def test_a_file_that_ends_its_process_is_a_mistake_of_its_own(tmp_path):
    """In the process of the command, which would end with 0 and no word."""
    (tmp_path / "ending.py").write_text("import os\nos._exit(0)\n")
    command = [sys.executable, "-m", "dpbench", "run", "--algo", "ending.py:Ending", "--dataset", "synthetic"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, "cannot be imported: SystemExit: 0" in ended.stderr) == (2, True), ended


def test_without_room_for_a_process_of_its_own_a_method_does_not_wait_for_it(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(EXITING.format(ends="pass"))
    job = make_job(problem="synthetic", algorithm=f"{tmp_path / 'mine.py'}:Exiting", epsilon=1, seed=0)
    execute.THEIRS.end()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (execute.WORKER - 1, -1))
    with pytest.raises(MemoryError, match="does not fit into the limit"):
        runner.run([job], Store(tmp_path, "p", "e"))


def test_a_method_that_forks_answers_once(tmp_path):
    """The fork's answer was taken for that to the next job."""
    ends = "os.fork(); return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label='w')"
    (tmp_path / "forking.py").write_text(EXITING.format(ends=ends))
    store, file = Store(tmp_path, "p", "e"), f"{tmp_path / 'forking.py'}:Exiting"
    todo = [make_job(problem="synthetic", algorithm=file, epsilon=epsilon, seed=0) for epsilon in (1.0, 2.0, 3.0)]
    assert runner.run(todo, store).statuses == {"done": 3}
    assert set(store.runs()["epsilon"]) == {1.0, 2.0, 3.0}


PATCHING = """
from dpbench.algorithms import gradient_descent
from dpbench.algorithms.base import Algorithm, Disclosure
class Patching(Algorithm):
    name = "patching"
    discloses = (Disclosure("w", "the iterate"),)
    def run(self, problem, W, mechanisms, settings, trace):
        print("run")
        return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label="w")
gradient_descent.DPGradientDescent.run = Patching.run
"""


@pytest.mark.parametrize("how", [
    {},
    pytest.param({"workers": 2}, marks=pytest.mark.thorough),
    pytest.param({"workers": 2, "backend": "threading"}, marks=pytest.mark.thorough),
])  # fmt: skip
def test_code_of_others_runs_in_no_process_in_which_a_built_in_method_does(tmp_path, monkeypatch, how):
    """It may change the built-in method's code, whose row would say *built in* and be used again."""
    (tmp_path / "patching.py").write_text(PATCHING)
    todo = [*jobs(2), *(msgspec.structs.replace(job, timed=1) for job in jobs(1))]
    before, after = Store(tmp_path, "before", "e"), Store(tmp_path, "after", "e")
    runner.run(todo, before)
    monkeypatch.setattr(DPGradientDescent, "run", DPGradientDescent.run)  # so that it is as it was when the test ends
    theirs = make_job(problem="synthetic", algorithm=f"{tmp_path / 'patching.py'}:Patching", epsilon=1, seed=0)
    runner.run([theirs], after, **how)
    runner.run([theirs, *todo], after, **how)
    rows = after.runs().set_index("key")
    assert rows["code"].to_dict() == {theirs.key: "foreign code, trusted"} | {one.key: "built in" for one in todo}
    made = before.runs().set_index("key")["objective"]
    assert (rows["objective"][made.index] == made).all()
    execute.THEIRS.end()  # the next test's method may be a child of dp-gd


KILLER = """
import os, pathlib, signal
from dpbench.algorithms.base import Algorithm, Disclosure
class Killer(Algorithm):
    name = "{name}"
    discloses = (Disclosure("w", "the iterate"),)
    def run(self, problem, W, mechanisms, settings, trace):
        mark = pathlib.Path(__file__).with_suffix(".died")
        if not mark.exists() or {always}:
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label="w")
"""


@pytest.mark.thorough
def test_workers_that_die_lose_nothing_else(tmp_path):
    """One dies under a job that is sound at its second attempt, one under each attempt of another."""
    (tmp_path / "once.py").write_text(KILLER.format(name="once", always=False))
    (tmp_path / "always.py").write_text(KILLER.format(name="always", always=True))
    store = Store(tmp_path, "p", "e")
    killers = [
        make_job(problem="synthetic", algorithm=f"{tmp_path / name}.py:Killer", epsilon=1.0, seed=0)
        for name in ("once", "always")
    ]
    summary = runner.run([*jobs(2, 20), *killers, *jobs(2, 50), *jobs(2, 70)], store, workers=2)
    statuses = store.runs().set_index("algorithm")["status"].to_dict()
    assert statuses == {"dp-gd": "done", "once": "done", "always": "died"}
    assert summary.statuses == {"done": 7, "died": 1}
    assert "worker process died 3 times" in store.runs().query("status == 'died'")["error"].iloc[0]


def test_batches_start_with_the_costliest_and_respect_memory():
    todo = runner.batches([*jobs(2, 5), *jobs(2, 500), *jobs(150, 7)])
    costs = [sum(runner.work(job) for job in batch) for batch in todo]
    assert costs == sorted(costs, reverse=True)
    assert max(len(batch) for batch in todo) <= 128
    assert sum(len(batch) for batch in todo) == 154


def test_the_parts_of_a_run_are_all_of_it_once_and_cut_no_batch(tmp_path):
    jobs = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=s, settings={"T": T})
        for T in range(1, 20)
        for s in range(3)
    ]
    parts = [runner.part_of(jobs, f"{i}/4") for i in range(1, 5)]
    assert sorted(job.key for part in parts for job in part) == sorted(job.key for job in jobs)
    assert all(0 < len(part) < len(jobs) for part in parts)
    groups = [{job.group for job in part} for part in parts]
    assert sum(map(len, groups)) == 19
    for i in (1, 2):
        store = Store(tmp_path, "quick", "e")
        assert runner.run(jobs[:9], store, part=f"{i}/2").found == 0
    assert len(store.runs()) == 9
    for wrong in ("0/4", "5/4", "2", "a/b", "-1/4"):
        with pytest.raises(UserError, match="part must be I/N"):
            runner.part_of(jobs, wrong)


def test_no_batch_is_more_than_a_quarter_of_an_even_share_of_many_workers():
    many = [*jobs(60, 100), *jobs(60, 7)]
    whole = sum(map(runner.work, many))
    for workers in (2, 5):
        todo = runner.batches(many, workers)
        assert max(sum(map(runner.work, batch)) for batch in todo) <= whole / workers / 4
        assert sum(map(len, todo)) == len(many)


def test_a_pool_of_processes_asks_for_such_batches_and_a_single_process_does_not():
    with executors.open_executor(jobs=3) as three, executors.open_executor(jobs=1) as one:
        assert (three.shares(), one.shares()) == (3, 1)
    with executors.open_executor("threading", 2) as two:
        assert two.shares() == 2


def test_progress_reaches_one():
    seen = []

    class Memory:
        def ended(self):
            return Ended({}, set)

        def prepare(self):
            pass

        def write(self, runs, traces):
            pass

        def compact(self):
            pass

    runner.run(jobs(2, 3) + jobs(2, 4), Memory(), report=seen.append)
    assert [p.done for p in seen] == [2, 4]
    assert seen[-1].share == pytest.approx(1.0)


def test_jobs_of_different_epsilon_advance_together_and_give_what_they_give_alone(tmp_path):
    mixed = [job for epsilon in (0.1, 1.0, 10.0) for job in jobs(2, 10, epsilon=epsilon)]
    assert len(runner.batches(mixed)) == 1
    together, apart = Store(tmp_path, "a", "e"), Store(tmp_path, "b", "e")
    runner.run(mixed, together)
    for job in mixed:
        runner.run([job], apart)
    left, right = (s.runs().sort_values("key") for s in (together, apart))
    np.testing.assert_allclose(left["objective"], right["objective"], rtol=1e-9)
    for column in ("epsilon", "epsilon_planned", "epsilon_accounted", "delta"):
        np.testing.assert_allclose(left[column], right[column], rtol=1e-12)


def test_data_without_an_optimum_leave_the_excess_empty(monkeypatch, tmp_path):
    from dpbench.problems import Problem
    from dpbench.problems.optimum import NoOptimum
    from dpbench.run import execute

    def separable(self):
        raise NoOptimum("separable")

    monkeypatch.setattr(Problem, "optimum", separable)
    execute._optimum.cache_clear()
    store = Store(tmp_path, "p", "e")
    runner.run(jobs(1, 3), store)
    execute._optimum.cache_clear()
    row = store.runs().iloc[0]
    assert row.status == "done"
    assert np.isnan(row.excess)
    assert row.objective > 0


def interrupted_worker():
    """What a worker does before its first batch, then Ctrl-C, which a terminal sends to every process."""
    execute.end_with(os.getppid())
    os.kill(os.getpid(), signal.SIGINT)
    Path("goes on").touch()


def test_between_two_batches_an_interrupt_is_the_drivers_to_answer(tmp_path):
    process = processes.start(tmp_path, interrupted_worker, log=tmp_path / "log")
    process.join(60)
    assert (process.exitcode, (tmp_path / "log").read_text()) == (0, "")
    assert (tmp_path / "goes on").exists()


@pytest.mark.thorough
def test_workers_look_for_data_where_the_driver_does_now(tmp_path, monkeypatch):
    """They outlive a call, and DPBENCH_DATA may be another at the next."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2))
    for folder in ("here", "there"):
        monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / folder))
        name = own.keep(X, np.sign(X[:, 0]), folder, "made up")
        store = Store(tmp_path, folder, "e")
        assert runner.run(jobs(4, 3, problem=name), store, workers=2).failed == 0


def test_a_pace_counts_runs_where_flops_say_nothing():
    """99 % of the flops in two minutes, then 3,239 small runs of 6 seconds each: hours are left, not a second."""
    now = [0.0]
    pace = Pace(1.0, 3360, clock=lambda: now[0])
    assert math.isinf(pace.left)
    now[0] += 120
    pace.ended(0.99, 120)
    for _ in range(3):
        now[0] += 6
        pace.ended(0.01 / 3240, 1)
    assert pace.left == pytest.approx(6 * 3237, rel=0.25)
    assert pace.share < 0.02


def test_a_pace_of_equal_runs_is_exact_and_ends_at_nothing():
    now = [0.0]
    pace = Pace(10.0, 10, clock=lambda: now[0])
    for done in range(1, 11):
        now[0] += 2
        pace.ended(1.0, 1)
        assert pace.left == pytest.approx(2 * (10 - done), abs=1e-9)
        assert pace.share == pytest.approx(done / 10)


def test_costs_of_both_kinds_are_told_to_a_factor_of_two():
    now = [0.0]
    pace = Pace(100.0, 100, clock=lambda: now[0])
    for work, runs in ((50.0, 1), (1.0, 20), (20.0, 10)):
        now[0] += 3 * work + 0.5 * runs
        pace.ended(work, runs)
    assert 0.5 < pace.left / (3 * 29 + 0.5 * 69) < 2


def test_an_estimate_sees_long_runs():
    assert seconds(1e12 * 4e6, 1e12, 8) > 1e6
    assert seconds(1e8, 100, 2) < 1


def test_two_calls_are_summed_up_in_their_order():
    first, second = (runner.RunSummary(n, Counter(done=n, died=1), [row], [row]) for n, row in ((1, "a"), (2, "b")))
    whole = first + second
    assert (whole.found, whole.statuses, whole.keys) == (3, {"done": 3, "died": 2}, ["a", "b"])
    assert (whole.failures, whole.failed) == (["a", "b"], 2)


def test_the_time_of_missing_runs_is_their_arithmetic_and_their_iterations_over_the_cores(tmp_path, monkeypatch):
    """Refused from an hour on: both terms count, finished runs do not, and runs that are timed share no core."""
    monkeypatch.setattr(runner, "cores", lambda: 4)
    store, some = Store(tmp_path, "p", "e"), [*jobs(3, 1000), *jobs(2, 10)]
    whole = sum(job.cost for job in some) / 5e9 + (3 * 1000 + 2 * 10) * 1e-5
    assert runner.estimate(some, store, 2) == pytest.approx(whole / 2)
    assert runner.estimate(some, store, None) == pytest.approx(whole / 4)
    timed = [msgspec.structs.replace(job, timed=True) for job in some]
    assert runner.estimate([*some[:-1], timed[-1]], store, 2) == pytest.approx(whole)
    (swept,) = jobs(1, sweep={"step": [0.1, 1.0, 2.0]})
    assert runner.estimate([swept], store, 1) == pytest.approx(swept.cost / 5e9 + 60e-5)
    write(store, [{"key": job.key, "status": "done"} for job in some[:3]], [])
    assert runner.estimate(some, store, 1) == pytest.approx(sum(job.cost for job in some[3:]) / 5e9 + 20e-5)
