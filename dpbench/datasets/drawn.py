"""Data sets that are always available: drawn from fixed seeds by the papers and for the leaderboard, or scikit-learn's.

The papers draw linear models, MATLAB's random numbers and phase retrieval. Each set drawn for the leaderboard varies
one thing, from a seed of its own. Logistic models have a margin <x, u> of standard deviation MARGIN and labels from
σ(margin); linear models a signal of variance 1 and noise. Where not said otherwise rows are N(0, I), and problems
measure them in the public unit √d. Those that come with scikit-learn are standardised here, and measured in public
units by their problems, so that rows obey ‖x‖₂ ≤ 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from dpbench.datasets.recipes import clip_rows, signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, described

SEEDS = {"synthetic": 20230, "lognormal": 20231, "sparse-linear": 20233, "accelerated": 2746}
MARGIN = 3.0
Rng: TypeAlias = "np.random.Generator"  # as text: numpy.random takes 6 ms to load


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


def _plain(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.standard_normal((n, d))


def _constant(rng: Rng, n: int, d: int) -> np.ndarray:
    """A constant column, as long as half of a row, in front."""
    return np.hstack([np.full((n, 1), np.sqrt(d) / 2), rng.standard_normal((n, d - 1))])


def _heavy(rng: Rng, n: int, d: int) -> np.ndarray:
    """Student's t with 3 degrees of freedom, over its standard deviation."""
    return rng.standard_t(3, (n, d)) / np.sqrt(3)


def _shifted(rng: Rng, n: int, d: int) -> np.ndarray:
    """Columns of mean 1 and standard deviation 1/2, and no intercept."""
    return 1 + 0.5 * rng.standard_normal((n, d))


def _rotated(rng: Rng, kappa: float, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """(Z, X) of N(0, I) and of N(0, Σ): Σ has eigenvalues from κ to 1 at equal ratios, and trace d."""
    scales = np.geomspace(kappa, 1.0, d)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    Z = rng.standard_normal((n, d))
    return Z, (Z * np.sqrt(scales * d / scales.sum())) @ rotation.T


def _conditioned(kappa: float) -> Callable[[Rng, int, int], np.ndarray]:
    """Rows of a covariance with this condition number."""
    return lambda rng, n, d: _rotated(rng, kappa, n, d)[1]


class Draw(NamedTuple):
    """What a data set is drawn by. share: of positive labels; noise: of flipped labels, or of a target.

    informative: how many columns have a coefficient, 0 for all.
    """

    title: str
    seed: int
    n: int
    d: int
    rows: Callable[[Rng, int, int], np.ndarray] = _plain
    binary: bool = True
    margin: float = MARGIN
    share: float = 0.5
    noise: float = 0.0
    informative: int = 0
    target: Callable[[Rng, np.ndarray], np.ndarray] | None = None

    def prepare(self, raw: Raw) -> Arrays:
        """The arrays."""
        rng = np.random.Generator(np.random.PCG64DXSM(self.seed))
        X = self.rows(rng, self.n, self.d)
        signal = self._signal(rng, X) if self.target is None else self.target(rng, X)
        # Of variance 1 as drawn: the margin or the noise then means the same on every set.
        signal = (signal - signal.mean()) / signal.std()
        if not self.binary:
            y = signal + self.noise * (
                _heavy(rng, self.n, 1)[:, 0] if self.rows is _heavy else rng.standard_normal(self.n)
            )
            return X, standardise(y[:, None])[:, 0]
        z = self.margin * signal
        # The intercept at which the share of positive labels is the one asked for.
        z -= np.quantile(z + rng.logistic(size=self.n), 1 - self.share)
        y = np.where(rng.random(self.n) < 1 / (1 + np.exp(-np.clip(z, -500, 500))), 1.0, -1.0)
        return X, np.where(rng.random(self.n) < self.noise, -y, y)

    def _signal(self, rng: Rng, X: np.ndarray) -> np.ndarray:
        u = rng.standard_normal(self.d)
        if self.informative:
            u[rng.permutation(self.d)[self.informative :]] = 0.0
        return X @ u


def _friedman(rng: Rng, X: np.ndarray) -> np.ndarray:
    """Friedman's first function of uniform columns, which no linear model has."""
    # Ranks are uniform whatever law the columns have.
    U = (np.argsort(np.argsort(X, axis=0), axis=0) + 0.5) / len(X)
    return 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3] + 5 * U[:, 4]


