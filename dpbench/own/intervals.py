"""95 % intervals for the coefficients of boosted SSP's model: one Newton step on what was released, free after it.

`PrivateRegressor(intervals=True)` makes boosted SSP release three things more, whose sensitivities are derived there
(`algorithms.sufficient_statistics`). With r = clip(<x, w> - y, ±c), E the noise on G̃ and w̄, m̄ means over T' iterates:

    G̃₁, G̃₂   XᵀX/n released twice: it decides by the first, and computes with the second
    S̃        the mean of r²xxᵀ at the last w: what the sampling of rows does to a moment
    κ̃        the share of rows with |r| < c, kept in [0.3, 1]: the curvature of the loss is κXᵀX/n
    θ̂ = G̃⁻¹(G̃w̄ - m̄/κ̃),  V = (κ̃G̃)⁻¹[S̃₊/n + σ²/T'·I + κ̃²s²/2·(‖u‖²I + uuᵀ)](κ̃G̃)⁻¹,  u = w̄ - θ̂,  θ̂ⱼ ± 1.96 √Vⱼⱼ

m is affine in w where no residual changes sides, so κG(w̄ - θ) - m̄ is the score at θ and the mean of T' noises,
whatever the path was: ridge and T leave no bias, and E enters times u alone. E is symmetric, of deviation s on its
diagonal and s/√2 off it, so Eu has the covariance s²/2·(‖u‖²I + uuᵀ). The sandwich is Huber's (1967).

Whether there are intervals is a public rule: λ_min(G̃₁) > s√d, which is where the noise on the mean of both ends. The
noise on G̃₁ is apart from that on G̃₂: decided by one matrix, intervals would be given where that is too large by luck,
and of a rare category, where few fits have any, 80 to 91 % would be right. `benchmarks.coefficient_coverage` counts.

Columns of one kind of category add up to the intercept, so the first category of each is what the others are compared
with: rows of G̃ and m̄ without it, and u with it, make the same step of the smaller model, also where cells are missing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from dpbench.schema.encoding import Categories, Encoding

if TYPE_CHECKING:
    from dpbench.algorithms.sufficient_statistics import ReleasedStep

WIDTH = 1.959964  # deviations of a normal law to either side of 95 %
LEAST_INSIDE = 0.3
CLIPPED = 0.95  # a share inside below which it is told that residuals were clipped
NONE = "the noise allows no interval"


class Intervals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Centres and deviations of the compared columns' weights, as the rows are fitted; none where the rule has none.

    inside: κ̃ as it was released.
    """

    centres: tuple[float, ...]
    deviations: tuple[float, ...]
    inside: float

    def __post_init__(self) -> None:
        numbers = (*self.centres, *self.deviations, self.inside)
        if len(self.centres) != len(self.deviations) or not all(map(math.isfinite, numbers)):
            raise ValueError("its intervals are not a centre and a deviation for each column")
        if not all(one > 0 for one in self.deviations):
            raise ValueError("the deviation of an interval is not positive")


def compared(encoding: Encoding, *, windowed: bool) -> dict[int, str]:
    """Column → its name, of the columns whose weights are estimated: not the first category of each kind.

    windowed: the intercept is not fitted. Without an intercept one kind of category keeps all its columns.
    """
    at, kept = int(encoding.intercept), encoding.intercept
    chosen = {0: "intercept"} if kept and not windowed else {}
    for step in encoding.steps:
        names = step.names
        if isinstance(step, Categories) and not step.numeric:
            others = names[kept:] if kept else names
            chosen |= {at + len(names) - len(others) + i: name for i, name in enumerate(others)}
            kept = True
        else:
            chosen |= {at + i: name for i, name in enumerate(names)}
        at += len(names)
    return chosen


def of(step: ReleasedStep, columns: dict[int, str], n: int) -> Intervals:
    """What the releases say of the weights of `columns`, over n rows."""
    free = np.array([*columns])
    rule = step.rule[np.ix_(free, free)]
    if np.linalg.eigvalsh(rule)[0] <= step.gram_std * math.sqrt(len(free)):
        return Intervals((), (), step.inside)
    inside = min(max(step.inside, LEAST_INSIDE), 1.0)
    gram, curvature = step.gram[free], inside * step.gram[np.ix_(free, free)]
    centre = np.linalg.solve(curvature, inside * gram @ step.w - step.moment[free])
    u = step.w.copy()
    u[free] -= centre
    values, vectors = np.linalg.eigh(step.scores[np.ix_(free, free)])
    middle = (vectors * np.maximum(values, 0.0)) @ vectors.T / n  # a mean of squares has no negative eigenvalue
    middle += np.outer(u[free], u[free]) * (inside * step.gram_std) ** 2 / 2
    middle += np.eye(len(free)) * (step.moment_std**2 + (inside * step.gram_std) ** 2 / 2 * float(u @ u))
    half = np.linalg.solve(curvature, np.linalg.cholesky(middle))
    return Intervals(tuple(centre.tolist()), tuple(np.sqrt((half * half).sum(axis=1)).tolist()), step.inside)


def table(intervals: Intervals, columns: dict[int, str], scales: np.ndarray) -> list[dict[str, Any]]:
    """name, estimate, low and high of each slope; scales: (d,), what a weight is multiplied by to be one."""
    slopes = [
        (name, centre * scales[j], WIDTH * std * scales[j])
        for (j, name), centre, std in zip(columns.items(), intervals.centres, intervals.deviations, strict=False)
        if j or name != "intercept"
    ]
    return [{"name": name, "estimate": at, "low": at - half, "high": at + half} for name, at, half in slopes]


def words(intervals: Intervals, bound: float | None, unit: float) -> list[str]:
    """What the intervals are for, and what public marks say that they do not cover; or that there are none.

    bound: beyond which rows are shortened; unit: beyond which no row is.
    """
    if not intervals.centres:
        return [f"No intervals: {NONE}"]
    said = [
        "Each interval holds the fitted model's coefficient with probability 95 %, by itself, over rows drawn at "
        "random; a category is compared with the first of its column; targets beyond the public bounds were moved"
    ]
    if bound is not None and bound < unit:
        said.append(f"Slopes on features as given are not covered: rows longer than {bound:.4g} were shortened")
    if intervals.inside < CLIPPED:
        share = min(1 - intervals.inside, 1.0)
        said.append(f"Slopes of the mean are not covered: the residuals of about {share:.0%} of the rows were clipped")
    return said
