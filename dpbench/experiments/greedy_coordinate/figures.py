"""The figures of greedy_coordinate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpbench.experiments.greedy_coordinate.published import AS_PUBLISHED, at_published_settings
from dpbench.experiments.greedy_coordinate.rows import (
    CASES,
    CD,
    COVERED,
    GCD,
    L1,
    LOOKS,
    METHODS,
    PAPER,
    PROBLEMS,
    SGD,
    TIGHT,
    TITLES,
    curves,
    facts,
    finals,
    gaps,
    plain,
    problems,
    trust,
    tuned_runs,
)
from dpbench.study.context import Context, select
from dpbench.study.panels import Panels, band
from dpbench.study.paper import WithWords
from dpbench.study.statistics import mostly_lowest, span
from dpbench.study.style import BLACK, GREY, PINK, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

FLOOR = 1e-6  # the lowest relative error drawn
NEAR = 0.03  # of the longest run, and of the error of the start: who ends as near has not left it
TIMED = (CD, SGD, COVERED, GCD, TIGHT)
RULES = tuple(rule for case in CASES for rule in case.rules)


@PAPER.artefact("fig2")
def fig2(context: Context) -> WithWords:
    """|w*_j| with the α of (α, 5)-quasi-sparsity."""
    known = facts(context, "fig2")
    names = problems(pd.DataFrame({"problem": list(known)}))
    page = Panels(context, "fig2", len(names), columns=4, size=(2.8, 2.9), room=0.4)
    data = []
    for axis, problem in page.over(names, title=_lettered(names)):
        if page.empty(axis, known.keys() & {problem}, problem, problem):
            continue
        fact = known[problem]
        sizes = np.zeros(fact.d)
        sizes[: len(fact.nonzero)] = fact.nonzero
        counts, edges, _ = axis.hist(sizes, bins=30, color=GREY)
        alpha = fact.quasi_sparsity()
        axis.axvline(alpha, color=PINK, lw=1.8, label="α of (α, 5)-quasi-sparsity")
        axis.set(yscale="log", ylim=(0.6, fact.d * 2))
        axis.set_title(
            f"{axis.get_title()}\nα = {alpha:.3g}, {len(fact.nonzero):,} of {fact.d:,} non-zero", fontsize=8.5
        )
        data += [{"problem": problem, "from": a, "to": b, "coordinates": int(c), "alpha": alpha}
                 for a, b, c in zip(edges, edges[1:], counts, strict=False)]  # fmt: skip
    page.label("$|w^*_j|$", "coordinates")
    return page.figure(pd.DataFrame(data)), {"trust": trust(context)}


@PAPER.artefact("published_settings")
def published_settings(context: Context) -> WithWords:
    """Relative errors: published, at Table 4's hyperparameters with the published noise, and tuned."""
    table, tuned = at_published_settings(context), finals(tuned_runs(context, "table4"))
    known = facts(context, "published_settings")
    names = problems(table)
    page = Panels(context, "published_settings", len(names), columns=4, size=(2.8, 2.3), room=0.6)
    for axis, problem in page.over(names, title=TITLES.__getitem__):
        panel = select(table, problem=problem)
        if page.empty(axis, panel, problem, problem):
            continue
        for y, method in enumerate(AS_PUBLISHED):
            look = LOOKS[method]
            own = select(panel, algorithm=method)[["min", "max", "mean", "published"]]
            for low, high, mean, published in own.itertuples(index=False):
                axis.plot([max(low, FLOOR), high], [y, y], color=look.colour, lw=5, alpha=0.3)
                axis.plot(mean, y, look.marker, color=look.colour, label="at the paper's setting: mean, range")
                axis.plot(published, y, "|", color=BLACK, ms=13, mew=1.8, label="published")
            for mean in select(tuned, problem=problem, algorithm=method)["mean"]:
                axis.plot(mean, y - 0.28, ".", color=look.colour, label="tuned: mean")
        if problem in known:
            axis.axvline(known[problem].start, color=GREY, ls=":", lw=1, label="the start, w = 0")
        axis.set_yticks(range(len(AS_PUBLISHED)), [LOOKS[m].label.replace(" selection", "") for m in AS_PUBLISHED])
        axis.set(ylim=(-0.7, len(AS_PUBLISHED) - 0.4), xscale="log")
        _label(axis.xaxis, *axis.get_xlim())
        if axis not in page.axes[:, 0]:
            axis.set_yticklabels([])
    for axis in page.axes[-1]:
        axis.set_xlabel("(f − f*) / f*")
    figure = page.figure(plain(table), legend=4)
    figure.gaps = gaps(context, "published_settings", table, PROBLEMS, AS_PUBLISHED)
    return figure, {"seeds": span(table["seeds"]), "trust": trust(context)}


