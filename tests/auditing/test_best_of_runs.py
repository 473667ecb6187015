"""What private-tuning gives away on its audited pair, integrated: no test can do better, so no audit can.

One run at d = 1, T = 1 from 0 releases w ~ N(±step/n, (2 step z/n)²), as one row has the slope 1 there or -1, and a
score around c(w), the clipped loss of that row over n. With F the distribution function of a run's score, the best of
K ~ Poisson(m) has the density Σ_k P[K = k] k f(w) E[(1 - F(score))^(k-1) | w] = m f(w) E[e^(-m F(score)) | w]: the
derivative of K's generating function (Papernot and Steinke 2022). With K = 0 it is the start.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import kstest, norm

from dpbench import algorithms
from dpbench.algorithms.private_tuning import SearchPlan
from dpbench.auditing.claims import claim
from dpbench.auditing.runs import audit
from dpbench.auditing.worlds import Setup
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BestOfRuns, CountedRelease, Relation
from tests.auditing.releases import weakened

GUIDE = (Path(__file__).resolve().parent.parent.parent / "docs" / "guides" / "audit.md").read_text(encoding="utf-8")
TUNING = algorithms.get("private-tuning")
CASE = TUNING.audit_case
LEAST = 1e-3  # error rate that is looked at: fewer errors than 30,000 runs have cannot be counted


class Law:
    """Of the audited case at ε: everything that is known before a run."""

    def __init__(self, epsilon):
        self.settings = TUNING.Settings(**CASE.settings)
        budget = Budget(epsilon, CASE.n**-2.0, Relation.REPLACE_ONE, "tight")
        self.base = SearchPlan(budget, algorithms.get("dp-gd"), self.settings).base
        z, score = (release.noise_multiplier for release, _ in self.base)
        (one,) = json.loads(self.settings.candidates)
        assert one["T"] == CASE.d == 1
        self.mean, self.delta, self.step = self.settings.mean, budget.delta, one["step"]
        self.spread, self.noise = 2 * self.step * z / CASE.n, self.settings.clip * score / CASE.n

    def model(self, sign):
        return sign * self.step / CASE.n

    def score(self, w, sign):
        return np.clip(-sign * w, 0, self.settings.clip) / CASE.n

    def density(self, sign, w):
        """Of the model released, at the points w of a fine grid; beside it there is the start, w = 0, with e^(-m)."""
        f, c = norm.pdf(w, self.model(sign), self.spread), self.score(w, sign)
        t = np.linspace(c.min() - 9 * self.noise, c.max() + 9 * self.noise, 1001)
        F = [trapezoid(f * norm.cdf((each - c) / self.noise), w) for each in t]
        x, weights = np.polynomial.hermite_e.hermegauss(61)
        none_better = np.exp(-self.mean * np.interp(c[:, None] + self.noise * x, t, F)) @ weights / np.sqrt(2 * np.pi)
        return self.mean * f * none_better

    def cells(self):
        """w (N,), and under either data set (N + 1,) the probabilities of a cell around each, and of the start."""
        w = np.linspace(-1, 1, 4001) * (self.model(1) + 9 * self.spread)
        return w, [np.append(self.density(sign, w) * (w[1] - w[0]), np.exp(-self.mean)) for sign in (1, -1)]

    def best(self):
        """(α, μ) of the tests that no other beats: thresholds on the likelihood ratio."""
        _, (first, second) = self.cells()
        assert (first.sum(), second.sum()) == pytest.approx((1, 1), abs=1e-3)
        order = np.argsort(-np.log(first / second), kind="stable")
        alpha, beta = np.cumsum(second[order]), 1 - np.cumsum(first[order])
        counted = (alpha > LEAST) & (beta > LEAST) & (alpha < 1 - LEAST) & (beta < 1 - LEAST)
        return alpha[counted], (norm.isf(alpha) - norm.ppf(beta))[counted]

    def claimed(self):
        event = BestOfRuns(self.base, "poisson", self.mean)
        return claim((CountedRelease(event, 1, ""),), Relation.REPLACE_ONE, self.delta)


def distribution(law, sign):
    w, cells = law.cells()
    mass = np.cumsum(cells[0 if sign > 0 else 1][:-1])
    return lambda at: np.interp(at, w + (w[1] - w[0]) / 2, mass / mass[-1])


def found_as_often(w, law, sign):
    ran = w != 0
    assert abs(ran.mean() - (1 - np.exp(-law.mean))) < 5 * np.sqrt(0.25 / len(w))
    assert kstest(w[ran], distribution(law, sign)).statistic < 2.5 / np.sqrt(ran.sum())  # p = 7e-6


@pytest.mark.thorough
@pytest.mark.parametrize("sign", [1, -1])
def test_a_million_draws_have_the_law_that_is_integrated(sign):
    law, rng = Law(4.0), np.random.default_rng(0)
    runs = rng.poisson(law.mean, 1_000_000)
    owner = np.repeat(np.arange(len(runs)), runs)
    w = rng.normal(law.model(sign), law.spread, len(owner))
    order = np.lexsort((rng.normal(law.score(w, sign), law.noise), owner))
    released = np.zeros(len(runs))
    released[runs > 0] = w[order][(np.cumsum(runs) - runs)[runs > 0]]
    found_as_often(released, law, sign)


@pytest.mark.slow
@pytest.mark.parametrize(("world", "sign"), [(0, 1), (1, -1)])
def test_the_algorithm_releases_by_it(world, sign):
    setup = Setup(TUNING, CASE, {}, 4.0)
    came = setup.run(setup.pair[world], setup.recorder(10_000, world + 1))
    found_as_often(came.W[:, 0], Law(4.0), sign)


@pytest.mark.thorough
def test_audit_below_the_best_test_and_that_below_the_claim():
    law = Law(4.0)
    alpha, mu = law.best()
    claimed = law.claimed().at(alpha)
    assert (mu < claimed).all()
    verdict = audit("private-tuning", 4.0).verdicts["last iterate"]
    assert 0.6 * mu.max() < verdict.bound <= mu.max()
    there = np.argmin(np.abs(alpha - verdict.false_positives))
    told = [verdict.bound, verdict.claim, verdict.bound / verdict.claim, mu[there], mu[there] / claimed[there]]
    told.append(np.max(mu / claimed))
    row = re.search(r"the audit proves ([\d.]+) of the ([\d.]+) that are claimed, a share of ([\d.]+)\.", GUIDE)
    text = re.search(
        r"best\s+possible test has ([\d.]+) at these error rates, ([\d.]+) of the claim,\s+and at most ([\d.]+) of it",
        GUIDE,
    )
    kept = [float(each) for each in (*row.groups(), *text.groups())]
    assert kept == pytest.approx(told, abs=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_best_test_is_below_the_claim(epsilon):
    alpha, mu = Law(epsilon).best()
    assert (mu < Law(epsilon).claimed().at(alpha)).all()


@pytest.mark.slow
def test_halved_noise_is_noticed_by_more_runs():
    with weakened(0.5):
        assert not audit("private-tuning", 4.0, runs=30_000).passed
