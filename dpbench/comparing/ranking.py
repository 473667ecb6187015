"""The leaderboard's methods on data of one's own, judged on rows that they have not seen.

Each method runs at its public rule in n, d and ε, which looks at no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from dpbench import algorithms, frames
from dpbench.algorithms import rules
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.errors import UserError, marked
from dpbench.leaderboard import entrants
from dpbench.leaderboard.places import pick
from dpbench.problems import catalogue
from dpbench.run import outcomes
from dpbench.run.job import Job
from dpbench.run.row import settings_of
from dpbench.run.runner import RunSummary
from dpbench.run.store import Store
from dpbench.study.grid import GridEntry
from dpbench.study.plan import plan
from dpbench.study.statistics import or_infinite, plus_minus

PRICE = (
    "The settings do not depend on the data. If you choose the method by this table, that choice does, and no ε above "
    "covers it: each line is the privacy of one run, not of this comparison. To release a model, choose on public or "
    "older data of the same kind, and fit once on the private data."
)
TIE = 2.0  # standard errors of a difference
RunJobs = Callable[[list["Job"]], "RunSummary"]  # runs what the store has not got, as runner.run does


class Ranked(NamedTuple):
    """A row of a ranking's table: see `board`."""

    rank: int
    algorithm: str
    settings: str
    epsilon: float
    delta: float
    accounting: str
    private: bool
    counts_public: str | None
    code: str | None
    beaten_by: int
    mean: float
    spread: float
    accuracy: float
    auc: float
    balanced: float
    precision: float
    calibration: float
    gain: float
    gain_se: float
    gain_spread: float

    @property
    def shown(self) -> str:
        """Its name, with what a reader must not miss."""
        return marked(self.algorithm, self.private, self.code)


@dataclass(frozen=True)
class Ranking:
    """table: one row per method, best first (see `board`). left_out: method → reason, cut by a pilot among them.

    failed: method → error, of those with a defect (see `lost`). references: what `fit` calls each method of the table.
    inner: the methods' scores on parts of the rows in use (see `nested`), by which one is chosen; None: by the table.
    """

    epsilon: float
    table: pd.DataFrame
    left_out: dict[str, str]
    failed: dict[str, str]
    references: dict[str, str]
    tracebacks: list[str] = field(default_factory=list)
    inner: pd.DataFrame | None = None

    @property
    def best(self) -> Ranked | None:
        """The row of the method with the lowest inner mean, first of those that count nothing of the data as public.

        Of the useful ones, if any is; all by `inner`, which has not seen the rows held out. None when none is finite.
        """
        # The least of many scores on the rows held out would be low by luck: what is chosen by them has none left.
        by = self.table if self.inner is None else self.inner
        ended = self.table.loc[self.table["mean"].lt(float("inf")), "algorithm"]
        finite = by[by["mean"].lt(float("inf")) & by["algorithm"].isin(ended)]
        finite = finite[finite["algorithm"].isin(good)] if (good := useful(by)) else finite
        first = self.strictly_first(finite.sort_values("mean", kind="stable"))["algorithm"].head(1)
        return next(iter(frames.records(self.table[self.table["algorithm"].isin(first)], Ranked)), None)

    @property
    def lines(self) -> list[Ranked]:
        """The table's rows, as `strictly_first` orders them."""
        return frames.records(self.strictly_first(self.table), Ranked)

    @staticmethod
    def strictly_first(table: pd.DataFrame) -> pd.DataFrame:
        """The rows, those that are private without anything of the data being public first, else as they stand."""
        strict = table["private"] & table["counts_public"].fillna("").eq("")
        return table.loc[strict.sort_values(ascending=False, kind="stable").index]

    @property
    def tied(self) -> list[str]:
        """The other useful methods that no method beats by more than two standard errors of the difference."""
        best, names = self.best, list(self.table[self.table["beaten_by"] == 0]["algorithm"])
        return [name for name in names if best and name in self.useful and name != best.algorithm]

    @property
    def useful(self) -> list[str]:
        """The methods that beat the majority class, or the mean, by more than two standard errors."""
        return useful(self.table)

    def settings_of(self, row: Ranked) -> str:
        """The settings of a row of the table that a tuner would try: "T=10, clip=0.3"."""
        values, names = settings_of(row.settings), entrants.candidates(self.references[row.algorithm], "quick")
        return ", ".join(f"{name}={values[name]:g}" for name in names if isinstance(values.get(name), int | float))


