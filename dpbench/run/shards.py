"""Rows in shards on the workers of a dask cluster: what `dpbench run --shards` and `fit` on a dask array compute with.

The driver keeps algorithms, noise and ledger; iterates go out, partial sums come back. A shard that is lost with its
worker is made again by dask from where it came from: the blocks of a dask array, or the prepared data.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import scipy

from dpbench import datasets
from dpbench.datasets import loading
from dpbench.errors import DataError, UserError, how_to_install
from dpbench.problems import Problem, build, catalogue
from dpbench.problems.rows import Rows
from dpbench.problems.shards import Question, ShardedProblem, Shards
from dpbench.run.cluster import Batch, WorkerDeath, check_version, connect, gone
from dpbench.run.cluster import BatchRows as Ended
from dpbench.run.execute import execute, one_thread
from dpbench.version import __version__

Prepare = Callable[[Any, Any], Rows]  # a block of X and one of y -> checked rows


def is_lazy(X: Any) -> bool:
    """Whether X is a dask collection."""
    return hasattr(X, "__dask_graph__")


def of_arrays(
    X: Any, y: Any, prepare: Prepare, *, kind: type[ShardedProblem] = ShardedProblem, **declared: Any
) -> ShardedProblem:
    """The problem of a dask array X (n, d) with labels y (n,), a shard per block of rows, on the active dask client.

    prepare runs on the workers. kind: the class of the problem.
    Raises UserError without a client, DataError where blocks do not fit each other.
    """
    try:
        import distributed
        from dask.delayed import delayed

        # dask.array has no types, so mypy would see an error in an import statement.
        da: Any = importlib.import_module("dask.array")
    except ImportError:
        raise UserError(f"X: a dask array needs dask.distributed; {how_to_install('dask')}") from None
    try:
        client: Any = cast(Any, distributed).default_client()
    except ValueError:
        raise UserError(
            "X: a dask array is fitted on a cluster; make a distributed.Client first, or give X.compute()"
        ) from None
    if getattr(X, "ndim", 0) != 2:
        raise DataError(f"X: shape {getattr(X, 'shape', '?')} found; give rows × columns, as a dask array")
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    known = not np.isnan(X.chunks[0]).any()
    if known and not is_lazy(y) and np.shape(y) == X.shape[:1]:
        y = da.from_array(np.asarray(y), chunks=(X.chunks[0],))
    if not is_lazy(y) or y.ndim != 1 or (y.shape != X.shape[:1] if known else y.numblocks != X.numblocks[:1]):
        raise DataError("y: give one entry per row of X, in blocks of the same rows")
    y = y.rechunk((X.chunks[0],)) if known else y
    blocks = zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
    make = delayed(_prepared, pure=False)
    futures = client.compute([make(prepare, __version__, A, b) for A, b in blocks])
    return _problem(Asker(client, futures), kind, **declared)


def of_problem(client: Any, whole: Problem, count: int) -> ShardedProblem:
    """A problem of the catalogue in `count` shards: by name where every worker has the same data, else sent to them."""
    if not 1 <= count <= whole.n:
        raise UserError(f"shards must be between 1 and the {whole.n:,} rows of {whole.name}, got {count}")
    cuts = np.linspace(0, whole.n, count + 1).astype(int)
    data = datasets.load(catalogue.recipe_of(whole.name).dataset)
    held = client.run(loading.adopt, data.name, data.sha256)
    spans = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    if held and all(present is True for present in held.values()):
        futures = [client.submit(_mapped, __version__, whole.name, data.name, data.sha256, *span, pure=False)
                   for span in spans]  # fmt: skip
    else:
        futures = [client.submit(_prepared, Rows, __version__, whole.X[low:high], whole.y[low:high], pure=False)
                   for low, high in spans]  # fmt: skip
    declared = {name: getattr(whole, name) for name in ("loss", "l1", "l2", "w2", "row_bound_norm", "row_bound")}
    more = {"name": whole.name, "folder": whole.folder, "data_hash": whole.data_hash}
    return _problem(Asker(client, futures), ShardedProblem, **declared, **more)


class Asker:
    """`shards.Ask` of the shards that these futures stand for; raises UserError where the cluster fails.

    dask places the shards, asks each where it is, and makes those anew that were lost with a worker.
    """

    def __init__(self, client: Any, shards: Sequence[Any]) -> None:
        self._client, self.shards = client, list(shards)

    def __call__(self, question: Question) -> Any:
        import asyncio

        from distributed import CancelledError, KilledWorker

        where = self._client.scheduler.address if self._client.scheduler else "dask"
        try:
            tasks = [
                self._client.submit(_answer, self.shards[i], question.function, question.arguments, own, pure=False)
                for i, own in sorted(question.own.items())
            ]
            return question.merged(self._client.gather(tasks))
        except KilledWorker as death:
            times = death.allowed_failures + 1
            raise UserError(f"{times} workers of {where} died over one shard; make more and smaller ones") from death
        except (CancelledError, OSError, asyncio.TimeoutError) as error:
            raise gone(where) from error


class Sharded:
    """The executor of `run --shards`: batches run here, one after the other, on rows that lie with the workers."""

    def __init__(self, scheduler: str, count: int) -> None:
        self._scheduler, self._count = scheduler, count

    def __enter__(self) -> Sharded:
        self._client = connect(self._scheduler)
        self._build = functools.lru_cache(maxsize=2)(lambda name: of_problem(self._client, build(name), self._count))
        return self

    def __exit__(self, *_: object) -> None:
        self._build.cache_clear()
        self._client.close()

    def shares(self) -> int:
        return 1

    def run(self, batches: dict[int, Batch]) -> Iterator[tuple[int, Ended | WorkerDeath]]:
        for index, batch in batches.items():
            ended = Ended(*execute(batch, self._build))
            if self._client.status != "running":
                raise gone(self._scheduler)
            yield index, ended


def _problem(ask: Asker, kind: type[ShardedProblem], **declared: Any) -> ShardedProblem:
    facts = ask(Question(_facts, (), dict.fromkeys(range(len(ask.shards)), ()), None))
    sizes, columns, sparse, single = zip(*facts, strict=True)
    if len(set(columns)) > 1:
        raise DataError(f"X: blocks of {min(columns)} and of {max(columns)} columns found; give all the same")
    return kind(Shards(ask, sizes, columns[0], sparse=sparse[0], single=single[0]), **declared)


# On a worker


def _answer(rows: Rows, function: Callable[..., Any], arguments: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
    # For good: a worker may have several threads, and leaving a `with` would undo the limit for the others.
    one_thread()
    with np.errstate(all="ignore"):
        return function(rows, *arguments, *own)


def _prepared(prepare: Prepare, version: str, X: Any, y: Any) -> Rows:
    check_version(version)
    return prepare(_aligned(X), _aligned(y))


def _aligned(array: Any) -> Any:
    """The array, or a copy where it came over a connection to an odd address: products with it take 3 times as long."""
    if scipy.sparse.issparse(array):
        whole: Any = array
        return whole if whole.data.flags.aligned and whole.indices.flags.aligned else whole.copy()
    return np.require(array, requirements="A") if isinstance(array, np.ndarray) else array


def _mapped(version: str, problem: str, name: str, sha256: str, low: int, high: int) -> Rows:
    """Rows low … high of a problem whose data this worker has."""
    check_version(version)
    if not loading.adopt(name, sha256):
        raise UserError(f"a worker that came later has not got {name}: give all workers one DPBENCH_DATA, or none")
    whole = build(problem)
    return Rows(whole.X[low:high], whole.y[low:high])


def _facts(rows: Rows) -> tuple[int, int, bool, bool]:
    return rows.n, rows.d, rows.sparse, rows.single
