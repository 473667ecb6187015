"""What the methods for second-order stationary points share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.nonconvex.oracle import FullBatch, Guard, LineSearch, Method, Minibatch, ShortSteps, run_in_step
from dpbench.algorithms.nonconvex.published import (
    BatchDraw,
    BatchNoise,
    Overflow,
    Rows,
    SharedMinibatch,
    Stream,
    flaws,
    published_streams,
    recorded,
)
from dpbench.errors import UserError
from dpbench.privacy.ledger import Counts, Gaussian, WithoutReplacement

_GRADIENT = partial(dp.Disclosure, "gradient", "the gradient of the objective", count="at most T")
_HESSIAN = partial(dp.Disclosure, "hessian", "the Hessian of the objective", "Gaussian, symmetric", "at most T")


class Stage(NamedTuple):
    """At most T iterations that release gradients and Hessians by `oracle`, and by `steps` how far to go."""

    oracle: FullBatch
    steps: ShortSteps | LineSearch
    T: int


class SecondOrderMethod(dp.Algorithm):
    """Base: subclasses say in `descent` what one replicate does, in `stages` by what it releases, and in `planned` for
    how many iterations at most.

    The noise is set for all planned iterations, so a replicate that ends early has spent less than its budget; when to
    end is decided on released quantities alone. `cap` ends runs earlier still, for the time's sake. `ending`:
    "terminated", "not terminated" (after the planned iterations), "not terminated (cap)" or, with `overflow` "lost",
    "crashed". The objective, the norm of the gradient and λ_min depend on the data, not on releases alone.

    For comparison with the published runs: the settings of `published`, most of which are not private (`flaw`). `noise`
    below 1, no more private, takes that much of all noise: a wrong recipe, to see whether it would be noticed.

    Sensitivities are for B_g = B_H = 1. A row's gradient is ℓ'(<x, w>)x and its Hessian ℓ''(<x, w>)xxᵀ, so for
    ‖x‖₂ ≤ R they are bounded by B_g = sup|ℓ'| R and B_H = sup|ℓ''| R², and a value moves by at most B_g‖v‖ along v.
    Logistic: |ℓ'| ≤ 1, |ℓ''| ≤ 1/4, so R = 1 gives both. Sigmoid: ℓ' = ±s with s = σ(1-σ) ≤ 1/4, and
    |ℓ''| = s|1-2σ|, greatest where 6s = 1: 1/(6√3) = 0.09623. R = 3.22 gives B_g ≤ 0.805 and B_H ≤ 0.99775, and
    R² = 6√3, R = 3.2237, would be the most. G = M = 1, which T and the steps rest on and privacy does not, need not
    hold row by row there.
    """

    home = "nonconvex"
    relation = dp.Relation.REPLACE_ONE
    delta = "n^-1"
    stops_early = True
    diagnostics = (
        dp.Diagnostic("ending", "whether it found a stationary point by its own test, or ran out of iterations"),
        dp.ITERATIONS,
        dp.GRADIENTS,
        dp.HESSIANS,
        dp.Diagnostic("lambda_min", "the least eigenvalue of the objective's Hessian at the end", of_data=True),
    )
    in_reals = "it adds the regularisers to its sums, or compares losses, before there is noise"
    revisions: ClassVar = {"tight": 2}  # the losses' own sensitivities, √2 less noise off the diagonal
    gone: ClassVar = {"calibration": "private"}
    paper_accounting = "standard"
    needs = dp.Needs(gradient=1.0, hessian=1.0, row_norm_of={"sigmoid": 3.22}, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"alpha", "epsilon"})
    discloses: ClassVar[tuple[dp.Disclosure, ...]] = (
        _GRADIENT(replace_one="2·B_g/n", why="Gao and Wright (2023), equation 4: ‖∇f_i‖ ≤ B_g = 1"),
        _GRADIENT(replace_one="2·L₀/n", why="the loss's own L₀ at the rows' bound", when="tight"),
        _HESSIAN(
            replace_one="2·B_H·√d/n", why="Gao and Wright (2023), equation 4: spectral norm B_H = 1, rank at most d"
        ),
        _HESSIAN(
            replace_one="√2·L₁/n", why="two positive semidefinite matrices of rank one", when="tight, convex loss"
        ),
        _HESSIAN(replace_one="2·L₁/n", why="ℓ'' may change its sign", when="tight, other losses"),
    )

    class Settings(dp.BaseSettings, frozen=True):
        alpha: dp.Positive = 0.04
        cap: dp.Count = 2000
        noise: dp.Positive = 1.0
        rows: Rows = "clipped"
        overflow: Overflow = "stable"
        stream: Stream = "keyed"

    def method(
        self, w: dp.Array, problem: dp.Problem, mechanisms: dp.Mechanisms, alpha: float, settings: Any
    ) -> Method:
        """One replicate from w (d,), see `oracle`; it runs at most `settings.cap` iterations."""
        return recorded(self.descent(w, problem, mechanisms, alpha, settings), settings)

    def descent(
        self, w: dp.Array, problem: dp.Problem, mechanisms: dp.Mechanisms, alpha: float, settings: Any
    ) -> Method:
        """`method` as it runs, whatever the published scripts made of it."""
        raise NotImplementedError

    def planned(self, alpha: float, d: int) -> int:
        """The most iterations the noise is set for."""
        raise NotImplementedError

    def oracle(
        self,
        problem: dp.Declaration,
        mechanisms: dp.Mechanisms,
        sigma: float,
        settings: Any,
        guard: Guard,
        hessian_sigma: float | None = None,
    ) -> FullBatch:
        """Noisy gradients at noise multiplier σ, and Hessians at that or `hessian_sigma`."""
        return FullBatch(problem, mechanisms, sigma, hessian_sigma, guard)

    def stages(self, problem: dp.Declaration, mechanisms: dp.Mechanisms, alpha: float, settings: Any) -> list[Stage]:
        """What one replicate releases by, in the order in which it does."""
        raise NotImplementedError

    def plan(self, problem, mechanisms, settings):
        for oracle, steps, T in self.stages(problem, mechanisms, float(settings.alpha), settings):
            oracle.plan(T)
            steps.plan(T)

    def flaw(self, settings, accounting=""):
        less = [f"{settings.noise:g} of the noise that ε asks for"] if settings.noise < 1 else []
        return "; ".join(flaws(settings) + less)

    def run(self, problem, W, mechanisms, settings, trace):
        if settings.rows == "clipped" and self.flaw(settings):  # another switch does not excuse longer rows
            self.needs.check(problem, self.name)
        if settings.stream == "published":
            streams = published_streams(mechanisms)
            mechanisms.releases.draw_from([one.noise for one in streams], [one.rows for one in streams])
            W = np.stack([one.noise.standard_normal(problem.d) for one in streams])
        alphas = np.asarray(settings.alpha)
        methods = [
            self.method(w, problem, mechanisms.member(i), float(alpha), settings)
            for i, (w, alpha) in enumerate(zip(W, alphas, strict=True))
        ]
        done = run_in_step(problem, methods, W, trace)
        planned = [self.planned(float(alpha), problem.d) for alpha in alphas]
        unfinished = ["not terminated (cap)" if settings.cap < T else "not terminated" for T in planned]
        return dp.RunResult(
            done.W,
            {
                "ending": [
                    word if end == "not terminated" else end for end, word in zip(done.endings, unfinished, strict=True)
                ],
                "iterations": done.gradients.tolist(),
                "gradient_evaluations": done.gradients.tolist(),
                "hessian_evaluations": done.hessians.tolist(),
            },
            T=planned,
        )

    def measure(self, problem, outcome, settings, generators):
        """λ_min(∇²f(w)) of the final iterates."""
        return {"lambda_min": np.linalg.eigvalsh(problem.hessian(outcome.W))[:, 0]}

    def iterations(self, problem, settings):
        return settings.cap

    audit_case = dp.AuditCase({"alpha": 1e4}, n=2)  # so loose a target that T = 1

    # Δ_H = 2B_H√d/n is attained in one dimension, by a loss whose curvature changes its sign with the label.
    canaries: ClassVar[tuple[dp.AuditCase, ...]] = (
        dp.AuditCase({"alpha": 1e4}, loss="sigmoid", n=2, d=1, bend=1.0, label="hessian"),
    )

    def inspection_case(self):
        return replace(super().inspection_case(), settings={"alpha": 0.6, "cap": 12})

    def work(self, n, d, settings):
        return 4.0 * n * d * min(self.planned(settings.alpha, d), settings.cap)


class MinibatchSettings(SecondOrderMethod.Settings, frozen=True):
    """m: rows in a sample; n // 100, as published, when not given."""

    m: dp.Count | None = None
    batch_noise: BatchNoise = "m"
    batch_draw: BatchDraw = "without replacement"


