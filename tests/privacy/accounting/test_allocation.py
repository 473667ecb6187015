"""Random allocation: the exact ε of an epoch against quadrature, simulation and published numbers; its sampler."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpbench.algorithms.base import AuditCase
from dpbench.auditing import runs
from dpbench.errors import PrivacyError
from dpbench.privacy.accounting import loss_distribution
from dpbench.privacy.accounting.allocation import WRAPPED, _sum, likelihood_ratio
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Allocated, CountedRelease, Gaussian, Poisson, Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.verify import spent
from tests.auditing.releases import weakened

BUDGET = Budget(1.0, 1e-6, Relation.ADD_REMOVE, "tight")


def epsilon(z: float, steps: int, epochs: int = 1, delta: float = 1e-6) -> float:
    value = loss_distribution.epsilon_of(((Allocated(steps, Gaussian(z)), epochs),), delta)
    assert value is not None
    return value


def deltas(z: float, steps: int, at: float) -> tuple[float, float]:
    """δ(at) with the row removed and added, from above."""
    pair = likelihood_ratio(steps, z)
    assert pair is not None
    removed = np.maximum(pair.ratios - math.exp(at), 0) @ pair.masses + pair.removed
    return float(removed), float(np.maximum(1 - math.exp(at) * pair.ratios, 0) @ pair.masses + pair.added)


@pytest.mark.parametrize(
    ("z", "steps", "published"),
    # Lower and upper bounds of another implementation, δ = 1e-6, the row removed.
    [(1.0, 100, (0.8579, 0.8581)), (1.0, 1000, (0.1709, 0.1726)), (2.0, 100, (0.2049, 0.2050))],
)
def test_one_epoch_costs_what_was_computed_elsewhere(z, steps, published):
    assert published[0] <= epsilon(z, steps) <= published[1] + 1e-4


@pytest.mark.parametrize("z", [1.0, 2.0])
def test_two_steps_are_those_of_the_integral(z):
    s = 1 / z

    def over(y: float, k: float) -> tuple[float, float]:
        """E(y + Y - k)⁺ and E(k - y - Y)⁺: prices of a call and a put."""
        if y >= k:
            return y + 1 - k, 0.0
        d = -math.log(k - y) / s - s / 2
        call = norm.cdf(d + s) - (k - y) * norm.cdf(d)
        return call, call - (1 - (k - y))

    def expected(at: float, added: bool) -> float:
        factor = math.exp(at)
        k = 2 * math.exp(-at) if added else 2 * factor
        scale = factor / 2 if added else 0.5
        density = lambda x: norm.pdf(x) * over(math.exp(s * x - s * s / 2), k)[added]  # noqa: E731
        edge = (math.log(k) + s * s / 2) / s  # where y = k
        return scale * sum(quad(density, *ends, epsabs=1e-13)[0] for ends in ((-12, edge), (edge, 12)))

    for at in (0.3, 1.0, 2.0):
        for ours, exact in zip(deltas(z, 2, at), (expected(at, False), expected(at, True)), strict=True):
            assert exact * (1 - 1e-9) <= ours <= exact * 1.01 + 1e-12


def test_the_profile_is_that_of_a_simulation():
    draws = np.random.default_rng(1)
    ratios = np.concatenate(
        [np.exp(draws.standard_normal((20_000, 50)) / 1.5 - 0.5 / 2.25).mean(axis=1) for _ in range(10)]
    )
    for ours, each in zip(
        deltas(1.5, 50, 0.1),
        (np.maximum(ratios - math.exp(0.1), 0), np.maximum(1 - math.exp(0.1) * ratios, 0)),
        strict=True,
    ):
        assert abs(ours - each.mean()) < 5 * each.std() / math.sqrt(len(each))


def test_a_sum_is_never_above_the_exact_one_and_as_sharp_as_its_bound():
    masses = np.random.default_rng(0).dirichlet(np.full(20, 0.3)) * np.geomspace(1, 1e-9, 20)
    masses /= masses.sum()
    exact = np.array([1.0], dtype=np.longdouble)
    for _ in range(7):
        exact = np.convolve(exact, masses.astype(np.longdouble))
    for tilt in (0.0, 0.1):
        ours = _sum(masses, 7, 0, 256, tilt)[: len(exact)]
        assert (ours <= exact * (1 + 1e-12)).all()
        assert ours.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("z", "steps", "epochs"), [(1.5, 20, 1), (2.0, 50, 20), (10.0, 50, 20), (3.0, 2, 5)])
def test_the_second_route_agrees_from_below(z, steps, epochs):
    ours = epsilon(z, steps, epochs)
    second = spent((CountedRelease(Allocated(steps, Gaussian(z)), epochs, ""),), 1e-6, Relation.ADD_REMOVE).epsilon
    assert ours * (1 - 5e-4) <= second <= ours * (1 + 2e-5)


@pytest.mark.parametrize(("z", "steps"), [(4.0, 10), (4.0, 100)])
def test_what_the_transform_may_hide_counts_as_an_infinite_loss(z, steps):
    """Beside the mass that is missing: what wraps around the window, and eight roundings of each of the steps."""
    pair = likelihood_ratio(steps, z)
    hidden = WRAPPED + 8 * steps * 2.0**-52
    for said, there in ((pair.removed, pair.ratios @ pair.masses), (pair.added, pair.masses.sum())):
        assert said == pytest.approx(max(0.0, 1 - float(there)) + hidden, rel=0, abs=hidden / 2)  # sums round


@pytest.mark.thorough_for("5-1.0-0.001")
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
@pytest.mark.parametrize("z", [1.0, 2.0, 8.0])
@pytest.mark.parametrize("steps", [5, 100])
def test_it_costs_less_than_poisson_samples_at_equal_noise(z, steps, delta):
    for epochs in (1, 10):
        poisson = loss_distribution.epsilon_of(((Poisson(1 / steps, Gaussian(z)), epochs * steps),), delta)
        assert epsilon(z, steps, epochs, delta) < poisson


def test_little_noise_costs_what_a_release_on_all_rows_does():
    assert epsilon(0.5, 100) == pytest.approx(loss_distribution.epsilon_of(((Gaussian(0.5), 1),), 1e-6), rel=1e-9)


def test_an_epoch_hands_out_each_row_once_and_is_one_entry_of_the_ledger():
    m = Mechanisms(["a", "b"], BUDGET)
    sampler = m.allocation(30, 4, "g")
    z = sampler.noise_multiplier(9)
    epochs = []
    for _ in range(9):
        batches = sampler.draw()
        epochs.append(batches[0])
        sampler.gaussian(np.zeros((2, 3)), sensitivity=1.0, noise_multiplier=z)
    for first in (0, 4):
        np.testing.assert_array_equal(np.sort(np.concatenate(epochs[first : first + 4])), np.arange(30))
    assert any(not np.array_equal(a, b) for a, b in zip(epochs[:4], epochs[4:8], strict=True))
    (entry,) = m.ledger.of(0)
    assert entry.count == 3  # two epochs, and one that was begun
    assert epsilon(z, 4, 3) == pytest.approx(1.0, abs=1e-4)


def test_places_are_uniform_and_drawn_anew():
    m = Mechanisms(["a"], BUDGET)
    sampler = m.allocation(20_000, 5, "g")
    sizes = [len(sampler.draw()[0]) for _ in range(10)]
    assert abs(np.array(sizes) - 4000).max() < 5 * math.sqrt(20_000 * 0.2 * 0.8)


def test_wrong_use_is_refused_in_a_line():
    m = Mechanisms(["a"], BUDGET)
    sampler = m.allocation(30, 4, "g")
    with pytest.raises(PrivacyError, match="fresh draw"):
        sampler.gaussian(np.zeros((1, 3)), sensitivity=1.0, noise_multiplier=2.0)
    for z in (2.0, 3.0):
        sampler.draw()
        if z == 3.0:
            with pytest.raises(PrivacyError, match="one noise multiplier"):
                sampler.gaussian(np.zeros((1, 3)), sensitivity=1.0, noise_multiplier=z)
        else:
            sampler.gaussian(np.zeros((1, 3)), sensitivity=1.0, noise_multiplier=z)
    with pytest.raises(PrivacyError, match="steps must be at least 2"):
        m.allocation(30, 1, "g")
    with pytest.raises(PrivacyError, match="replace-one"):
        Mechanisms(["a"], Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")).allocation(30, 4, "g")
    with pytest.raises(PrivacyError, match=r"delta = 1e-12.*take Poisson samples"):
        Mechanisms(["a"], Budget(1.0, 1e-12, Relation.ADD_REMOVE, "tight")).allocation(30, 4, "g")
    with pytest.raises(PrivacyError, match=r"does not compose|not known"):
        Mechanisms(["a"], Budget(1.0, 1e-6, Relation.ADD_REMOVE, "rdp")).allocation(30, 4, "g").noise_multiplier(4)


@pytest.mark.thorough
def test_the_audit_of_a_run_passes_and_notices_half_of_the_noise():
    case = AuditCase({"T": 4, "rate": 0.25, "batches": "allocated"}, accounting="tight")
    sound = runs.audit("dp-sgd", 1.0, case=case, papers=True, runs=4000)
    assert sound.passed, sound
    with weakened(0.5):
        assert not runs.audit("dp-sgd", 1.0, case=case, papers=True, runs=4000).passed
