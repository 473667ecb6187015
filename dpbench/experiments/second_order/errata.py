"""The privacy errata of second_order: published settings whose noise is not what their guarantee asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpbench.algorithms import aop
from dpbench.privacy import accounting
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import Gaussian, LogisticPerturbation
from dpbench.study.declare import Case, erratum

STATES = {"February": "released-february", "July": "released-july"}


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
        "The released code converts (ε, δ) to ρ by a root finder whose convergence nobody looks at. At small ε it "
        "fails and returns its start: ρ = 0.005 in the state of February 2023 for every ε up to 0.27 (n = 10,000) or "
        "0.30 "
        "(n ≥ 45,220), ρ = 0.001 in July's for every ε up to 0.12 or 0.13 (`--accounting released-february`, "
        "`released-july`). The shape of the published Table 1 fits February's and not July's, which is inferred."
    ),
    misses=(
        "Bun and Steinke (2016), Lemma 3.6, at the ε stated: at ε = 0.01 February's ρ is 2,500 to 3,100 times as "
        "large, July's 500 to 630 times. δ = n⁻², add/remove, Gaussian releases on all rows (DP-GD, DP-Newton)."
    ),
    bounds="Exact Gaussian composition at the ρ found: both bounds coincide.",
)
def root_finder_unchecked() -> Iterator[Case]:
    """DP-GD and DP-Newton at the ρ of both released conversions, and what the same ε should have given."""
    for name, n in (("synthetic", 10_000), ("a1a", 30_956), ("adult", 45_220), ("covertype", 53_121)):
        delta = float(n) ** -2
        for state, mode in STATES.items():
            for epsilon in (0.01, 0.1, 0.3):
                has = gaussian_epsilon(math.sqrt(2 * accounting.get(mode).rho(epsilon, delta)), delta)
                yield Case(f"{state}, {name} (n = {n:,}), ε = {epsilon:g}", epsilon, has, has)


@erratum(
    "AOP on rows longer than its noise is for",
    ran=(
        "The code of February runs AOP with ε_p/ε_obj = 0.9 and β = 1 on the rows before each is divided by "
        "max(1, ‖x‖₂), and its noise is for ‖x‖₂ ≤ 1; the loss is then taken on the divided rows. (Where the root "
        "finder returns its start, AOP is handed the ε that this spends.)"
    ),
    misses=(
        "The sensitivity of the perturbed objective: a row of norm R moves its gradient by up to 2R/n, not 2/n. On "
        "adult and covertype every row is longer than 1: at least 3.0 and 2.1, here taken for all. δ = n⁻², "
        "replace-one."
    ),
    bounds=(
        "At least b alone, as a Gaussian, on opposite rows of the least norm, which are R times as far apart as it is "
        "calibrated for; no upper bound, as rows are longer."
    ),
)
def longer_rows() -> Iterator[Case]:
    """aop's linear term: noise for ‖x‖₂ ≤ 1, rows of norm R or more."""
    for name, n, norm in (("adult", 45_220, 3.0), ("covertype", 53_121, 2.1)):
        delta = float(n) ** -2
        for epsilon in (0.1, 1.0, 10.0):
            split = aop.split_budget(epsilon, delta, 0.9)
            has = gaussian_epsilon(norm / aop.multiplier(split.noise, split.delta), delta)
            yield Case(f"{name} (n = {n:,}), ε = {epsilon:g}", epsilon, has, math.inf)


@erratum(
    "A reset that looks at the optimum",
    ran=(
        "Every iterative run of the released code goes back to its own start when ‖w‖ > 100‖w*‖ + 200, w* the optimum "
        "of the data, computed without noise (setting `reset = optimum`)."
    ),
    misses=(
        "Post-processing: whether a run goes back depends on the data beyond what was released. It acts on few starts, "
        "at ε = 10 and where T is too long. A radius known before the run (`reset = 1000`) does the same and keeps "
        "ε. δ = n⁻², "
        "add/remove, ρ by bs16."
    ),
    bounds=(
        "At least what the Gaussian releases have without it; no upper bound: an iterate whose length lies between the "
        "radii of two neighbours cannot come out on one of them."
    ),
)
def reset_at_the_optimum() -> Iterator[Case]:
    """A comparison of a released iterate with a number that was not released: no theorem covers it."""
    for epsilon in (1.0, 10.0):
        delta = 53_121.0**-2
        has = gaussian_epsilon(math.sqrt(2 * accounting.get("bs16").rho(epsilon, delta)), delta)
        yield Case(f"covertype (n = 53,121), ε = {epsilon:g}", epsilon, has, math.inf)