@dataclass
class Field:
    """Who takes part on a problem: reference → its candidates' jobs at one ε, and who does not, with the reason."""

    jobs: dict[str, list[Job]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def entering(extra: Iterable[str]) -> dict[str, str]:
    """Method's name → reference, of the leaderboard's entrants and of `extra` ones (names or "file.py:Class")."""
    references = {name: name for name in entrants.entrants()}
    for name in extra:
        method, fixed = algorithms.resolve(name)
        flaw = method.flaw(make_settings(method, fixed), rules.accounting(method)) if method.private else "not private"
        if flaw:
            raise UserError(f"{name} is not private: a comparison at equal ε has no place for it ({flaw})")
        shown = algorithms.display_name(method.name, make_settings(method, fixed)) if fixed else method.name
        if references.setdefault(shown, name) != name:
            raise UserError(f"{name}: the name {shown} is taken; give the class another `name`")
    return references


def field_of(problem: str, epsilon: float, names: Iterable[str], seeds: int) -> Field:
    """The jobs of every method that takes the problem at its public rule. Raises UserError when none does."""
    found, target = Field(), catalogue.declare(problem)
    for name in names:
        method, _ = algorithms.resolve(name)
        if why := entrants.reason(problem, name):
            found.left_out[name] = why
            continue
        block = GridEntry(problems=[problem], algorithms=[name], epsilon=[epsilon], seeds=seeds)
        blocks = [entrants.entering(block, problem, name, public_settings(name, target.n, target.d, epsilon))]
        kept = []
        for job in plan(blocks, None).jobs:
            try:
                algorithms.get(job.algorithm).complete(target, job.parsed())
            except UserError as error:
                found.left_out[name] = str(error).removeprefix(f"{method.name}: ")
                continue
            kept.append(job)
        if kept:
            found.left_out.pop(name, None)
            found.jobs[name] = kept
    if not found.jobs:
        raise UserError(f"no private method fits {problem}: {'; '.join(sorted(set(found.left_out.values()))[:3])}")
    return found


def rank(field_: Field, epsilon: float, references: dict[str, str], store: Store, run: RunJobs) -> Ranking:
    """Run the field's jobs, and rank the methods by their mean loss on the rows held out."""
    # All methods' jobs at once, so that no worker waits for one method's last run.
    jobs = [job for group in field_.jobs.values() for job in group]
    tracebacks = [text for row in run(jobs).failures if (text := row.traceback)]
    rows = store.runs()
    rows = rows[rows["key"].isin({job.key for job in jobs})]
    failed, refused = lost(rows)
    table = board(rows[~rows["algorithm"].isin(failed)])
    return Ranking(epsilon, table, {**field_.left_out, **refused}, failed, references, tracebacks)


def nested(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The means of `board`'s scores over parts of the rows, of the methods that ended on every part."""
    kept = ["mean", "gain", "loss_gain", "se", "gain_se", "loss_gain_se"]
    # A method that ended on some parts only would be judged on easier ones.
    parts = pd.concat(tables).assign(**{name: lambda one, name=name: one[name] ** 2 for name in kept[3:]})
    by = parts.groupby("algorithm")
    means = by[kept].mean()
    means[kept[3:]] = np.sqrt(means[kept[3:]] / len(tables))  # the folds' rows are independent
    means = means.assign(private=by["private"].all(), counts_public=by["counts_public"].first())
    return means[by.size() == len(tables)].reset_index()


def lost(rows: pd.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """(method → error) of those that a ranking cannot have through their own fault, and of all others with no result.

    One defect is enough: what else that method's code says is not to be trusted. A killed worker is nobody's fault, but
    as a run of `dpbench run` it is a failure where nothing else of the method ended.
    """
    ended = set(rows.loc[outcomes.has_result(rows["status"]), "algorithm"])
    failed: dict[str, str] = {}
    refused: dict[str, str] = {}
    for name, status, error in zip(rows["algorithm"], rows["status"], rows["error"], strict=True):
        if outcomes.OUTCOMES[status].blame or (status == "died" and name not in ended):
            failed.setdefault(name, error)
        elif status not in outcomes.RESULTS and name not in ended:
            refused.setdefault(name, error)
    return failed, {name: error for name, error in refused.items() if name not in failed}


def useful(table: pd.DataFrame) -> list[str]:
    """The methods that are better than the constant answer by more than two standard errors: in loss, or in accuracy.

    At a rare class no model is right more often than "no" for everyone, and one may still rank them better than chance.
    """
    better = (table["gain"] > TIE * table["gain_se"]) | (table["loss_gain"] > TIE * table["loss_gain_se"])
    return list(table[better]["algorithm"])


MEANS = {  # of `board`: score → column of the rows
    "tuned_by": "tuned_by", "mean": "loss", "drawn": "held_loss_se", "gain": "held_gain", "gain_drawn": "held_gain_se",
    "loss_gain": "held_loss_gain", "loss_gain_drawn": "held_loss_gain_se", "accuracy": "held_accuracy",
    "auc": "held_auc", "balanced": "held_balanced", "precision": "held_precision", "calibration": "held_calibration",
    "excess": "excess",
}  # fmt: skip


def board(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per method, best first: its settings with the lowest mean objective on the rows in use, and scores.

    `mean`: loss on the rows held out, `se` over seeds and over the draw of these rows, `spread` the same of one fit to
    come, whose noise is not averaged over seeds; `gain`, `gain_se`, `gain_spread`: the same of accuracy beyond the
    majority class, or of R²; `loss_gain`, `loss_gain_se`: of how far the loss is below that of the
    best constant answer. `accuracy`, `auc`, `excess` and those of `scores.RARE`: means. `rank` is by `mean`;
    `beaten_by` counts the methods that are better by more than two standard errors of the difference.
    """
    runs = runs[outcomes.has_result(runs["status"])]
    runs = runs.assign(
        tuned_by=or_infinite(runs["objective"], runs).fillna(np.inf),
        loss=or_infinite(runs["held_loss"], runs).fillna(np.inf),
    )
    by = ["algorithm", "settings", "accounting", "relation", "delta", "epsilon"]
    with np.errstate(invalid="ignore"):
        table = runs.groupby(by, sort=False, dropna=False).agg(
            **{name: (column, "mean") for name, column in MEANS.items()},
            sd=("loss", "std"),
            gain_sd=("held_gain", "std"),
            loss_gain_sd=("held_loss_gain", "std"),
            seeds=("seed", "size"),
            planned=("epsilon_planned", "min"),
            private=("private", "all"),
            counts_public=("counts_public", "first"),
            code=("code", "first"),
        )
        table = table.reset_index()
        for name in ("", "gain_", "loss_gain_"):
            drawn, over_seeds = table[f"{name}drawn"].fillna(0), table[f"{name}sd"].fillna(0)
            # Two independent sources: the noise of training, and which rows were held out.
            table[f"{name}se"] = np.hypot(over_seeds / np.sqrt(table["seeds"]), drawn)
            # Few seeds say little of the noise: twice the spread covers 95 % of fits, as Student's t does.
            few = stats.t.ppf(0.975, np.maximum(table["seeds"] - 1, 1)) / 1.96
            table[f"{name}spread"] = np.hypot(over_seeds * few * np.sqrt(1 + 1 / table["seeds"]), drawn)
    # Settings by the rows in use: by those held out the best of many would look too good.
    table = pick(table, ["algorithm"], "tuned_by").reset_index(drop=True)
    table["rank"] = table["mean"].rank(method="min").astype(int)
    table["beaten_by"] = beaten_by(table) if len(table) else []
    return table.sort_values(["rank", "algorithm"], kind="stable").reset_index(drop=True)


def recommendation(ranked: Ranking, baseline: str) -> Iterator[str]:
    """Sentences: which method, at which settings, and what is as good; or not to use any.

    baseline: what a useful model has to beat, in words.
    """
    best, shown = ranked.best, {row.algorithm: row.shown for row in frames.records(ranked.table, Ranked)}
    if best is None:
        yield f"Do not use any at ε = {ranked.epsilon:g}: no method ended with a finite loss."
        return
    if best.algorithm not in ranked.useful:
        what = f"{best.shown}, chosen on the other rows, is not" if ranked.useful else "none is"
        yield (
            f"Do not use any of these at ε = {ranked.epsilon:g}: on the rows held out {what} better than {baseline} by "
            "two standard errors, neither in loss nor in accuracy. More rows or a larger ε would help; so would fewer "
            "columns."
        )
        ranks = ranked.table[ranked.table["auc"] > 0.6]
        if len(ranks):
            first = ranks.sort_values("auc").iloc[-1]
            name = shown[first.algorithm]
            yield f"{name} ranks rows all the same (AUC {plus_minus(first.auc, np.nan)}): another threshold may serve."
        return
    settings = ranked.settings_of(best)
    yield f"At ε = {ranked.epsilon:g} use {best.shown}" + (f" with {settings}." if settings else ".")
    if best.counts_public:
        yield f"It takes {best.counts_public} from the data and counts that as public: its ε does not cover it."
    lowest = ranked.table.loc[ranked.table["algorithm"].isin(ranked.useful)].iloc[0]
    if lowest["mean"] < best.mean and lowest["counts_public"]:
        yield (
            f"{shown[lowest['algorithm']]} has a lower loss ({plus_minus(lowest['mean'], np.nan)}), and counts "
            f"{lowest['counts_public']} as public."
        )
    if best.gain <= TIE * best.gain_se and np.isfinite(best.accuracy):
        yield (
            f"It is not right more often than {baseline}: it ranks rows better than chance (AUC "
            f"{plus_minus(best.auc, np.nan)}), so use its probabilities, or another threshold."
        )
    if best.beaten_by:
        yield (
            f"On the rows held out {shown[lowest['algorithm']]} is better by more than two standard errors; on the "
            "rows by which the method was chosen it is not."
        )
    elif ranked.tied:
        yield f"As good within two standard errors: {', '.join(shown[name] for name in ranked.tied)}."
    first = ranked.table.iloc[ranked.table["accuracy"].fillna(0).argmax()]
    if first.accuracy > best.accuracy:
        yield f"Right most often: {shown[first.algorithm]}, on {100 * first.accuracy:.1f} % of the rows."
    poor = [shown[name] for name in ranked.table["algorithm"] if name not in ranked.useful]
    if poor:
        yield f'These methods do not beat "{baseline}": {", ".join(poor)}.'


def beaten_by(table: pd.DataFrame) -> pd.Series:
    """How many of the methods are better by more than two standard errors of the difference, each."""
    mean, se = table["mean"].to_numpy(), table["se"].fillna(0).to_numpy()
    with np.errstate(invalid="ignore"):
        gap = mean[:, None] - mean[None, :]
        clear = gap > TIE * np.hypot(se[:, None], se[None, :])
    clear |= np.isinf(mean)[:, None] & np.isfinite(mean)[None, :]
    return pd.Series(clear.sum(axis=1), index=table.index)
