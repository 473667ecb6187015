"""What second_order's paper and its released code state of ε, and what their noise gives."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpbench.algorithms import aop
from dpbench.experiments.second_order.rows import PAPER
from dpbench.privacy import accounting
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.accounting.pure import likely_multiplier
from dpbench.privacy.ledger import Gaussian, LogisticPerturbation
from dpbench.study.claims import Case

STATES = {"February": "released-february", "July": "released-july"}


@PAPER.erratum("missing_square_of_n")
def missing_square_of_n() -> Iterator[Case]:
    """cubic-newton's Algorithm 2 as printed: the deviation is n times that of Theorem 4.2, so ρ/n² is spent."""
    for n in (10_000, 45_222):
        delta = n**-2
        for epsilon in (1.0, 10.0):
            has = gaussian_epsilon(math.sqrt(2 * accounting.get("bs16").rho(epsilon, delta)) / n, delta)
            yield Case(f"n = {n:,}, ε = {epsilon:g}", epsilon, has, has)


@PAPER.erratum("half_of_two_minimisers")
def half_of_two_minimisers() -> Iterator[Case]:
    """aop's output: noise for nγ/Λ, two γ-approximate minima are up to 2nγ/Λ apart; ε_out = 0.01ε, δ_out = 0.01δ."""
    for n in (10_000, 45_222):
        delta = 0.01 * n**-2
        for epsilon in (1.0, 10.0):
            stated = 0.01 * epsilon
            has = gaussian_epsilon(2 * stated / (1 + math.sqrt(-2 * math.log(delta))), delta)
            yield Case(f"n = {n:,}, ε = {epsilon:g}: the output's share", stated, has, has, part=True)
    # The shares above are of a hundredth of the budget: here of all that a run releases.
    for n in (10_000, 45_222):
        delta = float(n) ** -2
        for epsilon in (1.0, 10.0):
            split = aop.split_budget(epsilon, delta)
            z, half = (
                likely_multiplier(split.noise, split.delta),
                likely_multiplier(split.output, split.output_delta) / 2,
            )
            run = ((LogisticPerturbation(z, split.jacobian / 2), 1), (Gaussian(half), 1))
            proved = accounting.get("tight").epsilon_of(run, delta)
            yield Case(
                f"n = {n:,}, ε = {epsilon:g}: the whole run",
                epsilon,
                gaussian_epsilon(math.hypot(1 / z, 1 / half), delta),
                math.inf if proved is None else proved,
            )


@PAPER.erratum("root_finder_unchecked")
def root_finder_unchecked() -> Iterator[Case]:
    """DP-GD and DP-Newton at the ρ of both released conversions, and what the same ε should have given."""
    # n decides where the root finder fails, as it is given δ = n⁻².
    for name, n in (("synthetic", 10_000), ("a1a", 30_956), ("adult", 45_220), ("covertype", 53_121)):
        delta = float(n) ** -2
        for state, mode in STATES.items():
            for epsilon in (0.01, 0.1, 0.3):
                has = gaussian_epsilon(math.sqrt(2 * accounting.get(mode).rho(epsilon, delta)), delta)
                yield Case(f"{state}, {name} (n = {n:,}), ε = {epsilon:g}", epsilon, has, has)


@PAPER.erratum("longer_rows")
def longer_rows() -> Iterator[Case]:
    """aop's linear term: noise for ‖x‖₂ ≤ 1, rows of norm R or more."""
    for name, n, norm in (("adult", 45_220, 3.0), ("covertype", 53_121, 2.1)):
        delta = float(n) ** -2
        for epsilon in (0.1, 1.0, 10.0):
            split = aop.split_budget(epsilon, delta, 0.9)
            has = gaussian_epsilon(norm / likely_multiplier(split.noise, split.delta), delta)
            yield Case(f"{name} (n = {n:,}), ε = {epsilon:g}", epsilon, has, math.inf)


@PAPER.erratum("reset_at_the_optimum")
def reset_at_the_optimum() -> Iterator[Case]:
    """A comparison of a released iterate with a number that was not released: no theorem covers it."""
    for epsilon in (1.0, 10.0):
        delta = 53_121.0**-2
        has = gaussian_epsilon(math.sqrt(2 * accounting.get("bs16").rho(epsilon, delta)), delta)
        yield Case(f"covertype (n = 53,121), ε = {epsilon:g}", epsilon, has, math.inf)
