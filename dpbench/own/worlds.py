"""Tables that a schema allows: simulated, or drawn from public or older rows of one's own.

A schema says what may be in a column, not what is. So each world draws what is unknown: where the numbers of a column
lie within their bounds and how wide, how often each category occurs, how the columns hang together, how the classes are
shared, and how much of the target the columns tell. Nothing here sees the private rows. The laws below are guesses
about tables in general; `benchmarks.plan_coverage` holds what comes of them against real ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dpbench.errors import DataError, UserError, positive
from dpbench.schema import Column, Schema, word
from dpbench.schema.encoding import Encoding, encoding_of, target_values

Generator: TypeAlias = np.random.Generator

FACTORS = 8  # common to all columns, the first the most
# Standard deviation of a number, where its bounds are -1 and 1: what is usual in a table, by the logarithm, and how far
# a column's own may be from it. Columns of one table are alike: ratings and pixels are all wide, counts all narrow.
WIDTH, APART = (0.1, 0.65), (0.1, 0.7)
# Its mean: amounts, counts and ages lie low in the range that they may have, dates late.
CENTRE, LATE = (-0.7, 0.3), (-0.3, 0.7)
COMMON = (0.1, 0.95)  # share of the variance of the columns that the factors explain
FILLED, END = (0.3, 1.0), 3.5  # how much of its bounds a long upper tail fills, up to so many standard deviations
AUC = (0.51, 0.99)  # of the best linear score, where nobody guesses it
R2 = (0.003, 0.97)
# Share of a class that nobody guesses: the least; below what the smaller of two lies, rather near 1/2 otherwise, and in
# what part of the worlds.
RAREST, RARE, RARELY = 0.01, 0.2, 0.35
GUESSED = 0.05  # how far a guessed AUC or R² may be off, and a guessed share by a quarter either way
FIRST = 2.0  # power of their spread by which the first components count more, at most, where columns vary by class
LEADING = 3  # or as many as there are classes: principal components that a part of what is to be predicted lies along
# Beside a number to predict bounds are given as somebody gives them who knows an order of size alone: widths by the
# logarithm, of the target and of a column, and most centres near the lower bound, in units of the width.
TARGET_WIDTH, COLUMN_WIDTH = (0.004, 0.45), (0.01, 0.6)
SKEWED = 0.5  # share of the columns with a long upper tail
NEAR, ABOVE, HIGHEST, ELSEWHERE = 0.75, (0.4, 7.0), 0.6, (-0.5, 0.4)
HEAVY, TAIL = 0.6, (0.3, 1.8)  # share of targets whose noise is lognormal, and σ of its logarithm
TEST = 2000  # rows that a world is scored on
FEWEST = 50  # rows of a file that worlds are drawn from
# The most of each that a table had which plans were held against (`benchmarks.plan_coverage`, `fresh_numbers`), but for
# two of 169 and 173 columns: the AUC of one was held at one ε of three.
MOST = {"columns once encoded": 107, "classes": 10, "categories in a column": 40}


class World(NamedTuple):
    """Rows of ‖x‖₂ ≤ 1 to fit (X, y) and to score on (Xt, yt); y: numbers of classes, or numbers in [-1, 1].

    best: what is predicted for Xt by whoever knows the law: (m, k) probabilities, or (m,) numbers. None where rows are
    drawn from a file, whose law nobody knows.
    """

    X: np.ndarray
    y: np.ndarray
    Xt: np.ndarray
    yt: np.ndarray
    best: np.ndarray | None


def simulated(
    schema: Schema,
    rows: int,
    rng: Generator,
    *,
    shares: Mapping[str, float],
    signal: float | None,
    test: int = TEST,
    encoding: Encoding | None = None,
) -> World:
    """A world of the schema. shares: of the classes, those that somebody guesses; signal: AUC or R² of the best score.

    encoding: what makes rows; None: the schema's, with an intercept.

    >>> from dpbench.schema import Column, Schema, Target
    >>> schema = Schema(target=Target(name="y", bounds=(0, 1)), columns={"a": Column(bounds=(0, 9))})
    >>> simulated(schema, 100, np.random.default_rng(0), shares={}, signal=0.5).X.shape
    (100, 2)
    """
    # Two streams: a world of more rows has the same law, so that a needed n compares like with like.
    law, cells = rng.spawn(2)  # one law for worlds of any number of rows
    table = cells_of(schema, rows + test, law, cells, guessed=schema.target.classes is None)
    encoding = encoding or encoding_of(schema, intercept=True)
    X = encoding.rows(table)
    if schema.target.classes is None:
        y, best = _numbers(X, law, cells, _drawn(signal, R2, R2[0], law))
    else:
        split = _shares(tuple(map(word, schema.target.classes)), shares, law)
        y, best = _classes(X, law, cells, _drawn(signal, AUC, AUC[0], law), split)
    fitted = encoding.rows(table.iloc[test:], fitting=True)  # rows that the schema drops are zeros in a fit alone
    return World(fitted, y[test:], X[:test], y[:test], best[:test])


def _drawn(guess: float | None, law: tuple[float, float], least: float, rng: Generator) -> float:
    """An AUC or R²: near the guess, or by its law, rather near one of the law's ends: the arcsine law."""
    low, high = law if guess is None else (guess - GUESSED, guess + GUESSED)
    part = rng.uniform()
    # Columns say little of opinions and counts, nearly all of what follows from them: few tables lie between.
    part = np.sin(np.pi * part / 2) ** 2 if guess is None else part
    return float(np.clip(low + (high - low) * part, least, 0.995))


