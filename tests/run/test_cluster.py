"""`--backend dask`: real scheduler and worker processes on the loopback interface, each worker with its own cache."""

import itertools
import logging
import shutil
import signal
import socket
import subprocess
import threading
from unittest.mock import Mock

import numpy as np
import pytest
import threadpoolctl

from dpbench import __version__, datasets
from dpbench.cli import main
from dpbench.datasets import cache as pins
from dpbench.datasets import loading
from dpbench.errors import DataError, UserError
from dpbench.run import cluster as cluster_module
from dpbench.run import executors, runner
from dpbench.run.job import make_job
from dpbench.run.store import Store
from tests import processes

pytest.importorskip("distributed", reason="the extra dask is not installed")
dask = pytest.importorskip("dask")

ENVIRONMENT = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1", "DASK_LOGGING__DISTRIBUTED": "error"}


def certificate(folder):
    """What dask is told of TLS: one self-signed certificate for scheduler, worker and client."""
    files = {"key": folder / "key.pem", "cert": folder / "cert.pem"}
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", files["key"], "-out", files["cert"]], check=True, capture_output=True)
    roles = {f"distributed.comm.tls.{role}.{kind}": str(file)
             for role in ("scheduler", "worker", "client") for kind, file in files.items()}  # fmt: skip
    return {"distributed.comm.require-encryption": True, "distributed.comm.tls.ca-file": str(files["cert"]), **roles}


class Cluster:
    """A scheduler in a process of its own, and `worker(name)`, one more worker with an empty data cache of its own."""

    def __init__(self, folder, secure=None):
        self.folder, self.running = folder, []
        self.told = {"DASK_" + name.upper().replace(".", "__").replace("-", "_"): str(value)
                     for name, value in (secure or {}).items()}  # fmt: skip
        protocol = "tls" if secure else "tcp"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        self.address = f"{protocol}://127.0.0.1:{port}"
        where = ("--host", "127.0.0.1", "--port", port, "--protocol", protocol, "--no-dashboard", "--no-show")
        self.scheduler = self.start("scheduler", *where)

    def start(self, kind, *arguments, **environment):
        log = self.folder / f"{kind}-{len(self.running)}.log"
        given = ENVIRONMENT | self.told | environment
        self.running.append(processes.start(self.folder, processes.dask, kind, *arguments, log=log, **given))
        return self.running[-1]

    def cache(self, name):
        return self.folder / f"cache-{name}"

    def worker(self, name):
        own = ("--name", name, "--local-directory", str(self.folder / f"dask-{name}"))
        plain = ("--nthreads", "1", "--no-dashboard", "--no-nanny")
        return self.start("worker", self.address, *plain, *own, DPBENCH_DATA=str(self.cache(name)))

    def stop(self, kept=0):
        """Kill all but the first processes."""
        while len(self.running) > kept:
            processes.kill(self.running.pop())


