"""The privacy errata of zeroth_order: published settings whose noise is not what their guarantee asks for."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.study.declare import Case, erratum


@erratum(
    "Algorithm 6 with σ = dL/(Bρ)",
    ran=("The naive method adds N(0, σ²) with σ = dL/(Bρ) to a two-point estimate and is stated to be (α, αρ²/2)-RDP."),
    misses=(
        "Replacing one of the B points moves the estimate by up to 2dL/B (it may change sign), so the release is "
        "(α, 2αρ²)-RDP by Mironov (2017), Proposition 7. No experiment is published."
    ),
    bounds=(
        "Exact Gaussian; each point is used once, so nothing composes. Stated: the exact ε of (α, αρ²/2)-RDP Gaussians."
    ),
)
def half_of_two_points() -> Iterator[Case]:
    """o2nc-naive: σ = dL/(Bρ) where the two-point estimate has sensitivity 2dL/B; every point is used once."""
    delta = 1e-6
    for rho in (0.1, 1.0):
        has = gaussian_epsilon(2 * rho, delta)
        yield Case(f"ρ = {rho:g}, δ = 1e-6", gaussian_epsilon(rho, delta), has, has)
