"""What goes wrong on real machines: a clear line, nothing lost that was finished, and the next run heals."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpbench
from dpbench import datasets, files
from dpbench.cli import main
from dpbench.datasets import loading
from dpbench.reporting.build import build
from dpbench.run import runner
from dpbench.run.job import make_job
from dpbench.run.store import Store
from tests import processes
from tests.batches import write

RUN = ("run", "--algo", "dp-gd", "--dataset", "synthetic")


def values(store):
    """The rows without what may differ between two runs: where, when and how fast."""
    runs = store.runs().sort_values("key")
    return runs.drop(columns=["experiment", *runs.filter(regex="seconds|version|environment")]).to_json(
        orient="records"
    )


@pytest.fixture
def disk(tmp_path):
    """A function: size, in mount's notation -> a shell; `disk` is a file system of that size until the test ends.

    It is mounted in a namespace of the shell's own, which takes it along, and seen from here through /proc.
    """
    private = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
    shells = []

    def mount(size):
        try:
            shell = subprocess.Popen([*private, "sh"], cwd=tmp_path, stdin=-1, stdout=-1, stderr=-2, text=True)
        except FileNotFoundError:
            pytest.skip("unshare is not installed, so no file system can be mounted for the test")
        shells.append(shell)
        (tmp_path / "mounted").mkdir()
        answer = told(shell, f"mount -t tmpfs -o size={size} tmpfs mounted")
        if answer != "0":
            pytest.skip(f"no file system can be mounted here: {answer}")
        (tmp_path / "disk").symlink_to(f"/proc/{shell.pid}/root{tmp_path}/mounted")
        return shell

    yield mount
    for shell in shells:
        shell.communicate("exit")


def told(shell, command):
    """What the shell says to a command: its message, if it has one, or its exit code."""
    with contextlib.suppress(BrokenPipeError):  # `unshare` was refused: it said why
        shell.stdin.write(f"{command}; echo $?\n")
        shell.stdin.flush()
    return shell.stdout.readline().strip()


ON_DISK = (*RUN, "--seeds", 1, "--jobs", 1, "--results", "disk/results")


def test_a_full_disk_is_one_line_keeps_what_was_finished_and_goes_on_with_room(call, disk, tmp_path):
    disk("400k")
    assert call(*ON_DISK, "--set", "T=5")[0] == 0
    filler = tmp_path / "disk" / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(400 * 1024))
    code, _, err = call(*ON_DISK, "--set", "T=6")
    refused = [line for line in err.splitlines() if line.startswith("error")]
    assert (code, len(refused)) == (2, 1), err
    assert "cannot write results to disk/results/adhoc/dp-gd" in refused[0]
    assert "No space left on device; what was finished before is kept" in refused[0]
    assert [path.suffix for path in (tmp_path / "disk/results/adhoc/dp-gd/runs").iterdir()] == [".parquet"]
    filler.unlink()
    assert "1 done; 0 finished before" in call(*ON_DISK, "--set", "T=6")[2]
    assert "nothing to do; 1 finished before" in call(*ON_DISK, "--set", "T=5")[2]


def test_a_read_only_folder_is_named_before_anything_runs_and_its_rows_can_be_read(call, disk, monkeypatch):
    shell = disk("400k")
    assert [call(*ON_DISK, "--set", T)[0] for T in ("T=5", "T=6")] == [0, 0]
    assert told(shell, "mount -o remount,bind,ro mounted") == "0"
    code, _, err = call(*ON_DISK, "--set", "T=5")
    assert (code, "nothing to do; 1 finished before" in err) == (0, True), err
    monkeypatch.setattr("dpbench.run.runner.results", None)  # nothing runs from here on
    code, _, err = call(*ON_DISK, "--set", "T=7")
    assert (code, err.count("\n")) == (2, 1), err
    assert "cannot write results to disk/results/adhoc/dp-gd/" in err
    assert "Read-only file system; what was finished before is kept" in err


GRID = """
[[quick]]
artefacts = ["fig2"]
problems = ["synthetic"]
algorithms = ["dp-gd"]
epsilon = [1.0]
seeds = 1
settings = { T = 3 }
"""


FIG5 = "second_order/fig5"


@pytest.mark.thorough
@pytest.mark.parametrize("kilobytes", [150_000, 310_000, 400_000, 450_000])
def test_memory_that_is_not_there_is_one_line(tmp_path, kilobytes):
    """Where Python starts, but NumPy's libraries, its arrays or pyarrow's threads find no room.

    At the last three a worker would wait for ever in OpenBLAS, which asks again for memory that is not there.
    """
    command = f"ulimit -v {kilobytes}; exec {sys.executable} -m dpbench run --algo dp-gd --dataset synthetic --eps 1"
    found = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    *_, last = found.stderr.splitlines()
    assert found.returncode == 2, found.stderr
    assert last.startswith(("error: out of memory; ", "error: cannot read results from ")), found.stderr
    assert "Traceback" not in found.stderr
    assert not list(tmp_path.rglob("*.broken"))


def with_short_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    for command in (("report", "--experiment", FIG5, "--profile", "quick"), (*RUN, "--jobs", "1", "--set", "T=3")):
        try:
            main(list(command))
        except SystemExit as end:
            print("code", end.code, flush=True)
    os.environ["DPBENCH_DATA"] = "fresh"
    for one in dpbench.fetch(["synthetic", "a1a"], mirror="mirror"):
        print(one.name, one.status, one.detail, flush=True)
    with contextlib.suppress(OSError):
        files.write(Path("page.html"), "new" * 5000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    print(next(build(FIG5, "quick")))  # the figure; what comes after it is computed for seconds


def as_the_papers(folder):
    """Put the rows of a grid of one's own where a report looks for those of the paper."""
    (folder / "results/quick").mkdir(parents=True)
    (folder / "results/adhoc/grid").rename(folder / "results/quick/second_order")


