"""Do intervals of coefficients cover? 22 families and eight real tables by resampling; numbers and two classes.

`python -m benchmarks.coefficient_coverage [FITS]` draws FITS tables of each family, and of each real table by drawing
its rows with replacement; where persons have several rows, persons are drawn. It fits each at every ε by the code that
a fit runs, and counts for each slope how often its interval holds what the model's slope is without noise and sampling:
that of the least loss (Huber, logistic) over MANY rows of the family, or over all rows of the table, each person
counting once. It goes on where it was stopped, writes results/coefficient_coverage.csv, a line for each cell, and then,
or alone with the argument `table`, the page results/coefficient_coverage.md. Fits without intervals are counted as such
and as nothing else. Seeds are fixed.

What `own.intervals` releases, and the factor of its rule, were settled on "rare", "small", "low" and "crossed"; that of
two classes on "steep". The other sources are fresh.

The verdict is by the judge's rules (`study.laws`): a slope is outside where its coverage is below LOW or above HIGH by
an exact binomial test, at LEVEL over all slopes of all cells together (Holm's correction). It is given for cells, and
with more power for the fits of a source at every ε together, whose tables and noise are drawn anew for each.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.other_libraries import RESULTS, rdata
from dpbench import PrivateClassifier, PrivateRegressor
from dpbench import schema as schemas
from dpbench.own import intervals
from dpbench.own.engine import execute, rows_of
from dpbench.own.inputs import persons_of
from dpbench.schema.encoding import encoding_of
from dpbench.study.laws import LEVEL

EPSILONS = (0.3, 0.6, 1.0, 3.0)
FITS = 150
LOW, HIGH = 0.92, 0.98
FEW = 0.3  # a share of fits with intervals that is small
ENOUGH = 50  # such fits from which a cell's share is told by itself
COUNTS = RESULTS / "coefficient_coverage.csv"
FIELDS = ("source", "epsilon", "rows", "fits", "offered", "held", "width")
MOST = 15_000  # rows that are drawn of a real table
MANY = 300_000  # rows of a family, for what its coefficients are
Table = pd.DataFrame


def frame(X: np.ndarray, y: np.ndarray, **more: np.ndarray) -> Table:
    """A table of numbers in [-1, 1], their target, and columns of categories."""
    return pd.DataFrame(np.clip(X, -1, 1), columns=[f"x{i}" for i in range(X.shape[1])]).assign(
        **more, y=np.clip(y, -1, 1)
    )


def mixture(rng: np.random.Generator, n: int) -> Table:
    """Two heaps of rows, Laplace residuals."""
    X = 0.25 * rng.standard_normal((n, 6)) + np.where(rng.random((n, 1)) < 0.3, 0.5, -0.3)
    return frame(X, X @ [0.3, -0.2, 0.1, 0.0, 0.0, 0.1] + rng.laplace(0, 0.1, n))


def curved(rng: np.random.Generator, n: int) -> Table:
    """No line: a square and a product; residuals depend on the features."""
    X = rng.uniform(-1, 1, (n, 4))
    return frame(X, 0.3 * X[:, 0] ** 2 + 0.3 * X[:, 1] * X[:, 2] + 0.2 * X[:, 3] + 0.1 * rng.standard_normal(n) - 0.1)


def rare(rng: np.random.Generator, n: int) -> Table:
    """Three kinds, one of them 4 % of the rows; the spread of the target depends on the kind."""
    X, kind = 0.4 * rng.standard_normal((n, 3)), rng.choice(3, n, p=[0.56, 0.4, 0.04])
    y = X @ [0.2, 0.1, 0.0] + 0.3 * (kind == 2) + (0.1 + 0.15 * (kind == 1)) * rng.standard_normal(n)
    return frame(X, y, kind=np.array(["a", "b", "c"])[kind])


def wide(rng: np.random.Generator, n: int) -> Table:
    """Residuals as wide as the clip and wider."""
    X = rng.uniform(-1, 1, (n, 5))
    return frame(X, X @ [0.2, 0.2, -0.1, 0.0, 0.0] + 0.4 * rng.standard_normal(n))


def chain(rng: np.random.Generator, n: int) -> Table:
    """Twelve features, each like the one before."""
    Z = rng.standard_normal((n, 12))
    for j in range(1, 12):
        Z[:, j] = 0.7 * Z[:, j - 1] + 0.714 * Z[:, j]
    X = 0.45 * Z
    return frame(X, X @ np.resize([0.2, 0.0, -0.2], 12) + 0.15 * rng.standard_t(5, n))


def zeros(rng: np.random.Generator, n: int) -> Table:
    """Half of the targets lie at their least value, as amounts do."""
    X = rng.uniform(-1, 1, (n, 5))
    y = np.maximum(0.0, X @ [0.5, 0.3, 0.0, -0.3, 0.1] + 0.3 * rng.standard_normal(n))
    return frame(X, y - 0.5)


def binary(rng: np.random.Generator, n: int) -> Table:
    """A target of two values."""
    X = rng.uniform(-1, 1, (n, 8))
    return frame(X, 0.3 * np.sign(X @ np.resize([1.0, -0.5, 0.0], 8) + rng.logistic(0, 0.7, n)))


def low(rng: np.random.Generator, n: int) -> Table:
    """Features near the lower end of their bounds, where they look like the intercept."""
    X = 2 * rng.beta(1.2, 4.0, (n, 6)) - 1
    return frame(X, X @ [0.3, 0.1, 0.0, 0.0, -0.2, 0.1] + 0.1 * rng.gumbel(size=n))


def small(rng: np.random.Generator, n: int) -> Table:
    """Few rows and three features."""
    X = rng.uniform(-1, 1, (n, 3))
    return frame(X, X @ [0.3, -0.2, 0.0] + 0.1 * (1 + np.abs(X[:, 0])) * rng.standard_normal(n))


def crossed(rng: np.random.Generator, n: int) -> Table:
    """Two columns of categories that go together, and numbers with heavy tails."""
    X, one = 0.2 * rng.standard_t(3, (n, 2)), rng.choice(3, n, p=[0.5, 0.3, 0.2])
    other = np.where(rng.random(n) < 0.6, one, rng.choice(3, n))
    y = X @ [0.3, -0.1] + 0.15 * (one == 1) - 0.1 * (other == 2) + 0.12 * rng.standard_normal(n)
    return frame(X, y, one=np.array(list("abc"))[one], other=np.array(list("def"))[other])


def visits(rng: np.random.Generator, n: int) -> Table:
    """Rows of n persons, 3.3 on average: each person has a level and a slope of his own, and features that stay."""
    who = np.repeat(np.arange(n), rng.geometric(0.3, n))
    X = 0.5 * rng.uniform(-1, 1, (n, 3))[who] + 0.5 * rng.uniform(-1, 1, (len(who), 3))
    own = rng.standard_normal((n, 2))[who]
    y = X @ [0.2, -0.1, 0.0] + 0.12 * own[:, 0] + 0.1 * own[:, 1] * X[:, 0] + 0.1 * rng.standard_normal(len(who))
    return frame(X, y, who=who.astype(str))


def regulars(rng: np.random.Generator, n: int) -> Table:
    """Rows of n persons, a few of whom have up to a hundred, and another slope."""
    m = np.minimum(rng.zipf(1.8, n), 100)
    who = np.repeat(np.arange(n), m)
    X = 0.3 * rng.standard_normal((n, 2))[who] + 0.4 * rng.uniform(-1, 1, (len(who), 2))
    y = X[:, 0] * np.where(m[who] > 5, -0.2, 0.3) + 0.1 * rng.standard_normal(n)[who]
    return frame(X, y + 0.1 * rng.standard_t(4, len(who)), who=who.astype(str))


def labelled(X: np.ndarray, z: np.ndarray, rng: np.random.Generator, **more: np.ndarray) -> Table:
    """A table of two classes whose log odds are z."""
    drawn = rng.random(len(z)) < 1 / (1 + np.exp(-z))
    return frame(X, drawn.astype(float), **more).assign(y=np.where(drawn, "yes", "no"))


def plain(rng: np.random.Generator, n: int) -> Table:
    """Normal features that are cut at their bounds."""
    X = np.clip(0.5 * rng.standard_normal((n, 4)), -1, 1)
    return labelled(X, X @ [2.0, -1.0, 0.5, 0.0], rng)


def steep(rng: np.random.Generator, n: int) -> Table:
    """Slopes of up to 6: most labels are certain."""
    X = rng.uniform(-1, 1, (n, 4))
    return labelled(X, X @ [6.0, -4.0, 0.0, 2.0], rng)


def uncommon(rng: np.random.Generator, n: int) -> Table:
    """One label in seventeen is yes."""
    X = rng.uniform(-1, 1, (n, 3))
    return labelled(X, X @ [1.0, -1.0, 0.0] - 3, rng)


def kinds(rng: np.random.Generator, n: int) -> Table:
    """Three kinds, one of them 4 % of the rows."""
    X, kind = np.clip(0.4 * rng.standard_normal((n, 2)), -1, 1), rng.choice(3, n, p=[0.56, 0.4, 0.04])
    return labelled(X, X @ [1.5, 0.0] - 0.5 + 1.5 * (kind == 2) + 0.5 * (kind == 1), rng,
                    kind=np.array(["a", "b", "c"])[kind])  # fmt: skip


def bent(rng: np.random.Generator, n: int) -> Table:
    """No line: odds of 9 beyond a curve, and of 1/9 below."""
    X = rng.uniform(-1, 1, (n, 5))
    return labelled(X, np.where(X[:, 0] ** 2 + 0.3 * X[:, 1] * X[:, 2] > 0.3, 2.2, -2.2), rng)


def mixed(rng: np.random.Generator, n: int) -> Table:
    """Half of the rows have another slope."""
    X = rng.uniform(-1, 1, (n, 4))
    return labelled(X, np.where(rng.random(n) < 0.5, 4.0, -1.0) * X[:, 0] + X[:, 1], rng)


def lone(rng: np.random.Generator, n: int) -> Table:
    """One feature, few rows."""
    X = rng.uniform(-1, 1, (n, 1))
    return labelled(X, 2 * X[:, 0] + 0.5, rng)


def tails(rng: np.random.Generator, n: int) -> Table:
    """Features with heavy tails near the lower end of their bounds."""
    X = 2 * rng.beta(1.2, 4.0, (n, 3)) - 1
    return labelled(X, X @ [2.0, -1.0, 0.0] + 1, rng)


def returners(rng: np.random.Generator, n: int) -> Table:
    """Rows of n persons, 2.5 on average, each with a level of his own, and features that stay."""
    who = np.repeat(np.arange(n), rng.geometric(0.4, n))
    X = 0.5 * rng.uniform(-1, 1, (n, 3))[who] + 0.5 * rng.uniform(-1, 1, (len(who), 3))
    return labelled(X, X @ [2.0, -1.0, 0.0] + 1.5 * rng.standard_normal(n)[who], rng, who=who.astype(str))


def crowd(rng: np.random.Generator, n: int) -> Table:
    """Rows of n persons, a few of whom have up to a hundred, and another slope."""
    m = np.minimum(rng.zipf(1.8, n), 100)
    who = np.repeat(np.arange(n), m)
    X = 0.5 * rng.uniform(-1, 1, (n, 2))[who] + 0.5 * rng.uniform(-1, 1, (len(who), 2))
    z = X[:, 0] * np.where(m[who] > 5, -1.0, 2.0) + rng.standard_normal(n)[who] - 0.5
    return labelled(X, z, rng, who=who.astype(str))


FAMILIES: dict[str, tuple[Callable[[np.random.Generator, int], Table], int]] = {
    "mixture": (mixture, 6000), "curved": (curved, 8000), "rare": (rare, 10000), "wide": (wide, 10000),
    "chain": (chain, 20000), "zeros": (zeros, 5000), "binary": (binary, 8000), "low": (low, 20000),
    "small": (small, 2000), "crossed": (crossed, 15000), "visits": (visits, 6000), "regulars": (regulars, 5000),
    "plain": (plain, 10000), "steep": (steep, 30000), "uncommon": (uncommon, 20000), "kinds": (kinds, 20000),
    "bent": (bent, 10000), "mixed": (mixed, 5000), "lone": (lone, 3000), "tails": (tails, 20000),
    "returners": (returners, 10000), "crowd": (crowd, 8000),
}  # fmt: skip
WHO = "who"  # the column that tells persons


def doctor() -> Table:
    """Visits to a doctor of 6,127 Germans, one to five years each."""
    table = rdata("COUNT", "rwm5yr")()
    who, seen = table["id"].astype(str), table["docvis"].clip(upper=20)
    return table[["age", "outwork", "female"]].assign(docvis=seen, who=who)


def any_visit() -> Table:
    """Whether a German was at a doctor in a year."""
    table = doctor()
    return table.drop(columns="docvis").assign(seen=np.where(table["docvis"] > 0, "yes", "no"))


REAL = {
    "CPSSW8": ("earnings", rdata("AER", "CPSSW8")),
    "CPS1988": ("wage", rdata("AER", "CPS1988")),
    "NOxEmissions": ("LNOx", rdata("robustbase", "NOxEmissions")),
    "txhousing": ("median", rdata("ggplot2", "txhousing", "city", "volume", "date")),
    "rwm5yr": ("docvis", doctor),
    "rwm5yr-any": ("seen", any_visit),
    "SmokeBan": ("smoker", lambda: rdata("AER", "SmokeBan")()[["smoker", "ban", "age", "gender"]]),
    "k401ksubs": ("e401k", lambda: rdata("wooldridge", "k401ksubs")()[["e401k", "age", "marr", "male"]]),
}


class Cell(NamedTuple):
    """Fits of one source at one ε. offered: those with intervals; held: by slope, of how many the interval held it.

    width: the median over slopes and fits of an interval's width over that of one table without privacy.
    """

    name: str
    epsilon: float
    rows: int
    fits: int
    offered: int
    held: tuple[int, ...]
    width: float

    @property
    def few(self) -> bool:
        """Whether intervals are offered, and rarely."""
        return 0 < self.offered < FEW * self.fits


class Source(NamedTuple):
    """Tables of one law: its schema, how n rows, or persons, of it are drawn, and rows that stand for the law."""

    schema: schemas.Schema
    rows: int
    draw: Callable[[np.random.Generator], Table]
    law: Table


def source(name: str) -> Source:
    """Of a family, or of a real table, whose rows are drawn with replacement."""
    if name in FAMILIES:
        made, n = FAMILIES[name]
        law = made(np.random.default_rng(0), MANY)
        columns = {
            column: schemas.Column(bounds=(-1, 1)) if law[column].dtype.kind == "f"
            else schemas.Column(categories=tuple(sorted(law[column].unique())))
            for column in law.columns if column not in ("y", WHO)
        }  # fmt: skip
        if law["y"].dtype.kind == "f":
            target = schemas.Target(name="y", bounds=(-1, 1))
        else:
            target = schemas.Target(name="y", classes=("no", "yes"))
        schema = schemas.Schema(target=target, columns=columns, unit=WHO if WHO in law else None)
        return Source(schema, n, lambda rng: made(rng, n), law)
    target_name, load = REAL[name]
    table = load().dropna().reset_index(drop=True)
    schema = schemas.draft(table.drop(columns=WHO, errors="ignore"), target_name)[0]
    if WHO in table:
        each = [one for _, one in table.groupby(WHO)]
        schema = msgspec.structs.replace(schema, unit=WHO)

        def drawn(rng: np.random.Generator) -> Table:
            chosen = [each[i] for i in rng.integers(0, len(each), len(each))]
            return pd.concat(chosen).assign(who=np.repeat(np.arange(len(each)).astype(str), [*map(len, chosen)]))

        return Source(schema, len(each), drawn, table)
    n = min(len(table), MOST)
    return Source(schema, n, lambda rng: table.iloc[rng.integers(0, len(table), n)], table)


def sizes_of(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """(whose a row is, from 0; how many rows he has)."""
    who = np.unique(table[WHO], return_inverse=True)[1] if WHO in table else np.arange(len(table))
    return who, np.bincount(who)[who]


def slopes(X: np.ndarray, y: np.ndarray, clip: float, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first, second derivatives of the loss at each row): Huber of `clip`, or where that is 1 logistic."""
    if clip == 1:
        p = 1 / (1 + np.exp(-X @ w))
        return p - (y + 1) / 2, p * (1 - p)
    r = X @ w - y
    return np.clip(r, -clip, clip), (np.abs(r) <= clip).astype(float)


