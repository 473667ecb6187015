"""The protocol between a method and the server: typed frames of MessagePack, each of a known largest size.

Each request has exactly the fields of its kind, within their ranges; any other frame ends the run. None is unpickled.
A value is asked for by a recipe: which sum over the rows, at which public numbers, on which rows.
"""

from __future__ import annotations

import math
import re
from multiprocessing.connection import Connection
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from dpbench.algorithms.base import Needs
from dpbench.errors import SHOWN, PrivacyError, one_line
from dpbench.privacy.budget import Budget
from dpbench.privacy.exact_sums import FARTHEST
from dpbench.privacy.ledger import Relation

FRAME = 1 << 20  # bytes of a frame, Hessians aside
LARGEST = 64 << 20  # and with them
DESCRIPTION = 1 << 14  # of what a method says of itself, which goes into rows
DIMENSIONS = 3  # of an array
MOST = 200_000  # requests of a run
MOST_ROUNDS = 10**5  # with correlated noise
ROUNDING = 1e-6  # relative, of numbers that a copy of a method computes in another order
WORD = Annotated[str, msgspec.Meta(max_length=80, pattern=SHOWN)]
TEXT = Annotated[str, msgspec.Meta(max_length=400, pattern=SHOWN)]
NAME = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*\Z", min_length=2, max_length=40)]
COUNT = Annotated[int, msgspec.Meta(ge=1, le=10**8)]
INDEX = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
SETTING = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*\Z", max_length=80)]
POSITIVE = Annotated[float, msgspec.Meta(ge=1 / FARTHEST, le=FARTHEST)]  # which NaN is not either
WEIGHT = Annotated[float, msgspec.Meta(ge=0, le=FARTHEST)]


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """Base of all that is sent."""


class SentArray(Frame, frozen=True):
    """A float64 array: its shape, and its bytes in C order."""

    shape: Annotated[list[INDEX], msgspec.Meta(max_length=DIMENSIONS)]
    f8: bytes

    @property
    def array(self) -> np.ndarray:
        """A copy of its own; PrivacyError where shape and bytes are not of each other."""
        try:
            return np.frombuffer(self.f8).reshape(self.shape).copy()
        except ValueError:  # or a shape beyond what NumPy counts, of which a 0 makes nothing
            raise PrivacyError("an array whose bytes are not those of its shape") from None


def numbers(array: Any) -> SentArray:
    """An array as it is sent; PrivacyError where it is none of real numbers."""
    given = np.asarray(array)
    if given.dtype.kind not in "fiub":
        raise PrivacyError(f"an array of real numbers is asked for, got one of {given.dtype}")
    floats = given.astype(np.float64)
    return SentArray(shape=list(floats.shape), f8=np.ascontiguousarray(floats).tobytes())


