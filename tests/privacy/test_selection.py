"""Selections: the law of what comes out, and the ε it proves on neighbouring data."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from tests.privacy.laws import follows, frequency_is

BUDGET = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "text")
K = 40_000


def first_wins(scores, epsilon, tag):
    """How often, out of K, noisy argmax picks index 0 of two `scores` whose sensitivity is 1."""
    m = Mechanisms([f"{tag} {i}" for i in range(200)], BUDGET)
    scores = np.tile(scores, (200, 1))
    spend = {"sensitivity": 1.0, "epsilon": epsilon, "label": "s"}
    return sum(int((m.noisy_argmax(scores, **spend) == 0).sum()) for _ in range(K // 200))


def lead_overcome(lead, scale):
    """P(difference of two Laplace(scale) > lead), lead ≥ 0."""
    return 0.5 * math.exp(-lead / scale) * (1 + lead / (2 * scale))


def ratio_interval(a, b):
    """Clopper–Pearson bounds on the ratio of two success probabilities, K trials each; joint level 1e-5."""
    low, high = ([stats.beta.ppf(q, s + (q > 0.5), K - s + (q < 0.5)) for q in (2.5e-6, 1 - 2.5e-6)] for s in (a, b))
    return low[0] / high[1], low[1] / high[0]


def test_noisy_argmax_has_the_law_of_its_scale():
    wins = first_wins([0.0, 3.0], 0.5, "law")
    assert frequency_is(wins, K, lead_overcome(3.0, 4.0))
    assert not frequency_is(wins, K, lead_overcome(3.0, 2.0))


def test_noisy_argmax_is_private_when_scores_move_both_ways():
    # Neighbours: one score falls by 1, the other rises by 1; ε = 1. Half of the noise breaks it.
    data, neighbour = [0.0, 1.0], [-1.0, 2.0]
    for epsilon, private in ((1.0, True), (2.0, False)):
        counts = first_wins(data, epsilon, "data"), first_wins(neighbour, epsilon, "neighbour")
        ends = ratio_interval(*counts)
        assert ends[1] < math.exp(1.0) if private else ends[0] > math.exp(1.0)


def fires_third(queries, epsilon, runs, tag):
    """How often, out of `runs`, AboveThreshold (sensitivity 1) says no, no, yes."""
    mechanisms = Mechanisms([tag], BUDGET)
    count = 0
    for _ in range(runs):
        svt = mechanisms.above_threshold(sensitivity=1.0, epsilon=epsilon, label="s")
        count += not svt(queries[0]) and not svt(queries[1]) and svt(queries[2])
    return count


def exact_third(queries, threshold_scale, query_scale):
    """The same probability: ∫ over the noisy threshold t of P(q₁ + ν < t) P(q₂ + ν < t) P(q₃ + ν ≥ t)."""
    t = np.linspace(-80, 80, 400_001)
    below = [stats.laplace.cdf(t, q, query_scale) for q in queries]
    density = stats.laplace.pdf(t, 0, threshold_scale)
    return float(trapezoid(density * below[0] * below[1] * (1 - below[2]), t))


def test_above_threshold_has_the_law_of_algorithm_2():
    # nonconvex's Algorithm 2 with λ = 1/ε, Δ = 1: threshold Lap(2λ), queries Lap(4λ).
    queries, epsilon, runs = (-1.0, 0.5, 2.0), 2.0, 20_000
    count = fires_third(queries, epsilon, runs, "svt")
    assert frequency_is(count, runs, exact_third(queries, 2 / epsilon, 4 / epsilon))
    assert not frequency_is(count, runs, exact_third(queries, 1 / epsilon, 2 / epsilon))


def test_above_threshold_draws_its_threshold_once_at_scale_2():
    m = Mechanisms(["a"], BUDGET)
    thresholds = np.array(
        [m.above_threshold(sensitivity=0.5, epsilon=2.0, threshold=7.0, label="s")._threshold for _ in range(20_000)]
    )
    assert follows(thresholds, stats.laplace(7.0, 0.5))
    assert not follows(7 + (thresholds - 7) / 2, stats.laplace(7.0, 0.5))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_above_threshold_at_these_scales_is_private(epsilon):
    data, neighbour = (0.0, 0.0, 0.0), (1.0, 1.0, -1.0)
    ratio = exact_third(data, 2 / epsilon, 4 / epsilon) / exact_third(neighbour, 2 / epsilon, 4 / epsilon)
    assert 1.2 < ratio <= math.exp(epsilon)
    # Half the noise proves more.
    assert exact_third(data, 1 / epsilon, 2 / epsilon) / exact_third(neighbour, 1 / epsilon, 2 / epsilon) > ratio


def test_above_threshold_answers_until_it_fires():
    m = Mechanisms(["a", "b"], BUDGET)
    svt = m.member(1).above_threshold(sensitivity=1e-9, epsilon=1.0, threshold=5.0, label="line search")
    assert [svt(0.0), svt(4.9), svt(5.1)] == [False, False, True]
    with pytest.raises(PrivacyError, match="has fired"):
        svt(0.0)
    assert len(m.ledger.of(1)) == 1
    assert m.ledger.of(0) == ()


def test_noiseless_above_threshold_compares():
    m = Mechanisms(["a"], BUDGET, noiseless=True)
    svt = m.above_threshold(sensitivity=1.0, epsilon=1.0, label="s")
    assert [svt(-1e-12), svt(0.0)] == [False, True]