@pytest.mark.thorough
def test_files_that_may_not_grow_are_one_line_and_leave_no_figure_half_written(call, tmp_path):
    """RLIMIT_FSIZE: a full disk as far as a program can tell, and anybody may set it."""
    (tmp_path / "grid.toml").write_text(GRID)
    assert call("run", "--experiment", "second_order", "--config", "grid.toml", "--jobs", 1)[0] == 0
    as_the_papers(tmp_path)
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "mirror").mkdir()
    for name in ("a1a", "a1a.t"):
        (tmp_path / "mirror" / name).write_bytes(bytes(10_000))
    process = processes.start(tmp_path, with_short_files, log="log")
    process.join(120)
    lines = (tmp_path / "log").read_text().splitlines()
    cure = "set DPBENCH_DATA to a writable folder with room"
    refused = [
        "error: cannot write to figures/quick/second_order: File too large",
        "code 2",
        "error: cannot write results to results/adhoc/dp-gd/runs: File too large; what was finished before is kept",
        "code 2",
        # NumPy does not ask the system why it wrote less, so the size of its file counts as that of the disk
        f"synthetic failed {tmp_path}/fresh/prepared/synthetic-v1: No space left on device; {cure}",
        f"a1a failed {tmp_path}/fresh/raw/a1a: File too large; {cure}",
    ]
    assert lines[:-1] == refused, lines
    assert (tmp_path / "page.html").read_text() == "old"
    assert lines[-1].startswith("figures/quick/second_order/fig5.*")
    assert (tmp_path / "figures/quick/second_order/fig5.png").stat().st_size > 4096


def test_a_figures_folder_that_is_taken_is_one_line(call, tmp_path):
    (tmp_path / "grid.toml").write_text(GRID)
    assert call("run", "--experiment", "second_order", "--config", "grid.toml", "--jobs", 1)[0] == 0
    as_the_papers(tmp_path)
    (tmp_path / "taken").write_text("")
    code, _, err = call("report", "--experiment", "second_order/fig2", "--profile", "quick", "--out", "taken")
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith("error: ")
    assert "taken" in err


@pytest.mark.parametrize("table", ["runs", "traces"])
def test_a_truncated_part_is_set_aside_and_its_jobs_run_again(tmp_path, capsys, table):
    jobs = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1, seed=s, settings={"T": 5}, trace=True)
        for s in (0, 1)
    ]
    whole, store = Store(tmp_path, "whole", "e"), Store(tmp_path, "p", "e")
    runner.run(jobs, whole)
    runner.run(jobs, store)
    (part,) = (store.folder / table).glob("*.parquet")
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    assert runner.run(jobs, store).statuses["done"] == 2
    assert "set aside" in capsys.readouterr().err
    assert values(store) == values(whole)
    assert len(store.traces()) == len(whole.traces())


def test_a_part_that_may_not_be_read_is_not_called_broken(tmp_path, monkeypatch):
    from dpbench.errors import UserError

    store = Store(tmp_path, "p", "e")
    write(store, [{"key": "a", "status": "done"}], [])

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UserError, match=r"cannot read results from .*Permission denied"):
        store.runs()
    monkeypatch.undo()
    assert len(store.runs()) == 1


def test_a_part_that_is_merged_away_while_it_is_read_is_found_in_the_new_one(tmp_path, monkeypatch):
    import pyarrow.parquet

    store, other = Store(tmp_path, "p", "e"), Store(tmp_path, "p", "e")
    for key in "abc":
        write(store, [{"key": key, "status": "done"}], [])
    real, calls = pyarrow.parquet.read_table, []

    def read_table(part, **options):
        calls.append(part)
        if len(calls) == 2:  # between our first part and our second
            other.compact()
        return real(part, **options)

    monkeypatch.setattr(pyarrow.parquet, "read_table", read_table)
    assert sorted(store.runs()["key"]) == ["a", "b", "c"]


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A data cache of this test's own, with `synthetic` prepared in it."""
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "data"))
    yield datasets.load("synthetic").folder
    loading.load_spec.cache_clear()


