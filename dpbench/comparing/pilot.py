"""A trial on a tenth of the rows, so that large data are not spent on methods and settings that are far from the best.

A release on n/10 rows at 10ε has the noise, beside the data, of one on n rows at ε: what is hopeless in the trial is
hopeless on all rows, but for the bias that a finite number of steps leaves, which is the same.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from dpbench import datasets
from dpbench.comparing.ranking import Field, held_loss
from dpbench.run import outcomes

if TYPE_CHECKING:
    from dpbench.run.job import Job
    from dpbench.run.store import Store

FROM = 100_000  # rows in use from which a trial pays
SHARE = 10  # one row in so many
FOLDS = 3  # of the rows in use, by which a method is chosen where there are fewer
ERRORS = 10.0  # standard errors of the difference to the best, beyond which a setting is cut
CUT = f"cut: on a tenth of the rows (at {SHARE} ε) more than {ERRORS:g} standard errors worse than the best"


def made(dataset: str, words: str, name: str, source: str | os.PathLike[str]) -> str:
    """The problem of every tenth row in use of kept data, judged on the rows after them; source: the file."""
    X, y, labels = _in_use(dataset)
    held_out = X[1::SHARE], y[1::SHARE]  # none that the ranking is judged on
    recipe = f"every {SHARE}th row of {dataset}"
    kept = datasets.keep(X[::SHARE], y[::SHARE], f"{name}-tenth", recipe, labels=labels, held_out=held_out,
                         source=source)  # fmt: skip
    return f"{kept}:{words}"


def folds(dataset: str, words: str, name: str, source: str | os.PathLike[str]) -> list[str]:
    """Problems on the rows in use of kept data: of each a part of them, drawn by positions, is held out."""
    X, y, labels = _in_use(dataset)
    fold, found = np.random.default_rng(FOLDS).permutation(len(y)) % FOLDS, []
    for i in range(FOLDS):
        kept = datasets.keep(
            X[fold != i], y[fold != i], f"{name}-fold{i + 1}", f"fold {i + 1} of {FOLDS} of {dataset}",
            labels=labels, held_out=(X[fold == i], y[fold == i]), source=source,
        )  # fmt: skip
        found.append(f"{kept}:{words}")
    return found


def _in_use(dataset: str) -> tuple[np.ndarray, np.ndarray, Literal["binary", "real"]]:
    data = datasets.load(dataset)
    return data.X, data.y, datasets.labels_of(data.facts["task"])


def hopeless(scores: Mapping[tuple[str, str], tuple[float, float]]) -> set[tuple[str, str]]:
    """Of (mean loss, standard error) by (method, settings): those more than ERRORS of the difference above the best."""
    least, spread = min(scores.values())
    return {one for one, (mean, se) in scores.items() if not mean - least <= ERRORS * float(np.hypot(se, spread))}


def cut(entered: Field, problem: str, epsilon: float, store: Store, run: Callable[[list[Job]], object]) -> None:
    """Take out of the field what a trial on `problem` shows to be hopeless; a method with nothing left is left out.

    What fails there, because so few rows do not admit it, stays in.
    """
    trial: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for name, jobs in entered.jobs.items():
        for job in jobs:
            trial[name, job.settings].append(msgspec.structs.replace(job, problem=problem, epsilon=SHARE * epsilon))
    todo = [job for jobs in trial.values() for job in jobs]
    run(todo)
    rows = store.runs().set_index("key")
    scores = {}
    for one, jobs in trial.items():
        ended = rows.loc[[job.key for job in jobs if job.key in rows.index]]
        # A trial that did not end says nothing of all rows, so the setting stays.
        if len(ended) and outcomes.has_result(ended["status"]).all():
            scores[one] = held_loss(ended)
    if not scores:
        return
    lost = hopeless(scores)
    for name, jobs in list(entered.jobs.items()):
        kept = [job for job in jobs if (name, job.settings) not in lost]
        if kept:
            entered.jobs[name] = kept
        else:
            del entered.jobs[name]
            entered.left_out[name] = CUT
