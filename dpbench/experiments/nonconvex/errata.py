"""The privacy errata of nonconvex: published settings whose noise is not what their guarantee asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpbench.experiments.nonconvex import with_replacement
from dpbench.experiments.nonconvex.switches import PAPER
from dpbench.privacy import Budget, Relation, accounting
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import CountedRelease, Gaussian, WithoutReplacement
from dpbench.study.declare import Case

COVERTYPE, IJCNN = 495_141, 49_990  # rows of the data sets
EPSILONS = (0.2, 0.6, 1.0)  # δ = 1/n


@PAPER.erratum("deviation_without_constant")
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


@PAPER.erratum("rows_beyond_the_bound")
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


@PAPER.erratum("noise_of_all_rows_on_a_minibatch")
def noise_of_all_rows_on_a_minibatch() -> Iterator[Case]:
    """opt-b as its scripts run it: noise multiplier √T·m/n relative to the sensitivity on m rows, whatever ε says."""
    T, n = 421, COVERTYPE
    m, delta = n // 100, 1 / COVERTYPE
    z = math.sqrt(T) * m / n
    attained = with_replacement.at_least(z, n, m, T, delta)
    proved = with_replacement.at_most(z, n, m, T, delta, shared=2)
    for epsilon in EPSILONS:
        yield Case(f"covertype12, ε = {epsilon:g}", epsilon, attained, proved)


@PAPER.erratum("one_subset_for_two_releases")
def one_subset_for_two_releases() -> Iterator[Case]:
    """opt-b: noise for 2T independent subsets of m = ⌊n/100⌋ rows; run on T, the pair on each one Gaussian at σ/√2."""
    T = 421  # opt's iterations at the loose target
    for name, n in (("covertype12", COVERTYPE), ("ijcnn", IJCNN)):
        m, delta = n // 100, 1 / n
        for epsilon in EPSILONS:
            budget = Budget(epsilon, delta, Relation.REPLACE_ONE, "rdp")
            z = budget.noise_scale(((WithoutReplacement(n, m, Gaussian(1.0)), 2 * T),)) / math.sqrt(2)
            sharp = Budget(epsilon, delta, Relation.REPLACE_ONE, "tight")
            proved = sharp.epsilon_of((CountedRelease(WithoutReplacement(n, m, Gaussian(z)), T, "pair"),))
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
