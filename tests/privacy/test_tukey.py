"""The draw by depth: its law cell by cell, and what pairs of data sets could lose, enumerated without the code."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpbench.auditing import noise
from dpbench.auditing.transcript import Recorder
from dpbench.privacy import tukey
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import CountedRelease, DrawAfterTest, Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.verify import spent


class Cells:
    """The plane cut at all coordinates of all points given: on a cell every depth is one number."""

    def __init__(self, *sets):
        axes = [np.unique(np.concatenate([points[:, j] for points in sets])) for j in range(sets[0].shape[1])]
        self.centres = np.array(list(itertools.product(*[(a[1:] + a[:-1]) / 2 for a in axes])))
        self.volumes = np.prod(list(itertools.product(*[np.diff(a) for a in axes])), axis=1)

    def depths(self, points):
        found = []
        for y in self.centres:
            found.append(min(min((points[:, j] <= v).sum(), (points[:, j] >= v).sum()) for j, v in enumerate(y)))
        return np.array(found)

    def law(self, points, exponent):
        """The probability of each cell, by the definition."""
        depths = self.depths(points)
        weights = self.volumes * np.exp(exponent * depths) * (depths >= len(points) // 4)
        return weights / weights.sum() if weights.sum() else weights

    def distance(self, points, exponent, leak):
        """By the definition, with V_i summed over cells."""
        m, depths = len(points), self.depths(points)
        t, half = m // 4, m // 2
        V = {i: self.volumes[depths >= i].sum() for i in range(1, half + 1)}
        for k in itertools.count():
            able = any(
                t - 2 - k >= 1
                and t + g + 1 + k <= half
                and V[t + g + 1 + k] > 0
                and V[t - 2 - k] / V[t + g + 1 + k] * math.exp(-exponent * g) <= leak
                for g in range(1, half)
            )
            if not able:
                return k


def lost(one, other, cells, event, epsilon):
    """δ at ε of (noisy distance, point): the hockey-stick divergence, by quadrature over the noise alone."""
    laws = [cells.law(points, event.exponent) for points in (one, other)]
    at = [cells.distance(points, event.exponent, event.leak) for points in (one, other)]
    bar = -math.log(2 * event.failure) / event.test
    total = 0.0
    ends = sorted({-60.0, *map(float, at), bar, 80.0})
    for low, high in itertools.pairwise(ends):
        x = np.linspace(low, high, 400)
        x = (x[1:] + x[:-1]) / 2
        p, q = (event.test / 2 * np.exp(-event.test * abs(x - k)) * (high - low) / 399 for k in at)
        if low < bar:
            total += np.maximum(p - math.exp(epsilon) * q, 0).sum()
        else:
            total += np.maximum(p[:, None] * laws[0] - math.exp(epsilon) * q[:, None] * laws[1], 0).sum()
    return total


def sets(seed, m, d):
    """m points and the same with one replaced: near, far, at an end of the others, or doubling one of them."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((m, d)) * rng.choice([1.0, 0.2, 5.0]) ** rng.uniform(0, 1, (m, 1))
    other = points.copy()
    row = rng.choice([int(points[:, 0].argmax()), int(points[:, 0].argmin()), int(rng.integers(m))])
    ends = [points.min(axis=0) - 0.1, points.max(axis=0) + 1, rng.standard_normal(d), -3 * points[row]]
    other[row] = ends[rng.integers(4)]
    return points, other


EVENTS = {16: DrawAfterTest(3.0, 2.5, 0.02, 0.05), 24: DrawAfterTest(2.0, 1.5, 0.02, 0.05)}


@pytest.mark.parametrize("m", [16, 24])
def test_no_pair_of_neighbours_loses_more_than_both_routes_say(m):
    event, passing, halfway = EVENTS[m], 0, 0.0
    delta = max(event.failure, event.leak)
    epsilon = spent((CountedRelease(event, 1, "m"),), delta, Relation.REPLACE_ONE).epsilon
    assert epsilon <= event.test + 2 * event.exponent + event.leak
    for seed in range(60):
        one, other = sets(seed, m, 1)
        cells = Cells(one, other)
        passing += cells.distance(one, event.exponent, event.leak) > 0
        found = max(lost(one, other, cells, event, epsilon), lost(other, one, cells, event, epsilon))
        halfway = max(halfway, lost(one, other, cells, event, 0.4 * epsilon))
        assert found <= delta * (1 + 1e-3)
    assert passing > 10
    assert halfway > delta  # the pairs are near enough to the worst to see a claim that is too small


