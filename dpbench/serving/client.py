"""The side of the method: a problem of public numbers, whose sums are recipes that the server computes and noises.

Nothing here guards the rows, as the method may do with this process what it likes: what raises here names a mistake.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm, RunResult, batch_settings, make_settings, no_trace
from dpbench.algorithms.library import LibrarySolver
from dpbench.algorithms.rules import public_settings
from dpbench.errors import PrivacyError, in_words
from dpbench.privacy.exact_sampling import Draws, SeededBits
from dpbench.privacy.exact_sums import CURVATURE_BITS, ROW_BITS, WEIGHT_BITS, Deferred, RowSensitivity, Sum, Unread
from dpbench.privacy.ledger import plain
from dpbench.privacy.mechanisms import Mechanisms, Score
from dpbench.privacy.noise import OBJECTIVE, Event, Noise, Releases, Scalars
from dpbench.privacy.sampling import SinglePass
from dpbench.problems.exact import HiddenMeans
from dpbench.problems.regularisers import Declaration
from dpbench.serving import sandbox, wire

STEP = 2.0 ** -(ROW_BITS + WEIGHT_BITS)  # of the integers of a gradient
NOT_SERVED = "works on the rows themselves, which are not in this process; run it as trusted code"


class MechanismClient:
    """What requests go to."""

    def __init__(self, channel: wire.Channel) -> None:
        self._channel = channel

    def ask(self, request: wire.Frame) -> Any:
        """The reply: an array, a token or None. PrivacyError where the server refuses, which ends the run."""
        self._channel.send(request)
        reply = self._channel.receive(wire.Reply | wire.Refused)
        if isinstance(reply, wire.Refused):
            raise PrivacyError("the server refused this request, and has ended the run")
        return reply.value.array if isinstance(reply.value, wire.SentArray) else reply.value


class SumHandle(Sum):
    """unit · a sum over the rows + offset, none of which is here but the recipe, the unit and the offset."""

    def __init__(self, recipe: Any, shape: tuple[int, ...], unit: float = 1.0, offset: Any = 0.0) -> None:
        super().__init__(Deferred(shape, self.unread), unit, RowSensitivity(0, 0), offset)  # a distance is the server's
        self.recipe = recipe

    def like(self, unit: float, offset: Any) -> SumHandle:
        return SumHandle(self.recipe, self.shape, unit, offset)

    @property
    def request(self) -> wire.RequestedValue:
        offset = wire.numbers(np.broadcast_to(self.offset, self.shape)) if np.ndim(self.offset) else None
        return wire.RequestedValue(recipe=self.recipe, unit=self.unit, offset=offset)

    def __getitem__(self, place: Any) -> Any:
        """[:, columns] of a clipped gradient, and [[0], [j]], its entry j."""
        if not isinstance(self.recipe, wire.ClippedGradient) or not isinstance(place, tuple):
            self.unread()
        rows, columns = place
        offset = np.broadcast_to(self.offset, self.shape)[place] if np.ndim(self.offset) else 0.0
        chosen = [int(j) for j in np.ravel(np.arange(self.shape[1])[columns])]
        if not isinstance(rows, slice):
            recipe, shape = msgspec.structs.replace(self.recipe, entry=chosen[0]), self.shape[:1]
        elif len(chosen) == self.shape[1]:
            return self
        else:
            recipe, shape = msgspec.structs.replace(self.recipe, columns=chosen), (1, len(chosen))
        return SumHandle(recipe, shape, self.unit, offset)


class Token(Unread):
    """A sample that the server drew, or its linear term: nobody here knows more of it."""

    told = "a sample, or a linear term, stays with the server: hand it on as it is, and divide by the sampler's size"

    def __init__(self, token: int) -> None:
        self.token = token


class ServedDeclaration(HiddenMeans, Declaration):
    """The problem that a served method sees: a declaration, with recipes for the sums of `EmpiricalRisk`."""

    _states = 0

    def batch(self, W: Any) -> np.ndarray:
        return np.asarray(W, dtype=float)

    def _sum(
        self, recipe: type, at: Any, rows: Any = None, shape: tuple[int, ...] = (), unit: float = STEP, **more: Any
    ) -> Sum:
        if rows is not None:
            more["rows"] = rows.token if isinstance(rows, Token) else [int(i) for i in np.ravel(rows)]
        if at is not None:
            more["at"] = wire.numbers(np.atleast_2d(at))
        return SumHandle(recipe(**more), shape or (1, self.d), unit)

    def gradient_sum(self, w: Any, rows: Any = None) -> Sum:
        return self._sum(wire.GradientSum, w, rows)

    def hessian_sum(self, w: Any, rows: Any = None, curvature: str = "hess") -> Sum:
        unit = 2.0 ** (-2 * ROW_BITS) * (self.loss.smoothness * 2.0**-CURVATURE_BITS)
        return self._sum(wire.HessianSum, w, rows, (1, self.d, self.d), unit, curvature=curvature)

    def bounded_gradient(self, W: Any, bound: float) -> Sum:
        return self._sum(wire.BoundedGradient, W, bound=float(bound)) / self.n

    def clipped_value(self, W: Any, clip: float) -> Sum:
        return self._sum(wire.ClippedValue, W, shape=(1,), unit=2.0**-WEIGHT_BITS, clip=float(clip)) / self.n

    def label_moments(self, bound: float) -> Sum:
        return self._sum(wire.LabelMoments, None, bound=float(bound))

    def second_moment(self) -> Sum:
        return self._sum(wire.SecondMoment, None, shape=(1, self.d, self.d)) / self.n

    def least_eigenvalue(self, gram: Any) -> Sum:
        return SumHandle(wire.LeastEigenvalue(of=gram.recipe, unit=gram.unit), (1,))

    def clipped_gradient(self, W: Any, clip: Any, *, even: bool = False) -> Sum:
        # Own constants of columns are computed from the rows, and nothing of the rows is public here.
        if not even:
            raise PrivacyError("columns' own constants are of the data; choose scales=bound")
        return self._sum(wire.ClippedGradient, W, clip=float(np.ravel(clip)[0])) / self.n

    @property
    def even_shares(self) -> np.ndarray:
        return np.full(self.d, self.d**-0.5)

    def coordinate_state(self, W: Any) -> CoordinateHandle:
        self._states += 1
        return CoordinateHandle(self._states, wire.numbers(W), self.n)

    def approximate_minimiser(
        self, solve: Any, W: Any, b: Any, ridge: float, gamma: float
    ) -> tuple[Sum, np.ndarray, np.ndarray]:
        """That the solver reaches γ is the server's to see."""
        recipe = wire.PerturbedMinimiser(
            solver=str(solve.__module__).rpartition(".")[2], ridge=float(ridge), tolerance=float(gamma),
            at=wire.numbers(W), term=None if isinstance(b, Token) else wire.numbers(b),
        )  # fmt: skip
        return SumHandle(recipe, (1, self.d)), np.zeros(1), np.zeros(1, dtype=int)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"problem.{name} {NOT_SERVED}")


