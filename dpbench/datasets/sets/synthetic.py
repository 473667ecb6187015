"""Data sets that the papers draw, each from a fixed seed: linear models, MATLAB's random numbers, phase retrieval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpbench.datasets.recipes import clip_rows, standardise
from dpbench.datasets.spec import Arrays, Raw, described

SEEDS = {"synthetic": 20230, "lognormal": 20231, "sparse-linear": 20233, "accelerated": 2746}


def _rng(name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64DXSM(SEEDS[name]))


def sphere(raw: Raw) -> Arrays:
    """second_order: x uniform on the unit sphere, P(y = 1) = σ(<x, 1>)."""
    rng = _rng("synthetic")
    X = rng.standard_normal((10_000, 100))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(rng.random(len(X)) < 1 / (1 + np.exp(-X.sum(axis=1))), 1.0, -1.0)
    return clip_rows(X), y


def signs_of(rng: np.random.Generator, sigma: float, noise: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """1,000 × 100 columns N(0, 1), w_true log-normal(0, sigma), y = sign(X w_true + noise·N(0, 1)); X standardised.

    noise None: ‖w_true‖₂, so that a label's signal and noise are alike in size.
    """
    X = rng.standard_normal((1_000, 100))
    w = rng.lognormal(0.0, sigma, 100)
    scale = np.linalg.norm(w) if noise is None else noise
    y = np.where(X @ w + scale * rng.standard_normal(len(X)) > 0, 1.0, -1.0)
    return standardise(X), y


def square(raw: Raw) -> Arrays:
    """greedy_coordinate's square: 10 non-zeros of w_true, each 100·N(0, 1); y = X w_true + 150·N(0, 1).

    Label noise and draw are inferred: with λ = 30 the optimum is to have the published 7 non-zeros, ‖w*‖₁ near the
    author's 503 and a start's relative error near 0.75, which label noises of 125 to 250 allow; of the draws this one
    comes near in all three (7, 493, 0.757).
    """
    rng = np.random.default_rng(182)
    X = rng.standard_normal((1_000, 1_000))
    w = np.zeros(1_000)
    support = rng.choice(1_000, size=10, replace=False)  # before the values: an assignment draws its right side first
    w[support] = 100.0 * rng.standard_normal(10)
    y = X @ w + 150.0 * rng.standard_normal(len(X))
    return standardise(X), y


def sparse_linear(raw: Raw) -> Arrays:
    """The leaderboard's: 10 non-zeros of w_true, each 100·U(0, 1); y = X w_true + N(0, 1)."""
    rng = _rng("sparse-linear")
    X = rng.standard_normal((1_000, 1_000))
    w = np.zeros(1_000)
    w[rng.choice(1_000, size=10, replace=False)] = 100.0 * rng.random(10)
    y = X @ w + rng.standard_normal(len(X))
    return standardise(X), y


def cube(raw: Raw) -> Arrays:
    """accelerated's: u uniform on [0, 1]^20, x_true ~ N(0, I), z = sign(<u, x_true>).

    The published curves start at F(x₀) - F* = 29.1, which depends on the draw: of the seeds from 2022 on,
    2746 is the first to come within 0.3 % of it, at 29.0948 (x₀ = (10, …, 10), λ = 0.01).
    """
    rng = _rng("accelerated")
    x_true = rng.standard_normal(20)
    U = rng.random((100_000, 20))  # ‖u‖₁ ≤ 20 holds by itself
    return U, np.where(U @ x_true >= 0, 1.0, -1.0)


# MATLAB's randn(20, 1) behind rng(1); rand(100000, 20): tests/datasets/matlab.py rebuilds them.
X_TRUE_OF_2020 = (
    -1.5479785575125795, 0.7762110306206277, 1.5195650523972666, -1.2571227974920842, 1.7952893574213782,
    0.0704207121836595, -1.6520285419554035, -0.29211711057881906, 1.0979295322793363, 2.051370921883906,
    0.13205113258345993, 0.6490988035911031, -1.9097557312075035, -1.652476860607898, 2.6398420826322644,
    0.019566784284379565, 1.2677808030193627, 1.0038006852297117, 0.7423148713180926, -0.8909323881802022,
)  # fmt: skip


def cube_of_2020(raw: Raw) -> Arrays:
    """The draw of accelerated's authors: MATLAB's rng(1), U filled column by column, then x_true."""
    U = np.random.RandomState(1).random_sample(2_000_000).reshape(20, 100_000).T  # MATLAB's twister
    return U, np.sign(U @ np.array(X_TRUE_OF_2020))


def drawn_by(seed: int, sigma: float) -> Callable[[Raw], Arrays]:
    """The recipe with this seed and this spread."""
    return lambda raw: signs_of(np.random.default_rng(seed), sigma)


def unit_noise(raw: Raw) -> Arrays:
    """The leaderboard's: w_true log-normal(0, 1), label noise N(0, 1)."""
    return signs_of(_rng("lognormal"), 1.0, noise=1.0)


# The draws of log1 and log2 are inferred: ‖w*‖₀ says nothing with L2, and the starts (0.63 and 0.59 on the first
# author's slides) fit labels whose noise is ‖w_true‖₂, not 1.
SYNTHETIC_SPECS = described({
    "synthetic": sphere, "log1": drawn_by(5, 1.0), "log2": drawn_by(9, 2.0), "square": square, "lognormal": unit_noise,
    "sparse-linear": sparse_linear, "accelerated": cube, "accelerated-2020": cube_of_2020,
})  # fmt: skip


SEED = 2024
PHASE_ROWS = 100_000
DIMENSIONS = (5, 20, 100)
LONG = 1_000_000


def draw(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows A (n, d) uniform on the unit sphere, the hidden x (d,) likewise, and the sizes |A x| (n,)."""
    A = rng.standard_normal((n, d))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    x = rng.standard_normal(d)
    x /= np.linalg.norm(x)
    return A, x, np.abs(A @ x)


def prepare_phase(d: int, rows: int = PHASE_ROWS) -> Callable[[Raw], Arrays]:
    """The recipe that draws d columns."""

    def recipe(raw: Raw) -> Arrays:
        A, _, b = draw(np.random.Generator(np.random.PCG64DXSM(SEED + d)), rows, d)
        return A, b

    return recipe


PHASE_SPECS = described({
    **{f"phase-{d}": prepare_phase(d) for d in DIMENSIONS}, "phase-5-long": prepare_phase(5, LONG),
})  # fmt: skip

SPECS = [*SYNTHETIC_SPECS, *PHASE_SPECS]