def test_without_the_second_exponent_some_pair_loses_too_much():
    """A replaced row swaps a model: densities move by e^{2ε₁}, where e^{ε₁} would be claimed for e^{ε₁·depth}."""
    event = EVENTS[24]
    claimed = event.exponent + event.leak
    beyond = 0
    for seed in range(60):
        one, other = sets(seed, 24, 1)
        cells = Cells(one, other)
        p, q = (cells.law(points, event.exponent) for points in (one, other))
        if cells.distance(one, event.exponent, event.leak):
            beyond += np.maximum(p - math.exp(claimed) * q, 0).sum() > event.leak
    assert beyond > 0


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("m", [12, 15, 16, 24])
def test_distance_and_density_are_those_of_the_definition(m, d):
    exponent, leak = 3.0, 0.1
    for seed in range(4):
        points, _ = sets(seed, m, d)
        cells = Cells(points)
        volumes = tukey.log_widths(points).sum(axis=1)
        assert tukey.distance(volumes, m, exponent, leak) == cells.distance(points, exponent, leak)
        density = tukey.log_density(np.tile(points, (len(cells.centres), 1, 1)), cells.centres, exponent)
        np.testing.assert_allclose(np.exp(density) * cells.volumes, cells.law(points, exponent), atol=1e-12)


def test_the_distance_of_neighbours_differs_by_one_at_most_and_is_not_always_zero():
    found = set()
    for seed in range(300):
        pair = sets(seed, 60, 2)
        at = [tukey.distance(tukey.log_widths(points).sum(axis=1), 60, 3.0, 0.1) for points in pair]
        assert abs(at[0] - at[1]) <= 1
        found |= {*at}
    assert len(found) > 3


@pytest.mark.parametrize("m", [13, 16])
def test_points_are_drawn_by_that_law(m):
    points, _ = sets(3, m, 2)
    k = 10_000
    mechanisms = Mechanisms([f"t/{i}" for i in range(k)], Budget(8.0, 0.01, Relation.REPLACE_ONE, "tight"))
    event = DrawAfterTest(50.0, 0.7, 0.499, 0.4)  # its test passes wherever there is a draw
    mechanisms.releases.noisy = lambda value, scale, noise, own=mechanisms.releases.noisy: (
        np.full_like(value, 10.0) if noise.name == "laplace" else own(value, scale, noise)
    )
    drawn, passed = mechanisms.deep_point(np.tile(points, (k, 1, 1)), event, "m")
    assert passed.all()
    cells = Cells(points)
    sides = [np.unique(points[:, j]) for j in range(2)]
    cell = np.searchsorted(sides[0], drawn[:, 0]) - 1
    cell = cell * (len(sides[1]) - 1) + np.searchsorted(sides[1], drawn[:, 1]) - 1
    law = cells.law(points, 0.7)
    counts = np.bincount(cell, minlength=len(law))
    assert not counts[law == 0].any()
    kept = law * k > 5
    expected = np.append(law[kept], law[~kept].sum()) * k
    observed = np.append(counts[kept], counts[~kept].sum())
    keep = expected > 0
    assert stats.chisquare(observed[keep], expected[keep]).pvalue > 1e-4
    within = (drawn[:, 0] - sides[0][0]) / np.ptp(sides[0])
    assert 0 < within.min() < within.max() < 1


def test_the_test_has_its_noise_and_its_threshold():
    k, event = 10_000, DrawAfterTest(0.5, 0.1, 0.03, 1e-9)
    mechanisms = Mechanisms([f"p/{i}" for i in range(k)], Budget(1.0, 0.05, Relation.REPLACE_ONE, "tight"))
    points = np.linspace(-1, 1, 16)[:, None]  # at distance 0: the leak is too small for so few
    drawn, passed = mechanisms.deep_point(np.tile(points, (k, 1, 1)), event, "m")
    assert stats.binomtest(int(passed.sum()), k, event.failure).pvalue > 1e-4
    assert (drawn[~passed] == 0).all()
    assert (drawn[passed] != 0).all()
    assert mechanisms.ledger.of(0)[0].release == event


@pytest.mark.parametrize(("factor", "told"), [(1.0, ""), (0.5, "deeper or less deep than their law")])
def test_an_audit_sees_that_a_draw_is_not_of_its_law(factor, told):
    """With halved Gumbel noise, which is twice the exponent; the noise of the test is left as it is."""
    budget = Budget(8.0, 0.01, Relation.REPLACE_ONE, "tight")
    run = Recorder(800, budget, 0)
    run.releases.noise = [Weaker(each, factor) for each in run.releases.noise]
    run.deep_point(np.tile(np.linspace(-1, 1, 60)[:, None], (800, 1, 1)), DrawAfterTest(4.0, 0.4, 0.4, 0.4), "m")
    found = noise.fault(run)
    assert told in found
    assert bool(found) == bool(told)


class Weaker:
    """A generator whose Gumbel noise alone is `factor` times what it should be."""

    def __init__(self, generator, factor):
        self.generator, self.factor = generator, factor

    def gumbel(self, size):
        return self.factor * self.generator.gumbel(size=size)

    def __getattr__(self, name):
        return getattr(self.generator, name)
