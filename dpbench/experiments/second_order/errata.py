"""The privacy errata of second_order: published settings whose noise is not what their guarantee asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpbench.algorithms import aop
from dpbench.privacy import accounting
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import Gaussian, LogisticPerturbation
from dpbench.study.declare import Case, erratum

AS_RELEASED = accounting.get("as-released-code")


@erratum(
    "Algorithm 2 without n²",
    ran="Line 2 of DPSolver prints σ² = N(L₀ + L₁D)²/(2ρ̃) for the gradient of a mean over n rows.",
    misses=(
        "Theorem 4.2 asks for Δ = (L₀ + L₁D)/n in place of L₀ + L₁D. The guarantee holds, and next to nothing of "
        "the budget is spent: noise n times too large makes the algorithm useless as printed. δ = n⁻², add/remove, "
        "ρ by the paper's conversion, ε = ρ + √(4ρ ln(√(πρ)/δ)) (Bun and Steinke 2016, Lemma 3.6; `bs16` here)."
    ),
    bounds="Exact Gaussian composition: both bounds coincide.",
)
def missing_square_of_n() -> Iterator[Case]:
    """cubic-newton's Algorithm 2 as printed: the deviation is n times that of Theorem 4.2, so ρ/n² is spent."""
    for n in (10_000, 45_222):
        delta = n**-2
        for epsilon in (1.0, 10.0):
            has = gaussian_epsilon(math.sqrt(2 * accounting.get("bs16").rho(epsilon, delta)) / n, delta)
            yield Case(f"n = {n:,}, ε = {epsilon:g}", epsilon, has, has)


@erratum(
    "AOP's output noise, 1 % of its budget, for half of its sensitivity",
    ran=(
        "The code of the AOP baseline (Iyengar et al. 2019) hides the solver's error by Gaussian noise calibrated "
        "to nγ/Λ at ε_out = 0.01ε and δ_out = 0.01δ."
    ),
    misses=(
        "The Gaussian mechanism's sensitivity: a Λ/n-strongly convex objective has γ-approximate minima within nγ/Λ "
        "of its minimum, hence up to 2nγ/Λ from each other. Only this hundredth of the budget is concerned. The sum of "
        "the shares grows by less than 1 %, and the whole run keeps its ε all the same, as the sum is a loose bound on "
        "the logistic loss. δ_out = 0.01 n⁻², replace-one."
    ),
    bounds=(
        "Of the share: exact Gaussian; reached by a solver that stops at opposite points of the ball. Λ and γ cancel. "
        "Of the whole run: at least b and the output's noise as Gaussians, on opposite rows; at most by the joint "
        "bound on gradient and Hessian (`--accounting tight`)."
    ),
)
def half_of_two_minimisers() -> Iterator[Case]:
    """aop's output: noise for nγ/Λ, two γ-approximate minima are up to 2nγ/Λ apart; ε_out = 0.01ε, δ_out = 0.01δ."""
    for n in (10_000, 45_222):
        delta = 0.01 * n**-2
        for epsilon in (1.0, 10.0):
            stated = 0.01 * epsilon
            has = gaussian_epsilon(2 * stated / (1 + math.sqrt(-2 * math.log(delta))), delta)
            yield Case(f"n = {n:,}, ε = {epsilon:g}: the output's share", stated, has, has, part=True)
    for n in (10_000, 45_222):
        delta = float(n) ** -2
        for epsilon in (1.0, 10.0):
            split = aop.split_budget(epsilon, delta)
            z, half = aop.multiplier(split.noise, split.delta), aop.multiplier(split.output, split.output_delta) / 2
            run = ((LogisticPerturbation(z, split.jacobian / 2), 1), (Gaussian(half), 1))
            proved = accounting.get("tight").epsilon_of(run, delta)
            yield Case(
                f"n = {n:,}, ε = {epsilon:g}: the whole run",
                epsilon,
                gaussian_epsilon(math.hypot(1 / z, 1 / half), delta),
                math.inf if proved is None else proved,
            )


@erratum(
    "eps_to_zcdp does not look at convergence",
    ran=(
        "The released code converts (ε, δ) to ρ by a root finder that starts at ρ = 0.001 and whose convergence nobody "
        "looks at. At small ε it fails and returns its start: ε = 0.01, 0.03 and 0.1 all run with ρ = 0.001 "
        "(`--accounting as-released-code`). The published Tables 1 and 4 hardly change between ε = 0.01 and 0.1, as "
        "that would make them."
    ),
    misses=(
        "Bun and Steinke (2016), Lemma 3.6, at the ε stated: some 500 to 630 times its ρ at ε = 0.01. δ = n⁻², "
        "add/remove, Gaussian releases on all rows (DP-GD, DP-Newton)."
    ),
    bounds="Exact Gaussian composition at ρ = 0.001: both bounds coincide.",
)
def root_finder_unchecked() -> Iterator[Case]:
    """DP-GD and DP-Newton at the ρ of the released conversion, and what the same ε should have given."""
    for name, n in (("synthetic", 10_000), ("a1a", 30_956), ("covertype", 53_121)):
        delta = n**-2
        for epsilon in (0.01, 0.1, 0.3):
            has = gaussian_epsilon(math.sqrt(2 * AS_RELEASED.rho(epsilon, delta)), delta)
            yield Case(f"{name} (n = {n:,}), ε = {epsilon:g}", epsilon, has, has)
