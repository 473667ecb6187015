"""What runs inside the sandbox, beside the stranger's code: its method on each task, the iterates sent back.

`python -m dpbench.archive.harness FD` in a folder with `tasks.json`, `method.py` and the tasks' arrays. All that it
sends may have been forged by the code beside it: whoever reads it computes losses and verdicts from the iterates alone.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import scipy.sparse

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.archive.content import releases
from dpbench.errors import PrivacyError, UserError
from dpbench.problems import Problem
from dpbench.run.bind import bind, budget_of
from dpbench.run.execute import one_thread
from dpbench.serving import sandbox

LARGEST = 64 << 20  # bytes of one frame


class TaskResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the code made of one task.

    W: float64, row by row; settings: those it ran at; public: what it says that it takes from the data without paying;
    error: one line, or "".
    """

    task: int
    W: bytes = b""
    settings: str = "{}"
    public: str = ""
    releases: list[dict[str, Any]] = []
    seconds: float = 0.0
    error: str = ""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of the method on one problem at one ε, one per stream key.

    data: the name of an npz file with X, y and start (k, d). settings: None for the method's public ones.
    """

    task: int
    data: str
    loss: str
    l1: float
    l2: float
    epsilon: float
    delta: float
    accounting: str
    relation: str
    keys: list[str]
    settings: dict[str, Any] | None = None
    row_bound: float | None = 1.0


class Tasks(msgspec.Struct, frozen=True):
    """All that the sandbox is given to do with one class."""

    class_name: str
    tasks: list[Task]


def frames(folder: Path, limits: sandbox.Limits) -> Iterator[TaskResult]:
    """Run this module on the tasks in `folder`, in the sandbox; what comes back, as it comes.

    It ends where the code ends, for whatever reason; a frame that is none ends it too.
    """
    assert sandbox.at_hand() is not None
    read, write = os.pipe()
    try:
        process = sandbox.start([sys.executable, "-m", "dpbench.archive.harness", str(write)], folder, limits, (write,))
    finally:
        # This end must be closed here, else the pipe has no end when the sandbox has ended.
        os.close(write)
    # Limits of the processor do not stop code that sleeps.
    timer = threading.Timer(limits.wall, process.kill)
    timer.start()
    try:
        with os.fdopen(read, "rb") as pipe:
            # The size is the stranger's word: without a bound one frame could fill the memory.
            while (size := int.from_bytes(pipe.read(4), "big")) and size <= LARGEST:
                try:
                    yield msgspec.msgpack.decode(pipe.read(size), type=TaskResult)
                except msgspec.DecodeError:
                    return
    finally:
        timer.cancel()
        process.kill()
        process.wait()


Runs = Callable[[Path, sandbox.Limits], Iterator[TaskResult]]


def serve(folder: Path, pipe: IO[bytes]) -> None:
    """Run every task, in the order given, and send a frame for each."""
    given = msgspec.json.decode((folder / "tasks.json").read_bytes(), type=Tasks)
    of_file = f"{folder / 'method.py'}:{given.class_name}"
    with one_thread():
        for task in given.tasks:
            frame = _frame(folder, of_file, task)
            sent = msgspec.msgpack.encode(frame)
            pipe.write(len(sent).to_bytes(4, "big") + sent)
            pipe.flush()


def _frame(folder: Path, reference: str, task: Task) -> TaskResult:
    try:
        return _run(folder, reference, task)
    except (UserError, PrivacyError) as error:
        return TaskResult(task.task, error=str(error)[:300])
    except Exception as error:
        return TaskResult(task.task, error=f"{type(error).__name__}: {error}"[:300])


def _run(folder: Path, reference: str, task: Task) -> TaskResult:
    with np.load(folder / task.data) as arrays:
        X, y, start = matrix(arrays), arrays["y"], arrays["start"]
    problem = Problem(X, y, loss=task.loss, l1=task.l1, l2=task.l2, row_bound=task.row_bound)
    return run_task(reference, problem, start, task)


def matrix(arrays: Any) -> Any:
    """The rows in an npz file: dense, or the parts of a sparse matrix."""
    if "X" in arrays:
        return arrays["X"]
    return scipy.sparse.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))


def run_task(reference: str, problem: Problem, start: np.ndarray, task: Task) -> TaskResult:
    """The method's runs of a task on `problem`, from `start` (k, d)."""
    method, fixed = algorithms.resolve(reference)
    chosen = public_settings(reference, problem.n, problem.d, task.epsilon) if task.settings is None else task.settings
    given = make_settings(method, fixed | chosen)
    budget = budget_of(method, problem.n, task.epsilon, task.delta, task.relation, task.accounting)
    k = len(task.keys)
    run = bind(method, problem, [given] * k, [budget] * k, start, task.keys).run()
    W = np.ascontiguousarray(run.W, dtype=np.float64)
    shown = msgspec.json.encode(msgspec.to_builtins(given), order="deterministic").decode()
    return TaskResult(
        task.task, W.tobytes(), shown, method.public(given), releases(run.mechanisms.ledger.planned(0)), run.seconds
    )


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "wb") as verdict:
        serve(Path.cwd(), verdict)
