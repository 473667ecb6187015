"""Other people's callables: what is private passes, what is not fails, by what is returned alone.

The bound of one run: against closed forms, and by simulation that it is above ε no more often than its level.
"""

import math
import re

import numpy as np
import pytest
from scipy.stats import binom

from dpbench.auditing.claims import reach
from dpbench.auditing.functions import AuditTarget, audit_callable, audit_in_one_run, least_epsilon, p_value, pairs
from dpbench.auditing.runs import LEVEL
from dpbench.errors import UserError
from dpbench.privacy.ledger import Relation
from dpbench.privacy.noise import Releases


def mean(scale):
    """The mean of n labels in [-1, 1] with Laplace noise of `scale` times its replace-one sensitivity over ε."""

    def learner(X, y, epsilon, rng):
        return y.mean() + scale * 2 / len(y) / epsilon * rng.laplace()

    return learner


@pytest.mark.thorough
def test_a_sound_one_passes_with_a_bound_near_its_claim():
    done = audit_callable(AuditTarget(mean(1.0)), 1.0, runs=16_000)
    (verdict,) = done.verdicts.values()
    assert done.passed
    assert 0.6 < verdict.bound <= 1.0
    assert "y 1" in done.pair
    assert "y -1" in done.pair


def test_half_of_the_noise_fails():
    done = audit_callable(mean(0.5), 1.0)
    assert not done.passed
    assert done.algorithm == "learner"


def test_what_is_exact_fails_at_once():
    assert audit_callable(lambda X, y, epsilon, rng: [rng.laplace(), y.mean()], 1.0).verdicts.popitem()[1].bound > 3


def test_what_never_returns_is_no_pass():
    done = audit_callable(AuditTarget(lambda X, y, epsilon, rng, seed: 0.0, sizes=(4,)), 1.0, runs=40)
    assert not done.passed
    assert re.match(r"no call returned a number \(TypeError: .*'seed'", done.defect)


def test_what_so_many_runs_can_show_grows_with_them():
    few, some, many = (reach(runs, 0.0, LEVEL, every=2) for runs in (10, 400, 40_000))
    assert few == 0
    assert 1 < some < many


def test_what_cannot_be_called_is_one_line():
    with pytest.raises(UserError, match="numpy cannot be called"):
        audit_callable(np, 1.0)


def raises_where_a_class_is_missing(X, y, epsilon, rng):
    if len(np.unique(y)) < 2:
        raise ValueError("one class")
    return rng.laplace()


def longer_where_there_are_more_classes(X, y, epsilon, rng):
    return rng.laplace(size=len(np.unique(y)))


@pytest.mark.thorough
def test_an_exception_and_a_length_are_outputs():
    assert not audit_callable(AuditTarget(raises_where_a_class_is_missing, sizes=(1, 2)), 1.0).passed
    assert not audit_callable(AuditTarget(longer_where_there_are_more_classes, labels=(0.0, 1.0, 2.0)), 1.0).passed


def test_add_remove_neighbours_differ_in_their_number_of_rows():
    target = AuditTarget(mean(1.0), relation=Relation.ADD_REMOVE, sizes=(3,), d=2, low=0.0, high=2.0, row_norm=1.0)
    found = list(pairs(target))
    assert {(len(pair.first[1]), len(pair.second[1])) for pair in found} == {(3, 2)}
    assert max(np.linalg.norm(pair.first[0], axis=1).max() for pair in found) <= 1 + 1e-12


def test_what_too_few_runs_cannot_reach_is_said():
    done = audit_callable(mean(1.0), 8.0, runs=400)
    assert done.passed
    assert done.least > 10_000
    with pytest.raises(UserError, match="runs must be at least 40"):
        audit_callable(mean(1.0), 1.0, runs=3)


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

    return AuditTarget(learner)


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
        audit_in_one_run(AuditTarget(lambda *a: np.zeros(10), relation=Relation.ADD_REMOVE), 1.0, canaries=10)
    with pytest.raises(UserError, match="a coordinate for each of 10"):
        audit_in_one_run(lambda *a: np.zeros(3), 1.0, canaries=10)
