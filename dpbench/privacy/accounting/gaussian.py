"""The exact privacy of Gaussian releases, and of the last iterate of noisy gradient descent.

(ε, δ) of one release with trade-off μ, i.e. of N(0, 1) against N(μ, 1). Adaptively composed full-batch Gaussian
releases with noise multipliers z_t behave as one with μ² = Σ 1/z_t² = 2ρ (Dong, Roth and Su 2022, Corollary 3.3).

The last iterate on a strongly convex objective: w_t = φ(w_{t-1}) + N(0, (ησ)² I), T times from one start, φ a map that
contracts by c < 1 on either of two neighbouring data sets and φ(w), φ'(w) are at most ηs apart. Only w_T is released.
Let z_t bound how far the two runs are apart once part of it has been paid for: z_0 = 0, z_t = c z_{t-1} + ηs - m_t, m_t
the shift that the noise of step t hides for m_t/(ησ) of μ; z_T = 0 (Bok, Su and Altschuler 2024, Theorem 3.2 and Lemma
4.4: μ² = Σ (m_t/(ησ))²). The cheapest m_t, given Σ c^{T-t}(ηs - m_t) = 0, is in proportion to c^{T-t} (Cauchy and
Schwarz; then z_t ≥ 0), which gives

    μ = (s/σ) · (Σ_{j<T} c^j)/sqrt(Σ_{j<T} c^{2j}) = (s/σ) sqrt((1-c^T)/(1+c^T) · (1+c)/(1-c)),

their Theorem 4.2, attained by quadratics. Growing like √T at first, it levels off at sqrt((1+c)/(1-c)).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import UserError
from dpbench.privacy.accounting.base import check_range
from dpbench.privacy.ledger import BoundedRange, Counts, Gaussian, LastIterate, Release


def squared_mu(releases: Counts) -> float:
    """μ² = Σ 1/z² of the Gaussian ones among `releases`."""
    return math.fsum(c / r.noise_multiplier**2 for r, c in releases if isinstance(r, Gaussian))


def gaussian_for(release: Release) -> Gaussian:
    """The Gaussian whose trade-off function is nowhere above that of a release, Gaussian or `BoundedRange`.

    Losses in [t - ε, t] are no worse than the two of randomised response, which err at rates (α, β) with
    (1 + (e^ε - 1)α)(1 + (e^ε - 1)β) = e^ε for some t: odds(1 - β) = e^ε odds(α). That is the curve of a logistic
    variable that moves by ε, and Φ⁻¹(1 - β) - Φ⁻¹(α) is largest at α = β = 1/(1 + e^{ε/2}), as Φ⁻¹ of the logistic
    function rises most at 0. Hence μ = 2Φ⁻¹(1 - α) there, 0.63 ε for small ε.

    >>> from dpbench.privacy.ledger import BoundedRange
    >>> round(1 / gaussian_for(BoundedRange(1.0)).noise_multiplier, 3)
    0.624
    """
    from scipy.special import log_expit, ndtri_exp

    if isinstance(release, Gaussian):
        return release
    assert isinstance(release, BoundedRange)
    return Gaussian(float(-0.5 / ndtri_exp(log_expit(-release.epsilon / 2))))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) (Balle and Wang 2018, Theorem 8); μ > 0, ε ≥ 0."""
    from scipy.special import erfcx, log_ndtr, ndtr

    x = epsilon / mu - mu / 2
    if x < 0:
        return float(ndtr(-x) - math.exp(epsilon + log_ndtr(-x - mu)))
    # e^ε φ(x + μ) = φ(x), so δ = φ(x)(M(x) - M(x + μ)) with M the Mills ratio: no cancellation of tiny tails.
    mills = erfcx(x / math.sqrt(2)) - erfcx((x + mu) / math.sqrt(2))
    return float(0.5 * math.exp(-x * x / 2) * mills)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 with δ(ε) ≤ `delta`; μ ≥ 0, 0 < δ < 1."""
    from scipy.optimize import brentq

    check_range(1.0, delta)
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    # An upper end that always holds: μ²/2-zCDP by Bun and Steinke (2016), Proposition 1.3.
    high = mu**2 / 2 + mu * math.sqrt(-2 * math.log(delta))
    return float(brentq(lambda eps: delta - gaussian_delta(mu, eps), 0.0, high, xtol=1e-300, rtol=1e-13))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ with δ(ε) ≤ `delta`: the reciprocal of the smallest sound noise multiplier; ε ≥ 0, 0 < δ < 1."""
    from scipy.optimize import brentq

    check_range(1.0, delta)
    if not 0 <= epsilon < math.inf:
        raise UserError(f"epsilon must be non-negative and finite, got {epsilon}")
    high = 1.0
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    low = high
    while gaussian_delta(low, epsilon) >= delta:
        low /= 2
    return float(brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-13))


def growth(steps: int, contraction: float) -> float:
    """μσ/s of `steps` steps; steps ≥ 1, 0 ≤ contraction < 1."""
    power = contraction**steps
    return math.sqrt((1 - power) / (1 + power) * (1 + contraction) / (1 - contraction))


def as_gaussian(release: LastIterate) -> Gaussian:
    """The Gaussian release that costs as much."""
    return Gaussian(release.noise_multiplier / growth(release.steps, release.contraction))


def normal_masses(edges: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Masses (m,) of N(0, 1) between increasing edges (m + 1,), each from the tail that is near."""
    from scipy.special import ndtr

    below, above = ndtr(edges), ndtr(-edges)
    masses: NDArray[np.floating[Any]] = np.where(edges[:-1] > 0, above[:-1] - above[1:], below[1:] - below[:-1])
    return masses
