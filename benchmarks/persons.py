"""What do several rows a person cost on two real tables? `python -m benchmarks.persons` writes results/persons.md.

*rwm5yr* has the visits of 6,127 Germans to a doctor, one to five years each; whether there was one is to be told.
*Males* has the wages of 545 men, eight years each. A quarter of the persons are held out. All rows are protected by:

    all rows        a fit with a unit: each of a person's m rows weighs 1/m
    one row         one row of each person, drawn, by the default method for rows
    group privacy   all rows by that method, at ε/k and δ/(k·e^ε), k the most that anybody has, as if it were public

and, for comparison, *rows alone*: the default method for rows at the same ε, which protects one row and no person. The
score is the share of what can be learned: how much of the held-out loss (logistic, squared), a person counting once,
the model takes off, in units of what a model without privacy takes off. Seeds are fixed; so is the split of each.
"""

from __future__ import annotations

import csv
import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.other_libraries import RESULTS, rdata
from dpbench import PrivateClassifier, PrivateRegressor
from dpbench.own.inputs import persons_of
from dpbench.schema import Column, Schema, Target
from dpbench.schema.encoding import encoding_of

EPSILONS, SEEDS, WHO = (0.3, 1.0, 3.0), 20, "who"
COUNTS = RESULTS / "persons.csv"
WAYS = ("all rows", "one row", "group privacy", "rows alone")
FIELDS = ("table", "way", "epsilon", "seed", "kept")


class Source(NamedTuple):
    """A table with the column of its persons, and what is public of it."""

    table: pd.DataFrame
    schema: Schema


def visits() -> Source:
    """Whether somebody saw a doctor in a year."""
    table = rdata("COUNT", "rwm5yr")()
    flags = ("outwork", "female", "married", "kids", "self")
    numbers = {"age": (18, 80), "hhninc": (0, 20), "educ": (5, 20), **dict.fromkeys(flags, (0, 1))}
    made = table[[*numbers]].assign(y=np.where(table["docvis"] > 0, "yes", "no"), who=table["id"].astype(str))
    columns = {name: Column(bounds=bounds) for name, bounds in numbers.items()}
    return Source(made, Schema(target=Target(name="y", classes=("no", "yes")), columns=columns, unit=WHO))


def wages() -> Source:
    """The logarithm of an hour's wage, which is between e⁻¹ and e⁴ dollars."""
    table = rdata("plm", "Males")()
    flags = {name: (table[name] == "yes").astype(int) for name in ("union", "married")}
    made = table[["school", "exper"]].assign(**flags, y=table["wage"], who=table["nr"].astype(str))
    numbers = {"school": (0, 20), "exper": (0, 30), "union": (0, 1), "married": (0, 1)}
    columns = {name: Column(bounds=bounds) for name, bounds in numbers.items()}
    return Source(made, Schema(target=Target(name="y", bounds=(-1, 4)), columns=columns, unit=WHO))


SOURCES = {"rwm5yr": visits, "Males": wages}


def sizes(table: pd.DataFrame) -> np.ndarray:
    """(n,) how many rows the person of each row has."""
    return table.groupby(WHO)[WHO].transform("size").to_numpy()


def loss(schema: Schema, model: Any, table: pd.DataFrame) -> float:
    """The mean over persons of the mean loss of their rows; model: an estimator, or scores (n,)."""
    if not isinstance(model, np.ndarray):
        features = table.drop(columns=WHO)
        model = model.decision_function(features) if schema.target.classes else model.predict(features)
    if schema.target.classes:
        each = np.logaddexp(0, np.where(table["y"] == "yes", -model, model))
    else:
        each = np.square(table["y"] - model)
    return float(np.average(each, weights=1 / sizes(table)))


def best(schema: Schema, train: pd.DataFrame, test: pd.DataFrame) -> tuple[float, float]:
    """Losses of the constant and of the linear model that are best on the training rows, without privacy."""
    encoding, m = encoding_of(schema, intercept=True), sizes(train)
    X, Z = encoding.rows(train) * encoding.unit, encoding.rows(test) * encoding.unit
    found = []
    for columns in (slice(0, 1), slice(None)):
        A, w = X[:, columns], np.zeros(X[:, columns].shape[1])
        if not schema.target.classes:
            w = np.linalg.lstsq(A / np.sqrt(m)[:, None], train["y"] / np.sqrt(m), rcond=None)[0]
        for _ in range(20 * bool(schema.target.classes)):
            p = 1 / (1 + np.exp(-A @ w))
            w -= np.linalg.solve((A.T * (p * (1 - p) / m)) @ A + 1e-9 * np.eye(len(w)),
                                 A.T @ ((p - (train["y"] == "yes")) / m))  # fmt: skip
        found.append(loss(schema, Z[:, columns] @ w, test))
    return found[0], found[1]


def model(source: Source, way: str, epsilon: float, train: pd.DataFrame, seed: int) -> Any:
    """The fitted estimator of one of the `WAYS`."""
    kind = PrivateClassifier if source.schema.target.classes else PrivateRegressor
    by_rows = Schema(target=source.schema.target, columns=source.schema.columns)
    n = persons_of(train, None, WHO, asked=False)[1]
    delta = n.count**-2 if n else 0.0
    if way == "all rows":
        return kind(epsilon, schema=source.schema, random_state=seed).fit(train)
    if way == "one row":
        train = train.sample(frac=1, random_state=seed).drop_duplicates(WHO)
    k = int(sizes(train).max()) if way == "group privacy" else 1
    given = {"delta": delta / k / math.exp(epsilon * (k > 1))}
    return kind(epsilon / k, **given, schema=by_rows, random_state=seed).fit(train.drop(columns=WHO))


def scores(name: str) -> Iterator[tuple[str, str, float, int, float]]:
    """A line of the results for each fit."""
    source = SOURCES[name]()
    who = source.table[WHO].unique()
    for seed in range(SEEDS):
        held = np.random.default_rng(seed).choice(who, len(who) // 4, replace=False)
        apart = source.table[WHO].isin(held)
        train, test = source.table[~apart].reset_index(drop=True), source.table[apart].reset_index(drop=True)
        nothing, most = best(source.schema, train, test)
        for epsilon in EPSILONS:
            for way in WAYS:
                found = loss(source.schema, model(source, way, epsilon, train, seed), test)
                yield name, way, epsilon, seed, (nothing - found) / (nothing - most)


def table(lines: pd.DataFrame) -> str:
    """The page."""
    shown = ["| table | protected | fit | ε = 0.3 | ε = 1 | ε = 3 |", "|---|---|---|---|---|---|"]
    for (name, way), part in lines.groupby(["table", "way"], sort=False):
        cells = [part[part["epsilon"] == epsilon]["kept"] for epsilon in EPSILONS]
        values = [f"{one.mean():.2f} ± {one.std() / math.sqrt(len(one)):.2f}" for one in cells]
        who = "one row" if way == "rows alone" else "one person"
        shown.append(f"| {name} | {who} | {way} | {' | '.join(values)} |")
    return "\n".join(shown) + "\n"


def main(arguments: list[str]) -> None:
    """Fit, write the lines and the page; with `table` the page alone."""
    warnings.simplefilter("ignore")
    if arguments[:1] != ["table"]:
        with COUNTS.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(FIELDS)
            for name in SOURCES:
                for *line, kept in scores(name):
                    writer.writerow([*line, f"{kept:.4g}"])
    COUNTS.with_suffix(".md").write_text(table(pd.read_csv(COUNTS)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
