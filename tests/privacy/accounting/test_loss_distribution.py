"""The calibrators' loss distributions against dp_accounting's: one rare large loss, huge ones, selections."""

import numpy as np
import pytest

from dpbench.privacy.accounting import loss_distribution
from dpbench.privacy.accounting.tight import Tight
from dpbench.privacy.ledger import (
    CountedRelease,
    Gaussian,
    Laplace,
    Poisson,
    PureDP,
    Relation,
    WithoutReplacement,
    scaled,
)
from dpbench.privacy.verify import spent

ONE_ROW = [(WithoutReplacement(n, 1, Gaussian(z)), T) for n, z, T in ((800, 0.5, 1), (800, 1, 1), (1000, 0.93, 300))]


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "count"), [*ONE_ROW, (Poisson(1e-3, Gaussian(0.5)), 5)])
@pytest.mark.parametrize("delta", [1.5e-6, 4e-10])
def test_rare_large_losses(release, count, delta):
    relation = Relation.ADD_REMOVE if isinstance(release, Poisson) else Relation.REPLACE_ONE
    second = spent((CountedRelease(release, count, ""),), delta, relation)
    assert second.checked_by == "dp_accounting PLD"
    assert loss_distribution.epsilon_of(((release, count),), delta) == pytest.approx(second.epsilon, rel=2e-4)


@pytest.mark.filterwarnings("error")
def test_losses_beyond_the_range_of_exp():
    # Ten releases whose loss is 200 or -200: δ is reached at the sum of all ten.
    found = loss_distribution.epsilon_of(((PureDP(200.0), 10),), 1e-6)
    assert found == pytest.approx(2000, rel=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_samples_of_losses_beyond_the_range_of_exp(rate):
    """z = 0.01: losses of about 1/(2z²) = 5,000; a sample of half the rows has log 2 less."""
    found = loss_distribution.epsilon_of(((Poisson(rate, Gaussian(0.01)), 1),), 1e-6)
    whole = loss_distribution.epsilon_of(((Gaussian(0.01), 1),), 1e-6)
    assert found == pytest.approx(whole, rel=0.03)


@pytest.mark.parametrize("T", [2, 3, 5, 7, 10, 15])
def test_selections_are_within_the_budget_by_both_routes(T):
    plan = ((Laplace(1.0), T), (PureDP(1.0), T))
    z = Tight().noise_scale(plan, (), 1.0, 2600.0**-2)
    entries = tuple(CountedRelease(scaled(release, z), T, str(release)) for release, _ in plan)
    epsilon = spent(entries, 2600.0**-2, Relation.REPLACE_ONE).epsilon
    assert 0.999 < epsilon <= 1 + 1e-6, np.round(epsilon, 5)
