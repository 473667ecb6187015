"""What a run released, apart from what it costs, and between which data sets it is private.

A release is named by its noise multiplier: noise standard deviation (Gaussian) or scale (Laplace) over the sensitivity
*in the run's own neighbouring relation*. `dpbench.privacy.verify` turns a composition of releases into ε.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from dpbench.errors import PrivacyError, UserError

# What a file or an archive may claim of one release, so that composing it is bounded: an honest one is far inside.
NoiseMultiplier: TypeAlias = Annotated[float, msgspec.Meta(ge=1e-3, le=1e9)]
Size: TypeAlias = Annotated[float, msgspec.Meta(ge=1e-12, le=1e12)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=1e-60, le=1.0)]  # of a δ, which is n⁻² as a rule
Steps: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10**5)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10**8)]
MOST = 10**12  # releases of one kind


class Relation(str, Enum):
    """The neighbouring relation of a guarantee; the size n of the data set is public under both.

    A sensitivity is the largest change between neighbours, so a sum of vectors of norm at most 1 has sensitivity 1
    under `ADD_REMOVE` and 2 under `REPLACE_ONE`; a noise multiplier is always relative to the sensitivity *in the
    run's own relation*.
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    def __str__(self) -> str:
        return self.value

    @property
    def rows(self) -> int:
        """How many rows neighbours differ by: a row and what replaces it, or the row that one of them lacks."""
        return 2 if self is Relation.REPLACE_ONE else 1


class Release(msgspec.Struct, frozen=True, tag=True, tag_field="kind", forbid_unknown_fields=True):
    """What one mechanism gave. words: a format of its fields, which `str` fills.

    positive: the fields that have to be positive and finite; PrivacyError where one is not. powers: of the fields that
    follow its noise, the power of a factor on the noise that they are multiplied by; none where it is no one number.
    """

    words: ClassVar[str]
    positive: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    powers: ClassVar[Mapping[str, int]] = {"noise_multiplier": 1}

    def __str__(self) -> str:
        return self.words.format(**msgspec.structs.asdict(self))

    def __post_init__(self) -> None:
        for name in self.positive:
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise PrivacyError(f"{type(self).__name__}: {name} must be positive and finite, got {value}")


class Sampled(Release, frozen=True):
    """Base of a `release` computed on a sample of the rows, in which a row is with probability `rate`.

    relation: the one of the amplification's theorem; none holds for both.
    """

    relation: ClassVar[Relation]

    @property
    def release(self) -> Gaussian | Laplace:
        """What is computed on the sample: a field of each kind, in its own place."""
        raise NotImplementedError

    @property
    def rate(self) -> float:
        """The chance of a row: a field too, or of those of a fixed size computed."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise PrivacyError(f"{type(self).__name__}: rate must be in (0, 1], got {self.rate}")


class Gaussian(Release, frozen=True):
    """Gaussian mechanism; `noise_multiplier` = standard deviation per coordinate / ℓ₂ sensitivity."""

    words = "Gaussian, noise multiplier {noise_multiplier:g}"
    noise_multiplier: NoiseMultiplier


class Laplace(Release, frozen=True):
    """Laplace mechanism; `noise_multiplier` = scale b per coordinate / ℓ₁ sensitivity, hence 1/noise_multiplier-DP."""

    words = "Laplace, noise multiplier {noise_multiplier:g}"
    noise_multiplier: NoiseMultiplier


class Radial(Release, frozen=True):
    """Noise of density ∝ exp(-‖b‖₂/s); `noise_multiplier` = s / ℓ₂ sensitivity, hence 1/noise_multiplier-DP."""

    words = "radial noise, noise multiplier {noise_multiplier:g}"
    noise_multiplier: NoiseMultiplier


class RadialPerturbation(Release, frozen=True):
    """Objective perturbation by a linear term b of density ∝ exp(-‖b‖₂/s), at δ = 0.

    `noise_multiplier` = s / ℓ₂ sensitivity of the objective's gradient; `curvature` = β/Λ, as of
    `LogisticPerturbation`. logistic: whether gradient and Jacobian may be bounded together, as of that loss.
    """

    words = "objective perturbation by radial noise, noise multiplier {noise_multiplier:g}, β/Λ = {curvature:.3g}"
    noise_multiplier: NoiseMultiplier
    curvature: Size
    relation: Relation
    logistic: bool = True
    positive = ("noise_multiplier", "curvature")


class PureDP(Release, frozen=True):
    """Any ε-DP mechanism, known by its ε alone (report noisy max, sparse vector)."""

    words, powers = "{epsilon:g}-DP selection", {"epsilon": -1}
    epsilon: Size
    positive = ("epsilon",)


class BoundedRange(Release, frozen=True):
    """A mechanism whose privacy loss lies in an interval of length ε for each pair of neighbours, as the exponential
    mechanism's does (Dong, Durfee and Rogers 2020): ε-DP, and ε²/8-zCDP."""

    words, powers = "exponential mechanism, range {epsilon:g}", {"epsilon": -1}
    epsilon: Size
    positive = ("epsilon",)