def least(X: np.ndarray, y: np.ndarray, clip: float, m: np.ndarray) -> np.ndarray:
    """The weights of the least loss, a row counting 1/m, by Newton's method."""
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    for _ in range(60):
        c, h = slopes(X, y, clip, w)
        step = np.linalg.solve((X.T * (h / m)) @ X, X.T @ (c / m))
        w = w - step
        if np.abs(step).max() < 1e-10:
            break
    return w


def cells(name: str, fits: int, epsilons: Sequence[float]) -> Iterator[Cell]:
    """One of each ε."""
    made, truth = source(name), None
    encoding = encoding_of(made.schema, intercept=True)
    columns = intervals.compared(encoding, windowed=False)
    for epsilon in epsilons:
        kind = PrivateClassifier if made.schema.target.classes else PrivateRegressor
        plan = kind(epsilon, schema=made.schema, intervals=True, random_state=0).plan(made.rows)
        target = made.schema.target
        clip = plan.settings.clip  # type: ignore[attr-defined]  # both methods have one
        if truth is None:
            rows, labels = rows_of(plan, encoding, target, made.law, made.law[target.name])
            truth = least(rows[:, [*columns]], labels, clip, sizes_of(made.law)[1])
        held, ratios = np.zeros(len(columns), int), list[float]()
        offered = 0
        for seed in range(fits):
            table = made.draw(np.random.default_rng([seed, round(10 * epsilon)]))
            rows, labels = rows_of(plan, encoding, target, table, table[target.name])
            if not seed:
                exact = without_privacy(rows[:, [*columns]], labels, clip, *sizes_of(table))
            persons = persons_of(table, None, made.schema.unit, asked=False)[1]
            step = execute(plan, rows, labels, unit=encoding.unit, seed=seed, persons=persons).step
            assert step is not None
            offer = intervals.of(step, columns, made.rows)
            if not offer.centres:
                continue
            offered += 1
            std = np.array(offer.deviations)
            held += np.abs(np.array(offer.centres) - truth) <= intervals.WIDTH * std
            ratios.extend(std[1:] / exact[1:])
        width = float(np.median(ratios)) if ratios else math.nan
        yield Cell(name, epsilon, made.rows, fits, offered, tuple(held[1:].tolist()), width)


