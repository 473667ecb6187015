"""What goes wrong on real machines: a clear line, nothing lost that was finished, and the next run heals."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dpbench import datasets
from dpbench.cli import main
from dpbench.datasets import loading
from dpbench.run.results import Store

DPBENCH = (sys.executable, "-m", "dpbench")
RUN = ("run", "--algo", "dp-gd", "--dataset", "synthetic")


def values(store):
    """The rows without what may differ between two runs: where, when and how fast."""
    runs = store.runs().sort_values("key")
    return runs.drop(columns=["experiment", *runs.filter(regex="seconds|version|environment")]).to_json(
        orient="records"
    )


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run the command line in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run


def shell(script, folder, *prefix):
    """Run a shell script with `dpbench` defined; returns its lines."""
    script = f'dpbench() {{ "{sys.executable}" -m dpbench "$@" 2>&1; echo "code $?"; }}\n{script}'
    done = subprocess.run([*prefix, "sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return (done.stdout + done.stderr).splitlines()


@pytest.fixture
def disk(tmp_path):
    """A function: size, script -> lines of the script, run where `disk` is a file system of that size of its own."""
    (tmp_path / "disk").mkdir()
    private = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
    mount = "mount -t tmpfs -o size={} tmpfs disk || exit 77\n"
    try:
        probe = subprocess.run([*private, "sh", "-c", mount.format("64k")], cwd=tmp_path, capture_output=True)
    except FileNotFoundError:
        pytest.skip("unshare is not installed, so no file system can be mounted for the test")
    if probe.returncode:
        pytest.skip(f"no file system can be mounted here: {probe.stderr.decode().strip()}")
    return lambda size, script: shell(mount.format(size) + script, tmp_path, *private)


def test_a_full_disk_is_one_line_keeps_what_was_finished_and_goes_on_with_room(disk):
    run = f"dpbench {' '.join(RUN)} --seeds 1 --jobs 1 --out disk/results"
    lines = disk(
        "400k",
        f"{run} --set T=5\n"
        "cat /dev/zero > disk/filler 2> filler.log\n"
        f"echo FULL; {run} --set T=6; ls disk/results/adhoc/dp-gd/runs\n"
        f"rm disk/filler; echo ROOM; {run} --set T=6; {run} --set T=5",
    )
    full, room = lines.index("FULL"), lines.index("ROOM")
    refused = [line for line in lines[full:room] if line.startswith("error")]
    assert len(refused) == 1
    assert "cannot write results to disk/results/adhoc/dp-gd" in refused[0]
    assert "No space left on device; what was finished before is kept" in refused[0]
    assert "code 2" in lines[full:room]
    assert sum(line.endswith(".parquet") for line in lines[full:room]) == 1
    assert not [line for line in lines[full:room] if line.endswith(".tmp")]
    assert "1 done; 0 found finished" in " ".join(lines[room:])
    assert "nothing to do; 1 found finished" in " ".join(lines[room:])


def test_a_read_only_folder_is_named_before_anything_runs_and_its_rows_can_be_read(disk):
    run = f"dpbench {' '.join(RUN)} --seeds 1 --jobs 1 --out disk/results"
    lines = disk(
        "400k",
        f"{run} --set T=5\n{run} --set T=6\nmount -o remount,ro disk\necho READ; {run} --set T=5\n{run} --set T=7",
    )
    found, refused = lines[lines.index("READ") + 1 :][:-2], lines[-2:]
    assert found[-1] == "code 0"
    assert "nothing to do; 1 found finished" in found[-2]
    assert refused[1] == "code 2"
    assert "cannot write results to disk/results/adhoc/dp-gd/" in refused[0]
    assert "Read-only file system; what was finished before is kept" in refused[0]


GRID = """
[[quick]]
artefacts = ["fig2"]
problems = ["synthetic"]
algorithms = ["dp-gd"]
epsilon = [1.0]
seeds = 1
settings = { T = 3 }
"""


def test_files_that_may_not_grow_are_one_line_and_leave_no_figure_half_written(tmp_path):
    """RLIMIT_FSIZE: a full disk as far as a program can tell, and anybody may set it."""
    (tmp_path / "grid.toml").write_text(GRID)
    report = "dpbench report --experiment second_order/fig2 --profile quick"
    lines = shell(
        f"dpbench run --experiment second_order --config grid.toml --jobs 1\necho LIMIT\n"
        f"(ulimit -f 8; {report}; dpbench {' '.join(RUN)} --jobs 1 --set T=3)\necho FREE\n{report}",
        tmp_path,
    )
    limit, free = lines.index("LIMIT"), lines.index("FREE")
    for line in (
        "error: cannot write to figures/quick/second_order: File too large",
        "error: cannot write results to results/adhoc/dp-gd/runs: File too large; what was finished before is kept",
    ):
        assert line in lines[limit:free], lines
    assert lines[limit:free].count("code 2") == 2
    assert lines[-1] == "code 0", lines[free:]
    assert (tmp_path / "figures/quick/second_order/fig2.png").stat().st_size > 4096


def test_a_figures_folder_that_is_taken_is_one_line(call, tmp_path):
    (tmp_path / "grid.toml").write_text(GRID)
    assert call("run", "--experiment", "second_order", "--config", "grid.toml", "--jobs", 1)[0] == 0
    (tmp_path / "taken").write_text("")
    code, _, err = call("report", "--experiment", "second_order/fig2", "--profile", "quick", "--figures", "taken")
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith("error: ")
    assert "taken" in err


@pytest.mark.parametrize("table", ["runs", "traces"])
def test_a_truncated_part_is_set_aside_and_its_jobs_run_again(tmp_path, capsys, table):
    from dpbench.run import runner
    from dpbench.run.jobs import make_job

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
    import pyarrow.parquet

    from dpbench.errors import UserError

    store = Store(tmp_path, "p", "e")
    store.write([{"key": "a", "status": "done"}], [])

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pyarrow.parquet, "ParquetFile", refuse)
    with pytest.raises(UserError, match=r"cannot read results from .*Permission denied"):
        store.runs()
    monkeypatch.undo()
    assert len(store.runs()) == 1


def test_a_part_that_is_merged_away_while_it_is_read_is_found_in_the_new_one(tmp_path, monkeypatch):
    import pyarrow.parquet

    store, other = Store(tmp_path, "p", "e"), Store(tmp_path, "p", "e")
    for key in "abc":
        store.write([{"key": key, "status": "done"}], [])
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
    monkeypatch.setattr(datasets.registry, "_known", lambda: known)
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


SWEEP = """
import sys
from dpbench.run import runner
from dpbench.run.jobs import make_job
from dpbench.run.results import Store
jobs = [make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=s, settings={"T": T})
        for T in range(200, 206) for s in range(3)]
