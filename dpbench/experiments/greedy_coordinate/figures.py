"""The figures of greedy_coordinate."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.base import select
from dpbench.experiments.greedy_coordinate.study import (
    ACCOUNTING,
    ALGORITHMS,
    COVERED,
    L1,
    PAPER,
    PRIVACY,
    PUBLISHED,
    RULES,
    TITLES,
    TUNING,
    curves,
    facts,
    gaps,
    label,
    problems,
    seeds_in_words,
    style_of,
    tuned_runs,
)
from dpbench.report.output import Figure
from dpbench.report.style import GREY, PINK, gap, legend_below

FLOOR = 1e-6  # the lowest relative error drawn


def fig1(context) -> Figure:
    """Relative error against passes at the tuned settings."""
    runs = tuned_runs(context, "fig1")
    figure, axes = _panels(len(PAPER))
    table = curves(context, runs)
    algorithms = ("dp-gcd", "dp-cd", COVERED, "dp-sgd-1", PUBLISHED)
    draw(context, "fig1", axes, table, problems(runs), algorithms, "passes", "passes over the data")
    caption = _caption(table, "passes over the data: d iterations of DP-CD, n of DP-SGD, 1 of DP-GCD")
    caption += (
        f" {label(PUBLISHED)}: with the paper's selection noise, for which ε = 1 is not proved (table selection_error)."
    )
    return Figure(figure, table, caption, gaps(context, "fig1", runs, algorithms=algorithms))


def fig3(context) -> Figure:
    """The greedy rules beside DP-CD and DP-SGD on the L1 problems."""
    runs = tuned_runs(context, "fig3")
    algorithms = (*RULES, *ALGORITHMS[1:])
    figure, axes = _panels(len(L1), rows=1)
    table = curves(context, runs)
    draw(context, "fig3", axes, table, L1, algorithms, "passes", "passes over the data")
    caption = _caption(table, "passes over the data; DP-GCD with the rules GS-r, GS-s and GS-q, each tuned by itself")
    return Figure(figure, table, caption, gaps(context, "fig3", runs, L1, algorithms))


def fig4(context) -> Figure:
    """Fig. 1 against seconds."""
    runs = tuned_runs(context, "fig4", timed=True)
    figure, axes = _panels(len(PAPER))
    table = curves(context, runs)
    draw(context, "fig4", axes, table, problems(runs), ALGORITHMS, "seconds", "seconds")
    caption = _caption(
        table,
        "wall seconds of one core, each run alone on the machine, at the settings of Fig. 1 (median over seeds; the "
        "time that recording the curve takes is left out, that of calibrating and drawing the noise is not)",
    )
    return Figure(figure, table, caption, gaps(context, "fig4", runs))


def fig2(context) -> Figure:
    """Histograms of |w*_j| with the α of (α, 5)-quasi-sparsity."""
    import pandas as pd

    known = facts(context, "fig2")
    names = problems(pd.DataFrame({"problem": list(known)}))
    figure, axes = _panels(len(PAPER))
    data, missing = [], []
    for letter, axis, problem in zip("abcdefgh"[: len(names)], axes.flat, names, strict=True):
        axis.set_title(f"({letter}) {TITLES[problem]}")
        if problem not in known:
            missing.append(f"{problem}: {context.command('fig2')}")
            gap(axis, f"no rows yet\n{context.command('fig2')}")
            continue
        fact = known[problem]
        sizes = np.zeros(fact.d)
        sizes[: len(fact.nonzero)] = fact.nonzero
        counts, edges, _ = axis.hist(sizes, bins=30, color=GREY)
        alpha = fact.quasi_sparsity()
        axis.axvline(alpha, color=PINK, lw=1.8, label="α of (α, 5)-quasi-sparsity")
        axis.set_yscale("log")
        axis.set_ylim(0.6, fact.d * 2)
        axis.text(0.97, 0.93, f"α = {alpha:.3g}\n{len(fact.nonzero):,} of {fact.d:,} non-zero", ha="right", va="top",
                  transform=axis.transAxes, bbox={"fc": "white", "ec": "none", "pad": 2, "alpha": 0.9})  # fmt: skip
        axis.set_xlabel("$|w^*_j|$")
        data += [{"problem": problem, "from": a, "to": b, "coordinates": int(c), "alpha": alpha}
                 for a, b, c in zip(edges, edges[1:], counts, strict=False)]  # fmt: skip
    for axis in axes[:, 0]:
        axis.set_ylabel("coordinates")
    legend_below(figure, axes.flat)
    caption = (
        "Histograms of the absolute values of each problem's non-private optimum w* (30 equal bins, zeros included; "
        "log y). Line: α, the sixth largest |w*_j|: all but five coordinates are at most α, so w* is (α, "
        "5)-quasi-sparse. "
        "λ is not in the paper: L1's is the largest whose optimum has the published number of non-zeros, L2's the mean "
        "M_j over n (table1). Looks at the data: not private."
    )
    return Figure(figure, pd.DataFrame(data), caption, missing)


def draw(context, artefact, axes, table, names, algorithms, x, caption) -> None:
    """One panel per problem: mean and min-max band per algorithm, a marker where a run ends."""
    for letter, axis, problem in zip("abcdefgh"[: len(names)], axes.flat, names, strict=True):
        axis.set_title(f"({letter}) {TITLES[problem]}")
        panel = select(table, problem=problem)
        if panel.empty:
            gap(axis, f"no rows yet\n{context.command(artefact)}")
            continue
        for i, algorithm in enumerate(algorithms):
            line = select(panel, algorithm=algorithm).sort_values("iteration")
            if len(line):
                name = "DP-GCD, GS-r" if algorithm == "dp-gcd" and RULES[1] in algorithms else label(algorithm)
                _curve(axis, line, x, style_of(algorithm), name, zorder=3 - i / 10)
        _ordinate(axis, panel)
        _abscissa(axis, panel, x)
    for axis in axes[-1]:
        axis.set_xlabel(caption)
    for axis in axes[:, 0]:
        axis.set_ylabel("(f − f*) / f*")
    legend_below(figure=axes.flat[0].figure, axes=axes.flat, columns=5)


def _curve(axis, line, x, style, name, zorder) -> None:
    low, high = line["low"].clip(lower=FLOOR), line["high"]
    axis.plot(line[x], line["mean"], style.line, color=style.colour, label=name, zorder=zorder)
    axis.fill_between(line[x], low, high, color=style.colour, alpha=0.16, lw=0)
    axis.plot(line[x].iloc[-1:], line["mean"].iloc[-1:], style.marker, color=style.colour, ms=5.5, zorder=zorder + 1)


def _ordinate(axis, panel) -> None:
    """Logarithmic, with a little room; plain numbers where the panel spans less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    top = panel.loc[np.isfinite(panel["high"]), "high"].max()
    low = panel["low"].clip(lower=FLOOR).min()
    room = max((top / low) ** 0.06, 1.03)
    axis.set_yscale("log")
    axis.set_ylim(low / room, top * room)
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    if top / low < 20:
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 5, 7) if top / low < 3 else (1, 2, 3, 5)))
        axis.yaxis.set_minor_formatter(lambda value, _: "")
        axis.yaxis.set_major_formatter(plain)


def _abscissa(axis, panel, x) -> None:
    """Passes on a linear scale; seconds on a logarithmic one, from a tenth of a millisecond."""
    if x == "passes":
        axis.set_xlim(-0.02 * panel[x].max(), panel[x].max() * 1.05)
        return
    axis.set_xscale("symlog", linthresh=1e-3)
    axis.set_xlim(0, panel[x].max() * 1.3)


def _panels(count: int, rows: int = 2):
    import matplotlib.pyplot as plt

    columns = count // rows
    return plt.subplots(rows, columns, figsize=(11.2, 2.9 * rows + 0.4), layout="constrained", squeeze=False)


def _caption(table, x: str) -> str:
    return (
        "Relative error (f − f*)/f* to the exact non-private optimum f*: mean and range (lowest to highest, shaded) "
        f"over {seeds_in_words(table)} seeds, against {x}. Markers: where the run ends; a "
        f"level line is a setting that changes nothing, where none does better. Start w = 0. {PRIVACY}; accounting: "
        f"{ACCOUNTING}. {TUNING[0].upper()}{TUNING[1:]}."
    )
