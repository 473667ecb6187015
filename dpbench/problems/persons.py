"""Sums in which every person counts once, however many rows are his: the unit of privacy is all rows of one person.

*Model.* A table is M non-empty lists of rows, one a person's. Neighbours: one list replaced by any other non-empty one.
M is public. The number of rows N is not, as a neighbour may turn one row into fifty; nor is any m, the number of a
person's rows.

*Weights.* Of the m rows of a person row i has the weight aᵢ/2ᴮ, with whole aᵢ ≥ 0 and Σᵢ aᵢ ≤ 2ᴮ: 2ᴮ units are shared
as evenly as whole numbers can be, and those left over go to the rows whose content hashes first. So weights are 1/m to
within 2⁻ᴮ, of more than 2ᴮ rows so many count, and what a person's rows weigh depends on these rows alone. B is a
function of M, so public. A row without an id is nobody's: its weight is 0, as any other would be a second person's
part, and it does not count in M.

*Why sensitivities stay what they are.* A release today is noise on Σᵢ f(rowᵢ) over n rows, f in a set S. Here it is
noise on Σ_p g_p over M persons, g_p = Σᵢ (aᵢ/2ᴮ) f(rowᵢ), which is in C, the convex hull of S and 0. A norm is a convex
function, and one over C is largest at a point of S or 0: so sup‖g‖ = sup‖f‖ in any norm, which is the distance under
add/remove. Under replace-one ‖g - g'‖ is convex in g and in g', so largest with both in S ∪ {0}: it is at most
max(diam S, sup‖f‖). That is the bound which each sum declares (`privacy.exact_sums`): of c·x, whose S has x and -x,
2 sup‖f‖; of positive semidefinite matrices ‖A - B‖² ≤ ‖A‖² + ‖B‖², as <A, B> ≥ 0, and C has such matrices alone. Weyl's
bound on the least eigenvalue asks for no more than the norm of a positive semidefinite part. Scores that are Lipschitz
in the entries of a sum move as before. (Boyd and Vandenberghe 2004, Sections 2.1.4 and 3.2: convex hulls, suprema of
convex functions over them.)

On integers: a sum of a·c·x is Σ over the different a of a times a sum of today's, so there is no new rounding.
Its unit is 2⁻ᴮ of today's, its distances are 2ᴮ as many of them. Alone the mean of ggᵀ for intervals is no sum over
rows: see `PersonsProblem.score_moment`. With m = 1 for all, a = 2ᴮ, and the numbers are
today's, to the byte; but for the noise of a row bound of three columns or fewer, whose grid is the finer, and for
Hessians, of rows that are cut shorter.

*What does not follow* is refused: objective perturbation (a person's Hessian has any rank, and what the accounting
bounds is a tail of one direction), rows that are sampled or taken in turn (a person of m rows is hit more often, and by
several rows at once), minimisers, and losses that are not dpbench's own: there the last digit of a row's part may
depend on its place, and with a person's m all rows behind him change theirs.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.exact_sums import LARGEST, WEIGHT_BITS, Deferred, Gram, Sum, outer
from dpbench.problems.exact import MANTISSA, STEP, ExactProblem, Whole, positive_bound, rounded_derivative
from dpbench.problems.problem import Problem, columns_of, coordinate_state
from dpbench.problems.rows import BLOCK, Rows

BITS = 12  # at m ≤ 64 a weight is within 2 % of 1/m, and sums over 2¹⁸ persons fit 64 bits
HESSIAN_BITS = 12  # of a row of a Hessian, whose 8 bits of curvature take the room that weights need
PART_BITS = 14  # of a person's mean gradient, where its square is summed
ROOM = 30  # M·2ᴮ ≤ 2³⁰: then rows of norm 2 with slopes of 1 fit


class OfPersons(NamedTuple):
    """weights: (N,) whole numbers a, which sum to 2^bits over each person's rows. number: M. codes: as of `Persons`."""

    weights: np.ndarray
    bits: int
    number: int
    codes: np.ndarray

    @classmethod
    def once(cls, n: int) -> OfPersons:
        """Of n rows that are one's own each."""
        return cls(np.ones(n, dtype=np.int64), 0, n, np.arange(n))


