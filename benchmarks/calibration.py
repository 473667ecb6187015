"""Do probabilities of several classes mean what they say? Before and after `own.engine`, on held-out rows.

`python -m benchmarks.calibration` fits each of `SETS` by the default method at each ε, for three splits, and writes
results/calibration.csv and .md. Error: of the expected calibration of the most probable class, 15 bins of equal width.
The rule's constants were chosen on the sets of `SEEN` (two seeds, ε from .3 to 100); the others are new to it.
"""

from __future__ import annotations

import csv
import gzip
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dpbench import PrivateClassifier
from dpbench.own import engine

RESULTS = Path(__file__).parent / "results"
EPSILONS, SEEDS, BINS = (0.3, 1.0, 3.0, 10.0), range(10, 13), 15
FIELDS = ("data", "seen", "rows", "classes", "epsilon", "accuracy", "before", "after", "log_loss_before",
          "log_loss_after", "plain")  # fmt: skip
Data = tuple[np.ndarray, np.ndarray]


def _made(**given: object) -> Callable[[], Data]:
    return lambda: datasets.make_classification(**{"random_state": 0, "n_clusters_per_class": 1, **given})


def _digits(classes: list[int]) -> Data:
    X, y = datasets.load_digits(return_X_y=True)
    kept = np.isin(y, classes)
    return X[kept], y[kept]


def _covertype(rows: slice) -> Data:
    """Rows of covertype, seven classes, from the mirror of the data sets."""
    file = Path(os.environ["DPBENCH_MIRROR"]) / "covertype/covtype.data.gz"
    table = pd.read_csv(file, header=None, nrows=rows.stop).to_numpy(float)[rows]
    return table[:, :-1], table[:, -1].astype(int)


def _fashion(classes: range) -> Data:
    """14 x 14 pixels of the 10,000 test pictures."""
    folder = Path(os.environ["DPBENCH_MIRROR"]) / "fashion-mnist"
    with gzip.open(folder / "t10k-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    with gzip.open(folder / "t10k-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    kept = np.isin(y, classes)
    return X.reshape(len(X), -1)[kept], y[kept].astype(int)


SEEN = ("wine", "iris", "digits, ten classes", "digits 0 to 6", "covertype, first 10,000 rows")
SETS: dict[str, Callable[[], Data]] = {
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "digits, ten classes": lambda: _digits(list(range(10))),
    "digits 0 to 6": lambda: _digits(list(range(7))),
    "covertype, first 10,000 rows": lambda: _covertype(slice(0, 10_000)),
    "digits 3 to 9": lambda: _digits(list(range(3, 10))),
    "digits, five classes": lambda: _digits([1, 3, 5, 7, 9]),
    "covertype, one row in 60": lambda: _covertype(slice(30, None, 60)),
    "fashion, seven classes": lambda: _fashion(range(7)),
    "fashion, ten classes": lambda: _fashion(range(10)),
    "seven classes, 4,000 x 15": _made(random_state=3, n_samples=4000, n_features=15, n_informative=8, n_classes=7),
    "seven classes, 10,000 x 40": _made(random_state=4, n_samples=10_000, n_features=40, n_informative=12,
                                        n_classes=7, flip_y=0.1),
    "three classes, 2,000 x 8": _made(random_state=5, n_samples=2000, n_features=8, n_informative=5, n_classes=3),
}  # fmt: skip


def error(p: np.ndarray, right: np.ndarray) -> float:
    """Mean |share that is right - mean probability| of the most probable class, over bins of that probability."""
    sure, bins = p.max(axis=1), np.minimum((p.max(axis=1) * BINS).astype(int), BINS - 1)
    return float(sum(abs(np.sum(right[bins == b]) - np.sum(sure[bins == b])) for b in range(BINS)) / len(p))


def measure(name: str, epsilon: float) -> dict[str, object]:
    """A line of the table."""
    X, y = SETS[name]()
    low, high = X.min(axis=0), X.max(axis=0)
    bounds, classes, found = (low, np.where(high > low, high, low + 1)), np.unique(y), []
    for seed in SEEDS:
        Xs, Xt, ys, yt = train_test_split(X, y, test_size=1 / 3, random_state=seed, stratify=y)
        line, places = [], np.searchsorted(classes, yt)
        for rule in (lambda *_: 1.0, engine.calibration_factor):
            model = PrivateClassifier(epsilon, bounds=bounds, classes=classes.tolist(), random_state=seed)
            with mock.patch.object(engine, "calibration_factor", rule):
                p = model.fit(Xs, ys).predict_proba(Xt)
            right = p.argmax(axis=1) == places
            loss = -np.log(np.maximum(p[np.arange(len(p)), places], 1e-300)).mean()
            line += [right.mean(), error(p, right), loss]
        assert line[0] == line[3], "a prediction changed"
        scale = Standardised(Xs)
        plain = LogisticRegression(max_iter=1000).fit(scale(Xs), ys).predict_proba(scale(Xt))
        found.append([*line, error(plain, plain.argmax(axis=1) == places)])
    accuracy, before, loss_before, _, after, loss_after, plain = np.mean(found, axis=0).round(4).tolist()
    values = (
        name,
        name in SEEN,
        len(y),
        len(classes),
        epsilon,
        accuracy,
        before,
        after,
        loss_before,
        loss_after,
        plain,
    )
    print(*values, flush=True)
    return dict(zip(FIELDS, values, strict=True))


class Standardised:
    """Columns of mean 0 and deviation 1 on the rows in use."""

    def __init__(self, X: np.ndarray) -> None:
        self.mean, self.deviation = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-9)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean) / self.deviation


def markdown(lines: list[dict[str, object]]) -> str:
    """The table of the guide: before → after at each ε."""
    out = ["| data | rows | classes | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " | not private |"]
    out.append("|---|--:|--:|" + "--:|" * (len(EPSILONS) + 1))
    for name in dict.fromkeys(line["data"] for line in lines):
        of = [line for line in lines if line["data"] == name]
        cells = [f"{line['before']:.2f} → {line['after']:.2f}" for line in of]
        shown = f"*{name}*" if of[0]["seen"] else name
        out.append(f"| {shown} | {of[0]['rows']:,} | {of[0]['classes']} | {' | '.join(cells)} | {of[0]['plain']:.2f} |")
    return "\n".join(out) + "\n"


def main() -> None:
    """Measure all, and write."""
    warnings.simplefilter("ignore")
    lines = [measure(name, epsilon) for name in SETS for epsilon in EPSILONS]
    with open(RESULTS / "calibration.csv", "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    (RESULTS / "calibration.md").write_text(markdown(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
