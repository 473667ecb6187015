"""Sessions of the mechanism server without a process: the method's side plays in a thread, over the same pipes."""

import contextlib
import threading
from multiprocessing import Pipe

import msgspec
import numpy as np

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.exact_release import SeededMechanisms
from dpbench.privacy.exact_sums import Deferred
from dpbench.privacy.ledger import Relation
from dpbench.problems import losses
from dpbench.problems.exact import ExactProblem
from dpbench.run.bind import bind, budget_of
from dpbench.serving import wire
from dpbench.serving.client import MechanismClient, PreparedMethod, answer
from dpbench.serving.server import MechanismServer

N, D = 40, 3


def problem(loss="logistic", n=N, d=D, l2=0.0, l1=0.0, row_bound=1.0, norm="l2", seed=0):
    """Synthetic rows on the grid of exact sums, of a loss of one output."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X *= row_bound / np.linalg.norm(X, ord=1 if norm == "l1" else 2, axis=1).max() / 1.01
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if losses.get(loss).binary else rng.uniform(0, 1, n)
    found = ExactProblem(X, y, loss=loss, l1=l1, l2=l2, row_bound=row_bound, row_bound_norm=norm, steady=True)
    found.top_eigenvalue = row_bound**2  # what a declaration knows of it, where a method measures it
    return found


class Session:
    """What came of a session: its iterates or what ended it, the server, and how often rows were read."""

    def __init__(self, W, ended, server, reads):
        self.W, self.ended, self.server, self.reads = W, ended, server, reads

    @property
    def released(self):
        """What the method was sent, as arrays."""
        replies = [wire.decoded(reply, wire.Reply).value for _, reply in self.server.transcript]
        return [one.array for one in replies if isinstance(one, wire.SentArray)]


def session(play, on=None, *, epsilon=1.0, delta=1e-5, relation="replace-one", accounting="tight", seconds=60.0,
            largest=wire.FRAME, monkeypatch=None, seeded="k"):  # fmt: skip
    """Play(channel) against a server of `on` in a thread; a `Session`."""
    on = on or problem()
    budget = budget_of(algorithms.get("dp-gd"), on.n, epsilon, delta, Relation(relation), accounting)
    server = MechanismServer(on, SeededMechanisms([seeded], budget), seconds=seconds)
    return against(server, play, largest=largest)


def against(server, play, *, largest=wire.FRAME):
    """Play(channel) against this server; a `Session`."""
    (replies, there), (requests, here) = Pipe(duplex=False), Pipe(duplex=False)
    method, mine = wire.Channel(replies, here), wire.Channel(requests, there, largest)
    reads, read = [], Deferred.integers.func

    def played():
        try:
            play(method)
        except (PrivacyError, BrokenPipeError):
            pass
        finally:
            for pipe in method[:2]:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def counted(self):
        reads.append(len(server.books.of(0)))
        return read(self)

    thread = threading.Thread(target=played, daemon=True)
    W, ended = None, None
    Deferred.integers.func = counted
    thread.start()
    try:
        W = server.serve(mine)
    except (PrivacyError, UserError) as error:
        ended = error
    finally:
        Deferred.integers.func = read
        for pipe in mine[:2]:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        thread.join(10)
    return Session(W, ended, server, reads)


def requests(*asked, done=True):
    """A play that sends these, and then iterates."""

    def play(channel):
        client = MechanismClient(channel)
        for one in asked:
            client.ask(one(client) if callable(one) else one)
        if done:
            channel.send(wire.DoneRequest(W=wire.numbers(np.zeros((1, D)))))

    return play


def given(reference, on, budget, settings=None, key="k"):
    """What the process of a method is started for."""
    declared = {"loss": on.loss.name, "l1": on.l1, "l2": on.l2, "w2": on.w2, "row_bound": on.row_bound,
                "row_bound_norm": on.row_bound_norm}  # fmt: skip
    return wire.RunMethod(
        reference=reference, n=on.n, d=on.d, declared=declared, budget=budget, settings=settings, key=key,
        start=wire.numbers(np.zeros((1, on.d))),
    )  # fmt: skip


def run(reference, on, *, epsilon=1.0, settings=None, relation=None, accounting="paper"):
    """(iterates in process, the session) of one method with one seed."""
    method, fixed = algorithms.resolve(reference)
    budget = budget_of(method, on.n, epsilon, None, relation, accounting)
    asked = make_settings(method, fixed | (settings or {}))
    start = np.zeros((1, on.d))
    here = bind(method, on, [asked], [budget], start, ["k"]).run(mechanisms_class=SeededMechanisms).W
    server = MechanismServer(on, SeededMechanisms(["k"], budget, declared=method.declared(budget.relation)))
    asked_for = given(reference, on, budget, msgspec.to_builtins(asked))

    def play(channel):
        prepared = PreparedMethod(asked_for)
        W = prepared.run(MechanismClient(channel), start.copy())
        channel.send(wire.DoneRequest(W=wire.numbers(W)))

    return here, against(server, play, largest=wire.LARGEST)


__all__ = ["D", "N", "Session", "against", "answer", "given", "problem", "requests", "run", "session"]