@PAPER.artefact("fig1", name="fig1", names=PROBLEMS, methods=METHODS, words="passes")
@PAPER.artefact("fig3", name="fig3", names=L1, methods=(CD, SGD, COVERED, *RULES), words="rules")
@PAPER.artefact("fig4", name="fig4", names=PROBLEMS, methods=TIMED, words="seconds")
def error_curves(
    context: Context, name: str, names: tuple[str, ...], methods: tuple[str, ...], words: str
) -> WithWords:
    """One panel per problem: mean and range per method, the start, and a marker where a run ends."""
    x = "seconds" if words == "seconds" else "passes"
    runs = tuned_runs(context, name, timed=x == "seconds")
    known, table = facts(context, name), curves(context, runs)
    # As wide as a page of print, where letters keep their size: three panels a row, or two of four.
    columns, size = (3, (2.4, 2.1)) if len(names) > 4 else (2, (3.6, 2.2))
    page = Panels(context, name, len(names), columns=columns, size=size, room=1.0)
    shown = problems(runs, names)
    for axis, problem in page.over(shown, title=_lettered(shown)):
        panel = select(table, problem=problem, algorithm=methods)
        if page.empty(axis, panel, problem, problem):
            continue
        lines = [(m, select(panel, algorithm=m).sort_values("iteration")) for m in methods]
        lines = [(method, line) for method, line in lines if len(line)]
        for i, (method, line) in enumerate(lines):
            look = LOOKS[method]
            axis.plot(line[x], line["mean"], look.line, color=look.colour, zorder=3 - i / 10)
            axis.plot([], [], look.line, color=look.colour, marker=look.marker, label=look.label)
            band(axis, line.assign(low=line["low"].clip(lower=FLOOR)), x, look.colour, alpha=0.13)
        start = known[problem].start if problem in known else panel["high"].max()
        axis.axhline(start, color=GREY, ls=":", lw=1, label="the start, w = 0")
        _abscissa(axis, panel, x)
        _ordinate(axis, panel, start)
        _ends(axis, [(LOOKS[m], line[x].iloc[-1], line["mean"].iloc[-1]) for m, line in lines], (panel[x].max(), start))
    page.label("seconds" if x == "seconds" else "passes over the data", "(f − f*) / f*")
    figure = page.figure(table, legend=4)
    figure.gaps = gaps(context, name, runs, names, methods)
    first = None if x == "seconds" or table.empty else _lowest(table)
    who, count, panels = first or ("", 0, 0)
    return figure, {
        "found": bool(first), "seeds": span(table["seeds"]), "x": PAPER.phrases[words],
        "against": "seconds" if x == "seconds" else "passes over the data", "trust": trust(context, names),
        "who": LOOKS[who].label if who else "", "count": count, "problems": panels,
    }  # fmt: skip


def _lowest(table: pd.DataFrame) -> tuple[str, int, int] | None:
    """Which private method ends lowest, on how many problems of how many."""
    private = table[[LOOKS[method].private for method in table["algorithm"]]]
    ends = private.sort_values("iteration").groupby(["problem", "algorithm"], sort=False).tail(1)
    return mostly_lowest(ends, ["problem"])


def _lettered(names: list[str]) -> Callable[[str], str]:
    """The title of a panel, with the letter it has in the paper."""
    return lambda problem: f"({'abcdefgh'[names.index(problem)]}) {TITLES[problem]}"


def _ends(axis: Axes, ends: list[tuple[Look, float, float]], stands: tuple[float, float]) -> None:
    """A marker per end; methods that end where they start are named instead, as their markers would be on one point.

    stands: the largest abscissa, and the error of the start.
    """
    still = []
    for look, x, y in ends:
        if x < NEAR * stands[0] and abs(y / stands[1] - 1) < NEAR:
            still.append(look.label)
        elif np.isfinite(y):
            axis.plot(x, max(y, FLOOR), look.marker, color=look.colour, mec="white", mew=0.7, ms=6.5, zorder=4,
                      clip_on=False)  # fmt: skip
    if still:
        words = ["at the start:", *still]
        axis.text(0.99, 0.02, "\n".join(words), transform=axis.transAxes, fontsize=6.5, color=GREY, ha="right")
        low, high = axis.get_ylim()  # and room below all curves and bands, 7 % of the axis for each line
        axis.set_ylim(low * (low / high) ** (0.07 * len(words) / (1 - 0.07 * len(words))))


def _ordinate(axis: Axes, panel: pd.DataFrame, start: float) -> None:
    """Logarithmic, with a little room; the start is in it."""
    finite = panel.loc[np.isfinite(panel["high"]), "high"]
    top, low = max(finite.max(), start), min(panel["low"].clip(lower=FLOOR).min(), start)
    room = max((top / low) ** 0.06, 1.03)
    axis.set(yscale="log", ylim=(low / room, top * room))
    _label(axis.yaxis, low / room, top * room)


def _label(axis: Axis, low: float, high: float) -> None:
    """Plain numbers at equal distances on a short logarithmic axis, where 1, 2 and 5 would leave one tick or none."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    if high < 10 * low:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())


def _abscissa(axis: Axes, panel: pd.DataFrame, x: str) -> None:
    """Passes on a linear scale; seconds on a logarithmic one, linear below a millisecond, with 0."""
    if x == "passes":
        axis.set_xlim(-0.02 * panel[x].max(), panel[x].max() * 1.05)
        return
    axis.set_xscale("symlog", linthresh=1e-3)
    axis.set_xlim(0, panel[x].max() * 1.3)
