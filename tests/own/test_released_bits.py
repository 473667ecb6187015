"""Attacks on the digits of what a fit releases: float64 noise tells what it was added to, rounded noise does not.

Two neighbouring tables: in one the first row pulls every coordinate by v, in the other it is zero. Where |v + noise| is
far below v in float64, the sum has no bits finer than v's last one, or of half of it; where v is 0 it may have them.
"""

import numpy as np
import pytest
from scipy import stats

import dpbench
from dpbench.privacy.budget import Budget
from dpbench.privacy.exact_release import ExactMechanisms
from dpbench.privacy.ledger import Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems import Problem
from dpbench.problems.exact import ExactProblem

N = 64


def worlds(d):
    X = np.zeros((N, d))
    X[0] = 1 / np.sqrt(d) * (1 - 1e-12)
    return [(X, np.r_[1.0, -1.0, np.ones(N - 2)]), (np.zeros((N, d)), np.r_[1.0, -1.0, np.ones(N - 2)])]


def finer(released, v):
    """How many released gradients have an entry far below v with bits finer than half of v's last one."""
    grid = np.spacing(v) / 2
    small = np.abs(released) < v / 4
    with np.errstate(invalid="ignore"):
        return int((small & (released / grid != np.rint(released / grid))).any(axis=-1).sum())


def releases(kind, count, d):
    """`count` noisy gradients (count, d) of either world, through the seam that fits release through."""
    budget = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")
    found = []
    for X, y in worlds(d):
        problem = (ExactProblem if kind is ExactMechanisms else Problem)(X, y, row_bound=1.0)
        gradient = problem.gradient(np.zeros((1, d)))
        seams = [kind([str(i)], budget, declared=Relation.ADD_REMOVE) for i in range(count)]
        draws = [s.gaussian(gradient, sensitivity=1 / N, rho=budget.rho, label="gradient")[0] for s in seams]
        found.append(np.array(draws))
    return found


def low_bits_say_nothing(found):
    """Asserts it of what two worlds released; returns the integers and their step."""
    some = np.concatenate([one.ravel()[:500] for one in found])
    step = np.gcd.reduce(np.rint(some * 2.0**60).astype(np.int64)) * 2.0**-60
    whole = [one.ravel() / step for one in found]
    assert all((one == np.rint(one)).all() for one in whole)
    for bits in (1, 4, 8):
        tables = np.array([np.bincount(one.astype(np.int64) % 2**bits, minlength=2**bits) for one in whole])
        assert stats.chi2_contingency(tables).pvalue > 1e-6
        for row in tables:
            assert stats.chisquare(row).pvalue > 1e-6
    return whole, step


def test_the_attack_finds_float_noise_and_not_rounded_noise():
    """A million numbers in each world."""
    d, count = 1000, 1000
    v = 0.5 * worlds(d)[0][0][0, 0] / N
    plain = [finer(one, v) for one in releases(Mechanisms, 200, d)]
    assert max(plain) >= 20 > 5 * min(plain)
    first, second = releases(ExactMechanisms, count, d)
    assert finer(first, v) == finer(second, v) == 0
    # What is released is a multiple of one public step in both worlds, and its low bits say nothing.
    whole, step = low_bits_say_nothing([first, second])
    # Near zero, where the attack looks, and as a whole: the same law, moved by the difference of the sums.
    near = [one[np.abs(one * step) < v / 4].astype(np.int64) % 16 for one in whole]
    assert stats.chi2_contingency([np.bincount(one, minlength=16) for one in near]).pvalue > 1e-6
    moved = np.rint((first + v).ravel()[:200_000] / step)  # the gradient is -v
    assert stats.ks_2samp(moved, np.rint(second.ravel()[:200_000] / step)).pvalue > 1e-6


@pytest.mark.slow
def test_the_attack_on_ten_thousand_fits():
    """T = 1 from 0: w = -4·gradient, so that the released model shows the one released sum."""
    d = 100
    call = {"algorithm": "dp-gd", "T": 1, "epsilon": 1.0, "delta": 1e-6}
    v = 0.5 * worlds(d)[0][0][0, 0] / N
    plain = [
        finer(np.array([dpbench.fit(X, y, arithmetic="real", **call).w / 4 for _ in range(300)]), v)
        for X, y in worlds(d)
    ]
    assert max(plain) >= 10 > 3 * min(plain)
    found = [np.array([dpbench.fit(X, y, **call).w / 4 for _ in range(10_000)]) for X, y in worlds(d)]
    assert [finer(one, v) for one in found] == [0, 0]
    low_bits_say_nothing(found)


@pytest.mark.thorough_for("bytes")
@pytest.mark.parametrize("arithmetic", ["bytes", "real"])
def test_no_two_of_many_fits_draw_the_same_noise(arithmetic):
    """Among 120 fits two of 256 noises would meet, but for a chance of 1e-13; two of 2^128 never do."""
    X, y = np.eye(8), np.resize([1.0, -1.0], 8)
    fits = [dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, T=1, arithmetic=arithmetic).w for _ in range(120)]
    assert len({tuple(w) for w in fits}) == 120