@pytest.mark.thorough_for("0", "7", "9", "20", "60", "100")
@pytest.mark.parametrize("where", [0, 7, 9, 20, 60, 100, -1])
def test_damaged_arrays_are_found_before_a_run_and_prepared_anew(call, own_cache, where):
    """Bytes of the magic string, the version, the header's length and text, and the last number."""
    whole = (own_cache / "X.npy").read_bytes()
    damaged = bytearray(whole)
    damaged[where] ^= 0x15
    (own_cache / "X.npy").write_bytes(damaged)
    loading.load_spec.cache_clear()
    code, _, err = call(*RUN, "--seeds", 1, "--jobs", 1, "--set", "T=3")
    assert code == 0, err
    assert "warning: data set synthetic: its prepared arrays were damaged; prepared anew" in err
    assert (own_cache / "X.npy").read_bytes() == whole
    assert "damaged" not in call(*RUN, "--seeds", 2, "--jobs", 1, "--set", "T=3")[2]


def test_a_mirror_that_serves_a_wrong_file_or_cuts_is_one_line_and_the_next_fetch_heals(call, tmp_path, monkeypatch):
    from tests.datasets.conftest import TABLE, loopback, tiny_file, tiny_spec

    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("DPBENCH_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    known = {"tiny": tiny_spec(tiny_file())}
    monkeypatch.setattr(datasets.loading, "_known", lambda: known)
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    with loopback(mirror) as server:
        fetch = ("fetch", "tiny", "--mirror", server.url)
        for content, cut, status, detail in (
            (b"<html>gone</html>\n", False, "failed", "sha256"),
            (TABLE[:-9], False, "failed", "sha256"),
            (TABLE, "half", "missing", "the transfer was cut"),
            (TABLE, "reset", "missing", "the transfer was cut"),
            (TABLE, "at once", "missing", "the transfer was cut"),
        ):
            (mirror / "tiny.csv").write_bytes(content)
            server.cut = cut
            code, out, err = call(*fetch)
            assert code == 1, (out, err)
            assert out.splitlines()[-1].split()[:2] == ["tiny", status]
            assert detail in out
            assert "Traceback" not in err
            assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
        server.cut = False
        assert call(*fetch)[0] == 0
    np.testing.assert_array_equal(datasets.load("tiny").X[0], [1, 2])
    loading.load_spec.cache_clear()


def sweep(folder, workers=1, last=None):
    """To be called in a process of its own too; with `last`, it waits for the others before it merges its parts."""

    def meet(progress):
        if last and progress.done == progress.total:
            last.wait(60)

    jobs = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=s, settings={"T": T})
        for T in range(60, 66)
        for s in range(3)
    ]
    runner.run(jobs, Store(folder, "p", "e"), workers=workers, report=meet)


def wait_for_rows(process, store, parts=1):
    deadline = time.monotonic() + 60
    while len(list((store.folder / "runs").glob("*.parquet"))) < parts and time.monotonic() < deadline:
        ended = process.poll() if isinstance(process, subprocess.Popen) else process.exitcode
        assert ended is None, "it ended before it could be disturbed"
        time.sleep(0.005)


def wait_for_end(group):
    """Until no process of the group is left."""
    deadline = time.monotonic() + 60
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)
        pytest.fail("processes are left behind")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The rows of a sweep that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    sweep(folder)
    store = Store(folder, "p", "e")
    assert len(store.runs()) == 18
    return values(store)


@pytest.mark.thorough
def test_two_runs_at_once_on_one_folder_lose_and_double_nothing(tmp_path, whole):
    last = processes.SERVER.Barrier(2)
    runs = [processes.start(tmp_path, sweep, tmp_path / "shared", 1, last) for _ in range(2)]
    for run in runs:
        run.join(120)
    assert [run.exitcode for run in runs] == [0, 0]
    shared = Store(tmp_path / "shared", "p", "e")
    assert values(shared) == whole
    assert {path.suffix for path in (shared.folder / "runs").iterdir()} == {".parquet"}


@pytest.mark.thorough
def test_a_run_killed_twice_and_started_again_gives_the_same_rows(tmp_path, whole):
    store = Store(tmp_path, "p", "e")
    for parts in (1, 2):
        process = processes.start(tmp_path, sweep, tmp_path)
        wait_for_rows(process, store, parts)
        processes.kill(process)
        assert 3 * parts <= len(store.runs()) < 18
    sweep(tmp_path)
    assert values(store) == whole


