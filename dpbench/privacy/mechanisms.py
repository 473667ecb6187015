"""The only place that draws noise: every release of a run passes through here, into the ledger.

All arrays have a leading axis of length k, one row per replicate. Replicate i draws from the streams "noise",
"sampling" and "coins" of its own key, so what it gets does not depend on the batch it is in. Replicates of equal keys
share one draw (common random numbers); they stand next to each other and advance in step. Noise is float64 from a
seeded generator: fit for a benchmark, not for the release of sensitive data.

An algorithm declares its sensitivities in its own relation. Where a run asks an add/remove algorithm for replace-one
(`declared` differs from the budget's relation), every sensitivity is doubled here: to replace a row is to remove one
and to add another, n staying the divisor, so a bound on either step that holds for all data holds twice for both (the
triangle inequality; for ε-DP releases known by their ε, group privacy). `gaussian` takes `replaced` where the truth is
less than twice. Poisson samples become fixed-size ones without replacement, as only those are accounted under
replace-one. The ledger's noise multipliers are then relative to the replace-one sensitivity.

A sensitivity must be computed from public or released values only. One that is NaN or infinite gives a release that is
NaN or infinite, so that a replicate that diverges does not take its batch down; a negative one is refused.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.budget import Budgets
from dpbench.privacy.ledger import Gaussian, Laplace, Ledger, ObjectivePerturbation, PureDP, Release
from dpbench.privacy.relation import Relation
from dpbench.privacy.sampling import PoissonSampler, WithoutReplacementSampler
from dpbench.privacy.single_pass import SinglePass
from dpbench.privacy.streams import stream
from dpbench.privacy.tree import Tree, node_std

if TYPE_CHECKING:
    from dpbench.privacy.budget import Budget

Scalars = float | np.ndarray  # one value for the batch, or one per replicate: ()- or (k,)-shaped


class Mechanisms:
    """Noise for the k replicates named by `keys`, and the `ledger` of what they released.

    `budget` is what the algorithm may spend; nothing here enforces it (`dpbench.privacy.verify.check` does, after the
    run). `noiseless` adds no noise and records everything all the same: for tests against a reference optimum.
    `declared`: the relation of the sensitivities that the algorithm hands over, by default the budget's.
    """

    def __init__(
        self,
        keys: Sequence[str],
        budget: Budget | Budgets,
        *,
        noiseless: bool = False,
        declared: Relation | None = None,
    ) -> None:
        self.k = len(keys)
        self.budget = budget
        self.noiseless = noiseless
        self.doubled = (declared or budget.relation) is not budget.relation  # see the module docstring
        if self.doubled and budget.relation is not Relation.REPLACE_ONE:
            raise PrivacyError(f"sensitivities of {declared} neighbours say nothing of {budget.relation} ones")
        self.ledger = Ledger(self.k)
        self._members: tuple[int, ...] | None = None  # None: all of the ledger's replicates
        self.streams = _runs_of_equals(keys)  # slices of replicates, one per stream: all of length 1 as a rule
        distinct = [keys[members.start] for members in self.streams]
        self._noise = [stream(key, "noise") for key in distinct]
        self._sampling = [stream(key, "sampling") for key in distinct]
        self.coins = [stream(key, "coins") for key in distinct]  # for random choices of an algorithm that use no data

    def member(self, i: int) -> Mechanisms:
        """A view of replicate `i` alone (k = 1) on the same streams and ledger, for control flow of its own."""
        if len(self.streams) != self.k:
            raise PrivacyError("replicates that share a stream advance in step: none can be run alone")
        view = copy.copy(self)
        view.k = 1
        view.budget = self.budget[i] if isinstance(self.budget, Budgets) else self.budget
        view.streams = [slice(0, 1)]
        view._members = (i if self._members is None else self._members[i],)
        view._noise, view._sampling, view.coins = [self._noise[i]], [self._sampling[i]], [self.coins[i]]
        return view

    def gaussian(
        self,
        value: np.ndarray,
        *,
        sensitivity: Scalars,
        rho: Scalars | None = None,
        noise_multiplier: Scalars | None = None,
        label: str,
        symmetric: bool = False,
        replaced: Scalars | None = None,
    ) -> np.ndarray:
        """`value` + N(0, std²) in every entry, std = sensitivity · noise_multiplier; ρ-zCDP for 1/√(2ρ) of it.

        value: (k,), (k, d) or (k, d, d). sensitivity: ℓ₂ over all entries of one replicate (Frobenius for matrices).
        Exactly one of `rho` and `noise_multiplier`. `symmetric` (value (k, d, d) with symmetric matrices): noise i.i.d.
        on and above the diagonal, mirrored below. That is the Gaussian mechanism on the upper triangle, whose
        ℓ₂ sensitivity the Frobenius norm bounds. `replaced`: of an add/remove algorithm, the replace-one sensitivity
        where it is less than twice `sensitivity`. Source: Bun and Steinke (2016), Proposition 1.6.
        """
        z = _gaussian_multiplier(rho, noise_multiplier)
        self._record(Gaussian, z, label)
        draw = _symmetric_normal if symmetric else _normal
        return self._noisy(value, sensitivity, z, draw, replaced)

    def laplace(
        self,
        value: np.ndarray,
        *,
        sensitivity: Scalars,
        epsilon: Scalars | None = None,
        scale: Scalars | None = None,
        label: str,
    ) -> np.ndarray:
        """`value` + Laplace noise of scale b = sensitivity/ε (variance 2b²) in every entry: ε-DP.

        value: (k,) or (k, d). sensitivity: ℓ₁ over all entries of one replicate. Exactly one of `epsilon` and `scale`.
        Source: Dwork and Roth (2014), Theorem 3.6.
        """
        z = _laplace_multiplier(sensitivity, epsilon, scale)
        self._record(Laplace, z, label)
        return self._noisy(value, sensitivity, z, _laplace)

    def linear_term(
        self, d: int, *, sensitivity: float, noise_multiplier: float, jacobian: float, delta: float, label: str
    ) -> np.ndarray:
        """b ~ N(0, (sensitivity · noise_multiplier)² I), (k, d): the random linear term of objective perturbation.

        What is released is the *exact* minimiser of an objective with <b, w> added, not b. `sensitivity`: ℓ₂, of that
        objective's gradient; `jacobian` and `delta`: see `ledger.ObjectivePerturbation`. Source: Kifer, Smith and
        Thakurta (2012), Theorem 2.
        """
        if self.doubled:
            raise PrivacyError(f"{label}: the Jacobian's bound is for one relation; declare it for replace-one")
        self._record(lambda z: ObjectivePerturbation(z, jacobian, delta), noise_multiplier, label)
        return self._noisy(np.zeros((self.k, d)), sensitivity, noise_multiplier, _normal)

    def noisy_argmax(
        self,
        scores: np.ndarray,
        *,
        sensitivity: Scalars,
        epsilon: Scalars,
        label: str,
        two_sided: bool = True,
        magnitude: bool = False,
    ) -> np.ndarray:
        """The index (k,) of the largest of `scores` (k, p) + Laplace noise: report noisy max, ε-DP.

        sensitivity: of every single score. The scale is 2·sensitivity/ε where a neighbour may raise some scores and
        lower others (`two_sided`: always under replace-one), sensitivity/ε where all move the same way (Dwork and
        Roth 2014, Claim 3.9). Only the index is released. `magnitude`: of the largest |score + noise|. An index wins
        where its noise is in one of two tails, and the proof's shift of the noise applies to each: the scale holds.
        """
        self._record(PureDP, epsilon, label)
        scale = (2.0 if two_sided else 1.0) / np.asarray(epsilon, dtype=float)
        noisy = self._noisy(scores, sensitivity, scale, _laplace)
        return np.argmax(np.abs(noisy, out=noisy) if magnitude else noisy, axis=1)

    def above_threshold(
        self, *, sensitivity: float, epsilon: float, threshold: float = 0.0, label: str
    ) -> AboveThreshold:
        """The sparse vector technique for ONE replicate (a `member` view): ε-DP for any number of queries.

        Recorded when started, fired or not. nonconvex's Algorithm 2 is ε = 1/λ.
        """
        if self.k != 1:
            raise PrivacyError(f"{label}: above_threshold serves one replicate; call it on member(i)")
        self._record(PureDP, epsilon, label)
        return AboveThreshold(self, float(sensitivity), float(epsilon), threshold, label)

    def poisson(self, n: int, rate: float, label: str) -> PoissonSampler | WithoutReplacementSampler:
        """Batches in which each of the n rows is with probability `rate`, and the release made on each of them.

        For replace-one runs of an add/remove algorithm: max(1, round(n·rate)) rows without replacement.
        """
        if self.doubled:
            return self.without_replacement(n, max(1, round(n * rate)), label)
        return PoissonSampler(self, n, rate, label)

    def without_replacement(self, n: int, m: int, label: str) -> WithoutReplacementSampler:
        """Uniformly random subsets of `m` of the `n` rows, and the release made on each of them."""
        return WithoutReplacementSampler(self, n, m, label)

    def tree(self, rounds: int, *, sensitivity: float | np.ndarray, rho: float, label: str) -> Tree:
        """Running sums of `rounds` terms, all released together at ρ-zCDP: call its `release` round by round.

        sensitivity: ℓ₂, of the term of a round given what was released before, one number or (rounds,); a row may be
        in the term of one round only (see `single_pass`). Source: see `dpbench.privacy.tree`.
        """
        self._record(Gaussian, _gaussian_multiplier(rho, None), label)
        return self._tree(rounds, node_std(rounds, sensitivity, rho), label)

    def single_pass(self, n: int, label: str) -> SinglePass:
        """The n rows in random order, each handed out once; the releases on disjoint blocks cost as much as one."""
        return SinglePass(self, n, label)

    def _record(
        self,
        kind: Callable[[float], Release],
        parameter: Scalars,
        label: str,
        wrap: Callable[[Release], Release] = lambda release: release,
        count: int = 1,
    ) -> None:
        if np.ndim(parameter) == 0:
            self.ledger.record(wrap(kind(float(parameter))), label, self._members, count)
            return
        if np.shape(parameter) != (self.k,):
            raise PrivacyError(f"{label}: one parameter per replicate is shape ({self.k},), got {np.shape(parameter)}")
        for i, each in zip(self._members or range(self.k), parameter, strict=True):
            self.ledger.record(wrap(kind(float(each))), label, (i,), count)

    def _noisy(
        self,
        value: np.ndarray,
        sensitivity: Scalars,
        multiplier: Scalars,
        draw: Draw,
        replaced: Scalars | None = None,
    ) -> np.ndarray:
        value = np.asarray(value, dtype=float)
        if self.doubled:
            sensitivity = 2 * sensitivity if replaced is None else replaced
        if value.shape[:1] != (self.k,):
            raise PrivacyError(f"a value to release needs the leading axis k = {self.k}, got shape {value.shape}")
        scale = np.asarray(sensitivity * multiplier, dtype=float)
        if (scale < 0).any():
            raise PrivacyError(f"sensitivity must not be negative, got {sensitivity}")
        if self.noiseless:
            return value.copy()
        noise = np.empty(value.shape)
        for members, generator in zip(self.streams, self._noise, strict=True):
            first = members.start
            draw(generator, noise[first : first + 1] if value.ndim == 1 else noise[first])
            noise[first + 1 : members.stop] = noise[first]
        with np.errstate(invalid="ignore", over="ignore"):  # a diverged replicate: see the module docstring
            noise *= scale if scale.ndim == 0 else scale.reshape((self.k,) + (1,) * (value.ndim - 1))
            noise += value
        return noise

    def _tree(self, rounds: int, std: float, label: str, admit: Callable[[], None] = lambda: None) -> Tree:
        return Tree(self, rounds, std, label, admit)


class AboveThreshold:
    """AboveThreshold (Dwork and Roth 2014, Algorithm 1, Theorem 3.23): answers until the first "above".

    Threshold noise of scale 2Δ/ε once, query noise of scale 4Δ/ε each time, Δ the sensitivity of every query.
    """

    def __init__(
        self, mechanisms: Mechanisms, sensitivity: float, epsilon: float, threshold: float, label: str
    ) -> None:
        self._mechanisms = mechanisms
        self._sensitivity = sensitivity
        self._epsilon = epsilon
        self._label = label
        self._threshold = self._noisy(threshold, 2.0)
        self._open = True

    def __call__(self, query: float) -> bool:
        """Whether `query` + noise reaches the noisy threshold; after the first True, a new one is needed."""
        if not self._open:
            raise PrivacyError(f"{self._label}: this above_threshold has fired; start another, and pay for it")
        fired = self._noisy(query, 4.0) >= self._threshold
        self._open = not fired
        return fired

    def _noisy(self, value: float, factor: float) -> float:
        noisy = self._mechanisms._noisy(np.array([value]), self._sensitivity, factor / self._epsilon, _laplace)
        return float(noisy[0])


def _runs_of_equals(keys: Sequence[str]) -> list[slice]:
    starts = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    if len({keys[i] for i in starts}) != len(starts):
        raise ValueError("keys: replicates that share a stream must stand next to each other")
    return [slice(a, b) for a, b in itertools.pairwise([*starts, len(keys)])]


Draw = Callable[[np.random.Generator, np.ndarray], None]  # fills a contiguous array with unit noise


def _normal(generator: np.random.Generator, out: np.ndarray) -> None:
    generator.standard_normal(out=out)


def _symmetric_normal(generator: np.random.Generator, out: np.ndarray) -> None:
    rows, columns = _upper_triangle(len(out))
    out[rows, columns] = generator.standard_normal(len(rows))
    out[columns, rows] = out[rows, columns]


def _laplace(generator: np.random.Generator, out: np.ndarray) -> None:
    out[...] = generator.laplace(size=out.shape)


@lru_cache(maxsize=8)
def _upper_triangle(d: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(d)


def _gaussian_multiplier(rho: Scalars | None, noise_multiplier: Scalars | None) -> Scalars:
    if (rho is None) == (noise_multiplier is None):
        raise PrivacyError("gaussian: give exactly one of rho and noise_multiplier")
    if rho is None:
        return noise_multiplier
    if np.ndim(rho) == 0:
        return math.sqrt(0.5 / rho) if rho > 0 else math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(0.5 / np.asarray(rho, dtype=float))


def _laplace_multiplier(sensitivity: Scalars, epsilon: Scalars | None, scale: Scalars | None) -> Scalars:
    if (epsilon is None) == (scale is None):
        raise PrivacyError("laplace: give exactly one of epsilon and scale")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(1.0, epsilon) if scale is None else np.divide(scale, sensitivity)
