"""dp-frank-wolfe once more in plain NumPy, in several units of the columns: which gives the prototype's numbers?

`python -m benchmarks.frank_wolfe_units` prints the mean excess loss of ten seeds, replace-one, δ = n⁻², on columns
times S, clipped to [-1, 1] (weights and penalty go with them). S = 1 is the package's own unit, ‖x‖₂ ≤ 1.
"""

from __future__ import annotations

import math

import numpy as np

from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BoundedRange, Relation
from dpbench.problems import Problem, build

CELLS = (  # problem, ε, T, B, and what the prototype had
    ("madelon-l1-unit", 10.0, 10, 3.0, 0.0033),
    ("madelon-l1-unit", 10.0, 10, 10.0, 0.0076),
    ("digits-l1", 1.0, 10, 10.0, 0.064),
    ("digits-l1", 10.0, 10, 10.0, 0.041),
    ("california-l1", 10.0, 100, 3.0, 7e-4),
)
SEEDS = 10


def excess(problem: Problem, epsilon: float, T: int, B: float, S: float) -> tuple[float, float]:
    """(mean, standard error) of F(w) - F*."""
    X, y, l1 = np.clip(problem.X * S, -1, 1), problem.y, problem.l1 * S
    n, d = X.shape
    squared = problem.loss.name == "squared"
    clip = 0.3 if squared else 1.0
    budget = Budget(epsilon, n**-2.0, Relation.REPLACE_ONE, "tight")
    range_ = 1 / budget.noise_scale(((BoundedRange(1.0), T),))
    found = []
    for seed in range(SEEDS):
        rng, w = np.random.default_rng(seed), np.zeros(d)
        for t in range(T):
            z = X @ w
            h = X.T @ (np.clip(z - y, -clip, clip) if squared else -y / (1 + np.exp(y * z))) / n
            scores = np.concatenate([-B * h - l1 * B, B * h - l1 * B, [0.0]])
            j = int((scores * range_ * n / (4 * clip * B) + rng.gumbel(size=2 * d + 1)).argmax())
            w *= t / (t + 2)
            if j < 2 * d:
                w[j % d] += 2 / (t + 2) * (B if j < d else -B)
        found.append(float(problem.value((w * S)[None])[0]) - problem.optimum().value)
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(SEEDS))


def main() -> None:
    """A line a cell."""
    for name, epsilon, T, B, expected in CELLS:
        problem = build(name)
        root = math.sqrt(problem.d)
        units = {"1": 1.0, "1/max": 1 / float(abs(problem.X).max()), "√d": root, "√d/2": root / 2, "√d/3": root / 3}
        told = ", ".join(
            "S = {}: {:.3g} ± {:.1g}".format(u, *excess(problem, epsilon, T, B, S)) for u, S in units.items()
        )
        print(f"{name}, ε = {epsilon:g}, T = {T}, B = {B:g}: prototype {expected:g}; {told}", flush=True)


if __name__ == "__main__":
    main()
