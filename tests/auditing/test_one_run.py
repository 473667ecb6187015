"""The bound of one run: against closed forms, and by simulation that it is above ε no more often than its level."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpbench.auditing.foreign import Target
from dpbench.auditing.one_run import audit_in_one_run, least_epsilon, p_value
from dpbench.errors import UserError
from dpbench.privacy.relation import Relation
from dpbench.privacy.release import Releases


def test_pure_dp_is_a_binomial_tail():
    chance = math.e / (1 + math.e)
    assert p_value(1.0, 0.0, canaries=50, guesses=20, correct=18) == pytest.approx(binom.sf(17, 20, chance))


def test_delta_by_hand():
    # ε = 0, one guess that is right: β = 1/2, α = P[B ≥ 0] - P[B ≥ 1] = 1/2, p = 1/2 + 2·m·δ/2.
    assert p_value(0.0, 0.01, canaries=3, guesses=1, correct=1) == pytest.approx(0.5 + 3 * 0.01)


def response(epsilon, delta, m, generator):
    """Right guesses of m coins by randomised response, each coin shown as it is with probability δ: (ε, δ)-DP."""
    right = generator.random(m) < 1 / (1 + math.exp(-epsilon))
    return int((right | (generator.random(m) < delta)).sum())


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (2.0, 0.0), (1.0, 1e-3)])
def test_it_is_above_the_truth_no_more_often_than_its_level(epsilon, delta):
    generator, m, level, draws = np.random.default_rng(0), 200, 0.1, 300
    right = np.array([response(epsilon, delta, m, generator) for _ in range(draws)])
    bounds = {v: least_epsilon(canaries=m, guesses=m, correct=v, delta=delta, level=level) for v in set(right.tolist())}
    above = sum(bounds[v] > epsilon for v in right.tolist())
    assert above <= binom.isf(1e-4, draws, level)
    if not delta:
        assert above > 0  # it is the exact tail


def test_many_canaries_bring_it_near():
    m = 20_000
    right = round(m / (1 + math.exp(-1.0)))
    assert 0.9 < least_epsilon(canaries=m, guesses=m, correct=right) < 1.0


def sums(scale):
    def learner(X, y, epsilon, rng):
        return X.T @ y + scale * 2 / epsilon * rng.laplace(size=X.shape[1])

    return Target(learner)


def test_one_run_tells_the_noise_that_is_due_from_a_fifth_of_it():
    assert audit_in_one_run(sums(1.0), 1.0).passed
    caught = audit_in_one_run(sums(0.2), 1.0)
    assert not caught.passed
    assert caught.runs == 1


def test_a_method_with_a_fiftieth_of_its_noise_is_told_apart_in_one_run(monkeypatch):
    """The coins are seen through a real `fit`, and the bound is above ε only where the noise is too little."""
    sound = audit_in_one_run("dp-gd", 1.0, canaries=300)
    assert sound.passed
    assert (sound.delta, sound.algorithm) == (pytest.approx(300**-2), "dp-gd")
    real = Releases.release

    def release(self, value, noise, event, label, *, sensitivity, multiplier, **more):
        out = real(self, value, noise, event, label, sensitivity=sensitivity, multiplier=multiplier, **more)
        return value + (out - value) / 50

    monkeypatch.setattr(Releases, "release", release)
    caught = audit_in_one_run("dp-gd", 1.0, canaries=300)
    assert not caught.passed
    assert caught.verdicts["one run"].bound > 2


def test_mistakes_are_one_line():
    with pytest.raises(UserError, match="at least 10"):
        audit_in_one_run(sums(1.0), 1.0, canaries=3)
    with pytest.raises(UserError, match="replace-one"):
        audit_in_one_run(Target(lambda *a: np.zeros(10), relation=Relation.ADD_REMOVE), 1.0, canaries=10)
    with pytest.raises(UserError, match="a coordinate for each of 10"):
        audit_in_one_run(lambda *a: np.zeros(3), 1.0, canaries=10)
