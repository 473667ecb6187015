"""The tables of greedy_coordinate."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd

from dpbench.experiments.greedy_coordinate.study import (
    CD,
    DAGGER,
    DOUBLED,
    GCD,
    L1,
    LOOKS,
    METHODS,
    PRIVACY,
    PUBLISHED,
    SGD,
    STAND_INS,
    TITLES,
    TUNING,
    Final,
    facts,
    finals,
    gaps,
    problems,
    published_method,
    published_name,
    row_of,
    runs_at_published_settings,
    trust,
    tuned_runs,
)
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.grid import GridEntry
from dpbench.study.output import Table
from dpbench.study.statistics import capitalised, plus_minus, span
from dpbench.study.style import look

AS_PUBLISHED = (CD, SGD, DOUBLED, PUBLISHED)  # what runs at the hyperparameters of Table 4


@artefact("table1", "Table 1: sizes, and what the paper does not print")
def table1(context: Context) -> Table:
    """Sizes, λ and how sure it is, M_j, quasi-sparsity, non-zeros and start."""
    paper = context.experiment.published()
    known = facts(context, "table1")
    rows, data = [], []
    names = problems(pd.DataFrame({"problem": list(known)}))
    for problem in names:
        name = published_name(problem)
        n, d = paper["sizes"][name]
        recipe = paper["recipe"][name]
        theirs = [str(paper["nonzeros"].get(name, "")), f"{recipe['start']:g}" if "start" in recipe else "", n, d]
        words = f"{recipe['trust']}: {recipe['why']}"
        if problem not in known:
            rows.append([TITLES[problem], f"{n:,} × {d:,}", *["–"] * 5, theirs[0], "–", theirs[1], "–", words])
            continue
        fact = known[problem]
        ((kind, weight),) = fact.weights.items()
        mean, least, largest = fact.M
        alpha = fact.quasi_sparsity()
        rows.append([TITLES[problem], f"{n:,} × {d:,}", f"{fact.n:,} × {fact.d:,}", f"{weight:.4g} ({kind.upper()})",
                     f"{mean:.4g} [{least:.4g}, {largest:.4g}]", f"{alpha:.3g}", f"{fact.optimum:.5g}", theirs[0],
                     f"{len(fact.nonzero):,}", theirs[1], f"{fact.start:.3g}", words])  # fmt: skip
        data.append({"problem": problem, "n": fact.n, "d": fact.d, kind: weight, "M_mean": mean, "M_min": least,
                     "M_max": largest, "nonzero": len(fact.nonzero), "alpha5": alpha, "optimum": fact.optimum,
                     "start": fact.start, "published": recipe.get("start"), "trust": recipe["trust"]})  # fmt: skip
    caption = (
        "Size, constants, optimum and start of each problem, in the paper and here, and how sure the recipe is. The "
        "constants come from the data and count as public."
    )
    method = (
        "M: the coordinate constants M_j (with L2's λ), mean [smallest, largest]. α: the smallest α for which w* is "
        "(α, 5)-quasi-sparse. ‖w*‖₀: non-zeros of the optimum, published in Table 3 and computed here. start: the "
        "relative error (f(0) − f*)/f* of w = 0, published in Table 3 or in the first author's slides, and computed "
        "here. recipe: how sure we are that this is the paper's problem. λ, M_j and the standardisation come from "
        "the data and count as public."
    )
    header = ["problem", "paper", "here", "λ", "M", "α", "f*", "‖w*‖₀, paper", "‖w*‖₀", "start, paper", "start",
              "recipe"]  # fmt: skip
    missing = [context.gap("table1", p) for p in names if p not in known]
    missing += [
        f"{name}: {other} stands in; dpbench fetch {name}" for name, other in STAND_INS.items() if other in names
    ]
    return Table(pd.DataFrame(rows, columns=header), caption, pd.DataFrame(data), missing, method=method)


@artefact("table2", "Table 2: hyperparameter grids")
def table2(context: Context) -> Table:
    """The grid: published, and run here."""
    published = context.experiment.published()["grid"]
    done = set(context.runs["key"])
    rows = []
    for algorithm in (GCD, CD, SGD):
        sweeps = [block for block in context.blocks("table2") if algorithm in block.algorithms and block.sweep]
        thin = [block for block in sweeps if block.problems == ["dorothea"]]
        whole = [block for block in sweeps if block not in thin]
        for name, title in (("passes", "passes"), ("step", "step sizes"), ("clip", "clipping thresholds")):
            row = [look(algorithm).label, title, _in_words(published[algorithm][name])]
            rows.append([*row, _values(whole, name), _values(thin, name)])
    jobs = [job for job in context.jobs("table2") if job.sweep]
    found = sum(job.count for job in jobs if job.key in done)
    caption = (
        f"Hyperparameter grids: the paper's, and those of the {context.profile} profile. {found:,} of "
        f"{sum(job.count for job in jobs):,} runs of this grid are behind the choices of this report."
    )
    method = (
        f"Two grids are shown: the published one, and that of the {context.profile} profile over "
        f"{context.blocks('table2')[0].seeds} seeds. Ours is thinned to every third clipping threshold, and on "
        f"dorothea to fewer passes. {found:,} of the {sum(job.count for job in jobs):,} runs of this grid are behind "
        "the choices of this report. logspace values are rounded to 4 digits. Runs with the same passes and seed "
        "share their random numbers."
    )
    header = ["algorithm", "parameter", "paper", "here", "here, dorothea"]
    return Table(pd.DataFrame(rows, columns=header), caption, method=method)


def _values(blocks: list[GridEntry], name: str) -> str:
    return next((_in_words(block.settings[name]) for block in blocks), "")


def _in_words(values: Any) -> str:
    if isinstance(values, dict):
        low, high, count = values["logspace"]
        return f"logspace({low:g}, {high:g}, {count})"
    return ", ".join(f"{v:g}" for v in values)


def support_of(row: Final) -> str:
    """Mean counts of correct and incorrect non-zeros."""
    return f"{row.support_correct:.1f} / {row.support_wrong:.1f}"


@artefact("table3", "Table 3: support recovery")
def table3(context: Context) -> Table:
    """Support recovery on the L1 problems: published, at the published hyperparameters, and tuned."""
    paper = context.experiment.published()
    runs = tuned_runs(context, "table3")
    table, set_ = finals(runs), finals(runs_at_published_settings(context))
    rows = []
    for method, problem in itertools.product(METHODS, L1):
        correct, wrong, relative = paper["support"][problem][published_method(method)]
        names = [LOOKS[method].label, TITLES[problem], paper["nonzeros"][problem]]
        at, tuned = (row_of(one, problem, method) for one in (set_, table))
        there, here = (f"{support_of(one)} ({one.mean:.2g})" if one else "–" for one in (at, tuned))
        rest = [plus_minus(tuned.mean, tuned.se), f"{tuned.T:.0f}"] if tuned else ["–"] * 2
        rows.append([*names, f"{correct} / {wrong} ({relative:g})", there, here, *rest])
    caption = (
        "Coordinates found non-zero, rightly / wrongly, and relative error in brackets: published, at the paper's "
        "hyperparameters, and tuned here (so are the last two columns). †: the published noise, not private at ε = 1."
    )
    method = (
        "A cell has the coordinates correctly / incorrectly identified as non-zero, and in brackets the relative "
        "error (f − f*)/f*. First come the published values (5 runs). Then runs at the hyperparameters of the "
        "paper's Table 4, only for methods as published (see published_settings). Then runs tuned here, with "
        f"standard error and iterations. Our numbers are means over {span(table['seeds'])} seeds, so counts need not "
        f"be whole numbers. Privacy: {PRIVACY}. {DAGGER}. {capitalised(TUNING)}. {trust(context, L1)}."
    )
    header = ["algorithm", "problem", "‖w*‖₀", "paper", "at the paper's setting", "tuned", "relative error",
              "iterations"]  # fmt: skip
    return Table(
        pd.DataFrame(rows, columns=header), caption, plain(table), gaps(context, "table3", runs, L1), method=method
    )


@artefact("table4", "Table 4: chosen hyperparameters")
def table4(context: Context) -> Table:
    """The chosen hyperparameters, beside the published."""
    chosen = context.experiment.published()["chosen"]
    runs = tuned_runs(context, "table4")
    table, set_ = finals(runs), finals(runs_at_published_settings(context))
    rows = []
    for method, problem in itertools.product(METHODS, problems(runs)):
        passes, clip, step = chosen[published_name(problem)][published_method(method)]
        names = [LOOKS[method].label, TITLES[problem], f"{passes:g}", f"{clip:.3g}", f"{step:.3g}"]
        at, tuned = (row_of(one, problem, method) for one in (set_, table))
        there, here = (plus_minus(one.mean, one.se) if one else "–" for one in (at, tuned))
        best = select(table, problem=problem, algorithm=method)
        digits = {"passes": "g", "clip": ".3g", "step": ".3g"}
        ours = [f"{best[f'set.{name}'].iloc[0]:{form}}" if tuned else "–" for name, form in digits.items()]
        rows.append([*names, there, *ours, here])
    caption = (
        "The paper's hyperparameters and the relative error they give here, beside the best of our grid. ±: standard "
        "error. †: the published noise, not private at ε = 1."
    )
    method = (
        "The table has the hyperparameters of the paper with the relative error that they give here (only for "
        f"methods as published), and those with the lowest mean relative error over {span(table['seeds'])} seeds. ±: "
        f"the standard error. Privacy: {PRIVACY}. {DAGGER}. {capitalised(TUNING)}. Where two settings have about the "
        f"same error, chance decides between them. {trust(context)}."
    )
    header = ["algorithm", "problem", "passes, paper", "clip, paper", "step, paper", "error there", "passes", "clip",
              "step", "error"]  # fmt: skip
    return Table(
        pd.DataFrame(rows, columns=header), caption, plain(table), gaps(context, "table4", runs), method=method
    )


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

    within: whether the published mean of 5 runs is in the 95 % prediction interval that the spread of our seeds gives
    such a mean (Student's t), to half of its last printed digit; None where none is published. still: whether no run
    has moved from the start.
    """
    from scipy.stats import t

    paper, known = context.experiment.published(), facts(context, "published_settings")
    table = finals(select(runs_at_published_settings(context), algorithm=list(AS_PUBLISHED)))
    cells = list(zip(table["problem"], table["algorithm"], strict=True))
    published = np.array([published_end(paper, *cell) for cell in cells])
    starts = np.array([known[p].start if p in known else math.nan for p, _ in cells])
    slack = np.array([half_a_digit(value) if value > 0 else math.nan for value in published])
    seeds = table["seeds"].to_numpy(float)
    spread = table["se"].to_numpy(float) * np.sqrt(seeds) * np.sqrt(1 / seeds + 1 / paper["seeds"])
    near = np.abs(table["mean"].to_numpy(float) - published) <= t.ppf(0.975, seeds - 1) * spread + slack
    within = [None if math.isnan(value) else bool(one) for value, one in zip(published, near, strict=True)]
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


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """The table behind the strings, settings by their own names."""
    return table.drop(columns=["private"], errors="ignore").rename(columns=lambda name: name.removeprefix("set."))
