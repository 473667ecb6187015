"""Rows in shards on two worker processes: the numbers of one place, also after a worker was killed."""

import itertools
import signal
import time

import numpy as np
import pytest
from scipy import sparse

import dpbench
from dpbench.cli import main
from dpbench.datasets import loading
from dpbench.errors import DataError, UserError
from dpbench.problems.losses import LOSSES
from dpbench.problems.rows import Rows
from dpbench.problems.shards import ShardedProblem, Shards
from dpbench.run import runner, shards
from dpbench.run.job import make_job
from dpbench.run.store import Store
from tests import processes
from tests.batches import ask_local

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """(address, start(name) of a worker process) of a scheduler in a process of its own; two workers are there."""
    folder = tmp_path_factory.mktemp("shards")
    file = folder / "scheduler.json"
    running = []

    def start(kind, *arguments):
        own = {"DPBENCH_DATA": str(folder / f"data-{len(running)}"), "DASK_LOGGING__DISTRIBUTED": "error"}
        running.append(processes.start(folder, processes.dask, kind, *arguments, "--no-dashboard", **own))
        return running[-1]

    def worker():
        return start("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny")

    start("scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(file))
    while not file.exists():
        assert running[0].is_alive()
        time.sleep(0.05)
    worker(), worker()
    with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    yield str(file), worker, running
    for process in running:
        processes.kill(process)


@pytest.fixture
def client(scheduler):
    with distributed.Client(scheduler_file=scheduler[0]) as one:
        one.wait_for_workers(2, timeout=60)
        yield one


def data(n=3000, d=6):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, np.where(X[:, 0] + 0.3 * generator.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [("dp-gd", {"T": 5}), ("dp-newton-minibatch-hess-clip", {"T": 3}), ("dp-cd", {"passes": 2.0, "l1": 0.01})],
)
def test_fit_on_a_dask_array_is_fit_on_its_rows(client, algorithm, settings):
    X, y = data()
    call = {"algorithm": algorithm, "epsilon": 1.0, "seed": 1, **settings}
    there = dpbench.fit(da.from_array(X, chunks=(700, 4)), da.from_array(y, chunks=1000), **call)
    here = dpbench.fit(X, y, **call)
    np.testing.assert_allclose(there.w, here.w, rtol=1e-9, atol=1e-12)
    assert there.diagnostics.objective == pytest.approx(here.diagnostics.objective, rel=1e-9)
    assert there.released.ledger == here.released.ledger


@pytest.mark.thorough
@pytest.mark.parametrize(
    "call",
    [
        {"algorithm": "dp-gd", "T": 5},
        {"algorithm": "dp-gd-average", "T": 5, "l1": 0.01, "relation": "replace-one"},
        {"algorithm": "dp-sgd", "T": 5},
        {"algorithm": "boosted-ssp", "loss": "squared", "l2": 0.01},
        {"algorithm": "dp-gcd", "scales": "bound", "passes": 3.0, "l1": 0.001},
        {"algorithm": "dp-cd", "scales": "bound", "passes": 2.0, "l2": 0.01},
    ],
    ids=lambda call: call["algorithm"],
)
def test_bytes_do_not_depend_on_shards_or_on_the_order_of_the_rows(client, call):
    """From the rows to the released model, with one and the same noise; a sample is of places, not of rows."""
    X, y = data()
    call = {"epsilon": 1.0, "seed": 1, "arithmetic": "bytes", **call}
    here = dpbench.fit(X, y, **call).w.tobytes()
    order = np.random.default_rng(2).permutation(len(y))
    orders = [np.arange(len(y))] if call["algorithm"] == "dp-sgd" else [np.arange(len(y)), order]
    assert all(dpbench.fit(X[one], y[one], **call).w.tobytes() == here for one in orders)
    for rows in (700, 1234):
        for one in orders:
            there = dpbench.fit(da.from_array(X[one], chunks=(rows, 6)), da.from_array(y[one], chunks=rows), **call)
            assert there.w.tobytes() == here


@pytest.mark.parametrize("call", [{"algorithm": "objpert"}, {"algorithm": "dp-gd-average", "T": 4}], ids=str)
def test_a_release_of_a_dask_array_holds_for_its_bytes_and_says_nothing_of_bad_rows(client, call):
    """As a caller has it: no seed, rows of any length, a missing value and a label that is none."""
    X, y = data()
    X[3], X[5, 1], y[7] = 40.0, np.nan, 9.0
    lazy = da.from_array(X, chunks=(700, 6)), da.from_array(y, chunks=700)
    fits = [dpbench.fit(*lazy, epsilon=1.0, **call) for _ in range(2)]
    for fit in fits:
        assert (fit.released.arithmetic, fit.released.noise, fit.released.relation) == ("bytes", "exact", "replace-one")
        assert fit.guarantee.endswith("holds for the bytes released; counts as public: n")
        assert np.isfinite(fit.w).all()
    assert fits[0].w.tobytes() != fits[1].w.tobytes()


def test_what_does_not_fit_is_one_line(client):
    X, y = data(300)
    blocks = da.from_array(X, chunks=(100, 6))
    call = {"algorithm": "dp-gd", "epsilon": 1.0, "seed": 1, "T": 2}
    long = 0.99 * X
    long[250] *= 3
    for error, match, rows, labels in (
        (DataError, r"X: 1 of 100 rows have ‖x‖₂ > 1 \(largest 2.97\)", da.from_array(long, chunks=(100, 6)), y),
        (DataError, "y: logistic loss needs labels -1 and \\+1, found 0", blocks, np.where(y > 0, 1.0, 0.0)),
        (DataError, "y: the only label is 1; give both", blocks, np.ones(300)),
        (DataError, "y: give one entry per row of X", blocks, y[:-1]),
    ):
        with pytest.raises(error, match=match):
            dpbench.fit(rows, labels, **call)
    assert np.isfinite(dpbench.fit(da.from_array(long, chunks=(100, 6)), y, bound="rescale", **call).w).all()


def test_run_on_shards_gives_the_rows_of_a_local_run(scheduler, tmp_path):
    jobs = [
        make_job(problem="synthetic", algorithm=name, epsilon=1, seed=0, settings={"T": 4})
        for name in ("dp-gd", "dp-newton-qu-add")
    ]
    stores = {name: Store(tmp_path, name, "e") for name in ("there", "here")}
    summary = runner.run(jobs, stores["there"], backend="dask", scheduler=scheduler[0], shards=3)
    assert summary.statuses == {"done": 2}, summary.failures
    runner.run(jobs, stores["here"])
    there, here = (store.runs().sort_values("key") for store in stores.values())
    for column in ("objective", "excess", "gradient_norm", "accuracy"):
        np.testing.assert_allclose(there[column], here[column], rtol=1e-9)
    for column in ("key", "epsilon_planned", "data_sha256"):
        assert there[column].tolist() == here[column].tolist()


def test_shards_from_the_command_line(scheduler, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["run", "--algo", "dp-gd", "--dataset", "synthetic", "--seeds", "2", "--set", "T=3", "--jobs", "1"]
    printed = []
    for more in (["--out", "a"], ["--out", "b", "--backend", "dask", "--scheduler", scheduler[0], "--shards", "2"]):
        with pytest.raises(SystemExit) as end:
            main([*command, *more])
        assert not end.value.code
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    with pytest.raises(SystemExit) as end:
        main([*command, "--shards", "2"])
    assert end.value.code == 2
    assert "--shards must be at least 1, and goes with backend dask" in capsys.readouterr().err


def test_shards_of_a_worker_that_was_killed_are_made_again(client, scheduler):
    """And another worker takes its place, for the tests that come next."""
    _, worker, running = scheduler
    X, y = data()
    call = {"algorithm": "dp-gd", "epsilon": 1.0, "seed": 1, "T": 12}
    asked, answer = [], shards.Asker.__call__

    def killing(self, question):
        found = answer(self, question)
        asked.append(question)
        if len(asked) == 6:
            holding = client.who_has(self.shards)
            assert len({where for workers in holding.values() for where in workers}) == 2  # both hold some
            running[1].kill()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards.Asker, "__call__", killing)
        there = dpbench.fit(da.from_array(X, chunks=(300, 6)), y, **call)
    running[1].join(10)
    assert running[1].exitcode == -signal.SIGKILL
    assert len(asked) > 12  # and it went on
    np.testing.assert_allclose(there.w, dpbench.fit(X, y, **call).w, rtol=1e-9, atol=1e-12)
    worker()
    client.wait_for_workers(2, timeout=60)


@pytest.mark.parametrize(("held", "submitted"), [(True, "_mapped"), (False, "_prepared")])
def test_data_that_a_worker_has_not_got_are_sent(client, monkeypatch, held, submitted):
    sent, submit, run = [], client.submit, client.run

    def answered(function, *arguments, **more):
        return {"a": True, "b": held} if function is loading.adopt else run(function, *arguments, **more)

    monkeypatch.setattr(client, "run", answered)
    monkeypatch.setattr(client, "submit", lambda f, *a, **k: sent.append(f.__name__) or submit(f, *a, **k))
    here = dpbench.problems.build("synthetic")
    there = shards.of_problem(client, here, 2)
    assert sent[:2] == [submitted] * 2
    assert {*sent[2:]} == {"_answer"}
    np.testing.assert_allclose(there.second_moment(), here.second_moment(), rtol=1e-9, atol=1e-15)
    with pytest.raises(UserError, match="shards must be between 1 and"):
        shards.of_problem(client, here, here.n + 1)


def test_shards_that_kill_their_workers_are_one_line(client, monkeypatch):
    def killed(tasks):
        raise distributed.KilledWorker(tasks[0].key, None, 3)

    problem = shards.of_problem(client, dpbench.problems.build("synthetic"), 2)
    monkeypatch.setattr(client, "gather", killed)
    with pytest.raises(UserError, match=r"^4 workers of tcp.* died over one shard; make more and smaller ones"):
        problem.second_moment()


def test_the_bits_do_not_depend_on_who_holds_which_shard(client):
    """Nor on who answers first: answers are added in the shards' order."""
    whole = dpbench.problems.build("synthetic")
    W = np.random.default_rng(0).standard_normal((2, whole.d))
    found = set()
    for _ in range(3):
        found.add(shards.of_problem(client, whole, 7).gradient(W).tobytes())
    cuts = np.linspace(0, whole.n, 8).astype(int)
    parts = [Rows(whole.X[low:high], whole.y[low:high]) for low, high in itertools.pairwise(cuts)]
    here = ShardedProblem(Shards(ask_local(parts), np.diff(cuts).tolist(), whole.d), loss=whole.loss, l2=whole.l2)
    assert found == {here.gradient(W).tobytes()}


def test_what_a_shard_raises_is_raised_here(client):
    problem = shards.of_problem(client, dpbench.problems.build("synthetic"), 2)
    with pytest.raises(IndexError):
        problem._rows.each(Rows.take, np.array([problem.n]), merge=None)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_that_came_over_a_connection_are_aligned(make):
    """Arrays of a message begin where it has them; products with such are three times as slow."""
    X, y = data(300)

    def shifted(array):
        return np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1).reshape(array.shape)

    odd = shifted(X) if make is np.asarray else make(X)
    if make is not np.asarray:
        odd.data = shifted(odd.data)
    rows = shards._prepared(Rows, dpbench.__version__, odd, shifted(y))
    parts = (rows.X, rows.y) if make is np.asarray else (rows.X.data, rows.X.indices, rows.y)
    assert all(part.flags.aligned for part in parts)
    W = np.ones((1, 6))
    np.testing.assert_array_equal(
        rows.weighted_sum(LOSSES["logistic"].derivative, W),
        Rows(make(X), y).weighted_sum(LOSSES["logistic"].derivative, W),
    )
