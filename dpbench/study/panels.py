"""Figures of panels: one loop for all, where a panel without rows shows its gap and the command that fills it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from dpbench.study.context import Context
from dpbench.study.output import Figure
from dpbench.study.style import Look, gap, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")
LOWEST = 0.05  # of the mean: a band that reaches zero ends here on a logarithmic axis


class Panels:
    """Panels of one artefact on a grid.

    page = Panels(context, "fig2", len(problems), columns=2, size=(3.4, 2.6), room=0.7)
    for axis, problem in page.over(problems, title=problem_title):
        panel = select(table, problem=problem)
        if page.empty(axis, panel, problem, problem):
            continue
        curve(axis, panel, "epsilon", look("dp-gd"))
    page.label("ε", "excess loss", scale="log")
    return page.figure(table)
    """

    def __init__(
        self,
        context: Context | None,
        artefact: str,
        count: int,
        *,
        columns: int,
        size: tuple[float, float],
        room: float = 0.0,
        **subplots: Any,
    ) -> None:
        """count panels of `size` inches in rows of `columns`; room: inches below them, for the legend.

        context: None where every panel has rows, so that no command for a gap is asked of it.
        """
        import matplotlib.pyplot as plt

        rows = -(-count // columns) or 1
        figsize = (size[0] * columns, size[1] * rows + room)
        self.context: Any = context
        self.artefact, self.count = artefact, count
        self.canvas, self.axes = plt.subplots(
            rows, columns, figsize=figsize, layout="constrained", squeeze=False, **subplots
        )
        self.gaps: list[str] = []
        self._absent: list[str] = []
        for axis in self.axes.flat[count:]:
            axis.set_visible(False)

    def over(self, names: Iterable[T], title: Callable[[T], str] | None = None) -> Iterator[tuple[Axes, T]]:
        """Each panel with what it shows, titled."""
        for axis, name in zip(self.axes.flat, names, strict=False):
            if title:
                axis.set_title(title(name))
            yield axis, name

    def empty(self, axis: Axes, rows: Sized, what: str, problem: str = "") -> bool:
        """Whether a panel has no rows: then it says so, and the figure's gaps name `what`; problem: whose data."""
        if len(rows):
            return False
        gap(axis, self.context.why_missing(self.artefact, problem))
        self.note(what)
        return True

    def note(self, what: str, *, panel: bool = False) -> None:
        """A gap in what is drawn, with the command that fills it; panel: of a whole panel, so the figure names it."""
        self.gaps.append(self.context.gap(self.artefact, what))
        self._absent += [what] * panel

    def label(self, x: str, y: str, *, scale: str = "") -> None:
        """x below the last row, y left of the first column; scale: "log" for both axes of the panels with rows."""
        for axis in self.axes[-1]:
            axis.set_xlabel(x)
        for axis in self.axes[:, 0]:
            axis.set_ylabel(y)
        for axis in self.axes.flat if scale else ():
            if axis.has_data():
                axis.set(xscale=scale, yscale=scale)

    def figure(self, data: pd.DataFrame, *, legend: int = 3) -> Figure:
        """The finished figure with a legend of so many columns below; its words come from words.md."""
        legend_below(self.canvas, self.axes.flat, columns=legend)
        if self._absent and self.canvas.legends:
            told = f"not drawn, as rows are missing: {', '.join(self._absent)}"
            # Where the legend is, so that the layout leaves room for it; as many letters as the figure is wide.
            told = textwrap.fill(told, int(17 * self.canvas.get_figwidth()))
            self.canvas.legends[0].set_title(told, {"size": 7})
        return Figure(self.canvas, data, self.gaps)


def band(axis: Axes, line: pd.DataFrame, x: str, colour: Any, alpha: float = 0.18) -> None:
    """± 1 standard error around the mean; the range where the line has columns `low` and `high`."""
    if {"low", "high"} <= set(line):
        low, high = line["low"], line["high"]
    else:
        low, high = (line["mean"] - line["se"]).clip(lower=line["mean"] * LOWEST), line["mean"] + line["se"]
    axis.fill_between(line[x], low, high, color=colour, alpha=alpha, lw=0)


def curve(axis: Axes, line: pd.DataFrame, x: str, style: Look, label: str | None = None, **drawn: Any) -> None:
    """The mean against x in an algorithm's look, with its band; label: its own by default; drawn: as in `plot`."""
    line = line.sort_values(x)
    drawn = {"color": style.colour, "marker": style.marker, "ls": style.line} | drawn
    axis.plot(line[x], line["mean"], label=style.legend if label is None else label, **drawn)
    band(axis, line, x, drawn["color"])


def joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """The tables below one another; an empty one for none."""
    return pd.concat(tables) if tables else pd.DataFrame()
