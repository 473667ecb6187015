"""From a file of rows to rankings, a recommendation and the code that fits one model; how what it keeps is removed.

The code claims no guarantee that it lacks.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbench import algorithms, datasets, files
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import DELTA, RELATION
from dpbench.comparing import pilot, ranking, rows
from dpbench.comparing.ranking import Ranked
from dpbench.comparing.references import Reference, references
from dpbench.datasets import cache as data_cache
from dpbench.datasets import own
from dpbench.errors import DataError, UserError, at_least, positive, several, silent
from dpbench.leaderboard import entrants
from dpbench.problems import build, losses, regularisers
from dpbench.run import runner
from dpbench.run.job import make_job
from dpbench.run.row import BUILT_IN, settings_of
from dpbench.run.store import Store
from dpbench.study.overview import counts_as_public

if TYPE_CHECKING:
    from dpbench.schema import Schema

RECIPE = "by its schema"
FEWEST = 100  # rows: with fewer, the standard errors of what is held out are as large as any difference
RARE = 0.1  # share of the rows below which a class is rare
FEWEST_HELD = 5  # rows of each class, held out
UNFIT = ("sigmoid", "phase")  # losses of the papers that are least where <x, w> does not tell the label
ESTIMATORS = {"logistic": "PrivateClassifier", "squared": "PrivateRegressor"}


@dataclass(frozen=True)
class Comparison:
    """What `dpbench.compare` returns.

    rankings: one for each ε, in this order; the first decides the snippet and the recommendation.
    task: "binary" or "regression". warnings: what used the data on the way. notes: what else there is to say.
    references: what private methods are set against. rows, held: how many rows are in use, and held out. unit: of the
    target, see `rows.OwnTable`. rare: the smaller share of the two classes in use, 1 for numbers.
    snippet: code that fits one model by the best method on all rows; "" when none is of
    use. recommendation: sentences. price: what the privacy of these runs does not cover.
    """

    rankings: list[ranking.Ranking]
    task: str
    warnings: list[str]
    notes: list[str]
    references: list[Reference]
    rows: int
    held: int
    unit: float
    rare: float
    snippet: str
    recommendation: list[str]
    price: str = ranking.PRICE

    @property
    def ranking(self) -> ranking.Ranking:
        """The first of the rankings."""
        return self.rankings[0]

    @property
    def counts_public(self) -> list[str]:
        """One line for each thing, beside n, that the methods took from the data and count as public."""
        return counts_as_public(self.ranking.table)

    def scores(self, line: Ranked | Reference) -> dict[str, tuple[float, float]]:
        """What a row of a ranking, or a reference, reached on the rows held out: name → (mean, spread or NaN).

        The spread is the standard deviation of one fit's score on other rows of the kind: noise, and the rows' draw.

        The log loss, accuracy and AUC of a binary target, and where a class has less than a tenth of the rows balanced
        accuracy, average precision of that class and expected calibration error; of numbers the RMSE, in the target's
        own unit, and R².
        """
        if self.task == "binary":
            found = {"log loss": (line.mean, line.spread), "accuracy": line.accuracy, "AUC": line.auc}
            if self.rare < RARE:
                found |= {"bal. acc.": line.balanced, "avg. prec.": line.precision, "calib. err.": line.calibration}
            return {name: one if isinstance(one, tuple) else (one, np.nan) for name, one in found.items()}
        rmse = (2 * line.mean) ** 0.5  # `mean` is of (y - z)²/2
        spread = line.spread / rmse if rmse else line.spread
        return {"RMSE": (rmse * self.unit, spread * self.unit), "R²": (line.gain, line.gain_spread)}


def compare(
    data: str | os.PathLike[str],
    target: str | None = None,
    *,
    epsilon: float | Iterable[float] = 1.0,
    loss: str | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    schema: str | os.PathLike[str] | Schema | None = None,
    extra: Iterable[str] = (),
    holdout: float = 0.2,
    precision: str = "float64",
    seeds: int = 5,
    results: str | os.PathLike[str] = "results",
    cache: bool = True,
    jobs: int | None = None,
    reading: Callable[[str, float], None] = silent,
    progress: Callable[[runner.Progress], None] = silent,
    notify: Callable[[str], None] = silent,
) -> Comparison:
    """Judge every private method that fits on rows of your own that it has not seen.

    Models are set against the majority class (or the mean), the start and the optimum without privacy. A method is
    chosen by folds of the rows in use, and scored on the rows held out; when it is not better there than the first by
    two standard errors, the recommendation is not to use any. The scores are exact, so they are not private, and nor
    is the choice made by them.

    Args:
        data: a csv, tsv or parquet file.
        target: the column to predict; None for the schema's.
        epsilon: the budget ε > 0 of every run, one or several, at δ = n⁻², for replace-one neighbours.
        loss: None takes logistic for two classes and squared for numbers. l1, l2: weights of ‖w‖₁ and ‖w‖²/2.
        schema: what is public of the table (`dpbench.schema`), or its TOML file. None drafts one, with a warning: what
            it finds in the data is then taken for public.
        extra: further methods, names or "file.py:Class".
        holdout: the share of rows kept apart to judge by, in (0, 0.5], chosen by their positions; with a unit, of
            persons, with one row of each.
        precision: "float64" or "float32", in which the rows are kept and multiplied; sums are float64 in both.
        seeds: replicates of each.
        results, jobs: as of `run_algorithm`; the runs go to `results/adhoc/compare-DATA`.
        cache: keep the prepared rows, which nobody but the user may read, and the runs, so that the next call makes
            none of them again; `forget` removes both. False keeps them in a folder of this call, gone at the end.
        reading: called with what is being done and the share of it while the file is read.
        progress, notify: as of `run_algorithm`.

    Raises:
        UserError, DataError: in one line that names the argument or column.
    """
    epsilons = _checked(several(epsilon), holdout, seeds, jobs)
    weights = {name: weight for name, weight in (("l1", l1), ("l2", l2)) if weight}
    if loss in UNFIT:
        raise UserError(f"loss: {loss} has no held-out score; compare takes logistic, squared or ramp")
    regularisers.make(**weights)
    # All that needs no data is refused before minutes of reading.
    references_of = ranking.entering(extra)  # a name that is none is told before the data are read
    task = None if loss is None else "binary" if losses.get(loss).binary else "regression"
    table = rows.read(data, target, schema, task=task, holdout=holdout, precision=precision, progress=reading)
    _check_size(data, table)
    for line in (*(f"warning: not private: {one}" for one in table.warnings), *(f"note: {one}" for one in table.notes)):
        notify(line)
    loss = loss or ("logistic" if table.task == "binary" else "squared")
    words, name = ",".join([loss, *(f"{key}={weight!r}" for key, weight in weights.items())]), own.stem_of(data)
    with nullcontext(results) if cache else data_cache.own_place() as place:
        dataset = own.keep(table.X, table.y, name, RECIPE, labels=datasets.labels_of(table.task),
                           held_out=table.held_out, whose=table.whose, source=data)  # fmt: skip
        of = "" if table.whose is None else f" of {len(np.unique(table.whose)):,} persons"
        shape = f"{table.X.shape[0]:,} rows{of} in use, {table.X.shape[1]:,} columns"
        notify(f"{dataset}: {shape}, {words}; {RECIPE}")
        if cache:
            notify(
                f"prepared rows, kept for the next call and readable by you alone: {own.folder_of(dataset)}; "
                f"dpbench compare --data {shlex.quote(os.fspath(data))} --forget removes them"
            )
        # Runs are kept apart from those of papers: their scores are of somebody's rows.
        store = Store(place, "adhoc", results_of(dataset, place).name)
        files.private_folder(store.folder)  # its scores are exact
        run = partial(runner.run, store=store, workers=jobs, report=progress)
        trial = table.X.shape[0] >= pilot.FROM
        parts = (pilot.made if trial else pilot.folds)(dataset, words, name, data)
        inner = _Inner(parts, pilot.SHARE if trial else 1, seeds if trial else -(-seeds // len(parts)), trial)
        problem = f"{dataset}:{words}"
        ranked = [_ranked(problem, each, inner, references_of, seeds, store, run) for each in epsilons]
        lines = references(build(problem), datasets.load(dataset), table.classes)
        snippet = _snippet(ranked[0], problem, Source(os.fspath(data), target, schema), loss, weights, run)
    return Comparison(
        ranked, table.task, table.warnings, table.notes, lines, rows=len(table.y), held=len(table.held_out[1]),
        unit=table.unit, snippet=snippet,
        rare=1.0 if table.classes is None else float(min(np.mean(table.y > 0), np.mean(table.y <= 0))),
        recommendation=[line for one in ranked for line in ranking.recommendation(one, lines[0].name)],
    )  # fmt: skip


class _Inner(NamedTuple):
    """Where methods are chosen: problems of the rows in use, share of ε, seeds; whether a trial cuts some."""

    problems: list[str]
    share: float
    seeds: int
    trial: bool


def _ranked(
    problem: str, epsilon: float, inner: _Inner, references_of: dict[str, str], seeds: int, store: Store,
    run: ranking.RunJobs,
) -> ranking.Ranking:  # fmt: skip
    """The ranking at one ε: methods are chosen on the rows in use, and judged on those held out."""
    entered, tables = ranking.field_of(problem, epsilon, references_of.values(), seeds), []
    for part in inner.problems:
        there = ranking.field_of(part, inner.share * epsilon, list(entered.jobs), inner.seeds)
        tables.append(ranking.rank(there, epsilon, references_of, store, run).table)
    seen = ranking.nested(tables)
    if inner.trial:  # methods that it shows to be hopeless are not run on all rows
        pilot.cut(entered, seen, references_of)
    return replace(ranking.rank(entered, epsilon, references_of, store, run), inner=seen)


def _snippet(
    ranked: ranking.Ranking, problem: str, source: Source, loss: str, weights: dict[str, float], run: ranking.RunJobs
) -> str:
    """Code that fits one model by the best method; "" where none is of use."""
    best = ranked.best
    if best is None or best.algorithm not in ranked.useful:
        return ""
    reference = ranked.references[best.algorithm]
    served = best.code != BUILT_IN and _is_served(problem, best, reference, run)
    return printed_code(source, best, reference, loss=loss, weights=weights, served=served)


def _checked(epsilons: list[float], holdout: float, seeds: int, jobs: int | None) -> list[float]:
    for argument, value in (("jobs", jobs), ("seeds", seeds)):
        if value is not None:
            at_least(argument, value)
    if not 0 < holdout <= 0.5:
        raise UserError(f"holdout must be in (0, 0.5], a share of the rows, got {holdout:g}")
    return list(dict.fromkeys(positive("epsilon", epsilon) for epsilon in epsilons))


def _check_size(data: str | os.PathLike[str], table: rows.OwnTable) -> None:
    """DataError, in one line, where there are too few rows to judge by."""
    y, held = table.y, table.held_out[1]
    n = len(y) + len(held)
    if n < FEWEST:
        raise DataError(f"{data}: {n:,} rows are too few to compare private methods on: {FEWEST} at least")
    if table.classes is not None:
        for sign, label in zip((-1.0, 1.0), table.classes, strict=True):
            if (count := int(np.sum(held == sign))) < FEWEST_HELD or not np.any(y == sign):
                raise DataError(
                    f"{data}: {count} of {len(held):,} rows held out are {label}, too few to judge by; "
                    "raise holdout, or give more rows"
                )


def _is_served(problem: str, best: Ranked, reference: str, run: ranking.RunJobs) -> bool:
    """Whether the method runs where no rows are, as a fit runs code that is not dpbench's."""
    given = fit_arguments(best, reference)
    named = {name: given.pop(name) for name in ("algorithm", "epsilon", "delta", "relation", "accounting")}
    named |= {"algorithm": algorithms.SERVED + reference}
    try:
        return not run([make_job(problem=problem, seed=0, settings=given, **named)]).failed
    except UserError:
        return False