class ZCDP(Release, frozen=True):
    """Any ρ-zCDP mechanism, known by its ρ alone."""

    words, powers = "{rho:g}-zCDP mechanism", {"rho": -2}
    rho: Size
    positive = ("rho",)


class ObjectivePerturbation(Release, frozen=True):
    """The minimiser of a strongly convex objective of a linear model plus a random linear term <b, w>.

    `noise_multiplier` = standard deviation of b per coordinate / ℓ₂ sensitivity of the objective's gradient;
    `jacobian` bounds ln of the ratio of the Jacobian determinants of b ↦ minimiser between neighbours; `delta` is
    what its tail bound takes of the run's δ. It is (jacobian + 1/(2z²) + √(2 ln(1/δ))/z, δ)-DP for either relation,
    see `dpbench.privacy.verify`.
    """

    words, powers = "objective perturbation, noise multiplier {noise_multiplier:g}, at δ = {delta:.3g}", {}
    noise_multiplier: NoiseMultiplier
    jacobian: Size
    delta: Share
    positive = ("noise_multiplier", "jacobian", "delta")


class LogisticPerturbation(Release, frozen=True):
    """Objective perturbation of the logistic loss, gradient and Hessian bounded together.

    `noise_multiplier` = standard deviation of b per coordinate / ℓ₂ sensitivity of the objective's gradient, on sums
    2L₀ under replace-one and L₀ under add/remove; `curvature` = β/Λ, the largest ℓ''‖x‖² over the ridge, both on sums.
    """

    words = "objective perturbation, noise multiplier {noise_multiplier:g}, β/Λ = {curvature:.3g}"
    noise_multiplier: NoiseMultiplier
    curvature: Size
    relation: Relation = Relation.REPLACE_ONE
    positive = ("noise_multiplier", "curvature")


class ConvexPerturbation(LogisticPerturbation, frozen=True):
    """The same of any convex, twice continuously differentiable loss of a linear prediction with |ℓ'| ≤ L₀/‖x‖."""


class LastIterate(Release, frozen=True):
    """The last of `steps` noisy gradient steps that each contract by `contraction`; the others are hidden.

    `noise_multiplier` = standard deviation per coordinate and step / ℓ₂ sensitivity of the gradient.
    """

    words = "last of {steps} iterates, noise multiplier {noise_multiplier:g}, contraction {contraction:.6g}"
    noise_multiplier: NoiseMultiplier
    steps: Steps
    contraction: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 1 or not 0 <= self.contraction < 1:
            raise PrivacyError(f"LastIterate: needs steps >= 1 and a contraction in [0, 1), got {self!r}")


class Poisson(Sampled, frozen=True):
    """`release` computed on a Poisson sample: each row is in it independently with probability `rate`."""

    words, relation = "{release}, on a Poisson sample of rate {rate:g}", Relation.ADD_REMOVE
    rate: Size
    release: Gaussian


class PoissonReplaced(Sampled, frozen=True):
    """`release` computed on a Poisson sample, for replace-one neighbours.

    The row is in the sample with probability `rate`, and moves the value by at most half the sensitivity then, whatever
    it is: a bound on the difference of two rows alone does not do.
    """

    words, relation = "{release}, on a Poisson sample of rate {rate:g}", Relation.REPLACE_ONE
    rate: Size
    release: Gaussian