class CoordinateHandle:
    """A model of which single coordinates move, followed by the server: as `ExactState`."""

    def __init__(self, token: int, at: wire.SentArray, n: int) -> None:
        self._token, self._at, self._n = token, at, n
        self._moves: list[tuple[int, float]] = []

    def derivative(self, j: Any, threshold: Any) -> Sum:
        # Sent once: the server keeps the model, so a repeated move would be made twice.
        moves, self._moves = self._moves, []
        recipe = wire.CoordinateDerivative(
            state=self._token, at=self._at, moves=moves, entry=int(j), bound=float(np.ravel(threshold)[0])
        )
        return SumHandle(recipe, (1,), STEP) / self._n

    def move(self, j: Any, change: Any) -> None:
        self._moves.append((int(j), float(np.ravel(change)[0])))


class ServedReleases(Releases):
    """The seam of a served method: every release is the server's."""

    ahead = False
    server: MechanismClient

    def __init__(self, keys: Sequence[str], **how: Any) -> None:
        super().__init__(keys, **how)
        self.coins = [Draws(SeededBits(self.coins[0]))]  # type: ignore[list-item]  # as of `ExactReleases`

    def release(
        self, value: Any, noise: Noise, event: Event, label: str, *, sensitivity: Scalars, multiplier: Scalars,
        replaced: Scalars | None = None, count: int = 1,
    ) -> np.ndarray:  # fmt: skip
        # A value of the method's own has no sensitivity that the server could derive.
        if not isinstance(value, SumHandle) or count != 1:
            raise PrivacyError(f"{label}: {NOT_SERVED}")
        request = wire.ReleaseRequest(
            value=value.request, noise=noise.name, label=label, sensitivity=_one(sensitivity),
            multiplier=_one(multiplier), replaced=None if replaced is None else _one(replaced),
        )  # fmt: skip
        return np.asarray(self.server.ask(request))

    def sample(self, rule: Any, least: Any) -> list[Any]:
        sampler = rule.__self__
        size = next(getattr(sampler, name) for name in ("rate", "m", "steps") if hasattr(sampler, name))
        request = wire.DrawRequest(sampler=type(sampler).__name__, size=float(size), label=sampler.label)
        return [Token(self.server.ask(request))]

    def term(self, d: int, noise: Noise, event: Event, multiplier: float, label: str, *, sensitivity: Any) -> Any:
        return Token(self.server.ask(wire.TermRequest(event=plain(event(multiplier)), label=label)) or 0)

    def hidden_noise(self, shape: tuple[int, ...], scale: Any, noise: Noise, what: str) -> NoReturn:
        """Raises PrivacyError: noise that a method computes on with is the server's."""
        raise PrivacyError(f"{what if what != OBJECTIVE else 'a linear term'}: it {NOT_SERVED}")


