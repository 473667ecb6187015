"""The privacy of the last iterate of noisy gradient descent on a strongly convex objective.

w_t = φ(w_{t-1}) + N(0, (ησ)² I), T times from one start, φ a map that contracts by c < 1 on either of two neighbouring
data sets and φ(w), φ'(w) are at most ηs apart. Only w_T is released. Let z_t bound how far the two runs are apart once
part of it has been paid for: z_0 = 0, z_t = c z_{t-1} + ηs - m_t, m_t the shift that the noise of step t hides for
m_t/(ησ) of μ; z_T = 0 (Bok, Su and Altschuler 2024, Theorem 3.2 and Lemma 4.4: μ² = Σ (m_t/(ησ))²). The cheapest
m_t, given Σ c^{T-t}(ηs - m_t) = 0, is in proportion to c^{T-t} (Cauchy and Schwarz; then z_t ≥ 0), which gives

    μ = (s/σ) · (Σ_{j<T} c^j)/sqrt(Σ_{j<T} c^{2j}) = (s/σ) sqrt((1-c^T)/(1+c^T) · (1+c)/(1-c)),

their Theorem 4.2, attained by quadratics. Growing like √T at first, it levels off at sqrt((1+c)/(1-c)).
"""

from __future__ import annotations

import math

from dpbench.privacy.ledger import Gaussian, LastIterate


def growth(steps: int, contraction: float) -> float:
    """μσ/s of `steps` steps; steps ≥ 1, 0 ≤ contraction < 1."""
    power = contraction**steps
    return math.sqrt((1 - power) / (1 + power) * (1 + contraction) / (1 - contraction))


def as_gaussian(release: LastIterate) -> Gaussian:
    """The Gaussian release that costs as much."""
    return Gaussian(release.noise_multiplier / growth(release.steps, release.contraction))
