"""The last iterate: the bound in closed form, where it is attained, and against composition."""

import math

import numpy as np
import pytest

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Relation, verify
from dpbench.privacy.last_iterate import as_gaussian, growth
from dpbench.privacy.ledger import Entry, LastIterate


def test_known_value_by_formula_and_by_simulation():
    """μ = 2.4851 at c = 0.93, T = 40, s = σ/2; a simulation of two runs found 2.4855."""
    rng, c, T, s, k = np.random.default_rng(1), 0.93, 40, 0.5, 300_000
    assert s * growth(T, c) == pytest.approx(2.4851, abs=5e-5)
    ends = np.zeros((2, k))
    for _ in range(T):
        ends = c * ends + np.array([[0.0], [s]]) + rng.standard_normal((2, k))
    found = (ends[1].mean() - ends[0].mean()) / ends.std(axis=1).mean()
    assert found == pytest.approx(2.4855, abs=4 * math.sqrt(2 / k + found**2 / (4 * k)))
    assert growth(1000, 0.5) == pytest.approx(math.sqrt(3))


@pytest.mark.parametrize(("steps", "c"), [(1, 0.5), (2, 0.9), (30, 0.9), (3000, 0.999), (5, 0.0)])
def test_quadratics_attain_it_and_it_is_no_more_than_composition(steps, c):
    fading = c ** np.arange(steps)
    assert growth(steps, c) == pytest.approx(fading.sum() / math.sqrt((fading**2).sum()), rel=1e-9)
    assert growth(steps, c) <= math.sqrt(steps) * (1 + 1e-12)


def test_simulated_last_iterates_of_neighbouring_quadratics_are_that_far_apart():
    rng, c, T, s, sigma = np.random.default_rng(0), 0.8, 12, 0.3, 1.0
    ends = []
    for pull in (0.0, s):
        w = np.zeros(200_000)
        for _ in range(T):
            w = c * w + pull + sigma * rng.standard_normal(len(w))
        ends.append((w.mean(), w.std()))
    ((a, _), (b, std)) = ends
    assert (b - a) / std == pytest.approx(s / sigma * growth(T, c), abs=0.01)


@pytest.mark.parametrize("mode", ["tight", "standard", "cks20"])
def test_both_routes_agree_in_every_accounting_that_calibrates_it(mode):
    budget = Budget(1.0, 1e-6, Relation.REPLACE_ONE, mode)
    z = budget.noise_scale(((LastIterate(1.0, 40, 0.95), 1),))
    entries = (Entry(LastIterate(z, 40, 0.95), 1, "w"),)
    assert budget.epsilon_of(entries) == pytest.approx(1.0)
    second = verify.spent(entries, 1e-6, Relation.REPLACE_ONE).epsilon
    assert second == pytest.approx(1.0, rel=1e-6) if mode == "tight" else 0.7 < second < 1.0
    assert as_gaussian(LastIterate(z, 40, 0.95)).noise_multiplier < z


def test_steps_that_do_not_contract_are_refused():
    with pytest.raises(PrivacyError, match="contraction in"):
        LastIterate(1.0, 10, 1.0)
