"""The calibrators' loss distributions against dp_accounting's: one rare large loss, huge ones, selections."""

import mpmath
import numpy as np
import pytest

from dpbench.privacy.accounting import loss_distribution
from dpbench.privacy.accounting.tight import Tight
from dpbench.privacy.ledger import (
    Allocated,
    BoundedRange,
    CountedRelease,
    Gaussian,
    Laplace,
    Poisson,
    PoissonReplaced,
    PureDP,
    Relation,
    Sketch,
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


ALONE = [
    Gaussian(1.0), Gaussian(4.0), Sketch(50, 0.2, 1e-9), Sketch(3, 0.9, 1e-9), Poisson(0.1, Gaussian(0.8)),
    Poisson(1.0, Gaussian(2.0)), PoissonReplaced(0.1, Gaussian(0.8)), WithoutReplacement(100, 10, Gaussian(0.8)),
    Laplace(1.0), BoundedRange(1.0), PureDP(1.0), Allocated(10, Gaussian(1.5)),
]  # fmt: skip


@pytest.mark.parametrize("release", ALONE, ids=str)
@pytest.mark.parametrize("added", [False, True])
def test_each_bin_has_the_masses_whose_ratio_is_its_loss(release, added):
    """By the definition: ln(P/Q) of what falls into a bin lies between its edges, and all that happens is in one."""
    edges = np.linspace(-12, 12, 481)
    p, q = loss_distribution._bins(release, edges, added)
    seen = (p > 1e-12) & (q > 1e-12)
    loss = np.log(p[seen] / q[seen])
    assert (loss >= edges[:-1][seen] - 1e-9).all()
    assert (loss <= edges[1:][seen] + 1e-9).all()
    assert (p.sum(), q.sum()) == (pytest.approx(1, abs=1e-5), pytest.approx(1, abs=1e-5))


@pytest.mark.parametrize(("rate", "z"), [(0.1, 2.0), (0.9, 0.5), (1.0, 1.0)])
def test_the_inverse_of_a_replaced_samples_loss_is_that_of_multiple_precision(rate, z):
    halves = np.array([1e-6, 0.5, 10.0, 19.0, 21.0, 300.0])
    factor = (1 / mpmath.mpf(rate) - 1) * mpmath.exp(mpmath.mpf(1) / (8 * z * z))
    exact = [float(mpmath.asinh(factor * mpmath.sinh(half))) for half in halves]
    np.testing.assert_allclose(loss_distribution._bent(rate, z, halves), exact, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(loss_distribution._bent(rate, z, -halves), -loss_distribution._bent(rate, z, halves))
