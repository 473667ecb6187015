"""Stochastic gradient descent: on Poisson samples, on one row at a time, and in a fixed order with correlated noise.

The steps of dp-sgd-1 run for a grid of (step, clip) on common rows and common noise. A step costs k·d operations, a
NumPy call about as much as 2,000 of them; numba (the extra `fast`) runs the steps of one replicate after another
instead, with its iterate in the first-level cache. Both do the same in the same order of steps; sums over coordinates
are rounded differently.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.coordinate import ByPasses, proximal_step
from dpbench.errors import UserError
from dpbench.privacy.accounting.allocation import LEAST_DELTA
from dpbench.privacy.ledger import at_rho
from dpbench.problems.fast_rows import Loop, Within, compiled
from dpbench.problems.losses import Logistic, Loss, Squared


class DPSGD(dp.Algorithm):
    """dp-sgd: w ← w - η (Σ_{i∈B} ∇f_i + N(σ²I)) / (np), B a Poisson sample of rate p (Abadi et al. 2016).

    One example moves the sum over a sample by at most L₀ (add/remove), so σ = z·L₀ with z the noise multiplier
    at which T Poisson-sampled Gaussian releases are (ε, δ)-DP (Mironov, Talwar and Zhang 2019; no clipping:
    the loss is L₀-Lipschitz). Rate 0.02 and step 1/L₁ are those of Ganesh et al. 2023, Section 6.4. Under replace-one
    two rows move the sum in opposite directions at worst, which `tight` counts as it is (`ledger.PoissonReplaced`);
    other accountings take samples of a fixed size.

    batches: "allocated" puts each row into one batch of every epoch of 1/p steps, at random (Chua et al. 2024), which
    costs less than Poisson samples at equal noise; under add/remove, and by `tight` alone (`ledger.Allocated`).
    """

    name = "dp-sgd"
    title = "DP-SGD"
    revisions: ClassVar = {"tight": 3}  # samples under replace-one
    paper_accounting = "rdp"
    accountings = ("tight", "rdp")
    exact = "sums"
    needs = dp.Needs(lipschitz=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"step"})
    discloses = (
        dp.Disclosure(
            "gradient", "the sum of the sample's gradients", "Gaussian on a sample", add_remove="L₀", why="‖∇f_i‖ ≤ L₀"
        ),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 1000
        rate: dp.Share = 0.02
        step: dp.Positive | None = None
        batches: Literal["poisson", "allocated"] = "poisson"

    def complete(self, problem, settings):
        if settings.batches == "allocated" and not (1 / settings.rate).is_integer():
            raise UserError(f"{self.name}: rate = {settings.rate:g}: allocated batches need 1/rate whole; take 0.02")
        return dp.at_default_step(problem, settings)

    def sampler(self, problem, mechanisms, settings):
        """Of the batches."""
        if settings.batches == "allocated":
            budget = mechanisms.budget
            proved = budget.relation is dp.Relation.ADD_REMOVE and budget.accounting == "tight"
            if not proved or budget.delta < LEAST_DELTA:
                raise UserError(
                    f"{self.name}: allocated batches are accounted by tight under add-remove neighbours alone, for "
                    f"delta from {LEAST_DELTA:g} on; take --accounting tight --relation add-remove, or Poisson batches"
                )
            return mechanisms.allocation(problem.n, round(1 / settings.rate), label="gradient")
        return mechanisms.poisson(problem.n, settings.rate, label="gradient")

    audit_case = dp.AuditCase({"T": 2, "rate": 0.5})

    def work(self, n, d, settings):
        return settings.T * (8.0 * n * settings.rate * d + 2e6)

    def plan(self, problem, mechanisms, settings):
        sampler = self.sampler(problem, mechanisms, settings)
        mechanisms.plan_all("gradient", sampler.plan(settings.T, sampler.noise_multiplier(settings.T)))

    def run(self, problem, W, mechanisms, settings, trace):
        sampler = self.sampler(problem, mechanisms, settings)
        multiplier = sampler.noise_multiplier(settings.T)
        step = np.asarray(settings.step)[:, None]
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            total = np.stack([problem.gradient_sum(w, rows) for w, rows in zip(W, sampler.draw(), strict=True)])
            noisy = sampler.gaussian(total, sensitivity=problem.lipschitz, noise_multiplier=multiplier)
            penalty = sum(r.gradient(W) for r in problem.regularisers.values())
            W = W - step * (noisy / sampler.size + penalty)
            trace(t, W, passes=t * settings.rate)
        return W


def stepper(problem: dp.Problem) -> Callable[..., None]:
    """advance(W (k, d), rows (s,), noise (s, d), step (k,), clip (k,)): s steps of W, in place.

    noise: in units of the sensitivity 2·clip. numba for dense data and the losses it knows, if it is installed.
    """
    kinds: dict[type[Loss], int] = {Squared: 0, Logistic: 1}
    kind = kinds.get(type(problem.loss))  # by type: a name may be lent to another
    compiled = _compiled() if kind is not None else None
    if compiled is None:
        return functools.partial(advance, problem, problem.row_norms)
    if problem.is_sparse:
        X = problem.X
        return functools.partial(
            compiled[1], X.data, X.indices, X.indptr, problem.y, problem.row_norms, kind, problem.l1, problem.l2
        )
    return functools.partial(
        compiled[0], np.asarray(problem.X), problem.y, problem.row_norms, kind, problem.l1, problem.l2
    )


def advance(
    problem: dp.Problem, norms: dp.Array, W: dp.Array, rows: np.ndarray, noise: dp.Array, step: dp.Array, clip: dp.Array
) -> None:
    """The same in NumPy, for any loss: one step of all replicates at a time."""
    for i, xi in zip(rows, noise, strict=True):
        x = problem.X[[i]].toarray()[0] if problem.is_sparse else problem.X[i]
        z = (W @ x)[:, None]
        r = problem.loss.derivative(z, problem.y[[i]], np.empty_like(z))[:, 0]
        # tiny, not 0: a row of zeros has no gradient to clip.
        r *= np.minimum(1, clip / np.maximum(np.abs(r) * norms[i], np.finfo(float).tiny))
        W[...] = proximal_step(problem, W, np.multiply.outer(r, x) + np.multiply.outer(2 * clip, xi), step[:, None])


@compiled
def _compiled(compile_loop: Loop, within: Within) -> tuple[Callable[..., None], Callable[..., None]]:
    """(dense, sparse) versions of `advance`, or None without numba."""

    @compile_loop
    def coefficient(kind: int, z: float, y: float, norm: float, clip: float) -> float:
        # Squared loss (kind 0) or logistic; beyond 709 the exponential overflows.
        r = z - y if kind == 0 else -y / (1 + np.exp(min(y * z, 700.0)))
        size = abs(r) * norm
        return r * (clip / size) if size > clip else r

    @compile_loop
    def dense(
        X: Any, y: Any, norms: Any, kind: Any, l1: Any, l2: Any,
        W: Any, rows: Any, noise: Any, step: Any, clip: Any
    ) -> None:  # fmt: skip
        for a in range(len(W)):
            w, shrink, threshold, scale = W[a], 1 - step[a] * l2, step[a] * l1, 2 * clip[a]
            for t in range(len(rows)):
                i = rows[t]
                x, xi = X[i], noise[t]
                z = 0.0
                for j in range(len(w)):
                    z += w[j] * x[j]
                r = coefficient(kind, z, y[i], norms[i], clip[a])
                for j in range(len(w)):
                    # v - clip(v, ±threshold) is soft thresholding, the proximal step of l1.
                    v = shrink * w[j] - step[a] * (r * x[j] + scale * xi[j])
                    w[j] = v - within(v, -threshold, threshold)

    @compile_loop
    def sparse(
        data: Any, indices: Any, indptr: Any, y: Any, norms: Any, kind: Any, l1: Any, l2: Any,
        W: Any, rows: Any, noise: Any, step: Any, clip: Any,
    ) -> None:  # fmt: skip
        before = np.empty(W.shape[1])
        for a in range(len(W)):
            w, shrink, threshold, scale = W[a], 1 - step[a] * l2, step[a] * l1, 2 * clip[a]
            for t in range(len(rows)):
                i = rows[t]
                first, last, xi = indptr[i], indptr[i + 1], noise[t]
                z = 0.0
                for c in range(first, last):
                    z += w[indices[c]] * data[c]
                r = coefficient(kind, z, y[i], norms[i], clip[a])
                for c in range(first, last):  # the row's coordinates move on their own, from where they were
                    before[c - first] = w[indices[c]]
                # The noise is dense: every coordinate moves, though the row has few.
                for j in range(len(w)):
                    v = shrink * w[j] - step[a] * scale * xi[j]
                    w[j] = v - within(v, -threshold, threshold)
                for c in range(first, last):
                    j = indices[c]
                    v = shrink * before[c - first] - step[a] * (r * data[c] + scale * xi[j])
                    w[j] = v - within(v, -threshold, threshold)

    return dense, sparse


BLOCK, ROWS = 2**18, 16  # noise numbers drawn at a time: 2 MB, or 16 steps that find an iterate in the cache

MULTIPLES = {"zC": 1.0, "sqrt2zC": math.sqrt(2), "2zC": 2.0}  # of the noise that the paper's text describes


class DPSGDOne(ByPasses):
    """dp-sgd-1: w ← prox(w - γ (clip(∇f_i, C) + λw + N(σ²I))), i uniform in 1..n (Mangold et al. 2023, Section 5).

    A row's gradient has ℓ₂ norm at most C after clipping, so with i drawn a replaced row moves it by Δ = 2C, and is
    drawn with probability 1/n: each step is a Gaussian release, σ = zΔ, on m = 1 of n rows without replacement. "rdp":
    z by Wang, Balle and Kasiviswanathan (2019), Theorems 9 and 27. "poisson", as the paper's accounting: σ = zC with z
    of Poisson samples under add/remove (Mironov et al. 2019); see `flaw`. "tight": z by the loss distribution of such
    samples, down to where its grid is too large: at ε = 0.1 less than half of the noise on any number of rows (1.19
    instead of 2.87 at n = 45,222 and 10 passes), at ε = 1 a quarter less on 1,000 and no less on 2,600. L2's λw and
    L1's soft threshold at γλ use no data. One pass is n iterations.

    noise: "2zC" doubles it and "sqrt2zC" takes √2 of it. What the paper's text describes, σ = zC, is excluded by its
    own value on california; between √2 and 2 its values do not decide (see docs/papers/greedy_coordinate.md).
    """

    name = "dp-sgd-1"
    title = "DP-SGD, batch size 1"
    in_reals = "it releases single rows' gradients, as float64 computes and clips them"
    paper_accounting = "poisson"
    accountings = ("rdp", "tight")
    discloses = (
        dp.Disclosure(
            "gradient of one row",
            "one row's clipped gradient",
            "Gaussian on a sample",
            "passes·n",
            replace_one="2·C",
            why="clipped to ‖·‖₂ ≤ C; 1 of n rows",
        ),
    )

    class Settings(ByPasses.Settings, frozen=True):
        noise: Literal["zC", "sqrt2zC", "2zC"] = "zC"

    @staticmethod
    def per_pass(n, d):
        return n

    def flaw(self, settings, accounting=""):
        if accounting != "poisson":
            return ""
        return "noise of Poisson samples under add/remove, but one row is drawn: ε spent is what replace-one costs"

    # One step; all other rows pull against the one that differs. The paper's accounting is for other samples.
    audit_case = dp.AuditCase({"passes": 0.25}, accounting="rdp", loss="squared", background=-1.0)

    def plan(self, problem, mechanisms, settings):
        T = self.iterations(problem, settings)
        sampler = mechanisms.without_replacement(problem.n, 1, label="gradient of one row")
        multiplier = sampler.noise_multiplier(T) * MULTIPLES[settings.noise]
        mechanisms.plan_all("gradient of one row", sampler.plan(T, multiplier))

    def run(self, problem, W, mechanisms, settings, trace):
        n, T = problem.n, self.iterations(problem, settings)
        sampler = mechanisms.without_replacement(n, 1, label="gradient of one row")
        multiplier = sampler.noise_multiplier(T) * MULTIPLES[settings.noise]
        rows, noise = sampler.one_row_steps(T, problem.d, noise_multiplier=multiplier)
        advance = stepper(problem)
        step, clip = np.asarray(settings.step), np.asarray(settings.clip)
        # Few draws of much noise: as many steps as fit 2 MB, between two points of the trace.
        size = max(ROWS, BLOCK // problem.d)
        trace(0, W, passes=0)
        t = 0
        while t < T:
            stop = min(t + size, T, trace.next if trace.next > t else T)
            for members, drawn, block in zip(mechanisms.streams, rows[:, t:stop], noise.block(stop - t), strict=True):
                advance(W[members], drawn, block, step[members], clip[members])
            t = stop
            trace(t, W, passes=t / n)
        return W


class DPMatrixFactorisation(dp.Algorithm):
    """dp-mf: w ← w - η (Σ_{i∈B_t} ∇f_i + (C⁻¹Z)_t)/|B_t| over batches in a fixed order (Choquette-Choo et al. 2023).

    Row i is in batch i mod b of every epoch, so its rounds are b apart; no sampling, no assumption on it. Replacing it
    moves each of its k sums by at most 2L₀. With C of at most b bands its columns at these rounds are orthogonal: the
    whole run is one Gaussian release of sensitivity √k · max ‖column‖ · 2L₀ (less where the end cuts columns off; see
    `privacy.correlated`). Noise of neighbouring rounds cancels in the sum of the steps. On all rows (b = 1) C has one
    band: independent noise, as correlation cannot help there (‖1ᵀC⁻¹‖·‖C1‖ ≥ T by Cauchy and Schwarz).

    epochs: k. batches: b. bands: of C, b by default; 1 is dp-sgd in a fixed order.
    """

    name = "dp-mf"
    title = "DP-MF"
    relation = dp.Relation.REPLACE_ONE
    exact = "sums"
    paper_accounting = "tight"
    needs = dp.Needs(lipschitz=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"step"})
    discloses = (
        dp.Disclosure(
            "gradient",
            "the sums of the batches' gradients, all rounds together",
            "correlated Gaussian",
            "1",
            replace_one="2·L₀·c",
            why="‖∇f_i‖ ≤ L₀; c = √k · max ‖column of C‖, k rounds that are b apart",
        ),
    )
    tuning: ClassVar = {"epochs": [3, 10, 30], "batches": [4, 16]}

    class Settings(dp.BaseSettings, frozen=True):
        epochs: dp.Count = 10
        batches: dp.Count = 10
        bands: dp.Count | None = None
        step: dp.Positive | None = None

    def complete(self, problem, settings):
        b = settings.batches
        if b > problem.n:
            raise UserError(f"{self.name}: batches = {b}, but the data have {problem.n} rows; lower it")
        if settings.bands is not None and settings.bands > b:
            raise UserError(f"{self.name}: bands = {settings.bands} must be at most batches = {b}")
        return msgspec.structs.replace(dp.at_default_step(problem, settings), bands=settings.bands or b)

    def iterations(self, problem, settings):
        return settings.epochs * settings.batches

    audit_case = dp.AuditCase({"epochs": 2, "batches": 2})

    def work(self, n, d, settings):
        return settings.epochs * (4.0 * n * d + 1e5 * settings.batches)

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("gradient", at_rho(mechanisms.budget.rho), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        b, T = settings.batches, settings.epochs * settings.batches
        noise = mechanisms.correlated(
            T,
            separation=b,
            bands=settings.bands or b,
            sensitivity=2 * problem.lipschitz,
            rho=mechanisms.budget.rho,
            label="gradient",
        )
        # Row i in batch i mod b: the rounds of a row are exactly b apart, which the matrix is made for.
        batches = [np.arange(first, problem.n, b) for first in range(b)]
        step = np.asarray(settings.step)[:, None]
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            rows = batches[(t - 1) % b]
            noisy = noise.release(problem.gradient_sum(W, rows if b > 1 else None))
            penalty = sum(r.gradient(W) for r in problem.regularisers.values())
            W = W - step * (noisy / len(rows) + penalty)
            trace(t, W, passes=t / b)
        return W