@pytest.mark.thorough
def test_a_driver_killed_alone_takes_its_workers_along_and_the_next_run_goes_on(tmp_path, whole):
    store = Store(tmp_path, "p", "e")
    process = processes.start(tmp_path, sweep, tmp_path, 2)
    wait_for_rows(process, store)
    process.kill()
    process.join()
    wait_for_end(process.pid)
    assert 2 <= len(store.runs()) < 18
    sweep(tmp_path)
    assert values(store) == whole


@pytest.mark.thorough
def test_ctrl_c_does_not_reach_a_worker_that_begins():
    """It would print the trace of its imports; loky starts one with the mask of the thread that asks for it."""
    call = "import signal; from dpbench.run.executors import pooled; "
    call += "print(*pooled(signal.pthread_sigmask, [(signal.SIG_BLOCK, [])] * 2, 2), signal.pthread_sigmask(0, []))"
    told = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True).stdout
    assert told.count("SIGINT") == 2, told  # both workers have it, and this process has not


@pytest.mark.thorough
def test_ctrl_c_with_workers_is_one_line_leaves_no_process_and_the_same_command_goes_on(call, tmp_path):
    (tmp_path / "grid.toml").write_text(GRID.replace("T = 3", "T = [300, 301, 302, 303, 304, 305]"))
    command = ("run", "--experiment", "second_order", "--config", "grid.toml", "--jobs")
    process = subprocess.Popen(
        [sys.executable, "-m", "dpbench", *command, "2"], start_new_session=True, stdout=-1, stderr=-1, text=True
    )
    store = Store(tmp_path / "results", "adhoc", "grid")
    wait_for_rows(process, store)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does: the workers get it too
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "repeats none of the runs that were kept" in err
    assert "Traceback" not in err
    wait_for_end(process.pid)
    kept = len(store.runs())
    assert 1 <= kept < 6
    assert f"{6 - kept} done; {kept} finished before" in call(*command, 1)[2]


MEMORY = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"  # version 1 of control groups, then 2
MEMORY_2 = Path("/sys/fs/cgroup"), "memory.max"

HUNGRY = """
import numpy as np
from dpbench.algorithms.base import Algorithm, Disclosure
class Hungry(Algorithm):
    name = "hungry"
    discloses = (Disclosure("w", "the iterate"),)
    def run(self, problem, W, mechanisms, settings, trace):
        held = [np.ones(2**24) for _ in range(40)]
        return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label="w")
"""


def in_a_group(group):
    (group / "cgroup.procs").write_text(str(os.getpid()))
    main(["run", "--algo", "hungry.py:Hungry", "--dataset", "synthetic", "--eps", "1", "--seeds", "1", "--jobs", "2"])


@pytest.mark.slow
def test_a_worker_that_the_kernel_kills_for_its_memory_is_a_row_that_died(tmp_path):
    """A control group of 1 GB, in which the algorithm asks for 5."""
    root, limit = MEMORY_2 if (MEMORY_2[0] / "cgroup.controllers").exists() else MEMORY
    group = root / f"dpbench-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text("1000000000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        (tmp_path / "hungry.py").write_text(HUNGRY)
        process = processes.start(tmp_path, in_a_group, group, log="log")
        process.join(300)
        told = (tmp_path / "log").read_text()
        assert "1 died" in told, told
        assert "Traceback" not in told
        (row,) = Store(tmp_path / "results", "adhoc", "hungry").runs().itertuples()
        assert (row.status, "worker process died" in row.error) == ("died", True)
    finally:
        processes.kill(process)
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


SLOW = """
import pathlib, time
from dpbench.algorithms.base import Algorithm, Disclosure
class Slow(Algorithm):
    name = "slow"
    discloses = (Disclosure("w", "the iterate"),)
    def run(self, problem, W, mechanisms, settings, trace):
        here = pathlib.Path(__file__).parent
        deadline = time.monotonic() + 60
        while not (here / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label="w")
"""


@pytest.mark.thorough
def test_rows_do_not_wait_for_a_slow_worker(tmp_path):
    """What the other worker has done is in the store while the slow one, whose batch started first, is at work."""
    (tmp_path / "slow.py").write_text(SLOW)
    store = Store(tmp_path, "p", "e")
    slow = make_job(problem="synthetic", algorithm=f"{tmp_path / 'slow.py'}:Slow", epsilon=1.0, seed=0)
    quick = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=0, settings={"T": T}) for T in (1, 2, 3)
    ]
    seen = []

    def report(progress):
        seen.append((progress.last.algorithm.rpartition(":")[2], len(store.ended().results)))
        if len(seen) == len(quick):
            (tmp_path / "go").touch()

    assert runner.run([slow, *quick], store, workers=2, report=report).statuses["done"] == 4
    assert seen == [("dp-gd", 1), ("dp-gd", 2), ("dp-gd", 3), ("Slow", 4)]
