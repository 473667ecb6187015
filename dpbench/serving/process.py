"""A method's process: started in the sandbox for one run, limited, ended with it; and the run repeated without rows."""

from __future__ import annotations

import contextlib
import operator
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.exact_release import ExactMechanisms
from dpbench.problems.exact import ExactSums
from dpbench.serving import sandbox, wire
from dpbench.serving.server import MechanismServer, RefusedRequest

Transcript = Sequence[tuple[bytes, bytes]]  # requests and replies, as they were sent
Same = Callable[[bytes, bytes], bool]  # of two requests as they were sent
FILE = "method.py"  # what a method's file is called in the sandbox
PATIENCE = 5.0  # seconds that a method has to say where it was refused
LIMITS = sandbox.Limits(seconds=600, wall=1200)
SERVED, OPEN = "served", "served, not isolated"  # without a sandbox: a guard against mistakes, not against malice


class MethodCode(NamedTuple):
    """The method `reference` of what is installed, or, with a `source`, the class of that name in this text.

    file: what its author calls the file of the text.
    """

    reference: str
    source: bytes = b""
    file: str = FILE

    @property
    def called(self) -> str:
        """How its process finds it."""
        return f"{FILE}:{self.reference}" if self.source else self.reference

    def failed(self, told: str) -> UserError:
        """What its process tells of a failure, with the line of its author's file."""
        return UserError(told.replace(FILE, self.file))

    def place(self, channel: wire.Channel) -> str:
        """ " (mine.py:7)": which line asked for what was refused, as its process says; "" where it says no line."""
        with contextlib.suppress(PrivacyError):  # it ended, or goes on asking
            if channel.incoming.poll(PATIENCE):
                line = re.search(r" [(][\w.]+:\d+[)]\Z", channel.receive(wire.FailedRequest).error)
                return line[0].replace(FILE, self.file) if line else ""
        return ""


class ServedRun(NamedTuple):
    """What a run was started with, its iterates (1, d), and all that passed between method and server."""

    given: wire.RunMethod
    W: np.ndarray
    transcript: Transcript

    @property
    def size(self) -> int:
        """Bytes of its transcript."""
        return sum(len(asked) + len(reply) for asked, reply in self.transcript)

    @property
    def encoded(self) -> bytes:
        """As MessagePack: the start, the frames as they were sent, the iterates."""
        return wire.encoded([self.given, self.transcript, wire.numbers(self.W)])


def isolation() -> str:
    """How methods are served here, as a row says it."""
    return OPEN if sandbox.at_hand() is None else SERVED


def ask(code: MethodCode, request: wire.Frame, reply: Any, limits: sandbox.Limits = LIMITS) -> Any:
    """What a method says, by a process that ends with it; UserError with its own words where it fails."""
    try:
        with _process(code, limits, wire.DESCRIPTION) as channel:
            channel.send(request)
            answer = channel.receive(reply | wire.FailedRequest)
    except PrivacyError as error:  # of a process that dies, or floods: there is no run yet that it ends
        raise UserError(f"{code.reference}: what it says of itself is no description: {error}") from None
    if isinstance(answer, wire.FailedRequest):
        raise code.failed(answer.error)
    return answer


def serve(
    code: MethodCode, given: wire.RunMethod, problem: ExactSums, mechanisms: ExactMechanisms,
    limits: sandbox.Limits = LIMITS,
) -> ServedRun:  # fmt: skip
    """One run of a method on the rows of `problem`, by the releases of `mechanisms` alone.

    Raises:
        PrivacyError: for a request that is refused, and for a malformed or missing one. UserError: for a method that
            fails by itself. Whatever was in the ledger by then is spent.
    """
    server = MechanismServer(problem, mechanisms, seconds=limits.wall)
    hessians = problem.d**2 * 8 + wire.FRAME
    with _process(
        code, limits, min(wire.LARGEST, hessians if problem.d <= 2048 else wire.FRAME + 64 * problem.d)
    ) as channel:
        channel.send(given)
        try:
            return ServedRun(given, server.serve(channel), server.transcript)
        except UserError as error:
            raise code.failed(str(error)) from None
        except RefusedRequest as error:
            raise RefusedRequest(f"{error}{code.place(channel)}") from None


def repeat(code: MethodCode, run: ServedRun, limits: sandbox.Limits = LIMITS, same: Same = operator.eq) -> str:
    """Run it again with no rows at hand, on the replies that it had; "" where it does the same, else what differs.

    It judges honesty, not privacy: what returns something else had it from a clock, a file or randomness of its own.
    same: how frames are compared.
    """
    try:
        with _process(code, limits) as channel:
            channel.send(run.given)
            for asked, reply in run.transcript:
                if not same(channel.read(), asked):
                    return "asks for something else when it is run again on the same replies"
                channel.send(wire.decoded(reply, wire.Reply))
            if same(channel.read(), wire.encoded(wire.DoneRequest(W=wire.numbers(run.W)))):
                return ""
    except PrivacyError as error:
        return f"run again on the same replies, {error}"
    return "returns something else when it is run again on the same replies"


@contextlib.contextmanager
def _process(code: MethodCode, limits: sandbox.Limits, largest: int = wire.LARGEST) -> Iterator[wire.Channel]:
    """The pipes to a fresh process of the method, which is killed at the end, or when its time is over."""
    with tempfile.TemporaryDirectory(prefix="dpbench-served-") as home:
        folder = Path(home)
        if code.source:
            (folder / FILE).write_bytes(code.source)
        (replies, outgoing), (incoming, requests) = Pipe(duplex=False), Pipe(duplex=False)
        with replies, requests:  # the method's ends, which are its process's alone once it is started
            pipes = replies.fileno(), requests.fileno()
            command = [sys.executable, "-m", "dpbench.serving.client", *map(str, pipes)]
            process = sandbox.start(command, folder, limits, pipes)
        timer = threading.Timer(limits.wall, process.kill)
        timer.start()
        try:
            with incoming, outgoing:
                yield wire.Channel(incoming, outgoing, largest)
        except BrokenPipeError:
            raise PrivacyError("it ended before its run did") from None
        finally:
            timer.cancel()
            process.kill()
            process.wait()
