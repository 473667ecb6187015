"""The printed relative errors and supports of greedy_coordinate beside 100 seeds of ours at the paper's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpbench.experiments.greedy_coordinate.rows import (
    CD,
    COVERED,
    DOUBLED,
    GCD,
    LOOKS,
    PUBLISHED,
    ROOT,
    SAMPLING,
    SELECTION,
    SGD,
    TITLES,
    problems,
    published_method,
    published_name,
    runs_at_published_settings,
    runs_with_wrong_noise,
)
from dpbench.study.context import Context, select
from dpbench.study.printed import ROUNDED, Number
from dpbench.study.value_verdict import HONEST, NOT_PUBLIC, Place, PublishedValue, Runs

# (our method as published, the switch that makes it so, our method that keeps its ε); and fits, which explain nothing.
COMPARED = {PUBLISHED: (SELECTION, GCD), CD: ("", CD), SGD: (SAMPLING, COVERED)}
FITS = {SGD: {"sgd_noise = √2 (σ = √2·zC)": ROOT, "sgd_noise = 2 (σ = 2zC)": DOUBLED}}
START = "the value of the start"


def published_values(context: Context) -> Iterator[PublishedValue]:
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
            yield PublishedValue(
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
    """A value per seed of what the paper prints."""
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