@pytest.fixture(scope="module")
def alive(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DPBENCH_MIRROR", raising=False)  # which its processes would inherit
        one = Cluster(tmp_path_factory.mktemp("cluster"))
    yield one
    one.stop()


@pytest.fixture
def cluster(alive, tmp_path, monkeypatch):
    """The scheduler of all tests, with workers of this one alone."""
    monkeypatch.delenv("DPBENCH_MIRROR", raising=False)
    alive.folder = tmp_path
    yield alive
    alive.stop(kept=1)


@pytest.fixture
def own_cluster(tmp_path, monkeypatch, request):
    """With a scheduler of its own, that speaks TLS where the test asks for it."""
    monkeypatch.delenv("DPBENCH_MIRROR", raising=False)
    secure = certificate(tmp_path) if getattr(request, "param", "tcp") == "tls" else {}
    with dask.config.set(secure):
        one = Cluster(tmp_path, secure)
        yield one
    one.stop()


def grid(T=(20, 30, 50, 80), seeds=3, problem="synthetic"):
    first = [
        make_job(problem=problem, algorithm="dp-gd", epsilon=1, seed=s, settings={"T": t})
        for t in T
        for s in range(seeds)
    ]
    newton = make_job(problem=problem, algorithm="dp-newton-qu-add", epsilon=1, seed=0, settings={"T": 2}, trace=True)
    return [*first, newton]


def values(store):
    """The rows without what may differ between two runs: where, when and how fast."""
    runs = store.runs().sort_values("key")
    return runs.drop(columns=["experiment", *runs.filter(regex="seconds|version|environment")]).to_json(
        orient="records"
    )


def local(tmp_path, jobs):
    store = Store(tmp_path, "local", "e")
    runner.run(jobs, store)
    return store


@pytest.mark.thorough
def test_two_workers_with_caches_of_their_own_give_the_rows_of_a_local_run(cluster, tmp_path):
    workers = [cluster.worker(name) for name in "ab"]
    assert all(worker.is_alive() for worker in workers)
    remote = Store(tmp_path, "remote", "e")
    jobs = grid()
    summary = runner.run(jobs, remote, backend="dask", scheduler=cluster.address)
    assert summary.statuses["done"] == len(jobs)
    here = local(tmp_path, jobs)
    assert values(remote) == values(here)
    assert remote.traces().drop(columns="seconds").equals(here.traces().drop(columns="seconds"))
    assert runner.run(jobs, remote, backend="dask", scheduler="tcp://127.0.0.1:1").found == len(jobs)


@pytest.fixture
def other_synthetic(tmp_path, monkeypatch):
    """A driver whose copy of `synthetic` is not what a worker would draw: one label is flipped."""
    spec, original = datasets.describe("synthetic"), datasets.load("synthetic")
    y = np.array(original.y)
    y[0] = -y[0]
    loading.cache.write(tmp_path / "driver", spec, np.array(original.X), y, [])
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "driver"))
    monkeypatch.setattr(pins, "pinned", dict)  # which would refuse them
    return datasets.load("synthetic")


def slow_grid():
    """Twelve batches of a fraction of a second."""
    return [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1, seed=0, settings={"T": 60 + t}) for t in range(12)
    ]


@pytest.mark.thorough
def test_one_worker_killed_mid_run_and_data_that_only_the_driver_has(cluster, tmp_path, other_synthetic):
    workers = {name: cluster.worker(name) for name in "ab"}
    store = Store(tmp_path, "remote", "e")
    done = []

    def kill_one(progress):
        done.append(progress.done)
        if len(done) == 3:
            workers["a"].kill()

    jobs = slow_grid()
    summary = runner.run(jobs, store, backend="dask", scheduler=cluster.address, report=kill_one)
    workers["a"].join(10)
    assert workers["a"].exitcode == -signal.SIGKILL
    assert summary.statuses["done"] == len(jobs)
    assert values(store) == values(local(tmp_path, jobs))
    assert set(store.runs()["data_sha256"]) == {other_synthetic.sha256}
    received = list(cluster.cache("b").glob("received/synthetic-*"))
    assert [folder.name for folder in received] == [f"synthetic-{other_synthetic.sha256[:16]}"]


KILLER = """
import os, signal
from dpbench.algorithms.base import Algorithm
class Killer(Algorithm):
    name = "killer"
    def run(self, problem, W, mechanisms, settings, trace):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.thorough
def test_a_file_goes_with_its_batches_and_what_kills_every_worker_is_a_failed_row(cluster, tmp_path):
    (tmp_path / "killer.py").write_text(KILLER)
    ended = threading.Event()

    def nanny():
        """One worker at a time, as long as the run lasts: dask's own would import everything for each."""
        for number in itertools.count():
            worker = cluster.worker(f"{number}")
            while worker.is_alive():
                if ended.wait(0.05):
                    return

    thread = threading.Thread(target=nanny)
    thread.start()
    killer = make_job(problem="synthetic", algorithm=f"{tmp_path / 'killer.py'}:Killer", epsilon=1.0, seed=0)
    store = Store(tmp_path, "remote", "e")
    try:
        summary = runner.run([*grid(T=(20,)), killer], store, backend="dask", scheduler=cluster.address)
    finally:
        ended.set()
        thread.join()
    assert (summary.statuses["done"], summary.failed) == (4, 1)
    assert "its worker process died 3 times (it ended with -9)" in summary.failures[0].error
    assert store.runs().set_index("algorithm")["status"]["killer"] == "died"