DRAWS = {
    "gen-tiny": Draw("300 rows", 501, 300, 5),
    "gen-small": Draw("1,000 rows", 502, 1_000, 20),
    "gen-large": Draw("100,000 rows", 503, 100_000, 20),
    "gen-huge": Draw("500,000 rows", 534, 500_000, 10),
    "gen-flipped-30": Draw("three tenths of the labels flipped", 505, 5_000, 20, noise=0.3),
    "gen-rare-10": Draw("a tenth of positive labels", 506, 10_000, 20, _constant, share=0.1),
    "gen-rare-1": Draw("a hundredth of positive labels", 507, 50_000, 20, _constant, share=0.01),
    "gen-condition-10000": Draw("condition number 10,000", 509, 5_000, 40, _conditioned(1e4)),
    "gen-heavy": Draw("heavy-tailed columns", 511, 5_000, 20, _heavy),
    "gen-shifted": Draw("columns that are not centred", 513, 5_000, 20, _shifted),
    "gen-sharp": Draw("nearly separable", 514, 3_000, 30, margin=30.0),
    "gen-linear-tiny": Draw("300 rows", 521, 300, 5, binary=False, noise=0.5),
    "gen-linear-large": Draw("100,000 rows", 522, 100_000, 20, binary=False, noise=0.5),
    "gen-linear-noisy": Draw("R² of 0.1", 523, 5_000, 20, binary=False, noise=3.0),
    "gen-linear-clean": Draw("R² of 0.99", 524, 5_000, 20, binary=False, noise=0.1),
    "gen-friedman": Draw("Friedman's function", 529, 3_000, 10, binary=False, noise=0.2, target=_friedman),
    "gen-lasso": Draw("10 of 500 columns matter", 531, 2_000, 500, binary=False, noise=0.5, informative=10),
    "gen-wide": Draw("10 of 2,000 columns matter", 532, 1_000, 2_000, informative=10),
}  # fmt: skip
WIDEST = (600, 20_000, 100)  # rows, columns, ones in a row


def very_wide(raw: Raw) -> Arrays:
    """Rows with 100 ones among 20,000 columns; the 20 most frequent columns decide."""
    import scipy.sparse

    rng = np.random.Generator(np.random.PCG64DXSM(533))
    n, d, ones = WIDEST
    # A power law, as words in documents have it.
    chance = 1 / np.arange(1, d + 1) ** 0.7
    columns = np.stack([rng.choice(d, ones, replace=False, p=chance / chance.sum()) for _ in range(n)])
    X = scipy.sparse.csr_matrix((np.ones(n * ones), columns.ravel(), np.arange(0, n * ones + 1, ones)), shape=(n, d))
    X.sort_indices()
    z = X[:, :20] @ rng.choice([-1.0, 1.0], 20)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * (z - z.mean()))), 1.0, -1.0)
    return X, y


GENERATED_SPECS = [
    *(
        DatasetSpec(
            name=name,
            title=f"{'logistic' if draw.binary else 'linear'} model: {draw.title}",
            prepare=draw.prepare,
            rows=draw.n,
            columns=draw.d,
            task="binary" if draw.binary else "regression",
            recipe=f"{'logistic' if draw.binary else 'linear'} model; {draw.title}; see dpbench.datasets.drawn",
        )
        for name, draw in DRAWS.items()
    ),
    DatasetSpec(
        name="gen-very-wide",
        title="logistic model: 20,000 sparse columns",
        prepare=very_wide,
        rows=WIDEST[0],
        columns=WIDEST[1],
        recipe="100 ones in a row, columns by a power law; the 20 most frequent decide",
    ),
]


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
        Z, X = _rotated(rng, kappa, n, d)
        u = rng.standard_normal(d)
        y = Z @ (u / np.linalg.norm(u)) + NOISE * rng.standard_normal(n)
        return np.ascontiguousarray(X), standardise(y[:, None])[:, 0]

    return draw


BUNDLED_SPECS = described({
    "breast-cancer": breast_cancer, "digits": digits, "diabetes": diabetes,
    **{f"conditioned-{kappa}": conditioned(kappa) for kappa in CONDITIONS},
})  # fmt: skip

SPECS = [*SYNTHETIC_SPECS, *PHASE_SPECS, *GENERATED_SPECS, *BUNDLED_SPECS]
