"""Privacy errata: published settings whose noise does not give the stated guarantee, and the ε they really have.

Two numbers per setting. *at most* is what an accountant proves of what was run, *at least* what a pair of neighbours
attains, so the truth lies between them: where *at least* exceeds the stated ε the guarantee is false, where only *at
most* does it is unproved. Sensitivities are the declared ones unless an entry says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources

from dpbench import toml
from dpbench.errors import NotAtHand
from dpbench.privacy import subsampled, zcdp
from dpbench.privacy.gaussian import gaussian_epsilon
from dpbench.privacy.laplace import advanced_composition_epsilon0, amplified, base_epsilon
from dpbench.privacy.ledger import Entry, Laplace, PureDP
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent

COVERTYPE, IJCNN = 495_141, 49_990  # rows of nonconvex's data sets
EPSILONS = (0.2, 0.6, 1.0)  # its budgets; δ = 1/n


@dataclass(frozen=True)
class Case:
    """One setting: the ε that is stated, and the lower and upper bounds on the ε it has at the same δ."""

    setting: str
    stated: float
    at_least: float
    at_most: float

    @property
    def verdict(self) -> str:
        if self.at_least > self.stated * (1 + 1e-9):
            return "false"
        if self.at_most > self.stated * (1 + 1e-9):
            return "unproved"
        return "holds, with noise to spare"


@dataclass(frozen=True)
class Erratum:
    """An entry. ran: what noise was drawn; misses: the theorem and where it fails; bounds: where the numbers come from.

    `cases` computes them; NotAtHand if it needs data that are not here.
    """

    name: str
    experiment: str
    title: str
    ran: str
    misses: str
    bounds: str
    cases: Callable[[], Iterator[Case]]


def laplace_as_deviation() -> Iterator[Case]:
    """accelerated: T releases at scale b/√2, b = S₁/(m ε₀); m = n, or m of n rows without replacement."""
    n, epsilon = 100_000, 1.0
    for m in (n, 1_000):
        for T in (100, 200, 500, 1_000) if m < n else (1_000,):
            needed = base_epsilon(epsilon / T, n, m)
            has = T * float(amplified(math.sqrt(2) * needed, n, m))
            yield Case(f"m = {m:,}, T = {T:,}" if m < n else "m = n = 100,000, any T", epsilon, has, has)


def half_scale_selection() -> Iterator[Case]:
    """greedy_coordinate: ε' of eq. (2), selections at λ' = λ: 2ε'-DP each, beside as many Laplace releases at ε'."""
    epsilon = 1.0
    first = advanced_composition_epsilon0(epsilon, 2, 1e-6)
    yield Case("one selection alone (δ = 0), T = 1, n = 1,000: stated ε'", first, 2 * first, 2 * first)
    for n in (1_000, 20_640):
        delta = n**-2
        for T in (4, 7, 10, 20):
            each = advanced_composition_epsilon0(epsilon, 2 * T, delta)
            releases = (Entry(Laplace(1 / each), T, "step"), Entry(PureDP(2 * each), T, "selection"))
            proved = spent(releases, delta, Relation.REPLACE_ONE).epsilon
            yield Case(f"n = {n:,}, T = {T}", epsilon, attained_by_two_coordinates(each, T, delta), proved)


def attained_by_two_coordinates(each: float, T: int, delta: float) -> float:
    """ε of T selections between two coordinates and T Laplace releases; `each` = sensitivity over the Laplace scale.

    Replacing one row moves one entry up by the sensitivity and the other down by it, and each data set is the mirror
    image of the other: an entry leads by half of the way. The selection is then a coin of P(L₁ - L₂ < each) for
    unit Laplace L₁, L₂ and its mirror image.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    coin = 1 - (1 + each / 2) * math.exp(-each) / 2
    down = {"value_discretization_interval": math.log(coin / (1 - coin)) / 512, "pessimistic_estimate": False}
    selections = pld.from_randomized_response(2 * (1 - coin), 2, **down)
    steps = pld.from_laplace_mechanism(1 / each, use_connect_dots=False, **down)
    return steps.self_compose(T).compose(selections.self_compose(T)).get_epsilon_for_delta(delta)


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


