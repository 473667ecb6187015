"""The tables of accelerated."""

from __future__ import annotations

import math

import pandas as pd

from dpbench import frames
from dpbench.algorithms.momentum import AS_PUBLISHED
from dpbench.experiments.accelerated.errors import ALGORITHMS, FULL_BATCH, PRIVACY, PUBLIC, final_errors, runs_of
from dpbench.experiments.accelerated.formulas import published_code_T
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Table
from dpbench.study.statistics import Mean, excess, means, mostly_lowest, plus_minus, span
from dpbench.study.style import look


@artefact("best_errors", "Best final error of each algorithm")
def best_errors(context: Context) -> Table:
    """The lowest mean final error over T per (algorithm, m, c), its T and its standard error."""
    table = final_errors(context, "best_errors", pooled=True)
    best = table.loc[table.groupby(["algorithm", "m", "c"], sort=False)["mean"].idxmin()]
    columns = [(m, c) for m in sorted(set(table["m"]), reverse=True) for c in sorted(set(table["c"]))]
    rows, gaps = [], []
    for algorithm in ALGORITHMS:
        cells = []
        for m, c in columns:
            cell = select(best, algorithm=algorithm, m=m, c=c)
            if cell.empty:
                gaps.append(context.gap("best_errors", f"{algorithm} at m = {m:,.0f}, c = {c:g}"))
            ends = zip(frames.records(cell, Mean), cell["T"], strict=True)
            cells += [f"{plus_minus(one.mean, one.se)} (T = {T:.0f})" for one, T in ends] or ["–"]
        rows.append([look(algorithm).label, *cells])
    header = ["algorithm", *[f"{'m = n' if m == FULL_BATCH else f'm = {m:,.0f}'}, c = {c:g}" for m, c in columns]]
    if not columns:
        gaps = [context.gap("best_errors", "every row")]
    caption = (
        f"Lowest mean final error F(x_T) − F* over T ± its standard error, and that T, at pure ε = 1 with "
        f"n = {FULL_BATCH:,}. Choosing T by the error is not private."
    )
    method = (
        "Numbers are the lowest mean final error F(x_T) - F* over T = 100, 200, 500 and 1000, ± its standard error "
        f"over {span(best['seeds'])} seeds, and the T that gives it. For the -opt methods, T is the T' that they "
        "choose, and runs of all T with the same T' count together. We choose T by its error, which is not private. "
        f"n = {FULL_BATCH:,}. Privacy: {PRIVACY}; {PUBLIC}."
    )
    first = mostly_lowest(best, ["m", "c"])
    finding = f"{look(first[0]).label} has the lowest error in {first[1]} of {first[2]} columns (m, c)" if first else ""
    frame = pd.DataFrame(rows, columns=header)
    return Table(frame, caption, best.drop(columns="noise_scale"), gaps, method=method, finding=finding)


@artefact("chosen_T", "The number of iterations that the -opt methods choose")
def chosen_T(context: Context) -> Table:
    """T' of the -opt methods beside the published code's."""
    published = context.experiment.published()["chosen_T"]
    runs = select(runs_of(context, "chosen_T"), algorithm=["dp-nag-opt", "dp-masg-opt"])
    chosen = runs.groupby(["algorithm", "c", "T_asked"])["T"].agg(lambda T: ", ".join(str(v) for v in sorted(set(T))))
    rows, gaps = [], []
    asked = sorted(set(runs["T_asked"]))
    for algorithm in ("dp-nag-opt", "dp-masg-opt"):
        for c, theirs in zip(published["c"], published[algorithm], strict=True):
            cells = [chosen.get((algorithm, c, T), "–") for T in asked]
            coded = published_code_T(algorithm, c, 1000)
            if not any(cell != "–" for cell in cells):
                gaps.append(context.gap("chosen_T", f"{algorithm} at c = {c:g} is not in this profile's rows"))
            rows.append([look(algorithm).label, f"{c:g}", *cells, str(coded), str(theirs)])
    header = ["algorithm", "c", *[f"T = {T:,.0f}" for T in asked], "with the code's weights"]
    header.append("published code, T = 1,000")
    caption = (
        "T' ≤ T at which the -opt methods stop, by our bound and in the published code. With the code's weights, the "
        "same minimisation gives the code's T'."
    )
    method = (
        "T' ≤ T minimises the bound (4.6), with E₀ = 10 and the weights of (4.8). It is the same for m = n and m = "
        "1,000 (Remark 4.2). The published code has a factor 2 before E₀ and half the weight of the noise. With "
        "these weights, the same minimisation gives the code's T'."
    )
    return Table(pd.DataFrame(rows, columns=header), caption, gaps=gaps, method=method)


