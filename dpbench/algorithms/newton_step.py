"""What a method releases for intervals of coefficients, `own.intervals`: matrices, and a Newton step from its model."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpbench.algorithms import base as dp

DESCENT = 0.45  # of ρ, of a logistic model with intervals
SHARES = {"first curvature": 0.08, "last gradient": 0.37, "curvature": 0.10}  # of ρ, by label
CLUSTERED = SHARES | {"last gradient": 0.27, "scores": 0.10}
STRICT = 4.0  # of the noise on the first matrix, which its least eigenvalue has to exceed


class ReleasedStep(NamedTuple):
    """What was released for one Newton step from a point, with the noise of two parts.

    w, moment: (d,) the point and the mean gradient there, of whose noise `moment_std` is the standard deviation; both
    may be means over iterates. gram, curvature: (d, d), the matrix that says whether there are intervals, and the one
    that is inverted. scores: that of r²xxᵀ, or None where the curvature stands for it. curvature_std: of the noise on
    the diagonal of `curvature`, √2 less off it. least: √(2d) of it is what the eigenvalues of `gram` have to exceed.
    """

    w: dp.Array
    moment: dp.Array
    gram: dp.Array
    curvature: dp.Array
    scores: dp.Array | None
    moment_std: float
    curvature_std: float
    least: float


def gram_disclosure(
    value: str,
    sensitivity: str,
    label: str = "gram",
    why: str = "two positive semidefinite matrices of rank one",
    when: str = "",
) -> dp.Disclosure:
    """Of a release by `noisy_gram`."""
    return dp.Disclosure(label, value, "Gaussian, symmetric", "1", add_remove=sensitivity,
                         replace_one=f"√2·{sensitivity}", why=why, when=when)  # fmt: skip


def noisy_gram(
    mechanisms: dp.Mechanisms, gram: Any, square: float, n: int, rho: float | dp.Array, *, label: str = "gram"
) -> dp.Array:
    """`gram` (k, d, d) released; a row adds a positive semidefinite matrix of rank one and norm ≤ square/n."""
    # Two such matrices, neither negative, are √2 of it apart at most.
    both = math.sqrt(2) * square / n
    return mechanisms.gaussian(gram, sensitivity=square / n, rho=rho, label=label, symmetric=True, replaced=both)


def deviation(mechanisms: dp.Mechanisms, square: float, n: int, rho: Any) -> Any:
    """The standard deviation of the noise on the diagonal of a matrix that `noisy_gram` releases."""
    return (math.sqrt(2) if mechanisms.doubled else 1.0) * square / n / np.sqrt(2 * rho)


LOGISTIC = (
    gram_disclosure("mean of p(1 - p)xxᵀ at the model", "R²/(4n)", "first curvature", when="intervals"),
    dp.Disclosure("last gradient", "the mean gradient a step from there", count="1", add_remove="R/n",
                  why="|ℓ'| ≤ 1, ‖x‖ ≤ R", when="intervals"),
    gram_disclosure("mean of p(1 - p)xxᵀ there", "R²/(4n)", "curvature", when="intervals"),
    gram_disclosure("mean of ℓ'²xxᵀ there", "R²/n", "scores", when="intervals=clustered"),
)  # fmt: skip


def logistic_shares(intervals: bool | str) -> dict[str, float]:
    """Label → its share of ρ, of what `logistic_steps` releases; intervals: True or "clustered"."""
    return CLUSTERED if intervals == "clustered" else SHARES


def logistic_steps(
    problem: Any, mechanisms: dp.Mechanisms, W: dp.Array, moments: dp.Array, intervals: bool | str
) -> list[ReleasedStep]:
    """One `ReleasedStep` for each model of W (k, d), from a point that is a Newton step away from it.

    The models of descent are too far from the least loss for one Newton step: where slopes are steep the curvature
    changes on the way, and 79 to 92 % of intervals were right. So the step from W, by the mean gradient `moments`
    (k, d) that descent has released and the curvature at W, is made first, and gradient and curvature are released
    there. A row's p(1 - p)xxᵀ is positive semidefinite, of rank one and norm at most R²/4, its ℓ'²xxᵀ of norm at most
    R². The latter are released where the law of the labels does not say them: rows of one person are not independent.
    """
    n, square, d = problem.n, problem.loss.smoothness * problem.row_bound**2, W.shape[1]
    rho = {
        label: share * np.broadcast_to(mechanisms.budget.rho, (len(W),))
        for label, share in logistic_shares(intervals).items()
    }

    def curvature(label: str) -> dp.Array:
        return noisy_gram(mechanisms, problem.data_hessian(W), square, n, rho[label], label=label)

    first, least = curvature("first curvature"), deviation(mechanisms, square, n, rho["first curvature"])
    values, vectors = np.linalg.eigh(first)
    values = np.maximum(values, least[:, None] * math.sqrt(2 * d))  # below, noise is all there is
    W = W - np.einsum("kij,kj->ki", vectors, np.einsum("kij,ki->kj", vectors, moments) / values)
    sensitivity = problem.row_bound / n
    gradient = mechanisms.gaussian(
        problem.bounded_gradient(W, 1.0), sensitivity=sensitivity, rho=rho["last gradient"], label="last gradient"
    )
    second = curvature("curvature")
    scores: Any = [None] * len(W)
    if "scores" in rho:
        moment = problem.score_moment(W, 1.0)
        scores = noisy_gram(mechanisms, moment, problem.row_bound**2, n, rho["scores"], label="scores")
    stds = (
        (2 if mechanisms.doubled else 1) * sensitivity / np.sqrt(2 * rho["last gradient"]),
        deviation(mechanisms, square, n, rho["curvature"]),
        STRICT * least,
    )
    parts = zip(W, gradient, first, second, scores, strict=True)
    stds_of = zip(*stds, strict=True)
    return [ReleasedStep(*one, *map(float, std)) for one, std in zip(parts, stds_of, strict=True)]
