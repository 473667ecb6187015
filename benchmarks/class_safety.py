"""How far may noise carry a softmax model: the share of ln k that κ of dp-gd-average is, on made-up classes.

`python -m benchmarks.class_safety` fits every data set of `SETS`, none of them in `benchmarks.default_methods`, by
dp-gd-average with κ = share·ln k for every share of `SHARES`, six seeds of a split and of the noise each, and writes
results/class_safety.csv, a line a cell, and .md, their means.
"""

from __future__ import annotations

import csv
import itertools
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.default_methods import RESULTS, Data
from dpbench import PrivateClassifier

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SHARES = (0.043, 0.1, 0.2, 0.4, 0.8)  # the first is that of the logistic loss: 0.03 of ln 2
SEEDS = 6


def _clusters(n: int, d: int, k: int, informative: int, seed: int) -> Data:
    return datasets.make_classification(
        n, d, n_informative=informative, n_classes=k, n_clusters_per_class=1, random_state=seed
    )


def _blobs(n: int, d: int, k: int, seed: int) -> Data:
    return datasets.make_blobs(n, d, centers=k, cluster_std=3.0, center_box=(-4, 4), random_state=seed)


def _skewed(data: Data) -> Data:
    return np.exp(data[0] / 2), data[1]


SETS: dict[str, Callable[[], Data]] = {
    "3 clusters, 600 x 6": lambda: _clusters(600, 6, 3, 4, 11),
    "6 clusters, 4,000 x 12": lambda: _clusters(4000, 12, 6, 8, 12),
    "10 clusters, 10,000 x 40": lambda: _clusters(10_000, 40, 10, 20, 16),
    "5 blobs, 1,000 x 8": lambda: _blobs(1000, 8, 5, 13),
    "3 blobs, 300 x 5": lambda: _blobs(300, 5, 3, 14),
    "8 blobs, 5,000 x 10": lambda: _blobs(5000, 10, 8, 17),
    "4 clusters, skewed, 2,000 x 10": lambda: _skewed(_clusters(2000, 10, 4, 5, 15)),
    "7 clusters, skewed, 6,000 x 20": lambda: _skewed(_clusters(6000, 20, 7, 10, 18)),
}


class Mean(NamedTuple):
    """Of the seeds: accuracy, and log loss as a share of ln k, what w = 0 costs."""

    accuracy: float
    loss: float


def measured(data: Data, epsilon: float, share: float) -> Mean:
    """On the third of the rows that was held out."""
    X, y = data
    k = len(np.unique(y))
    found = []
    for seed in range(SEEDS):
        Xs, Xt, ys, yt = train_test_split(X, y, test_size=1 / 3, random_state=seed, stratify=y)
        model = PrivateClassifier(
            epsilon,
            bounds=(X.min(axis=0), X.max(axis=0)),
            algorithm="dp-gd-average",
            settings={"safety": share * math.log(k)},
            row_bound="private",
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(Xs, ys)
        found.append((model.score(Xt, yt), log_loss(yt, model.predict_proba(Xt)) / math.log(k)))
    return Mean(*map(float, np.mean(found, axis=0)))


def main() -> None:
    """Fit all of them, and write the table."""
    means: dict[tuple[str, float, float], Mean] = {}
    with (RESULTS / "class_safety.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("data", "share", "epsilon", *Mean._fields))
        for (name, load), share, epsilon in itertools.product(SETS.items(), SHARES, EPSILONS):
            found = means[name, share, epsilon] = measured(load(), epsilon, share)
            writer.writerow((name, f"{share:g}", f"{epsilon:g}", *(f"{one:.5g}" for one in found)))
            print(name, share, epsilon, found, flush=True)
    text = ["| κ / ln k | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |", "|---" * (len(EPSILONS) + 1) + "|"]
    for share in SHARES:
        each = [[means[name, share, epsilon] for name in SETS] for epsilon in EPSILONS]
        shown = (f"{np.mean([m.accuracy for m in e]):.3f}, {np.mean([m.loss for m in e]):.3f}" for e in each)
        text.append(f"| {share:g} | {' | '.join(shown)} |")
    (RESULTS / "class_safety.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
