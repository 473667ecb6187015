"""The mechanisms that algorithms release through: every release of a run passes here, into the ledger.

An algorithm declares its sensitivities in its own relation. Where a run asks an add/remove algorithm for replace-one
(`declared` differs from the budget's relation), every sensitivity is doubled here: to replace a row is to remove one
and to add another, n staying the divisor, so a bound on either step that holds for all data holds twice for both (the
triangle inequality; for ε-DP releases known by their ε, group privacy). `gaussian` takes `replaced` where the truth is
less than twice. Poisson samples become fixed-size ones without replacement, as most accountings have no other under
replace-one; `tight` does (`ledger.PoissonReplaced`). The ledger's noise multipliers are then relative to the
replace-one sensitivity.

A sensitivity must be computed from public or released values only. One that is NaN or infinite gives a release that is
NaN or infinite, so that a replicate that diverges does not take its batch down; a negative one is refused.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from dpbench.errors import PrivacyError
from dpbench.privacy import tukey
from dpbench.privacy.accounting.gaussian import growth
from dpbench.privacy.budget import Budget, Budgets
from dpbench.privacy.correlated import Correlated, Tree, node_std
from dpbench.privacy.ledger import (
    BoundedRange,
    Counts,
    DrawAfterTest,
    Gaussian,
    Laplace,
    LastIterate,
    Ledger,
    LogisticPerturbation,
    ObjectivePerturbation,
    PureDP,
    Radial,
    RadialPerturbation,
    Relation,
    Release,
)
from dpbench.privacy.noise import (
    GUMBEL,
    ISOMETRIC,
    LAPLACE,
    NORMAL,
    RADIAL,
    SYMMETRIC,
    UNIFORM,
    Array,
    Releases,
    Scalars,
)
from dpbench.privacy.sampling import (
    AllocationSampler,
    PoissonReplacedSampler,
    PoissonSampler,
    SinglePass,
    WithoutReplacementSampler,
    WithReplacementSampler,
    laplace_multiplier,
)


class Score(NamedTuple):
    """What a selection compares: `function` of values (k, d), (k, p) scores, each of which depends on one of the d.

    off: of d bounds on the sizes of the values, how far float64 may take any score from what it is for real numbers.
    lipschitz: what a score moves by at most, where its value moves by 1: a number, or (d,); 0 where it is not stated.
    named: the class of the score for a server that makes it itself, and its public arguments.
    """

    function: Callable[[Array], Array]
    off: Callable[[Array], float]
    lipschitz: Any = 0.0
    named: tuple[Any, ...] = ()


VALUES = Score(lambda values: values, lambda sizes: 0.0)
# A private choice by what is published of it, and what the ledger gets, of its ε.
CHOICES: Mapping[str, Callable[[float], Release]] = {
    "argmax": PureDP,
    "argmax of magnitudes": PureDP,
    "argmax by Gumbel noise": BoundedRange,
}


class Mechanisms:
    """Noise for the k replicates named by `keys`, and the `ledger` of what they released.

    `budget` is what the algorithm may spend; nothing here enforces it (`dpbench.privacy.check` does, after the run).
    `noiseless` adds no noise and records everything all the same: for tests against a reference optimum. `declared`:
    the relation of the sensitivities that the algorithm hands over, by default the budget's. `releases`: the seam to
    draw through, where it is not a new one of the class `seam`. `planted`: what its noise is multiplied by. `seeds`: of
    the replicates' jobs where there are jobs, for algorithms that repeat a published stream; they name the seeds that
    were published, one for one.
    """

    seam: ClassVar[type[Releases]] = Releases
    correlating: ClassVar[Callable[..., Correlated]] = Correlated
    passing: ClassVar[type[SinglePass]] = SinglePass
    planned_for: Sequence[int] | None = None  # see `planning`

    def __init__(
        self,
        keys: Sequence[str],
        budget: Budget | Budgets,
        *,
        noiseless: bool = False,
        declared: Relation | None = None,
        releases: Releases | None = None,
        planted: float = 1.0,
    ) -> None:
        self.budget = cast("Budget", budget)  # `Budgets` only for an algorithm with "epsilon" in `per_replicate`
        self.doubled = (declared or budget.relation) is not budget.relation  # see the module docstring
        # Twice an add/remove sensitivity covers a replaced row; a replace-one one says nothing of a missing row.
        if self.doubled and budget.relation is not Relation.REPLACE_ONE:
            raise PrivacyError(f"sensitivities of {declared} neighbours say nothing of {budget.relation} ones")
        factor = 2.0 if self.doubled else 1.0
        self.releases = releases or self.seam(keys, noiseless=noiseless, factor=factor, planted=planted)
        self.seeds: tuple[int, ...] = ()

    @property
    def k(self) -> int:
        """The number of replicates."""
        return self.releases.k

    @property
    def least_sensitivities(self) -> bool:
        """Whether to use the least sensitivities that are proved, not those of the algorithm's paper."""
        return self.budget.least_sensitivities

    @property
    def ledger(self) -> Ledger:
        """What was released."""
        return self.releases.ledger

    @property
    def streams(self) -> list[slice]:
        """Slices of replicates, one per random stream: all of length 1 as a rule."""
        return self.releases.streams

    @property
    def coins(self) -> list[np.random.Generator]:
        """A generator per stream, for random choices of an algorithm that use no data."""
        return self.releases.coins

    def member(self, i: int) -> Mechanisms:
        """A view of replicate `i` alone (k = 1) on the same streams and ledger, for control flow of its own."""
        view = copy.copy(self)
        view.releases = self.releases.member(i)
        view.budget = self.budget[i] if isinstance(self.budget, Budgets) else self.budget
        view.seeds = self.seeds[i : i + 1]
        return view

    def planning(self, members: Sequence[int]) -> Mechanisms:
        """A view whose `plan` is that of `members`, which have one budget; it is not to release by."""
        view = copy.copy(self)
        view.planned_for = members
        view.budget = self.budget[members[0]] if isinstance(self.budget, Budgets) else self.budget
        return view

    def inner(self, keys: Sequence[str], budget: Budget, declared: Relation) -> Mechanisms:
        """Those of runs inside this one, of which nothing is released but what this one releases of them."""
        return type(self)(keys, budget, declared=declared, planted=self.releases.planted)

    def plan(self, label: str, release: Release, count: int) -> None:
        """`count` releases of `label` at most, before any of them is made: for `Algorithm.plan`.

        release: as the ledger will have it, its multiplier in the run's own relation. Without a plan, what a run
        released is taken for what it planned, which is true only where that does not depend on the data.
        """
        members = self.releases.members if self.planned_for is None else self.planned_for
        self.releases.ledger.plan(release, label, count, members)

    def plan_all(self, label: str, counts: Counts) -> None:
        """`plan` of each of `counts`, like those of a sampler."""
        for release, count in counts:
            self.plan(label, release, count)

    def gaussian(
        self,
        value: Array,
        *,
        sensitivity: Scalars,
        rho: Scalars | None = None,
        noise_multiplier: Scalars | None = None,
        label: str,
        symmetric: bool = False,
        replaced: Scalars | None = None,
    ) -> Array:
        """`value` + N(0, std²) in every entry, std = sensitivity · noise_multiplier; ρ-zCDP for 1/√(2ρ) of it.

        value: (k,), (k, d) or (k, d, d). sensitivity: ℓ₂ over all entries of one replicate (Frobenius for matrices).
        Exactly one of `rho` and `noise_multiplier`. `symmetric` (value (k, d, d) with symmetric matrices): noise i.i.d.
        on and above the diagonal, mirrored below. That is the Gaussian mechanism on the upper triangle, whose
        ℓ₂ sensitivity the Frobenius norm bounds; where `sharp`, with std/√2 off the diagonal, which is enough.
        `replaced`: of an add/remove algorithm, the replace-one sensitivity where it is less than twice `sensitivity`.
        Source: Bun and Steinke (2016), Proposition 1.6.
        """
        if rho is not None and noise_multiplier is None:
            noise_multiplier = _multiplier_of(rho)
        elif rho is not None or noise_multiplier is None:
            raise PrivacyError("gaussian: give exactly one of rho and noise_multiplier")
        noise = (ISOMETRIC if self.least_sensitivities else SYMMETRIC) if symmetric else NORMAL
        return self.releases.release(
            value, noise, Gaussian, label, sensitivity=sensitivity, multiplier=noise_multiplier, replaced=replaced
        )

    def laplace(
        self,
        value: Array,
        *,
        sensitivity: Scalars,
        epsilon: Scalars | None = None,
        scale: Scalars | None = None,
        label: str,
    ) -> Array:
        """`value` + Laplace noise of scale b = sensitivity/ε (variance 2b²) in every entry: ε-DP.

        value: (k,) or (k, d). sensitivity: ℓ₁ over all entries of one replicate. Exactly one of `epsilon` and `scale`.
        Source: Dwork and Roth (2014), Theorem 3.6.
        """
        z = laplace_multiplier(sensitivity, epsilon, scale)
        return self.releases.release(value, LAPLACE, Laplace, label, sensitivity=sensitivity, multiplier=z)

    def radial(self, value: Array, *, sensitivity: Scalars, epsilon: Scalars, label: str) -> Array:
        """`value` + b of density ∝ exp(-ε‖b‖₂/sensitivity), a length of Gamma(d) in a uniform direction: ε-DP.

        value: (k, d). sensitivity: ℓ₂ over all entries of one replicate. Source: Chaudhuri, Monteleoni and Sarwate
        (2011), Algorithm 1: the norm changes by at most as much as the value (triangle inequality).
        """
        z = 1 / epsilon
        return self.releases.release(value, RADIAL, Radial, label, sensitivity=sensitivity, multiplier=z)

    def linear_term(
        self,
        d: int,
        *,
        sensitivity: float,
        event: ObjectivePerturbation | LogisticPerturbation | RadialPerturbation,
        label: str,
    ) -> Array:
        """b (k, d), the random linear term of objective perturbation: N(0, s²I), or of density ∝ exp(-‖b‖₂/s).

        What is released is the *exact* minimiser of an objective with <b, w> added, not b. s is `sensitivity`, ℓ₂, of
        that objective's gradient, times the multiplier of `event`, which says what the ledger gets and which law b has:
        the radial one at δ = 0 (Chaudhuri, Monteleoni and Sarwate 2011), else the Gaussian one (Kifer, Smith and
        Thakurta 2012, Theorem 2). The event's bound on the Jacobian is for the run's own relation.
        """
        if self.doubled:
            raise PrivacyError(f"{label}: the Jacobian's bound is for one relation; declare it for replace-one")
        noise = RADIAL if isinstance(event, RadialPerturbation) else NORMAL
        return self.releases.term(
            d,
            noise,
            lambda each: replace(event, noise_multiplier=each),
            event.noise_multiplier,
            label,
            sensitivity=sensitivity,
        )

    def last_iterate(
        self, d: int, steps: int, *, sensitivity: float, contraction: float, rho: Scalars, label: str
    ) -> Callable[[Array], Array]:
        """What to call on each of `steps` gradients (k, d): it adds noise that makes the last iterate ρ-zCDP.

        sensitivity: ℓ₂, of a gradient. contraction: of every step, on all data. Only the last iterate may be released,
        or used for anything but the next step. Source: see `dpbench.privacy.accounting.gaussian`.
        """
        # `growth` is the μ of the last iterate over that of a single step.
        z = _multiplier_of(rho) * growth(steps, contraction)
        scale = np.asarray(self.releases.scaled_sensitivity(sensitivity) * z)
        self.releases.record(lambda each: LastIterate(each, steps, contraction), z, label, (d,), scale, z)
        return lambda gradient: gradient + self.releases.hidden_noise(gradient.shape, scale, NORMAL, "hidden steps")

    def noisy_argmax(
        self,
        values: Array,
        *,
        sensitivity: Scalars,
        epsilon: Scalars,
        label: str,
        magnitude: bool = False,
        score: Score = VALUES,
    ) -> Array:
        """The index (k,) of the largest of the scores (k, p) of `values` + Laplace noise: report noisy max, ε-DP.

        sensitivity: of every single score. The scale is 2·sensitivity/ε, as a neighbour may raise some scores and lower
        others (Dwork and Roth 2014, Claim 3.9). Only the index is released. `magnitude`: of the largest |score +
        noise|. An index wins where its noise is in one of two tails, and the proof's shift of the noise applies to
        each: the scale holds.
        """
        kind = "argmax of magnitudes" if magnitude else "argmax"
        return self._choose(values, score, kind, label, sensitivity, epsilon)

    def exponential(
        self, values: Array, *, sensitivity: Scalars, epsilon: Scalars, label: str, score: Score = VALUES
    ) -> Array:
        """The index (k,) that the exponential mechanism draws, of probability ∝ e^{ε·score/(2·sensitivity)}.

        Scores (k, p) of `values`, any of which a neighbour moves by at most `sensitivity`, either way. The log-ratio of
        an index's probabilities is ε(u - u')/(2·sensitivity) and a constant: in an interval of length ε (McSherry and
        Talwar 2007; Dong, Durfee and Rogers 2020), see `ledger.BoundedRange`. Drawn as the largest score with Gumbel
        noise.
        """
        return self._choose(values, score, "argmax by Gumbel noise", label, sensitivity, epsilon)

    def _choose(
        self, values: Any, score: Score, kind: str, label: str, sensitivity: Scalars, epsilon: Scalars
    ) -> Array:
        """The index (k,) of the largest score with noise of scale 2·sensitivity/ε; kind: one of `CHOICES`."""
        scores = one_choice(np.asarray(score.function(values), dtype=float), label, self.k)
        with np.errstate(divide="ignore"):  # ε = 0 is refused below
            unit = 2.0 / np.asarray(epsilon, dtype=float)
        scale = np.asarray(self.releases.scaled_sensitivity(sensitivity) * unit)
        event = CHOICES[kind]
        self.releases.record(event, epsilon, label, scores.shape[1:], scale, unit)

        def release() -> Array:
            noisy = self.releases.noisy(scores, scale, GUMBEL if event is BoundedRange else LAPLACE)
            return np.asarray(np.argmax(np.abs(noisy) if kind == "argmax of magnitudes" else noisy, axis=1))

        return self.releases.publish(kind, label, None, scores, scale, release)

    def deep_point(self, models: Array, event: DrawAfterTest, label: str) -> tuple[Array, Array]:
        """A point (k, d) drawn by its depth among m points (k, m, d), and whether the test before it passed, (k,).

        A neighbour replaces one of the points. Where the test did not pass, the point is 0. See `dpbench.privacy.tukey`
        for the proof and its source.
        """
        if self.doubled:
            raise PrivacyError(f"{label}: the depth moves by one under either relation; declare it for the run's own")
        unit = np.asarray(1 / event.test)
        self.releases.record(lambda _: event, 1 / event.test, label, (), unit, unit)
        far = tukey.distances(models, event)
        noisy = self.releases.publish(
            "laplace", label, None, far, unit, lambda: self.releases.noisy(far, unit, LAPLACE)
        )
        passed = noisy[:, 0] > tukey.threshold(event)

        def release() -> Array:
            point = tukey.draw(
                models,
                event.exponent,
                lambda scores: self.releases.noisy(scores, np.asarray(1.0), GUMBEL),
                lambda like: self.releases.noisy(np.zeros(like.shape), np.asarray(1.0), UNIFORM),
            )
            return np.where(passed[:, None], point, 0.0)

        return self.releases.publish("depth", label, event, models, 1.0, release), passed

    def above_threshold(
        self, *, sensitivity: float, epsilon: float, threshold: float = 0.0, label: str
    ) -> AboveThreshold:
        """The sparse vector technique for ONE replicate (a `member` view): ε-DP for any number of queries.

        Recorded when started, fired or not. nonconvex's Algorithm 2 is ε = 1/λ.
        """
        if self.k != 1:
            raise PrivacyError(f"{label}: above_threshold serves one replicate; call it on member(i)")
        unit = 2.0 / epsilon
        self.releases.record(PureDP, epsilon, label, (), self.releases.scaled_sensitivity(sensitivity) * unit, unit)
        return AboveThreshold(self.releases, float(sensitivity), float(epsilon), threshold, label)

    def poisson(
        self, n: int, rate: float, label: str, *, replaced: bool = False
    ) -> PoissonSampler | WithoutReplacementSampler:
        """A sampler whose batches have each of the n rows with probability `rate`; one release on each batch.

        A replace-one run of an add/remove algorithm gets batches of max(1, round(n·rate)) rows without replacement,
        unless the accounting is `tight` and the release declares no replace-one sensitivity of its own.

        Args:
            n: number of rows.
            rate: in (0, 1], the chance of a row.
            label: of the releases, as in the algorithm's `discloses`.
            replaced: whether the release will declare a sensitivity under replace-one.

        Returns:
            A sampler: `draw()` gives k sorted arrays of row indices, `gaussian(value, …)` releases what was computed
            on them, and `noise_multiplier(steps)` is the noise that `steps` such releases need.

        Raises:
            PrivacyError: where the rate is not in (0, 1].

        Example:
            >>> from dpbench.privacy.budget import Budget
            >>> run = Mechanisms(["a", "b"], Budget(1.0, 1e-6, Relation.ADD_REMOVE, "rdp"))
            >>> batches = run.poisson(1000, 0.01, "gradient")
            >>> z = batches.noise_multiplier(steps=20)
            >>> rows = batches.draw()
            >>> means = np.stack([np.full(3, len(one) / 10) for one in rows])  # of what the rows have, over n·rate
            >>> batches.gaussian(means, sensitivity=0.1, noise_multiplier=z).shape
            (2, 3)
        """
        if self.doubled and self.least_sensitivities and not replaced:
            return PoissonReplacedSampler(self.releases, self.budget, n, rate, label)
        if self.doubled:
            return self.without_replacement(n, max(1, round(n * rate)), label)
        return PoissonSampler(self.releases, self.budget, n, rate, label)

    def allocation(self, n: int, steps: int, label: str) -> AllocationSampler:
        """A sampler that allots each of the n rows to one of the `steps` draws of an epoch, and of every epoch after.

        Args:
            n: number of rows.
            steps: draws of an epoch, at least 2.
            label: of the releases, as in the algorithm's `discloses`.

        Returns:
            A sampler as of `poisson`; the draws of an epoch are disjoint and make up all rows.

        Raises:
            PrivacyError: where the run's neighbours are not add/remove: of a replaced row nothing is derived.

        Source: Chua et al. (2024); its cost: see `dpbench.privacy.accounting.allocation`.
        """
        return AllocationSampler(self.releases, self.budget, n, steps, label)

    def without_replacement(self, n: int, m: int, label: str) -> WithoutReplacementSampler:
        """A sampler of uniformly random subsets of `m` of the `n` rows; one release on each.

        Args:
            n: number of rows.
            m: rows in a batch, 1 to n.
            label: of the releases, as in the algorithm's `discloses`.

        Returns:
            A sampler as of `poisson`, all of whose draws have m rows; it has `laplace`, too.

        Raises:
            PrivacyError: where the run's neighbours are not replace-one.

        Example:
            >>> from dpbench.privacy.budget import Budget
            >>> run = Mechanisms(["a", "b"], Budget(1.0, 1e-6, Relation.REPLACE_ONE, "rdp"))
            >>> [len(rows) for rows in run.without_replacement(1000, 10, "gradient").draw()]
            [10, 10]
        """
        return WithoutReplacementSampler(self.releases, self.budget, n, m, label)

    def with_replacement(self, n: int, m: int, label: str) -> WithReplacementSampler:
        """m draws from the n rows as published code makes them; recorded as what is less than the truth, see there."""
        return WithReplacementSampler(self.releases, self.budget, n, m, label)

    def tree(self, rounds: int, *, sensitivity: float | Array, rho: float, label: str) -> Tree:
        """Running sums of `rounds` terms, all released together at ρ-zCDP: call its `release` round by round.

        Args:
            rounds: how many running sums there will be.
            sensitivity: ℓ₂, of the term of a round given what was released before: one number, or (rounds,). A row
                may be in the term of one round only (see `single_pass`).
            rho: > 0, the zCDP cost of all rounds together.
            label: of the releases, as in the algorithm's `discloses`.

        Returns:
            A tree: `release(running_sum)` takes and returns (k, d), once for each round. The noise of a sum grows
            with log₂ of the round.

        Example:
            >>> from dpbench.privacy.budget import Budget
            >>> run = Mechanisms(["a", "b"], Budget(1.0, 1e-6, Relation.REPLACE_ONE, "standard"))
            >>> sums = run.tree(8, sensitivity=0.1, rho=0.5, label="sums")
            >>> total = np.zeros((2, 3))
            >>> for t in range(8):
            ...     total = total + 0.1  # a term from rows that no other round uses
            ...     noisy = sums.release(total)
            >>> noisy.shape
            (2, 3)

        Source: Zhang, Tran and Cutkosky (2024), Theorem 4.3; see `dpbench.privacy.correlated`.
        """
        return Tree(self.releases, rounds, node_std(rounds, sensitivity, rho), math.sqrt(0.5 / rho), label)

    def correlated(
        self, steps: int, *, separation: int, bands: int, sensitivity: float, rho: Scalars, label: str
    ) -> Correlated:
        """Values of `steps` rounds, all released together at ρ-zCDP: call its `release` round by round.

        sensitivity: ℓ₂, of a round's value given what was released before; a row may be in the values of rounds that
        are at least `separation` apart. bands: ≤ separation, of the noise. Source: see `dpbench.privacy.correlated`.
        """
        z = _multiplier_of(rho)
        return self.correlating(self.releases, steps, separation, bands, sensitivity, z, label)

    def single_pass(self, n: int, label: str) -> SinglePass:
        """The n rows in random order, each handed out once; the releases on disjoint blocks cost as much as one.

        Args:
            n: number of rows.
            label: of the releases, as in the algorithm's `discloses`.

        Returns:
            A pass: `take(b)` gives the next b rows as (k, b) indices, an order for each replicate, and
            `gaussian(value, …)` releases what was computed on them, (k, d), once for each `take`.

        Raises:
            PrivacyError: where the run's neighbours are not replace-one; later, where more than n rows are taken.

        Example:
            >>> from dpbench.privacy.budget import Budget
            >>> run = Mechanisms(["a", "b"], Budget(1.0, 1e-6, Relation.REPLACE_ONE, "standard"))
            >>> rows = run.single_pass(100, "gradient")
            >>> rows.take(25).shape
            (2, 25)
            >>> rows.gaussian(np.zeros((2, 3)), sensitivity=2 / 25, noise_multiplier=5.0).shape
            (2, 3)

        Source: Zhang, Tran and Cutkosky (2024), Lemma C.1; see `dpbench.privacy.sampling`.
        """
        return self.passing(self.releases, self.budget, n, label)


