"""Samplers that own their event: what is drawn and what is accounted cannot disagree.

One draw admits exactly one release. Two releases on the same batch are not two independently sampled ones; where an
algorithm needs both a gradient and a Hessian of one batch, they are one Gaussian release of the pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy import ledger
from dpbench.privacy.relation import Relation

if TYPE_CHECKING:
    from dpbench.privacy.mechanisms import Mechanisms, Scalars


class Sampler:
    """Base of the samplers: `draw()`, then one release on what was drawn."""

    relation: Relation  # the only one under which the amplification theorem holds

    def __init__(self, mechanisms: Mechanisms, label: str) -> None:
        if mechanisms.budget.relation is not self.relation:
            raise PrivacyError(
                f"{label}: {type(self).__name__} is accounted under {self.relation} neighbours only, "
                f"the run's relation is {mechanisms.budget.relation}"
            )
        self._mechanisms = mechanisms
        self._label = label
        self._drawn = False

    def draw(self) -> list[np.ndarray]:
        """One fresh sample per replicate: k sorted arrays of row indices."""
        self._drawn = True
        return [self._sample(generator) for generator in self._mechanisms._sampling]

    @property
    def size(self) -> float:
        """The number of rows in a draw, or its expectation."""
        raise NotImplementedError

    def noise_multiplier(self, steps: int, share: float = 1.0) -> float:
        """That of each of `steps` releases on draws of its own that may cost (share·ε, share·δ) together."""
        raise NotImplementedError

    def gaussian(
        self,
        value: np.ndarray,
        *,
        sensitivity: Scalars,
        noise_multiplier: Scalars,
        label: str | None = None,
        symmetric: bool = False,
    ) -> np.ndarray:
        """`Mechanisms.gaussian` on the last draw; sensitivity: ℓ₂, of the value as a function of the sampled rows."""
        from dpbench.privacy.mechanisms import _normal, _symmetric_normal

        self._admit(label)
        self._mechanisms._record(ledger.Gaussian, noise_multiplier, label or self._label, self._event)
        draw = _symmetric_normal if symmetric else _normal
        return self._mechanisms._noisy(value, sensitivity, noise_multiplier, draw)

    def _admit(self, label: str | None) -> None:
        if not self._drawn:
            raise PrivacyError(f"{label or self._label}: a sampled release needs a fresh draw() of its own")
        self._drawn = False

    def _event(self, release: ledger.Release) -> ledger.Release:
        raise NotImplementedError

    def _sample(self, generator: np.random.Generator) -> np.ndarray:
        raise NotImplementedError


class PoissonSampler(Sampler):
    """Each row is drawn independently with probability `rate`: the batch size is random."""

    relation = Relation.ADD_REMOVE

    def __init__(self, mechanisms: Mechanisms, n: int, rate: float, label: str) -> None:
        super().__init__(mechanisms, label)
        self.n, self.rate = n, float(rate)
        self._event(ledger.Gaussian(1.0))  # validates the rate before anything is drawn

    @property
    def size(self):
        return self.n * self.rate

    def noise_multiplier(self, steps, share=1.0):
        return self._mechanisms.budget.poisson_multiplier(self.rate, steps, share)

    def _event(self, release):
        return ledger.Poisson(self.rate, release)

    def _sample(self, generator):
        # A binomial size and a uniform subset of that size: the same law, six times as fast as n coins.
        return _subset(generator, self.n, generator.binomial(self.n, self.rate))


class WithoutReplacementSampler(Sampler):
    """A uniformly random subset of exactly `m` of the `n` rows."""

    relation = Relation.REPLACE_ONE

    def __init__(self, mechanisms: Mechanisms, n: int, m: int, label: str) -> None:
        super().__init__(mechanisms, label)
        self.n, self.m = int(n), int(m)
        self._event(ledger.Gaussian(1.0))  # validates n and m before anything is drawn

    @property
    def size(self):
        return self.m

    def noise_multiplier(self, steps, share=1.0):
        return self._mechanisms.budget.without_replacement_multiplier(self.n, self.m, steps, share)

    def laplace(
        self,
        value: np.ndarray,
        *,
        sensitivity: Scalars,
        epsilon: Scalars | None = None,
        scale: Scalars | None = None,
        label: str | None = None,
    ) -> np.ndarray:
        """`Mechanisms.laplace` on the last draw; sensitivity: ℓ₁, of the value as a function of the m rows."""
        from dpbench.privacy.mechanisms import _laplace, _laplace_multiplier

        self._admit(label)
        z = _laplace_multiplier(sensitivity, epsilon, scale)
        self._mechanisms._record(ledger.Laplace, z, label or self._label, self._event)
        return self._mechanisms._noisy(value, sensitivity, z, _laplace)

    def one_row_steps(self, steps: int, d: int, *, noise_multiplier: float) -> tuple[np.ndarray, Noise]:
        """Rows (streams, steps), one drawn per step, and the noise of their (d,)-shaped releases; for m = 1.

        All `steps` Gaussian releases are recorded now. Step t releases value + sensitivity · noise, the noise
        N(0, noise_multiplier² I) handed out in blocks by `Noise`, sensitivity the ℓ₂ one as a function of one row.
        For runs of 1e5 steps, where a call of `gaussian` costs more than the step.
        """
        if self.m != 1 or self._mechanisms.doubled:
            raise PrivacyError(f"{self._label}: one_row_steps is for replace-one algorithms and m = 1")
        self._mechanisms._record(ledger.Gaussian, noise_multiplier, self._label, self._event, steps)
        rows = np.stack([generator.integers(self.n, size=steps) for generator in self._mechanisms._sampling])
        return rows, Noise(self._mechanisms, d, 0.0 if self._mechanisms.noiseless else float(noise_multiplier))

    def _event(self, release):
        return ledger.WithoutReplacement(self.n, self.m, release)

    def _sample(self, generator):
        return _subset(generator, self.n, self.m)


class Noise:
    """Gaussian noise of `std` for step after step of a run: what is drawn does not depend on the block sizes."""

    def __init__(self, mechanisms: Mechanisms, d: int, std: float) -> None:
        self._generators, self._d, self._std = mechanisms._noise, d, std

    def block(self, steps: int) -> np.ndarray:
        """(streams, steps, d) noise of the next `steps` steps; zeros in a noiseless run."""
        noise = np.zeros((len(self._generators), steps, self._d))
        if self._std:
            for generator, out in zip(self._generators, noise, strict=True):
                generator.standard_normal(out=out)
            noise *= self._std
        return noise


def _subset(generator: np.random.Generator, n: int, m: int) -> np.ndarray:
    rows = generator.choice(n, m, replace=False, shuffle=False)
    rows.sort()
    return rows
