"""Tuning that is paid for: a random number of runs at settings drawn at random, of which only the best is released."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.registry import resolve
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BestOfRuns, Counts, Gaussian, Laplace, LastIterate, counted

LABEL = "best of a random number of runs"
COVERED = (Gaussian, LastIterate)  # releases that compose as one Gaussian
SLACK = 0.9995  # of ε and δ: the orders of two accountants' grids differ


class PrivateTuning(dp.Algorithm):
    """private-tuning: K runs of `method`, each at one of `candidates` drawn uniformly; the best by its score is kept.

    Each run releases its model and its score together, inside a budget of its own: the mean over rows of
    min(loss, clip) plus Gaussian noise (Laplace for pure DP), of sensitivity clip/n under replace-one, and the
    regulariser. A clipped loss, as that of a row has no bound in ‖w‖. K is random and neither it nor any other run is
    released. δ > 0: K ~ Poisson(mean), the start returned where K = 0 (Papernot and Steinke 2022, Theorem 6). δ = 0:
    K geometric on 1, 2, …, three times the ε of one run (Liu and Talwar 2019).

    Drawing the setting costs nothing: a mixture with public weights is at most as far apart as the worst of its parts.
    Every candidate gets the same ρ (or ε), so all are that worst. `share` of it goes to the score.

    candidates: JSON, a list of objects of settings of the method: '[{"T": 30}, {"T": 100}]'. Only methods whose
    releases are Gaussians on all rows, or pure ε-DP.
    """

    name = "private-tuning"
    title = "tuned privately"
    home = "leaderboard"
    relation = dp.Relation.REPLACE_ONE
    in_reals = "it chooses among runs by their losses, which are means in float64"
    paper_accounting = "tight"
    accountings = ("tight", "pure")
    needs = dp.Needs(row_norm=None, regularisers=("l1", "l2", "w2"))
    diagnostics = (dp.NOTES,)
    discloses = (
        dp.Disclosure(
            LABEL,
            "the best by a noisy score of K runs of `method`, K Poisson (pure DP: geometric)",
            "best of runs",
            "1",
            add_remove="as of the method's releases, and clip/n of the score",
            replace_one="as of the method's releases, and clip/n of the score",
            why="a mixture of settings is at most as far apart as the worst of them",
        ),
    )

    class Settings(dp.BaseSettings, frozen=True):
        method: str = "dp-gd"
        candidates: str = "[{}]"
        mean: Annotated[float, msgspec.Meta(gt=1)] = 6.0
        share: dp.Share = 0.2
        clip: dp.Positive = 1.0

    def complete(self, problem, settings):
        method, _ = resolve(settings.method)
        if not method.private:
            raise UserError(f"{self.name}: method {settings.method} is not private")
        method.needs.check(problem, method.name)
        _parsed(problem, settings)
        return settings

    def row_bound(self, loss, settings):
        method, fixed = resolve(settings.method)
        bounds = [method.row_bound(loss, dp.make_settings(method, fixed | one)) for one in _listed(settings)]
        return next((one for one in bounds if one is not None), None)

    def public(self, settings):
        method, fixed = resolve(settings.method)
        public = (method.public(dp.make_settings(method, fixed | one)) for one in _listed(settings))
        return ", ".join(dict.fromkeys(filter(None, public)))

    # Where one row decides: the score prefers the models that lie on its side, and so does each model's gradient.
    # The step is so long that its clipped loss is 0 or all of `clip`, by the side alone. Few runs, as the bound for
    # many is far above what they give away.
    audit_case = dp.AuditCase({"candidates": '[{"T": 1, "step": 1000}]', "mean": 2.0}, loss="logistic", n=20, d=1)

    def inspection_case(self):
        return replace(super().inspection_case(), settings={"candidates": '[{"T": 4}]'}, n=20)

    def work(self, n, d, settings):
        method, fixed = resolve(settings.method)
        flops = [method.work(n, d, dp.make_settings(method, fixed | one)) for one in _listed(settings)]
        return settings.mean * sum(flops) / len(flops)

    def iterations(self, problem, settings):
        return None

    def plan(self, problem, mechanisms, settings):
        # What one run may release, not what the runs did: that depends on all of them, and only the best is released.
        one = SearchPlan(mechanisms.budget, resolve(settings.method)[0], settings)
        mechanisms.plan(LABEL, one.event(settings.mean), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        method, _ = resolve(settings.method)
        tried, k = _parsed(problem, settings), len(W)
        plan = SearchPlan(mechanisms.budget, method, settings)
        runs: list[list[tuple[int, str]]] = [[] for _ in tried]  # of each candidate: (replicate, key)
        for i, coins in enumerate(mechanisms.coins):
            count = coins.geometric(1 / settings.mean) if plan.pure else coins.poisson(settings.mean)
            # Each inner run needs a noise stream that no other run of the batch has: two words of coins name it.
            token = "/".join(str(coins.integers(2**63)) for _ in range(2))
            for j, choice in enumerate(coins.integers(len(tried), size=count)):
                runs[choice].append((i, f"private-tuning/{token}/{j}"))
        best, released, used = np.full(k, math.inf), W.copy(), np.full(k, -1)
        bases: set[Counts] = set()
        size = method.batch_size(problem.n, problem.d)
        # By candidate, not by replicate: runs at one setting are computed as one array.
        for c, one in enumerate(tried):
            for first in range(0, len(runs[c]), size):
                part = runs[c][first : first + size]
                members = [i for i, _ in part]
                sub = mechanisms.inner([key for _, key in part], plan.model, method.relation)
                batched = dp.batch_settings([one] * len(part), method.per_replicate)
                # No trace: what a candidate passes on its way is not released.
                result = method.run(problem, W[members], sub, batched, dp.no_trace)
                V = result.W if isinstance(result, dp.RunResult) else result
                scores = plan.score(problem, V, sub, settings.clip)
                bases |= {counted(sub.ledger.of(j)) for j in range(len(part))}
                for j, i in enumerate(members):
                    if scores[j] < best[i]:
                        best[i], released[i], used[i] = scores[j], V[j], c
        # What was released is checked against the plan, for a method may release more than it says.
        for base in bases:
            plan.check(base)
        mechanisms.ledger.record(plan.event(settings.mean), LABEL, mechanisms.releases.members)
        notes = [json.dumps(_listed(settings)[c]) if c >= 0 else "no run: the start" for c in used]
        return dp.RunResult(released, columns={"notes": notes})


class SearchPlan:
    """What one run may release, so that the best of them is within the budget.

    model: its budget. base: everything it may release, as one Gaussian (or pure release) each of model and score.
    """

    def __init__(self, budget: Budget, method: dp.Algorithm, settings: PrivateTuning.Settings) -> None:
        self.budget, self.pure, share = budget, budget.mode.pure, settings.share
        self.law: Literal["poisson", "geometric"] = "geometric" if self.pure else "poisson"
        mode = method.accounting("tight" if "tight" in method.accountings else "paper")
        # The two theorems are for one kind of run each: a pure one has no Rényi bound here, and the reverse.
        if (mode == "pure") != self.pure:
            raise UserError(
                f"private-tuning: {method.name} is {'pure DP' if mode == 'pure' else 'not pure DP'}; "
                f"use accounting {'pure and delta 0' if mode == 'pure' else 'tight and delta > 0'}"
            )
        if self.pure:
            whole = budget.epsilon / 3
            self.model = Budget((1 - share) * whole, 0.0, budget.relation, mode)
            self.noise = 1 / (share * whole)
            self.base: Counts = ((Laplace(1 / ((1 - share) * whole)), 1), (Laplace(self.noise), 1))
            return
        parts: Counts = ((Gaussian((1 - share) ** -0.5), 1), (Gaussian(share**-0.5), 1))
        scale = budget.noise_scale(((BestOfRuns(parts, "poisson", settings.mean), 1),), share=SLACK)  # type: ignore[arg-type]
        z, self.noise = (1 - share) ** -0.5 * scale, share**-0.5 * scale
        self.base = ((Gaussian(z), 1), (Gaussian(self.noise), 1))
        each = gaussian_epsilon(1 / z, budget.delta)
        if not each:
            raise UserError(f"{PrivateTuning.name}: delta = {budget.delta:g} alone covers a run: give a smaller one")
        self.model = Budget(each, budget.delta, budget.relation, "tight")

    def score(self, problem: dp.Problem, V: dp.Array, mechanisms: dp.Mechanisms, clip: float) -> dp.Array:
        """(m,): the noisy score of each model V (m, d), regulariser included; released with its run."""
        with np.errstate(all="ignore"):
            clipped = problem.clipped_value(V, clip)
        # Both losses of a replaced row are in [0, clip]: clip/n, also where sensitivities are doubled.
        moved = clip / problem.n
        if self.pure:
            noisy = mechanisms.laplace(clipped, sensitivity=moved, epsilon=1 / self.noise, label="score")
        else:
            noisy = mechanisms.gaussian(
                clipped, sensitivity=moved, noise_multiplier=self.noise, label="score", replaced=moved
            )
        with np.errstate(over="ignore"):
            penalty = sum((r.value(V) for r in problem.regularisers.values()), start=np.zeros(len(V)))
        # A run that diverged can never be the best, whatever its noise.
        return np.where(np.isfinite(V).all(axis=1), noisy + penalty, math.inf)

    def event(self, mean: float) -> BestOfRuns:
        """The one release."""
        return BestOfRuns(self.base, self.law, mean)  # type: ignore[arg-type]  # of some kind each

    def cost(self, base: Counts) -> float:
        """Of one run: Σ 1/z², or ε."""
        if self.pure:
            return self.budget.mode.epsilon_of(base, 0.0) or 0.0
        epsilon = self.budget.mode.epsilon_of(base, self.budget.delta)
        return math.inf if epsilon is None else epsilon

    def check(self, base: Counts) -> None:
        """PrivacyError for a run that released more than was planned, or what is not covered."""
        if not self.pure and not all(isinstance(release, COVERED) for release, _ in base):
            raise PrivacyError("private-tuning: a run released what is no Gaussian on all rows")
        if not self.cost(base) <= self.cost(self.base) * (1 + 1e-6):
            raise PrivacyError("private-tuning: a run released more than its part of the budget")


def _listed(settings: PrivateTuning.Settings) -> list[dict[str, Any]]:
    try:
        candidates = msgspec.json.decode(settings.candidates, type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise UserError(f"private-tuning: candidates is no JSON list of settings: {error}") from None
    if not candidates:
        raise UserError("private-tuning: candidates is empty")
    return candidates


def _parsed(problem: dp.Declaration, settings: PrivateTuning.Settings) -> list[dp.BaseSettings]:
    method, fixed = resolve(settings.method)
    return [method.complete(problem, dp.make_settings(method, fixed | one)) for one in _listed(settings)]
