"""A question to all shards at once: it goes down a tree of dask's workers, and partial sums come up it.

The driver asks one worker. Each worker passes the question on to its children over dask's own connections (with TLS
where dask has it), asks the shards it holds, and answers with its parts and theirs, merged (`problems.tree`). So the
driver sends and receives one message, however many workers there are, and dask's scheduler none. The tree is binomial:
of 1,024 workers none sends more than ten messages, one after the other, and none is more than ten steps away.

A worker keeps nothing of it: what it is to do, and whom to ask, comes with the question.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpbench.problems.kernels import Rows
from dpbench.problems.sharded import Question
from dpbench.problems.tree import Parts, joined

HANDLER = "dpbench_ask"
Asked: TypeAlias = list[tuple[int, Any, tuple[Any, ...]]]  # (shard, key of its rows, arguments of its own)


class Lost(NamedTuple):
    """An answer that does not come: the worker at `address` is not there, or has not got its shards any more."""

    address: str


class Raised(NamedTuple):
    """What a shard's function raised, pickled."""

    error: bytes


Answer: TypeAlias = Parts | Lost | Raised


class Message(NamedTuple):
    """`question`: function and arguments, pickled; `merge`, pickled; `node`: what its receiver is to do, pickled."""

    question: bytes
    merge: bytes
    node: bytes


def pickled(question: Question) -> tuple[bytes, bytes]:
    """The question of a message, and its merge."""
    return _pickle().dumps((question.function, question.arguments)), _pickle().dumps(question.merge)


def tree(places: Sequence[tuple[str, Asked]]) -> tuple[str, bytes]:
    """(the worker to ask, the node of its message), where `places` says who is asked for which shards.

    Contiguous shards in order make the smallest messages: the parts of every subtree are then one.
    """
    left, below = list(places), []
    while len(left) > 1:
        half = 1 << ((len(left) - 1).bit_length() - 1)
        below.append(tree(left[half:]))
        left = left[:half]
    address, asked = left[0]
    return address, _pickle().dumps((asked, below))


class Proxy:
    """The worker at `address` by way of the scheduler, for a driver that does not reach it."""

    def __init__(self, scheduler: Any, address: str) -> None:
        self._scheduler, self._address = scheduler, address

    async def dpbench_ask(self, **message: bytes) -> Any:
        return await self._scheduler.proxy(msg={"op": HANDLER, **message}, worker=self._address)


async def send(pool: Any, address: str, message: Message) -> Answer:
    """The answer of the worker at `address`, over a pool of dask's connections (of a worker or a client)."""
    try:
        reply = await getattr(pool(address), HANDLER)(**message._asdict())
    except OSError:  # a connection that is closed, or was not made
        return Lost(address)
    return Lost(address) if reply is None else _pickle().loads(reply)  # None: a worker without the handler


def serve(dask_worker: Any) -> None:
    """On a worker, by `Client.run`: let it take questions."""

    async def relayed(question: bytes, merge: bytes, node: bytes) -> bytes:
        return await _relay(dask_worker, Message(question, merge, node))

    dask_worker.handlers[HANDLER] = relayed


async def _relay(worker: Any, message: Message) -> bytes:
    import asyncio  # a worker of dask has it; a fit of rows in memory never needs it

    asked, below = _pickle().loads(message.node)
    sent = [asyncio.ensure_future(send(worker.rpc, address, message._replace(node=node))) for address, node in below]
    await asyncio.sleep(0)  # they are on their way before this worker's own shards take its time
    answers = await asyncio.gather(*sent, *_own(worker, asked, message.question))
    found: bytes = _pickle().dumps(_joined(answers, _pickle().loads(message.merge)))
    return found


def _own(worker: Any, asked: Asked, question: bytes) -> list[Any]:
    """The answers of this worker's shards, to be waited for; in the threads of its tasks."""
    if any(key not in worker.data for _, key, _ in asked):
        return [_at_once(Lost(worker.address))]
    import asyncio

    run = functools.partial(asyncio.get_running_loop().run_in_executor, worker.executors["default"])
    return [run(_answer, shard, worker.data[key], question, own) for shard, key, own in asked]


async def _at_once(answer: Answer) -> Answer:
    return answer


def _answer(shard: int, rows: Rows, question: bytes, own: tuple[Any, ...]) -> Answer:
    one_thread()
    try:
        function, arguments = _pickle().loads(question)
        with np.errstate(all="ignore"):
            return {(0, shard): function(rows, *arguments, *own)}
    except Exception as error:
        return Raised(_pickle().dumps(error))


def _joined(answers: Sequence[Answer], merge: Callable[[Any, Any], Any] | None) -> Answer:
    for kind in (Raised, Lost):
        if failed := [answer for answer in answers if isinstance(answer, kind)]:
            return failed[0]
    return joined((answer for answer in answers if isinstance(answer, dict)), merge)


def _pickle() -> Any:
    """dask's, which takes functions that are not of a module."""
    from distributed.protocol import pickle

    return pickle


@functools.cache
def one_thread() -> None:
    """Let BLAS have one thread in this process, for good, as in `cluster.perform`."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
