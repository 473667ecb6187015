"""Objective perturbation of linear models, gradient and curvature bounded together: first of the logistic loss.

Released: θ = argmin Σ ℓ_i(w) + Λ/2 ‖w‖² + <b, w>, b ~ N(0, σ²I), w unconstrained; ‖x‖₂ ≤ R, and L₀ = R, β = R²/4.

1. θ ↔ b is one-to-one and smooth, b = -(Σ ∇ℓ_i(θ) + Λθ). So with b as it is under D, and row (x, y) of D replaced by
   (x', y') in D', the privacy loss at θ is

       ln det A/det A' + (‖b + Δ‖² - ‖b‖²)/(2σ²),  A = ΛI + Σ ∇²ℓ_i(θ),  Δ = ∇ℓ(θ) - ∇ℓ'(θ)

   (Kifer, Smith and Thakurta 2012, Theorem 2; Redberg, Koskela and Wang 2023, Theorem 4.1, bound the parts apart).
2. With u = yx and p = 1/(1 + e^{<u, θ>}): ∇ℓ = -pu, ∇²ℓ = p(1-p) xxᵀ. Hence Δ = p'u' - pu, and with A₀ = A without the
   row, det A/det A' = (1 + p(1-p) xᵀA₀⁻¹x)/(1 + p'(1-p') x'ᵀA₀⁻¹x') ≤ 1 + p(1-p)R²/Λ: rank one, not two.
3. So the loss is at most U(b), the largest over p, p' in [0, 1] of ln(1 + p(1-p)R²/Λ) + (2<b, Δ> + ‖Δ‖²)/(2σ²), and
   δ(ε) ≤ E(1 - e^{ε-U})⁺ =: E. The Jacobian counts nothing where the gradients differ most, at p = 1.
4. E = E_{N(0)} φ(…) with φ convex in the likelihood ratios of the shifts Δ/σ: a more informative family of shifts has a
   larger E. N(v_i), v_i = V c_i, is the more informative the larger VᵀV is in Loewner's order (Blackwell's: a linear
   contraction and added noise lead from one to the other). The Gram matrix of (u, u') with ‖u‖, ‖u'‖ ≤ R is below one
   with a diagonal of R²: only the angle is left. Its eigenvectors are (1, ∓1)/√2 at all angles, with eigenvalues
   R²(2-t) and R²t, t = 1 + cos: so (2-a, b) is above those of all t in [a, b], and a few intervals cover [0, 2].
5. The maximum over p' is at 0 or 1 (convex), that over p is taken per interval, from above. The rest is quadrature.
6. What is released besides with Gaussian noise, adaptively, adds an independent loss of N(μ²/2, μ²).

At t = 0, opposite rows, the loss is that of a Gaussian of sensitivity 2L₀ as long as no p < 1 beats p = 1 where that
exceeds ε. With p' = 1 and x the component of b, in units of L₀, the Gaussian part g(p) = (1+p)x/σ² + (1+p)²/(2σ²) has
g(1) - g(p) = (1-p)(x/σ² + (3+p)/(2σ²)) ≥ (1-p)(ε/2 + (1+p)/(2σ²)) where g(1) ≥ ε, and the Jacobian's is at most
p(1-p)R²/Λ. Hence Λ ≥ R²/(ε/2 + σ⁻²) costs nothing: `free_curvature`.

Add/remove, the logistic loss. With the row the determinant is (1 + p(1-p)xᵀA₀⁻¹x) times that without, Δ = ∓pu. Where b
is that of the data with the row, the loss is at most the largest over p of ln(1 + p(1-p)R²/Λ) + (2<b, Δ> + ‖Δ‖²)/(2σ²);
where it is that of the data without, the logarithm has the other sign: less. So it is 3 to 5 with p' = 0, in one
dimension. Free: g(p) = px/σ² + p²/(2σ²) gives g(1) - g(p) ≥ (1-p)(ε + p/(2σ²)), hence Λ ≥ R²/(ε + σ⁻²/2), half as much.

Any other convex loss ℓ(<x, w>, y) in C² with |ℓ'|R ≤ L₀: the coefficients of Δ = ax - a'x' may have either sign and
say nothing of ℓ''. So J = ln(1 + β/Λ) whole (2. holds for any loss), and the rest is the largest over the vertices
±L₀(x ± x')/R, under add/remove ±L₀x/R. As in 4., more informative shifts cost more; x + x' and x - x' are orthogonal,
of lengths R√(2t) and R√(2(2-t)): U - J is the larger of two independent A|ξ| + A²/2, and P(U ≤ v) is a product. By
symmetry t ≤ 1. At t = 0, and under add/remove, it is that of one Gaussian of that sensitivity, either sign counting.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from dpbench.errors import OutOfReach, PrivacyError
from dpbench.privacy.accounting.base import smallest_scale
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu, squared_mu
from dpbench.privacy.ledger import ConvexPerturbation, Counts, Gaussian, LogisticPerturbation, Relation

Array = NDArray[np.float64]

INTERVALS = np.sin(np.linspace(0, math.pi / 2, 97)) ** 2  # of p, finer at both ends
ANGLES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 2.0)  # intervals of t = 1 + cos; beyond the first two nothing is close
BULK = (*ANGLES[:-1], 1.2, 1.4, 1.6, 1.8, 2.0)  # where ε is below a standard deviation of the loss: there all are close
REACH = 11.0  # standard deviations of b that are looked at
FINE, COARSE = 6001, 1501  # points of the quadrature
STRIDE = 256  # slopes between two at which all p are looked at
MARGIN = 1e-3  # of ln δ: far above the errors of quadratures, and 3e-5 of the noise
LEAST = 1e-24  # δ: beyond REACH lies 4e-28, which counts below it
NODES = 24  # of a Gauss-Hermite quadrature


def free_curvature(epsilon: float, delta: float, relation: Relation = Relation.REPLACE_ONE) -> float:
    """The largest β/Λ at which the logistic loss's Jacobian is free at (ε, δ), see above: R²/(4Λ).

    Of a Gaussian release σ⁻² is (μ/2)² under replace-one and μ² under add/remove, in units of L₀.
    """
    mu = gaussian_mu(epsilon, delta)
    return (epsilon / 2 + (mu / 2) ** 2) / 4 if relation is Relation.REPLACE_ONE else (epsilon + mu**2 / 2) / 4


def delta_of(event: LogisticPerturbation, mu: float, epsilon: float, *, opposite: bool = False) -> float:
    """δ at ε of one perturbation and of Gaussian releases of Σ 1/z² = μ².

    opposite: of nearly opposite rows alone, which under replace-one are the worst as a rule; a seventh of the time.
    """
    return max(profile(mu, epsilon) for profile in _profiles(event, epsilon, opposite=opposite))


def _profiles(event: LogisticPerturbation, epsilon: float, *, opposite: bool = False) -> list[Callable[..., float]]:
    """Of each interval of angles, δ as a function of μ and ε."""
    z, curvature, both = event.noise_multiplier, event.curvature, event.relation is Relation.REPLACE_ONE
    if isinstance(event, ConvexPerturbation):
        ends = [t for t in ANGLES if t <= 1][: 2 if opposite else None]
        pairs = itertools.pairwise(ends) if both else [(0.0, 0.0)]
        lengths = [(math.sqrt((2 - a) / 2) / z, math.sqrt(b / 2) / z) for a, b in pairs]
        return [functools.partial(_delta_of_either_sign, *each, math.log1p(curvature)) for each in lengths]
    if not both:
        return [functools.partial(_delta_of_one_row, 1 / z, curvature)]
    angles = (BULK if _in_bulk(event, epsilon) else ANGLES)[: 2 if opposite else None]
    return [functools.partial(_delta, 0.5 / z, curvature, a, b) for a, b in itertools.pairwise(angles)]


def _in_bulk(event: LogisticPerturbation, epsilon: float) -> bool:
    return epsilon <= 1 / event.noise_multiplier


def epsilon_of(releases: Counts, delta: float) -> float | None:
    """ε at `delta`, `LEAST` or more, of one perturbation and Gaussian releases; None for anything else."""
    parts = _split(releases)
    return None if parts is None or delta < LEAST else _epsilon(*parts, delta)


@lru_cache(maxsize=256)
def _epsilon(event: LogisticPerturbation, mu: float, delta: float) -> float:
    from scipy.optimize import brentq

    low = gaussian_epsilon(math.hypot(1 / event.noise_multiplier, mu), delta)
    # The Jacobian whole, on top of the Gaussian part: more it cannot cost.
    high = low + math.log1p(event.curvature)
    profiles = _profiles(event, low)
    # δ falls with ε: what is within δ here is so further on.
    beyond = [profile for profile in profiles if profile(mu, low) > delta]
    if not beyond:
        return low

    def excess(epsilon: float) -> float:
        those = beyond if _in_bulk(event, epsilon) == _in_bulk(event, low) else _profiles(event, epsilon)
        return math.log(max(profile(mu, epsilon) for profile in those) / delta)

    while excess(high) > 0:
        high *= 1.1
    return float(brentq(excess, low, high, xtol=1e-6 * low or 1e-12 * high))  # low is 0 where δ pays for all of it


def noise_scale(plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
    """The smallest z at which `plan` with z times its noise, and `after`, are (ε, δ)-DP; see `Accounting.noise_scale`.

    PrivacyError unless `plan` is one perturbation and Gaussian releases, and `after` Gaussian ones.
    """
    mine, before = _split(plan), _split((*plan, *after))
    if mine is None or before is None:
        raise PrivacyError("objective perturbation is accounted with Gaussian releases beside it only")
    if delta < LEAST:
        raise OutOfReach(f"delta: objective perturbation is accounted for from {LEAST:g} on, got {delta:g}; raise it")
    (event, mu), kept = mine, math.sqrt(max(0.0, before[1] ** 2 - mine[1] ** 2))

    def cost(z: float, opposite: bool = False) -> float:
        drawn = replace(event, noise_multiplier=event.noise_multiplier * z)
        return math.log(max(delta_of(drawn, math.hypot(mu / z, kept), epsilon, opposite=opposite), 1e-300))

    start = math.hypot(1 / event.noise_multiplier, mu) / gaussian_mu(epsilon, delta)
    # In logarithms, as δ may be 1e-12; the margin covers the quadratures.
    target = math.log(delta) - MARGIN
    # Opposite rows are the worst as a rule and cheap to look at; only if they were not, all angles are searched.
    scale = smallest_scale(functools.partial(cost, opposite=True), target, start=start, rtol=1e-6)
    return scale if cost(scale) <= target else smallest_scale(cost, target, start=scale, rtol=1e-6)


def _split(releases: Counts) -> tuple[LogisticPerturbation, float] | None:
    """(the one perturbation, μ of the Gaussian releases); None for anything else."""
    ours = [release for release, count in releases for _ in range(count) if isinstance(release, LogisticPerturbation)]
    rest = [(r, c) for r, c in releases if not isinstance(r, LogisticPerturbation)]
    if len(ours) != 1 or not all(isinstance(release, Gaussian) for release, _ in rest):
        return None
    return ours[0], math.sqrt(squared_mu(releases))


def _delta(s: float, curvature: float, a: float, b: float, mu: float, epsilon: float) -> float:
    """`delta_of` for angles in [a, b], s = L₀/σ."""
    mass, losses = _losses(s, curvature, a, b)
    least = epsilon - mu * mu / 2 - 10 * mu  # the other releases' loss is N(μ²/2, μ²)
    total = 0.0
    for loss, weight in zip(losses, _quadrature()[1], strict=True):
        # Further out the hockey stick is below e^{-50}.
        live = loss > least
        total += weight * float(mass[live] @ _hockey_stick(mu, epsilon - loss[live]))
    return total


@lru_cache(maxsize=len(BULK))
def _losses(s: float, curvature: float, a: float, b: float) -> tuple[Array, list[Array]]:
    """Of angles in [a, b]: masses of points of one component of the noise, and the losses there at nodes of another.

    Kept, as an ε is looked for among many at the same noise.
    """
    along, across = math.sqrt((2 - a) / 2), math.sqrt(b / 2)  # of u = (along, across) and -u' = (along, -across)
    square, product = s * s * (along**2 + across**2), s * s * (along**2 - across**2)
    slopes = np.linspace(-3 * REACH * s, 3 * REACH * s + square, FINE)
    gains = _gain(slopes, square, curvature)  # convex, so its chords lie above it
    x = np.linspace(-REACH, REACH, FINE if a == 0 else COARSE)
    mass = np.exp(-x * x / 2) * ((x[1] - x[0]) / math.sqrt(2 * math.pi))

    def loss_at(x: Array, y: float) -> Array:
        u, w = s * (along * x + across * y), s * (along * x - across * y)
        both = np.interp(u + product, slopes, gains) + w + square / 2  # p' = 1
        return np.maximum(np.interp(u, slopes, gains), both)

    return mass, [loss_at(x, y) for y in _quadrature()[0]]


@functools.cache
def _quadrature() -> tuple[Array, Array]:
    """The nodes and weights of a mean over N(0, 1); made where they are asked for, as numpy.polynomial loads slowly."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return nodes, weights / weights.sum()


