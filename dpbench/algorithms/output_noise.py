"""The noise on a model that is all a method releases, once or in equal parts: Gaussian, and radial at δ = 0."""

from __future__ import annotations

from dataclasses import replace

from dpbench.algorithms.base import Array, Disclosure, Mechanisms
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Radial, at_rho


def disclosures(value: str, sensitivity: str, why: str, count: str = "1") -> tuple[Disclosure, Disclosure]:
    """What is declared of `value` under both kinds of noise; `sensitivity`: under add/remove, by the one row's L₀."""
    gaussian = Disclosure(
        "output",
        value,
        count=count,
        add_remove=sensitivity,
        replace_one=sensitivity.replace("L₀", "2·L₀"),  # two rows pull, each by L₀ at most
        why=why,
    )
    return gaussian, replace(gaussian, mechanism="radial", why="the same", when="δ = 0")


def variance(budget: Budget, d: int, parts: int = 1) -> float:
    """The noise's variance in a direction (of d), per squared sensitivity, of one of `parts` releases.

    At δ = 0 with E‖b‖² = d(d + 1)(Δ/ε)².
    """
    return parts**2 * (d + 1) / budget.epsilon**2 if budget.delta == 0 else parts / (2 * budget.rho)


def plan(mechanisms: Mechanisms, parts: int = 1) -> None:
    """Plan `parts` releases that spend the budget together."""
    budget = mechanisms.budget
    event = Radial(parts / budget.epsilon) if budget.delta == 0 else at_rho(budget.rho / parts)
    mechanisms.plan("output", event, parts)


def release(mechanisms: Mechanisms, W: Array, sensitivity: float, parts: int = 1) -> Array:
    """One of `parts` releases of W (k, d), of which neighbours' are within `sensitivity` in ℓ₂."""
    budget = mechanisms.budget
    if budget.delta == 0:
        return mechanisms.radial(W, sensitivity=sensitivity, epsilon=budget.epsilon / parts, label="output")
    return mechanisms.gaussian(W, sensitivity=sensitivity, rho=budget.rho / parts, label="output")
