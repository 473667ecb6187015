"""Minimisers of the objective with a ridge and a linear term added, to a tolerance that a proof relies on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpbench.algorithms.aop import minimise as minimise_smooth
from dpbench.algorithms.base import HESSIANS, Array, Declaration, Outcome, Problem
from dpbench.errors import UserError
from dpbench.problems import sparse_optimum, wide

LEAST = 1e-13  # a mean gradient of rows of length 1 has no more digits
STEPS = 200
SOLVER = (replace(HESSIANS, meaning="Hessians that the solver took", of_data=True),)


def tolerance(problem: Declaration) -> float:
    """γ: the norm of the least (sub)gradient, of the mean over rows, at which a solver stops.

    n⁻²; with l1 n⁻³, as the noise that hides the solver's error makes each coordinate pay that penalty.
    """
    return max(float(problem.n) ** (-3 if problem.l1 else -2), LEAST)


def minimise(
    problem: Problem, W: Array, b: Array, ridge: float, gamma: float, *, steady: bool = False
) -> tuple[Array, Array, np.ndarray]:
    """argmin F(w) + ridge/2 ‖w‖² + <b, w>, from each row of W, b (k, d), F with all of its regularisers.

    Returns the minimisers (k, d), the norms of their least subgradients (k,) and the Hessians each took (k,). steady:
    by a number of them that is the same for all data; UserError with l1, whose subproblems take as long as they take.
    """
    if not problem.l1:
        return minimise_smooth(problem, W, b, ridge, gamma, steady=steady)
    if steady:
        raise UserError("timing: a minimiser with l1 takes time that depends on the data; use dp-gd-average")
    found = [_proximal_newton(problem, w, term, ridge, gamma) for w, term in zip(W, b, strict=True)]
    return np.stack([one[0] for one in found]), np.array([one[1] for one in found]), np.array([one[2] for one in found])


def _proximal_newton(problem: Problem, w: Array, b: Array, ridge: float, gamma: float) -> tuple[Array, float, int]:
    """(w, norm, Hessians) for one w (d,), with l1 (Lee, Sun and Saunders 2014)."""
    l1 = problem.l1

    def smooth(v: Array) -> float:
        return float(problem.value(v[None])[0] - l1 * np.abs(v).sum() + ridge / 2 * v @ v + b @ v)

    best: tuple[Array, float] = w, np.inf
    for evaluations in range(STEPS):
        g = problem.gradient(w[None])[0] + ridge * w + b
        norm = float(np.linalg.norm(least_subgradient(g, w, l1)))
        if norm < best[1]:
            best = w, norm
        if norm <= gamma:
            return w, norm, evaluations
        if wide.fits(problem, ridge):
            direction = wide.quadratic(problem.hessian_root(w), ridge + problem.l2, g, w, l1) - w
        else:
            H = problem.hessian(w[None])[0] + ridge * np.eye(len(w))
            direction = sparse_optimum.quadratic(H, g, w, l1) - w
        decrease = -(g @ direction) - l1 * (np.abs(w + direction).sum() - np.abs(w).sum())
        start, step = smooth(w) + l1 * np.abs(w).sum(), 1.0
        rounding = abs(start - b @ w) + abs(b @ w)  # of terms that may cancel
        while step > 1e-10:
            end = w + step * direction
            # Near the minimum the values differ by rounding only: the slack lets the last full steps through.
            if smooth(end) + l1 * np.abs(end).sum() <= start - 1e-4 * step * decrease + 1e-14 * rounding:
                break
            step /= 2
        w = w + step * direction
    return (*best, STEPS)


def least_subgradient(g: Array, w: Array, l1: float) -> Array:
    """The subgradient of least norm of a function with gradient g (d,) at w, and l1‖w‖₁."""
    return np.where(w != 0, g + l1 * np.sign(w), np.sign(g) * np.maximum(np.abs(g) - l1, 0.0))


def solved(W: Array, norms: Array, gamma: float, evaluations: np.ndarray) -> Outcome:
    """The outcome of released W (k, d), whose solver promised norms of at most gamma: else not fit to be released."""
    reached = norms <= gamma
    W[~reached] = np.nan
    return Outcome(
        W,
        {"hessian_evaluations": evaluations},
        withheld=[
            "" if fine else f"solver stopped at ‖∇‖ = {norm:.3g}, above the γ = {gamma:.3g} it promised"
            for fine, norm in zip(reached, norms, strict=True)
        ],
    )
