"""Lower bounds on the ε of the published selection of greedy_coordinate, attained by neighbours."""

from __future__ import annotations

import math


def attained_by_ties(each: float, d: int, T: int, delta: float) -> float:
    """ε of T selections that see whether d-1 other scores are all cut off, and T Laplace releases.

    `each` = sensitivity over the Laplace scale. On one data set each of the others lies t noise scales below the cut,
    on the other t - each: they are all cut with probability F(t)^(d-1) or F(t - each)^(d-1), F the distribution
    function of unit Laplace noise. The largest over some t. With steps so small that nothing moves, T selections are
    independent.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld
    from scipy.stats import laplace

    most = 0.0
    for chance in (0.004, 0.006, 0.008, 0.01, 0.013, 0.017, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5):
        t = laplace.ppf(chance ** (1 / (d - 1)))
        p, q = (float(laplace.cdf(x)) ** (d - 1) for x in (t, t - each))
        rare = abs(math.log((1 - p) / (1 - q)))
        down = {"value_discretization_interval": min(math.log(p / q), rare) / 64, "pessimistic_estimate": False}
        often, seldom = ({1: math.log(x), 0: math.log1p(-x)} for x in (p, q))
        ties = pld.from_two_probability_mass_functions(seldom, often, **down).self_compose(T)
        steps = pld.from_laplace_mechanism(1 / each, use_connect_dots=False, **down).self_compose(T)
        both = ties.compose(steps)
        if both.get_delta_for_epsilon(most) > delta:  # else no more than another t: ε takes longer to find than δ
            most = float(both.get_epsilon_for_delta(delta))
    return most


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
    return float(steps.self_compose(T).compose(selections.self_compose(T)).get_epsilon_for_delta(delta))