def default_m(n: int) -> int:
    """Rows in a sample of n, where none are asked for: as in the published runs."""
    return max(1, n // 100)


def _on_samples(one: dp.Disclosure) -> dp.Disclosure:
    """The same release on m of the n rows."""
    return replace(
        one,
        value=f"{one.value} on m rows",
        mechanism=f"{one.mechanism} on a sample" if one.mechanism == "Gaussian" else f"{one.mechanism}, on a sample",
        replace_one=one.replace_one.replace("/n", "/m"),
        why=f"{one.why}; m in place of n",
    )


class OnMinibatches(SecondOrderMethod):
    """To inherit from before a method: every release on m of the n rows, drawn without replacement.

    Accounted by Rényi DP (equation 29), or with `tight` by the loss distribution of fixed-size samples.
    """

    paper_accounting = "rdp"
    accountings = ("rdp", "tight")
    version = 2  # m = n // 100 where it is not given, no longer n // 50
    Settings = MinibatchSettings
    discloses = tuple(_on_samples(one) for one in SecondOrderMethod.discloses)

    def complete(self, problem, settings):
        m = default_m(problem.n) if settings.m is None else settings.m
        if m > problem.n:
            raise UserError(f"{self.name}: m = {m} rows in a sample, but the data have {problem.n}; lower m")
        return msgspec.structs.replace(settings, m=m)

    # All other rows pull against the one that differs: whether it is in the sample moves the mean by as much as
    # may be.
    audit_case = dp.AuditCase({"alpha": 1e4, "m": 1}, n=2, background=-1.0)

    canaries = tuple(replace(case, settings={**case.settings, "m": case.n}) for case in SecondOrderMethod.canaries)

    def inspection_case(self):
        case = super().inspection_case()
        return replace(case, settings={**case.settings, "m": 3})

    @staticmethod
    def samples(problem: dp.Declaration, settings: Any, count: int, sigma: float = 1.0) -> Counts:
        """`count` Gaussian releases of noise multiplier `sigma`, each on a sample of its own."""
        return ((WithoutReplacement(problem.n, settings.m, Gaussian(sigma)), count),)

    def oracle(self, problem, mechanisms, sigma, settings, guard, hessian_sigma=None):
        kind = SharedMinibatch if settings.batch_draw == "with replacement" else Minibatch
        share = settings.m / problem.n if settings.batch_noise == "n" else 1.0
        hessian_sigma = sigma if hessian_sigma is None else hessian_sigma
        return kind(problem, mechanisms, share * sigma, settings.m, share * hessian_sigma, guard)

    def work(self, n, d, settings):
        return super().work(settings.m or default_m(n), d, settings)
