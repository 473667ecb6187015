"""The estimators' default method on data sets that no rule was made on: better with ε, and how good?

`python -m benchmarks.default_methods` fits every data set of `SETS` at every ε, by the default and, at ε = 0.3, 1, 3,
by each rival, ten seeds of a split and of the noise each, and writes results/default_methods.csv. Scores that are there
already are kept, except those of the methods named after `again` (all, if none is named). At the end, or alone with the
argument `table`, it writes what the guide "The default methods" shows, results/default_methods.md. The scores of the
default with a private `row_bound` in it are of results/row_bounds.csv (`python -m benchmarks.row_bounds`).
"""

from __future__ import annotations

import csv
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from dpbench import PrivateClassifier, PrivateRegressor
from dpbench.errors import UserError

RESULTS = Path(__file__).parent / "results"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)
COMPARED = (0.3, 1.0, 3.0)
SEEDS = 10
ERRORS = 2.0  # standard errors that a score may fall by
RIVALS = {
    "class": (
        "dp-gd-average",
        "dp-chebyshev",
        "aop",
        "dp-gd",
        "dp-gcd",
        "dp-adam",
        "phased-erm",
        "bolt-on",
        "output-perturbation",
    ),
    "number": ("dp-gd-average", "adassp", "dp-gcd", "dp-adam", "tukey-em"),
}
Cells = dict[tuple[str, float, str], np.ndarray]  # (data set, ε, method) → a score per seed
Data = tuple[np.ndarray, np.ndarray]


def _classes(**given: object) -> Callable[[], Data]:
    return lambda: datasets.make_classification(random_state=0, **given)


def _numbers(load: Callable[..., Data], **given: object) -> Callable[[], Data]:
    return lambda: load(random_state=0, **given)


def _digits(of: Callable[[np.ndarray], np.ndarray]) -> Data:
    X, y = datasets.load_digits(return_X_y=True)
    return X, of(y)


# name → (what is predicted, how the rows are got); the columns' ranges are those of the whole data, and count as public
SETS: dict[str, tuple[str, Callable[[], Data]]] = {
    "breast cancer": ("class", lambda: datasets.load_breast_cancer(return_X_y=True)),
    "digits, even or odd": ("class", lambda: _digits(lambda y: y % 2)),
    "digits, ten classes": ("class", lambda: _digits(lambda y: y)),
    "wine": ("class", lambda: datasets.load_wine(return_X_y=True)),
    "iris": ("class", lambda: datasets.load_iris(return_X_y=True)),
    "classes, 5,000 x 20": ("class", _classes(n_samples=5000, n_features=20, n_informative=10, class_sep=1.0)),
    "classes, 1,000 x 10": ("class", _classes(n_samples=1000, n_features=10, n_informative=5, flip_y=0.1)),
    "four classes": ("class", _classes(n_samples=5000, n_features=20, n_informative=10, n_classes=4)),
    "unbalanced": ("class", _classes(n_samples=5000, n_features=15, weights=[0.8], flip_y=0.02)),
    "diabetes": ("number", lambda: datasets.load_diabetes(return_X_y=True)),
    "friedman 1": ("number", _numbers(datasets.make_friedman1, n_samples=5000, noise=1.0)),
    "friedman 2": ("number", _numbers(datasets.make_friedman2, n_samples=5000, noise=50.0)),
    "friedman 3": ("number", _numbers(datasets.make_friedman3, n_samples=5000, noise=0.1)),
    "regression, 2,000 x 20": (
        "number",
        _numbers(datasets.make_regression, n_samples=2000, n_features=20, n_informative=8, noise=30.0),
    ),
}


def scores(name: str, epsilon: float, algorithm: str, seeds: range, **more: object) -> list[float]:
    """Accuracy, or R², on the third of the rows that was held out, of a fit for each seed; UserError as of the fit.

    more: further arguments of the estimator.
    """
    kind, load = SETS[name]
    X, y = load()
    low, high = X.min(axis=0), X.max(axis=0)
    given = {"bounds": (low, np.where(high > low, high, low + 1)), "algorithm": algorithm, **more}
    found = []
    for seed in seeds:
        Xs, Xt, ys, yt = train_test_split(
            X, y, test_size=1 / 3, random_state=seed, stratify=y if kind == "class" else None
        )
        if kind == "class":
            model = PrivateClassifier(epsilon, random_state=seed, **given)
        else:
            model = PrivateRegressor(epsilon=epsilon, random_state=seed, target_bounds=(y.min(), y.max()), **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(float(model.fit(Xs, ys).score(Xt, yt)))
    return found


def cells() -> Iterator[tuple[str, float, str]]:
    """(data set, ε, method) of every line of the table."""
    for name, epsilon in itertools.product(SETS, EPSILONS):
        yield name, epsilon, "auto"
    for name, (kind, _) in SETS.items():
        for epsilon, rival in itertools.product(COMPARED, RIVALS[kind]):
            yield name, epsilon, rival


def falls(of: dict[tuple[str, float], np.ndarray], names: list[str]) -> list[str]:
    """Where a mean score falls from one ε to the next by more than `ERRORS` standard errors of the difference."""
    told = []
    for name in names:
        for low, high in itertools.pairwise(EPSILONS):
            change = of[name, high] - of[name, low]
            error = change.std(ddof=1) / np.sqrt(len(change))
            if change.mean() < -ERRORS * error - 1e-12:
                told.append(f"{name}: ε = {low:g} to {high:g}: {change.mean():+.4f} ± {error:.4f}")
    return told


def regrets(kind: str, rivals: Cells, default: Cells) -> dict[float, tuple[float, float]]:
    """ε → (mean, standard error over data sets) of the score of the best of `rivals` less that of `default`'s auto.

    The best is chosen on half of the seeds and scored on the other half, so that luck is no regret.
    """
    found = {}
    half = SEEDS // 2
    for epsilon in COMPARED:
        each = []
        for name in (name for name, (one, _) in SETS.items() if one == kind):
            line = {m: rivals[name, epsilon, m] for m in ("auto", *RIVALS[kind]) if (name, epsilon, m) in rivals}
            both = []
            for chosen, scored in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
                best = max(line, key=lambda m: line[m][chosen].mean())
                both.append(line[best][scored].mean() - default[name, epsilon, "auto"][scored].mean())
            each.append(np.mean(both))
        found[epsilon] = float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each)))
    return found


