"""The tables of nonconvex: Tables 1 to 12 beside the published values, and what Tables 1 to 4 say of their runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpbench import frames
from dpbench.experiments.nonconvex.published import judged
from dpbench.experiments.nonconvex.rows import (
    CRASHED,
    EPSILONS,
    METHODS,
    PAPER,
    PUBLISHED,
    TARGETS,
    TERMINATED,
    Beside,
    LossTable,
    Ours,
    compared,
    finished,
    most_iterations,
    setting,
)
from dpbench.study.claims import each
from dpbench.study.context import Context, select
from dpbench.study.output import Table
from dpbench.study.paper import WithWords
from dpbench.study.statistics import plus_minus, span
from dpbench.study.style import look
from dpbench.study.value_verdict import EXACT, MATCH, Judged


@each(PAPER.artefact(t.artefact, section="loss", target=t) for t in TARGETS)
def loss(context: Context, target: LossTable) -> WithWords:
    """Tables 1 to 5, 7, 9 and 11: final loss of a target's runs, published and at a proven ε, beside the table."""
    theirs, ours = compared(context, target, variant=PUBLISHED), compared(context, target)
    outcomes = judged(context)
    rows = []
    for names, row, paper, other in paired(ours, theirs):
        verdict = outcomes.get((target.table, row.algorithm, row.epsilon))
        rows.append([
            *names,
            paper_loss(paper),
            our_loss(other),
            verdict.word if verdict else "–",
            our_loss(row),
            survival(verdict),
            whole(row.terminated),
            count_std(row.iterations, row.iterations_std),
            count_std(row.hessian_evaluations, row.hessian_evaluations_std),
            whole(row.T),
        ])  # fmt: skip
    mine = [one for key, one in outcomes.items() if key[0] == target.table]
    exact, words = sum(one.outcome.word == EXACT for one in mine), [one.word for one in mine if one.counts]
    digits = (
        f"{exact} of {len(mine)} values come out to the last digit; {words.count(EXACT)} would not with wrong noise"
    )
    match = f": {words.count(MATCH)} of {len(words)} values that can be judged match" if words else ""
    header = ["method", "ε", "paper", "published setting", "verdict", "proven ε", "survives", "terminated",
              "iterations", "Hessians", "T"]  # fmt: skip
    beside = theirs[["loss", "loss_std", "iterations", "hessian_evaluations", "terminated", "crashed"]]
    missing = gaps(context, target, ours, theirs)
    return Table(pd.DataFrame(rows, columns=header), ours.join(beside.add_prefix("published_")), missing), {
        "cells": f" {digits}." if exact else "", "came": f": {digits}" if exact else match,
        "rule": PAPER.phrases["stream" if "logistic" in target.problem else "keyed"],
        "seeds": span(ours["seeds"]), "setting": setting(target), "cap": most_iterations(context, target.artefact),
    }  # fmt: skip


@each(PAPER.artefact(f"table{t.hessians}", section="hessians", target=t) for t in TARGETS if t.hessians)
def hessians(context: Context, target: LossTable) -> WithWords:
    """Tables 6, 8, 10 and 12: Hessians evaluated in the runs of the table of losses before."""
    quantity = "hessian_evaluations"
    ours, theirs = compared(context, target, quantity), compared(context, target, quantity, PUBLISHED)
    rows = [
        [
            *names,
            mean_std(paper.paper_mean, paper.paper_std, 1) + ("" if paper.paper_terminated else " ×"),
            count_std(other.hessian_evaluations, other.hessian_evaluations_std),
            count_std(row.hessian_evaluations, row.hessian_evaluations_std),
            count_std(row.iterations, row.iterations_std),
        ]
        for names, row, paper, other in paired(ours, theirs)
    ]
    header = ["method", "ε", "paper", "published setting", "proven ε", "iterations"]
    missing = gaps(context, target, ours, theirs)
    return Table(pd.DataFrame(rows, columns=header), ours, missing), {
        "seeds": span(ours["seeds"]), "setting": setting(target), "cap": most_iterations(context, target.artefact),
    }  # fmt: skip


