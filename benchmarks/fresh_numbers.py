"""Private regression on twelve tables that nobody tuned on: what a default for numbers has to reach before it is one.

The tables of `TABLES` were named, and this file committed, before any fit to them. None is in a list of this project or
in a package that a choice of constants took whole lists from (AER, Ecdat, wooldridge, openintro, modeldata, survival,
COUNT). Twice twelve others were here before; the constants of numbers were chosen on those too. Whoever tunes on these
has to name twelve others.

`python -m benchmarks.fresh_numbers` fits each method of `METHODS` at every ε, with tight and with wide public bounds,
on ten splits, and diffprivlib's LinearRegression (in the environment of `make rivals`, at δ = 0, to rows and targets in
[-1, 1] as ours), then plans the default from each schema. It goes on where it was stopped, and writes
results/fresh_numbers.csv and fresh_plans.csv. Then, or alone with the argument `table`, it writes
results/fresh_numbers.md, which the guide "The default methods" shows.

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
from collections.abc import Container, Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from benchmarks import other_libraries as measured
from benchmarks.other_libraries import rdata
from dpbench import PrivateRegressor
from dpbench import schema as schemas
from dpbench.errors import silent
from dpbench.own.forecast import Simulation, make
from dpbench.schema.encoding import encoding_of, target_values

TABLES: measured.Sets = {
    "PearsonLee": ("child", rdata("HistData", "PearsonLee", "frequency")),
    "summer": ("O3", rdata("texmex", "summer")),
    "jobs": ("depress2", rdata("mediation", "jobs")),
    "voteincome": ("income", rdata("stevedata", "voteincome", "year")),
    "ESSBE5": ("trstplc", rdata("stevedata", "ESSBE5", "essround", "edition", "idno", "cntry")),
    "SuicideChina": ("Age", rdata("Stat2Data", "SuicideChina", "Person_ID")),
    "planes": ("seats", rdata("nycflights13", "planes", "tailnum", "model")),
    "Kershaw": (
        "StartSpeed",
        rdata("Stat2Data", "Kershaw", "BatterNumber", "Batter", "Time", "EndSpeed", "ABEvent"),
    ),
    "polls": (
        "rawpoll_clinton",
        rdata(
            "dslabs",
            "polls_us_election_2016",
            "startdate",
            "enddate",
            "pollster",
            "rawpoll_mcmullin",
            "adjpoll_clinton",
            "adjpoll_trump",
            "adjpoll_johnson",
            "adjpoll_mcmullin",
        ),
    ),
    "cricketer": ("life", rdata("DAAG", "cricketer")),
    "wages": ("lnw", rdata("HLMdiag", "wages", "id", "hgc.9", "ue.7", "ue.centert1", "ue.person.cen")),
    "mm_nhis": ("inc", rdata("stevedata", "mm_nhis", "perweight")),
}
MONEY = {"sales", "profits", "assets", "marketvalue", "wage", "capital", "output", "gdp"}
MONEY |= {"income", "Income", "Amount", "Price", "Expenses", "Assets", "Debt", "gsp", "re74", "re75", "re78", "statemb"}
MONEY |= {"earnings_med", "pcap", "hwy", "water", "util", "pc", "wcon", "wtuc", "wtrd", "wfir", "wser", "wmfg", "wfed"}
MONEY |= {"price", "median", "volume", "budget", "inc"}
METHODS: dict[str, dict[str, str]] = {
    "public bounds": {"algorithm": "boosted-ssp", "row_bound": "private"},
    "dp-gd-average": {"algorithm": "dp-gd-average", "row_bound": "private"},
    "default": {"algorithm": "auto", "row_bound": "auto"},
}
DEFAULT = "default"
RIVAL = "diffprivlib"  # its one model of numbers
BOUNDS = ("tight", "wide")
EPSILONS = (0.3, 1.0, 3.0)
SEEDS = 10
ROWS = 800  # from which on a default may not be worse than a mean
WORSE = -0.01  # R² below which it is
SHARE = 0.05  # of the cells with ROWS at ε ≥ 1 that may be
FIELDS = ("data", "bounds", "rows", "columns", "method", "epsilon", "seed", "r2")
SCORES, PLANS = (measured.RESULTS / f"fresh_{name}.csv" for name in ("numbers", "plans"))
WORLDS = 24  # that a plan is made of
PLANNED = ("data", "bounds", "epsilon", "low", "high")
Found = dict[tuple[str, str, str, float], list[float]]  # data, bounds, method, ε → R² of each seed


def widened(schema: schemas.Schema, table: pd.DataFrame) -> schemas.Schema:
    """The schema with the bounds that somebody gives who knows only a column's order of size."""

    def wide(name: str, column: object) -> object:
        bounds = getattr(column, "bounds", None)
        if bounds is None:
            return column
        factor = 10.0 if name in MONEY else 2.0
        cells = pd.to_numeric(table[name], errors="coerce")
        low, high = float(cells.min()), float(cells.max())
        most = factor * max(abs(low), abs(high))
        return msgspec.structs.replace(column, bounds=(0.0 if low >= 0 else -most, most))

    columns = {name: wide(name, column) for name, column in schema.columns.items()}
    return schemas.Schema(target=wide(schema.target.name, schema.target), columns=columns)  # type: ignore[arg-type]


