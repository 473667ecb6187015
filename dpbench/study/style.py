"""One look for every figure: one colour, marker and label per algorithm across the whole report."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.files import read_toml


class Look(NamedTuple):
    """How an algorithm is drawn. Not private: dashed line and a mark in the label."""

    label: str
    colour: str
    marker: str
    private: bool = True

    @property
    def line(self) -> str:
        return "-" if self.private else "--"

    @property
    def legend(self) -> str:
        return self.label if self.private else f"{self.label} (not private)"


_LOOKS = read_toml(Path(__file__).with_name("looks.toml"))
PALETTE: dict[str, str] = _LOOKS["palette"]
BLACK, GREY, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = PALETTE.values()
# Colour and marker, and what legends say where that is not the method's title.
LOOKS: dict[str, list[str]] = {name: [PALETTE[colour], *rest] for name, (colour, *rest) in _LOOKS["looks"].items()}

PLAIN = (1.1e-5, 2e5)  # logarithmic axes within it have plain numbers
# All others are written as they are named.
PROBLEM_TITLES = {"fmnist": "Fashion-MNIST"}


@functools.cache
def look(algorithm: str) -> Look:
    """The look of a registered algorithm; steady choices for one that the table does not know."""
    colours = (GREEN, PINK, YELLOW, GREY)
    # By its letters: Python's hash of a text is another one in each process.
    index = sum(algorithm.encode()) % 16
    colour, marker, *label = LOOKS.get(algorithm, (colours[index % 4], "PXh*"[index // 4]))
    try:
        method, fixed = algorithms.resolve(algorithm)
    except UserError:  # rows of a user's file, or of a package that is not installed here
        return Look(algorithm, colour, marker)
    private = method.private and not method.flaw(make_settings(method, fixed))
    return Look(label[0] if label else method.title or algorithm, colour, marker, private)


def problem_title(problem: str) -> str:
    """How figures and tables call a problem."""
    return PROBLEM_TITLES.get(problem, problem)


@contextmanager
def figure_style() -> Iterator[Any]:
    """Draw with the report's style, off screen, whatever the user's matplotlib is set to."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = matplotlib.rc_params_from_file(Path(__file__).with_name("report.mplstyle"), use_default_template=False)
    with plt.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **style}):
        yield plt
    plt.close("all")


def legend_below(figure: Figure, axes: Iterable[Axes], columns: int = 3) -> None:
    """One legend for all panels, under them, each label once; fewer columns where those are wider than the figure."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    for rows in range(max(1, -(-len(entries) // columns)), len(entries) + 1):
        ncols = -(-len(entries) // rows)  # so many lines fill them best
        legend = figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=ncols)
        if ncols == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()


def tick_alike(figure: Figure) -> None:
    """One style of logarithmic ticks: plain numbers, 1, 2 and 5 over less than two decades, else powers of ten alone.

    matplotlib's own changes with the range, to labels like 6 × 10⁻² between them. Beyond `PLAIN` numbers would be long
    and powers stay. So do ticks that a figure set.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter

    for axes in figure.axes:
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            own = isinstance(axis.get_major_formatter(), LogFormatterSciNotation)
            if axis.get_scale() != "log" or not own:
                continue
            axis.set_minor_formatter(NullFormatter())
            if max(ends) < 100 * min(ends):
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            if min(ends) >= PLAIN[0] and max(ends) <= PLAIN[1]:
                axis.set_major_formatter(FuncFormatter(plain))


def plain(value: float, _: int | None = None) -> str:
    """The label of a tick without a power of ten, down to 10⁻⁶.

    >>> plain(2e-05), plain(100.0)
    ('0.00002', '100')
    """
    return f"{value:.6f}".rstrip("0").rstrip(".")


def gap(axis: Axes, text: str) -> None:
    """A panel without rows: says why and how to fill it."""
    axis.set(xticks=[], yticks=[])
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set(visible=True, linestyle=":", color=GREY)
    text = text.replace(" --", "\n--")  # a command on one line is wider than a panel
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, color=GREY, fontsize=7, wrap=True)