class Scripted:
    """Instead of dask's client: futures that have ended, of each batch in turn as `ends` says, by its T."""

    status = "running"

    def __init__(self, **ends):
        self.ends, self.sent, self.scattered = {name: [*each] for name, each in ends.items()}, [], []

    def nthreads(self):
        return {"one": 1, "other": 1}

    def scatter(self, files, hash):
        self.scattered.append(f"shipment {len(self.scattered)}")
        return self.scattered[-1]

    def submit(self, perform, batch, parcel, shipment, pure):
        name = f"T{batch[0].parsed().T}"
        self.sent.append((name, shipment))
        # An error in a list of what a mock gives is raised.
        return Mock(**{"done.return_value": True, "result.side_effect": [self.ends[name].pop(0)]})


def test_a_batch_goes_out_again_with_its_data_and_a_lost_shipment_four_times(monkeypatch):
    """T2 and T3 meet workers without the data, which are sent once; what was sent to T4 is lost with each worker."""
    from distributed import CancelledError, KilledWorker

    done, lost = cluster_module.BatchRows([], []), CancelledError("gone")
    killed = KilledWorker("task", None, 2)
    client = Scripted(T1=[done], T2=[None, done], T3=[None, done], T4=[None, *[lost] * 4], T5=[killed], T6=[done])
    driver = cluster_module.Cluster("tcp://nowhere:1")
    driver._client = client
    seen = []
    monkeypatch.setattr(
        driver, "_wait", lambda flying: seen.append([f"T{b[0].parsed().T}" for _, b, _ in flying.values()])
    )
    batches = {t: [make_job(problem="synthetic", algorithm="dp-gd", epsilon=1, seed=0, settings={"T": t})]
               for t in range(1, 7)}  # fmt: skip
    ended = dict(driver.run(batches))
    assert seen == [["T1", "T2"], ["T2", "T3"], ["T3", "T4"], ["T4", "T5"], ["T4", "T6"], ["T4"], ["T4"]]
    zero, one, two, three = (f"shipment {i}" for i in range(4))
    assert client.sent == [
        ("T1", None), ("T2", None), ("T2", zero), ("T3", None), ("T3", zero), ("T4", None), ("T4", zero), ("T5", None),
        ("T4", one), ("T6", None), ("T4", two), ("T4", three),
    ]  # fmt: skip
    assert {t: type(one) for t, one in ended.items() if t not in (4, 5)} == dict.fromkeys((1, 2, 3, 6), type(done))
    assert ended[5] == cluster_module.WorkerDeath(3, "KilledWorker")
    assert ended[4] == cluster_module.WorkerDeath(4, "the data that were sent to it were lost each time")
    ((batch, rows),) = executors.results([batches[4]], Mock(**{"run.return_value": [(0, ended[4])]}))
    assert batch == batches[4]
    assert (rows.runs[0].key, rows.runs[0].status) == (batches[4][0].key, "died")  # nobody's code is to blame
    assert "died 4 times (the data that were sent to it were lost each time); if memory" in rows.runs[0].error


MINE = """
from dpbench.algorithms.base import Algorithm, Disclosure
class Mine(Algorithm):
    name = "mine"
    discloses = (Disclosure("w", "the iterate"),)
    def run(self, problem, W, mechanisms, settings, trace):
        return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label="w")
"""


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return end.value.code or 0, out, err


def test_a_worker_computes_on_one_thread_from_its_first_batch_on(monkeypatch):
    """A machine has a worker a core: of several threads each would wait for the others'."""
    monkeypatch.setattr(loading, "adopt", lambda *_: True)
    monkeypatch.setattr(cluster_module, "execute", lambda batch: ([], []))
    with threadpoolctl.threadpool_limits(2):
        cluster_module.perform([], cluster_module.Parcel("synthetic", "", __version__, ""), None)
        assert {one["num_threads"] for one in threadpoolctl.threadpool_info()} == {1}


