"""Two summaries side by side: settings whose means moved by more than their errors, verdicts that changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpbench.errors import positive
from dpbench.reporting.summary import CELL, DIGITS, Summary, load
from dpbench.study.declare import NOT_ENOUGH
from dpbench.study.value_verdict import NO_DATA

ERRORS = 3.0  # standard errors of a difference
ROUNDING = 1e-6  # relative: what another summation order, or a compiled loop, may change


@dataclass(frozen=True)
class Difference:
    """moved: cells with both means, their errors and `apart` (in standard errors of the difference), the largest first.

    changed: claims and published values with either verdict. compared, judged: how many of each are on both sides;
    exact, close: how many of the compared cells agree to the digits that a summary keeps, and to `ROUNDING`; chance:
    about how many cells would have moved by as much if the two sides had drawn independently; only: how many cells are
    on one side alone, first and second; missing: the experiments that the first has no setting of, and that the second
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
            f"{self.compared:,} settings on both sides: {self.exact:,} equal to {DIGITS} digits, {self.close:,} up to "
            f"rounding, {within:,} within their errors, {len(self.moved):,} moved; "
            f"{self.judged} verdicts on both sides, {len(self.changed)} changed"
            + (f"; {self.only[0]:,} settings only on the first" if self.only[0] else "")
            + (f"; {self.only[1]:,} settings only on the second" if self.only[1] else "")
            + "".join(
                f"; the {side} has nothing of {', '.join(names)}"
                for side, names in zip(("first", "second"), self.missing, strict=True)
                if names
            )
        )


def between(first: Summary, second: Summary, errors: float = ERRORS) -> Difference:
    """What differs. A cell has moved when its means are apart by more than `errors` standard errors and by rounding.

    A mean over one seed has no error: it has moved when it is apart by more than rounding. A setting that diverged or
    failed on one side alone has moved, too. What is on one side alone is counted, and is no difference: data may not
    be there. Likewise a verdict that waits for rows on either side.
    """
    from scipy.stats import t

    both = first.cells.merge(second.cells, on=CELL, how="outer", suffixes=("_a", "_b"), indicator=True)
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
    return tuple(sorted(set(one.cells["experiment"]) - set(other.cells["experiment"])))


def _alike(a: Any, b: Any) -> Any:
    """Whether two means, of which at least one is not finite, say the same."""
    return (a == b) | (np.isnan(a) & np.isnan(b))


def diff(first: str | os.PathLike[str], second: str | os.PathLike[str], *, errors: float = ERRORS) -> Difference:
    """What differs between two sets of results: settings whose means moved, verdicts that changed.

    Args:
        first, second: folders of rows, as "results/quick", or summaries that `summarise` wrote.
        errors: how many standard errors of the difference count as moved.

    Raises:
        UserError: for a place without either.
    """
    return between(load(Path(first)), load(Path(second)), positive("errors", errors))
