"""The estimators' default method on data sets that no rule was made on: better with ε, and how good?

`python -m benchmarks.default_methods` fits every data set of `SETS` with each `row_bound` of `WAYS`, by the default at
every ε (by the public rule at those of `RULE_AT`), and by each rival at ε = 0.3, 1, 3 with a private bound and with
none; ten seeds of a split and of the noise each. It writes results/default_methods.csv. Scores that are there already
are kept, except those of the methods named after `again` (all, if none is named). At the end, or alone with the
argument `table`, it writes what the guide "The default methods" shows, results/default_methods.md and row_bounds.md.
"""

from __future__ import annotations

import csv
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from dpbench import PrivateClassifier, PrivateRegressor
from dpbench.errors import UserError

RESULTS = Path(__file__).parent / "results"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)
COMPARED = (0.3, 1.0, 3.0)
WAYS = ("auto", None, "rule")  # of `row_bound`, the default first
RIVAL_WAYS = ("private", None)  # the first: what any method may have
RULE_AT = (0.3, 1.0, 3.0, 100.0)
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


class Cell(NamedTuple):
    """What ten seeds share."""

    data: str
    row_bound: str | None
    epsilon: float
    method: str


Cells = dict[Cell, np.ndarray]  # a score per seed
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


def cells() -> Iterator[Cell]:
    """Every line of the table."""
    for name, way in itertools.product(SETS, WAYS):
        for epsilon in RULE_AT if way == "rule" else EPSILONS:
            yield Cell(name, way, epsilon, "auto")
    for (name, (kind, _)), way in itertools.product(SETS.items(), RIVAL_WAYS):
        for epsilon, rival in itertools.product(COMPARED, ["auto"] * (way is not None) + [*RIVALS[kind]]):
            yield Cell(name, way, epsilon, rival)


def of_kind(kind: str) -> list[str]:
    """The data sets of "class" or "number"."""
    return [name for name, (one, _) in SETS.items() if one == kind]


def falls(found: Cells, names: Iterable[str]) -> list[str]:
    """Where the default's mean score falls from one ε to the next by more than `ERRORS` standard errors of it."""
    told = []
    for name, (low, high) in itertools.product(names, itertools.pairwise(EPSILONS)):
        change = found[Cell(name, WAYS[0], high, "auto")] - found[Cell(name, WAYS[0], low, "auto")]
        if change.mean() < -ERRORS * _error(change) - 1e-12:
            told.append(f"{name}: ε = {low:g} to {high:g}: {change.mean():+.4f} ± {_error(change):.4f}")
    return told


def regrets(found: Cells, kind: str, rivals: str | None, default: str | None) -> dict[float, tuple[float, float]]:
    """ε → (mean, standard error over data sets) of the best method's score less the default's, at their row bounds.

    The best is chosen on half of the seeds and scored on the other half, so that luck is no regret.
    """
    regret = {}
    half = SEEDS // 2
    for epsilon in COMPARED:
        each = []
        for name in of_kind(kind):
            places = (Cell(name, rivals, epsilon, method) for method in ("auto", *RIVALS[kind]))
            line = {at: found[at] for at in places if at in found}
            mine = found[Cell(name, default, epsilon, "auto")]
            both = []
            for chosen, scored in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
                best = max(line, key=lambda at: line[at][chosen].mean())
                both.append(line[best][scored].mean() - mine[scored].mean())
            each.append(np.mean(both))
        regret[epsilon] = float(np.mean(each)), _error(np.array(each))
    return regret


def read() -> dict[Cell, str]:
    """results/default_methods.csv: the scores of each cell, one per seed; none where the method refused."""
    path = RESULTS / "default_methods.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            Cell(row["data"], row["row_bound"] or None, float(row["epsilon"]), row["method"]): row["scores"]
            for row in csv.DictReader(file)
        }


def parsed(lines: dict[Cell, str]) -> Cells:
    """Numbers, where there are any."""
    return {at: np.array([float(one) for one in told.split()]) for at, told in lines.items() if told}