def alike(one: bytes, other: bytes) -> bool:
    """Whether two requests, as they were sent, say the same but for labels and rounding; any two plans do."""
    return _alike(decoded(one, Request), decoded(other, Request))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, SentArray) and isinstance(other, SentArray):
        return one.shape == other.shape and np.allclose(one.array, other.array, rtol=ROUNDING, atol=ROUNDING)
    if isinstance(one, Frame):
        # A plan is left out, as a copy may come without one.
        names = () if isinstance(one, PlanRequest) else one.__struct_fields__
        return type(one) is type(other) and all(
            name == "label" or _alike(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ROUNDING)
    return bool(one == other)


# A token of the server's draw, which this use of it uses up, or rows that the method names, each once: a draw hides
# which rows it has, a list does not. All rows, for None.
ROWS: TypeAlias = INDEX | list[INDEX] | None


class GradientSum(Frame, frozen=True):
    """Of the gradients of the rows' losses."""

    at: SentArray
    rows: ROWS = None


class HessianSum(Frame, frozen=True):
    """Of their Hessians, by one of the loss's curvatures."""

    at: SentArray
    curvature: WORD = "hess"
    rows: ROWS = None


class BoundedGradient(Frame, frozen=True):
    """Of gradients with derivatives clipped to ±bound."""

    at: SentArray
    bound: float


class ClippedValue(Frame, frozen=True):
    """Of the rows' losses, each at most `clip`."""

    at: SentArray
    clip: float


class LabelMoments(Frame, frozen=True):
    """Σ y·x, labels clipped to ±bound."""

    bound: float


class SecondMoment(Frame, frozen=True):
    """XᵀX."""


class ClippedGradient(Frame, frozen=True):
    """columns: which of them; entry: one of those alone."""

    at: SentArray
    clip: float
    columns: list[INDEX] | None = None
    entry: INDEX | None = None


class CoordinateDerivative(Frame, frozen=True):
    """Of a model that the server follows: `at` of its first use, moved since by `moves`."""

    state: INDEX
    at: SentArray
    moves: list[tuple[INDEX, float]]
    entry: INDEX
    bound: float


class PerturbedMinimiser(Frame, frozen=True):
    """Of F + ridge/2 ‖w‖² + <b, w>, solved from `at`; term: b is this public vector, or, for None, the server's."""

    solver: WORD
    ridge: float
    tolerance: POSITIVE
    at: SentArray
    term: SentArray | None


class LeastEigenvalue(Frame, frozen=True):
    """Of the matrix `of`, in its unit."""

    of: SecondMoment | HessianSum
    unit: float


Recipe: TypeAlias = (
    GradientSum | HessianSum | BoundedGradient | ClippedValue | LabelMoments | SecondMoment | ClippedGradient
    | CoordinateDerivative | PerturbedMinimiser | LeastEigenvalue
)  # fmt: skip


class RequestedValue(Frame, frozen=True):
    """unit · the integers of the recipe's sum + offset: how far a row moves those is the server's to know."""

    recipe: Recipe
    unit: float = 1.0
    offset: SentArray | None = None


class PlannedRelease(Frame, frozen=True):
    """`count` releases: `release` as of `privacy.plain`."""

    label: WORD
    release: dict[str, Any]
    count: COUNT


class PlanRequest(Frame, frozen=True):
    """All that the run will release; before anything else."""

    entries: Annotated[list[PlannedRelease], msgspec.Meta(max_length=16)]

    def __post_init__(self) -> None:
        # To compose more of them takes the accountants minutes, which no limit on the method's process bounds.
        if sum(one.count for one in self.entries) > MOST:
            raise ValueError(f"a plan of more than {MOST:,} releases, which is more than a run has requests")


class DrawRequest(Frame, frozen=True):
    """A fresh sample: of so many rows, or of so large a share of them."""

    sampler: WORD
    size: float
    label: WORD


class ReleaseRequest(Frame, frozen=True):
    """The value with noise: `multiplier` times the sensitivity, or times the server's bound on it."""

    value: RequestedValue
    noise: WORD
    label: WORD
    sensitivity: float
    multiplier: POSITIVE
    replaced: float | None = None


class ScaledScore(Frame, frozen=True):
    """Each entry over its own `root`."""

    root: SentArray


class GreedyScore(Frame, frozen=True):
    """A rule of greedy coordinate descent at a model, `constants` a curvature for each entry."""

    rule: WORD
    at: SentArray
    constants: SentArray
    l1: WEIGHT


class VertexScore(Frame, frozen=True):
    """Of the vertices of an ℓ₁ ball."""

    radius: POSITIVE
    l1: WEIGHT


class ChoiceRequest(Frame, frozen=True):
    """The index of the largest score, each of which depends on one entry."""

    value: RequestedValue
    score: ScaledScore | GreedyScore | VertexScore
    choice: WORD
    label: WORD
    sensitivity: float
    epsilon: POSITIVE


class CorrelateRequest(Frame, frozen=True):
    """Rounds with correlated noise, one release of this multiplier; a row's rounds are `separation` apart at least."""

    steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)]
    separation: COUNT
    bands: Annotated[int, msgspec.Meta(ge=1, le=10**4)]
    sensitivity: float
    multiplier: POSITIVE
    label: WORD


class RoundRequest(Frame, frozen=True):
    """The value of the next round of `token`'s noise."""

    token: INDEX
    value: RequestedValue


class TermRequest(Frame, frozen=True):
    """A random linear term, which stays with the server."""

    event: dict[str, Any]
    label: WORD


