"""What the rows of a folder come to, small enough to commit: a mean per configuration, a word per claim.

A summary is read from a folder of rows (`results/quick`, or one experiment's in it) or from the file that `save` wrote.
Nothing in it depends on the machine: no seconds, no memory, no versions. The same seeds draw the same numbers
everywhere, so two summaries of one grid differ by rounding, except where rounding decides (an early stop, an argmax).
`diff` lists the configurations whose means moved by more than their errors, and the verdicts that changed.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpbench import experiments, files
from dpbench.errors import UserError, positive
from dpbench.reporting.scorecard import in_words as survival
from dpbench.reporting.scorecard import judged as judged_values
from dpbench.reporting.scorecard import statement, verdicts
from dpbench.run.store import Store
from dpbench.study.claims import NOT_ENOUGH
from dpbench.study.context import contexts
from dpbench.study.overview import in_words
from dpbench.study.statistics import or_infinite
from dpbench.study.value_verdict import NO_DATA, Judged

# What replicates have in common: all but the seed.
CONFIGURATION = ["experiment", "problem", "algorithm", "epsilon", "settings", "accounting", "relation"]
COLUMNS = [*CONFIGURATION, "n", "mean", "se"]
JUDGED = ["experiment", "claim", "verdict"]
# Fewer than a double has: the last ones differ between processors.
DIGITS = 8
FORMAT = 1
ERRORS = 3.0  # standard errors of a difference
ROUNDING = 1e-6  # relative: what another summation order, or a compiled loop, may change


@dataclass(frozen=True)
class Summary:
    """means: a row per configuration (`COLUMNS`); verdicts: a row each (`JUDGED`); name: where both come from."""

    name: str
    means: pd.DataFrame
    verdicts: pd.DataFrame


def load(source: str | Path) -> Summary:
    """The summary of a folder of rows, or in a file; UserError where there are none."""
    path = Path(source)
    if path.is_file():
        return _read(path)
    if (path / "runs").is_dir():
        return _of_rows(path, path.parent, [path.name])
    names = sorted(one.name for one in path.iterdir() if (one / "runs").is_dir()) if path.is_dir() else []
    if not names:
        raise UserError(f"no rows in {path}: it is no folder like results/quick or results/quick/NAME, and no summary")
    return _of_rows(path, path, names)


def save(summary: Summary, path: Path) -> None:
    """Write a summary as JSON, a configuration a line, sorted: two versions of it can be compared line by line."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in _plain(summary.means))
    words = ",\n".join(json.dumps(row, ensure_ascii=False) for row in _plain(summary.verdicts))
    files.write(path, f'{{"format": {FORMAT},\n"cells": [\n{lines}\n],\n"verdicts": [\n{words}\n]}}\n')


def _of_rows(path: Path, profile: Path, names: list[str]) -> Summary:
    parts, judged = [], []
    for name in names:
        store = Store(profile.parent, profile.name, name)
        parts.append(aggregated(store.runs()).assign(experiment=name)[COLUMNS])
        if name in experiments.names() and profile.name in experiments.get(name).grid():
            for context in contexts(experiments.get(name), profile.name, profile.parent):
                judged += [[name, statement(claim, verdict), verdict.word] for claim, verdict in verdicts(context)]
                judged += [[name, f"{one.value.name} (printed)", verdict_words(one)] for one in judged_values(context)]
    table = pd.concat(parts, ignore_index=True).sort_values(CONFIGURATION, ignore_index=True)
    return Summary(str(path), table, pd.DataFrame(judged, columns=JUDGED))


def verdict_words(one: Judged) -> str:
    """A published value's class, and whether it survives."""
    return f"{one.word}; survives: {survival(one)}" if one.survival else one.word


