"""Private permutation-based SGD (Wu, Li, Kumar, Chaudhuri, Jha and Naughton 2017), as the paper runs it."""

from typing import ClassVar

import numpy as np
from dpbench.algorithms.base import Algorithm, AuditCase, BaseSettings, Count, Disclosure, Needs, Positive, Relation
from dpbench.errors import UserError
from dpbench.privacy.ledger import at_rho


class PermutationSGD(Algorithm):
    """psgd: k passes of minibatch SGD over permuted rows, and noise on what comes out.

    For a convex β-smooth loss a step w ← w - η∇f_B(w) with η ≤ 2/β brings no two points further apart. A row that is
    replaced moves the one step a pass whose batch has it by 2ηL₀/b at most (ηL₀/b where it is taken away), so the last
    iterate moves by 2kηL₀/b: Wu et al. (2017), Algorithm 1 with minibatches. The order is public coins; rows that do
    not fill a batch sit a pass out.
    """

    name = "psgd"
    title = "Private PSGD"
    home = "iyengar2019"
    relation = Relation.REPLACE_ONE
    either = True
    paper_accounting = "tight"
    accountings: ClassVar = ("tight",)
    needs = Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l2",))
    discloses = (
        Disclosure(
            "iterate",
            "the last iterate",
            count="1",
            add_remove="k·η·L₀/b",
            replace_one="2·k·η·L₀/b",
            why="a step with η ≤ 2/β is no expansion, and a row is in one batch a pass",
        ),
    )
    tuning: ClassVar = {"step": [0.01, 0.1, 1.0]}

    class Settings(BaseSettings, frozen=True):
        """passes: k; batch: b; step: η."""

        passes: Count = 5
        batch: Count = 50
        step: Positive = 0.1

    def complete(self, problem, settings):
        """Refuse a step that the proof does not cover."""
        if settings.step > 2 / problem.objective_smoothness:
            raise UserError(f"psgd: step must be at most 2/β = {2 / problem.objective_smoothness:g} for this problem")
        return settings

    # A batch a row: every pass moves the iterate by all of its bound.
    audit_case = AuditCase({"passes": 2, "batch": 2})

    def plan(self, problem, mechanisms, settings):
        """One Gaussian release."""
        mechanisms.plan("iterate", at_rho(mechanisms.budget.rho), 1)

    def work(self, n, d, settings):
        """A pass takes as long as six of full-batch gradients."""
        return 24.0 * n * d * settings.passes

    def run(self, problem, W, mechanisms, settings, trace):
        """The noisy last iterates (k, d)."""
        b, eta = min(settings.batch, problem.n), settings.step
        for _ in range(settings.passes):
            orders = np.stack([rng.permutation(problem.n) for rng in mechanisms.coins])
            for j in range(0, problem.n - b + 1, b):
                rows = orders[:, j : j + b]
                batch, labels = problem.take(rows)
                z = np.einsum("kbd,kd->kb", batch, W).reshape(1, -1)
                slopes = problem.loss.derivative(z, labels.ravel(), np.empty_like(z)).reshape(rows.shape)
                W = W - eta * (np.einsum("kb,kbd->kd", slopes, batch) / b + problem.l2 * W)
        replaced = 2 if mechanisms.budget.relation is Relation.REPLACE_ONE else 1
        moved = replaced * settings.passes * eta * problem.lipschitz / b
        W = mechanisms.gaussian(W, sensitivity=moved, rho=mechanisms.budget.rho, label="iterate")
        trace(settings.passes, W, passes=settings.passes)  # no iterate before it is released
        return W
