"""What models are worth on rows that they have not seen. Exact, so not private: for the data holder's eyes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbench.problems.losses import Loss


def held_out_scores(
    loss: Loss, X: Any, y: np.ndarray, W: np.ndarray, reference: np.ndarray, mean: float
) -> dict[str, np.ndarray]:
    """Scores of W (k, d) on the rows X (m, d), y (m,), each (k,). mean: of the labels of the rows in use.

    held_loss: mean loss, and held_loss_se, the standard error of its difference to that of `reference` (d,), a model
    that all are set against: over the draw of the rows, paired. For ±1: held_accuracy (a tie is half right), held_auc
    (the chance that a +1 is ranked above a -1), and held_gain, the accuracy beyond that of the class that they
    have more of. For numbers held_gain is R² against `mean`: 1 - Σ(y - z)²/Σ(y - mean)². held_gain_se: its
    standard error over the draw of the rows, paired.
    """
    m = len(y)
    columns = ["held_loss", "held_loss_se", "held_gain", "held_gain_se"]
    columns += ["held_accuracy", "held_auc"] if loss.binary else []
    found = {name: np.empty(len(W)) for name in columns}
    base = _losses(loss, X @ reference, y)
    if loss.binary:
        against = np.where(y == (1.0 if mean >= 0 else -1.0), 1.0, 0.0)
        scale = 1.0
    else:
        against = -((y - mean) ** 2)
        scale = float(-against.mean()) or 1.0
    for i, w in enumerate(W):  # one at a time: nothing of size (k, m)
        z = X @ w
        losses = _losses(loss, z, y)
        found["held_loss"][i] = losses.mean()
        found["held_loss_se"][i] = _error(losses - base)
        hits = 0.5 * (1 + np.sign(y * z)) if loss.binary else -((y - z) ** 2)
        found["held_gain"][i] = (hits - against).mean() / scale
        found["held_gain_se"][i] = _error(hits - against) / scale
        if loss.binary:
            found["held_accuracy"][i] = hits.mean()
            found["held_auc"][i] = _auc(z, y)
    return found if m else {}


def _losses(loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    return loss.value(z[None].copy(), y, np.empty((1, len(y))))[0]


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _auc(z: np.ndarray, y: np.ndarray) -> float:
    """Mann and Whitney's U over the number of pairs; ties count half; NaN without both classes."""
    from scipy.stats import rankdata

    positive = y > 0
    p, q = int(positive.sum()), int((~positive).sum())
    if not (p and q) or not np.isfinite(z).all():
        return np.nan
    return float((rankdata(z)[positive].sum() - p * (p + 1) / 2) / (p * q))