def aggregated(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error per configuration of the excess loss, else of the objective, else of a sweep's median.

    Timed runs repeat the numbers of untimed ones and are left out; a failed run counts as none.
    """
    runs = runs[runs["timed"].eq(0)]
    value = runs["excess"].astype(float).fillna(runs["objective"].astype(float))
    # A sweep has a loss per setting and no excess of its own: its median moves if any part of it does.
    swept = [np.median(one) if one is not None and len(one) else math.nan for one in runs["values"]]
    value = value.fillna(dict(zip(runs.index, swept, strict=True)))
    runs = runs.assign(
        value=or_infinite(value, runs),
        settings=[in_words(text) for text in runs["settings"]],
        sweep=runs["sweep"].fillna("").astype(str),
        relation=runs["relation"].fillna("").astype(str),
    )
    # Runs that are wrong on purpose, and sweeps, are configurations of their own.
    wrong = runs["planted"].map(lambda factor: "" if pd.isna(factor) else f"; noise × {factor:g}")
    swept_over = runs["sweep"].map(lambda text: f"; swept {text}" if text else "")
    runs = runs.assign(settings=runs["settings"] + swept_over + wrong)
    with np.errstate(invalid="ignore"):
        table = runs.groupby(CONFIGURATION[1:], sort=False)["value"].agg(n="count", mean="mean", se="sem")
    return table.reset_index()


def _plain(frame: pd.DataFrame) -> list[list[Any]]:
    """Rows of JSON's own types: numbers rounded, infinity as a text, what is missing as null."""

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return value
        number = float(value)
        if math.isnan(number):
            return None
        return str(number) if math.isinf(number) else float(f"{number:.{DIGITS}g}")

    return [[plain(value) for value in row] for row in frame.to_numpy()]


def _read(path: Path) -> Summary:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise UserError(f"{path} has format {content['format']}, this version reads {FORMAT}: write it anew")
        table = pd.DataFrame(content["cells"], columns=COLUMNS)
        judged = pd.DataFrame(content["verdicts"], columns=JUDGED)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no summary that dpbench diff --save wrote") from error
    return Summary(str(path), table.astype({"n": float, "mean": float, "se": float, "epsilon": float}), judged)


def summarise(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Write the summary of a folder of rows to a file that `diff` reads; how many configurations it has."""
    summary = load(Path(source))
    save(summary, Path(target))
    return len(summary.means)


@dataclass(frozen=True)
class Difference:
    """moved: configurations with both means, their errors and `apart`, in standard errors, the largest first.

    changed: claims and published values with either verdict. compared, judged: how many of each are on both sides;
    exact, close: how many of the compared agree to the digits that a summary keeps, and to `ROUNDING`; chance:
    about how many would have moved by as much if the two sides had drawn independently; only: how many are
    on one side alone, first and second; missing: the experiments that the first has none of, and that the second
    has not.
    """

    moved: pd.DataFrame
    changed: pd.DataFrame
    compared: int
    exact: int
    close: int
    judged: int
    chance: float
    only: tuple[int, int]
    missing: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def same(self) -> bool:
        """Whether nothing moved and nothing changed."""
        return bool(self.moved.empty and self.changed.empty)

    def __str__(self) -> str:
        within = self.compared - self.exact - self.close - len(self.moved)
        return (
            f"{self.compared:,} configurations on both sides: {self.exact:,} equal to {DIGITS} digits, "
            f"{self.close:,} up to rounding, {within:,} within their errors, {len(self.moved):,} moved; "
            f"{self.judged} verdicts on both sides, {len(self.changed)} changed"
            + (f"; {self.only[0]:,} configurations only on the first" if self.only[0] else "")
            + (f"; {self.only[1]:,} configurations only on the second" if self.only[1] else "")
            + "".join(
                f"; the {side} has nothing of {', '.join(names)}"
                for side, names in zip(("first", "second"), self.missing, strict=True)
                if names
            )
        )


def between(first: Summary, second: Summary, errors: float = ERRORS) -> Difference:
    """What differs. A mean has moved when it is apart by more than `errors` standard errors and by rounding.

    A mean over one seed has no error: it has moved when it is apart by more than rounding. One that diverged or
    failed on one side alone has moved, too. What is on one side alone is counted, and is no difference: data may not
    be there. Likewise a verdict that waits for rows on either side.
    """
    from scipy.stats import t

    both = first.means.merge(second.means, on=CONFIGURATION, how="outer", suffixes=("_a", "_b"), indicator=True)
    only = tuple(int((both["_merge"] == side).sum()) for side in ("left_only", "right_only"))
    both = both[both["_merge"] == "both"].drop(columns="_merge")
    a, b = both["mean_a"].to_numpy(), both["mean_b"].to_numpy()
    # Two independent means: their variances add.
    se = np.hypot(both["se_a"].fillna(0).to_numpy(), both["se_b"].fillna(0).to_numpy())
    with np.errstate(invalid="ignore", divide="ignore"):
        gap, scale = b - a, np.maximum(np.abs(a), np.abs(b))
        rounding = ROUNDING * scale
        apart = gap / se
        finite = np.isfinite(a) & np.isfinite(b)
        exact = np.where(finite, np.abs(gap) <= 10.0 ** (1 - DIGITS) * scale, _alike(a, b))  # a unit of the last digit
        moved = np.where(finite, np.abs(gap) > np.maximum(errors * np.nan_to_num(se), rounding), ~_alike(a, b))
    # Both sides estimate a variance, each of which takes a degree of freedom.
    freedom = both["n_a"] + both["n_b"] - 2
    chance = 2 * np.sum(t.sf(errors, freedom[freedom > 0]))
    order = np.argsort(-np.abs(np.nan_to_num(apart, nan=np.inf)), kind="stable")
    table = both.assign(apart=apart).iloc[order]
    verdicts = first.verdicts.merge(second.verdicts, on=["experiment", "claim"], suffixes=("_a", "_b"))
    # A verdict that waits for rows says nothing of the code.
    waits = [NOT_ENOUGH, NO_DATA]
    verdicts = verdicts[~verdicts["verdict_a"].isin(waits) & ~verdicts["verdict_b"].isin(waits)]
    return Difference(
        moved=table[moved[order]].reset_index(drop=True),
        changed=verdicts[verdicts["verdict_a"].ne(verdicts["verdict_b"])].reset_index(drop=True),
        compared=len(both),
        exact=int(exact.sum()),
        close=int((finite & ~exact & (np.abs(gap) <= rounding)).sum()),
        judged=len(verdicts),
        chance=float(chance),
        only=(only[0], only[1]),
        missing=(_beyond(second, first), _beyond(first, second)),
    )


def _beyond(one: Summary, other: Summary) -> tuple[str, ...]:
    """The experiments of one summary that the other has not."""
    return tuple(sorted(set(one.means["experiment"]) - set(other.means["experiment"])))


def _alike(a: Any, b: Any) -> Any:
    """Whether two means, of which at least one is not finite, say the same."""
    return (a == b) | (np.isnan(a) & np.isnan(b))


def diff(first: str | os.PathLike[str], second: str | os.PathLike[str], *, errors: float = ERRORS) -> Difference:
    """What differs between two sets of results: configurations whose means moved, verdicts that changed.

    Args:
        first, second: folders of rows, as "results/quick", or summaries that `summarise` wrote.
        errors: how many standard errors of the difference count as moved.

    Raises:
        UserError: for a place without either.
    """
    return between(load(Path(first)), load(Path(second)), positive("errors", errors))
