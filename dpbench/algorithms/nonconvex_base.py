"""What the methods for second-order stationary points share, and what the published runs did otherwise.

The latter are nine switches, each a setting of its own, none of them a default. With all of them a run repeats the
published one. Three keep its ε: where the loss is read, the bound of the search, and the second √d. A run with any
other is marked as not private, see `FLAWS`.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.nonconvex_oracle import (
    FullBatch,
    Guard,
    Iterate,
    LineSearch,
    Method,
    Minibatch,
    Request,
    RunLost,
    ShortSteps,
    Value,
    run_in_step,
)
from dpbench.errors import UserError
from dpbench.privacy.ledger import Counts, Gaussian, WithoutReplacement
from dpbench.privacy.noise import TorchCPU

Rows = Literal["clipped", "as scaled"]  # the latter for problems whose rows nobody clipped
Stop = Literal["released", "true loss"]  # what may end a run early
LossRead = Literal["after", "before"]  # the last step
BatchNoise = Literal["m", "n"]  # the rows of the mean that the noise is for
BatchDraw = Literal["without replacement", "with replacement"]  # the latter: one batch for gradient and Hessian
Search = Literal["none", "rho <= 1"]  # the bound of the scripts' search for σ = √(T/ρ)
Overflow = Literal["stable", "lost"]  # a run whose loss a float32 cannot hold
HessianRoot = Literal["once", "twice"]  # the √d in dp-tr's Hessian noise
Stream = Literal["keyed", "published"]

FLAWS = {
    ("rows", "as scaled"): "rows may be longer than the bound that its noise is for",
    ("stop", "true loss"): "it ends where the true loss rises, which is not released",
    ("batch_noise", "n"): "means over m rows get the noise of a mean over all n, n/m times too little",
    ("batch_draw", "with replacement"): (
        "one batch, drawn with replacement, serves gradient and Hessian; its ε is counted as without replacement with "
        "a batch for each, which is less than the truth"
    ),
    ("overflow", "lost"): "whether a run is lost depends on the margins, which are not released",
    ("stream", "published"): "its noise is that of a published seed, which anyone can subtract",
}
SEEDS = (2023, 999, 67, 33, 128)  # of the published runs of Tables 1 to 4; a job's seed is an index into them

LOOK_EVERY = 10  # iterations
RISES = {"logistic": 1, "sigmoid": 3}  # looks in a row at which the true loss has risen
AT_FIRST = 100.0  # what the first look is compared with
LARGEST_RHO = 1.0  # of the scripts' search: they add no less noise than √T, at any ε
_GRADIENT = partial(dp.Disclosure, "gradient", "the gradient of the objective", count="at most T")
_HESSIAN = partial(dp.Disclosure, "hessian", "the Hessian of the objective", "Gaussian, symmetric", "at most T")


def flaws(settings: Any) -> list[str]:
    """Why a run with these settings does not keep its ε: a reason for each switch that breaks it."""
    return [why for (name, value), why in FLAWS.items() if getattr(settings, name, None) == value]


class LossWatch:
    """The published runs' stop: has f itself risen since the last look, often enough in a row?

    It looks at every tenth iteration of a run, whichever phase that is in.
    """

    def __init__(self, problem: dp.Problem, on: bool, iterations: int = 0) -> None:
        """iterations: those made before the first that it may look at."""
        if on and problem.loss.name not in RISES:
            raise UserError(f"stop: true loss is of the losses {', '.join(RISES)}, not of {problem.loss.name}")
        self._on, self._rises = on, RISES[problem.loss.name] if on else 0
        self._last, self._risen, self._t = AT_FIRST, 0, iterations

    def look(self, w: dp.Array) -> Generator[Request, Any, bool]:
        """Generator that returns whether the step from w is the last."""
        t, self._t = self._t, self._t + 1
        if not self._on or t % LOOK_EVERY:
            return False
        value = yield Value(w)
        self._risen = self._risen + 1 if value > self._last else 0
        self._last = value
        return self._risen >= self._rises


def recorded(method: Method, settings: Any) -> Method:
    """`method`, with the iterate whose loss the published scripts print, and with runs that are lost."""
    before, last, answer = getattr(settings, "loss_read", "after") == "before", None, None
    while True:
        try:
            request = method.send(answer)
        except RunLost:
            # The scripts write no row for a lost run; ours ends where it was, with its ending in the row.
            assert last is not None
            return last, "crashed"
        except StopIteration as end:
            w, ending = end.value
            return (last if before and last is not None else w), ending
        if isinstance(request, Iterate):
            last = request.w
        answer = yield request


class PublishedSwitches(NamedTuple):
    """The generators of one published run: one for its start and all its noise, one for the rows of its batches."""

    noise: TorchCPU
    rows: np.random.Generator


def published_streams(mechanisms: dp.Mechanisms) -> list[PublishedSwitches]:
    """Those of a batch's replicates: their jobs' seeds 0 to 4 stand for the five published ones.

    Raises:
        UserError: for any other seed, and for runs that are no jobs.
    """
    seeds = mechanisms.seeds
    if len(seeds) != mechanisms.k or not all(0 <= seed < len(SEEDS) for seed in seeds):
        raise UserError(
            f"stream: the published stream has seeds 0 to {len(SEEDS) - 1} (of torch: "
            f"{', '.join(map(str, SEEDS))}), not {', '.join(map(str, seeds)) or 'a run without a seed'}; "
            f"run it with --seeds {len(SEEDS)}"
        )
    return [PublishedSwitches(TorchCPU(SEEDS[i]), np.random.default_rng(SEEDS[i])) for i in seeds]


class SharedMinibatch(Minibatch):
    """g̃ and H̃ on the same m rows, drawn with replacement at the start of the iteration.

    Multipliers are recorded relative to the sensitivities on m rows, Δ_g = 2B_g/m and Δ_H = 2B_H√d/m.
    """

    def _samplers(self, mechanisms, n, m):
        one = mechanisms.with_replacement(n, m, label="batch")
        return one, one

    def _gradient_rows(self):
        # The gradient comes first in every iteration; the Hessian then takes the same batch.
        self._rows = super()._gradient_rows()
        return self._rows

    def _hessian_rows(self):
        return self._rows


def searched(multiplier: float, T: int, settings: Any) -> float:
    """`multiplier`, which ε asks for, or what the published search makes of it for T iterations."""
    return max(multiplier, math.sqrt(T / LARGEST_RHO)) if settings.search == "rho <= 1" else multiplier


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