def rows_beyond_the_bound() -> Iterator[Case]:
    """opt on loss A: T gradients of sensitivity 2R/n and up to T Hessians, noise for 2/n and 2√d/n at ρ/(2T) each.

    R is the longest row. Two Hessians of rank one and eigenvalue at most R²/4 differ by at most √2·R²/4.
    """
    from dpbench.datasets.unclipped import unclipped_row_norms

    for name, d in (("covertype12", 54), ("ijcnn", 22)):
        norms = unclipped_row_norms(name)
        R, delta = norms.largest, 1 / norms.rows
        hessian = math.sqrt(2) * R**2 / 4 / (2 * math.sqrt(d))
        for epsilon in EPSILONS:
            rho = zcdp.rho(epsilon, delta, "standard")
            yield Case(
                f"{name}, ε = {epsilon:g} (longest row {R:.3f}; {norms.beyond_1:,} of {norms.rows:,} rows beyond 1)",
                epsilon,
                gaussian_epsilon(R * math.sqrt(rho), delta),
                gaussian_epsilon(math.hypot(R, hessian) * math.sqrt(rho), delta),
            )


def one_subset_for_two_releases() -> Iterator[Case]:
    """opt-b: noise for 2T independent subsets of m = ⌊n/50⌋ rows; run on T, the pair on each one Gaussian at σ/√2."""
    T = 421  # opt's iterations at the loose target
    for name, n in (("covertype12", COVERTYPE), ("ijcnn", IJCNN)):
        m, delta = n // 50, 1 / n
        for epsilon in EPSILONS:
            z = subsampled.without_replacement_noise_multiplier(epsilon, delta, n, m, 2 * T) / math.sqrt(2)
            proved = subsampled.without_replacement_epsilon(z, delta, n, m, T)
            attained = attained_among_equal_rows(z, m / n, T, delta)
            yield Case(f"{name}, m = {m:,}, T = {T}, ε = {epsilon:g}", epsilon, attained, proved)


def attained_among_equal_rows(z: float, rate: float, T: int, delta: float) -> float:
    """ε of T Gaussian releases on subsets when all rows are equal and one is replaced.

    The output is N(0, z²) against the mixture (1 - rate) N(0, z²) + rate N(1, z²), whichever rows are drawn.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_gaussian_mechanism(
        z,
        sampling_prob=rate,
        value_discretization_interval=2e-5,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )
    return one.self_compose(T).get_epsilon_for_delta(delta)


def missing_square_of_n() -> Iterator[Case]:
    """cubic-newton's Algorithm 2 as printed: the deviation is n times that of Theorem 4.2, so ρ/n² is spent."""
    for n in (10_000, 45_222):
        delta = n**-2
        for epsilon in (1.0, 10.0):
            has = gaussian_epsilon(math.sqrt(2 * zcdp.rho(epsilon, delta, "bs16")) / n, delta)
            yield Case(f"n = {n:,}, ε = {epsilon:g}", epsilon, has, has)


def half_of_two_minimisers() -> Iterator[Case]:
    """aop's output: noise for nγ/Λ, two γ-approximate minima are up to 2nγ/Λ apart; ε_out = 0.01ε, δ_out = 0.01δ."""
    for n in (10_000, 45_222):
        delta = 0.01 * n**-2
        for epsilon in (1.0, 10.0):
            stated = 0.01 * epsilon
            has = gaussian_epsilon(2 * stated / (1 + math.sqrt(-2 * math.log(delta))), delta)
            yield Case(f"n = {n:,}, ε = {epsilon:g}: the output's share", stated, has, has)


def half_of_two_points() -> Iterator[Case]:
    """o2nc-naive: σ = dL/(Bρ) where the two-point estimate has sensitivity 2dL/B; every point is used once."""
    delta = 1e-6
    for rho in (0.1, 1.0):
        has = gaussian_epsilon(2 * rho, delta)
        yield Case(f"ρ = {rho:g}, δ = 1e-6", gaussian_epsilon(rho, delta), has, has)


CASES = (
    laplace_as_deviation,
    half_scale_selection,
    deviation_without_constant,
    rows_beyond_the_bound,
    one_subset_for_two_releases,
    missing_square_of_n,
    half_of_two_minimisers,
    half_of_two_points,
)


def entries() -> list[Erratum]:
    """All of them: the words of errata.toml, each with its function."""
    words = toml.read(resources.files(__package__) / "errata.toml")
    return [Erratum(name=one.__name__, cases=one, **words[one.__name__]) for one in CASES]


def computed() -> list[tuple[Erratum, list[Case] | str]]:
    """Every entry with its cases, or a line that says which data it needs."""
    found = []
    for one in entries():
        try:
            found.append((one, list(one.cases())))
        except NotAtHand as error:
            found.append((one, str(error)))
    return found