class Like(NamedTuple):
    """Public rows: X (n, d) as a fit takes them, rows without a label or dropped being zeros; Xt: as they are scored.

    labelled: (n,) of bool, the rows that can be scored on.
    """

    X: np.ndarray
    Xt: np.ndarray
    y: np.ndarray
    labelled: np.ndarray


def from_rows(like: Like, rows: int, rng: Generator) -> World:
    """A world drawn from public rows: a third of them, chosen at random, is scored on, the others are drawn again."""
    order = rng.permutation(len(like.y))
    # Apart before any row is drawn twice: nothing that a model saw is scored on.
    held, kept = order[: len(like.y) // 3], order[len(like.y) // 3 :]
    drawn = kept[:rows] if rows <= len(kept) else rng.choice(kept, rows)
    held = held[like.labelled[held]]
    return World(like.X[drawn], like.y[drawn], like.Xt[held], like.y[held], None)


def rows_of(schema: Schema, frame: pd.DataFrame, name: str, *, intercept: bool = True) -> Like:
    """The rows of a public table that has the schema's columns; UserError or DataError where it is none."""
    target = schema.target
    if target.name not in frame.columns:
        raise DataError(f"{name}: there is no column {target.name!r}, the schema's target")
    y, known = target_values(target, frame[target.name])
    if known.sum() < FEWEST:
        raise DataError(f"{name}: {known.sum()} rows have a target; {FEWEST} at least are needed")
    encoding = encoding_of(schema, intercept=intercept)
    X = encoding.rows(frame, fitting=True)
    X[~known] = 0.0
    return Like(X, encoding.rows(frame), y, known)


def outside(schema: Schema) -> str:
    """Why no simulated table was ever held against a real one of such a schema; "" where some were."""
    columns = schema.columns.values()
    sizes = (
        len(encoding_of(schema, intercept=True).names),
        len(schema.target.classes or ()),
        max((len(one.categories or ()) for one in columns), default=0),
    )
    whys = [f"{size} {what} (at most {most})" for size, (what, most) in zip(sizes, MOST.items(), strict=True)
            if size > most]  # fmt: skip
    whys += ["dates"] * any(one.date is not None for one in columns)
    whys += ["several rows of a person"] * bool(schema.unit)
    return f"simulated tables were never held against real ones with {' or '.join(whys)}" if whys else ""


# Columns


def cells_of(schema: Schema, rows: int, law: Generator, rng: Generator, *, guessed: bool = False) -> pd.DataFrame:
    """Cells, as text or numbers, of all columns that are used; law: draws what they have in common, rng: the rows.

    guessed: whether bounds may be far too wide (`COLUMN_WIDTH`).
    """
    factors = rng.standard_normal((rows, FACTORS))
    sizes = law.uniform(0.3, 1.0) ** np.arange(FACTORS)
    alike = TableLaw(factors, sizes, law.uniform(*COMMON))
    if not guessed:
        width = float(np.log(_by_logarithm(WIDTH, law)))
        alike = TableLaw(*alike[:3], width, law.uniform(*APART), law.uniform(), law.uniform(*TAIL))
    used = {name: column for name, column in schema.columns.items() if not column.drop}
    return pd.DataFrame({name: _cells(column, alike, law, rng, guessed) for name, column in used.items()})


class TableLaw(NamedTuple):
    """What the columns of one table have in common.

    factors: (rows, FACTORS). sizes: (FACTORS,), how much each says. common: the share of a column's variance that they
    explain. width: the mean of the logarithm of their
    standard deviations, where bounds are -1 and 1; apart: its deviation. skewed: the share with a long upper tail,
    tail: σ of its logarithm.
    """

    factors: np.ndarray
    sizes: np.ndarray
    common: float
    width: float = math.log(0.3)
    apart: float = 0.5
    skewed: float = 0.5
    tail: float = 1.0


def _cells(column: Column, alike: TableLaw, law: Generator, rng: Generator, guessed: bool) -> Any:
    """The cells of a column."""
    factors, sizes, rows = alike.factors, alike.sizes, len(alike.factors)
    common = law.beta(4 * alike.common, 4 * (1 - alike.common))

    def latent() -> np.ndarray:
        """(rows,) of mean 0 and variance 1, of which the factors explain a share."""
        loads = sizes * law.standard_normal(FACTORS)
        loads *= np.sqrt(common) / np.linalg.norm(loads)
        return factors @ loads + np.sqrt(1 - common) * rng.standard_normal(rows)

    if column.bounds is not None:
        z = latent()
        if guessed:
            width = _by_logarithm(COLUMN_WIDTH, law)
            z = _centre(width, law) + width * (_skewed(z, law, 1.0) if law.random() < SKEWED else z)
        else:
            z = _spread(z, law, CENTRE, alike)
        cells: Any = _from_unit(z, column.bounds)
    elif column.date is not None:
        low, high = column.years or (2000, 2020)
        first, last = np.datetime64(f"{low:04d}-01-01"), np.datetime64(f"{high:04d}-12-31")
        # A long upper tail begins at the lower bound, which is early.
        spread = _spread(latent(), law, LATE, alike._replace(skewed=0.0))
        days = _from_unit(spread, (0, (last - first).astype(int)))
        hours = rng.integers(0, 24, rows)
        times = first + days.astype("timedelta64[D]") + hours.astype("timedelta64[h]")
        cells = pd.Series(np.datetime_as_string(times, unit="s")).astype(object)
    else:
        assert column.categories is not None
        k = len(column.categories)
        shares = law.dirichlet(np.ones(k))
        pull = 2 * np.sqrt(common) * factors @ (sizes[:, None] * law.standard_normal((FACTORS, k)))
        codes = (np.log(shares + 1e-9) + pull + rng.gumbel(size=(rows, k))).argmax(axis=1)
        cells = pd.Series(np.array(column.categories, dtype=object)[codes])
    if column.missing != "middle":
        cells = pd.Series(cells).mask(rng.random(rows) < law.beta(1, 10))
    return cells


def _spread(z: np.ndarray, law: Generator, centre: tuple[float, float], alike: TableLaw) -> np.ndarray:
    """`z`, of mean 0 and variance 1, at a drawn place and width, maybe with a long upper tail."""
    if law.random() < alike.skewed:
        # Bounds reach to the far end of the tail, so a column is the narrower the longer that is.
        sigma = alike.tail * law.uniform(0.5, 1.5)
        return -1 + 2 * _by_logarithm(FILLED, law) * np.exp(sigma * (z - END))
    return law.uniform(*centre) + np.exp(alike.width + alike.apart * law.standard_normal()) * z


def _skewed(z: np.ndarray, law: Generator, most: float) -> np.ndarray:
    """A normal `z` as a lognormal of mean 0 and variance 1; most: of the σ that is drawn."""
    heavy = np.exp(law.uniform(TAIL[0], most) * z)
    return np.asarray((heavy - heavy.mean()) / heavy.std())


def _by_logarithm(law: tuple[float, float], rng: Generator) -> float:
    return float(np.exp(rng.uniform(*np.log(law))))


def _centre(width: float, law: Generator) -> float:
    """Of a column or target of that width: most are near the lower bound."""
    if law.random() < NEAR:
        return min(-1 + width * _by_logarithm(ABOVE, law), HIGHEST)
    return float(law.uniform(*ELSEWHERE))


def _from_unit(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """From [-1, 1] to the bounds; what lies beyond is at their ends."""
    low, high = bounds
    # Halves first: the sum of two large bounds would overflow.
    return low / 2 + high / 2 + np.clip(values, -1, 1) * (high / 2 - low / 2)


# Targets


def _score(X: np.ndarray, law: Generator, outputs: int, told: float = 0.0) -> np.ndarray:
    """(n, outputs) linear scores of variance 1: a part along what varies most, a part along any half of the columns.

    How much along either is drawn. What varies most is what a private method learns at the least cost. told: 2 AUC - 1
    of classes, which are the more likely to be what columns vary by, the more these tell of them; 0 of numbers.
    """
    leading = min(1.0, law.uniform(0, 1.4) ** 0.5)  # of three worlds, one has nothing else
    count, even = max(LEADING, outputs), 1.0
    if told and law.random() < told**2:
        leading, even = 1.0, -law.uniform(0, FIRST)
    elif told and law.random() < 0.5:
        count = X.shape[1]  # columns that say nearly the same twice may tell by how they differ
    single = _along_columns(X, law, outputs)
    few = X[:4000] - X[:4000].mean(axis=0)
    _, vectors = np.linalg.eigh(few.T @ few)
    # An eigenvector's sign is the library's choice; a world must be the same on every machine.
    vectors *= np.where(vectors.sum(axis=0) < 0, -1, 1)
    components = (X - X.mean(axis=0)) @ vectors[:, ::-1][:, :count]
    components /= np.maximum(components.std(axis=0), 1e-12) ** (even * law.uniform())  # how much more the first count
    scores = components @ law.standard_normal((components.shape[1], outputs))
    scores = leading * scores / np.maximum(scores.std(axis=0), 1e-12) + np.sqrt(1 - leading**2) * single
    return scores / np.maximum(scores.std(axis=0), 1e-12)


def _along_columns(X: np.ndarray, law: Generator, outputs: int) -> np.ndarray:
    """(n, outputs) scores of variance 1: half of the columns count, each by how much is drawn."""
    spread = X.std(axis=0)
    there = np.flatnonzero(spread > 1e-9)
    if not len(there):
        return np.zeros((len(X), outputs))
    weights = law.standard_normal((len(there), outputs)) * (law.random((len(there), 1)) < 0.5)
    if not weights.any():
        weights[law.integers(len(there))] = 1.0
    scores = (X[:, there] - X[:, there].mean(axis=0)) / spread[there] @ weights
    return scores / np.maximum(scores.std(axis=0), 1e-12)


def _numbers(X: np.ndarray, law: Generator, rng: Generator, r2: float) -> tuple[np.ndarray, np.ndarray]:
    """(y in [-1, 1], the best prediction)."""
    told = np.sqrt(r2) * _score(X, law, 1)[:, 0]
    width = _by_logarithm(TARGET_WIDTH, law)
    centre = _centre(width, law)
    if law.random() < HEAVY:
        noise = _skewed(rng.standard_normal(len(X)), law, TAIL[1])
    else:  # six degrees of freedom, over their standard deviation: tails as residuals of tables have them
        noise = rng.standard_t(6, len(X)) / np.sqrt(1.5)
    y = centre + width * (told + np.sqrt(1 - r2) * noise)
    return np.clip(y, -1, 1), np.clip(centre + width * told, -1, 1)


def _classes(
    X: np.ndarray, law: Generator, rng: Generator, auc: float, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(classes (n,), their probabilities (n, k)): of a score so steep that it ranks the classes with that AUC."""
    k = len(shares)
    scores = _score(X, law, 1, 2 * auc - 1) * [[0.0, 1.0]] if k == 2 else _score(X, law, k, 2 * auc - 1)
    luck = rng.gumbel(size=scores.shape)
    few = scores[:4000]
    by_class = np.ascontiguousarray(few.T)  # a line each, which is far quicker to go through

    def intercepts(steepness: float) -> np.ndarray:
        """(k,) such that the classes have their shares, by fixed-point steps."""
        start, steep = np.log(shares), steepness * by_class
        for _ in range(30):
            start = start + np.log(shares / np.maximum(_softmax(steep + start[:, None], axis=0).mean(axis=1), 1e-9))
        return start

    # The AUC rises with the steepness, so bisection finds the one that was drawn.
    low, high = 0.0, 64.0
    for _ in range(12):
        steepness = (low + high) / 2
        logits = steepness * few + intercepts(steepness)
        auc_at = mean_auc((logits + luck[: len(few)]).argmax(axis=1), _softmax(logits))
        low, high = (steepness, high) if auc_at < auc else (low, steepness)
    logits = high * scores + intercepts(high)
    return (logits + luck).argmax(axis=1), _softmax(logits)


def _softmax(logits: np.ndarray, axis: int = 1) -> np.ndarray:
    p = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return p / p.sum(axis=axis, keepdims=True)


def mean_auc(y: np.ndarray, p: np.ndarray) -> float:
    """AUC of each class against the rest by its column of `p`, and their mean; of the second of two alone; else NaN."""
    from scipy.stats import rankdata

    areas = []
    for i in range(1, 2) if p.shape[1] == 2 else range(p.shape[1]):
        hit = y == i
        # A class that no row, or every row, has cannot be ranked.
        if 0 < (count := int(hit.sum())) < len(y):
            above = rankdata(p[:, i])[hit].sum() - count * (count + 1) / 2
            areas.append(above / (count * (len(y) - count)))
    return float(np.mean(areas)) if areas else np.nan


def _shares(classes: tuple[str, ...], given: Mapping[str, float], rng: Generator) -> np.ndarray:
    """(k,) shares of the classes: those given, and a random split of the rest; of two, one is often rare."""
    if len(classes) == 2 and not given:
        # Fraud, faults and illness are rare; opinions, sexes and choices are nearly even.
        even = 0.5 - (0.5 - RARE) * rng.uniform() ** 1.5
        rare = _by_logarithm((RAREST, RARE), rng) if rng.random() < RARELY else even
        return np.array([rare, 1 - rare])[:: rng.choice([-1, 1])]
    given = {label: share * np.exp(rng.uniform(-0.25, 0.25)) for label, share in given.items()}
    free = [label for label in classes if label not in given]
    left = max(1 - sum(given.values()), 1e-3)
    if not free:
        return np.array([given[label] for label in classes]) / sum(given.values())
    split = rng.dirichlet(np.full(len(free), 2.0))
    by_label = dict(given) | {label: left * part for label, part in zip(free, split, strict=True)}
    shares = np.maximum([by_label[label] for label in classes], RAREST if not given else 1e-4)
    return shares / shares.sum()


def check_guesses(schema: Schema, shares: Mapping[str, float], signal: float | None) -> None:
    """UserError, in one line, for guesses that no world can have."""
    classes = None if schema.target.classes is None else [*map(word, schema.target.classes)]
    if shares and classes is None:
        raise UserError("share: the schema's target is a number, which has no classes")
    if not isinstance(shares, Mapping):
        raise UserError(f"share must be {{class: share}}, got {shares!r}")
    for label, share in shares.items():
        if label not in (classes or ()):
            raise UserError(f"share: there is no class {label!r}; the schema has {', '.join(classes or ())}")
        if not 0 < positive(f"share: {label}", share) < 1:
            raise UserError(f"share: {label} must be between 0 and 1, got {share:g}")
    total = sum(shares.values())
    if shares and (total > 1 + 1e-6 or (len(shares) == len(classes or ()) and total < 1 - 1e-6)):
        raise UserError(f"share: the shares add up to {total:g}, where all classes together have 1")
    if signal is not None:
        low, name = (0.0, "R²") if classes is None else (0.5, "AUC")
        if not low < positive("signal", signal) < 1:
            raise UserError(f"signal: the {name} without privacy must be between {low:g} and 1, got {signal:g}")