def read() -> Cells:
    """results/default_methods.csv: the scores of each cell, one per seed."""
    with (RESULTS / "default_methods.csv").open(newline="") as file:
        return {
            (row["data"], float(row["epsilon"]), row["method"]): _numbers_in(row["scores"])
            for row in csv.DictReader(file)
            if row["scores"]
        }


def read_bounded(row_bound: str) -> Cells:
    """results/row_bounds.csv: the scores of the default with this `row_bound` ("" for None), one per seed."""
    with (RESULTS / "row_bounds.csv").open(newline="") as file:
        return {
            (row["data"], float(row["epsilon"]), "auto"): _numbers_in(row["scores"])
            for row in csv.DictReader(file)
            if row["row_bound"] == row_bound
        }


def _numbers_in(text: str) -> np.ndarray:
    return np.array([float(one) for one in text.split()])


def write_table() -> None:
    """results/default_methods.md."""
    lines, private = read(), read_bounded("private")
    auto = {(name, epsilon): found for (name, epsilon, method), found in lines.items() if method == "auto"}
    text = ["| data | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |", "|---" * (len(EPSILONS) + 1) + "|"]
    for name in SETS:
        means = " | ".join(
            f"{auto[name, e].mean():.3f} ± {auto[name, e].std(ddof=1) / np.sqrt(SEEDS):.3f}" for e in EPSILONS
        )
        text.append(f"| {name} | {means} |")
    worse = falls(auto, list(SETS))
    text += ["", f"Falls beyond {ERRORS:g} standard errors: " + ("; ".join(worse) if worse else "none") + ".", ""]
    shown = " | ".join(f"ε = {e:g}" for e in COMPARED)
    text += ["| regret | `row_bound` | " + shown + " |", "|---" * (len(COMPARED) + 2) + "|"]
    for kind, words in (("class", "accuracy"), ("number", "R²")):
        for default, bound in ((lines, "None"), (private, '"private"')):
            means = " | ".join(f"{m:+.4f} ± {s:.4f}" for m, s in regrets(kind, lines, default).values())
            text.append(f"| {words} | {bound} | {means} |")
    text += ["", f"| method | data | {shown} |", "|---" * (len(COMPARED) + 2) + "|"]
    for kind, names in RIVALS.items():
        data = "classes" if kind == "class" else "numbers"
        for found, method, said in (
            (private, "auto", 'auto, `row_bound="private"`'),
            *((lines, name, name) for name in ("auto", *names)),
        ):
            means = " | ".join(_mean(found, kind, method, e) for e in COMPARED)
            text.append(f"| {said} | {data} | {means} |")
    (RESULTS / "default_methods.md").write_text("\n".join(text) + "\n")


def _mean(lines: Cells, kind: str, method: str, epsilon: float) -> str:
    """The mean score over the sets of a kind, a dash where one of them has none."""
    places = [(name, epsilon, method) for name, (one, _) in SETS.items() if one == kind]
    return f"{np.mean([lines[at].mean() for at in places]):.3f}" if all(at in lines for at in places) else "–"


def main(arguments: list[str]) -> None:
    """Fit what is missing, then write the table."""
    path = RESULTS / "default_methods.csv"
    done: dict[tuple[str, str, str], str] = {}
    if path.exists():
        with path.open(newline="") as file:
            done = {(row["data"], row["epsilon"], row["method"]): row["scores"] for row in csv.DictReader(file)}
    if arguments[:1] == ["again"]:
        done = {place: found for place, found in done.items() if arguments[1:] and place[2] not in arguments[1:]}
    if arguments != ["table"]:
        for name, epsilon, method in cells():
            place = name, f"{epsilon:g}", method
            if place in done:
                continue
            try:
                done[place] = " ".join(f"{one:.6g}" for one in scores(name, epsilon, method, range(SEEDS)))
            except UserError as error:
                done[place] = ""
                print(f"{name}, ε = {epsilon:g}, {method}: {error}", flush=True)
            with path.open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(("data", "epsilon", "method", "scores"))
                writer.writerows((*key, value) for key, value in done.items())
            print(*place, done[place][:40], flush=True)
    write_table()


if __name__ == "__main__":
    main(sys.argv[1:])
