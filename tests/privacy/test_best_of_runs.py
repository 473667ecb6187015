"""The best of a random number of runs: the bound against the law it bounds, against dp_accounting, and mutants."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpbench.errors import PrivacyError
from dpbench.privacy.accounting import renyi
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import (
    BestOfRuns,
    CountedRelease,
    Gaussian,
    Laplace,
    PureDP,
    Relation,
    WithoutReplacement,
    scaled,
)
from dpbench.privacy.verify import spent

ORDERS = np.concatenate([np.arange(12, 110) / 10, np.arange(11, 200)])
EDGES = np.linspace(-8, 9, 600)


def winner(shift, z, law, mean):
    """Probabilities of the least bin of K draws of N(shift, z²), K random; last: no draw."""
    above = norm.sf(EDGES * z, shift, z)  # P(score > edge); the best is the lowest
    above = np.concatenate([[1.0], above, [0.0]])
    if law == "poisson":
        generating = np.exp(mean * (above - 1))  # E[P(all above)] = E[p^K]
        return np.append(-np.diff(generating), math.exp(-mean))
    p = 1 / mean
    return -np.diff(p * above / (1 - (1 - p) * above))


def divergence(P, Q, order):
    there = (P > 1e-11) & (Q > 1e-11)  # below, differences of the generating function have no digits
    logs = order * np.log(P[there]) + (1 - order) * np.log(Q[there])
    return np.logaddexp.reduce(logs) / (order - 1)


@pytest.mark.parametrize("law", ["poisson", "geometric"])
@pytest.mark.parametrize(("z", "mean"), [(2.0, 3.0), (6.0, 6.0), (6.0, 30.0)])
def test_the_bound_is_above_the_law_and_one_run_alone_is_not(law, z, mean):
    found = renyi.best_of_runs_cumulant(((Gaussian(z), 1),), law, mean, ORDERS) / (ORDERS - 1)
    one = renyi.gaussian_cumulant(z, ORDERS) / (ORDERS - 1)
    P, Q = winner(0.0, z, law, mean), winner(1.0, z, law, mean)
    assert P.sum() == pytest.approx(1, abs=1e-9)
    orders = [i for i, order in enumerate(ORDERS) if order in (1.5, 2.0, 4.0, 8.0, 16.0)]
    true = np.array([max(divergence(P, Q, ORDERS[i]), divergence(Q, P, ORDERS[i])) for i in orders])
    assert (true <= found[orders] * (1 + 1e-6)).all()
    assert (true > one[orders]).any()  # the price of the search is not nothing: leaving it out would be seen


def test_pure_runs_cost_three_times_one():
    epsilon, mean = 0.4, 1e4
    x = np.linspace(-40, 41, 20001)  # a score with Laplace noise of scale 1/ε, sensitivity 1: the lowest wins

    def density(shift):
        q = np.exp(-epsilon * abs(x - shift))
        above = np.where(x < shift, 1 - 0.5 * np.exp(epsilon * (x - shift)), 0.5 * np.exp(-epsilon * (x - shift)))
        return q / (1 - (1 - 1 / mean) * above) ** 2  # E[K above^{K-1}]

    loss = np.abs(np.log(density(0.0) / density(1.0))).max()
    assert 2 * epsilon < loss <= 3 * epsilon
    event = BestOfRuns(((Laplace(1 / epsilon), 1),), "geometric", mean)
    budget = Budget(1.2, 0.0, Relation.REPLACE_ONE, "pure")
    assert budget.epsilon_of((CountedRelease(event, 1, "x"),)) == pytest.approx(3 * epsilon)
    assert spent((CountedRelease(event, 1, "x"),), 0.0, Relation.REPLACE_ONE).epsilon == pytest.approx(3 * epsilon)


@pytest.mark.parametrize("law", ["poisson", "geometric"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_two_routes_agree(law, epsilon):
    budget = Budget(epsilon, 1e-8, Relation.REPLACE_ONE, "tight")
    plan = BestOfRuns(((Gaussian(1.0), 3), (Gaussian(2.0), 1)), law, 6.0)
    scale = budget.noise_scale(((plan, 1),), share=0.9995)
    composition = (CountedRelease(scaled(plan, scale), 1, "x"),)
    found = spent(composition, 1e-8, Relation.REPLACE_ONE)
    assert 0.99 * epsilon < found.epsilon <= epsilon
    assert found.epsilon == pytest.approx(budget.epsilon_of(composition), rel=2e-3)
    assert spent((CountedRelease(scaled(plan, scale / 2), 1, "x"),), 1e-8, Relation.REPLACE_ONE).epsilon > 1.5 * epsilon


def test_what_it_takes_and_says():
    event = BestOfRuns(((Gaussian(5.0), 30), (Gaussian(9.0), 1)), "poisson", 6)
    assert str(event).startswith("best of a random number of runs (poisson, mean 6) of: 30 of Gaussian")
    for wrong in ((((), "poisson", 6.0)), (((PureDP(1.0), 1),), "uniform", 6.0), (((PureDP(1.0), 1),), "poisson", 1.0)):
        with pytest.raises(PrivacyError, match="BestOfRuns"):
            BestOfRuns(*wrong)
    sampled = BestOfRuns(((WithoutReplacement(100, 10, Gaussian(3.0)), 1),), "poisson", 6.0)
    with pytest.raises(PrivacyError, match="not known within"):
        spent((CountedRelease(sampled, 1, "x"),), 1e-8, Relation.REPLACE_ONE)