class DoneRequest(Frame, frozen=True):
    """The run's iterates."""

    W: SentArray


class FailedRequest(Frame, frozen=True):
    """Why the method ended by itself."""

    error: TEXT


Request: TypeAlias = (
    PlanRequest | DrawRequest | CorrelateRequest | RoundRequest | ReleaseRequest | ChoiceRequest | TermRequest
    | DoneRequest | FailedRequest
)  # fmt: skip


class Reply(Frame, frozen=True):
    """An array that was released, a token, or None."""

    value: SentArray | int | None = None


class Refused(Frame, frozen=True):
    """Why is not said: it might depend on the data."""


class DescribeMethod(Frame, frozen=True):
    """Say what the method is."""

    reference: str


def check_settings(*values: Any, deep: int = 3) -> None:
    """ValueError for what a row does not keep: text for a terminal to run, and lists in lists in lists.

    By a function, as types of tables in tables are freed twice by msgspec 0.22, at the end of Python.
    """
    for value in values:
        told = isinstance(value, str) and len(value) <= 400 and re.match(SHOWN, value)
        if not deep or not (told or isinstance(value, list | tuple | dict | bool | int | float | None)):
            raise ValueError("a setting that a row does not keep")
        if isinstance(value, list | tuple | dict):
            check_settings(*value, *(value.values() if isinstance(value, dict) else ()), deep=deep - 1)


class DescribedSetting(Frame, frozen=True):
    """number: whether it takes one."""

    name: SETTING
    default: Any
    number: bool

    def __post_init__(self) -> None:
        check_settings(self.default)


class DescribedMethod(Frame, frozen=True):
    """What a method says of itself. labels: of its releases; fixed: the settings that its name fixes."""

    name: NAME
    title: WORD
    relation: Relation
    either: bool
    private: bool
    accountings: Annotated[list[WORD], msgspec.Meta(max_length=20)]
    paper_accounting: WORD
    delta: str | float
    labels: Annotated[list[WORD], msgspec.Meta(max_length=64)]
    needs: Needs
    settings: Annotated[list[DescribedSetting], msgspec.Meta(max_length=100)]
    fixed: dict[SETTING, Any] = {}

    def __post_init__(self) -> None:
        check_settings(*vars(self.needs).values(), *self.fixed.values())


class NoMethod(Frame, frozen=True):
    """What was to be described is no method that releases through mechanisms, and why."""

    why: TEXT


class RunMethod(Frame, frozen=True):
    """One run, from `start`; or what it would be, where there is none. settings: None for the method's public ones."""

    reference: str
    n: int
    d: int
    declared: dict[str, Any]
    budget: Budget
    settings: dict[str, Any] | None
    key: str = ""
    start: SentArray | None = None


class PreparedRun(Frame, frozen=True):
    """The settings that a run would have, and all that it plans to release."""

    settings: dict[SETTING, Any]
    plan: PlanRequest

    def __post_init__(self) -> None:
        check_settings(*self.settings.values())


class Channel(NamedTuple):
    """Two pipes. largest: bytes of a frame that is read."""

    incoming: Connection
    outgoing: Connection
    largest: int = LARGEST

    def send(self, frame: Frame) -> bytes:
        """Write one frame, which is returned as it was sent."""
        sent = encoded(frame)
        self.outgoing.send_bytes(sent)
        return sent

    def read(self) -> bytes:
        """One frame as it came; PrivacyError where there is none, or a larger one than there may be."""
        try:
            return self.incoming.recv_bytes(self.largest)
        except EOFError:
            raise PrivacyError("it ended before its run did") from None
        except OSError:
            raise PrivacyError(f"a frame that is cut short, or too large: at most {self.largest:,} bytes") from None

    def receive(self, kind: Any) -> Any:
        return decoded(self.read(), kind)


encoded = msgspec.msgpack.encode


def decoded(sent: bytes, kind: Any) -> Any:
    """The frame in these bytes; PrivacyError for one that is malformed."""
    try:
        return msgspec.msgpack.decode(sent, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError, MemoryError) as error:
        raise PrivacyError(f"a malformed frame: {one_line(str(error), 200)}") from None