def without_privacy(X: np.ndarray, y: np.ndarray, clip: float, who: np.ndarray, m: np.ndarray) -> np.ndarray:
    """(columns,) deviations of the weights of the least loss, by the sandwich of these rows, or persons."""
    c, h = slopes(X, y, clip, least(X, y, clip, m))
    scores = np.zeros((who.max() + 1, X.shape[1]))
    np.add.at(scores, who, X * (c / m)[:, None])
    half = np.linalg.solve((X.T * (h / m)) @ X, scores.T)
    return np.sqrt((half * half).sum(axis=1))


def together(cells: list[Cell]) -> list[Cell]:
    """The fits of each source at every ε as those of one cell."""
    names = dict.fromkeys(cell.name for cell in cells)
    of = [[cell for cell in cells if cell.name == name] for name in names]
    return [
        same[0]._replace(
            epsilon=math.nan,
            offered=sum(cell.offered for cell in same),
            held=tuple(sum(counts) for counts in zip(*(cell.held for cell in same), strict=True)),
        )
        for same in of
    ]


def outside(cells: list[Cell]) -> set[tuple[str, float, int]]:
    """(source, ε, slope) of those whose coverage is not within LOW to HIGH: Holm's steps over all."""
    chances = [(chance(held, cell.offered), (cell.name, cell.epsilon, j))
               for cell in cells if cell.offered for j, held in enumerate(cell.held)]  # fmt: skip
    beyond = set()
    for i, (p, where) in enumerate(sorted(chances)):
        if p > LEVEL / (len(chances) - i):
            break
        beyond.add(where)
    return beyond


