"""Several processes on one results folder share the work by lease files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpbench.run import executors, leases, runner
from dpbench.run.jobs import make_job
from dpbench.run.leases import Leases
from dpbench.run.results import Store

COMMAND = """
import sys, time
from dpbench.run import executors, leases, runner
from dpbench.run.results import Store
leases.PATIENCE, executors.POLL = 120.0, 0.05
from tests.run.test_leases import asked
from dpbench.run import execute as module
made = module.execute
def slowly(jobs, *rest):
    print("begun", jobs[0].key, flush=True)
    time.sleep(float(sys.argv[2]))
    return made(jobs, *rest)
executors.execute = slowly
summary = runner.run(asked(), Store(sys.argv[1], "quick", "e"))
print("made", sum(summary.statuses.values()), summary.found, flush=True)
"""


def asked():
    """Eight batches of two."""
    return [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=seed, settings={"T": T})
        for T in range(3, 11)
        for seed in range(2)
    ]


def start(folder: Path, pause: float) -> subprocess.Popen:
    command = [sys.executable, "-c", COMMAND, str(folder), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.thorough
def test_two_processes_share_and_make_each_row_once(tmp_path):
    both = [start(tmp_path, 0.1) for _ in range(2)]
    told = [process.communicate(timeout=60)[0].split() for process in both]
    made = [int(words[-2]) for words in told]
    assert sum(made) == len(asked())
    assert all(made)
    begun = [words[i + 1] for words in told for i, word in enumerate(words) if word == "begun"]
    assert len(begun) == len(set(begun)) == 8
    store = Store(tmp_path, "quick", "e")
    assert store.finished() == {job.key for job in asked()}
    assert not (store.folder / "leases").exists()


@pytest.mark.thorough
def test_what_a_killed_process_had_is_made_by_the_other_at_once(tmp_path):
    with start(tmp_path, 30.0) as first:
        assert first.stdout is not None
        assert first.stdout.readline().startswith("begun")
        os.kill(first.pid, signal.SIGKILL)
    assert list((tmp_path / "quick" / "e" / "leases").glob("*.lease"))
    told, _ = start(tmp_path, 0.0).communicate(timeout=60)  # before the lease runs out
    assert told.split()[-2:] == [str(len(asked())), "0"]
    assert not (tmp_path / "quick" / "e" / "leases").exists()


def test_a_lease_is_had_by_one_until_it_runs_out(tmp_path, monkeypatch):
    with Leases(tmp_path) as mine, Leases(tmp_path) as other:
        assert mine.claim("a")
        assert mine.claim("a")
        assert not other.claim("a")
        path = tmp_path / "leases" / "a.lease"
        os.utime(path, (time.time() - 1e4,) * 2)
        assert other.claim("a")  # taken over
        other.end("a")
        assert mine.ended_elsewhere("a")
        assert not other.ended_elsewhere("a")
        mine._held.clear()
        assert mine.claim("a")


def test_what_ended_is_told_until_the_last_has_left(tmp_path):
    with Leases(tmp_path) as last:
        assert last.claim("long")
        with Leases(tmp_path) as first:
            assert first.claim("a")
            first.end("a")
        assert last.ended_elsewhere("a")  # it was busy, and looks only now
    assert not (tmp_path / "leases").exists()


def test_who_stood_still_does_not_give_back_what_another_took_over(tmp_path):
    with Leases(tmp_path) as other, Leases(tmp_path) as third:
        with Leases(tmp_path) as slow:
            for name in ("a", "b"):
                assert slow.claim(name)
                os.utime(tmp_path / "leases" / f"{name}.lease", (time.time() - 1e4,) * 2)
                assert other.claim(name)
            slow.end("a")
        assert not third.claim("a")
        assert not third.claim("b")


def test_leases_are_renewed_while_they_are_held(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "PATIENCE", 0.2)
    with Leases(tmp_path) as mine, Leases(tmp_path) as other:
        assert mine.claim("a")
        time.sleep(0.5)
        assert not other.claim("a")


def test_a_row_that_failed_elsewhere_is_tried_here_too(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "POLL", 0.01)
    store = Store(tmp_path, "quick", "e")
    store.prepare()
    cells = runner.batches(asked())
    with Leases(store.folder) as other:
        name = leases._name(cells[0])
        assert other.claim(name)
        other.end(name)  # it says so, but there is no row
        summary = runner.run(asked(), store)
    assert sum(summary.statuses.values()) == len(asked())


@pytest.mark.parametrize("workers", [1, 7])
def test_what_is_left_is_cut_as_the_whole_was(workers):
    jobs = asked()
    left = {job.key for job in jobs[1::2]}
    cells = [{job.key for job in cell} for cell in runner.batches(jobs)]
    rest = runner.batches(jobs, workers, left)
    assert {job.key for batch in rest for job in batch} == left
    assert all(any({job.key for job in batch} <= cell for cell in cells) for batch in rest)


@pytest.mark.parametrize(
    ("owner", "gone"),
    [("token {pid} {here}", False), ("token {dead} {here}", True), ("token {dead} elsewhere", False), ("", False)],
)
def test_a_process_is_known_to_be_gone_on_its_own_machine_alone(owner, gone):
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    assert leases.ended(owner.format(pid=os.getpid(), dead=child.pid, here=leases.machine())) is gone
