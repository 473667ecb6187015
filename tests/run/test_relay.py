"""A question goes to every worker once, down a tree, and its answers come back merged; what fails is told."""

import asyncio
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from dpbench.problems.kernels import Rows
from dpbench.problems.sharded import Question, Shards
from dpbench.run import relay

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")


class Workers:
    """As many workers as `shards` has lists of shards, in one process; `dead` do not answer."""

    def __init__(self, rows, shards, dead=()):
        self.sent, self.dead, self.depth = {}, dead, {}
        self.places = [(f"w{i}", [(j, f"key-{j}", ()) for j in some]) for i, some in enumerate(shards)]
        self.workers = {
            address: SimpleNamespace(
                address=address,
                rpc=lambda to, sender=address: self.pool(sender, to),
                data={key: rows[j] for j, key, _ in asked},
                executors={"default": None},
                handlers={},
            )
            for address, asked in self.places
        }
        for worker in self.workers.values():
            relay.serve(worker)

    def pool(self, sender, to):
        async def ask(**message):
            self.sent[sender] = self.sent.get(sender, 0) + 1
            self.depth[to] = self.depth.get(sender, 0) + 1
            if to in self.dead:
                raise OSError("connection refused")
            return await self.workers[to].handlers[relay.HANDLER](**message)

        return SimpleNamespace(**{relay.HANDLER: ask})

    def ask(self, question):
        root, node = relay.tree(self.places)
        message = relay.Message(*relay.pickled(question), node)
        found = asyncio.run(relay.send(lambda to: self.pool("driver", to), root, message))
        return question.answer(found) if isinstance(found, dict) else found


def rows_of(count):
    rng = np.random.default_rng(0)
    return [Rows(rng.standard_normal((3, 2)), np.ones(3)) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 21])
def test_every_worker_is_asked_once_and_no_one_sends_many_messages(count):
    rows = rows_of(2 * count)
    cluster = Workers(rows, [(2 * i, 2 * i + 1) for i in range(count)])
    found = Shards(cluster.ask, [3] * len(rows), 2).column_squares()
    np.testing.assert_allclose(found, sum(r.column_squares() for r in rows), rtol=1e-12)
    assert sum(cluster.sent.values()) == count
    assert cluster.sent["driver"] == 1
    most = math.ceil(math.log2(count)) if count > 1 else 0
    assert max([0, *(number for who, number in cluster.sent.items() if who != "driver")]) <= most
    assert max(cluster.depth.values()) <= 1 + most


def test_the_bits_are_the_same_wherever_the_shards_are():
    rows, rng = rows_of(21), np.random.default_rng(1)
    found = set()
    for _ in range(10):
        hands = rng.integers(0, 6, 21)
        cluster = Workers(rows, [some for i in range(6) if len(some := np.flatnonzero(hands == i).tolist())])
        found.add(Shards(cluster.ask, [3] * 21, 2).weighted_gram().tobytes())
    assert len(found) == 1


def test_a_worker_that_is_gone_and_one_that_has_not_got_its_shards_are_named():
    rows, question = rows_of(8), Question(Rows.column_squares, (), dict.fromkeys(range(8), ()), np.add)
    shards = [(i,) for i in range(8)]
    assert Workers(rows, shards, dead=("w5",)).ask(question) == relay.Lost("w5")
    assert Workers(rows, shards, dead=("w0",)).ask(question) == relay.Lost("w0")
    cluster = Workers(rows, shards)
    cluster.workers["w3"].data.clear()
    assert cluster.ask(question) == relay.Lost("w3")
    cluster = Workers(rows, shards)
    cluster.workers["w6"].handlers[relay.HANDLER] = _nothing
    assert cluster.ask(question) == relay.Lost("w6")


async def _nothing(**message):
    return None  # as dask answers for a handler that it does not know


def test_what_a_function_raises_comes_back():
    question = Question(Rows.take, (np.array([7]),), dict.fromkeys(range(4), ()), None)
    found = Workers(rows_of(4), [(0, 1), (2, 3)]).ask(question)
    assert isinstance(found, relay.Raised)
    with pytest.raises(IndexError):
        raise pickle.loads(found.error)
