"""Objective perturbation of other convex losses, and under add/remove: known numbers, true mechanisms, two routes.

Objective perturbation of the logistic loss: known numbers, true mechanisms, simulation, and the second route.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import norm

from dpbench.errors import OutOfReach, PrivacyError
from dpbench.privacy import Budget, Relation, half_planes, verify
from dpbench.privacy.accounting import objective_perturbation as ours
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.privacy.ledger import ConvexPerturbation, CountedRelease, Gaussian, LogisticPerturbation, scaled
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


def test_the_intervals_of_any_loss_cover_all_angles_between_opposite_and_orthogonal_rows():
    lengths = [profile.args[:2] for profile in ours._profiles(ConvexPerturbation(2.0, 0.1), 1.0)]
    assert lengths[0][0] == 1 / 2.0  # u' = -u
    assert lengths[-1][1] == math.sqrt(1 / 2) / 2.0  # beyond, the sum over both signs grows no more
    assert len(lengths) == 6


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
    entries = (CountedRelease(event, 1, "b"), CountedRelease(Gaussian(1 / mu), 1, "output"))
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


@pytest.mark.parametrize("relation", [ADDED, REPLACED])
@pytest.mark.parametrize("kind", [LogisticPerturbation, ConvexPerturbation])
def test_below_what_the_quadratures_reach_there_is_no_epsilon_rather_than_too_small_a_one(kind, relation):
    """With less than a Gaussian's noise no perturbation keeps its ε: at δ = 1e-100 two thirds of it were drawn."""
    event = kind(1.0, 1e-3, relation)
    z = ours.noise_scale(((event, 1),), (), 1.0, 1e-24)
    assert z >= 1 / gaussian_mu(1.0, 1e-24)
    assert half_planes.epsilon_of(scaled(event, z), 0.0, 1e-24) > gaussian_epsilon(1 / z, 1e-24) * (1 - 1e-6)
    for delta in (9e-25, 1e-40, 1e-100):
        with pytest.raises(OutOfReach, match="delta: objective perturbation is accounted for from 1e-24 on"):
            ours.noise_scale(((event, 1),), (), 1.0, delta)
        assert ours.epsilon_of(((event, 1),), delta) is None
        assert math.isinf(verify.spent((CountedRelease(event, 1, "b"),), delta, relation).epsilon)


def test_scaled_keeps_its_kind_and_relation():
    assert scaled(ConvexPerturbation(2.0, 0.1, ADDED), 3.0) == ConvexPerturbation(6.0, 0.1, ADDED)
    assert type(scaled(LogisticPerturbation(2.0, 0.1), 3.0)) is LogisticPerturbation
    assert ConvexPerturbation(2.0, 0.1) != LogisticPerturbation(2.0, 0.1)


N = 45_222
LOGISTIC_PERTURBATION_DELTA = N**-2.0


def published_curvature(epsilon):
    """β/Λ of Iyengar et al. (2019): Λ = 2β/J, J what their split leaves for the Jacobian."""
    kept = max(min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99), 1 - 1 / epsilon + 0.001)
    return 0.99 * epsilon * (1 - kept) / 2


def sigma(curvature, epsilon, delta=LOGISTIC_PERTURBATION_DELTA):
    """Noise on the sum of gradients, in units of L₀."""
    return 2 * ours.noise_scale(((LogisticPerturbation(1.0, curvature), 1),), (), epsilon, delta)


@pytest.mark.thorough_for("0.1-*", "10.0-*")
@pytest.mark.parametrize(("epsilon", "known"), [(0.1, 104.0), (1.0, 11.34), (10.0, 1.333)])
def test_at_the_published_ridge_and_at_half_of_it_the_jacobian_is_free(epsilon, known):
    for factor in (1.0, 2.0):
        found = sigma(factor * published_curvature(epsilon), 0.99 * epsilon, 0.99 * LOGISTIC_PERTURBATION_DELTA)
        assert found == pytest.approx(known, rel=5e-4)
    at_a_fifth = sigma(5 * published_curvature(epsilon), 0.99 * epsilon, 0.99 * LOGISTIC_PERTURBATION_DELTA)
    assert at_a_fifth > 1.008 * known


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_free_curvature_costs_nothing_and_twice_it_does(epsilon):
    gaussian = 2 / gaussian_mu(epsilon, LOGISTIC_PERTURBATION_DELTA)
    free = ours.free_curvature(epsilon, LOGISTIC_PERTURBATION_DELTA)
    assert gaussian <= sigma(free, epsilon) <= gaussian * (1 + 2e-4)
    assert sigma(2 * free, epsilon) > 1.01 * gaussian


