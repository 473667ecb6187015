"""Small data sets that come with scikit-learn, and linear models of a chosen condition number: always available.

All are standardised here, and measured in public units by their problems, so that rows obey ‖x‖₂ ≤ 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpbench.datasets.recipes import signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw

CONDITIONS = {10: 31, 100: 32, 1000: 33}  # of the covariance: the seed of the draw
SHAPE = (5_000, 40)
NOISE = 0.5  # of the labels, whose signal has unit variance


def breast_cancer(raw: Raw) -> Arrays:
    """+1: malignant (scikit-learn's 0)."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return with_ones(standardise(X.astype(np.float64))), signs(y, 0, 1)


def digits(raw: Raw) -> Arrays:
    """+1: an odd digit. Pixels are divided by 16, their public range, and not standardised."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return with_ones(X.astype(np.float64) / 16.0), signs(y % 2, 1, 0)


def diabetes(raw: Raw) -> Arrays:
    """The diabetes regression, columns and target standardised."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return standardise(X.astype(np.float64)), standardise(y.astype(np.float64)[:, None])[:, 0]


def conditioned(kappa: int) -> Callable[[Raw], Arrays]:
    """Rows N(0, Σ), Σ of eigenvalues from κ to 1 at equal ratios, trace d; y = <x, w> + N(0, 0.5²), over its std.

    w = Σ^{-1/2} u with u on the unit sphere: the signal has variance 1, equally in all directions.
    """

    def draw(raw: Raw) -> Arrays:
        rng = np.random.Generator(np.random.PCG64DXSM(CONDITIONS[kappa]))
        n, d = SHAPE
        scales = np.geomspace(kappa, 1.0, d)
        scales = np.sqrt(scales * d / scales.sum())
        rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
        Z = rng.standard_normal((n, d))
        u = rng.standard_normal(d)
        y = Z @ (u / np.linalg.norm(u)) + NOISE * rng.standard_normal(n)
        return np.ascontiguousarray((Z * scales) @ rotation.T), standardise(y[:, None])[:, 0]

    return draw


LICENCE = "as distributed with scikit-learn (BSD-3-Clause)"
SPECS = [
    DatasetSpec(
        name="breast-cancer",
        title="Wisconsin diagnostic breast cancer",
        prepare=breast_cancer,
        rows=569,
        columns=31,
        classes={-1: 357, 1: 212},
        recipe="30 features standardised; ones column in front",
        licence=LICENCE,
        citation="Wolberg, Street and Mangasarian (1995), Breast Cancer Wisconsin (Diagnostic), UCI",
    ),
    DatasetSpec(
        name="digits",
        title="handwritten digits, odd against even",
        prepare=digits,
        rows=1797,
        columns=65,
        classes={-1: 891, 1: 906},
        recipe="64 pixels divided by 16; ones column in front",
        licence=LICENCE,
        citation="Alpaydin and Kaynak (1998), Optical Recognition of Handwritten Digits, UCI (test part)",
    ),
    DatasetSpec(
        name="diabetes",
        title="progression of diabetes",
        prepare=diabetes,
        rows=442,
        columns=10,
        task="regression",
        recipe="10 features and the target standardised",
        licence=LICENCE,
        citation="Efron, Hastie, Johnstone and Tibshirani (2004), Least angle regression, Ann. Statist. 32(2)",
    ),
    *(
        DatasetSpec(
            name=f"conditioned-{kappa}",
            title=f"linear model, condition number {kappa}",
            prepare=conditioned(kappa),
            rows=SHAPE[0],
            columns=SHAPE[1],
            task="regression",
            recipe=f"rows N(0, Σ), Σ of condition number {kappa} and trace d; y linear with noise, standardised",
        )
        for kappa in CONDITIONS
    ),
]