def _delta_of_one_row(s: float, curvature: float, mu: float, epsilon: float) -> float:
    """`delta_of` of the logistic loss under add/remove, s = L₀/σ."""
    x = np.linspace(-REACH, REACH, FINE)
    mass = np.exp(-x * x / 2) * ((x[1] - x[0]) / math.sqrt(2 * math.pi))
    return float(mass @ _hockey_stick(mu, epsilon - _gain(s * x, s * s, curvature)))


def _delta_of_either_sign(long: float, short: float, jacobian: float, mu: float, epsilon: float) -> float:
    """`delta_of` of any convex loss: U = J + the larger of A|ξ| + A²/2 for A = `long` and `short`."""
    from scipy.special import ndtr

    u = np.linspace(0.0, REACH * long + long * long / 2, 4 * FINE)
    with np.errstate(divide="ignore"):
        log_below = sum(np.log1p(-2 * ndtr(-np.maximum(u / A - A / 2, 0.0))) for A in (long, short) if A)
    tail = -np.expm1(log_below)  # P(U - J > u)
    # The mass of an interval at its upper end, so from above.
    return float(tail[-1] - np.diff(tail) @ _hockey_stick(mu, epsilon - jacobian - u[1:]))


def _gain(slopes: Array, square: float, curvature: float) -> Array:
    """max over p of ln(1 + 4 curvature p(1-p)) + slope p + square p²/2 at rising slopes, from above."""
    middle, half = (INTERVALS[:-1] + INTERVALS[1:]) / 2, np.diff(INTERVALS) / 2
    value = np.log1p(4 * curvature * middle * (1 - middle))
    tilt = 4 * curvature * (1 - 2 * middle) / (1 + 4 * curvature * middle * (1 - middle))
    # The logarithm is concave, so below its tangents; with those, each interval is convex, and largest at an end.
    p = np.concatenate([middle - half, middle + half])
    tangent = np.concatenate([value - tilt * half, value + tilt * half])
    order = np.argsort(p, kind="stable")
    p, tangent = p[order], tangent[order]

    def lines(slopes: Array, some: slice) -> Array:
        each: Array = np.multiply.outer(slopes, p[some])
        each += tangent[some]
        each += square * p[some] ** 2 / 2
        return each

    # The p at which the largest is rises with the slope: between two slopes it is one from the one's to the other's,
    # but for rounding, which two more on either side leave room for.
    ends = np.append(np.arange(0, len(slopes) - 1, STRIDE), len(slopes) - 1)
    largest = lines(slopes[ends], slice(None)).argmax(axis=1)
    gains = np.empty(len(slopes))
    for i, (low, high) in zip(ends, itertools.pairwise(largest), strict=False):
        block = slice(i, i + STRIDE + 1)
        gains[block] = lines(slopes[block], slice(max(low - 2, 0), high + 3)).max(axis=1)
    return gains


def _hockey_stick(mu: float, epsilon: Array) -> Array:
    """δ at any real ε of N(0, 1) against N(μ, 1); μ ≥ 0."""
    from scipy.special import log_ndtr

    if mu == 0:
        return np.maximum(-np.expm1(epsilon), 0.0)
    stick: Array = 1.0 - np.exp(np.minimum(epsilon, 0.0))  # as far below, to the last digit
    near = epsilon > -9 * mu - mu * mu / 2
    here = epsilon[near]
    stick[near] = np.exp(log_ndtr(mu / 2 - here / mu)) - np.exp(here + log_ndtr(-mu / 2 - here / mu))
    return np.maximum(stick, 0.0)
