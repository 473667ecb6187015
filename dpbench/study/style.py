"""One look for every figure: one colour, marker and label per algorithm across the whole report."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError


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


# Okabe and Ito's colour-blind safe palette; families share a hue, markers tell their members apart.
BLACK, GREY, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (
    "#000000", "#777777", "#E69F00", "#56B4E9", "#009E73", "#D4B800", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip

# Colour and marker, and what legends say where that is not the method's title.
LOOKS: dict[str, tuple[str, str] | tuple[str, str, str]] = {
    "dp-gd": (BLACK, "o"),
    "dp-newton-hess-clip": (RED, "s", "DP-Newton, hess clip"),
    "dp-newton-hess-add": (ORANGE, "D", "DP-Newton, hess add"),
    "dp-newton-qu-clip": (BLUE, "^", "DP-Newton, qu clip"),
    "dp-newton-qu-add": (SKY, "v", "DP-Newton, qu add"),
    "dp-newton-minibatch-hess-clip": (RED, "P", "DP-Newton minibatch, hess clip"),
    "dp-newton-minibatch-hess-add": (ORANGE, "X", "DP-Newton minibatch, hess add"),
    "dp-newton-minibatch-qu-clip": (BLUE, "<", "DP-Newton minibatch, qu clip"),
    "dp-newton-minibatch-qu-add": (SKY, ">", "DP-Newton minibatch, qu add"),
    "dp-newton-general": (PINK, "d"),
    "dp-gd-oracle": (GREY, "h"),
    "dp-sgd": (GREEN, "p"),
    "damped-newton": (PINK, "*", "damped Newton"),
    "adassp": (PINK, "p"),
    "objpert": (RED, "*"),
    "output-perturbation": (GREY, "X"),
    "dp-chebyshev": (SKY, "*"),
    "dp-frank-wolfe": (BLACK, "X"),
    "dp-adam": (PINK, "P"),
    "tukey-em": (YELLOW, "*"),
    "bolt-on": (GREY, "D"),
    "dp-gd-quantile": (GREEN, "X"),
    "phased-erm": (PINK, "X"),
    "objpert-pure": (ORANGE, "*"),
    "boosted-ssp": (BLUE, "*"),
    "dp-gd-average": (GREEN, "*"),
    "dp-gd-last": (GREY, "^"),
    "dp-mf": (SKY, "s"),
    "aop": (YELLOW, "H", "AOP (replace-one)"),
    "cubic-newton": (GREEN, "8", "cubic Newton"),
    "dp-accelerated-nesterov": (BLUE, "X"),
    "dp-gd-laplace": (BLACK, "D"),
    "dp-hb": (GREEN, "s"),
    "dp-nag": (SKY, "^"),
    "dp-masg": (ORANGE, "s"),
    "dp-nag-opt": (BLUE, "v"),
    "dp-masg-opt": (RED, "D"),
    "dp-gcd": (RED, "o"),
    "dp-gcd-gs-s": (ORANGE, "^", "DP-GCD, GS-s"),
    "dp-gcd-gs-q": (PINK, "v", "DP-GCD, GS-q"),
    "dp-gcd-published": (GREY, "P", "DP-GCD, published selection"),
    "dp-cd": (BLUE, "p"),
    "dp-sgd-1": (GREEN, "^"),
    "o2nc": (BLACK, "P", "O2NC, no noise"),
    "o2nc-tree": (BLUE, "s"),
    "o2nc-naive": (RED, "^"),
    "opt": (BLUE, "o"),
    "opt-b": (BLUE, "D"),
    "opt-ls": (SKY, "X"),
    "2opt": (RED, "p"),
    "2opt-b": (RED, "v"),
    "2opt-ls": (ORANGE, "P"),
    "dp-tr": (GREEN, "h"),
    "dp-tr-b": (GREEN, "d"),
    "dp-gd-2ns": (GREY, "s"),
    "probe-estimator": (GREY, "x"),
    "probe-optimum": (GREY, "*"),
    "probe-noise": (GREY, "+"),
    "probe-sphere": (GREY, "o"),
    "probe-kinks": (GREY, "H"),
}

PLAIN = (1.1e-5, 2e5)  # logarithmic axes within it have plain numbers
PROBLEM_TITLES = {"fmnist": "Fashion-MNIST"}

RC: dict[Any, Any] = {
    "figure.dpi": 200,  # as saved: a figure is laid out once, by the widths of its texts at this resolution
    "savefig.dpi": 200,
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "dpbench",
    "svg.fonttype": "none",
}


@functools.cache
def look(algorithm: str) -> Look:
    """The look of a registered algorithm; steady choices for one that the table does not know."""
    colours = (GREEN, PINK, YELLOW, GREY)
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

    with plt.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **RC}):
        yield plt
    plt.close("all")


def legend_below(figure: Figure, axes: Iterable[Axes], columns: int = 3) -> None:
    """One legend for all panels, under them, each label once; fewer columns where those are wider than the figure."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    for ncols in range(min(columns, len(entries)), 0, -1):
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