def results_of(dataset: str, results: str | os.PathLike[str]) -> Path:
    """The folder of the finished runs on a data set that `datasets.own.keep` stored."""
    return Path(results) / "adhoc" / f"compare-{dataset}"


def forget(data: str | os.PathLike[str], *, results: str | os.PathLike[str] = "results") -> list[Path]:
    """Remove what `compare` kept of a file: its prepared rows, and the runs on them with their exact scores.

    Args:
        data: the file, which need not be there any more.
        results: the folder of all results, as of `compare`.

    Returns:
        The folders that are gone; none where nothing was kept.

    Raises:
        UserError: a folder cannot be removed.
    """
    # Folds and trials are copies of the file's rows as well, under the same source.
    of_each = ((copy, results_of(copy.name.removesuffix("-v1"), results)) for copy in own.copies(data))
    return [own.forget(folder) for folder in chain.from_iterable(of_each) if folder.is_dir()]


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


def fit_arguments(row: ranking.Ranked, reference: str) -> dict[str, Any]:
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


def printed_code(
    source: Source, row: ranking.Ranked, reference: str, *, loss: str, weights: dict[str, float], served: bool = False
) -> str:
    """Python that fits one model on all rows by the row's method and settings, as they were ranked.

    By the estimators, which save the model, wherever they take the problem; else by `dpbench.fit`. served: of a method
    that is not built in, whether it runs where no rows are, as the estimators run it.
    """
    given, trusted = fit_arguments(row, reference) | weights, row.code != BUILT_IN and not served
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