class WithoutReplacement(Sampled, frozen=True):
    """`release` computed on a uniformly random subset of `m` of the `n` rows."""

    words, relation = "{release}, on {m} of {n} rows without replacement", Relation.REPLACE_ONE
    n: Count
    m: Count
    release: Gaussian | Laplace

    def __post_init__(self) -> None:
        if not 0 < self.m <= self.n:
            raise PrivacyError(f"WithoutReplacement: m must be in 1..{self.n}, got {self.m}")

    @property
    def rate(self) -> float:
        """m/n."""
        return self.m / self.n


class Allocated(Sampled, frozen=True):
    """An epoch of `steps` steps, each row in one of them drawn uniformly, with a `release` on each step's rows."""

    words = "{release}, on each of {steps} batches that the rows are allocated to"
    relation = Relation.ADD_REMOVE
    steps: Steps
    release: Gaussian

    def __post_init__(self) -> None:
        if self.steps < 2:  # of one step all rows are in it
            raise PrivacyError(f"Allocated: steps must be at least 2, got {self.steps}")

    @property
    def rate(self) -> float:
        """1/steps: a row's chance of a step."""
        return 1 / self.steps


class Sketch(Release, frozen=True):
    """`draws` vectors of N(0, XᵀX + Λ), Λ a ridge: a Gaussian sketch of the rows and of Gaussian rows beside them.

    ratio: bounds xᵀ(XᵀX + Λ)⁻¹x for a row x beside X, but for a probability of `failure`, as where Λ follows a noisy
    eigenvalue. The neighbour's draws are then those of N(0, I + uuᵀ) for N(0, I), ‖u‖² ≤ ratio, after one linear map:
    the loss is that of as many numbers of N(0, 1 + ratio) for N(0, 1), as scaling and more noise lead to a smaller one.
    """

    words, powers = "Gaussian sketch of {draws} draws, ratio {ratio:.3g}, failing at {failure:.3g}", {"ratio": -1}
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    draws: Annotated[int, msgspec.Meta(ge=1, le=10**7)]
    ratio: Annotated[float, msgspec.Meta(ge=1e-9, le=1.0)]
    failure: Share
    positive = ("draws", "ratio", "failure")


class DrawAfterTest(Release, frozen=True):
    """A draw of density ∝ e^{`exponent`·depth} behind a noisy test of `test`-DP: see `dpbench.privacy.tukey`.

    failure: the probability of a draw where it might tell anything; leak: the mass that a neighbour may lack.
    """

    words = "{test:g}-DP test at δ = {failure:.3g}, and a draw by depth, exponent {exponent:g}, leak {leak:.3g}"
    powers: ClassVar = {"test": -1, "exponent": -1}
    test: Size
    exponent: Size
    failure: Share
    leak: Share
    positive = ("test", "exponent", "failure", "leak")


# What one run of several may release, and all that a file or an archive may name.
OneRun: TypeAlias = (
    Gaussian | Laplace | Radial | RadialPerturbation | PureDP | BoundedRange | ZCDP | ObjectivePerturbation
    | LogisticPerturbation | ConvexPerturbation | LastIterate | Poisson | PoissonReplaced | WithoutReplacement
    | Allocated | Sketch | DrawAfterTest
)  # fmt: skip


class BestOfRuns(Release, frozen=True):
    """The best of K runs, by a score that is among what each run releases; K is random and never released.

    base: (release, count) of all that one run releases, the score included. law: of K, "poisson" (with no run at all,
    something public is returned) or "geometric" (on 1, 2, …), of this `mean`. Papernot and Steinke (2022).

    Pure DP, geometric: the winner has the density q(y) Σ_k γ(1-γ)^{k-1} k Q(≤ y)^{k-1} = γ q(y)/(γ + (1-γ)Q(> y))², in
    which q and Q(> y) change by at most e^ε between neighbours: 3ε, as Liu and Talwar (2019) have it.
    """

    base: Annotated[
        tuple[tuple[OneRun, Annotated[int, msgspec.Meta(ge=1, le=10**6)]], ...],
        msgspec.Meta(min_length=1, max_length=16),
    ]
    law: Literal["poisson", "geometric"]
    mean: Annotated[float, msgspec.Meta(ge=1.0, le=1e4)]

    def __post_init__(self) -> None:
        if not self.base or self.law not in ("poisson", "geometric") or not 1 < self.mean < math.inf:
            raise PrivacyError(f"BestOfRuns: needs releases, a law of K and a mean above 1, got {self!r}")

    def __str__(self) -> str:
        runs = "; ".join(f"{count} of {each}" for each, count in self.base)
        return f"best of a random number of runs ({self.law}, mean {self.mean:g}) of: {runs}"