@artefact("published_curves", "Where the curves of Figs. 3 and 4 end: ours over theirs, by switch")
def published_curves(context: Context) -> Table:
    """Ratios of mean final errors on the authors' own draw, with nothing as published, each switch alone, and both."""
    table = ends(context)
    rows = []
    for (algorithm, m, c), part in table.groupby(["algorithm", "m", "c"], sort=False):
        at = "m = n" if m == FULL_BATCH else f"m = {m:,.0f}"
        for switches, cell in part.groupby("switches", sort=False):
            ratios = dict(zip(cell["T_asked"], cell["ratio"], strict=True))
            shown = [f"{ratios[T]:.2f}" if T in ratios else "–" for T in (100, 200, 500, 1000)]
            rows.append([look(algorithm).label, at, f"{c:g}", switches or "none", *shown])
    both = table[table["as_published"].astype(bool)]
    within = both["ratio"].astype(float).between(0.85, 1.15).sum()
    found = f"{within} of {len(both)} curves end within 15 % of the published ones" if len(both) else "No rows yet"
    caption = (
        "Our mean final error over the end of the published curve, for each switch of the authors' code; 1 is equal. "
        "“none”: the setting that keeps ε."
    )
    finding = f"{found}, once the code's switches are on" if len(both) else ""
    method = (
        f"{found}, with every switch of the authors' code on that the method has. Switches: noise (b_t is a standard "
        f"deviation, not a scale) and weights (T' by the code's own bound). We average {span(table['seeds'])} seeds "
        f"over the end of the published curve. Without the noise switch: {PRIVACY}."
    )
    header = ["algorithm", "m", "c", "switches", *[f"T = {T:,}" for T in (100, 200, 500, 1000)]]
    gaps = [] if len(both) == 96 else [context.gap("published_curves", f"{96 - len(both)} of 96 curves")]
    return Table(pd.DataFrame(rows, columns=header), caption, table, gaps, method=method, finding=finding)


def ends(context: Context) -> pd.DataFrame:
    """Mean final error per (algorithm, m, c, T, switches) beside the published end, and their ratio."""
    theirs = {
        (one["algorithm"], one["m"], one["c"], T): float(end)
        for one in context.experiment.published()["curves"]
        for T, end in zip((100, 200, 500, 1000), one["ends"], strict=True)
    }
    runs = runs_of(context, "published_curves")
    if runs.empty:
        return pd.DataFrame(columns=["algorithm", "m", "c", "T_asked", "switches", "ratio", "as_published", "seeds"])
    runs = runs.assign(excess=excess(runs), switches=switches_of(runs))
    by = ["algorithm", "m", "c", "T_asked", "switches"]
    table = means(runs, by).drop(columns="sd")
    published = [theirs.get(tuple(row), math.nan) for row in table[by[:4]].itertuples(index=False)]
    full = [
        names == full_set(algorithm) for algorithm, names in zip(table["algorithm"], table["switches"], strict=True)
    ]
    table = table.assign(published=published, ratio=table["mean"] / published, as_published=full)
    return table.dropna(subset=["published"]).reset_index(drop=True)


def switches_of(runs: pd.DataFrame) -> list[str]:
    """The switches that are on in each run: "", "noise", "weights" or "noise + weights"."""
    weights = runs["set.weights"] if "set.weights" in runs else pd.Series("paper", index=runs.index)
    on = zip(runs["noise_scale"].eq(AS_PUBLISHED), weights.eq(AS_PUBLISHED), strict=True)
    return [" + ".join(name for name, is_on in zip(("noise", "weights"), each, strict=True) if is_on) for each in on]


def full_set(algorithm: str) -> str:
    """The switches that make the published setting of a method."""
    return "noise + weights" if algorithm.endswith("-opt") else "noise"
