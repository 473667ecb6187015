"""What models are worth on rows that they have not seen. Exact, so not private: for the data holder's eyes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbench.problems.losses import Loss

RARE = ("held_balanced", "held_precision", "held_calibration")
BINS = 10  # groups of a calibration error


def held_out_scores(
    loss: Loss, X: Any, y: np.ndarray, W: np.ndarray, reference: np.ndarray, mean: float
) -> dict[str, np.ndarray]:
    """Scores of W (k, d) on the rows X (m, d), y (m,), each (k,). mean: of the labels of the rows in use.

    held_loss: mean loss, and held_loss_se, the standard error of its difference to that of `reference` (d,), a model
    that all are set against: over the draw of the rows, paired. held_loss_gain: how far it is below the loss of the
    best answer that is the same for every row (`constant`), with its paired error held_loss_gain_se. For ±1:
    held_accuracy (a tie is half right), held_auc (the chance that a +1 is ranked above a -1), and held_gain, the
    accuracy beyond that of the class that they have more of; held_balanced, the mean accuracy of the two classes;
    held_precision, the average precision for the rarer of them; held_calibration, see `calibration_error`. For numbers
    held_gain is R² against `mean`: 1 - Σ(y - z)²/Σ(y - mean)². held_gain_se: its standard error over the draw of the
    rows, paired.
    """
    m = len(y)
    if not m:
        return {}
    base = _losses(loss, X @ reference, y)
    same = _losses(loss, np.full(m, constant(loss, mean)), y)
    # The answer that needs no model: the class that the rows in use have more of, or their mean.
    if loss.binary:
        # Judged by the majority of the rows in use: the held-out rows must not choose their own yardstick.
        against = np.where(y == (1.0 if mean >= 0 else -1.0), 1.0, 0.0)
        scale = 1.0
    else:
        against = -((y - mean) ** 2)
        scale = float(-against.mean()) or 1.0
    scores: list[dict[str, float]] = []
    for w in W:  # one at a time: nothing of size (k, m)
        z = X @ w
        losses = _losses(loss, z, y)
        hits = 0.5 * (1 + np.sign(y * z)) if loss.binary else -((y - z) ** 2)
        one = {
            "held_loss": losses.mean(),
            "held_loss_se": _error(losses - base),
            "held_loss_gain": (same - losses).mean(),
            "held_loss_gain_se": _error(same - losses),
            "held_gain": (hits - against).mean() / scale,
            "held_gain_se": _error(hits - against) / scale,
        }
        if loss.binary:
            one |= {"held_accuracy": hits.mean(), "held_auc": _auc(z, y), **rare_scores(loss, z, y)}
        scores.append(one)
    return {name: np.array([one[name] for one in scores]) for name in scores[0]}


def constant(loss: Loss, mean: float) -> float:
    """The prediction z, the same for every row, that fits labels of this mean best."""
    if not loss.binary:
        return mean
    if loss.family == "logistic" and abs(mean) < 1:
        return float(2 * np.arctanh(mean))  # the logarithm of the odds
    return 1.0 if mean >= 0 else -1.0


def rare_scores(loss: Loss, z: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What tells a model of a rare class from the answer that there is none: `RARE`, NaN where they have no meaning."""
    from sklearn.metrics import average_precision_score

    positive = y > 0
    share = float(positive.mean())
    if not (0 < share < 1 and np.isfinite(z).all()):
        return dict.fromkeys(RARE, np.nan)
    right = 0.5 * (1 + np.sign(y * z))
    # Precision is of the rarer class, whichever label it has.
    sign = 1.0 if share <= 0.5 else -1.0
    return {
        "held_balanced": 0.5 * float(right[positive].mean() + right[~positive].mean()),
        "held_precision": float(average_precision_score(y * sign > 0, z * sign)),
        "held_calibration": calibration_error(z, positive) if loss.family == "logistic" else np.nan,
    }


def calibration_error(z: np.ndarray, positive: np.ndarray) -> float:
    """Expected calibration error of the probabilities σ(z): over ten groups of equal size, ordered by z.

    The mean distance between what a group is predicted and the share of +1 in it (Naeini, Cooper and Hauskrecht 2015,
    with groups of equal size).
    """
    p = 0.5 * (1 + np.tanh(z / 2))
    group = np.searchsorted(np.quantile(z, np.arange(1, BINS) / BINS), z, side="right")  # equal z are of one group
    return float(np.abs(np.bincount(group, p - positive)).sum() / len(z))


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
