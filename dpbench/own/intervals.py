"""95 % intervals for the coefficients of a model: one Newton step on what was released, free after it.

`PrivateRegressor(intervals=True)` makes boosted SSP release two matrices more, at its last w and for 13 % of ρ
(`algorithms.sufficient_statistics` derives their sensitivities). Residuals r are clipped to ±c:

    G̃        XᵀX/n, which the method releases anyway
    H̃        the mean of xxᵀ over the unclipped rows: the curvature of the clipped loss, a Huber loss
    S̃        the mean of r²xxᵀ: what the sampling of rows does to a moment
    w̄, m̄     means over T' iterates, and of the moments released there
    θ̂ = w̄ - H̃⁻¹m̄,   V = H̃⁻¹[S̃₊/n + σ²/T'·I + s²/2·(‖u‖²I + uuᵀ)]H̃⁻¹,   u = w̄ - θ̂,   θ̂ⱼ ± 1.96 √Vⱼⱼ

m is affine in w where no residual changes sides, so H(w̄ - θ) - m̄ is the score at θ and the mean of T' noises, whatever
the path was: ridge and T leave no bias, and the noise E on H̃ enters times u alone. E is symmetric, of deviation s on
its diagonal and s/√2 off it, so Eu has the covariance s²/2·(‖u‖²I + uuᵀ). The sandwich is Huber's (1967). A share of
unclipped rows in the place of H̃, times G̃, costs less and is not enough: where a category has wider residuals than the
others, 90 % of its intervals were right.

Of ‖u‖² and uuᵀ what their own noise adds is taken off, by traces.

Whether there are intervals is a public rule: λ_min(G̃) > s√(2d), where the noise on H̃ ends. That on G̃ is apart from
it: decided by the matrix that is inverted, intervals would be given where that is too large by luck, and of a rare
category, where few fits have any, 80 to 91 % would be right. `benchmarks.coefficient_coverage` counts.

With a unit the n is that of persons, H̃ the mean of a person's mean, and S̃ that of ggᵀ, g a person's mean gradient: the
sandwich of clusters (Liang and Zeger 1986). Rows of one person need not be independent then.

Residuals do change sides on the way from w̄ to θ̂, so the means are over the second half of the iterates. Those before
are far off where a target lies near an end of its bounds: with the fourth of ten among them 86 % were right for a slope
of a table of visits to a doctor, and 78 % for its intercept.

Of two classes `PrivateClassifier(intervals=True)` fits by dp-gd-average with 45 % of ρ, and `algorithms.newton_step`
releases a first matrix, by which the rule is (with four times its noise), and behind one step the gradient and the
matrix of the logistic loss. H̃ stands for S̃ too, as it does where the law of the labels is logistic; with a unit S̃
is released there, for 10 % of ρ that the gradient has less.

Columns of one kind of category add up to the intercept, so the first category of each is what the others are compared
with: rows of H̃ and m̄ without it, and u with it, make the same step of the smaller model, also where cells are missing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from dpbench.schema.encoding import Categories, Encoding

if TYPE_CHECKING:
    from dpbench.algorithms.newton_step import ReleasedStep

WIDTH = 1.959964  # deviations of a normal law to either side of 95 %
CLIPPED = 0.95  # a share inside below which it is told that residuals were clipped
NONE = "the noise allows no interval"


class Intervals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Centres and deviations of the compared columns' weights, as the rows are fitted; none where the rule has none.

    inside: about which share of the rows had an unclipped residual, by the traces of H̃ and G̃; of two classes nothing.
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
    square = np.ix_(free, free)
    clips = step.scores is not None
    inside = float(np.trace(step.curvature[square]) / np.trace(step.gram[square])) if clips else 1.0
    if np.linalg.eigvalsh(step.gram[square])[0] <= step.least * math.sqrt(2 * len(free)):
        return Intervals((), (), inside)
    centre = np.linalg.solve(step.curvature[square], step.curvature[free] @ step.w - step.moment[free])
    u = step.w.copy()
    u[free] -= centre
    values, vectors = np.linalg.eigh((step.curvature if step.scores is None else step.scores)[square])
    middle = (vectors * np.maximum(values, 0.0)) @ vectors.T / n  # a mean of squares has no negative eigenvalue
    middle += np.eye(len(free)) * step.moment_std**2
    half = np.linalg.solve(step.curvature[square], np.linalg.cholesky(middle))
    # The noise in u makes it too long: by the trace of what there is of V without u.
    true = max(0.0, 1 - float((half * half).sum()) / float(u @ u))
    middle += (np.outer(u[free], u[free]) + np.eye(len(free)) * float(u @ u)) * true * step.curvature_std**2 / 2
    half = np.linalg.solve(step.curvature[square], np.linalg.cholesky(middle))
    return Intervals(tuple(centre.tolist()), tuple(np.sqrt((half * half).sum(axis=1)).tolist()), inside)


def table(intervals: Intervals, columns: dict[int, str], scales: np.ndarray) -> list[dict[str, Any]]:
    """name, estimate, low and high of each slope; scales: (d,), what a weight is multiplied by to be one."""
    slopes = [
        (name, centre * scales[j], WIDTH * std * scales[j])
        for (j, name), centre, std in zip(columns.items(), intervals.centres, intervals.deviations, strict=False)
        if j or name != "intercept"
    ]
    return [{"name": name, "estimate": at, "low": at - half, "high": at + half} for name, at, half in slopes]


def words(intervals: Intervals, bound: float | None, unit: float, drawn: str, classes: tuple[Any, ...]) -> list[str]:
    """What the intervals are for, and what public marks say that they do not cover; or that there are none.

    bound: beyond which rows are shortened; unit: beyond which no row is. drawn: "rows" or "persons". classes: of a
    target that is no number.
    """
    if not intervals.centres:
        return [f"No intervals: {NONE}"]
    said = [
        f"Each interval holds the fitted model's coefficient with probability 95 %, by itself, over {drawn} drawn at "
        "random; a category is compared with the first of its column; "
        + (f"it is of the log odds of {classes[1]}, and takes them for linear" if classes
           else "targets beyond the public bounds were moved")
    ]  # fmt: skip
    if bound is not None and bound < unit:
        said.append(f"Slopes on features as given are not covered: rows longer than {bound:.4g} were shortened")
    if intervals.inside < CLIPPED and not classes:
        share = min(1 - intervals.inside, 1.0)
        said.append(f"Slopes of the mean are not covered: the residuals of about {share:.0%} of the rows were clipped")
    return said