def logistic_perturbation_true_delta(s, ridge, shared, first, second, epsilon):
    """δ of the minimiser in one dimension, from its densities: rows are signed features u; b ~ N(0, s²)."""

    def log_density(theta, rows):
        p = expit(-rows * theta)
        b = (p * rows).sum() - ridge * theta
        return log_normal_density(b, s) + math.log(ridge + (p * (1 - p) * rows**2).sum())

    one, other = np.append(shared, first), np.append(shared, second)

    def excess(theta):
        a, b = log_density(theta, one), log_density(theta, other)
        return max(0.0, math.exp(a) - math.exp(epsilon + b))

    reach = (8 * s + len(one)) / ridge
    return quad(excess, -reach, reach, limit=2000, points=np.linspace(-reach, reach, 41)[1:-1])[0]


@pytest.mark.parametrize("shared", [[], [-1.0] * 5, [0.3, 0.3]])
@pytest.mark.parametrize(("first", "second"), [(1.0, -1.0), (1.0, 0.0), (0.0, 1.0), (0.5, -0.1)])
def test_no_true_mechanism_costs_more(shared, first, second):
    z, curvature, epsilon = 0.6, 0.5, 0.4
    bound = ours.delta_of(LogisticPerturbation(z, curvature), 0.0, epsilon)
    found = logistic_perturbation_true_delta(2 * z, 0.25 / curvature, np.array(shared), first, second, epsilon)
    assert 0 <= found <= bound
    if (first, second) == (1.0, -1.0):
        assert found > 0.15


@pytest.mark.thorough
def test_rows_that_the_shared_ones_hold_at_their_steepest_come_close_to_it():
    """Two dimensions: shared rows push the minimiser to where both rows' gradients are whole, p = p' = 1."""
    s, cosine, epsilon, ridge, many = 1.2, -0.8, 0.4, 0.5, np.exp([14.0, 34.0])
    u, v = np.array([1.0, 0.0]), np.array([cosine, math.sqrt(1 - cosine**2)])
    axes = [np.linspace(-math.log(m) - 4, -math.log(m) + 14, 1601) for m in many]
    at = np.meshgrid(*axes, indexing="ij")

    def density(row):
        p = expit(-(row[0] * at[0] + row[1] * at[1]))
        held = [m * expit(x) for m, x in zip(many, at, strict=True)]  # m rows of minus the unit vector
        b = [p * row[i] - held[i] - ridge * at[i] for i in range(2)]
        H = [ridge + p * (1 - p) * row[i] ** 2 + held[i] * expit(-at[i]) for i in range(2)]
        determinant = H[0] * H[1] - (p * (1 - p) * row[0] * row[1]) ** 2
        return np.exp(-(b[0] ** 2 + b[1] ** 2) / (2 * s * s)) / (2 * math.pi * s * s) * determinant

    one, other = density(u), density(v)
    cell = math.prod(axis[1] - axis[0] for axis in axes)
    assert one.sum() * cell == pytest.approx(1.0, abs=2e-2)
    found = np.maximum(one - math.exp(epsilon) * other, 0.0).sum() * cell
    bound = ours.delta_of(LogisticPerturbation(s / 2, 0.25 / ridge), 0.0, epsilon)
    assert 0.85 * bound < found <= bound


@pytest.mark.parametrize("cosine", [-1.0, -0.8, 0.0, 0.7])
@pytest.mark.parametrize(("z", "curvature", "epsilon", "mu"), [(0.7, 2.0, 1.0, 0.0), (0.4, 0.1, 2.0, 0.5)])
def test_simulated_losses_of_rows_at_any_angle_are_within_the_bound(cosine, z, curvature, epsilon, mu):
    """The adversary picks p and p' after b is seen: more than any data set can do."""
    rng, s = np.random.default_rng(0), 0.5 / z
    b = rng.standard_normal((100_000, 2))
    u, v = np.array([1.0, 0.0]), np.array([cosine, math.sqrt(1 - cosine**2)])
    worst = np.zeros(len(b))
    for p in np.linspace(0, 1, 41):
        for other in (0.0, 0.5, 1.0):
            shift = s * (p * u - other * v)
            loss = math.log1p(4 * curvature * p * (1 - p)) + b @ shift + shift @ shift / 2
            worst = np.maximum(worst, loss)
    worst += mu * rng.standard_normal(len(b)) + mu**2 / 2
    simulated = np.maximum(-np.expm1(epsilon - worst), 0.0)
    bound = ours.delta_of(LogisticPerturbation(z, curvature), mu, epsilon)
    assert simulated.mean() <= bound + 4 * simulated.std() / math.sqrt(len(b))
    if cosine == -1:
        assert simulated.mean() >= 0.97 * bound - 4 * simulated.std() / math.sqrt(len(b))