class AboveThreshold:
    """AboveThreshold (Dwork and Roth 2014, Algorithm 1, Theorem 3.23): answers until the first "above".

    Threshold noise of scale 2Δ/ε once, query noise of scale 4Δ/ε each time, Δ the sensitivity of every query.
    """

    def __init__(self, releases: Releases, sensitivity: float, epsilon: float, threshold: float, label: str) -> None:
        self._releases, self._unit, self._label = releases, sensitivity / epsilon, label
        self._sensitivity, self._epsilon, self._given = sensitivity, epsilon, float(threshold)
        self._threshold = self._noisy(threshold, 2.0)
        self._open = True

    def __call__(self, query: float) -> bool:
        """Whether `query` + noise reaches the noisy threshold; after the first True, a new one is needed."""
        if not self._open:
            raise PrivacyError(f"{self._label}: this above_threshold has fired; start another, and pay for it")

        def release() -> Array:
            return np.array([self._noisy(query, 4.0) >= self._threshold])

        above = np.array([query - self._given])
        fired = bool(self._releases.publish("threshold", self._label, None, above, self._unit, release, self)[0])
        self._open = not fired
        return fired

    def _noisy(self, value: float, factor: float) -> float:
        scale = np.asarray(self._releases.scaled_sensitivity(self._sensitivity) * (factor / self._epsilon))
        return float(self._releases.noisy(np.array([float(value)]), scale, LAPLACE)[0])


def one_choice(scores: Any, label: str, k: int = 1) -> Any:
    """The scores, (k, p); PrivacyError where they are more than one choice a replicate, which one charge is not for."""
    if len(scores.shape) != 2 or scores.shape[0] != k:
        raise PrivacyError(f"{label}: a choice is of scores ({k}, p), got shape {scores.shape}")
    return scores


def _multiplier_of(rho: Scalars) -> Scalars:
    """The noise multiplier 1/√(2ρ) of a ρ-zCDP Gaussian release; infinite at ρ = 0, for one or (k,) of them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(np.divide(0.5, rho))