@PAPER.artefact("misprints")
def misprints(context: Context) -> WithWords:
    """Errata that are no statement of privacy, each with what our runs by the published stream show of it."""
    runs = {
        t.table: select(finished(context, t.artefact, timed=0), variant=PUBLISHED).assign(table=t.table)
        for t in TARGETS[:4]
    }
    everything = pd.concat(runs.values())
    outcomes = judged(context)

    def exact(*tables: int) -> str:
        words = [one.outcome.word for (table, _, _), one in outcomes.items() if table in tables]
        return f"{words.count(EXACT)} of {len(words)}"

    def lost(table: int, epsilon: float) -> str:
        mine = select(runs[table], algorithm="2opt-ls", epsilon=epsilon)
        gone = mine["ending"].eq(CRASHED)
        left = ", ".join(f"{value:.4f}" for value in mine.loc[~gone, "objective"])
        return f"{gone.sum()} of {len(mine)} runs lost" + (f"; the others end at {left}" if left else "")

    # The published search for ρ stops at its bound, so ε does not enter: the three columns are one run.
    batches = select(everything, algorithm=["opt-b", "2opt-b"])
    copies = batches.groupby(["table", "algorithm", "seed"])["objective"].agg(["nunique", "size"])
    copies = copies[copies["size"].eq(len(EPSILONS))]
    watched = select(everything, algorithm=["opt", "opt-ls"])
    # A run that ends before its T without having terminated was stopped by the loss on all rows, which is not released.
    stopped = watched["ending"].ne(TERMINATED) & watched["iterations"].lt(watched["T"])
    rows = PAPER.table("misprints", {
        "exact": exact(3, 4), "lost3": lost(3, 0.2), "lost4": lost(4, 0.2), "lost4b": lost(4, 0.6),
        "alike": f"{copies['nunique'].eq(1).sum()} of {len(copies)}",
        "stopped": f"{stopped.sum()} of {len(watched)}",
    })  # fmt: skip
    missing = [
        context.gap(t.artefact, "published runs")
        for t in TARGETS[:4]
        if runs[t.table].empty and published_blocks(context, t)
    ]
    return Table(pd.DataFrame(rows), None, missing), {}


def paired(ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[tuple[list[str], Ours, Beside, Ours]]:
    """(method and ε, our cell, the paper's, our cell in `theirs`) of each row; a method's name is printed once."""
    previous = None
    both = (frames.records(ours, Ours), frames.records(ours, Beside), frames.records(theirs, Ours))
    for row, paper, other in zip(*both, strict=True):
        yield ["" if row.algorithm == previous else look(row.algorithm).label, f"{row.epsilon:g}"], row, paper, other
        previous = row.algorithm


def gaps(context: Context, target: LossTable, ours: pd.DataFrame, theirs: pd.DataFrame) -> list[str]:
    """A line per method that has cells without rows, and one for the published setting's."""
    gaps = [
        f"{look(algorithm).label} at ε = {', '.join(f'{e:g}' for e in part['epsilon'])}"
        for algorithm, part in ours[ours["seeds"].isna()].groupby("algorithm", sort=False)
    ]
    wanted = {(a, e) for b in published_blocks(context, target) for a in b.algorithms for e in b.epsilon}
    # The paper ran some methods at some ε only: a cell that no block asks for is no gap.
    empty = theirs[theirs["seeds"].isna()]
    lacking = {a for a, e in zip(empty["algorithm"], empty["epsilon"], strict=True) if (a, e) in wanted}
    if lacking:
        gaps.append(f"published setting: {', '.join(look(a).label for a in METHODS if a in lacking)}")
    return [context.gap(target.artefact, what) for what in gaps]


def published_blocks(context: Context, target: LossTable) -> list[Any]:
    """The blocks of the grid that a target's published runs come from."""
    return [block for block in context.blocks(target.artefact) if "rows" in block.settings]


def mean_std(mean: float, std: float, digits: int = 3) -> str:
    """ "0.712 ± 0.018"; without the deviation where there is only one value, "–" where there is none."""
    return plus_minus(mean, std, f",.{digits}f", f",.{digits}f")


def count_std(mean: float, std: float) -> str:
    """ "196.0 ± 115.7" of a count; "1,061" where all runs have the same."""
    return whole(mean) if std == 0 else mean_std(mean, std, 1)


def paper_loss(row: Beside) -> str:
    """What the paper prints in a cell of losses."""
    if math.isnan(row.paper_runs):
        return "–"
    if not row.paper_runs:
        return "<NA>"
    return mean_std(row.paper_mean, row.paper_std) + ("" if row.paper_terminated else " ×")


def our_loss(row: Ours) -> str:
    """Our mean as the paper would print it."""
    if math.isnan(row.seeds):
        return "–"
    if row.crashed == row.seeds:
        return "<NA>"
    ended = "" if row.terminated == row.seeds - row.crashed else " ×"
    lost = f" ({row.crashed:.0f} lost)" if row.crashed else ""
    return mean_std(row.loss, row.loss_std) + ended + lost


def survival(verdict: Judged | None) -> str:
    """Whether a published value survives at a proven ε, in words."""
    if verdict is None:
        return "–"
    if not verdict.by:
        return verdict.survival or "–"
    if verdict.by == verdict.value.switches:
        return f"{verdict.survival}: all {len(verdict.by)} switches, not attributed"
    return f"{verdict.survival}: {' + '.join(verdict.by)}"


def whole(value: float) -> str:
    """A number without decimals, as a cell."""
    return "–" if math.isnan(value) else f"{value:,.0f}"