def chance(held: int, of: int) -> float:
    """How likely a count at least as far out is where the coverage is the nearer of LOW and HIGH; 1 between them."""
    below, above = stats.binom.cdf(held, of, LOW), stats.binom.sf(held - 1, of, HIGH)
    return float(min(1.0, 2 * min(below, above)))


def read() -> list[Cell]:
    """The cells that are there."""
    if not COUNTS.exists():
        return []
    with COUNTS.open(encoding="utf-8", newline="") as file:
        cells = [
            Cell(line["source"], float(line["epsilon"]), int(line["rows"]), int(line["fits"]), int(line["offered"]),
                 tuple(map(int, line["held"].split())), float(line["width"]))
            for line in csv.DictReader(file)
        ]  # fmt: skip
    order = [*FAMILIES, *REAL]
    return sorted(cells, key=lambda cell: (order.index(cell.name), cell.epsilon))


def table(cells: list[Cell]) -> str:
    """The page: what came out, then a line for each cell."""
    given, few, out = [cell for cell in cells if cell.offered], [cell for cell in cells if cell.few], outside(cells)
    slopes = sum(len(cell.held) for cell in given)
    each = [share([cell]) for cell in given if cell.offered >= ENOUGH]
    named = "; ".join(f"{name}, ε = {epsilon:g}, slope {j + 1}" for name, epsilon, j in sorted(out))
    pooled = together(cells)
    by_source = {(cell.name, j): held / cell.offered for cell in pooled for j, held in enumerate(cell.held) if held}
    beyond = [f"{name}, slope {j + 1} ({by_source[name, j]:.1%})" for name, _, j in sorted(outside(pooled))]
    lines = [
        f"Intervals were offered in {len(given)} of {len(cells)} cells, which have {slopes} slopes. By exact tests at "
        f"{LEVEL:.0%} over all of these together, {len(out)} lie outside {LOW:.0%} to {HIGH:.0%}"
        f"{': ' * bool(out)}{named}. Of 150 fits, a slope's share has a standard error of 1.8 points, of 1,000 of 0.7.",
        "",
        f"With the fits of a source at every ε together, {len(beyond)} of {len(by_source)} slopes lie outside"
        f"{': ' * bool(beyond)}{'; '.join(beyond)}.",
        "",
        f"All intervals together held {share(given):.1%}, those of a cell with {ENOUGH} such fits or more "
        f"{min(each):.1%} to {max(each):.1%}. The {len(few)} cells in which fewer than {FEW:.0%} of the fits had any "
        f"held {share(few):.1%} of {sum(cell.offered * len(cell.held) for cell in few):,}.",
        "",
        "| source | rows | ε | fits with intervals | held | least and most, by slope | width, without privacy 1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        shown = "– | – | –"
        if cell.offered:
            by_slope = [held / cell.offered for held in cell.held]
            shown = f"{share([cell]):.3f} | {min(by_slope):.3f} to {max(by_slope):.3f} | {cell.width:.1f}"
        lines.append(
            f"| {cell.name} | {cell.rows:,} | {cell.epsilon:g} | {cell.offered:,} of {cell.fits:,} | {shown} |"
        )
    return "\n".join(lines) + "\n"


def share(cells: list[Cell]) -> float:
    """Of the intervals of all slopes, those that held."""
    return sum(sum(cell.held) for cell in cells) / max(1, sum(cell.offered * len(cell.held) for cell in cells))


def main(arguments: list[str]) -> None:
    """Count what is not there yet, a line a cell, then write the page."""
    there = read()
    if arguments[:1] != ["table"]:
        done = {(cell.name, cell.epsilon) for cell in there}
        fits = int(arguments[0]) if arguments else FITS
        for name in (*FAMILIES, *REAL):
            left = [epsilon for epsilon in EPSILONS if (name, epsilon) not in done]
            for cell in cells(name, fits, left) if left else ():
                new = not COUNTS.exists()
                with COUNTS.open("a", encoding="utf-8", newline="") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    if new:
                        writer.writerow(FIELDS)
                    writer.writerow([*cell[:5], " ".join(map(str, cell.held)), f"{cell.width:.3g}"])
                print(cell, flush=True)
    COUNTS.with_suffix(".md").write_text(table(read()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
