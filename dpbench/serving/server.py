"""The side that holds the rows: it takes requests, knows how far a row moves each sum, and sends noised values alone.

It keeps the premises of the theorem of docs/guides/audit.md. Nothing that a method says of a sensitivity lowers the
noise: `ExactReleases` takes the larger of what is declared and what is proved, and refuses what is declared too small.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from dpbench.algorithms import aop, coordinate, exponential_mechanism, objective_perturbation
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import ledger, noise, sampling
from dpbench.privacy.check import check
from dpbench.privacy.exact_release import ExactMechanisms, ExactReleases
from dpbench.privacy.exact_sums import FARTHEST, PREMISES, Sum
from dpbench.privacy.ledger import release_of
from dpbench.privacy.mechanisms import Score
from dpbench.problems.exact import ExactSums
from dpbench.problems.losses import built_in
from dpbench.serving import wire

NOISE: dict[str, tuple[noise.Noise, Any]] = {law.name: (law, event) for law, event in (
    (noise.NORMAL, ledger.Gaussian), (noise.SYMMETRIC, ledger.Gaussian), (noise.ISOMETRIC, ledger.Gaussian),
    (noise.LAPLACE, ledger.Laplace), (noise.RADIAL, ledger.Radial))}  # fmt: skip
SAMPLERS: dict[str, Any] = {one.__name__: one for one in (
    sampling.PoissonSampler, sampling.PoissonReplacedSampler, sampling.WithoutReplacementSampler,
    sampling.AllocationSampler)}  # fmt: skip
SOLVERS = {"aop": aop.minimise, "objective_perturbation": objective_perturbation.minimise}
BYTES = 1 << 30  # of its requests and replies
OPEN = 16  # samplers, and models that are followed
VOID = "could not be carried out on these rows, so nothing of this run counts; its ε is spent"


class RefusedRequest(PrivacyError):
    """Why a request ended its run, from public numbers alone."""


class MechanismServer:
    """One session: one run of a method on `problem`, within the budget of `mechanisms`.

    Its ledger is that of `mechanisms`. transcript: every request and reply, as they were sent.
    """

    def __init__(self, problem: ExactSums, mechanisms: ExactMechanisms, *, seconds: float = math.inf) -> None:
        assert isinstance(mechanisms.releases, ExactReleases)
        if not built_in(problem.loss):
            raise UserError(f"{problem.loss.name}: the server computes losses of dpbench's own alone")
        self.problem, self.mechanisms, self.seam = problem, mechanisms, mechanisms.releases
        self.budget, self.books = mechanisms.budget, mechanisms.ledger
        self.samplers: dict[tuple[str, float, str], sampling.Sampler] = {}
        self.drawn: dict[int, tuple[sampling.Sampler, np.ndarray]] = {}  # the last draw of each sampler, by its token
        self.states: dict[int, Any] = {}
        self.rounds: dict[int, tuple[Any, int, np.ndarray]] = {}  # noise, separation, the last round of each row
        self.term: np.ndarray | None = None
        self.transcript: list[tuple[bytes, bytes]] = []
        self._sent = 0
        self.reading = False  # whether the ledger has the release that is being made, so that rows are read
        self._ends, self._planned = time.monotonic() + seconds, self.books.planned(0)
        record = self.seam.record
        self.seam.record = lambda *given, **named: self._admitted(record(*given, **named))  # type: ignore[method-assign]

    def serve(self, channel: wire.Channel) -> np.ndarray:
        """Answer until the method sends its iterates (1, d). RefusedRequest for the first request that is refused."""
        with np.errstate(all="ignore"):
            while True:
                sent = channel.read()
                request = wire.decoded(sent, wire.Request)
                if isinstance(request, wire.FailedRequest):
                    raise UserError(request.error)
                if isinstance(request, wire.DoneRequest):
                    return self._ended(request)
                try:
                    reply = wire.Reply(value=self._answer(request))
                except Exception as error:
                    channel.send(wire.Refused())
                    known = isinstance(error, PrivacyError | UserError)
                    # A refusal after rows were read may depend on them, so its words would be a release without noise.
                    told = VOID if self.reading else str(error) if known else type(error).__name__
                    kind = type(request).__name__.removesuffix("Request").lower()
                    raise RefusedRequest(f"{kind}: {told}") from None
                self.transcript.append((sent, channel.send(reply)))
                self._sent += len(sent) + len(self.transcript[-1][1])

    def _ended(self, request: wire.DoneRequest) -> np.ndarray:
        if error := check(self.books.planned(0), self.budget).error:
            raise RefusedRequest(error)
        W = request.W.array
        if W.shape != (1, self.problem.d):
            raise RefusedRequest(f"iterates of shape {W.shape}; (1, {self.problem.d}) is asked for")
        return W

    def _answer(self, request: Any) -> wire.SentArray | int | None:
        """What one request gets: None, a token, or a noised value."""
        self.reading = False
        if len(self.transcript) >= wire.MOST or self._sent > BYTES or time.monotonic() > self._ends:
            raise RefusedRequest("more requests, or more time, than a run has")
        summed = self._handlers[type(request)](self, request)
        return wire.numbers(summed) if isinstance(summed, np.ndarray) else summed

    def _plan(self, request: wire.PlanRequest) -> None:
        """All that will be released: within the budget by both accountants, before a row is read. Once."""
        if self.transcript:
            raise RefusedRequest("a plan comes first, and once")
        entries = [(release_of(one.release), one.label, one.count) for one in request.entries]
        if not self._planned:
            for release, label, count in entries:
                self.mechanisms.plan(label, release, count)
            self._planned = self.books.planned(0)
        # Order does not matter to composition, so the plan is compared as a bag.
        if sorted(map(repr, entries)) != sorted(repr((e.release, e.label, e.count)) for e in self._planned):
            raise RefusedRequest("another plan than that which was checked")
        if entries and (error := check(self._planned, self.budget).error):
            raise RefusedRequest(error)

    def _draw(self, request: wire.DrawRequest) -> int:
        """A token for a fresh sample, whose rows stay here."""
        if not self._planned:
            raise RefusedRequest("a method that samples plans its releases")
        key = (request.sampler, request.size, request.label)
        if key not in self.samplers:
            if len(self.samplers) >= OPEN:
                raise RefusedRequest(f"more than {OPEN} samplers")
            kind = SAMPLERS[request.sampler]
            self.samplers[key] = kind(self.seam, self.budget, self.problem.n, request.size, request.label)
        sampler, token = self.samplers[key], len(self.transcript)
        # A sampler's earlier draw is void: its release was charged for one sample at a time.
        self.drawn = {t: one for t, one in self.drawn.items() if one[0] is not sampler}
        self.drawn[token] = sampler, sampler.draw()[0]
        return token

    def _term(self, request: wire.TermRequest) -> None:
        """The random linear term of objective perturbation, which stays here; `exact_sums.Term` says what it covers."""
        event: Any = release_of(request.event)
        # What its proof asks of loss and curvature is held against the minimiser, when that is released.
        if self.term is not None or type(event) not in PREMISES:
            raise RefusedRequest("no proof covers this term")
        # From the declaration, not from the request: the method could state a smaller one.
        sensitivity = self.budget.relation.rows * self.problem.lipschitz / self.problem.n
        self.term = self.mechanisms.linear_term(
            self.problem.d, sensitivity=sensitivity, event=event, label=request.label
        )

    def _release(self, request: wire.ReleaseRequest) -> np.ndarray:
        """The value asked for, with noise of its own sensitivity at least."""
        law, event = NOISE[request.noise]  # the event is the server's to name
        summed, sampler = self._value(request.value)
        if law in (noise.SYMMETRIC, noise.ISOMETRIC) and len(summed.shape) != 3:
            raise RefusedRequest("symmetric noise is for symmetric matrices")
        given: Any = {name: getattr(request, name) for name in ("sensitivity", "multiplier", "replaced")}
        if sampler is not None:
            return np.asarray(sampler.release(summed, event, law, request.label, **given))
        return self.seam.release(summed, law, event, request.label, **given)

    def _choose(self, request: wire.ChoiceRequest) -> np.ndarray:
        """The index of the largest score, by a private choice."""
        summed = self._vector(request.value)
        score = _score(request.score, summed.shape)
        return self.seam.choose(
            summed, score, request.choice, request.label, sensitivity=request.sensitivity, epsilon=request.epsilon
        ).astype(float)

    def _correlate(self, request: wire.CorrelateRequest) -> int:
        """A token for rounds with correlated noise."""
        if len(self.rounds) >= OPEN:
            raise RefusedRequest(f"more than {OPEN} correlated noises")
        noise = self.mechanisms.correlating(
            self.seam, request.steps, request.separation, request.bands, request.sensitivity,
            request.multiplier, request.label,
        )  # fmt: skip
        token = len(self.transcript)
        self.rounds[token] = noise, request.separation, np.full(self.problem.n, -math.inf)
        return token

    def _round(self, request: wire.RoundRequest) -> np.ndarray:
        """The next round's value with its noise, on rows none of which was used too lately."""
        if request.token not in self.rounds:
            raise RefusedRequest("no such correlated noise")
        noise, separation, used = self.rounds[request.token]
        summed = self._vector(request.value)
        rows = getattr(request.value.recipe, "rows", None)
        chosen = slice(None) if rows is None else np.array(rows)
        # The sensitivity of correlated noise is proved for rows that take part this far apart.
        if (noise.t + 1 - used[chosen] < separation).any():
            raise RefusedRequest(f"a row is in rounds that are {separation} apart at least")
        used[chosen] = noise.t + 1
        self.reading = noise.t > 0  # the first round is charged for all
        return np.asarray(noise.release(summed))

    _handlers: ClassVar[dict[type, Callable[..., Any]]] = {
        wire.PlanRequest: _plan, wire.DrawRequest: _draw, wire.TermRequest: _term, wire.ReleaseRequest: _release,
        wire.ChoiceRequest: _choose, wire.CorrelateRequest: _correlate, wire.RoundRequest: _round,
    }  # fmt: skip

    # Values

    def _value(self, asked: wire.RequestedValue) -> tuple[Any, sampling.Sampler | None]:
        """(a `Sum` or `Ideal` that is computed when it is released, the sampler of its rows or None)."""
        recipe = asked.recipe
        sampler, rows = self._rows(getattr(recipe, "rows", None))
        at = self._at(recipe.at) if hasattr(recipe, "at") else None
        summed = self._recipes[type(recipe)](self, recipe, at, rows)
        # By its shape, before it is computed: of 20,000 columns a Hessian would take the server's memory.
        if 8 * math.prod(summed.shape) > wire.LARGEST:
            raise RefusedRequest("a sum of more numbers than a frame holds")
        offset = 0.0 if asked.offset is None else asked.offset.array
        if np.shape(offset) not in ((), summed.shape):
            raise RefusedRequest("a public part of another shape than the sum")
        if isinstance(summed, Sum):
            return summed.like(asked.unit, offset), sampler
        if asked.unit != 1.0 or asked.offset is not None:
            raise RefusedRequest("a minimiser, and an eigenvalue, is released as it is")
        return summed, sampler

    def _vector(self, asked: wire.RequestedValue) -> Sum:
        """The same, for what is proved of vectors alone, and is amplified by no sample."""
        summed, sampler = self._value(asked)
        if sampler is not None or not isinstance(summed, Sum) or len(summed.shape) != 2:
            raise RefusedRequest("choices and correlated rounds are of a vector, and on no sample")
        return summed

    def _rows(self, rows: wire.ROWS) -> tuple[sampling.Sampler | None, np.ndarray | None]:
        if rows is None:
            return None, None
        if isinstance(rows, int):
            if rows not in self.drawn:
                raise RefusedRequest("a sample that is used up, or was not drawn")
            # Taken out: amplification by sampling holds for one use of a sample.
            return self.drawn.pop(rows)
        chosen = np.array(rows, dtype=np.int64)
        # A row twice would count twice in the sum, whose sensitivity is of one.
        if not len(chosen) or len(np.unique(chosen)) < len(chosen) or chosen.max() >= self.problem.n:
            raise RefusedRequest("rows are chosen once each, of those that there are")
        return None, chosen

    def _clipped_gradient(self, recipe: wire.ClippedGradient, at: np.ndarray, _: None) -> Any:
        summed = self.problem.clipped_gradient(at, np.array([recipe.clip]), even=True)
        if recipe.columns is not None:
            summed = summed[:, np.array(_distinct(recipe.columns, self.problem.d))]
        if recipe.entry is None:
            return summed
        return summed[[0], _distinct([recipe.entry], summed.shape[1])]

    def _derivative(self, recipe: wire.CoordinateDerivative, at: np.ndarray, _: None) -> Any:
        if recipe.state not in self.states:
            if len(self.states) >= OPEN:
                raise RefusedRequest(f"more than {OPEN} models that are followed")
            self.states[recipe.state] = self.problem.coordinate_state(at)
        state = self.states[recipe.state]
        for j, change in recipe.moves:
            state.move(*_distinct([j], self.problem.d), np.array([change]))
        return state.derivative(*_distinct([recipe.entry], self.problem.d), np.array([recipe.bound]))

    def _minimiser(self, recipe: wire.PerturbedMinimiser, at: np.ndarray, _: None) -> Any:
        if not self.problem.steady or self.problem.l1:
            raise RefusedRequest(
                "a minimiser of rows that are not in an array, or with l1, takes time that depends on the data"
            )
        b, public = self.term, 0.0
        if recipe.term is not None:
            b = self._at(recipe.term)
            public = float(np.linalg.norm(b))
        if b is None:
            raise RefusedRequest("no term was drawn")
        return self.problem.minimiser(SOLVERS[recipe.solver], at, b, recipe.ridge, recipe.tolerance, public)

    def _eigenvalue(self, recipe: wire.LeastEigenvalue, *_: None) -> Any:
        gram, sampler = self._value(wire.RequestedValue(recipe=recipe.of, unit=recipe.unit))
        if sampler is not None:
            raise RefusedRequest("an eigenvalue is of all rows")
        return self.problem.least_eigenvalue(gram)

    _recipes: ClassVar[dict[type, Callable[..., Any]]] = {
        wire.GradientSum: lambda s, r, at, rows: s.problem.gradient_sum(at, rows),
        wire.HessianSum: lambda s, r, at, rows: s.problem.hessian_sum(at, rows, r.curvature),
        wire.BoundedGradient: lambda s, r, at, _: s.problem.bounded_gradient(at, r.bound),
        wire.ClippedValue: lambda s, r, at, _: s.problem.clipped_value(at, r.clip),
        wire.LabelMoments: lambda s, r, *_: s.problem.label_moments(r.bound),
        wire.SecondMoment: lambda s, *_: s.problem.second_moment(),
        wire.ClippedGradient: _clipped_gradient, wire.CoordinateDerivative: _derivative,
        wire.PerturbedMinimiser: _minimiser, wire.LeastEigenvalue: _eigenvalue,
    }  # fmt: skip

    def _at(self, at: wire.SentArray) -> np.ndarray:
        W = at.array
        if W.shape != (1, self.problem.d):
            raise RefusedRequest(f"a model of shape {W.shape}; (1, {self.problem.d}) is asked for")
        return self.problem.batch(W)

    def _admitted(self, release: ledger.Release) -> ledger.Release:
        """The release, which is in the ledger and not made yet; RefusedRequest where it is beyond plan or budget."""
        if over := self.books.unplanned(0):
            raise RefusedRequest(f"{', '.join(over)}: beyond its plan")
        if not self._planned:
            spent = 0.0
            for entry in self.books.of(0):
                if not isinstance(entry.release, ledger.Gaussian):
                    raise RefusedRequest("only Gaussian noise on all rows may do without a plan")
                # ρ of a Gaussian release is 1/(2z²), and it adds up (Bun and Steinke 2016).
                spent += entry.count / 2 / entry.release.noise_multiplier**2
            if not spent <= self.budget.rho * (1 + 1e-9):
                raise RefusedRequest("beyond its budget, without a plan")
        self.reading = True
        return release


def _score(asked: Any, shape: tuple[int, ...]) -> Score:
    """The score of a request, made here; RefusedRequest for numbers that are none of its own."""
    if isinstance(asked, wire.VertexScore):
        return exponential_mechanism.vertex_score(asked.radius, asked.l1)
    constants = (asked.root if isinstance(asked, wire.ScaledScore) else asked.constants).array
    if constants.shape != shape[1:] or not ((constants >= 1 / FARTHEST) & (constants <= FARTHEST)).all():
        raise RefusedRequest("each entry has a constant of its own, positive and within 2**900 either way")
    if isinstance(asked, wire.ScaledScore):
        return coordinate.scaled_score(constants)
    W = asked.at.array
    # A score of NaN has no sensitivity at all.
    if W.shape != shape or not np.isfinite(W).all() or asked.rule not in coordinate.RULES:
        raise RefusedRequest("no such rule of greedy coordinate descent")
    return coordinate.greedy_score(asked.rule, W, constants, asked.l1)


def _distinct(chosen: Sequence[int], most: int) -> list[int]:
    if not chosen or len(set(chosen)) < len(chosen) or max(chosen) >= most:
        raise RefusedRequest("columns are chosen once each, of those that there are")
    return list(chosen)