@dataclass(frozen=True)
class Persons:
    """Whose the rows are.

    codes: (N,) of whole numbers, equal for rows of one person; -1: nobody's. count: M, public.
    """

    codes: np.ndarray = field(repr=False)
    count: int

    @classmethod
    def of(cls, ids: np.ndarray) -> Persons:
        """ids: (N,) texts, "" where there is none."""
        names, codes = np.unique(ids, return_inverse=True)
        nobody = int(len(names) > 0 and names[0] == "")  # it is the least text
        return cls(codes.ravel() - nobody, len(names) - nobody)

    @property
    def bits(self) -> int:
        """B."""
        return max(0, min(BITS, ROOM - math.ceil(math.log2(max(1, self.count)))))

    def weighted(self, X: Any, y: np.ndarray) -> OfPersons:
        """The weights of the rows X (N, d), an array or in CSR, y (N,), an array; 0 where a row is nobody's.

        TypeError for anything else: a column of a table is read by its index, so it would give another person's label.
        """
        if not isinstance(y, np.ndarray) or not (isinstance(X, np.ndarray) or getattr(X, "format", "") == "csr"):
            raise TypeError("persons: rows are weighed in arrays, or in CSR")
        known = np.flatnonzero(self.codes >= 0)
        sizes = np.bincount(self.codes[known], minlength=self.count)
        each, left = np.divmod(1 << self.bits, np.maximum(sizes, 1))
        # By person, then by content: a place in the file says nothing, and no other person's row decides.
        digests = np.zeros(len(known), dtype=np.uint64)
        for place in np.flatnonzero(left[self.codes[known]]):
            digests[place] = _digest(X[known[place]], y[known[place]])
        order = known[np.lexsort((digests, self.codes[known]))]
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        weights = np.zeros(len(self.codes), dtype=np.int64)
        weights[order] = np.repeat(each, sizes) + (rank < np.repeat(left, sizes))
        return OfPersons(weights, self.bits, self.count, self.codes)


def _digest(x: Any, y: Any) -> int:
    """A number that the content of a row gives; equal rows have equal ones, whatever their floats are kept in."""
    content = np.append(x.toarray().ravel() if hasattr(x, "toarray") else x, y).astype(np.float64) + 0.0  # no -0
    return int.from_bytes(hashlib.blake2b(content.tobytes(), digest_size=8).digest(), "little")


class PersonsProblem(ExactProblem):
    """An `ExactProblem` over M persons of the rows X (N, d) of weights a (N,), of which each person has 2ᴮ in all.

    Everything that is not a sum over all rows is refused.
    """

    hessian_bits = HESSIAN_BITS

    def __init__(self, X: Any, y: np.ndarray, of: OfPersons, **declared: Any) -> None:
        weights, self.bits, number, codes = of
        order = np.argsort(weights, kind="stable")[np.count_nonzero(weights == 0) :]  # rows of one weight lie together
        super().__init__(X[order], y[order], owned=True, **declared)
        self.n, self._whose = number, codes[order]
        self._sizes = np.unique(weights[order], return_counts=True)

    @cached_property
    def _classes(self) -> list[tuple[int, Rows]]:
        """See `ExactSums`."""
        ends = np.cumsum(self._sizes[1])
        return [
            (int(a), Rows(self.X[end - size : end], self.y[end - size : end]))
            for a, size, end in zip(*self._sizes, ends, strict=True)
        ]

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        """What else is asked of rows was derived for those that count once."""
        raise PrivacyError("with a unit only sums over all persons are derived; take a method whose releases are those")

    _rows = real = property(_refuse)  # see `ExactSums`
    approximate_minimiser = minimiser = _refuse

    @property
    def is_sparse(self) -> bool:
        """See `EmpiricalRisk`."""
        return hasattr(self.X, "tocsr")

    def _whole(self, shape: Any, function: Any, largest: int, chosen: Any, *arguments: Any) -> Deferred:
        """See `ExactSums`."""
        if chosen is not None:
            self._refuse()
        return super()._whole(shape, function, largest, chosen, *arguments)

    def _total(self, *of: Any) -> Sum:
        return super()._total(*of).finer(self.bits)

    def clipped_value(self, W: np.ndarray, clip: float) -> Any:
        """See `ExactSums`."""
        return super().clipped_value(W, clip).finer(self.bits)

    def _gram(self) -> Sum:
        return super()._gram().finer(self.bits)

    def clipped_curvature(self, W: np.ndarray, bound: float) -> Any:
        """See `EmpiricalRisk`."""
        return super().clipped_curvature(W, bound).finer(self.bits)

    def score_moment(self, W: np.ndarray, bound: float) -> Any:
        """The mean over persons of ggᵀ, g the mean of a person's clipped gradients c·x, which are not independent.

        2ᴮg is an integer vector, a sum of a·c·x with Σa ≤ 2ᴮ, so it is no longer than 2ᴮ times the longest c·x. Its
        entries are cut towards zero to PART_BITS binary digits of that, which makes no vector longer; so a person's
        part is positive semidefinite, of rank one and of a norm that is known, as a row's is.
        """
        self.require_one_output()
        most, W = math.floor(Fraction(positive_bound(bound)) * 2**WEIGHT_BITS), self.margins(W)
        square = (most**2 * self._square) << 2 * self.bits  # of the length of 2ᴮg, in steps of 2⁻³²
        if square >= MANTISSA**2:
            raise PrivacyError(f"scores clipped at {bound:g} do not fit float64; lower the clip")
        cut = max(0, square.bit_length() // 2 - PART_BITS)
        part = square >> 2 * cut
        if self.n * part > LARGEST:
            raise PrivacyError(f"the scores of {self.n:,} persons do not fit 64 bits")

        def read() -> Whole:
            parts = np.trunc(self._parts(W, most * 2.0**-WEIGHT_BITS) / (STEP * 2.0**cut))
            blocks = (parts[i : i + BLOCK] for i in range(0, self.n, BLOCK))
            return sum(
                ((one.T @ one).astype(np.int64)[None] for one in blocks), np.zeros((1, self.d, self.d), np.int64)
            )

        unit = (STEP * 2.0 ** (cut - self.bits)) ** 2
        return Gram(Deferred((1, self.d, self.d), read), unit, outer(part, 1)) / self.n

    def _parts(self, W: np.ndarray, most: float) -> np.ndarray:
        """(M, d): 2ᴮg of each person, exact: every partial sum is a multiple of 2⁻³² that float64 holds."""
        sums, weights = np.zeros((self.n, self.d)), np.repeat(*self._sizes)
        start = 0
        for A, y in Rows(self.X, self.y).in_float64.blocks():
            here = slice(start, start := start + len(y))
            z = np.ascontiguousarray((A @ W.T).T)
            c = rounded_derivative(self.loss.derivative, True, most, z, y, z)[0] * weights[here]
            who, place = np.unique(self._whose[here], return_inverse=True)
            of = scipy.sparse.csr_array((c, (place.ravel(), np.arange(len(y)))), shape=(len(who), len(y)))
            part = of @ A
            sums[who] += part.toarray() if self.is_sparse else part
        return sums

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray, *, even: bool = False) -> Any:
        """See `Problem`; shares of the columns' norms would tell of N."""
        if not even:
            self._refuse()
        return super().clipped_gradient(W, clip, even=True).finer(self.bits)

    def hessian_sum(self, w: np.ndarray, rows: np.ndarray | None = None, curvature: str = "hess") -> Any:
        """See `EmpiricalRisk`; of a square the second moment, which has room for weights."""
        if rows is None and self.loss.quadratic:
            return self._gram()
        return super().hessian_sum(w, rows, curvature).finer(self.bits)

    def _sum(self, function: Any, W: np.ndarray) -> np.ndarray:
        """(k,) as of `EmpiricalRisk`, of rows with their weights; for what no guarantee covers."""
        parts = [a * rows.sum(function, self._models(W)) for a, rows in self._classes]
        return np.asarray(sum(parts)).reshape(len(W), -1).sum(axis=1) / 2.0**self.bits


