"""The code that a comparison prints: it fits one model by the best method, and claims no guarantee that it lacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import DELTA, RELATION
from dpbench.comparing import ranking
from dpbench.leaderboard import entrants
from dpbench.run.row import BUILT_IN, settings_of

ESTIMATORS = {"logistic": "PrivateClassifier", "squared": "PrivateRegressor"}


class Source(NamedTuple):
    """Where rows come from: the file, its target, and its schema or the schema's file; None drafted one."""

    data: str
    target: str | None
    schema: Any

    @property
    def file(self) -> str:
        """The schema's file, or what it may be called."""
        named = isinstance(self.schema, str | os.PathLike)
        return os.fspath(self.schema) if named else f"{self.stem}.toml"

    @property
    def stem(self) -> str:
        """The name of the file without what says its kind."""
        return Path(self.data).name.partition(".")[0]

    @property
    def lines(self) -> list[str]:
        """Python that reads the table."""
        drafted = f"dpbench schema {self.data} --target {self.target} --out {self.file}"
        first = [f"# First: {drafted}, and decide what is public in it."] if self.schema is None else []
        return ["import dpbench", "", *first, f"table = dpbench.read_table({self.data!r}, {self.file!r})"]


def arguments(row: ranking.Ranked, reference: str) -> dict[str, Any]:
    """The arguments of `dpbench.fit` behind the data that repeat a row of the table; `reference`: the method's name."""
    method, fixed = algorithms.resolve(reference)
    defaults, tried = make_settings(method, fixed), entrants.candidates(reference, "full")
    settings = {
        name: value
        for name, value in settings_of(row.settings).items()
        if name not in fixed and (value != getattr(defaults, name) or (name in tried and value is not None))
    }
    delta = 0.0 if row.delta == 0 else DELTA
    named = {"algorithm": reference, "epsilon": row.epsilon, "delta": delta, "relation": RELATION.value}
    return named | {"accounting": row.accounting} | settings


def of(
    source: Source, row: ranking.Ranked, reference: str, *, loss: str, weights: dict[str, float], served: bool = False
) -> str:
    """Python that fits one model on all rows by the row's method and settings, as they were ranked.

    By the estimators, which save the model, wherever they take the problem; else by `dpbench.fit`. served: of a method
    that is not built in, whether it runs where no rows are, as the estimators run it.
    """
    given, trusted = arguments(row, reference) | weights, row.code != BUILT_IN and not served
    # An estimator saves its model with a statement; `dpbench.fit` takes what no estimator does.
    if loss in ESTIMATORS and weights.keys() <= {"l2"} and not trusted:
        named = ("algorithm", "epsilon", "delta", "relation", "accounting", "l2")
        settings = {name: value for name, value in given.items() if name not in named}
        words = [f"{row.epsilon!r}", f"schema={source.file!r}", f"algorithm={reference!r}"]
        words += [f"settings={settings!r}"] * bool(settings)
        # Whatever an estimator would add of its own is switched off, or the code fits another model.
        words += [f"l2={weights.get('l2', 0.0)!r}", "row_bound=None"]  # as they were compared; the defaults are others
        begin = f"model = dpbench.{ESTIMATORS[loss]}("
        end = [").fit(table)", f"model.save({source.stem + '.json'!r})", "print(model.guarantee_)"]
    else:
        given |= {"loss": loss} if loss != "logistic" else {}
        words = ["table", f"schema={source.file!r}", "row_bound=None"]
        words += [f"{name}={value!r}" for name, value in given.items()] + ["trusted=True"] * trusted
        begin, end = "fit = dpbench.fit(", [")", "print(fit.w, fit.guarantee)"]
    where = "beside the rows, as it works on them" if trusted else "in a process without the rows"
    foreign = [f"# {row.algorithm} is foreign code: this runs it {where}."] * (row.code != BUILT_IN)
    return "\n".join([*source.lines, *foreign, begin, *(f"    {word}," for word in words), *end, ""])
