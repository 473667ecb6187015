"""Samplers that own their event: what is drawn and what is accounted cannot disagree.

One draw admits exactly one release. Two releases on the same batch are not two independently sampled ones; where an
algorithm needs both a gradient and a Hessian of one batch, they are one Gaussian release of the pair.

Rows that are used once: releases on disjoint rows cost what the most expensive of them costs.

Replace-one neighbours differ in one row, and a row is handed out at most once, so all releases but the one on its
block have the same distribution on both data sets, given what was released before (Zhang, Tran and Cutkosky 2024,
Lemma C.1; McSherry 2009, Theorem 4, for pure DP). The order is a uniform permutation and independent of the data: the
guarantee holds for each order, hence for their mixture.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy import ledger
from dpbench.privacy.accounting.allocation import LEAST_DELTA
from dpbench.privacy.budget import Budget, Budgets
from dpbench.privacy.correlated import Tree, node_std
from dpbench.privacy.ledger import Relation
from dpbench.privacy.noise import ISOMETRIC, LAPLACE, NORMAL, SYMMETRIC, Array, Noise, Releases, Scalars

Kind = type[ledger.Gaussian | ledger.Laplace]


class Sampler:
    """Base of the samplers: `draw()`, then one release on what was drawn."""

    relation: Relation  # the only one under which the amplification theorem holds
    fresh = "draw() of its own"  # what a release needs

    def __init__(self, releases: Releases, budget: Budget | Budgets, label: str) -> None:
        if budget.relation is not self.relation:
            raise PrivacyError(
                f"{label}: {type(self).__name__} is accounted under {self.relation} neighbours only, "
                f"the run's relation is {budget.relation}"
            )
        self._releases, self._budget = releases, budget
        self.label = label
        self._drawn = False

    def draw(self) -> list[Array]:
        """One fresh sample per replicate: a list of k sorted arrays of row indices, of sizes that may differ."""
        self._drawn = True
        return self._releases.sample(self.rule, np.arange(self.least))

    @property
    def size(self) -> float:
        """The number of rows in a draw, or its expectation."""
        raise NotImplementedError

    def noise_multiplier(self, steps: int, share: float = 1.0) -> float:
        """The noise over the sensitivity of each of `steps` releases that may cost (share·ε, share·δ) together.

        Args:
            steps: how many draws, with a release each.
            share: in (0, 1], of the run's ε and δ.

        Returns:
            A number > 0: what `gaussian` takes as `noise_multiplier`.
        """
        if isinstance(self._budget, Budgets):
            raise PrivacyError(f"{self.label}: sampled releases are calibrated for one ε at a time")
        return self._budget.noise_scale(self.plan(steps), share)

    def plan(self, steps: int, noise_multiplier: float = 1.0) -> ledger.Counts:
        """`steps` Gaussian releases on draws of their own, to be calibrated together with others."""
        return ((self._event(ledger.Gaussian(noise_multiplier)), steps),)

    def gaussian(
        self,
        value: Array,
        *,
        sensitivity: Scalars,
        noise_multiplier: Scalars,
        label: str | None = None,
        symmetric: bool = False,
        replaced: Scalars | None = None,
    ) -> Array:
        """`Mechanisms.gaussian` on the last draw, once.

        Args:
            value: (k, d), or (k, d, d) of symmetric matrices: what was computed on the rows drawn.
            sensitivity: ℓ₂, of the value as a function of the sampled rows; one number or (k,).
            noise_multiplier: the noise over the sensitivity, one number or (k,).
            label: of this release; the sampler's by default.
            symmetric, replaced: as in `Mechanisms.gaussian`.

        Returns:
            `value` with noise, of its shape.

        Raises:
            PrivacyError: where nothing was drawn since the last release.
        """
        noise = (ISOMETRIC if self._budget.least_sensitivities else SYMMETRIC) if symmetric else NORMAL
        how = {"sensitivity": sensitivity, "multiplier": noise_multiplier, "replaced": replaced}
        return self.release(value, ledger.Gaussian, noise, label, **how)

    def rule(self, generator: np.random.Generator) -> Array:
        """One sample: sorted row indices."""
        raise NotImplementedError

    @property
    def least(self) -> int:
        """The size of the smallest sample that is not empty."""
        return 1

    def release(self, value: Array, kind: Kind, noise: Noise, label: str | None, **how: Any) -> Array:
        """`Releases.release` on the last draw, once. how: its sensitivity, multiplier and replaced."""
        self._admit(label)
        count = self._count(how["multiplier"])
        event = self._event
        return self._releases.release(value, noise, lambda z: event(kind(z)), label or self.label, count=count, **how)

    def _count(self, multiplier: Scalars) -> int:
        """What the next release adds to the ledger."""
        return 1

    def _admit(self, label: str | None = None) -> None:
        if not self._drawn:
            raise PrivacyError(f"{label or self.label}: a sampled release needs a fresh {self.fresh}")
        self._drawn = False

    def _event(self, release: ledger.Gaussian | ledger.Laplace) -> ledger.Release:
        raise NotImplementedError


class PoissonSampler(Sampler):
    """Each row is drawn independently with probability `rate`: the batch size is random."""

    relation = Relation.ADD_REMOVE
    event: type[ledger.Poisson | ledger.PoissonReplaced] = ledger.Poisson

    def __init__(self, releases: Releases, budget: Budget | Budgets, n: int, rate: float, label: str) -> None:
        super().__init__(releases, budget, label)
        self.n, self.rate = n, float(rate)
        self._event(ledger.Gaussian(1.0))  # validates the rate before anything is drawn

    @property
    def size(self) -> float:
        return self.n * self.rate

    def _event(self, release: ledger.Gaussian | ledger.Laplace) -> ledger.Release:
        if isinstance(release, ledger.Laplace):
            raise PrivacyError(f"{self.label}: Laplace noise on a Poisson sample is not accounted")
        return self.event(self.rate, release)

    def rule(self, generator: np.random.Generator) -> Array:
        # A binomial size and a uniform subset of that size: the same law, six times as fast as n coins.
        return _subset(generator, self.n, generator.binomial(self.n, self.rate))


class PoissonReplacedSampler(PoissonSampler):
    """The same under replace-one, for values that a row in the sample moves by at most `sensitivity`, whichever it is.

    Two rows then move it in opposite directions at worst: twice as far, the ledger's multiplier is relative to that.
    """

    relation = Relation.REPLACE_ONE
    event = ledger.PoissonReplaced

    def release(self, value: Array, kind: Kind, noise: Noise, label: str | None, **how: Any) -> Array:
        if how.get("replaced") is not None or self._releases.factor != 2:
            raise PrivacyError(
                f"{self.label}: the sensitivity of two rows says nothing of one against none; "
                "draw samples of a fixed size"
            )
        return super().release(value, kind, noise, label, **how)


class Epochs(Sampler):
    """Base of samplers that use each row once in an epoch of up to `steps` draws.

    The ledger gets one entry for an epoch; every release of it must have that noise multiplier.
    """

    steps: int
    epoch: int  # that of the last draw, from 0 on
    _charged: tuple[int, Scalars] = -1, 0.0  # the last epoch in the ledger, and its noise multiplier

    def plan(self, steps: int, noise_multiplier: float = 1.0) -> ledger.Counts:
        """See `Sampler.plan`; an epoch that is begun counts as a whole one."""
        return ((self._event(ledger.Gaussian(noise_multiplier)), math.ceil(steps / self.steps)),)

    def _count(self, multiplier: Scalars) -> int:
        charged, first = self._charged
        if self.epoch == charged and not np.array_equal(multiplier, first):
            raise PrivacyError(f"{self.label}: releases of one epoch or pass must have one noise multiplier")
        self._charged = self.epoch, multiplier
        return int(self.epoch > charged)

    def _event(self, release: ledger.Gaussian | ledger.Laplace) -> ledger.Release:
        if isinstance(release, ledger.Laplace):
            raise PrivacyError(f"{self.label}: Laplace noise on rows that an epoch uses once is not accounted")
        return self._entry(release)

    def _entry(self, release: ledger.Gaussian) -> ledger.Release:
        """What an epoch of releases with that multiplier adds to the ledger."""
        return release


class AllocationSampler(Epochs):
    """Each row is in one of the `steps` draws of an epoch, uniformly; epoch after epoch, the last maybe in part."""

    relation = Relation.ADD_REMOVE

    def __init__(self, releases: Releases, budget: Budget | Budgets, n: int, steps: int, label: str) -> None:
        super().__init__(releases, budget, label)
        delta = (budget if isinstance(budget, Budget) else budget[0]).delta
        if delta < LEAST_DELTA:
            raise PrivacyError(
                f"{label}: delta = {delta:g}, but allocated batches are accounted from {LEAST_DELTA:g} "
                "on; take Poisson samples"
            )
        self.n, self.steps = n, int(steps)
        self._event(ledger.Gaussian(1.0))  # validates the steps before anything is drawn
        self._draws = self._stream = 0
        self._places: dict[int, Array] = {}  # of each stream (n,), the step of each row

    @property
    def size(self) -> float:
        return self.n / self.steps

    @property
    def epoch(self) -> int:  # type: ignore[override]
        return (self._draws - 1) // self.steps

    def draw(self) -> list[Array]:
        self._draws, self._stream = self._draws + 1, 0
        return super().draw()

    def rule(self, generator: np.random.Generator) -> Array:
        # Called once for each stream, in order, in each draw.
        step, stream = (self._draws - 1) % self.steps, self._stream
        self._stream += 1
        if step == 0:
            self._places[stream] = generator.integers(self.steps, size=self.n)
        return np.flatnonzero(self._places[stream] == step)

    def _entry(self, release: ledger.Gaussian) -> ledger.Release:
        return ledger.Allocated(self.steps, release)


class WithoutReplacementSampler(Sampler):
    """A uniformly random subset of exactly `m` of the `n` rows."""

    relation = Relation.REPLACE_ONE

    def __init__(self, releases: Releases, budget: Budget | Budgets, n: int, m: int, label: str) -> None:
        super().__init__(releases, budget, label)
        self.n, self.m = int(n), int(m)
        self._event(ledger.Gaussian(1.0))  # validates n and m before anything is drawn

    @property
    def size(self) -> float:
        return self.m

    @property
    def least(self) -> int:
        return self.m

    def laplace(
        self,
        value: Array,
        *,
        sensitivity: Scalars,
        epsilon: Scalars | None = None,
        scale: Scalars | None = None,
        label: str | None = None,
    ) -> Array:
        """`Mechanisms.laplace` on the last draw; sensitivity: ℓ₁, of the value as a function of the m rows."""
        z = laplace_multiplier(sensitivity, epsilon, scale)
        return self.release(value, ledger.Laplace, LAPLACE, label, sensitivity=sensitivity, multiplier=z)

    def one_row_steps(self, steps: int, d: int, *, noise_multiplier: float) -> tuple[Array, NoiseInBlocks]:
        """Rows (streams, steps), one drawn per step, and the noise of their (d,)-shaped releases; for m = 1.

        All `steps` Gaussian releases are recorded now. Step t releases value + sensitivity · noise, the noise
        N(0, noise_multiplier² I) handed out in blocks, sensitivity the ℓ₂ one as a function of one row.
        For runs of 1e5 steps, where a call of `gaussian` costs more than the step.
        """
        if self.m != 1 or self._releases.factor != 1:
            raise PrivacyError(f"{self.label}: one_row_steps is for replace-one algorithms and m = 1")
        z = float(noise_multiplier)  # in units of the sensitivity, which is a step's own
        self._releases.record(lambda z: self._event(ledger.Gaussian(z)), z, self.label, (d,), z, z, steps)
        rows = np.stack(self._releases.sample(lambda g: g.integers(self.n, size=steps), np.zeros(steps, int)))
        std = 0.0 if self._releases.noiseless else z * self._releases.planted
        return rows, NoiseInBlocks(self._releases.noise, d, std)

    def _event(self, release: ledger.Gaussian | ledger.Laplace) -> ledger.Release:
        return ledger.WithoutReplacement(self.n, self.m, release)

    def rule(self, generator: np.random.Generator) -> Array:
        return _subset(generator, self.n, self.m)


class WithReplacementSampler(WithoutReplacementSampler):
    """`m` draws with replacement, and any number of releases on them: what published code does, and not private.

    The ledger gets as many releases on subsets of their own, drawn without replacement: the ε of that is less than the
    truth. For algorithms that say so in their `flaw`.
    """

    def _admit(self, label: str | None = None) -> None:
        if not self._drawn:
            raise PrivacyError(f"{label or self.label}: a sampled release needs a draw() before it")

    def rule(self, generator: np.random.Generator) -> Array:
        rows = generator.integers(self.n, size=self.m)
        rows.sort()
        return rows


class NoiseInBlocks:
    """Gaussian noise of `std` for step after step of a run: what is drawn does not depend on the block sizes."""

    def __init__(self, generators: list[np.random.Generator], d: int, std: float) -> None:
        self._generators, self._d, self._std = generators, d, std

    def block(self, steps: int) -> Array:
        """(streams, steps, d) noise of the next `steps` steps; zeros in a noiseless run."""
        noise = np.zeros((len(self._generators), steps, self._d))
        if self._std:
            for generator, out in zip(self._generators, noise, strict=True):
                generator.standard_normal(out=out)
            noise *= self._std
        return noise


def _subset(generator: np.random.Generator, n: int, m: int) -> Array:
    rows = generator.choice(n, m, replace=False, shuffle=False)
    rows.sort()
    return rows


def laplace_multiplier(sensitivity: Scalars, epsilon: Scalars | None, scale: Scalars | None) -> Array:
    """Scale over sensitivity, from exactly one of `epsilon` and `scale`."""
    if (epsilon is None) == (scale is None):
        raise PrivacyError("laplace: give exactly one of epsilon and scale")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.divide(1.0, epsilon) if epsilon is not None else np.divide(np.asarray(scale), sensitivity)
    return ratio


class SinglePass(Epochs):
    """The n rows in a random order of each replicate's own, handed out once: one epoch."""

    relation = Relation.REPLACE_ONE
    fresh = "block of rows; call take first"
    epoch = 0

    def __init__(self, releases: Releases, budget: Budget | Budgets, n: int, label: str) -> None:
        super().__init__(releases, budget, label)
        self.steps = n
        self._order = np.stack([generator.permutation(n) for generator in releases.sampling])
        self._used = 0

    def take(self, b: int) -> Array:
        """The next b rows: (k, b) indices. PrivacyError when fewer are left."""
        block = self._order[:, self._used : self._used + b]
        if block.shape[1] < b:
            raise PrivacyError(f"{self.label}: all {self.steps} rows are used; a row is used once")
        self._used += b
        self._drawn = True
        return block

    def tree(self, rounds: int, *, sensitivity: float | Array, rho: float) -> Tree:
        """`Mechanisms.tree` on the next `rounds` blocks, one to a round, all of them disjoint."""
        self._drawn = False
        z, std = math.sqrt(0.5 / rho), node_std(rounds, sensitivity, rho)
        return Tree(self._releases, rounds, std, z, self.label, self._admit, self._count(z))