def write(done: dict[Cell, str]) -> None:
    """The same file."""
    with (RESULTS / "default_methods.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Cell._fields, "scores"))
        writer.writerows((at.data, at.row_bound or "", f"{at.epsilon:g}", at.method, told) for at, told in done.items())


def write_tables() -> None:
    """results/default_methods.md and row_bounds.md."""
    found = parsed(read())
    text = [*_head("data", EPSILONS)]
    text += [_line(name, [_cell(found[Cell(name, WAYS[0], e, "auto")]) for e in EPSILONS]) for name in SETS]
    text += ["", f"Falls beyond {ERRORS:g} standard errors: " + ("; ".join(falls(found, SETS)) or "none") + ".", ""]
    text += _head("regret | `row_bound` of the default | of the rivals", COMPARED)
    for (kind, words), (default, rivals) in itertools.product(
        (("class", "accuracy"), ("number", "R²")), (("auto", "private"), ("auto", None), (None, None))
    ):
        each = regrets(found, kind, rivals, default).values()
        text.append(_line(f"{words} | {_said(default)} | {_said(rivals)}", [f"{m:+.3f} ± {s:.3f}" for m, s in each]))
    text += ["", *_head("method | data | `row_bound`", COMPARED)]
    for kind, way in itertools.product(RIVALS, ("auto", *RIVAL_WAYS)):
        for method in ("auto", *RIVALS[kind] * (way != "auto")):
            label = f"{method} | {'classes' if kind == 'class' else 'numbers'} | {_said(way)}"
            text.append(_line(label, [_mean(found, kind, method, way, e) for e in COMPARED]))
    (RESULTS / "default_methods.md").write_text("\n".join(text) + "\n")

    text = _head("mean | `row_bound`", RULE_AT)
    for (kind, words), way in itertools.product((("class", "accuracy"), ("number", "R²")), WAYS):
        label = f"{words}, {len(of_kind(kind))} sets | {_said(way)}"
        text.append(_line(label, [_mean(found, kind, "auto", way, e) for e in RULE_AT]))
    text += ["", *_head("data | `row_bound`", RULE_AT)]
    for name, way in itertools.product(SETS, WAYS):
        text.append(_line(f"{name} | {_said(way)}", [_cell(found[Cell(name, way, e, "auto")]) for e in RULE_AT]))
    (RESULTS / "row_bounds.md").write_text("\n".join(text) + "\n")


def _head(first: str, epsilons: tuple[float, ...]) -> list[str]:
    columns = [*first.split(" | "), *(f"ε = {e:g}" for e in epsilons)]
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def _line(label: str, values: list[str]) -> str:
    return f"| {' | '.join((label, *values))} |"


def _said(way: str | None) -> str:
    return f'"{way}"' if way else "None"


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _cell(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {_error(values):.3f}"


def _mean(found: Cells, kind: str, method: str, way: str | None, epsilon: float) -> str:
    """The mean score over the sets of a kind, a dash where one of them has none."""
    places = [Cell(name, way, epsilon, method) for name in of_kind(kind)]
    return f"{np.mean([found[at].mean() for at in places]):.3f}" if all(at in found for at in places) else "–"


def main(arguments: list[str]) -> None:
    """Fit what is missing, then write the tables."""
    done = read()
    if arguments[:1] == ["again"]:
        done = {at: told for at, told in done.items() if arguments[1:] and at.method not in arguments[1:]}
    if arguments != ["table"]:
        for at in cells():
            if at in done:
                continue
            try:
                found = scores(at.data, at.epsilon, at.method, range(SEEDS), row_bound=at.row_bound)
                done[at] = " ".join(f"{one:.6g}" for one in found)
            except UserError as error:
                done[at] = ""
                print(f"{at}: {error}", flush=True)
            write(done)
            print(*at, done[at][:40], flush=True)
    write_tables()


if __name__ == "__main__":
    main(sys.argv[1:])
