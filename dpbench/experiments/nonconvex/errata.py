"""The privacy errata of nonconvex: published settings whose noise is not what their guarantee asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpbench.experiments.nonconvex import with_replacement
from dpbench.privacy import Budget, Relation, accounting
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import Entry, Gaussian, WithoutReplacement
from dpbench.study.declare import Case, erratum

COVERTYPE, IJCNN = 495_141, 49_990  # rows of the data sets
EPSILONS = (0.2, 0.6, 1.0)  # δ = 1/n


@erratum(
    "DP-GD to a second-order point with σ = √(T ln(1/δ))/ε",
    ran="Gaussian noise of deviation Δ√(T ln(1/δ))/ε on T gradients and on up to T Hessians (Wang, Chen, Xu 2019).",
    misses=(
        "ρ-zCDP gives (ρ + 2√(ρ ln(1/δ)), δ)-DP (Bun and Steinke 2016, Proposition 1.3), so about ε²/(4 ln(1/δ)) "
        "may be spent. That noise spends ε²/(2 ln(1/δ)) on the gradients and as much again on the Hessians: half of "
        "the noise that is needed. δ = 1/n, replace-one."
    ),
    bounds="Exact Gaussian composition; at least: gradients alone, at most: with all T Hessians. T cancels.",
)
def deviation_without_constant() -> Iterator[Case]:
    """dp-gd-2ns: σ = √(T ln(1/δ))/ε on T gradients and up to T Hessians, so μ² = T/σ² to 2T/σ² whatever T."""
    for name, n in (("covertype12", COVERTYPE), ("ijcnn", IJCNN)):
        for epsilon in EPSILONS:
            mu = epsilon / math.sqrt(math.log(n))
            yield Case(
                f"{name}, ε = {epsilon:g}",
                epsilon,
                gaussian_epsilon(mu, 1 / n),
                gaussian_epsilon(math.sqrt(2) * mu, 1 / n),
            )


@erratum(
    "Rows longer than the bound B_g = 1",
    ran=(
        "covertype / 4 and ijcnn / 3 (its label is standardised with the columns) leave "
        "rows with ‖x‖ > 1, while the noise is for gradients of norm at most 1 (short steps, loss A: Tables 1–4)."
    ),
    misses=(
        "The Gaussian mechanism's sensitivity: with rows up to R the logistic gradient moves by up to 2R/n, not "
        "2/n. (Without any bound on a neighbour's rows there is no finite ε: R is the longest row of the data.) δ = "
        "1/n, replace-one. The sigmoid loss of Tables 5–12 has slope at most 1/4: R/4 < 1 on covertype, but R/4 = 2.6 "
        "on ijcnn / 3, so it is beyond the bound there too."
    ),
    bounds=(
        "Exact Gaussian composition; at least: the T gradients, at most: with T Hessians, whose stated sensitivity "
        "2√d/n is larger than the true one."
    ),
)
def rows_beyond_the_bound() -> Iterator[Case]:
    """opt on loss A: T gradients of sensitivity 2R/n and up to T Hessians, noise for 2/n and 2√d/n at ρ/(2T) each.

    R is the longest row. Two Hessians of rank one and eigenvalue at most R²/4 differ by at most √2·R²/4.
    """
    from dpbench.datasets.loading import unclipped_row_norms

    for name, d in (("covertype12-unclipped", 54), ("ijcnn-unclipped", 22)):
        norms = unclipped_row_norms(name)
        R, delta = norms.largest, 1 / norms.rows
        hessian = math.sqrt(2) * R**2 / 4 / (2 * math.sqrt(d))
        for epsilon in EPSILONS:
            rho = accounting.get("standard").rho(epsilon, delta)
            yield Case(
                f"{name}, ε = {epsilon:g} (longest row {R:.3f}; {norms.beyond_1:,} of {norms.rows:,} rows beyond 1)",
                epsilon,
                gaussian_epsilon(R * math.sqrt(rho), delta),
                gaussian_epsilon(math.hypot(R, hessian) * math.sqrt(rho), delta),
            )


@erratum(
    "Minibatches with the noise of the whole data",
    ran=(
        "opt-b on m = ⌊n/100⌋ rows, with noise σ·2B/n and σ·2B√d/n instead of σ·2B/m and σ·2B√d/m, and σ = √T at every "
        "ε (loose covertype target, T = 421): the search for ρ is bounded by 1 and stops there, so the published rows "
        "of the three ε are one run, printed three times."
    ),
    misses=(
        "Equation (4) with m in place of n: replacing a row moves a mean over m of them by up to 2B/m, 100 times what "
        "the noise is for. δ = 1/n, replace-one. Nor is it accounted for what runs: the batch is drawn with "
        "replacement and shared by gradient and Hessian. Of the 20 or so releases that were made ε is about 47 as if "
        "without replacement, and at least 58 as drawn."
    ),
    bounds=(
        "Both of what runs. At least: all rows equal and one replaced, T gradients, the replaced row K ~ Bin(m, 1/n) "
        "times in a batch, privacy-loss distributions rounding down. At most: T pairs of gradient and Hessian, each "
        "one Gaussian at σ/√2, with K revealed beside it (joint convexity), rounding up."
    ),
)
def noise_of_all_rows_on_a_minibatch() -> Iterator[Case]:
    """opt-b as its scripts run it: noise multiplier √T·m/n relative to the sensitivity on m rows, whatever ε says."""
    T, n = 421, COVERTYPE
    m, delta = n // 100, 1 / COVERTYPE
    z = math.sqrt(T) * m / n
    attained = with_replacement.at_least(z, n, m, T, delta)
    proved = with_replacement.at_most(z, n, m, T, delta, shared=2)
    for epsilon in EPSILONS:
        yield Case(f"covertype12, ε = {epsilon:g}", epsilon, attained, proved)


@erratum(
    "Gradient and Hessian amplified on one shared subset: a gap in the proof",
    ran=(
        "Minibatch variants release gradient and Hessian of the same subset S_k, and eq. (29) adds two amplified terms."
    ),
    misses=(
        "Amplification by sampling (Wang, Balle, Kasiviswanathan 2019, Theorem 9) holds for one release per subset; "
        "two terms add up for independent subsets only. On a shared one the pair is a single Gaussian with 1/σ² = "
        "1/σ_g² + 1/σ_H². δ = 1/n, replace-one."
    ),
    bounds=(
        "σ is set by our Rényi accountant, at its ε for 2T independent subsets (the published one is "
        "autodp's). At most: the pair by privacy-loss distributions, which lose less than Rényi's bound: a gap in the "
        "proof, which tighter accounting closes, and no error. At least: all rows equal and one replaced, by "
        "distributions rounding down."
    ),
)
def one_subset_for_two_releases() -> Iterator[Case]:
    """opt-b: noise for 2T independent subsets of m = ⌊n/100⌋ rows; run on T, the pair on each one Gaussian at σ/√2."""
    T = 421  # opt's iterations at the loose target
    for name, n in (("covertype12", COVERTYPE), ("ijcnn", IJCNN)):
        m, delta = n // 100, 1 / n
        for epsilon in EPSILONS:
            budget = Budget(epsilon, delta, Relation.REPLACE_ONE, "rdp")
            z = budget.noise_scale(((WithoutReplacement(n, m, Gaussian(1.0)), 2 * T),)) / math.sqrt(2)
            sharp = Budget(epsilon, delta, Relation.REPLACE_ONE, "tight")
            proved = sharp.epsilon_of((Entry(WithoutReplacement(n, m, Gaussian(z)), T, "pair"),))
            attained = attained_among_equal_rows(z, m / n, T, delta)
            yield Case(
                f"{name}, m = {m:,}, T = {T}, ε = {epsilon:g}",
                epsilon,
                attained,
                math.inf if proved is None else proved,
            )


def attained_among_equal_rows(z: float, rate: float, T: int, delta: float, interval: float = 2e-5) -> float:
    """ε of T Gaussian releases on subsets when all rows are equal and one is replaced.

    The output is N(0, z²) against the mixture (1 - rate) N(0, z²) + rate N(1, z²), whichever rows are drawn.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_gaussian_mechanism(
        z,
        sampling_prob=rate,
        value_discretization_interval=interval,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )
    return float(one.self_compose(T).get_epsilon_for_delta(delta))