AnyRelease: TypeAlias = OneRun | BestOfRuns


def plain(release: Release) -> dict[str, Any]:
    """The release as plain data: {"kind": its class, field: value, …}, nested where one is made of others."""
    text = msgspec.json.encode(release, enc_hook=lambda number: number.item())  # NumPy's
    data: dict[str, Any] = msgspec.json.decode(text)
    return data


def release_of(data: Any) -> Release:
    """The inverse of `plain`, of what a file or an archive says; UserError for what is no release within bounds."""
    try:
        release: Release = msgspec.convert(data, AnyRelease)
        if plain(release) == data:  # a field that is left out is not taken at its default
            return release
        raise msgspec.ValidationError("a field is missing")
    except PrivacyError as error:
        raise UserError(ascii(str(error))[1:-1][:200]) from None
    except msgspec.ValidationError as error:
        field = str(error).partition(" - at `$.")[2].rstrip("`")
        what = f"; {field} is not of its kind, or not within its bounds" if field else ""
        raise UserError(f"not a release: {ascii(data)[:80]}{what}") from None


class CountedRelease(NamedTuple):
    """`count` equal releases of one label."""

    release: Release
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which no entry needs
    label: str


Composition: TypeAlias = tuple[CountedRelease, ...]
Counts: TypeAlias = tuple[tuple[Release, int], ...]  # releases without their labels


def listed(composition: Composition) -> list[dict[str, Any]]:
    """A composition as plain data."""
    return [{"release": plain(release), "count": count, "label": label} for release, count, label in composition]


def composition_of(data: list[dict[str, Any]]) -> Composition:
    """The inverse of `listed`, of what a file says; UserError, KeyError, TypeError or ValueError where it is none."""
    for one in data:
        if type(count := one["count"]) is not int or not 1 <= count <= MOST:
            raise ValueError(f"count {ascii(count)[:40]} is no whole number from 1 on, to {MOST:g}")
    return tuple(CountedRelease(release_of(one["release"]), one["count"], str(one["label"])) for one in data)


def counted(composition: Composition) -> Counts:
    """Equal releases of all labels together, in a canonical order."""
    counts: Counter[Release] = Counter()
    for entry in composition:
        counts[entry.release] += entry.count
    return tuple(sorted(counts.items(), key=repr))


def require(release: Release, relation: Relation) -> None:
    """PrivacyError unless `release` is accounted under `relation`: no amplification theorem holds for both."""
    needed = getattr(release, "relation", relation)
    if needed is not relation:
        raise PrivacyError(f"{release}: accounted under {needed} neighbours only, the run's are {relation}")


def scaled(release: Release, factor: float) -> Release:
    """The same release with `factor` times its noise.

    >>> scaled(Poisson(0.02, Gaussian(1.1)), 2.0)
    Poisson(rate=0.02, release=Gaussian(noise_multiplier=2.2))
    """
    if isinstance(release, BestOfRuns):
        return replace(release, base=tuple((scaled(each, factor), count) for each, count in release.base))
    if isinstance(release, Sampled):
        return replace(release, release=scaled(release.release, factor))
    if not release.powers:
        raise PrivacyError(f"{release}: its noise is not one number to scale")
    fields = {name: (getattr(release, name), power) for name, power in release.powers.items()}
    # Divided, not multiplied by an inverse, which would round twice.
    changed = {name: v * factor**power if power > 0 else v / factor**-power for name, (v, power) in fields.items()}
    return replace(release, **changed)


class Drawn(NamedTuple):
    """The noise of equal releases: per entry of a value of `shape`, from `low` to `high`; `unit` at sensitivity 1."""

    shape: tuple[int, ...]
    low: float
    high: float
    unit: float


def at_rho(rho: float) -> Gaussian:
    """The Gaussian release that is ρ-zCDP: noise multiplier 1/√(2ρ) (Bun and Steinke 2016, Proposition 1.6)."""
    return Gaussian(math.sqrt(0.5 / rho))


