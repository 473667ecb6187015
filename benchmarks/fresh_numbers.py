"""Private regression on twelve tables that nobody tuned on: what a default for numbers has to reach before it is one.

The tables of `TABLES` were named, and this file committed, before any fit to them. None is in a list of this project or
in a package that an earlier choice of constants took tables from. Whoever tunes on them has to name twelve others.

`python -m benchmarks.fresh_numbers` fits each method of `METHODS` at every ε, with tight and with wide public bounds,
on ten splits. It goes on where it was stopped, and writes results/fresh_numbers.csv. Then, or alone with the argument
`table`, it writes results/fresh_numbers.md, which the guide "The default methods" shows.

Tight bounds are those of `dpbench.schema.draft`: the range of a column, rounded outward. Wide ones reach to twice the
largest value, ten times for money, from 0 where nothing is negative. Both are of columns and target alike. They are
found in the data: this compares methods, it releases nothing.
"""

from __future__ import annotations

import csv
import itertools
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import msgspec
import numpy as np

from benchmarks import other_libraries as measured
from benchmarks.other_libraries import rdata
from dpbench import PrivateRegressor
from dpbench import schema as schemas
from dpbench.errors import UserError

ABROAD = ("name", "essround", "edition", "idno", "cntry", "stintrvw", "endintrvw")  # of the survey, not of a person
PARTS = ("imbgeco", "imueclt", "imwbcnt")  # immigsent is their sum
TABLES: measured.Sets = {
    "SaratogaHouses": ("price", rdata("mosaicData", "SaratogaHouses")),
    "TenMileRace": ("net", rdata("mosaicData", "TenMileRace", "time", "state")),
    "NOxEmissions": ("LNOx", rdata("robustbase", "NOxEmissions")),
    "RainIbk": ("rain", rdata("crch", "RainIbk")),
    "ESS9GB": ("immigsent", rdata("stevedata", "ESS9GB", *ABROAD, *PARTS)),
    "Exam": ("normexam", rdata("mlmRev", "Exam", "school", "student")),
    "txhousing": ("median", rdata("ggplot2", "txhousing", "city", "volume", "date")),
    "NCbirths": ("BirthWeightOz", rdata("Stat2Data", "NCbirths", "ID", "BirthWeightGm", "Low")),
    "InstInnovation": ("cites", rdata("sandwich", "InstInnovation", "company", "subsample", "precites", "dprecites")),
    "GrinnellHouses": (
        "SalePrice",
        rdata("Stat2Data", "GrinnellHouses", "Date", "Address", "CostPerSqFt", "OrigPrice", "ListPrice", "SPLPPct"),
    ),
    "radon": ("log.radon", rdata("HLMdiag", "radon", "county", "county.name")),
    "RiceFarms": ("goutput", rdata("plm", "RiceFarms", "id", "noutput")),
}
MONEY = {"price", "landValue", "median", "sales", "capital", "randd", "value", "SalePrice", "pseed", "purea", "pphosph",
         "wage", "pesticide"}  # fmt: skip
METHODS: dict[str, dict[str, str]] = {
    "today's default": {"algorithm": "boosted-ssp"},
    "dp-gd-average": {"algorithm": "dp-gd-average"},
    "window": {"algorithm": "boosted-ssp", "row_bound": "window"},
}
BOUNDS = ("tight", "wide")
EPSILONS = (0.3, 1.0, 3.0)
SEEDS = 10
ROWS = 800  # from which on a default may not be worse than a mean
WORSE = -0.01  # R² below which it is
SHARE = 0.05  # of the cells with ROWS at ε ≥ 1 that may be
FIELDS = ("data", "bounds", "rows", "columns", "method", "epsilon", "seed", "r2")
SCORES = measured.RESULTS / "fresh_numbers.csv"
Found = dict[tuple[str, str, str, float], list[float]]  # data, bounds, method, ε → R² of each seed


def widened(schema: schemas.Schema, table: object) -> schemas.Schema:
    """The schema with the bounds that somebody gives who knows only a column's order of size."""

    def wide(name: str, column: object) -> object:
        bounds = getattr(column, "bounds", None)
        if bounds is None:
            return column
        factor = 10.0 if name in MONEY else 2.0
        low, high = float(table[name].min()), float(table[name].max())  # type: ignore[index]  # a frame
        most = factor * max(abs(low), abs(high))
        return msgspec.structs.replace(column, bounds=(0.0 if low >= 0 else -most, most))

    columns = {name: wide(name, column) for name, column in schema.columns.items()}
    return schemas.Schema(target=wide(schema.target.name, schema.target), columns=columns)  # type: ignore[arg-type]


