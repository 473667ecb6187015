"""The privacy errata of accelerated: published settings whose noise is not what their guarantee asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpbench.privacy.accounting.pure import amplified, base_epsilon
from dpbench.study.declare import Case, erratum


@erratum(
    "Laplace scale b/√2",
    ran=(
        "The authors' code draws Laplace noise of standard deviation b, that is of scale b/√2, where b = S₁/(m ε₀) "
        "is the scale that the privacy proof asks for. All published curves come from it."
    ),
    misses=(
        "The Laplace mechanism: scale S₁/ε₀ for ε₀-DP. At scale b/√2 each release on the rows it sees is √2 ε₀-DP; "
        "amplification by sampling (Balle, Barthe, Gaboardi 2018, Theorem 9) then makes it worse than √2 for m < n, "
        "where ε₀ is not small. Pure ε-DP, replace-one."
    ),
    bounds="Closed form, attained by the worst neighbours of the declared sensitivity: both bounds coincide.",
)
def laplace_as_deviation() -> Iterator[Case]:
    """T releases at scale b/√2, b = S₁/(m ε₀); m = n, or m of n rows without replacement."""
    n, epsilon = 100_000, 1.0
    for m in (n, 1_000):
        for T in (100, 200, 500, 1_000) if m < n else (1_000,):
            needed = base_epsilon(epsilon / T, n, m)
            has = T * amplified(math.sqrt(2) * needed, n, m)
            yield Case(f"m = {m:,}, T = {T:,}" if m < n else "m = n = 100,000, any T", epsilon, has, has)
