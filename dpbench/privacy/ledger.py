"""What a run released, apart from what it costs.

A release is named by its noise multiplier: noise standard deviation (Gaussian) or scale (Laplace) over the sensitivity
*in the run's own neighbouring relation*. `dpbench.privacy.verify` turns a composition of releases into ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dpbench.errors import PrivacyError


def _positive(release: object, name: str) -> None:
    value = getattr(release, name)
    if not 0 < value < math.inf:
        raise PrivacyError(f"{type(release).__name__}: {name} must be positive and finite, got {value}")


@dataclass(frozen=True)
class Gaussian:
    """Gaussian mechanism; `noise_multiplier` = standard deviation per coordinate / ℓ₂ sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier")


@dataclass(frozen=True)
class Laplace:
    """Laplace mechanism; `noise_multiplier` = scale b per coordinate / ℓ₁ sensitivity, hence 1/noise_multiplier-DP."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier")


@dataclass(frozen=True)
class PureDP:
    """Any ε-DP mechanism, known by its ε alone (report noisy max, sparse vector)."""

    epsilon: float

    def __post_init__(self) -> None:
        _positive(self, "epsilon")


@dataclass(frozen=True)
class ZCDP:
    """Any ρ-zCDP mechanism, known by its ρ alone."""

    rho: float

    def __post_init__(self) -> None:
        _positive(self, "rho")


@dataclass(frozen=True)
class ObjectivePerturbation:
    """The minimiser of a strongly convex objective of a linear model plus a random linear term <b, w>.

    `noise_multiplier` = standard deviation of b per coordinate / ℓ₂ sensitivity of the objective's gradient;
    `jacobian` bounds ln of the ratio of the Jacobian determinants of b ↦ minimiser between neighbours; `delta` is
    what its tail bound takes of the run's δ. It is (jacobian + 1/(2z²) + √(2 ln(1/δ))/z, δ)-DP for either relation,
    see `dpbench.privacy.verify`.
    """

    noise_multiplier: float
    jacobian: float
    delta: float

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "jacobian", "delta"):
            _positive(self, name)


@dataclass(frozen=True)
class Poisson:
    """`release` computed on a Poisson sample: each row is in it independently with probability `rate`."""

    rate: float
    release: Gaussian

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise PrivacyError(f"Poisson: rate must be in (0, 1], got {self.rate}")


@dataclass(frozen=True)
class WithoutReplacement:
    """`release` computed on a uniformly random subset of `m` of the `n` rows."""

    n: int
    m: int
    release: Gaussian | Laplace

    def __post_init__(self) -> None:
        if not 0 < self.m <= self.n:
            raise PrivacyError(f"WithoutReplacement: m must be in 1..{self.n}, got {self.m}")


Release: TypeAlias = Gaussian | Laplace | PureDP | ZCDP | ObjectivePerturbation | Poisson | WithoutReplacement


class Entry(NamedTuple):
    """`count` equal releases of one label."""

    release: Release
    count: int
    label: str


Composition: TypeAlias = tuple[Entry, ...]


class Ledger:
    """The releases of `k` replicates that advance together. Equal releases are counted, not listed.

    A replicate that stops early holds what it released and no more. That its ε is within the budget is a guarantee
    because the stopping rule reads released values only and no replicate may release more than was planned.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self._shared: dict[tuple[Release, str], int] = {}
        self._own: list[dict[tuple[Release, str], int]] = [{} for _ in range(k)]
        self._known: dict[Composition, Composition] = {}

    def record(self, release: Release, label: str, members: Sequence[int] | None = None, count: int = 1) -> None:
        """Count `count` equal releases for the replicates `members` (indices; None: all k)."""
        key = (release, label)
        for counts in [self._shared] if members is None else [self._own[i] for i in members]:
            counts[key] = counts.get(key, 0) + count

    def of(self, i: int) -> Composition:
        """Everything replicate `i` released, in a canonical order; the same object for equal replicates."""
        counts = dict(self._shared)
        for key, count in self._own[i].items():
            counts[key] = counts.get(key, 0) + count
        entries = (Entry(release, count, label) for (release, label), count in counts.items())
        composition = tuple(sorted(entries, key=lambda e: (e.label, repr(e.release))))
        return self._known.setdefault(composition, composition)

    def summary(self, i: int = 0) -> list[dict[str, object]]:
        """Replicate `i` as the rows of a table: label, release, count."""
        return [{"label": e.label, "release": describe(e.release), "count": e.count} for e in self.of(i)]


def describe(release: Release) -> str:
    """One release in words.

    >>> describe(Poisson(0.02, Gaussian(1.1)))
    'Gaussian, noise multiplier 1.1, on a Poisson sample of rate 0.02'
    """
    match release:
        case Gaussian(z):
            return f"Gaussian, noise multiplier {z:g}"
        case Laplace(z):
            return f"Laplace, noise multiplier {z:g}"
        case PureDP(epsilon):
            return f"{epsilon:g}-DP selection"
        case ZCDP(rho):
            return f"{rho:g}-zCDP mechanism"
        case ObjectivePerturbation(z, _, delta):
            return f"objective perturbation, noise multiplier {z:g}, at δ = {delta:.3g}"
        case Poisson(rate, inner):
            return f"{describe(inner)}, on a Poisson sample of rate {rate:g}"
        case WithoutReplacement(n, m, inner):
            return f"{describe(inner)}, on {m} of {n} rows without replacement"
    raise TypeError(f"not a release: {release!r}")
