"""The noise that output perturbation, phased ERM and bolt-on share: its variance by draws, and its cost."""

import numpy as np
import pytest

from dpbench.algorithms import output_noise
from dpbench.privacy import verify
from dpbench.privacy.budget import Budget
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.relation import Relation

SENSITIVITY = 0.3


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_variance_in_a_direction(delta, parts):
    budget = Budget(1.0, delta, Relation.REPLACE_ONE, "tight" if delta else "pure")
    seeds = [f"noise-{seed}" for seed in range(4000)]
    W = output_noise.release(Mechanisms(seeds, budget), np.zeros((len(seeds), 4)), SENSITIVITY, parts)
    expected = SENSITIVITY**2 * output_noise.variance(budget, 4, parts)
    assert np.square(W).mean() == pytest.approx(expected, rel=0.06)  # five standard errors of the radial noise


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_parts_together_spend_the_budget(delta, parts):
    budget = Budget(1.0, delta, Relation.REPLACE_ONE, "tight" if delta else "pure")
    mechanisms = Mechanisms(["noise"], budget)
    for _ in range(parts):
        output_noise.release(mechanisms, np.zeros((1, 4)), SENSITIVITY, parts)
    spent = verify.spent(mechanisms.ledger.of(0), delta, budget.relation).epsilon
    assert spent == pytest.approx(1.0, rel=1e-3)


def test_two_rows_pull_twice():
    gaussian, radial = output_noise.disclosures("the model", "(L₀/n + 2·γ)/ridge", "because")
    assert (gaussian.replace_one, radial.add_remove) == ("(2·L₀/n + 2·γ)/ridge", "(L₀/n + 2·γ)/ridge")
    assert (gaussian.when, radial.when, radial.mechanism) == ("", "δ = 0", "radial")