class _Counted:
    """How often each (release, label), of all replicates alike and beside these of some."""

    def __init__(self) -> None:
        self.shared: Counter[tuple[Release, str]] = Counter()
        self.own: defaultdict[int, Counter[tuple[Release, str]]] = defaultdict(Counter)

    def add(self, key: tuple[Release, str], count: int, members: Sequence[int] | None) -> None:
        """`count` more for the replicates `members`, None for all."""
        for counts in [self.shared] if members is None else [self.own[i] for i in members]:
            counts[key] += count

    def of(self, i: int) -> Counter[tuple[Release, str]]:
        """All of replicate `i`."""
        return self.shared + self.own[i]


class Ledger:
    """The releases of `k` replicates that advance together. Equal releases are counted, not listed.

    exact: the replicates that released something without noise, as with a sensitivity of 0, and the label of it.

    A replicate that stops early holds what it released and no more. When it stops depends on the data, so what it
    released is no guarantee: that is what was planned for it before (`plan`), whatever it stops at, as its stopping
    rule reads released values only and it may release no more. Without a plan, all that it released was planned.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self._released, self._planned = _Counted(), _Counted()
        self._known: dict[Composition, Composition] = {}
        self._sorted: dict[tuple[tuple[tuple[Release, str], int], ...], Composition] = {}
        self._drawn: dict[tuple[Release, str], Drawn] = {}
        self.exact: dict[int, str] = {}

    def record(
        self,
        release: Release,
        label: str,
        members: Sequence[int] | None = None,
        count: int = 1,
        drawn: Drawn | None = None,
    ) -> None:
        """Count `count` equal releases for the replicates `members` (indices; None: all k), their noise as `drawn`."""
        key = (release, label)
        if drawn is not None:
            known = self._drawn.get(key, drawn)
            self._drawn[key] = drawn._replace(low=min(known.low, drawn.low), high=max(known.high, drawn.high))
        if not count:
            return
        self._released.add(key, count, members)

    def plan(self, release: Release, label: str, count: int, members: Sequence[int] | None = None) -> None:
        """Before any of them: `count` equal releases at most, for `members` (None: all k), beside what is planned."""
        self._planned.add((release, label), count, members)

    def of(self, i: int) -> Composition:
        """Everything replicate `i` released, in a canonical order; the same object for equal replicates."""
        return self._composition(self._released.of(i))

    def planned(self, i: int) -> Composition:
        """The most that replicate `i` could have released: what was planned for it, and what it released beside."""
        return self._composition(self._released.of(i) | self._planned.of(i))  # of each, the larger count

    def unplanned(self, i: int) -> list[str]:
        """The labels of which replicate `i` released more, or at other noise, than was planned; none without a plan."""
        plan = self._planned
        if not (plan.shared or plan.own.get(i)):  # a count of 0 is a plan
            return []
        return sorted({label for _, label in self._released.of(i) - plan.of(i)})

    def _composition(self, counts: Counter[tuple[Release, str]]) -> Composition:
        listed = tuple(counts.items())
        if listed not in self._sorted:
            entries = (CountedRelease(release, count, label) for (release, label), count in listed)
            composition = tuple(sorted(entries, key=lambda e: (e.label, repr(e.release))))
            self._sorted[listed] = self._known.setdefault(composition, composition)
        return self._sorted[listed]

    def summary(self, i: int = 0) -> list[dict[str, object]]:
        """Replicate `i` as the rows of a table: label, release, count, planned, and what was drawn in its batch.

        Shape of the value, ℓ₂ or ℓ₁ sensitivity and noise scale per entry (standard deviation, or a Laplace's b).
        """
        counts = self._released.of(i)
        return [
            {"label": e.label, "release": str(e.release), "count": counts[e.release, e.label]}
            | {"planned": e.count}
            | (_drawn_words(self._drawn[e.release, e.label]) if (e.release, e.label) in self._drawn else {})
            for e in self.planned(i)
        ]


def _drawn_words(drawn: Drawn) -> dict[str, str]:
    def between(low: float, high: float) -> str:
        return f"{low:.4g}" if math.isclose(low, high, rel_tol=1e-9) else f"{low:.4g} to {high:.4g}"

    return {
        "shape": "×".join(map(str, drawn.shape)) or "1",
        "sensitivity": between(drawn.low / drawn.unit, drawn.high / drawn.unit),
        "noise": between(drawn.low, drawn.high),
    }
