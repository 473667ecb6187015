"""The published values of Tables 1 to 12: loss, deviation, × and, with loss B, the Hessian count of the same runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from dpbench import frames
from dpbench.experiments.nonconvex.rows import (
    CRASHED,
    PAPER,
    PUBLISHED,
    TARGETS,
    TERMINATED,
    LossTable,
    Published,
    finished,
    methods_and_epsilons,
    published,
    published_table,
)
from dpbench.problems import catalogue
from dpbench.study import printed
from dpbench.study.context import Context, memoised, select
from dpbench.study.experiment import PLANTED
from dpbench.study.printed import ALL, COUNT, STD, Number
from dpbench.study.style import look
from dpbench.study.value_verdict import HALF_AS_LONG, OTHER_DATA, Judged, Place, PublishedValue, Runs, Switches, judge

STREAM = "published stream"
LEFT = "runs that left a row"
START = "the value of the start"
# Loss B, loose target: what a run prints that ends where it starts, as every start meets the target.
STARTS = {"covertype12-sigmoid": (0.539, 0.022), "ijcnn-sigmoid": (0.501, 0.008)}


@memoised
def judged(context: Context) -> dict[tuple[int, str, float], Judged]:
    """The verdicts of all published values but run times, by (table of losses, method, ε)."""
    timeless = {key: value for key, value in _by_place(context) if not value.run_time}
    return dict(zip(timeless, judge(timeless.values(), PAPER.switches), strict=True))


def published_values(context: Context) -> Iterator[PublishedValue]:
    """One per (table of losses, method, ε) within the profile's grid, and one per printed run time."""
    yield from (value for _, value in _by_place(context))


def _by_place(context: Context) -> Iterator[tuple[tuple[int, str, float], PublishedValue]]:
    paper = published_table(context.experiment.published())
    for target in TARGETS:
        rows = finished(context, target.artefact, timed=0)
        wrong = planted(context, target)
        counts = {(c.algorithm, c.epsilon): c for c in frames.records(select(paper, table=target.hessians), Published)}
        there = set(methods_and_epsilons(context, target))
        for one in frames.records(select(paper, table=target.table), Published):
            at = (one.algorithm, one.epsilon)
            if at not in there:  # the quick profile has some of the values
                continue
            ours = select(rows, algorithm=one.algorithm, epsilon=one.epsilon)
            off = select(wrong, algorithm=one.algorithm, epsilon=one.epsilon)
            yield (target.table, *at), published_value(target, one, counts.get(at), ours, off)
            if not math.isnan(one.seconds):
                place = _place(target, one.algorithm, one.epsilon)
                place = place._replace(column=f"{place.column}: run time")
                # As floats 2.0 and 2.000 are one: the paper prints one decimal, or three.
                digits = 1 if math.isclose(one.seconds, round(one.seconds, 1)) else 3
                number = Number("seconds", printed.shown(one.seconds, digits))
                yield (0, *at), PublishedValue(place, target.artefact, (number,), run_time=True)


def planted(context: Context, target: LossTable) -> pd.DataFrame:
    """The published runs of a target that are wrong on purpose, with a column `recipe`.

    It is the factor on the noise, or what else is wrong in words. The right runs on the other data set are such ones.
    """
    rows = finished(context, PLANTED, timed=0)
    paper, titled = rows["alpha"].eq(target.alpha), target.titled != target.alpha
    of = rows["problem"].str.startswith(f"{target.problem}-") & (paper | (titled & rows["alpha"].eq(target.titled)))
    rows, paper = rows[of], paper[of]
    nothing = pd.Series(math.nan, index=rows.index)
    halved, m = (rows.get(name, nothing).astype(float) for name in ("set.noise", "set.m"))
    recipe = rows["planted"].astype(object).where(rows["planted"].notna(), halved.where(halved.ne(1)))
    # A row has the m that it ran with, so the right one too.
    twice = m.eq(catalogue.declare(target.problem).n // 50)
    recipe = recipe.mask(twice, "m = n // 50").mask(rows["problem"].str.endswith("sixth"), HALF_AS_LONG)
    other = select(finished(context, target.twin.artefact, timed=0), variant=PUBLISHED)
    rows = rows.assign(recipe=recipe.mask(~paper, "α of the title")).dropna(subset=["recipe"])
    return pd.concat([rows, other.assign(recipe=OTHER_DATA)])


def published_value(
    target: LossTable, one: Published, count: Published | None, rows: pd.DataFrame, wrong: pd.DataFrame
) -> PublishedValue:
    """A published value with our runs by the switches that are on; those of the published stream apart."""
    loss_a = "logistic" in target.problem
    runs: dict[Switches, Runs] = {}
    stream: dict[Switches, Runs] = {}
    for on, part in rows.groupby("on"):
        names = frozenset(str(on).split(" + ")) if on else frozenset()
        (stream if STREAM in names else runs)[names] = runs_of(part.sort_values("seed"))
    off = {
        recipe: runs_of(select(wrong, recipe=recipe).sort_values("seed")) for recipe in dict.fromkeys(wrong["recipe"])
    }
    method, batch = look(one.algorithm).label, one.algorithm in ("opt-b", "2opt-b")
    # The scripts ran these once for all ε and printed the run three times: one result is not three.
    shares = str(_place(target, one.algorithm, 0.2)) if batch and one.epsilon != 0.2 else ""
    # Every start meets the loose target of loss B, so runs that do nothing print this very number.
    start = not loss_a and (one.mean, one.std) == STARTS[target.problem]
    return PublishedValue(
        _place(target, one.algorithm, one.epsilon),
        target.artefact,
        numbers(one, count),
        runs,
        switches=published(target.problem, one.algorithm),
        stream=stream,
        planted={} if loss_a else off,
        planted_stream=off if loss_a else {},
        curve=f"{target.artefact}, {method}",
        trivial=START if start else "",
        shares=shares,
        series=(
            f"{target.artefact}, {method}",
            f"{target.problem}, {method}, ε = {one.epsilon:g}",
        ),
    )


def numbers(loss: Published, count: Published | None) -> tuple[Number, ...]:
    """All that a value prints of the same runs; where it prints <NA>, that no run left a row."""
    k = loss.runs
    if not k:
        return (Number(LEFT, "0", COUNT, k=5),)
    numbers = [
        Number("loss", printed.shown(loss.mean, 3), k=k),
        Number("loss", printed.shown(loss.std, 3), STD, k=k),
        Number("terminated", "yes" if loss.terminated else "×", ALL, k=k),
    ]
    if count is not None:
        k = count.runs
        numbers += [
            Number("Hessians", printed.shown(count.mean, 1 if k == 5 else 2), k=k, count=True),
            Number("Hessians", printed.shown(count.std, 3), STD, k=k, count=True),
        ]
    return tuple(numbers)


def runs_of(rows: pd.DataFrame) -> Runs:
    """The quantities of a value, a value per seed; of runs that crashed, only that they left no row."""
    left = rows["ending"].ne(CRASHED)
    kept_rows = rows[left]
    return {
        "loss": kept_rows["objective"].astype(float).tolist(),
        "terminated": kept_rows["ending"].eq(TERMINATED).astype(float).tolist(),
        "Hessians": kept_rows["hessian_evaluations"].astype(float).tolist(),
        LEFT: left.astype(float).tolist(),
    }


def _place(target: LossTable, algorithm: str, epsilon: float) -> Place:
    return Place(f"Table {target.table}", look(algorithm).label, f"ε = {epsilon:g}")
