"""The seam of a release whose guarantee holds for the bytes that leave: integers, exact noise, no way past them.

A sum S of the rows (`exact_sums.Sum`) is released like this. With D entries and sensitivity Δ, in its units,

    T = ⌊S / 2^s + 1/2⌋,   K = T + round(σ' N),   σ' = z · (Δ/2^s + √D),   released: 2^s · unit · K + offset

where s is the largest with √D · 2^s ≤ 2⁻¹⁷ Δ, so that the noise is larger than that of exact arithmetic by less than
one part in 10⁵. T is computed by a shift, K by `rounded`, both without an error. Why it is the Gaussian mechanism of
noise multiplier z: each entry of T is within 1/2 of S/2^s, so between neighbours ‖T - T'‖ ≤ Δ/2^s + √D. For an integer
T, T + round(σ'N) = round(T + σ'N): a function of T + σ'N, and that is the Gaussian mechanism of noise σ' on a vector of
that sensitivity. What is released is a function of K and public numbers, with whatever float64 makes of them.
K is kept within ±2⁶¹, and noise beyond 2⁶² drawn as 2⁶²: a function of K too.
Laplace noise the same way, √D being D, the ℓ₁ distance that rounding adds; noise of density ∝ e^{-‖x‖₂} with √D. A
symmetric matrix is the vector of its diagonal and √2 times its upper triangle: noise σ' and σ'/√2, and rounding adds at
most d in Frobenius norm.

Objective perturbation releases, ideally, θ = argmin F(w) + <b, w> with b ~ N(0, σ²I), and the accounting charges for θ
itself. Here b is rounded, the solver stops near the minimiser, and what is released is that point with noise
(`CertifiedMinimiser`).
Given θ, a table determines the ideal b, hence the rounded one, hence the point: it is within r of θ, r the sum of what
rounding b, the solver and the output's grid may add (`problems.exact`). So two tables that agree on θ have points
within 2r of each other, and noise of multiplier z for a sensitivity of 2r makes the pair (θ, output) the composition
that is accounted. θ is not released. This is so of the one minimiser whose solver had the term, once, and where what
the accounting presumes holds of its objective (`Term`). Without a term neighbours' minimisers are a known distance
apart, and their points within that and 2r: output perturbation. A least eigenvalue, too, is near a number
that neighbours move by a known distance. These are ℓ₂ distances, which say nothing of the ℓ₁ one that Laplace noise
needs.

On a Poisson sample under replace-one (`ledger.PoissonReplaced`) one of two rows may be in the sample without the other:
the accounting presumes that each moves the sum by at most half the sensitivity, so Δ is twice what one row adds, also
where two rows together move it by less.

A choice takes scores V_j that are functions of the entries of a sum, computed in float64 from the integers, each within
e of a score that moves by Δ: so T_j = round(V_j/g) moves by at most D = (Δ + 2e)/g + 1. Report noisy max: the index of
the largest T_j + round(λL_j), or of the largest size, λ = 2D/ε, ties to the first. Given the others' noise, j wins
where its own is at least some integer a (or, by size, at most some -b too), and on a neighbour where it is a + 2D at
least; P(round(λL) ≥ a + 2D) ≥ e^{-2D/λ} P(round(λL) ≥ a) at all integers a, as these are tails of L. Exponential
mechanism: j of probability ∝ e^{εT_j/(2D)}, exactly (`exact_sampling.chosen`).

Correlated noise on integers: `dpbench.privacy.correlated` for `Sum`s, with noise that is sampling.

The coefficients of C are cut to multiples of 2⁻¹⁰, its diagonal being 1: no column gets longer, so its sensitivity is
none the larger. For integers T_t (see `releases`) 2¹⁰ Σ_j c_j T_{t-j} is an integer M_t, and M_t + round(σN) a function
of the Gaussian mechanism on it. A round's T differs between neighbours only where the row is in its batch: on the
others' rows, and at what was released, both compute the same. What is shown of T is solved from released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import PrivacyError
from dpbench.privacy import correlated, exact_sampling
from dpbench.privacy.budget import Budget, Budgets
from dpbench.privacy.exact_sampling import Bits, Draws, SeededBits, SystemBits
from dpbench.privacy.exact_sums import UP, CertifiedMinimiser, Ideal, Sum, Term
from dpbench.privacy.ledger import PoissonReplaced, Relation, Release, Sampled
from dpbench.privacy.mechanisms import CHOICES, Mechanisms, Score, one_choice
from dpbench.privacy.noise import LAPLACE, NORMAL, OBJECTIVE, RADIAL, SYMMETRIC, Array, Event, Noise, Releases, Scalars

COEFFICIENT_BITS = 10
FURTHEST, LARGEST = 2**44, 2**61  # of T, ten thousand of which fit the latter with their weights; of what is released


class ExactCorrelated(correlated.Correlated):
    """The same for `Sum`s (1, d) of one unit."""

    _releases: ExactReleases

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        # Rounded down: no column gets longer, and the sensitivity of the coefficients as they are still covers it.
        self._weights = np.floor(self._weights * 2**COEFFICIENT_BITS).astype(np.int64)
        self._whole: list[NDArray[np.int64]] = []  # T of the rounds before, the last one first
        self._shown: list[Array] = []  # and what was released of them

    def release(self, value: Any) -> Array:
        """`value`, a `Sum` (1, d), of the next round with its noise."""
        _require_sum(value, self._label)
        shift, units, grid = self._releases.on_steps(value, NORMAL, self._moved, self._label)
        scale = _drawable(2.0**COEFFICIENT_BITS * units * self._rows * _one(self._multiplier) * UP, self._label)
        if not self.t:
            self.std, self._grid = np.asarray(scale * grid * 2.0**-COEFFICIENT_BITS), (units, grid)
        self._begin(value.shape[1:])
        # Rounds are mixed as integers, which mean the same on one grid alone.
        if (units, grid) != self._grid:
            raise PrivacyError(f"{self._label}: the sums of all rounds must have one unit and one sensitivity")
        T = _shifted(value, shift)
        self._whole = [np.clip(T, -FURTHEST, FURTHEST), *self._whole][: len(self._weights)]

        def release() -> Array:
            return np.asarray(self._drawn(scale) * grid + value.offset, dtype=float)

        return self._publish(T * grid, self._mix(self._weights[1:] * 2.0**-COEFFICIENT_BITS), release)

    def _drawn(self, scale: float) -> Array:
        M = np.asarray(sum(c * T for c, T in zip(self._weights, self._whole, strict=False)))
        K = np.clip(M + self._releases.integers(NORMAL, scale, M.shape), -LARGEST, LARGEST)
        past = sum(c * one for c, one in zip(self._weights[1:], self._shown, strict=False))
        noisy = np.asarray((K - past) * 2.0**-COEFFICIENT_BITS, dtype=float)
        self._shown = [noisy, *self._shown][: len(self._weights) - 1]
        return noisy


FINER = 2.0**-17  # how much less than the sensitivity the grid of the released integers may add to it
TERM_BITS = 34  # a linear term's noise is up to 2³⁴ steps of its grid
ROUNDING = 1e-9  # of a sensitivity that an algorithm declares in float64
WITHIN = 2**61  # of the integers released
COMPARED = 2**52  # of those that a choice is made by


def _require_sum(value: Any, label: str, kinds: Any = Sum) -> None:
    """PrivacyError for a float array, which has been rounded on the way: what it reveals is not what was proved."""
    if not isinstance(value, kinds):
        raise PrivacyError(f"{label}: it is computed in float64, which arithmetic='bytes' does not cover")


class ExactReleases(Releases):
    """The seam for one replicate that releases `Sum`s with rounded noise, and nothing else.

    Its bits are the operating system's; `seeded` takes them from the key instead, to repeat a run that is no release.
    """

    seeded: ClassVar[bool] = False
    relation: Relation

    plantable: ClassVar[bool] = False

    def __init__(self, keys: Sequence[str], **how: Any) -> None:
        super().__init__(keys, **how)
        if self.k != 1:
            raise PrivacyError("exact releases serve one replicate at a time")
        generators = (self.noise[0], self.sampling[0], self.coins[0])  # of the key
        drawn: list[Bits] = [SeededBits(g) if self.seeded else SystemBits() for g in generators]
        self._bits = drawn[0]
        self._terms: list[Term] = []
        # No generator of float noise is left that a mechanism could draw from.
        self.noise = []
        self.sampling, self.coins = [Draws(drawn[1])], [Draws(drawn[2])]  # type: ignore[list-item]

    def member(self, i: int) -> Releases:
        """This one: there is no other."""
        return self

    def release(
        self,
        value: Any,
        noise: Noise,
        event: Event,
        label: str,
        *,
        sensitivity: Scalars,
        multiplier: Scalars,
        replaced: Scalars | None = None,
        count: int = 1,
    ) -> Array:
        """A `Sum` or `Ideal` with rounded noise: see the module. PrivacyError for anything else.

        A declared sensitivity below what the sum's own proof says is an error in the algorithm, and raises.
        """
        _require_sum(value, label, Sum | Ideal)
        z = _one(multiplier)
        shift, units, grid = self.on_steps(value, noise, sensitivity, label, replaced, event(z))
        scale = _drawable(units * z * UP, label)
        declared = _one(self.scaled_sensitivity(sensitivity, replaced))
        first = self.record(event, z, label, value.shape[1:], scale * grid, scale * grid / declared, count)
        T = _shifted(value, shift)  # here, not before, the rows are read
        offset = value.offset if isinstance(value, Sum) else 0.0

        def release() -> Array:
            # Clipping is a function of the sum, so post-processing; it keeps T + noise within 64 bits.
            K = np.clip(T + self.integers(noise, scale, T.shape), -WITHIN, WITHIN)
            return np.asarray(K * grid + offset, dtype=float)

        return self.publish(noise.name, label, first, T * grid, np.asarray(scale * grid), release)

    def on_steps(
        self,
        value: Sum | Ideal,
        noise: Noise,
        sensitivity: Scalars,
        label: str,
        replaced: Scalars | None = None,
        event: Release | None = None,
    ) -> tuple[int, float, float]:
        """(s, how far neighbours are apart at most, in units of T and in the norm of `noise`, that unit): see above.

        From public numbers: no row is read.
        """
        declared, entries = _one(self.scaled_sensitivity(sensitivity, replaced)), math.prod(value.shape[1:])
        if not 0 <= declared < math.inf:
            raise PrivacyError(f"{label}: sensitivity must be a number >= 0, got {declared:g}")
        if isinstance(value, Ideal):
            if isinstance(event, Sampled) or (entries > 1 and noise not in (NORMAL, RADIAL)):
                raise PrivacyError(
                    f"{label}: the distance of minimisers is known in the ℓ₂ norm and for all rows; add Gaussian or "
                    "radial noise, on no sample"
                )
            term = self._term_of(value, label)
            # Given the term, which is charged for, the exact minimisers of neighbours are one point.
            distance = 0.0 if term else value.neighbour_distance(self.relation)
            proved = (distance + 2 * (value.radius + (term.off if term else 0.0))) * UP
            wrong = declared < distance * (1 - ROUNDING)  # what lies nearer depends on the solver, and is added
        else:
            bound = value.moved.sum_of_sizes if noise is LAPLACE else value.moved.l2
            # On a Poisson sample one of the two rows is in it without the other: twice one row's part.
            alone = isinstance(event, PoissonReplaced)
            proved = (2 * bound(Relation.ADD_REMOVE) if alone else bound(self.relation)) * value.unit
            wrong = not declared >= proved * (1 - ROUNDING)
        if wrong:
            raise PrivacyError(f"{label}: sensitivity {declared:g} is declared, it moves by up to {proved:g}")
        added = _added(noise, entries)
        # More than is proved may be declared, and pays with more noise; less is refused above.
        units = max(declared, proved) / value.unit * UP  # Δ in units of the integers
        # As coarse as a FINER share of the sensitivity allows: coarser steps need fewer random bits.
        shift = max(0, math.floor(math.log2(units * FINER / added)))
        return shift, math.ldexp(units, -shift) + (added if shift else 0.0), math.ldexp(value.unit, shift)

    def term(self, d: int, noise: Noise, event: Event, multiplier: float, label: str, *, sensitivity: Scalars) -> Array:
        """See `Releases.term`; the minimiser whose solver has it may be released as what `event` says, once."""
        drawn = super().term(d, noise, event, multiplier, label, sensitivity=sensitivity)
        moved = _one(self.scaled_sensitivity(sensitivity))
        self._terms.append(Term(drawn.copy(), _rounded_by(noise, moved * multiplier, d), moved, event(multiplier)))
        return drawn

    def _term_of(self, value: Ideal, label: str) -> Term | None:
        """The term that the solver of `value` had, which is used up; None where that was none of those drawn."""
        if not isinstance(value, CertifiedMinimiser):
            return None
        for i, term in enumerate(self._terms):
            if np.array_equal(term.drawn, value.objective.term):
                # The event's theorem presumes something of the objective: held against the one that was solved.
                if missing := term.missing_for(value.objective, self.relation):
                    raise PrivacyError(f"{label}: {missing}")
                self._terms[i] = term._replace(used=True)
                return term._replace(off=term.off / value.objective.convexity)
        return None

    def integers(self, noise: Noise, scale: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Rounded noise, or 0 without noise."""
        return np.zeros(shape, dtype=np.int64) if self.noiseless else self._rounded(noise, scale, shape)

    def choose(
        self, values: Any, score: Score, kind: str, label: str, *, sensitivity: Scalars, epsilon: float
    ) -> Array:
        """The index (1,) of a score, by the exponential mechanism ("argmax by Gumbel noise") or noisy max: see above.

        sensitivity: of every score as a function of real numbers, which is tried at the ends of what a row may do.
        """
        _require_sum(values, label)
        one_choice(values, label)
        declared = _one(self.scaled_sensitivity(sensitivity))
        units, grid, compared = self._compared(values, score, declared, label)
        scale = _drawable(2 * units / epsilon * UP, label)
        width = score.function(np.zeros(values.shape)).shape[1:]
        self.record(CHOICES[kind], epsilon, label, width, scale * grid, scale * grid / declared)
        T = compared()
        sized = np.abs if kind == "argmax of magnitudes" else np.asarray

        def release() -> Array:
            if self.noiseless:
                return np.asarray(np.argmax(sized(T), axis=1))
            if kind == "argmax by Gumbel noise":
                return np.array([exact_sampling.chosen(T[0], epsilon / (2 * units), self._bits)])
            return np.asarray(np.argmax(sized(T + self._rounded(LAPLACE, scale, T.shape)), axis=1))

        return self.publish(kind, label, None, T * grid, np.asarray(scale * grid), release)

    def _compared(
        self, values: Sum, score: Score, declared: float, label: str
    ) -> tuple[float, float, Callable[[], NDArray[np.int64]]]:
        """(how many units a neighbour moves each score by at most, the unit, what computes the scores (1, p))."""
        each = values.each(self.relation) * values.unit  # a number, or (d,)
        public = np.broadcast_to(np.asarray(values.offset, dtype=float), values.shape)
        sizes = np.abs(public)[0] + values.within * values.unit
        with np.errstate(divide="ignore", invalid="ignore"):  # a value that no row moves is off by the same for all
            rounding = float(np.max(np.where(each > 0, sizes * 2.0**-51 / each, 0.0)))
        off, here = score.off(sizes), score.function(public)
        if not off < math.inf:
            raise PrivacyError(f"{label}: its scores may leave the range of float64; choose another unit")
        # Tried at both ends of what a row may do: a declared sensitivity below is an error in the algorithm.
        tried = max(float(np.max(np.abs(score.function(public + end) - here))) for end in (each, -each))
        tried = max(tried, float(np.max(each * score.lipschitz)))
        if not tried <= declared * (1 + ROUNDING + 2 * rounding) + 2 * off:
            raise PrivacyError(f"{label}: sensitivity {declared:g} is declared, a score moves by up to {tried:g}")
        moved = (declared * (1 + 2 * rounding) + 2 * off) * UP
        grid = math.ldexp(1.0, math.floor(math.log2(moved * FINER)))

        def compared() -> NDArray[np.int64]:
            scores = one_choice(score.function(values.integers * values.unit + public), label) / grid
            return np.asarray(np.rint(np.clip(scores, -COMPARED, COMPARED)), dtype=np.int64)

        return moved / grid * UP + 1, grid, compared

    def _rounded(self, noise: Noise, scale: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        if noise in (LAPLACE, NORMAL, RADIAL):
            drawn: NDArray[np.int64] = getattr(exact_sampling, noise.name)(scale, math.prod(shape), self._bits)
            return drawn.reshape(shape)
        d = shape[-1]
        rows, columns = np.triu_indices(d)
        # Off the diagonal an entry counts twice in the Frobenius norm, so √½ of the noise is enough (rounded up).
        scales = np.where((rows == columns) | (noise is SYMMETRIC), scale, scale * math.sqrt(0.5) * UP)
        out = np.empty(shape, dtype=np.int64)
        out[0, rows, columns] = exact_sampling.normal(scales, len(rows), self._bits)
        out[0, columns, rows] = out[0, rows, columns]
        return out

    def noisy(self, value: Any, scale: Array, noise: Noise) -> NoReturn:
        """Raises PrivacyError, as `draw` does."""
        raise PrivacyError("arithmetic='bytes' covers sums over the rows; this mechanism adds noise to something else")

    def hidden_noise(self, shape: tuple[int, ...], scale: Array, noise: Noise, what: str) -> Array:
        """The linear term of objective perturbation, within a public distance of the ideal one; no other noise apart.

        A Gaussian term is rounded to a grid of 2⁻³⁴ of its noise: a function of the ideal one, within half a step in
        each entry. A radial one is computed to as many digits. See `CertifiedMinimiser`.
        """
        if noise not in (NORMAL, RADIAL) or what != OBJECTIVE:
            raise PrivacyError(f"{what}: computes on with its noise, which arithmetic='bytes' does not cover")
        std, entries = _one(scale), math.prod(shape)
        if noise is RADIAL:
            # A radial draw is a product and no rounded variable: it is computed to as many digits instead.
            near = exact_sampling.radial_near(entries, self._bits)
            if near is None:
                raise PrivacyError(f"{what}: noise too far in its tails to be computed")
            return np.zeros(shape) if self.noiseless else near.reshape(shape) * std
        step = _term_step(std)
        if self.noiseless:
            return np.zeros(shape)
        return exact_sampling.normal(std / step, entries, self._bits).reshape(shape) * step


class SeededReleases(ExactReleases):
    """The same with bits from the key: no release."""

    seeded = True


class ExactMechanisms(Mechanisms):
    """`Mechanisms` for one replicate that release through `ExactReleases`."""

    seam = ExactReleases
    correlating = ExactCorrelated

    def __init__(self, keys: Sequence[str], budget: Budget | Budgets, **options: Any) -> None:
        super().__init__(keys, budget, **options)
        assert isinstance(self.releases, ExactReleases)
        self.releases.relation = budget.relation

    def _choose(
        self, values: Any, score: Score, kind: str, label: str, sensitivity: Scalars, epsilon: Scalars
    ) -> Array:
        """See `ExactReleases.choose`."""
        assert isinstance(self.releases, ExactReleases)
        return self.releases.choose(values, score, kind, label, sensitivity=sensitivity, epsilon=_one(epsilon))


class SeededMechanisms(ExactMechanisms):
    """The same with bits from the key: no release."""

    seam = SeededReleases


def _drawable(scale: float, label: str) -> float:
    """`scale`, in steps of the grid; PrivacyError for one that is not drawn exactly."""
    if not 0 < scale <= exact_sampling.LARGEST:
        raise PrivacyError(f"{label}: noise of {scale:g} grid steps cannot be drawn exactly; lower the noise or T")
    return scale


def _shifted(value: Sum | Ideal, shift: int) -> NDArray[np.int64]:
    """T: the integers on the grid of what is released."""
    return np.asarray(np.clip((value.integers + ((1 << shift) >> 1)) >> shift, -WITHIN, WITHIN))


def _added(noise: Noise, entries: int) -> float:
    """What rounding to integers adds to a sensitivity at most: ℓ₁, or ℓ₂ (Frobenius), of entries that move by 1."""
    return float(entries) if noise is LAPLACE else math.sqrt(entries)


def _term_step(std: float) -> float:
    return math.ldexp(1.0, math.frexp(std)[1] - TERM_BITS)


def _rounded_by(noise: Noise, std: float, entries: int) -> float:
    """How far a linear term may be from the ideal one, in ℓ₂ norm: see `ExactReleases.hidden_noise`."""
    if noise is RADIAL:
        return std * entries * exact_sampling.NEAR * UP
    return _term_step(std) * math.sqrt(entries) / 2 * UP


def _one(value: Scalars) -> float:
    return float(np.ravel(value)[0])
