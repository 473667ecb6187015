"""Sums over the rows as integers, with all that may be done to them before noise: nothing but public arithmetic.

Rows lie on a grid of 2⁻¹⁶, and so do the numbers that weight them in a sum (derivatives of the loss, labels): the sum
is an integer vector S times 2⁻³², computed without a rounding. Two tables that differ in one row give S and S' whose
distance is at most an integer (`RowSensitivity`), by the grids, the bound on a row's length and that on its weight.

What a random linear term covers: the accounting of each event is a theorem about argmin F(w) + ridge/2 ‖w‖² + <b, w>
that presumes something of F: which loss, how much curvature a row adds against the strong convexity, and how far a row
moves the gradient against b's scale. The event names the numbers it was computed for; a `Term` holds them against the
objective that was solved.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import (
    ConvexPerturbation,
    LogisticPerturbation,
    ObjectivePerturbation,
    RadialPerturbation,
    Relation,
    Release,
)

ROW_BITS = 16  # rows are multiples of 2⁻¹⁶
WEIGHT_BITS = 16  # and so are derivatives and labels
CURVATURE_BITS = 8  # second derivatives, of which a row's part of a sum has three factors, are multiples of 2⁻⁸
LARGEST = 2**63 - 2**51  # of an entry of a sum, which is kept in 64 bits; noise and rounding need the rest
UP = 1 + 2.0**-40  # what a bound in float64 is multiplied by, so that no rounding takes it below
FARTHEST = 2.0**900  # of a sum's unit, up and down: beyond, the product with a scale of noise may lose its digits
ROUNDING = 1e-9  # of numbers that an algorithm computes from one another in float64


class RowSensitivity(NamedTuple):
    """How far a row's presence, or another row in its place, moves a sum: exact integers.

    one, two: squares of the ℓ₂ distances under add/remove and replace-one. l1: the ℓ₁ distance under add/remove, twice
    that under replace-one; None where nothing is known of it.
    """

    one: int
    two: int
    l1: int | None = None

    def l2(self, relation: Relation) -> float:
        """The ℓ₂ distance, rounded up."""
        return math.sqrt(self.two if relation is Relation.REPLACE_ONE else self.one) * UP

    def sum_of_sizes(self, relation: Relation) -> float:
        """The ℓ₁ distance, rounded up; PrivacyError where there is none."""
        if self.l1 is None:
            raise PrivacyError("no bound on the ℓ₁ distance of these sums; use a Gaussian mechanism")
        return self.l1 * relation.rows * UP


class Deferred:
    """Integers of `shape` that `read` computes from the rows when they are first asked for: after the ledger has them.

    So whether a release is refused is decided by public numbers, before any row is read.
    """

    def __init__(self, shape: tuple[int, ...], read: Callable[[], NDArray[np.int64]]) -> None:
        self.shape, self._read = shape, read

    @functools.cached_property
    def integers(self) -> NDArray[np.int64]:
        return self._read()


class WeightedParts(Deferred):
    """Integers of parts that have weights: only `Sum.finer`, which says what they count, may use them."""

    @property
    def integers(self) -> NDArray[np.int64]:
        raise PrivacyError("nobody said what the integers of a weighted sum count; no distance is known of it")

    def counted(self) -> Deferred:
        """The integers, for a sum that says it."""
        return Deferred(self.shape, self._read)


Integers: TypeAlias = NDArray[np.int64] | Deferred


class Unread:
    """What nobody may look at: each use of it as a number or an array raises, in a line that says what it is for."""

    told = (
        "what is computed from the rows may not be read before noise is added: multiply or divide a sum by positive "
        "public numbers, add public arrays, and hand it to a mechanism"
    )

    def unread(self, *_: Any, **__: Any) -> NoReturn:
        raise PrivacyError(self.told)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"there is no .{name}: {self.told}")

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **__: Any) -> Any:
        """`array + Sum` and `array * Sum` are asked of the sum; no other function of NumPy has a value to work on."""
        if ufunc in (np.add, np.multiply) and method == "__call__" and not isinstance(given[0], Unread):
            return given[1] + given[0] if ufunc is np.add else given[1] * given[0]
        self.unread()


# All that Python would do with a number or a list; a class's own come after these.
for _name in (
    "float", "int", "complex", "index", "bool", "len", "iter", "contains", "getitem", "setitem", "eq", "ne", "lt", "le",
    "gt", "ge", "abs", "neg", "pos", "round", "trunc", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv",
    "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul", "array",
):  # fmt: skip
    setattr(Unread, f"__{_name}__", Unread.unread)


class _Released(Unread):
    """Integers (1, …) that only a release may look at; the shape is public."""

    def __init__(self, integers: Integers) -> None:
        self._integers = integers

    @property
    def integers(self) -> NDArray[np.int64]:
        """Computed from the rows when they are first asked for."""
        return self._integers.integers if isinstance(self._integers, Deferred) else self._integers

    @property
    def shape(self) -> tuple[int, ...]:
        """(1, …), that of the integers."""
        return self._integers.shape

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return one_replicate(function, args, kwargs)


class Sum(_Released):
    """unit · `integers` + `offset`: one replicate's sum, (1, …), times a public number, plus a public array.

    Algorithms may multiply and divide it by public numbers and add public arrays; every other use of it raises, so
    nothing but `release.ExactReleases` can turn it into numbers. within: a public bound on the integers' sizes.
    """

    def __init__(
        self, integers: Integers, unit: float, moved: RowSensitivity, offset: Any = 0.0, *, within: Any = 2.0**63
    ) -> None:
        if not 1 / FARTHEST <= unit <= FARTHEST:
            raise PrivacyError(f"a sum's unit must be positive and within 2**900 either way, got {unit:g}")
        if moved.l1 is not None and moved.l1 < 0:
            raise PrivacyError("a row's part of a sum cannot have a negative size")
        super().__init__(integers)
        self.unit, self.moved, self.offset, self.within = unit, moved, offset, within

    def each(self, relation: Relation) -> Any:
        """How far a neighbour moves any one entry, in units of the integers: a number, or one per entry."""
        return self.moved.l2(relation)

    def like(self, unit: float, offset: Any) -> Sum:
        """The same integers in another unit and with another public part."""
        return Sum(self._integers, unit, self.moved, offset, within=self.within)

    def finer(self, bits: int) -> Sum:
        """The sum whose integers are these, of parts that count 2⁻ᵇⁱᵗˢ as much: see `problems.persons`."""
        whole = self._integers.counted() if isinstance(self._integers, WeightedParts) else self._integers
        return self._finer(whole, bits).like(self.unit * 2.0**-bits, self.offset)

    def _finer(self, integers: Integers, bits: int) -> Sum:
        one, two, l1 = self.moved
        moved = RowSensitivity(one << 2 * bits, two << 2 * bits, None if l1 is None else l1 << bits)
        return type(self)(integers, self.unit, moved, self.offset, within=self.within * 2.0**bits)

    def __mul__(self, factor: float) -> Sum:
        factor = _number(factor)
        return self.like(self.unit * factor, self.offset * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Sum:
        divisor = _number(divisor)
        return self.like(self.unit / divisor, self.offset / divisor)

    def __add__(self, public: Any) -> Sum:
        if isinstance(public, Sum):
            # Their two rows may move them in any directions: the sensitivity of the whole would have to be proved anew.
            raise PrivacyError("two sums over the rows may not be added before noise: their distances are apart")
        return self.like(self.unit, self.offset + np.asarray(public, dtype=float))

    __radd__ = __add__


class Gram(Sum):
    """A sum whose every row adds a positive semidefinite matrix, so that its eigenvalues move one way with a row."""

    def like(self, unit: float, offset: Any) -> Sum:
        return Gram(self._integers, unit, self.moved, offset, within=self.within)


class Coordinates(Sum):
    """A sum (1, d) over n rows, each of which adds at most `most`[j] to entry j, in units of the integers."""

    def __init__(self, integers: Integers, unit: float, most: NDArray[np.int64], n: int, offset: Any = 0.0) -> None:
        bounds = [int(one) for one in most]
        squares = sum(one**2 for one in bounds)
        super().__init__(
            integers, unit, RowSensitivity(squares, 4 * squares, sum(bounds)), offset, within=most * (n * UP)
        )
        self.most, self.n = most, n

    def _finer(self, integers: Integers, bits: int) -> Sum:
        return Coordinates(integers, self.unit, self.most << bits, self.n, self.offset)

    def each(self, relation: Relation) -> Any:
        """See `Sum.each`: (d,)."""
        return self.most * relation.rows * UP

    def like(self, unit: float, offset: Any) -> Sum:
        return Coordinates(self._integers, unit, self.most, self.n, offset)

    def __getitem__(self, place: Any) -> Any:
        """[:, columns] of public columns, all or some, or [[0], [j]], the one entry j, (1,)."""
        rows, columns = place
        offset = np.broadcast_to(self.offset, self.shape)[place]
        chosen = Deferred(offset.shape, lambda: self.integers[place])
        if isinstance(rows, slice):
            return Coordinates(chosen, self.unit, self.most[columns], self.n, offset)
        one = int(self.most[int(np.ravel(columns)[0])])
        return Sum(chosen, self.unit, RowSensitivity(one**2, 4 * one**2, one), offset)


class Objective(NamedTuple):
    """What a proof of a minimiser rests on: of F(w) + ridge/2 ‖w‖² + <b, w> over n rows of a convex loss.

    term: b, (1, d), as the solver had it. convexity: m, that of all of it. pull: the length of a row's part of the
    gradient, L₀R/n. curvature: β/(nm), β the largest ℓ''‖x‖². logistic: whether the loss's slope tells its curvature.
    """

    term: NDArray[Any]
    convexity: float
    pull: float
    curvature: float
    logistic: bool


class Ideal(_Released):
    """`integers` · unit: one replicate's vector (1, …), in ℓ₂ norm within `radius` of an ideal one of real numbers."""

    def __init__(self, integers: Integers, unit: float, radius: float) -> None:
        super().__init__(integers)
        self.unit, self.radius = unit, radius

    def neighbour_distance(self, relation: Relation) -> float:
        """How far the ideal vectors of neighbours are apart, in ℓ₂ norm."""
        raise NotImplementedError


