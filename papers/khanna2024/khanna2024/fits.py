"""The review's optimisers, written from its formulas, for V trials and S settings at once: weights are (V, d, S).

Rows have ‖x‖₁ ≤ 1 and targets |y| ≤ 1, neighbours replace one row. Each function ends with two noises: as released, and
one at a proven ε ("exact"), composed by the accountant from what the bounds say that a row moves.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BoundedRange, Gaussian, Laplace, PureDP
from scipy.special import expit, ndtr

BOUNDED = 2 * math.sqrt(2) / 3  # the largest value of Catoni's truncation
FAR, POINTS = 8.0, 2**17  # the table of `released_truncation` on ±FAR


class Draws:
    """Unit noise (V, p, S): of each trial and setting its own, or the same for all where it is shared.

    factor: what the noise is multiplied by, in runs that are wrong on purpose.
    """

    def __init__(self, generator: np.random.Generator, shape: tuple[int, int], shared: bool, factor: float) -> None:
        self.generator, self.factor = generator, factor
        self.trials, self.settings = (1, 1) if shared else shape

    def unit(self, p: int, law: str = "laplace") -> np.ndarray:
        return self.factor * getattr(self.generator, law)(size=(self.trials, p, self.settings))

    def drawn(self, scores: np.ndarray) -> np.ndarray:
        """An index (V, S) of probability ∝ e^score, from one uniform number as the released code draws it."""
        if self.factor == 0:
            return scores.argmax(axis=1)
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / self.factor)
        below = self.generator.random(size=(self.trials, 1, self.settings)) * weights.sum(axis=1, keepdims=True)
        return np.minimum((weights.cumsum(axis=1) < below).sum(axis=1), scores.shape[1] - 1)


@dataclass(frozen=True)
class Fit:
    """What one call fits: X (V, n, d), y (V, n, 1), one T and s, and η and k of each of the S settings."""

    X: np.ndarray
    y: np.ndarray
    logistic: bool
    budget: Budget
    exact: bool
    draws: Draws
    T: int
    s: int
    eta: np.ndarray
    k: np.ndarray

    @property
    def start(self) -> np.ndarray:
        return np.zeros((len(self.X), self.X.shape[2], len(self.eta)))

    @property
    def slope(self) -> float:
        """The most that a coordinate of a row's gradient can be, where |<x, w>| ≤ 1."""
        return 1.0 if self.logistic else 2.0

    @property
    def tail(self) -> float:
        """ln(1/δ)."""
        return math.log(1 / self.budget.delta)

    def residuals(self, w: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """(V, m, S)."""
        z = self.X[:, rows] @ w
        return (expit(z) if self.logistic else z) - self.y[:, rows]

    def gradient(self, w: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """The mean over rows, (V, d, S)."""
        r = self.residuals(w, rows)
        return self.X[:, rows].transpose(0, 2, 1) @ r / r.shape[1]

    def truncated(self, w: np.ndarray, rows: slice) -> np.ndarray:
        """The mean of truncated gradients (V, d, S): by the released formula, or clipped to ±k where exact."""
        each = self.X[:, rows, :, None] * self.residuals(w, rows)[:, :, None, :] / self.k
        kept = np.clip(each, -1, 1) if self.exact else released_truncation(each)
        return self.k * kept.mean(axis=1)

    def blocks(self) -> Iterator[tuple[int, slice, int]]:
        """(t, rows, how many) of T disjoint blocks: a release on each costs as much as one."""
        ends = np.linspace(0, self.X.shape[1], self.T + 1).astype(int)
        for t in range(1, self.T + 1):
            yield t, slice(ends[t - 1], ends[t]), int(ends[t] - ends[t - 1])

    def noise(self, released: float, *plan) -> float:
        """The multiplier of the released code, or the smallest at which `plan` keeps ε."""
        return self.budget.noise_scale(plan) if self.exact else released


def catoni(u: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """E φ(u + |u|g), g normal and φ(x) = x - x³/6 up to √2, then constant (Catoni and Giulini 2017); |.| ≤ 2√2/3.

    sign: -1 as ht_sparse_opt.py has it: its second term (lines 9-10) subtracts the two tails, the formula adds them.
    """
    sd = np.abs(u) + 1e-6
    low, high = (math.sqrt(2) - u) / sd, (math.sqrt(2) + u) / sd
    below, above, left, right = ndtr(-low), ndtr(-high), np.exp(-(low**2) / 2), np.exp(-(high**2) / 2)
    root = math.sqrt(2 * math.pi)
    terms = (
        u * (1 - u**2 / 2) - u**3 / 6,
        BOUNDED * (below - above),
        -(u - u**3 / 6) * (below + sign * above),
        sd * (1 - u**2 / 2) / root * (right - left),
        u * sd**2 / 2 * (below + above + (high * right + low * left) / root),
        sd**3 / (6 * root) * ((low**2 + 2) * left - (high**2 + 2) * right),
    )
    return sum(terms)


@functools.cache
def _table() -> tuple[np.ndarray, np.ndarray]:
    values = catoni(np.linspace(-FAR, FAR, POINTS + 1), -1.0)
    return values, np.append(np.diff(values), 0.0)


def released_truncation(u: np.ndarray) -> np.ndarray:
    """`catoni` with the released sign, to 1e-8 from a table within ±FAR, as it is evaluated for every row."""
    values, steps = _table()
    far = ~(np.abs(u) <= FAR)  # NaN, too, of weights that diverged
    place = (np.where(far, 0.0, u) + FAR) * (POINTS / (2 * FAR))
    at = place.astype(np.int64)
    found = values[at] + (place - at) * steps[at]
    found[far] = catoni(u[far], -1.0)
    return found


def vertex(index: np.ndarray, d: int) -> np.ndarray:
    """The vertices (V, d, S) of the ℓ₁ ball: the index-th of e₁ … e_d, -e₁ … -e_d."""
    here = np.arange(d)[None, :, None] == (index % d)[:, None, :]
    return np.where(index < d, 1.0, -1.0)[:, None, :] * here


def both(g: np.ndarray) -> np.ndarray:
    """<g, v> for the vertices v, (V, 2d, S)."""
    return np.concatenate([g, -g], axis=1)


def fw(f: Fit) -> np.ndarray:
    """Frank-Wolfe by report noisy max (frank_wolfe.py)."""
    w, n, d = f.start, f.X.shape[1], f.X.shape[2]
    moved = 2 * f.slope / n
    scale = moved * f.noise(math.sqrt(2 * f.T * f.tail) / f.budget.epsilon, (PureDP(2.0), f.T))
    for t in range(1, f.T + 1):
        noisy = both(f.gradient(w)) + scale * f.draws.unit(2 * d)
        w = w + 2 / (t + 2) * (vertex(noisy.argmin(axis=1), d) - w)
    return w


def polyfw(f: Fit) -> np.ndarray:
    """Polyhedral Frank-Wolfe (poly_frank_wolfe.py), as released alone: its noise has scale 1 at every ε.

    And it pairs the rows of the second half with the labels of the first.
    """
    (V, n, d), half = f.X.shape, f.X.shape[1] // 2
    order = np.stack([f.draws.generator.permutation(n) for _ in range(f.draws.trials)])
    order = np.broadcast_to(order, (V, n))[:, :, None]
    X, y = np.take_along_axis(f.X, order, axis=1), np.take_along_axis(f.y, order, axis=1)
    first = replace(f, X=X[:, :half], y=y[:, :half])
    eta, before = math.log(n / math.log(2 * d)) / n, f.start
    g = first.gradient(before)
    w = eta * vertex((both(g) + f.draws.unit(2 * d)).argmin(axis=1), d)
    for i in range(n - half):
        row = replace(f, X=X[:, [half + i]], y=y[:, [i]])  # lines 49-53 take y[t - 1], not the labels of that half
        g = (1 - eta) * (g + row.gradient(w) - row.gradient(before)) + eta * row.gradient(w)
        best = vertex((both(g) + f.draws.unit(2 * d)).argmin(axis=1), d)
        before, w = w, (1 - eta) * w + eta * best
    return w


def htpl(f: Fit) -> np.ndarray:
    """Frank-Wolfe by the exponential mechanism (ht_priv_lasso.py); rows and targets are within its cut at 1."""
    w, n, d = f.start, f.X.shape[1], f.X.shape[2]
    moved = 4 * f.slope / n if f.exact else 16 / n
    z = f.noise(2 * math.sqrt(2 * f.T * f.tail) / f.budget.epsilon, (BoundedRange(1.0), f.T))
    for t in range(1, f.T + 1):
        index = f.draws.drawn(both(-2 * f.gradient(w)) / (2 * moved * z))
        w = w + 2 / (t + 2) * (vertex(index, d) - w)
    return w


def htfw(f: Fit) -> np.ndarray:
    """The same on disjoint blocks of truncated gradients (ht_frank_wolfe.py)."""
    w, d = f.start, f.X.shape[2]
    z = f.noise(1 / f.budget.epsilon, (BoundedRange(1.0), 1))
    for t, rows, m in f.blocks():
        moved = (2 if f.exact else 4 * BOUNDED) * f.k / m
        index = f.draws.drawn(both(-f.truncated(w, rows)) / (2 * moved * z))
        w = w + 2 / (t + 2) * (vertex(index, d) - w)
    return w


def dpight(f: Fit) -> np.ndarray:
    """Gradient steps with Gaussian noise, of which the s largest coordinates stay, within ‖w‖₂ ≤ 1 (dp_ight.py)."""
    w, n, d = f.start, f.X.shape[1], f.X.shape[2]
    rho = f.budget.epsilon + 2 * f.tail - 2 * math.sqrt(f.budget.epsilon * f.tail + f.tail**2)
    std = 2 * f.slope / n * f.noise(math.sqrt(f.T / rho) / 2, (Gaussian(1.0), f.T))
    for _ in range(f.T):
        w = w - f.eta * (f.gradient(w) + std * f.draws.unit(d, "standard_normal"))
        w = np.where(np.abs(w) >= np.partition(np.abs(w), -f.s, axis=1)[:, [-f.s]], w, 0.0)
        w = w / np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True))
    return w


def peeled(f: Fit, v: np.ndarray, moved: np.ndarray | float) -> np.ndarray:
    """s coordinates of v, chosen one by one by report noisy max, with Laplace noise (ht_sparse_lasso.py, 3-22).

    moved: by how much a row moves a coordinate.
    """
    root = 2 * math.sqrt(3 * f.s * f.tail / f.budget.epsilon)  # ε under the root: an erratum
    scale, d = moved * f.noise(root, (PureDP(2.0), f.s), (Laplace(1.0), f.s)), v.shape[1]
    chosen = np.zeros(v.shape, dtype=bool)
    for _ in range(f.s):
        noisy = np.where(chosen, -np.inf, np.abs(v) + scale * f.draws.unit(d))
        chosen |= np.arange(d)[None, :, None] == noisy.argmax(axis=1)[:, None]
    return np.where(chosen, v + scale * f.draws.unit(d), 0.0)


def htsl(f: Fit) -> np.ndarray:
    """Peeled gradient steps on disjoint blocks, within ‖w‖₂ ≤ 1 (ht_sparse_lasso.py)."""
    w = f.start
    for _, rows, m in f.blocks():
        moved = 2 * f.eta / m * (f.slope if f.exact else math.sqrt(f.s) + 1)
        w = peeled(f, w - f.eta * f.gradient(w, rows), moved)
        w = w / np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True))
    return w


def htso(f: Fit) -> np.ndarray:
    """Peeled steps of truncated gradients on disjoint blocks (ht_sparse_opt.py)."""
    w = f.start
    for _, rows, m in f.blocks():
        moved = (2 if f.exact else 6 * BOUNDED) * f.k * f.eta / m
        w = peeled(f, w - f.eta * f.truncated(w, rows), moved)
    return w


FITS: dict[str, Callable[[Fit], np.ndarray]] = {
    one.__name__: one for one in (fw, polyfw, htfw, htpl, dpight, htsl, htso)
}
