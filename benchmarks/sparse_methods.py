"""Which method to take with an L1 penalty: excess loss as a share of that of w = 0, on data off the leaderboard.

`python -m benchmarks.sparse_methods` runs every method of `METHODS` by its public rule on every data set of `SETS`, ten
seeds at each ε, replace-one, δ = n⁻², and writes results/sparse_methods.csv and .md. The penalty is a tenth of the
least at which w = 0 is the optimum. A share of 1 is as good as w = 0. An argument, method or "method:setting=value",
runs that alone and prints.
"""

from __future__ import annotations

import csv
import functools
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import PolynomialFeatures

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.datasets.recipes import clip_rows
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee
from dpbench.problems import Problem
from dpbench.run.bind import BoundRun

RESULTS = Path(__file__).parent / "results"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
METHODS = {
    "logistic": ("dp-gcd", "dp-gd-average", "objpert"),
    "squared": ("dp-gcd", "dp-gd-average"),
    "pseudo-huber": ("dp-gcd", "dp-gd-average", "objpert"),
}
SEEDS = 10
SHARE = 0.1  # of the least penalty at which w = 0 is the optimum
Data = tuple[np.ndarray, np.ndarray]


def _products(load: Callable[..., Data]) -> Data:
    X, y = load(return_X_y=True)
    return PolynomialFeatures(2, include_bias=False).fit_transform(X / X.std(axis=0)), y


def _classes(n: int, d: int, informative: int, seed: int) -> Callable[[], Data]:
    return lambda: datasets.make_classification(
        n_samples=n, n_features=d, n_informative=informative, n_redundant=informative, random_state=seed
    )


def _numbers(n: int, d: int, informative: int, rank: int | None = None) -> Callable[[], Data]:
    return lambda: datasets.make_regression(
        n_samples=n, n_features=d, n_informative=informative, effective_rank=rank, noise=20.0, random_state=0
    )


SETS: dict[str, tuple[str, Callable[[], Data]]] = {
    "classes, 2,000 x 60": ("logistic", _classes(2000, 60, 5, 0)),
    "classes, 5,000 x 200": ("logistic", _classes(5000, 200, 10, 1)),
    "classes, 500 x 300": ("logistic", _classes(500, 300, 5, 2)),
    "classes, 20,000 x 100": ("logistic", _classes(20_000, 100, 10, 3)),
    "breast cancer and products": ("logistic", lambda: _products(datasets.load_breast_cancer)),
    "hastie and products": ("logistic", lambda: _hastie()),
    "diabetes and products": ("squared", lambda: _products(datasets.load_diabetes)),
    "regression, 2,000 x 200": ("squared", _numbers(2000, 200, 10)),
    "regression, 2,000 x 200, pseudo-Huber": ("pseudo-huber", _numbers(2000, 200, 10)),
    "regression of low rank, 2,000 x 200": ("squared", _numbers(2000, 200, 10, 20)),
    "friedman 1 of 100 columns": (
        "squared",
        lambda: datasets.make_friedman1(n_samples=5000, n_features=100, noise=1.0, random_state=0),
    ),
}


def _hastie() -> Data:
    X, y = datasets.make_hastie_10_2(n_samples=4000, random_state=0)
    return PolynomialFeatures(2, include_bias=False).fit_transform(X), y


@functools.cache
def problem(name: str) -> Problem:
    """Standardised columns over √d, rows shortened to length 1; labels ±1, or numbers in units of three deviations."""
    loss, load = SETS[name]
    X, y = load()
    X = X[:, X.std(axis=0) > 0]
    X = clip_rows((X - X.mean(axis=0)) / (X.std(axis=0) * X.shape[1] ** 0.5))
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else (y - y.mean()) / (3 * y.std())
    least = float(np.abs(Problem(X, y, loss=loss).gradient(np.zeros((1, X.shape[1])))).max())
    return Problem(X, y, loss=loss, l1=SHARE * least, row_bound=1.0, name=name)


def shares(name: str, method: str, epsilon: float, **given: str) -> np.ndarray:
    """(SEEDS,) of F(w) - F* over F(0) - F*; UserError where the method cannot run."""
    target, algorithm = problem(name), algorithms.resolve(method)[0]
    settings = public_settings(method, target.n, target.d, epsilon) | given
    complete = algorithm.complete(target, make_settings(algorithm, settings))
    budget = Budget(epsilon, target.n**-2.0, rules.RELATION, algorithm.accounting(rules.accounting(algorithm)))
    keys = [f"sparse/{name}/{method}/{epsilon:g}/{seed}" for seed in range(SEEDS)]
    run = BoundRun(algorithm, target, [complete] * SEEDS, [budget] * SEEDS, np.zeros((SEEDS, target.d)), keys).run()
    found = guarantee(run.mechanisms.ledger, 0, budget, algorithm.labels)
    if found.error:
        raise UserError(found.error)
    best = target.optimum().value
    return (run.objective - best) / (float(target.value(np.zeros((1, target.d)))[0]) - best)


def main(arguments: list[str]) -> None:
    """Print a line a cell; without arguments, write them all."""
    if arguments == ["table"]:
        write_table()
        return
    lines = []
    for name, (loss, _) in SETS.items():
        for argument in arguments or METHODS[loss]:
            method, _, words = argument.partition(":")
            if method not in METHODS[loss]:
                continue
            for epsilon in EPSILONS:
                found = shares(name, method, epsilon, **dict(word.split("=") for word in words.split()))
                error = found.std(ddof=1) / SEEDS**0.5
                lines.append((name, argument, f"{epsilon:g}", f"{found.mean():.4g}", f"{error:.2g}"))
                print(*lines[-1], sep="  ", flush=True)
    if not arguments:
        with (RESULTS / "sparse_methods.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("data", "method", "epsilon", "share", "se"), *lines])
        write_table()


def read() -> dict[tuple[str, str, float], tuple[float, float]]:
    """results/sparse_methods.csv: (data, method, ε) → (share, its standard error)."""
    with (RESULTS / "sparse_methods.csv").open(newline="") as file:
        return {
            (row["data"], row["method"], float(row["epsilon"])): (float(row["share"]), float(row["se"]))
            for row in csv.DictReader(file)
        }


def write_table() -> None:
    """results/sparse_methods.md."""
    found = read()
    text = ["| data | method | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"]
    text.append("|---" * (len(EPSILONS) + 2) + "|")
    for name, (loss, _) in SETS.items():
        for method in METHODS[loss]:
            told = " | ".join("{:.3f} ± {:.3f}".format(*found[name, method, e]) for e in EPSILONS)
            text.append(f"| {name} | {method} | {told} |")
    (RESULTS / "sparse_methods.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
