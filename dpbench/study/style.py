"""One look for every figure: one colour, marker and label per algorithm across the whole report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

from dpbench import algorithms
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

LOOKS = {
    "dp-gd": Look("DP-GD", BLACK, "o"),
    "dp-newton-hess-clip": Look("DP-Newton, hess clip", RED, "s"),
    "dp-newton-hess-add": Look("DP-Newton, hess add", ORANGE, "D"),
    "dp-newton-qu-clip": Look("DP-Newton, qu clip", BLUE, "^"),
    "dp-newton-qu-add": Look("DP-Newton, qu add", SKY, "v"),
    "dp-newton-minibatch-hess-clip": Look("DP-Newton minibatch, hess clip", RED, "P"),
    "dp-newton-minibatch-hess-add": Look("DP-Newton minibatch, hess add", ORANGE, "X"),
    "dp-newton-minibatch-qu-clip": Look("DP-Newton minibatch, qu clip", BLUE, "<"),
    "dp-newton-minibatch-qu-add": Look("DP-Newton minibatch, qu add", SKY, ">"),
    "dp-newton-general": Look("DP-Newton, general losses", PINK, "d"),
    "dp-gd-oracle": Look("DP-GD, oracle step", GREY, "h", private=False),
    "dp-sgd": Look("DP-SGD", GREEN, "p"),
    "damped-newton": Look("damped Newton", PINK, "*", private=False),
    "adassp": Look("AdaSSP", PINK, "p"),
    "dp-gd-last": Look("DP-GD, last iterate", GREY, "^"),
    "dp-mf": Look("DP-MF", SKY, "s"),
    "aop": Look("AOP (replace-one)", YELLOW, "H"),
    "cubic-newton": Look("cubic Newton", GREEN, "8"),
    "dp-accelerated-nesterov": Look("DP accelerated Nesterov", BLUE, "X"),
    "dp-gd-laplace": Look("DP-GD (Laplace)", BLACK, "D"),
    "dp-hb": Look("DP-HB", GREEN, "s"),
    "dp-nag": Look("DP-NAG", SKY, "^"),
    "dp-masg": Look("DP-MASG", ORANGE, "s"),
    "dp-nag-opt": Look("DP-NAG-opt", BLUE, "v"),
    "dp-masg-opt": Look("DP-MASG-opt", RED, "D"),
    "dp-gcd": Look("DP-GCD", RED, "o"),
    "dp-gcd-gs-s": Look("DP-GCD, GS-s", ORANGE, "^"),
    "dp-gcd-gs-q": Look("DP-GCD, GS-q", PINK, "v"),
    "dp-gcd-published": Look("DP-GCD, published selection", GREY, "P", private=False),
    "dp-cd": Look("DP-CD", BLUE, "p"),
    "dp-sgd-1": Look("DP-SGD, batch size 1", GREEN, "^"),
    "o2nc": Look("O2NC, no noise", BLACK, "P", private=False),
    "o2nc-tree": Look("O2NC-Tree", BLUE, "s"),
    "o2nc-naive": Look("O2NC-Naive", RED, "^"),
    "opt": Look("OPT", BLUE, "o"),
    "opt-b": Look("OPT-B", BLUE, "D"),
    "opt-ls": Look("OPT-LS", SKY, "X"),
    "2opt": Look("2OPT", RED, "p"),
    "2opt-b": Look("2OPT-B", RED, "v"),
    "2opt-ls": Look("2OPT-LS", ORANGE, "P"),
    "dp-tr": Look("DP-TR", GREEN, "h"),
    "dp-tr-b": Look("DP-TR-B", GREEN, "d"),
    "dp-gd-2ns": Look("DP-GD (2NS)", GREY, "s"),
    "probe-estimator": Look("probe of GRAD and DIFF", GREY, "x", private=False),
    "probe-optimum": Look("the optimum", GREY, "*", private=False),
    "probe-noise": Look("probe of the noise", GREY, "+", private=False),
}

PLAIN = (1.1e-5, 2e5)  # logarithmic axes within it have plain numbers
PROBLEM_TITLES = {"fmnist": "Fashion-MNIST"}

RC: dict[Any, Any] = {
    "figure.dpi": 100,
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


def look(algorithm: str) -> Look:
    """The look of a registered algorithm; title and steady choices for one this table does not know."""
    if algorithm in LOOKS:
        return LOOKS[algorithm]
    colours = (GREEN, PINK, YELLOW, GREY)
    index = sum(algorithm.encode()) % 16
    colour, marker = colours[index % 4], "PXh*"[index // 4]
    try:
        method, _ = algorithms.resolve(algorithm)
    except UserError:  # rows of a user's file, or of a package that is not installed here
        return Look(algorithm, colour, marker)
    return Look(method.title or algorithm, colour, marker, method.private)


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
