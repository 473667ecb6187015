"""Scores of vectors that nothing is known of but that they came from one of two worlds: learnt on a fourth of the runs.

What is learnt on every fourth run is judged on others (see `decide`): however bad the fit, the bound holds.
"""

from __future__ import annotations

import numpy as np

TREES = 200  # runs to learn from, below which trees are not grown


def along_the_means(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k,) scores of the vectors (k, d) of both worlds: Fisher's linear discriminant of every fourth of their runs."""
    one, other = squashed(first, second)
    line = one[::4].mean(axis=0) - other[::4].mean(axis=0)
    spread = np.cov(one[::4].T) + np.cov(other[::4].T) + 1e-9 * np.eye(len(line)) if len(line) > 1 else np.eye(1)
    direction = np.linalg.lstsq(np.atleast_2d(spread), line, rcond=None)[0]
    return one @ direction, other @ direction


def squashed(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every coordinate in units of the quartiles of every fourth run, what is not finite far off, the rest within ±50.

    A coordinate that has one value there keeps its differences from it: it distinguishes the worlds by itself.
    """
    fourth = np.concatenate([first[::4], second[::4]])
    fourth = np.where(np.isfinite(fourth), fourth, np.where(np.isfinite(fourth).any(axis=0), np.nan, 0.0))
    low, middle, high = np.nanquantile(fourth, [0.25, 0.5, 0.75], axis=0)
    width = np.where(high > low, high - low, 1.0)

    def inside(each: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.clip(np.nan_to_num((each - middle) / width, nan=60.0), -50.0, 60.0)

    return inside(first), inside(second)


def candidates(first: np.ndarray, second: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Scores (k,) of both worlds by several rules: coordinates, how far out they are, and trees learnt on every fourth.

    None is learnt from runs 1, 2 or 3 modulo 4.
    """
    one, other = squashed(first, second)
    found = [along_the_means(first, second)]
    for j in range(one.shape[1]):
        a, b = one[:, j], other[:, j]
        found += [(a, b), (-a, -b), (np.abs(a), np.abs(b)), (-np.abs(a), -np.abs(b))]
    train = len(one[::4]) + len(other[::4])
    if train >= TREES:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=16, early_stopping=False, random_state=0)
        model.fit(np.vstack([one[::4], other[::4]]), np.repeat([1, 0], [len(one[::4]), len(other[::4])]))
        found.append((model.decision_function(one), model.decision_function(other)))
    return found
