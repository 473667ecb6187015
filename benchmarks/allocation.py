"""Is random allocation at least as good as Poisson samples, as arXiv 2602.17284 claims in its abstract?

`python -m benchmarks.allocation` prints ε of both at equal noise: one epoch or ten of t batches, each row in one batch
of an epoch (allocation) or in each with probability 1/t (Poisson), δ = 1e-6, add/remove neighbours. Both are exact up
to 1e-4, so a quotient below 1 is the amplification's, not the bound's. docs/guides/accounting.md has the table.
"""

from __future__ import annotations

from dpbench.privacy.accounting import get
from dpbench.privacy.ledger import Allocated, Gaussian, Poisson

DELTA = 1e-6
MULTIPLIERS = (0.8, 1.0, 2.0, 4.0, 8.0)


def cell(z: float, steps: int, epochs: int) -> str:
    """ε allocated / ε Poisson (their quotient)."""
    tight = get("tight")
    plans = ((Allocated(steps, Gaussian(z)), epochs),), ((Poisson(1 / steps, Gaussian(z)), epochs * steps),)
    ours, poisson = (tight.epsilon_of(plan, DELTA) or 0.0 for plan in plans)
    return f"{ours:.3f} / {poisson:.3f} ({ours / poisson:.2f})"


if __name__ == "__main__":
    print("| epochs | t |", *(f"z = {z:g} |" for z in MULTIPLIERS))
    print("|---|---|" + "---|" * len(MULTIPLIERS))
    for epochs in (1, 10):
        for steps in (10, 100, 1000):
            print(f"| {epochs} | {steps} |", *(f"{cell(z, steps, epochs)} |" for z in MULTIPLIERS), flush=True)