class CorrelatedHandle:
    """Correlated noise of the server's: as `Correlated`."""

    def __init__(
        self, releases: Any, steps: int, separation: int, bands: int, sensitivity: float, multiplier: Any, label: str
    ) -> None:
        self._server = releases.server
        self._token = self._server.ask(wire.CorrelateRequest(
            steps=steps, separation=separation, bands=bands, sensitivity=float(sensitivity),
            multiplier=_one(multiplier), label=label,
        ))  # fmt: skip

    def release(self, value: SumHandle) -> np.ndarray:
        return np.asarray(self._server.ask(wire.RoundRequest(token=self._token, value=value.request)))


class ServedPass(SinglePass):
    """A single pass as rounds with noise of one band, which is independent, of which a row is in one at most."""

    def gaussian(self, value: Any, *, sensitivity: Any, noise_multiplier: Any, **others: Any) -> np.ndarray:
        if others:
            raise PrivacyError(f"{self.label}: a served single pass takes no {', '.join(others)}")
        self._admit()
        if self._count(noise_multiplier):
            steps = min(self.steps, wire.MOST_ROUNDS)
            self._rounds = CorrelatedHandle(self._releases, steps, steps, 1, sensitivity, noise_multiplier, self.label)
        return self._rounds.release(value)


SCORES: dict[str, Callable[..., Any]] = {
    "scaled": lambda root: wire.ScaledScore(root=wire.numbers(root)),
    "greedy": lambda rule, W, M, l1: wire.GreedyScore(
        rule=rule, at=wire.numbers(W), constants=wire.numbers(M), l1=float(l1)
    ),
    "vertices": lambda radius, l1: wire.VertexScore(radius=float(radius), l1=float(l1)),
}


class ServedMechanisms(Mechanisms):
    """`Mechanisms` of a served method."""

    seam, correlating, passing = ServedReleases, CorrelatedHandle, ServedPass  # type: ignore[assignment]

    def _choose(self, values: Any, score: Score, kind: str, label: str, sensitivity: Scalars, epsilon: Scalars) -> Any:
        if not isinstance(values, SumHandle):
            raise PrivacyError(f"{label}: {NOT_SERVED}")
        # A score is code, and the server runs no code of the method's.
        if not score.named:
            raise PrivacyError(
                f"{label}: the server makes scores of its own alone: scaled entries, greedy rules, vertices"
            )
        assert isinstance(self.releases, ServedReleases)
        request = wire.ChoiceRequest(
            value=values.request, score=SCORES[score.named[0]](*score.named[1:]), choice=kind, label=label,
            sensitivity=_one(sensitivity), epsilon=_one(epsilon),
        )  # fmt: skip
        return np.asarray(self.releases.server.ask(request)).astype(int)