class CertifiedMinimiser(Ideal):
    """A vector (1, d) near the exact minimiser of `objective`, which objective perturbation releases.

    A linear term that is off by e moves a minimiser by ‖e‖/convexity; `radius` is how far the vector is from the
    minimiser with the term as the solver had it.
    """

    def __init__(self, integers: Integers, unit: float, radius: float, objective: Objective) -> None:
        super().__init__(integers, unit, radius)
        self.objective = objective

    def neighbour_distance(self, relation: Relation) -> float:
        """Without a random term, by strong convexity."""
        return self.objective.pull * relation.rows / self.objective.convexity


class Eigenvalue(Ideal):
    """(1,), near the least eigenvalue of a `Gram`, which a row's part moves by `moved` at most."""

    def __init__(self, integers: Integers, unit: float, radius: float, moved: float) -> None:
        super().__init__(integers, unit, radius)
        self._moved = moved

    def neighbour_distance(self, relation: Relation) -> float:
        """By Weyl's inequality, a row's part being positive semidefinite: one row's norm, replaced or removed.

        Both are above that of the matrix without the row, and by no more than the norm of the row's own part.
        """
        return self._moved


def one_replicate(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of NumPy's functions those that put replicates together: there is one."""
    if function in (np.stack, np.concatenate) and not kwargs and len(args) == 1 and len(args[0]) == 1:
        return args[0][0]
    if function is np.tile and not kwargs and set(np.ravel(args[1])) == {1}:
        return args[0]
    raise PrivacyError(f"a sum over the rows may not be passed to numpy.{function.__name__} before noise is added")


def weighted(row: int, weight: int, l1: int | None = None) -> RowSensitivity:
    """Of Σ c_i x_i, or of Σ c_i x_iᵀ with vectors c: ‖x‖² ≤ row, ‖c‖² ≤ weight, |c|·‖x‖₁ ≤ l1, in units of the grids.

    ‖c xᵀ‖² = ‖c‖²‖x‖² ≤ weight · row. Replaced: ‖c xᵀ - c' x'ᵀ‖ ≤ 2√(weight · row), attained by x' = x, c' = -c.
    """
    return RowSensitivity(weight * row, 4 * weight * row, l1)


def outer(row: int, weight: int, *, signed: bool = False) -> RowSensitivity:
    """Of Σ h_i x_i x_iᵀ in Frobenius norm, 0 ≤ h ≤ weight: ‖h xxᵀ - h' x'x'ᵀ‖² = h²‖x‖⁴ + h'²‖x'‖⁴ - 2hh'<x, x'>².

    The last term lowers it where h, h' ≥ 0, and may double the distance where they may have two signs.
    """
    one = weight * weight * row * row
    return RowSensitivity(one, (4 if signed else 2) * one)


def _number(factor: Any) -> float:
    if isinstance(factor, Unread):
        factor.unread()
    if np.size(factor) != 1 or isinstance(factor, str) or not 0 < float(factor) < math.inf:
        raise PrivacyError(f"a sum over the rows may be scaled by one positive number, got {factor!r:.60}")
    return float(factor)


def _joint(event: Any, objective: Objective, relation: Relation) -> str:
    """Of gradient and curvature accounted together: β/Λ as the event has it, and its loss and relation."""
    if event.relation is not relation:
        return f"its linear term is accounted under {event.relation} neighbours"
    if getattr(event, "logistic", type(event) is LogisticPerturbation) and not objective.logistic:
        return "its linear term's proof is for the logistic loss"
    if not event.curvature * (1 + ROUNDING) >= objective.curvature:
        return "its linear term was drawn for less curvature, or more ridge"
    return ""


def _separately(event: Any, objective: Objective, relation: Relation) -> str:
    """Of gradient and Jacobian apart: ln det of (A + βxxᵀ)A⁻¹ is at most β/(nm) for each row that differs."""
    if not event.jacobian * (1 + ROUNDING) >= relation.rows * objective.curvature:
        return "its linear term was drawn for a smaller Jacobian, or more ridge"
    return ""


PREMISES: dict[type, Callable[[Any, Objective, Relation], str]] = {
    LogisticPerturbation: _joint,
    ConvexPerturbation: _joint,
    RadialPerturbation: _joint,
    ObjectivePerturbation: _separately,
}


class Term(NamedTuple):
    """A linear term that was drawn.

    drawn: b (1, d). off: how far it may be from the ideal one, in ℓ₂ norm. sensitivity: of the gradient, in the run's
    relation, that its scale was set for. event: what the ledger has of it. used: whether a minimiser was released.
    """

    drawn: NDArray[Any]
    off: float
    sensitivity: float
    event: Release
    used: bool = False

    def missing_for(self, objective: Objective, relation: Relation) -> str:
        """Why the event does not account for the minimiser of `objective`; "" where it does."""
        if self.used:
            # Given the first minimiser, b differs between neighbours: a second one tells of that, uncharged.
            return "a linear term belongs to one minimiser; draw another, and pay for it"
        if not self.sensitivity >= relation.rows * objective.pull * (1 - ROUNDING):
            return f"its linear term was drawn for a sensitivity of {self.sensitivity:g}, a row's part moves more"
        if (premise := PREMISES.get(type(self.event))) is None:
            return "no proof of objective perturbation covers this release"
        return premise(self.event, objective, relation)
