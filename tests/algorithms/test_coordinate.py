"""dp-gcd's selection: the rules' scores, and the ε that counts on neighbouring data show."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar

from dpbench.algorithms.coordinate import RULES, scores
from dpbench.problems import Problem
from tests.algorithms.conftest import run

K, CLIP, DELTA = 12_000, 1.0, 1e-6
numbers = st.floats(-10, 10)


def neighbours():
    """Squared loss at w = 0, two coordinates: one row moves their scores by s in opposite directions.

    Without that row coordinate 0 has the score 6s and coordinate 1 8s: coordinate 0 lags by s here, by 3s there.
    """
    X = np.array([[1.0, 0.0]] * 20 + [[0.0, 1.0]] * 19 + [[1.0, -1.0]])
    shares = Problem(X, np.ones(40), loss="squared").clip_shares
    y = -np.array([6 * 2 * CLIP * shares[0] / 20] * 20 + [8 * 2 * CLIP * shares[1] / 19] * 19 + [1e3])
    here, there = y.copy(), y.copy()
    there[-1] *= -1
    return Problem(X, here, loss="squared"), Problem(X, there, loss="squared")


def wins(problem, selection):
    """How often in K runs coordinate 0 is chosen, and ε'."""
    result = run("dp-gcd", problem, epsilon=EPSILON, delta=DELTA, passes=1, clip=CLIP, seeds=K, selection=selection)
    return int((result.W[:, 0] != 0).sum()), 1 / result.mechanisms.ledger.of(0)[0].release.noise_multiplier


EPSILON = math.sqrt(4 * math.log(1 / DELTA)) + 2 * math.expm1(1)  # eq. (2) at ε' = 1, T = 1


def test_the_neighbours_are_worst_case_ones():
    here, there = neighbours()
    clip, zero = np.array([CLIP]), np.zeros((1, 2))
    root = np.sqrt(here.coordinate_constants)
    s = 2 * CLIP / (40 * np.sqrt(here.coordinate_constants.sum()))
    scores = [p.clipped_gradient(zero, clip)[0] / root / s for p in (here, there)]
    np.testing.assert_allclose(scores, [[6.5, 7.5], [5.5, 8.5]], rtol=1e-12)


@pytest.mark.thorough
def test_counts_show_no_more_than_the_selections_share_and_catch_the_published_noise():
    """Clopper and Pearson at 99.9 %, for the ratio of the two probabilities: proven ≤ e^ε', published above."""
    here, there = neighbours()
    level = 5e-4 / 2
    for selection in ("proven", "published"):
        (a, epsilon), (b, _) = wins(here, selection), wins(there, selection)
        assert epsilon == pytest.approx(1.0, rel=1e-9)
        low = stats.beta.ppf(level, a, K - a + 1) / stats.beta.ppf(1 - level, b + 1, K - b)
        high = stats.beta.ppf(1 - level, a + 1, K - a) / stats.beta.ppf(level, b, K - b + 1)
        if selection == "proven":
            assert high < math.exp(epsilon)
        else:
            assert math.exp(epsilon) < low
            assert high < math.exp(2 * epsilon)


@pytest.mark.parametrize("rule", RULES)
@given(st.tuples(numbers, numbers, numbers), st.floats(0.01, 10), st.floats(0, 5), st.booleans())
def test_every_score_is_lipschitz_in_the_gradient(rule, values, M, l1, zero):
    g, change, w = values
    W, M = np.array([[0.0 if zero else w]]), np.array([M])
    one, two = (scores(rule, np.array([[v]]), W, M, l1)[0, 0] for v in (g, g + change))
    assert abs(one - two) <= abs(change) / math.sqrt(M[0]) * (1 + 1e-9) + 1e-7


@pytest.mark.parametrize("rule", RULES)
def test_without_l1_every_score_is_the_scaled_gradient(rule):
    generator = np.random.default_rng(0)
    G, W, M = generator.standard_normal((3, 5)), generator.standard_normal((3, 5)), generator.lognormal(0, 1, 5)
    np.testing.assert_allclose(scores(rule, G, W, M, 0.0), np.abs(G) / np.sqrt(M), rtol=1e-12)


@given(numbers, numbers, st.floats(0.05, 10), st.floats(0, 5))
def test_gs_q_is_the_decrease_of_the_model_and_gs_r_its_step(g, w, M, l1):
    def model(a):
        return g * a + M / 2 * a * a + l1 * (abs(w + a) - abs(w))

    span = (abs(g) + l1) / M + abs(w) + 1
    found = minimize_scalar(model, bounds=(-span, span), method="bounded", options={"xatol": 1e-10})
    least = min(found.fun, model(-w), 0.0)
    G, W, M_ = np.array([[g]]), np.array([[w]]), np.array([M])
    decrease, step = (max(scores(rule, G, W, M_, l1)[0, 0], 0) for rule in ("gs-q", "gs-r"))
    assert decrease**2 / 2 == pytest.approx(-least, rel=1e-5, abs=1e-7)
    step /= math.sqrt(M)
    assert min(model(step), model(-step)) == pytest.approx(least, rel=1e-5, abs=1e-7)


def test_gs_s_is_the_subgradient_of_least_magnitude():
    W = np.array([[0.0, 0.0, 2.0, -2.0]])
    G = np.array([[0.5, -3.0, -1.0, -1.0]])
    np.testing.assert_allclose(np.maximum(scores("gs-s", G, W, np.full(4, 4.0), 1.0), 0), [[0, 1, 0, 1]])


def cut(rule, G, W, M, l1):
    """The scores of the paper's text, with |G_j| - λ cut off at 0 where w_j = 0."""
    shrunk = np.maximum(np.abs(G) - l1, 0)
    if rule == "gs-s":
        return np.where(W != 0, np.abs(G + l1 * np.sign(W)), shrunk) / np.sqrt(M)
    target = W - G / M
    step = np.copysign(np.maximum(np.abs(target) - l1 / M, 0), target) - W
    if rule == "gs-r":
        return np.sqrt(M) * np.abs(step)
    return np.sqrt(2 * np.maximum(l1 * (np.abs(W) - np.abs(W + step)) - step * (G + 0.5 * M * step), 0))


@pytest.mark.parametrize("rule", RULES)
def test_without_noise_the_choice_is_that_of_the_scores_cut_off_at_zero(rule):
    """Of 2,000 iterates with zeros: the same coordinate wherever one has a positive score, which not all have."""
    generator = np.random.default_rng(1)
    G, M = 0.9 * generator.standard_normal((2000, 8)), generator.lognormal(0, 1, 8)
    W = generator.standard_normal((2000, 8)) * (generator.random((2000, 8)) < 0.1)
    old, new = cut(rule, G, W, M, 2.0), scores(rule, G, W, M, 2.0)
    moves = old.max(axis=1) > 0
    assert 0.5 < moves.mean() < 1
    np.testing.assert_array_equal(old.argmax(axis=1)[moves], new.argmax(axis=1)[moves])
    assert (new.max(axis=1)[~moves] <= 0).all()
    assert (new < 0).any()


@pytest.mark.parametrize("rule", RULES)
def test_noise_finds_the_one_large_coordinate_more_often_than_with_scores_cut_off(rule):
    G, M, generator = np.full((4000, 300), 0.01), np.ones(300), np.random.default_rng(2)
    G[:, 7] = 1.6
    W, noise = np.zeros_like(G), generator.laplace(0, 0.3, G.shape)
    old, new = ((one + noise).argmax(axis=1) == 7 for one in (cut(rule, G, W, M, 1.0), scores(rule, G, W, M, 1.0)))
    assert new.mean() > old.mean() + 0.2
