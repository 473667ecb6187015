"""A lower bound on ε from one run with many canaries (Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1)
training run", Algorithm 1 and Theorem 5.2; `p_value` is the function of its Appendix D, in closed form).

The label of every row is a fair coin. Whoever sees the model guesses some of the coins: those whose coordinates are the
largest and the smallest. Of (ε, δ)-DP each guess is right with probability e^ε/(e^ε + 1) at most, given the others, but
for what δ allows; so more right guesses than that are evidence against ε.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom

from dpbench import algorithms
from dpbench.algorithms import terms
from dpbench.algorithms.base import make_settings
from dpbench.auditing.decide import Verdict
from dpbench.auditing.foreign import Target
from dpbench.auditing.runs import LEVEL, Audit
from dpbench.errors import UserError, at_least, positive
from dpbench.privacy.relation import Relation
from dpbench.run.fit import fit
from dpbench.run.jobs import delta_value

CANARIES = 1000
SHARES = (1.0, 0.5, 0.2)  # of the canaries that are guessed; each test gets as much of the level
LARGEST = 60.0  # ε beyond which no bound is looked for


def p_value(epsilon: float, delta: float, *, canaries: int, guesses: int, correct: int) -> float:
    """The most that (ε, δ)-DP allows for the probability of `correct` right ones among `guesses` of `canaries` coins.

    β + 2mδ · max_i (P[B ≥ v - i] - P[B ≥ v])/i, β = P[B ≥ v], B binomial in `guesses` and e^ε/(e^ε + 1)
    (Theorem 5.2; α there has the 2).
    """
    chance = 1 / (1 + np.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, chance))
    i = np.arange(1, correct + 1)
    alpha = float(np.max((binom.sf(correct - i - 1, guesses, chance) - beta) / i, initial=0.0))
    return min(1.0, beta + 2 * canaries * delta * alpha)


def least_epsilon(*, canaries: int, guesses: int, correct: int, delta: float = 0.0, level: float = LEVEL) -> float:
    """The ε below which the p-value is at most `level`: a lower bound on ε at confidence 1 - level; 0 if none."""

    def refuted(epsilon: float) -> bool:
        return p_value(epsilon, delta, canaries=canaries, guesses=guesses, correct=correct) <= level

    low, high = 0.0, LARGEST
    if not refuted(low):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def target_of(name: str, canaries: int) -> Target:
    """One `fit` of the algorithm `name` at its defaults, with its best accounting, as a target; UserError if flawed."""
    method, fixed = algorithms.resolve(name)
    if not method.private:
        raise UserError(f"algo: {name} is not private: it makes no claim to audit")
    if flaw := method.flaw(make_settings(method, fixed), method.accounting(terms.accounting(method))):
        raise UserError(f"{name}: nothing to audit: {flaw}")
    loss = method.needs.covered[0]

    def learner(X: np.ndarray, y: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
        seed = int(rng.integers(2**63))
        return fit(X, y, algorithm=name, epsilon=epsilon, loss=loss, seed=seed).w

    return Target(learner, name, delta=delta_value(method.delta, canaries), row_norm=1.0)


def audit_in_one_run(
    target: Target | Callable[..., Any] | str,
    epsilon: float,
    *,
    canaries: int = CANARIES,
    seed: int = 0,
    level: float = LEVEL,
) -> Audit:
    """Run `target` once on `canaries` orthogonal rows with coins for labels, and bound ε by what its vector gives away.

    Row i is the i-th unit vector times what the target allows; coordinate i of the vector is taken to follow label i,
    as in any model that is linear in the rows. For replace-one targets: a coin that falls the other way is a row
    replaced. A name is an algorithm's, see `target_of`.
    """
    if isinstance(target, str):
        target = target_of(target, canaries)
    target = target if isinstance(target, Target) else Target(target)
    epsilon = positive("epsilon", epsilon)
    at_least("canaries", canaries, 10)
    if target.relation is not Relation.REPLACE_ONE:
        raise UserError("one run: coins are labels here, so the target has to be private under replace-one")
    generator = np.random.default_rng(seed)
    coins = generator.integers(2, size=canaries)
    size = min(float(np.max(target.high)), target.row_norm)
    labels = np.array(sorted(target.labels[:2]), dtype=float)
    vector = np.asarray(
        target.function(size * np.eye(canaries), labels[coins], epsilon, generator), dtype=float
    ).ravel()
    if len(vector) < canaries:
        raise UserError(f"one run: expected a coordinate for each of {canaries} columns, got {len(vector)}")
    order = np.argsort(np.nan_to_num(vector[:canaries]), kind="stable")
    best: Verdict | None = None
    for share in SHARES:
        half = max(1, int(share * canaries / 2))
        wrong_low, wrong_high = int(coins[order[:half]].sum()), int((1 - coins[order[-half:]]).sum())
        correct = 2 * half - wrong_low - wrong_high
        bound = least_epsilon(
            canaries=canaries, guesses=2 * half, correct=correct, delta=target.delta, level=level / len(SHARES)
        )
        if best is None or bound > best.bound:
            best = Verdict(bound, epsilon, wrong_high / half, wrong_low / half, 1)
    assert best is not None
    words = f"one run on {canaries} orthogonal rows"
    return Audit(target.called, epsilon, target.delta, 1, {"one run": best}, {"one run": "ε"}, pair=words)
