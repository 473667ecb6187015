"""Objective perturbation of other convex losses, and under add/remove: known numbers, true mechanisms, two routes."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from dpbench.privacy import Budget, Relation, verify
from dpbench.privacy.accounting import objective_perturbation as ours
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.ledger import ConvexPerturbation, Entry, Gaussian, LogisticPerturbation, scaled
from tests.privacy.laws import log_normal_density

DELTA = 45_222**-2.0
ADDED, REPLACED = Relation.ADD_REMOVE, Relation.REPLACE_ONE


@pytest.mark.parametrize(("epsilon", "known"), [(0.1, 114.1), (1.0, 12.72), (10.0, 1.485)])
def test_any_loss_at_the_published_split(epsilon, known):
    """In units of L₀; Λ = β/(e^J - 1) with the J of Iyengar et al. (2019)."""
    kept = max(min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99), 1 - 1 / epsilon + 0.001)
    event = ConvexPerturbation(1.0, math.expm1(0.99 * epsilon * (1 - kept)))
    sigma = 2 * ours.noise_scale(((event, 1),), (), 0.99 * epsilon, 0.99 * DELTA)
    assert sigma == pytest.approx(known, rel=5e-4)
    one = ConvexPerturbation(1.0, event.curvature, ADDED)
    assert ours.noise_scale(((one, 1),), (), 0.99 * epsilon, 0.99 * DELTA) == pytest.approx(sigma / 2, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_under_add_remove_the_logistic_jacobian_is_free_at_half_the_ridge(epsilon):
    gaussian, free = 1 / gaussian_mu(epsilon, DELTA), ours.free_curvature(epsilon, DELTA, ADDED)
    found, twice = (
        ours.noise_scale(((LogisticPerturbation(1.0, k * free, ADDED), 1),), (), epsilon, DELTA) for k in (1, 2)
    )
    assert gaussian <= found <= gaussian * (1 + 2e-4)
    assert twice > 1.01 * gaussian
    assert ours.free_curvature(epsilon, DELTA) == pytest.approx((epsilon / 2 + (gaussian**-2) / 4) / 4)


def logistic(theta, u):
    p = expit(-u * theta)
    return -p * u, p * (1 - p) * u**2


def pseudo_huber(theta, row):
    x, y = row
    r = theta * x - y
    return x * r / math.sqrt(1 + r * r), x * x * (1 + r * r) ** -1.5


def true_delta(loss, s, ridge, rows, one, other, epsilon):
    """δ of the minimiser in one dimension, from its densities on `rows` with `one` and with `other` beside them."""

    def log_density(theta, data):
        slopes, bends = np.sum([loss(theta, row) for row in data], axis=0) if data else (0.0, 0.0)
        return log_normal_density(slopes + ridge * theta, s) + math.log(ridge + bends)

    def excess(theta):
        a, b = log_density(theta, rows + one), log_density(theta, rows + other)
        return max(0.0, math.exp(a) - math.exp(epsilon + b))

    reach = (8 * s + len(rows) + 1) / ridge
    return quad(excess, -reach, reach, limit=1000, points=np.linspace(-reach, reach, 41)[1:-1])[0]


FAR = 1e4  # a label whose row's gradient is 1 everywhere that matters


@pytest.mark.parametrize("rows", [[], [(1.0, 0.0), (0.5, -3.0)]])
@pytest.mark.parametrize("pair", [((1.0, FAR), (1.0, -FAR)), ((1.0, FAR), (1.0, 0.3)), ((0.0, 0.0), (1.0, 0.0))])
def test_no_pseudo_huber_regression_costs_more(rows, pair):
    z, curvature, epsilon = 0.6, 0.3, 0.4
    one, other = ([row] for row in pair)
    for a, b in ((one, other), (other, one)):
        bound = ours.delta_of(ConvexPerturbation(z, curvature), 0.0, epsilon)
        found = true_delta(pseudo_huber, 2 * z, 1 / curvature, rows, a, b, epsilon)
        assert 0 <= found <= bound
        if abs(pair[1][1]) == FAR:  # one sign of the two, without the Jacobian
            assert found == pytest.approx(_gaussian(1 / z, epsilon), rel=1e-3)


def _gaussian(mu, epsilon):
    return norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)


@pytest.mark.parametrize(("loss", "row"), [(logistic, 1.0), (logistic, -0.4), (pseudo_huber, (1.0, FAR))])
@pytest.mark.parametrize("shared", [0, 5])
def test_no_added_or_removed_row_costs_more(loss, row, shared):
    z, epsilon = 0.8, 0.3
    ridge, event = (2.0, LogisticPerturbation) if loss is logistic else (4.0, ConvexPerturbation)
    bound = ours.delta_of(event(z, (0.25 if loss is logistic else 1.0) / ridge, ADDED), 0.0, epsilon)
    rows = [(-1.0 if loss is logistic else (1.0, -FAR))] * shared
    found = [true_delta(loss, z, ridge, rows, *pair, epsilon) for pair in (([row], []), ([], [row]))]
    assert max(found) <= bound
    if row in (1.0, (1.0, FAR)) and shared:
        assert max(found) > 0.4 * bound


EVENTS = [ConvexPerturbation(5.6, 0.1), ConvexPerturbation(1.0, 0.5, ADDED), LogisticPerturbation(1.0, 0.5, ADDED)]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(("mu", "delta"), [(0.01, DELTA), (0.2, 1e-3)])
def test_two_routes_agree(event, mu, delta):
    entries = (Entry(event, 1, "b"), Entry(Gaussian(1 / mu), 1, "output"))
    second = verify.spent(entries, delta, event.relation)
    first = Budget(1.0, delta, event.relation, "tight").epsilon_of(entries)
    assert second.epsilon == pytest.approx(first, rel=1e-3)
    assert "half-planes" in second.checked_by


@pytest.mark.parametrize("cosine", [-1.0, -0.9, 0.0, 0.6])
def test_simulated_losses_at_any_angle_are_within_the_bound(cosine):
    rng, z, curvature, epsilon = np.random.default_rng(0), 0.7, 0.2, 1.0
    b, s = rng.standard_normal((200_000, 2)), 0.5 / z
    u, v = np.array([1.0, 0.0]), np.array([cosine, math.sqrt(1 - cosine**2)])
    shifts = [s * (p * u - q * v) for p in (-1, 0.3, 1) for q in (-1, 0, 1)]
    worst = math.log1p(curvature) + np.max([b @ shift + shift @ shift / 2 for shift in shifts], axis=0)
    simulated = np.maximum(-np.expm1(epsilon - worst), 0.0)
    bound = ours.delta_of(ConvexPerturbation(z, curvature), 0.0, epsilon)
    assert simulated.mean() <= bound + 4 * simulated.std() / math.sqrt(len(b))
    if cosine == -1:
        assert simulated.mean() >= 0.98 * bound - 4 * simulated.std() / math.sqrt(len(b))


def test_scaled_keeps_its_kind_and_relation():
    assert scaled(ConvexPerturbation(2.0, 0.1, ADDED), 3.0) == ConvexPerturbation(6.0, 0.1, ADDED)
    assert type(scaled(LogisticPerturbation(2.0, 0.1), 3.0)) is LogisticPerturbation
    assert ConvexPerturbation(2.0, 0.1) != LogisticPerturbation(2.0, 0.1)