@cache
def _schema(name: str, bounds: str) -> schemas.Schema:
    schema = measured.split(name, 0, TABLES).schema
    target, load = TABLES[name]
    table = load()
    return schema if bounds == "tight" else widened(schema, table[table[target].notna()])


def lines(name: str, bounds: str, seed: int, done: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    """The rows of the results of one split, but for those that are there."""
    split, schema = measured.split(name, seed, TABLES), _schema(name, bounds)
    target = TABLES[name][0]
    y, held = split.train[target], split.test[target]
    of = {"data": name, "bounds": bounds, "rows": len(y), "columns": split.X.shape[1], "seed": seed}
    for (method, given), epsilon in itertools.product(METHODS.items(), EPSILONS):
        if (name, bounds, method, f"{epsilon:g}", str(seed)) in done:
            continue
        model = PrivateRegressor(epsilon, schema=schema, random_state=seed, **given)  # type: ignore[arg-type]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a seeded fit says that it is no release
            try:
                found = model.fit(split.train).predict(split.test)
            except UserError:  # no room for a window there
                continue
        r2 = 1 - float(((held - found) ** 2).mean() / held.var(ddof=0))
        yield {**of, "method": method, "epsilon": f"{epsilon:g}", "r2": f"{r2:.4f}"}
    if bounds == "tight" and (name, bounds, "no privacy", "inf", str(seed)) not in done:
        r2 = measured.scores(split, measured.without_privacy(split))["r2"]
        yield {**of, "method": "no privacy", "epsilon": "inf", "r2": f"{r2:.4f}"}


def read() -> tuple[Found, dict[str, int]]:
    """The scores that are there, and the rows in use of each table."""
    found, rows = defaultdict(list), {}
    for line in _read():
        found[line["data"], line["bounds"], line["method"], float(line["epsilon"])].append(float(line["r2"]))
        rows[line["data"]] = int(line["rows"])
    return dict(found), rows


def _read() -> list[dict[str, str]]:
    if not SCORES.exists():
        return []
    with SCORES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def means(found: Found, method: str, epsilon: float, bounds: str) -> dict[str, float]:
    """Table → mean R² over the seeds."""
    return {d: float(np.mean(r2)) for (d, b, m, e), r2 in found.items() if (b, m, e) == (bounds, method, epsilon)}


def bad(found: Found, rows: dict[str, int], method: str) -> tuple[int, int]:
    """(cells with ROWS and ε ≥ 1 whose mean R² is below WORSE, all such cells)."""
    each = [
        r2
        for epsilon, bounds in itertools.product([e for e in EPSILONS if e >= 1], BOUNDS)
        for name, r2 in means(found, method, epsilon, bounds).items()
        if rows[name] >= ROWS
    ]
    return sum(r2 < WORSE for r2 in each), len(each)


def table(found: Found, rows: dict[str, int]) -> str:
    """The page: mean R² by bounds and ε, a cell counting as -1 at least, its worst cell, and the rule's first part."""
    heads = [f"ε = {epsilon:g}" for epsilon in EPSILONS]
    out = [f"| bounds | method | {' | '.join(heads)} |", "|---|---|" + "---|" * len(heads)]
    for bounds, method in itertools.product(BOUNDS, METHODS):
        cells = [list(means(found, method, epsilon, bounds).values()) for epsilon in EPSILONS]
        shown = [f"{np.maximum(r2, -1.0).mean():.3f} (worst {min(r2):.2f})" for r2 in cells]
        shown = [s + f", {len(r2)} tables" * (len(r2) < len(TABLES)) for s, r2 in zip(shown, cells, strict=True)]
        out.append(f"| {bounds} | {method} | {' | '.join(shown)} |")
    best = np.mean(list(means(found, "no privacy", np.inf, "tight").values()))
    out += ["", f"Least squares without privacy: {best:.3f}.", ""]
    for method in METHODS:
        worse, of = bad(found, rows, method)
        out.append(f"- {method}: R² below {WORSE} in {worse} of {of} cells with n ≥ {ROWS} and ε ≥ 1.")
    return "\n".join(out) + "\n"


def main() -> None:
    """Fits what is missing, a table at a time, and writes the page."""
    if sys.argv[1:] != ["table"]:
        done = {tuple(line[key] for key in ("data", "bounds", "method", "epsilon", "seed")) for line in _read()}
        new = not SCORES.exists()
        with SCORES.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if new:
                writer.writeheader()
            for seed, name, bounds in itertools.product(range(SEEDS), TABLES, BOUNDS):
                writer.writerows(lines(name, bounds, seed, done))
                file.flush()
    (measured.RESULTS / "fresh_numbers.md").write_text(table(*read()), encoding="utf-8")


if __name__ == "__main__":
    main()