def under(rows: measured.Rows, schema: schemas.Schema) -> measured.Rows:
    """The same split as another schema makes numbers of it."""
    encoding, target = encoding_of(schema, intercept=True), schema.target
    y, yt = (target_values(target, part[target.name])[0] for part in (rows.train, rows.test))
    X, Xt = encoding.rows(rows.train, fitting=True), encoding.rows(rows.test)
    return rows._replace(X=X, y=y, Xt=Xt, yt=yt, unit=encoding.unit, schema=schema)


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
            found = model.fit(split.train).predict(split.test)
        r2 = 1 - float(((held - found) ** 2).mean() / held.var(ddof=0))
        yield {**of, "method": method, "epsilon": f"{epsilon:g}", "r2": f"{r2:.4f}"}
    if bounds == "tight" and (name, bounds, "no privacy", "inf", str(seed)) not in done:
        r2 = measured.scores(split, measured.without_privacy(split))["r2"]
        yield {**of, "method": "no privacy", "epsilon": "inf", "r2": f"{r2:.4f}"}


def rivals(bounds: str, seed: int, done: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    """Those of diffprivlib, on the same rows by the same bounds."""
    missing = [name for name in TABLES if (name, bounds, RIVAL, f"{EPSILONS[-1]:g}", str(seed)) not in done]
    splits = {name: under(measured.split(name, seed, TABLES), _schema(name, bounds)) for name in missing}
    for one in measured.rivals(splits, seed, RIVAL) if splits else ():
        of = {key: one[key] for key in ("data", "rows", "seed")} | {"columns": one["columns"] + 1}
        yield {**of, "bounds": bounds, "method": RIVAL, "epsilon": f"{one['epsilon']:g}",
               "r2": f"{float(one['r2']):.4f}"}  # fmt: skip


def plans(name: str, bounds: str) -> Iterator[dict[str, object]]:
    """What `dpbench plan` foresees of the default's R² on a table, from its schema and number of rows alone."""
    frame = Simulation(_schema(name, bounds), len(measured.split(name, 0, TABLES).y), None, {}, None, None, 0, "auto")
    for one in make(frame, EPSILONS, ["auto"], WORLDS, None, 1, silent).forecasts:
        _, low, high = one.interval("R²")
        yield dict(zip(PLANNED, (name, bounds, f"{one.epsilon:g}", f"{low:.4f}", f"{high:.4f}"), strict=True))


def coverage(found: Found) -> str:
    """By bounds and ε, the share of tables whose mean R² a plan's interval held, and of single fits."""
    out = [f"| plan, 90 % | {' | '.join(f'ε = {e:g}' for e in EPSILONS)} |", "|---" * (1 + len(EPSILONS)) + "|"]
    for bounds in BOUNDS:
        shown = []
        for epsilon in EPSILONS:
            means: list[bool] = []
            single: list[bool] = []
            for line in _read(PLANS):
                if line["bounds"] == bounds and float(line["epsilon"]) == epsilon:
                    r2 = np.array(found[line["data"], bounds, DEFAULT, epsilon])
                    low, high = float(line["low"]), float(line["high"])
                    means.append(low <= r2.mean() <= high)
                    single.extend((low <= r2) & (r2 <= high))
            shown.append(f"{100 * np.mean(means):.0f} %, single fits {100 * np.mean(single):.0f} %")
        out.append(f"| {bounds} | {' | '.join(shown)} |")
    return "\n".join(out) + "\n"


def read() -> tuple[Found, dict[str, int]]:
    """The scores that are there, and the rows in use of each table."""
    found, rows = defaultdict(list), {}
    for line in _read(SCORES):
        found[line["data"], line["bounds"], line["method"], float(line["epsilon"])].append(float(line["r2"]))
        rows[line["data"]] = int(line["rows"])
    return dict(found), rows


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
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
    """The page: mean R² by bounds and ε, a cell counting as -1 at least, its worst cell, and the rule."""
    heads = [f"ε = {epsilon:g}" for epsilon in EPSILONS]
    out = [f"| bounds | method | {' | '.join(heads)} |", "|---|---|" + "---|" * len(heads)]
    for bounds, method in itertools.product(BOUNDS, (*METHODS, RIVAL)):
        cells = [list(means(found, method, epsilon, bounds).values()) for epsilon in EPSILONS]
        shown = [f"{np.maximum(r2, -1.0).mean():.3f} (worst {min(r2):.2f})" for r2 in cells]
        out.append(f"| {bounds} | {method} | {' | '.join(shown)} |")
    best = np.mean(list(means(found, "no privacy", np.inf, "tight").values()))
    out += ["", f"Least squares without privacy: {best:.3f}.", ""]
    for method in (*METHODS, RIVAL):
        worse, of = bad(found, rows, method)
        out.append(f"- {method}: R² below {WORSE} in {worse} of {of} cells with n ≥ {ROWS} and ε ≥ 1.")
    told = [f"| {words} | {shown} | {'met' if met else 'missed'} |" for words, shown, met in rule(found, rows)]
    out += ["", "| the rule for a default | found | |", "|---|---|---|", *told]
    return "\n".join(out) + "\n\n" + coverage(found)


def rule(found: Found, rows: dict[str, int]) -> list[tuple[str, str, bool]]:
    """What was asked of a default before any fit: (in words, what was found, whether it is met) of each part."""
    worse, of = bad(found, rows, DEFAULT)
    others = [name for name in (*METHODS, RIVAL) if name != DEFAULT]
    few = {name for name in rows if rows[name] < ROWS}

    def ahead(rivals: list[str], *bounds: str, of: Container[str] = rows) -> list[float]:
        """At each ε, how far the default's mean R², a cell at -1 at least, is ahead of the best of the rivals'."""
        mean = {
            (method, epsilon): np.mean([
                max(r2, -1.0)
                for one in bounds
                for name, r2 in means(found, method, epsilon, one).items()
                if name in of
            ])
            for method, epsilon in itertools.product([DEFAULT, *rivals], EPSILONS)
        }  # fmt: skip
        return [float(mean[DEFAULT, e] - max(mean[rival, e] for rival in rivals)) for e in EPSILONS]

    both, tight = ahead(others, *BOUNDS), ahead(["public bounds"], "tight")
    below = float(np.mean(ahead(["dp-gd-average"], *BOUNDS, of=few)))
    at = "at ε = " + ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    return [
        (f"R² below {WORSE} in {100 * SHARE:.0f} % of the cells with n ≥ {ROWS} and ε ≥ 1 at most", f"{worse} of {of}",
         worse <= SHARE * of),
        (f"mean R² ahead of the best other, {at}", _signed(both), min(both) > 0),
        ("tight bounds cost 0.01 at most beside public bounds", _signed(tight), min(tight) >= -0.01),
        (f"not behind dp-gd-average on tables below {ROWS} rows", _signed([below]), below >= 0),
    ]  # fmt: skip


def _signed(values: list[float]) -> str:
    return ", ".join(f"{value:+.3f}" for value in values)


def main() -> None:
    """Fits what is missing, a table at a time, and writes the page."""
    if sys.argv[1:] != ["table"]:
        done = {tuple(line[key] for key in ("data", "bounds", "method", "epsilon", "seed")) for line in _read(SCORES)}
        planned = {(line["data"], line["bounds"]) for line in _read(PLANS)}
        fits = itertools.product(range(SEEDS), TABLES, BOUNDS)
        _append(SCORES, FIELDS, (lines(name, bounds, seed, done) for seed, name, bounds in fits))
        each = itertools.product(BOUNDS, range(SEEDS))
        _append(SCORES, FIELDS, (rivals(bounds, seed, done) for bounds, seed in each))
        missing = (at for at in itertools.product(TABLES, BOUNDS) if at not in planned)
        _append(PLANS, PLANNED, (plans(*at) for at in missing))
    (measured.RESULTS / "fresh_numbers.md").write_text(table(*read()), encoding="utf-8")


def _append(path: Path, fields: tuple[str, ...], parts: Iterable[Iterator[dict[str, object]]]) -> None:
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if new:
            writer.writeheader()
        for rows in parts:
            writer.writerows(rows)
            file.flush()


if __name__ == "__main__":
    main()
