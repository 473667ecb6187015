"""What the methods for second-order stationary points share."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, Count, Needs, Outcome, Positive, Settings
from dpbench.algorithms.nonconvex.driver import Method, drive
from dpbench.algorithms.nonconvex.oracle import FullBatch, Minibatch
from dpbench.errors import UserError
from dpbench.privacy.relation import Relation


class SecondOrderMethod(Algorithm):
    """Base: subclasses say in `method` what one replicate does and in `planned` for how many iterations at most.

    The noise is set for all planned iterations, so a replicate that ends early has spent less than its budget; when to
    end is decided on released quantities alone. `cap` ends runs earlier still, for the time's sake. Status:
    "terminated", "not terminated" (after the planned iterations) or "not terminated (cap)". The objective, the norm of
    the gradient and λ_min of an outcome are diagnostics, not releases.
    """

    home = "nonconvex"
    relation = Relation.REPLACE_ONE
    delta = "n^-1"
    paper_accounting = "standard"
    needs = Needs(losses=("logistic", "sigmoid"), row_norm=("l2", 1.0), regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"alpha", "epsilon"})

    class Settings(Settings):
        alpha: Positive = 0.04
        cap: Count = 2000

    def method(self, w: np.ndarray, problem, mechanisms, alpha: float, settings) -> Method:
        """One replicate from w (d,), see `driver`; it runs at most `settings.cap` iterations."""
        raise NotImplementedError

    def planned(self, alpha: float, d: int) -> int:
        """The most iterations the noise is set for."""
        raise NotImplementedError

    def oracle(self, problem, mechanisms, sigma: float, settings) -> FullBatch:
        """Noisy gradients and Hessians at noise multiplier σ."""
        return FullBatch(problem, mechanisms, sigma)

    def run(self, problem, W, mechanisms, settings, trace):
        methods = [
            self.method(w, problem, mechanisms.member(i), float(alpha), settings)
            for i, (w, alpha) in enumerate(zip(W, settings.alpha, strict=True))
        ]
        done = drive(problem, methods, W, trace)
        planned = [self.planned(float(alpha), problem.d) for alpha in settings.alpha]
        unfinished = ["not terminated (cap)" if settings.cap < T else "not terminated" for T in planned]
        return Outcome(
            done.W,
            ["terminated" if end else word for end, word in zip(done.terminated, unfinished, strict=True)],
            {
                "T": planned,
                "iterations": done.gradients.tolist(),
                "gradient_evaluations": done.gradients.tolist(),
                "hessian_evaluations": done.hessians.tolist(),
            },
        )

    def measure(self, problem, outcome, settings, generators):
        """λ_min(∇²f(w)) of the final iterates."""
        return {"lambda_min": np.linalg.eigvalsh(problem.hessian(outcome.W))[:, 0]}

    def iterations(self, problem, settings):
        return settings.cap

    def audit_case(self):
        return AuditCase({"alpha": 1e4}, n=2)  # so loose a target that T = 1

    def work(self, n, d, settings):
        return 4.0 * n * d * min(self.planned(settings.alpha, d), settings.cap)


class MinibatchSettings(SecondOrderMethod.Settings):
    """m: rows in a sample; n // 50 when not given."""

    m: Count | None = None


class OnMinibatches:
    """Mixin: every release on m of the n rows, drawn without replacement; accounted by Rényi DP (equation 29)."""

    paper_accounting = "rdp"
    accountings = ("rdp", "tight")
    Settings = MinibatchSettings

    def complete(self, problem, settings):
        m = max(1, problem.n // 50) if settings.m is None else settings.m
        if m > problem.n:
            raise UserError(f"{self.name}: m = {m} rows in a sample, but the data have {problem.n}; lower m")
        return msgspec.structs.replace(settings, m=m)

    def audit_case(self):
        # All other rows pull against the one that differs: whether it is in the sample moves the mean by as much as
        # may be.
        return AuditCase({"alpha": 1e4, "m": 1}, background=-1.0)

    def oracle(self, problem, mechanisms, sigma, settings):
        return Minibatch(problem, mechanisms, sigma, settings.m)

    def work(self, n, d, settings):
        return super().work(settings.m or max(1, n // 50), d, settings)