SUMS = frozenset({"sum", "weighted_sum", "sum_and_weighted_sum", "gram", "weighted_gram", "column_squares",
                  "label_moments", "label_sum"})  # fmt: skip


class _CountedRows:
    """Rows that weigh 1/m: `SUMS` of `Rows` over them; what else is asked is of the rows as they are.

    parts: (m, the rows of those who have m of them), float64.
    """

    single = False

    def __init__(self, X: np.ndarray, y: np.ndarray, size: np.ndarray) -> None:
        self._rows, each = Rows(X, y), np.unique(size).tolist()
        self.parts = [(m, Rows(X[size == m].astype(np.float64), y[size == m].astype(np.float64))) for m in each]

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._total, name) if name in SUMS else getattr(self._rows, name)

    def _total(self, name: str, *of: Any, **how: Any) -> Any:
        if any(np.asarray(one).dtype.kind == "i" for one in of if isinstance(one, np.ndarray)):
            raise UserError("of rows that have weights all are summed, not some")
        answers = [(m, getattr(rows, name)(*of, **how)) for m, rows in self.parts]
        if isinstance(answers[0][1], tuple):
            return tuple(sum(one[i] / m for m, one in answers) for i in range(len(answers[0][1])))
        return sum(one / m for m, one in answers)


class CountedOnce(Problem):
    """A `Problem` in float64 of n persons, where each of the m rows of a person weighs 1/m.

    whose: (rows,) whole numbers, equal for rows of one person. declared: as of a `Problem`.
    """

    weighted = True

    def __init__(self, X: np.ndarray, y: np.ndarray, whose: np.ndarray, **declared: Any) -> None:
        code = np.unique(whose, return_inverse=True)[1]
        count = np.bincount(code)
        self._size = count[code]
        super().__init__(X, y, **declared)
        self.n = len(count)

    @cached_property
    def _rows(self) -> Any:
        return _CountedRows(self.X, self.y, self._size)

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray, *, even: bool = False) -> np.ndarray:
        """See `Problem`."""
        shares = self.even_shares if even else self.clip_shares
        of = ((m, columns_of(rows, self.loss, shares)) for m, rows in self._rows.parts)
        return sum((one.clipped_gradient(self.batch(W), clip) / m for m, one in of), np.zeros_like(W)) / self.n

    def coordinate_state(self, W: np.ndarray) -> Any:
        """See `Problem`."""
        W, of = self.batch(W), (self.loss, self.clip_shares)
        return _CountedState([
            (rows.n / (m * self.n), coordinate_state(columns_of(rows, *of), W)) for m, rows in self._rows.parts
        ])  # fmt: skip


class _CountedState(NamedTuple):
    """`Problem.coordinate_state` of rows that weigh 1/m. parts: (weight of its means, state) of each m."""

    parts: list[tuple[float, Any]]

    def derivative(self, j: int, threshold: np.ndarray) -> np.ndarray:
        return np.asarray(sum(weight * one.derivative(j, threshold) for weight, one in self.parts))

    def move(self, j: int, change: np.ndarray) -> None:
        for _, one in self.parts:
            one.move(j, change)