runner.run(jobs, Store(sys.argv[1], "p", "e"), workers=int(sys.argv[2]))
"""


def sweep(folder, workers=1):
    return subprocess.Popen([sys.executable, "-c", SWEEP, str(folder), str(workers)], start_new_session=True)


def wait_for_rows(process, store, parts=1):
    deadline = time.monotonic() + 60
    while len(list((store.folder / "runs").glob("*.parquet"))) < parts and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be disturbed"
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


def test_two_runs_at_once_on_one_folder_lose_and_double_nothing(tmp_path):
    whole, shared = Store(tmp_path / "whole", "p", "e"), Store(tmp_path / "shared", "p", "e")
    runs = [sweep(tmp_path / "shared") for _ in range(2)]
    assert [run.wait(120) for run in runs] == [0, 0]
    assert sweep(tmp_path / "whole").wait(120) == 0
    assert values(shared) == values(whole)
    assert {path.suffix for path in (shared.folder / "runs").iterdir()} == {".parquet"}


def test_a_driver_killed_alone_takes_its_workers_along_and_the_next_run_goes_on(tmp_path):
    store = Store(tmp_path, "p", "e")
    process = sweep(tmp_path, workers=2)
    wait_for_rows(process, store)
    process.kill()
    process.wait()
    wait_for_end(process.pid)
    kept = len(store.runs())
    assert kept >= 3
    assert sweep(tmp_path, workers=2).wait(120) == 0
    assert len(store.runs()) == 18


def test_ctrl_c_with_workers_is_one_line_leaves_no_process_and_the_same_command_goes_on(tmp_path):
    (tmp_path / "grid.toml").write_text(GRID.replace("T = 3", "T = [1000, 1001, 1002, 1003, 1004, 1005]"))
    command = (*DPBENCH, "run", "--experiment", "second_order", "--config", "grid.toml", "--jobs", "2")
    process = subprocess.Popen(
        command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    store = Store(tmp_path / "results", "quick", "second_order")
    wait_for_rows(process, store)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does: the workers get it too
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted: what was finished is kept" in err
    assert "Traceback" not in err
    wait_for_end(process.pid)
    kept = len(store.runs())
    assert 1 <= kept < 6
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert f"{6 - kept} done; {kept} found finished" in again.stderr