def describe(reference: str) -> wire.Frame:
    """What a method says of itself; `NoMethod` for what is none."""
    if ".py:" in reference:
        named = algorithms.attribute(reference)
        if not (isinstance(named, type) and issubclass(named, Algorithm)):
            return wire.NoMethod(why="it is no class derived from dpbench.algorithms.base.Algorithm")
    method, fixed = algorithms.resolve(reference)
    if isinstance(method, LibrarySolver):
        return wire.NoMethod(why="it is another library's solver, which draws its own noise; run it as trusted code")
    return wire.DescribedMethod(
        name=method.name, title=method.title or method.name, relation=method.relation, either=method.either,
        private=method.private, accountings=list(method.accountings), paper_accounting=method.paper_accounting,
        delta=method.delta, labels=sorted(method.labels), needs=method.needs,
        settings=[_setting(field) for field in msgspec.structs.fields(method.Settings)],
        fixed=msgspec.to_builtins(fixed),
    )  # fmt: skip


def _setting(field: Any) -> wire.DescribedSetting:
    try:
        number = isinstance(msgspec.convert("1", field.type, strict=False), int | float)
    except msgspec.ValidationError:
        number = False
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    default = msgspec.to_builtins(None if default is msgspec.NODEFAULT else default, enc_hook=repr)
    return wire.DescribedSetting(name=field.name, default=default, number=number)


class PreparedMethod:
    """A method at a budget and settings, on a declaration, with nothing released yet."""

    def __init__(self, given: wire.RunMethod) -> None:
        self.method, fixed = algorithms.resolve(given.reference)
        self.problem = ServedDeclaration(given.n, given.d, **given.declared)
        self.budget = given.budget
        chosen = public_settings(given.reference, given.n, given.d, self.budget.epsilon)
        self.asked = make_settings(self.method, fixed | (chosen if given.settings is None else given.settings))
        self.method.needs.check(self.problem, self.method.name)
        self.settings = self.method.complete(self.problem, self.asked)
        declared = self.method.declared(self.method.under(self.budget.relation))
        self.mechanisms = ServedMechanisms([given.key], self.budget, declared=declared)
        # On the bare declaration, so that a plan cannot depend on anything but public numbers.
        self.method.plan(self.problem.bare, self.mechanisms.planning([0]), self.settings)

    @property
    def plan(self) -> wire.PlanRequest:
        """All that it plans to release."""
        planned = self.mechanisms.ledger.planned(0)
        return wire.PlanRequest(
            entries=[wire.PlannedRelease(label=e.label, release=plain(e.release), count=e.count) for e in planned]
        )

    def run(self, server: MechanismClient, start: np.ndarray) -> np.ndarray:
        """The iterates (1, d)."""
        assert isinstance(self.mechanisms.releases, ServedReleases)
        self.mechanisms.releases.server = server
        # The plan goes first: the server holds every later request against it.
        server.ask(self.plan)
        batch = batch_settings([self.settings], self.method.per_replicate)
        with np.errstate(all="ignore"):
            outcome = self.method.run(self.problem, start, self.mechanisms, batch, no_trace)  # type: ignore[arg-type]
        return outcome.W if isinstance(outcome, RunResult) else outcome


def answer(channel: wire.Channel) -> wire.Frame:
    """Do what the first frame asks for; the last frame."""
    asked = channel.receive(wire.DescribeMethod | wire.RunMethod)
    try:
        if isinstance(asked, wire.DescribeMethod):
            return describe(asked.reference)
        prepared = PreparedMethod(asked)
        if asked.start is None:
            return wire.PreparedRun(settings=msgspec.to_builtins(prepared.asked), plan=prepared.plan)
        return wire.DoneRequest(W=wire.numbers(prepared.run(MechanismClient(channel), asked.start.array)))
    except BaseException as error:
        # Whatever it raises is one line for its author, who knows neither the folder of this process nor that there
        # is one; the traceback stays here.
        file = Path(asked.reference.rpartition(":")[0]).resolve()
        return wire.FailedRequest(error=in_words(error, str(file)).replace(f"{file.parent}/", ""))


def _one(value: Scalars) -> float:
    return float(np.ravel(value)[0])


if __name__ == "__main__":
    pipes = wire.Channel(Connection(int(sys.argv[1]), writable=False), Connection(int(sys.argv[2]), readable=False))
    sandbox.alone()  # before a line of the method's is run
    with contextlib.suppress(BrokenPipeError):
        pipes.send(answer(pipes))
