"""Parts of the rows in use, by which a method is chosen before it is judged on the rows held out.

Of many rows it is one trial on a tenth, so that they are not spent on methods that are far from the best. A release on
n/10 rows at 10ε has the noise, beside the data, of one on n rows at ε: what is hopeless in the trial is hopeless on all
rows, but for the bias that a finite number of steps leaves, which is the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd

from dpbench import datasets
from dpbench.comparing.ranking import Field

FROM = 100_000  # rows in use from which a trial pays
SHARE = 10  # one row in so many
FOLDS = 3  # of the rows in use, by which a method is chosen where there are fewer
ERRORS = 10.0  # standard errors of the difference to the best, beyond which a method is cut
CUT = f"cut: on a tenth of the rows (at {SHARE} ε) more than {ERRORS:g} standard errors worse than the best"


def made(dataset: str, words: str, name: str, source: str | os.PathLike[str]) -> list[str]:
    """The problem of every tenth row in use of kept data, judged on the rows after them; source: the file."""
    X, y, labels, whose = _in_use(dataset)
    # A slice copies nothing, so a large table stays on the disk. Persons are counted on, not rows.
    one, other = slice(None, None, SHARE), slice(1, None, SHARE)
    use, apart = (one, other) if whose is None else (whose % SHARE == 0, _first(whose) & (whose % SHARE == 1))
    recipe = f"every {SHARE}th row of {dataset}"
    kept = datasets.keep(X[use], y[use], f"{name}-tenth", recipe, labels=labels, held_out=(X[apart], y[apart]),
                         whose=whose if whose is None else whose[use], source=source)  # fmt: skip
    return [f"{kept}:{words}"]


def folds(dataset: str, words: str, name: str, source: str | os.PathLike[str]) -> list[str]:
    """Problems on the rows in use of kept data: of each a part of them, drawn by positions, is held out."""
    X, y, labels, whose = _in_use(dataset)
    each = np.arange(len(y)) if whose is None else whose
    fold, problems = (np.random.default_rng(FOLDS).permutation(each.max() + 1) % FOLDS)[each], []
    for i in range(FOLDS):
        use, apart = fold != i, (fold == i) & _first(each)
        kept = datasets.keep(
            X[use], y[use], f"{name}-fold{i + 1}", f"fold {i + 1} of {FOLDS} of {dataset}", labels=labels,
            held_out=(X[apart], y[apart]), whose=whose if whose is None else whose[use], source=source,
        )  # fmt: skip
        problems.append(f"{kept}:{words}")
    return problems


def _in_use(dataset: str) -> tuple[np.ndarray, np.ndarray, Literal["binary", "real"], np.ndarray | None]:
    data = datasets.load(dataset)
    return data.X, data.y, datasets.labels_of(data.facts["task"]), data.whose


def _first(whose: np.ndarray) -> np.ndarray:
    """(n,) whether a row is its person's first: one is judged by, so that each person counts once."""
    return np.isin(np.arange(len(whose)), np.unique(whose, return_index=True)[1])


def hopeless(scores: Mapping[str, tuple[float, float]]) -> set[str]:
    """Of (mean loss, standard error) by method: those more than ERRORS of the difference above the best."""
    least, spread = min(scores.values(), default=(0.0, 0.0))
    return {one for one, (mean, se) in scores.items() if not mean - least <= ERRORS * float(np.hypot(se, spread))}


def cut(entered: Field, trial: pd.DataFrame, references: Mapping[str, str]) -> None:
    """Take the methods out of the field that a trial, a table of `ranking.nested`, shows to be hopeless.

    What fails there, because so few rows do not admit it, is not in the table, and stays in the field. references:
    what the field calls each method of the table.
    """
    for name in hopeless(dict(zip(trial["algorithm"], zip(trial["mean"], trial["se"], strict=True), strict=True))):
        entered.left_out[references[name]] = CUT
        entered.jobs.pop(references[name], None)
