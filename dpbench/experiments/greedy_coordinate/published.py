"""The printed relative errors and supports of greedy_coordinate beside 100 seeds of ours at the paper's settings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpbench.experiments.greedy_coordinate.rows import (
    CD,
    COVERED,
    DOUBLED,
    GCD,
    L1,
    LOOKS,
    PUBLISHED,
    ROOT,
    SAMPLING,
    SELECTION,
    SGD,
    TITLES,
    facts,
    finals,
    problems,
    published_method,
    published_name,
    runs_at_published_settings,
    runs_with_wrong_noise,
)
from dpbench.study import laws
from dpbench.study.context import Context, select
from dpbench.study.printed import ROUNDED, Number
from dpbench.study.statistics import plus_minus
from dpbench.study.verdicts import HONEST, NOT_PUBLIC, Cell, Place, Runs

AS_PUBLISHED = (CD, SGD, DOUBLED, PUBLISHED)  # what runs at the hyperparameters of Table 4
# (our method as published, the switch that makes it so, our method that keeps its ε); and fits, which explain nothing.
COMPARED = {PUBLISHED: (SELECTION, GCD), CD: ("", CD), SGD: (SAMPLING, COVERED)}
FITS = {SGD: {"sgd_noise = √2 (σ = √2·zC)": ROOT, "sgd_noise = 2 (σ = 2zC)": DOUBLED}}
START = "the value of the start"


def cells(context: Context) -> Iterator[Cell]:
    """One per (problem, method) with a published number, at the settings of Table 4."""
    paper, runs = context.experiment.published(), runs_at_published_settings(context)
    wrong = runs_with_wrong_noise(context)
    for problem in problems(runs):
        for method, (switch, honest) in COMPARED.items():
            numbers = published_numbers(paper, problem, method)
            if not numbers:
                continue
            name = published_name(problem)
            own, off = select(runs, problem=problem), select(wrong, problem=problem)
            by_set = {HONEST: runs_of(own, honest)} | ({frozenset([switch]): runs_of(own, method)} if switch else {})
            yield Cell(
                Place(
                    "Table 3" if name in paper["support"] else "Fig. 1 (author's slides)",
                    LOOKS[method].label,
                    TITLES[problem],
                ),
                "published_settings",
                numbers,
                {on: values for on, values in by_set.items() if values["relative gap"]},
                switches=(switch,) if switch else (),
                planted={one: runs_of(select(off, planted=one), method) for one in factors(off)},
                fits={words: runs_of(own, fit) for words, fit in FITS.get(method, {}).items()},
                not_comparable="" if paper["recipe"][name]["trust"] == "certain" else NOT_PUBLIC,
                trivial=START if published_method(method) in paper["at_the_start"].get(name, ()) else "",
                series=(problem,),
            )


def factors(rows: pd.DataFrame) -> list[float]:
    """On the noise of runs that are wrong on purpose."""
    return sorted({float(one) for one in rows["planted"].dropna()})


def published_numbers(paper: dict[str, Any], problem: str, method: str) -> tuple[Number, ...]:
    """The relative gap, the least mean of a grid over five seeds, and in Table 3 the two counts of the support."""
    name, own, k = published_name(problem), published_method(method), paper["seeds"]
    if name in paper["support"]:
        correct, wrong, gap = paper["support"][name][own]
        return (
            Number("relative gap", significant(gap, 2), k=k, lowest=True),
            Number("correct non-zeros", str(correct), ROUNDED, k=k),
            Number("incorrect non-zeros", str(wrong), ROUNDED, k=k),
        )
    gap = paper["ends"].get(name, {}).get(own)
    return (Number("relative gap", significant(gap, 3), k=k, lowest=True),) if gap else ()


def runs_of(rows: pd.DataFrame, method: str) -> Runs:
    """A value per seed of what the cells print."""
    rows = select(rows, algorithm=method)
    return {
        "relative gap": rows["relative"].tolist(),
        "correct non-zeros": rows["support_correct"].tolist(),
        "incorrect non-zeros": rows["support_wrong"].tolist(),
    }


def significant(value: float, digits: int) -> str:
    """A number with the significant digits that the paper prints.

    >>> significant(0.02, 2), significant(0.00056, 2), significant(0.034, 3)
    ('0.020', '0.00056', '0.0340')
    """
    return f"{value:#.{digits}g}"


def published_end(paper: dict[str, Any], problem: str, method: str) -> float:
    """The published relative error at the end, from Table 3 or else the slides; NaN where there is none."""
    name, method = published_name(problem), published_method(method)
    if name in paper["support"]:
        return float(paper["support"][name][method][2])
    return float(paper["ends"].get(name, {}).get(method, math.nan))


def half_a_digit(value: float) -> float:
    """Half of the last of two printed significant digits."""
    return 0.5 * 10.0 ** (math.floor(math.log10(value)) - 1)


def at_published_settings(context: Context) -> pd.DataFrame:
    """`finals` at the hyperparameters of Table 4, with `published`, `start`, `still` and `within`.

    within: whether the test of a published mean of 5 runs does not reject it; None where none is published, or we have
    one run. still: whether no run has moved from the start.
    """
    paper, known = context.experiment.published(), facts(context, "published_settings")
    runs = select(runs_at_published_settings(context), algorithm=list(AS_PUBLISHED))
    table = finals(runs)
    cells = list(zip(table["problem"], table["algorithm"], strict=True))
    published = np.array([published_end(paper, *cell) for cell in cells])
    starts = np.array([known[p].start if p in known else math.nan for p, _ in cells])
    within: list[bool | None] = []
    # A printed number is known to half of its last digit, so the test gives it that much for nothing.
    for (problem, algorithm), value in zip(cells, published, strict=True):
        ours = select(runs, problem=problem, algorithm=algorithm)["relative"]
        slack = half_a_digit(value) if value > 0 else 0.0
        testable = not math.isnan(value) and len(ours) > 1  # one run has no spread
        chance = float(laws.mean_chance(ours, value, paper["seeds"], slack=slack)) if testable else math.nan
        within.append(chance >= laws.LEVEL if testable else None)
    moved = (np.abs(table[name].to_numpy(float) - starts) for name in ("min", "max")) if len(table) else ()
    still = np.maximum(*moved) < 1e-9 if cells else []
    return table.assign(published=published, start=starts, within=pd.Series(within, table.index, object), still=still)


def cells_within(table: pd.DataFrame) -> str:
    """In how many cells of Table 3 the published error is within, and which are not; DP-SGD's count by either noise."""
    cells = select(table, problem=list(L1))
    cells = cells.assign(method=[published_method(name) for name in cells["algorithm"]])
    outside, count = [], 0
    for (problem, method), group in cells.groupby(["problem", "method"], sort=False):
        count += 1
        if not group["within"].any():
            still = f", as our runs stay at the start, {group['start'].iloc[0]:.3g} on our draw"
            outside.append(f"{problem}, {method} ({plus_minus(group['mean'].iloc[0], math.nan)} against "
                           f"{group['published'].iloc[0]:g}{still if group['still'].any() else ''})")  # fmt: skip
    return f"{count - len(outside)} of {count} cells" + (f"; not in {'; '.join(outside)}" if outside else "")