@pytest.mark.thorough
def test_from_the_command_line_with_an_algorithm_that_only_the_driver_has(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    cluster.worker("a")
    command = ("run", "--algo", "mine.py:Mine", "--dataset", "synthetic", "--seeds", 2, "--jobs", 1)
    code, out, err = call(capsys, *command, "--results", "remote", "--backend", "dask", "--scheduler", cluster.address)
    assert (code, "2 done" in err) == (0, True), err
    assert call(capsys, *command, "--results", "local")[1] == out


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
@pytest.mark.parametrize("own_cluster", ["tls"], indirect=True)
def test_a_scheduler_with_tls_runs_jobs_and_refuses_a_client_without_it(own_cluster, tmp_path, monkeypatch):
    cluster = own_cluster
    cluster.worker("a")
    store = Store(tmp_path, "remote", "e")
    jobs = grid(T=(20,), seeds=1)
    assert runner.run(jobs, store, backend="dask", scheduler=cluster.address).statuses["done"] == len(jobs)
    monkeypatch.setattr("dpbench.run.cluster.PATIENCE", 1.0)
    with pytest.raises(UserError, match="--scheduler: no dask scheduler answers at tcp://"):
        cluster_module.connect(cluster.address.replace("tls", "tcp"))


@pytest.fixture
def told_by_dask():
    """What dask's client logs beside our line: a traceback, where its scheduler is gone."""
    told, logger = [], logging.getLogger("distributed.client")
    handler = logging.Handler()
    handler.emit = told.append
    logger.addHandler(handler)
    yield told
    logger.removeHandler(handler)


@pytest.mark.thorough
def test_a_scheduler_that_dies_is_one_line_and_finished_rows_are_kept(own_cluster, tmp_path, told_by_dask):
    cluster = own_cluster
    cluster.worker("a")
    store = Store(tmp_path, "remote", "e")
    with pytest.raises(UserError, match="went away; what was finished is kept"):
        runner.run(
            slow_grid(), store, backend="dask", scheduler=cluster.address, report=lambda _: cluster.scheduler.kill()
        )
    assert 1 <= len(store.runs()) < len(slow_grid())
    assert runner.run(slow_grid(), store).found >= 1
    assert not told_by_dask, [record.getMessage() for record in told_by_dask]


@pytest.mark.thorough
def test_nobody_there_is_one_line(cluster, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpbench.run.cluster.PATIENCE", 0.5)
    command = ("run", "--algo", "dp-gd", "--dataset", "synthetic", "--backend", "dask")
    for address, expected in (
        (None, "--scheduler: give an address with backend dask"),
        ("tcp://127.0.0.1:1", "no dask scheduler answers"),
        ("nonsense://x", "no dask scheduler answers"),
        ("tcp://127.0.0.1:port", "no dask scheduler answers"),
    ):
        code, _, err = call(capsys, *command, *(() if address is None else ("--scheduler", address)))
        assert (code, err.count("\n")) == (2, 1), err
        assert expected in err
    monkeypatch.setattr("dpbench.run.cluster.PATIENCE", 5)
    code, _, err = call(capsys, *command, "--scheduler", cluster.address)
    assert (code, "has no workers; start some" in err, err.count("\n")) == (2, True, 1), err


def test_a_worker_takes_the_drivers_bytes_and_no_others(tmp_path, monkeypatch, other_synthetic):
    files = loading.pack("synthetic")
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "worker"))
    monkeypatch.setattr(loading, "adopted", {})
    own = datasets.load("synthetic").sha256
    wanted = other_synthetic.sha256
    assert own != wanted
    assert not loading.adopt("synthetic", wanted)
    with pytest.raises(DataError, match="do not have the sha256"):
        loading.adopt("synthetic", wanted, files | {"y.npy": files["y.npy"][:-1] + b"\1"})
    assert loading.adopt("synthetic", wanted, files)
    assert datasets.load("synthetic").sha256 == wanted
    loading.adopted.clear()  # another process of the same machine finds it on the disk …
    assert loading.adopt("synthetic", wanted)
    loading.adopted.clear()
    part = datasets.cache.root() / "received" / f"synthetic-{wanted[:16]}" / "X.npy"
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    assert not loading.adopt("synthetic", wanted)  # … and not when it is damaged
    assert loading.adopt("synthetic", wanted, files)
    shutil.rmtree(part.parent)
    assert loading.adopt("synthetic", own)
