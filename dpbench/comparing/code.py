"""The code that a comparison prints: it fits one model by the best method, and claims no guarantee that it lacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.defaults import DELTA, RELATION
from dpbench.comparing import ranking
from dpbench.leaderboard import entrants, tracks
from dpbench.run.row import settings_of

ESTIMATORS = {"logistic": "PrivateClassifier", "squared": "PrivateRegressor"}


class Source(NamedTuple):
    """Where rows come from: file, target, schema (or None), the call that reads them without one, what that took."""

    data: str
    target: str | None
    schema: Any
    call: str
    taken: tuple[str, ...]

    @property
    def named(self) -> bool:
        """Whether its columns have names: an svmlight file has none."""
        return self.target is not None or self.schema is not None


def arguments(row: ranking.Ranked, reference: str) -> dict[str, Any]:
    """The arguments of `dpbench.fit` behind the data that repeat a row of the table; `reference`: the method's name."""
    method, fixed = algorithms.resolve(reference)
    defaults, tried = make_settings(method, fixed), entrants.candidates(reference, "full")
    values, run = settings_of(row.settings), reference
    if ranking.searched(values):
        run, settings = tracks.PRIVATE, {name: values[name] for name in ("method", "candidates")}
    else:
        settings = {
            name: value
            for name, value in values.items()
            if name not in fixed and (value != getattr(defaults, name) or (name in tried and value is not None))
        }
    delta = 0.0 if row.delta == 0 else DELTA
    named = {"algorithm": run, "epsilon": row.epsilon, "delta": delta, "relation": RELATION.value}
    return named | {"accounting": row.accounting} | settings


def of(source: Source, row: ranking.Ranked, reference: str, *, loss: str, weights: dict[str, float]) -> str:
    """Python that fits one model on all rows by the row's method and settings, and saves it.

    By the estimators and a public schema wherever they take the problem; else by `dpbench.fit`, with a line for
    everything that was taken from the data.
    """
    given = arguments(row, reference)
    searched = given["algorithm"] == tracks.PRIVATE
    if loss in ESTIMATORS and weights.keys() <= {"l2"} and source.named and not searched:
        return _by_estimator(source, given, ESTIMATORS[loss], weights)
    return _by_fit(source, given | ({"loss": loss} if loss != "logistic" else {}) | weights)


def _by_estimator(source: Source, given: dict[str, Any], estimator: str, weights: dict[str, float]) -> str:
    stem = Path(source.data).name.partition(".")[0]
    schema = os.fspath(source.schema) if isinstance(source.schema, str | os.PathLike) else f"{stem}.toml"
    named = ("algorithm", "epsilon", "delta", "relation", "accounting")
    settings = {name: value for name, value in given.items() if name not in named}
    words = [f"{given['epsilon']!r}", f"schema={schema!r}", f"algorithm={given['algorithm']!r}"]
    words += [f"settings={settings!r}"] * bool(settings) + [f"{name}={weight!r}" for name, weight in weights.items()]
    words.append("row_bound=None")  # rows as they were compared
    draft = f"dpbench schema {source.data} --target {source.target} --out {schema}"
    first = f"# First: {draft}, and decide what is public in it."
    return "\n".join(
        [
            "import dpbench",
            "",
            *([first] if source.schema is None else []),
            f"table = dpbench.read_table({source.data!r}, {schema!r})",
            f"model = dpbench.{estimator}(",
            *(f"    {word}," for word in words),
            ").fit(table)",
            f"model.save({stem + '.json'!r})",
            "print(model.guarantee_)",
            "",
        ]
    )


def _by_fit(source: Source, given: dict[str, Any]) -> str:
    taken = ["# Not covered by the guarantee below:", *(f"# - {line}" for line in source.taken)] if source.taken else []
    lines = ["import dpbench", "from dpbench.datasets import tables", "", *taken]
    lines += [f"table = {source.call}", "fit = dpbench.fit("]
    lines += ["    table.X,", "    table.y,", *(f"    {name}={value!r}," for name, value in given.items())]
    return "\n".join([*lines, ")", "print(fit.w, fit.guarantee)", ""])