@pytest.mark.parametrize(
    ("z", "curvature", "mu", "delta"), [(5.6, 0.13, 0.01, LOGISTIC_PERTURBATION_DELTA), (1.0, 0.5, 0.1, 1e-3)]
)
def test_two_routes_agree_of_logistic_perturbation(z, curvature, mu, delta):
    entries = (
        CountedRelease(LogisticPerturbation(z, curvature), 1, "b"),
        CountedRelease(Gaussian(1 / mu), 1, "output"),
    )
    second = verify.spent(entries, delta, Relation.REPLACE_ONE)
    first = Budget(1.0, delta, Relation.REPLACE_ONE, "tight").epsilon_of(entries)
    assert second.epsilon == pytest.approx(first, rel=3e-4)
    assert "half-planes" in second.checked_by


def test_it_is_for_replace_one_neighbours_and_stands_with_gaussian_releases_only():
    entry = CountedRelease(LogisticPerturbation(2.0, 0.1), 1, "b")
    with pytest.raises(PrivacyError, match="replace-one"):
        verify.spent((entry,), 1e-6, Relation.ADD_REMOVE)
    with pytest.raises(PrivacyError, match="Gaussian releases beside it only"):
        ours.noise_scale(((LogisticPerturbation(2.0, 0.1), 2),), (), 1.0, 1e-6)
    half = verify.spent((entry,), 5e-7, Relation.REPLACE_ONE).epsilon
    assert verify.spent((entry, entry), 1e-6, Relation.REPLACE_ONE).epsilon == pytest.approx(2 * half)


@pytest.mark.parametrize(("s", "curvature"), [(0.09, 0.13), (1.0, 2.0), (0.01, 50.0), (3.0, 1e-4)])
def test_the_lines_that_are_looked_at_are_those_that_count(s, curvature):
    """Both routes leave out lines that cannot be the largest, or the least; here are all of them."""
    slopes, square = np.linspace(-33 * s, 33 * s, 2001), s * s
    middle, half = (ours.INTERVALS[:-1] + ours.INTERVALS[1:]) / 2, np.diff(ours.INTERVALS) / 2
    bend = 4 * curvature * middle * (1 - middle)
    tilt = 4 * curvature * (1 - 2 * middle) / (1 + bend)
    ends = [(middle + step, np.log1p(bend) + tilt * step) for step in (-half, half)]
    lines = [np.outer(slopes, p) + tangent + square * p**2 / 2 for p, tangent in ends]
    largest = np.maximum(lines[0].max(axis=1), lines[1].max(axis=1))
    np.testing.assert_allclose(ours._gain(slopes, square, curvature), largest, rtol=1e-14, atol=1e-15)

    p = np.linspace(0.01, 1, 83)
    y, slope, shift = np.linspace(-9, 9, 13), s * p, 0.3 * s * (p - 1)
    free = np.log1p(4 * curvature * p * (1 - p)) + (slope**2 + shift**2) / 2
    for points in (501, 502, 524):  # whole strides, and one that is cut short after one point, or before the last
        t = np.linspace(0, 12 * s + s * s, points)
        every = (t[:, None, None] - free) / slope - shift / slope * y[:, None]
        found = half_planes._least_line(t, y, slope, shift, free)
        np.testing.assert_allclose(found, every.min(axis=2), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("mu", [1e-3, 0.08, 2.0])
def test_a_hockey_stick_far_below_is_that_of_all_epsilon(mu):
    epsilon = np.concatenate([-np.geomspace(1e-4, 30, 400), np.linspace(-2, 2, 401)])
    expected = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    np.testing.assert_allclose(ours._hockey_stick(mu, epsilon), np.maximum(expected, 0), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("z", "curvature", "mu", "delta"), [(5.6, 0.13, 0.01, 1e-12), (0.3, 5.0, 0.1, 0.3), (40.0, 1.0, 0.01, 1e-6)]
)
def test_epsilon_is_where_the_worst_angle_reaches_delta(z, curvature, mu, delta):
    event = LogisticPerturbation(z, curvature)
    epsilon = ours.epsilon_of(((event, 1), (Gaussian(1 / mu), 1)), delta)
    at, before = (ours.delta_of(event, mu, epsilon * (1 + off)) for off in (3e-6, -3e-6))
    assert at <= delta
    assert before >= delta or epsilon == pytest.approx(gaussian_epsilon(math.hypot(1 / z, mu), delta))
