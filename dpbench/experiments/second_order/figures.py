"""The figures of second_order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpbench.experiments.second_order.rows import PAPER, at_zero, tuned
from dpbench.study.context import Context, select
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, curve
from dpbench.study.paper import WithWords
from dpbench.study.statistics import mostly_lowest, span
from dpbench.study.style import GREY, legend_below, look, problem_title
from dpbench.study.tuning import expand_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@PAPER.artefact("fig2", name="fig2")
@PAPER.artefact("fig6", name="fig6")
def privacy_utility(context: Context, name: str) -> WithWords:
    """Figs. 2 and 6: excess losses above, ratios to DP-GD's below."""
    algorithms = context.algorithms(name)
    rows = context.rows(name, timed=0)
    table, zero = tuned(rows), at_zero(rows)
    problems = context.problems(name)
    shown = [problem for problem in problems if problem in set(table["problem"])] or problems[:1]
    wide = max(len(shown), 2)  # room for the legend
    # Two panels a data set, the losses above and their ratios below; an empty one beside a single data set is hidden.
    page = Panels(context, name, 2 * wide, columns=wide, size=(2.6 if wide > 2 else 3.4, 2.5), room=0.8)
    for axis in page.axes[:, len(shown) :].flat:
        axis.set_visible(False)
    for problem in problems:
        if problem not in shown:
            page.note(problem)
    for (upper, problem), lower in zip(page.over(shown, title=problem_title), page.axes[1], strict=False):
        panel = select(table, problem=problem)
        if page.empty(upper, panel, problem, problem):
            continue
        _note_missing_points(page, upper, name, panel, problem)
        gd = select(panel, algorithm="dp-gd").set_index("epsilon")["mean"].sort_index()
        for algorithm in algorithms:
            line = select(panel, algorithm=algorithm)
            line = line[np.isfinite(line["mean"])]
            curve(upper, line, "epsilon", look(algorithm))
            base = line["epsilon"].map(gd)
            ratio = line.assign(mean=line["mean"] / base, se=line["se"] / base).dropna(subset=["mean"])
            if len(ratio):  # a panel of empty lines has no logarithmic axis
                curve(lower, ratio, "epsilon", look(algorithm), zorder=3 if algorithm == "dp-gd" else 2)
        nothing = zero.get(problem, np.nan)
        upper.axhline(nothing, color=GREY, lw=1, ls=":", label="w = 0 (no data used)")
        if len(gd):
            lower.plot(gd.index, nothing / gd, color=GREY, lw=1, ls=":")
        # Methods without privacy may lie decades below, and would squash those that are compared.
        private = panel[[look(algorithm).private for algorithm in panel["algorithm"]]]["mean"]
        private = private[np.isfinite(private)]
        if len(private):
            upper.set_ylim(private.min() / 2, max(private.max(), nothing) * 3)
        # One scale for all panels; a method that loses by more than this has lost.
        lower.set_ylim(0.3, 6)
    page.label("ε", "excess loss", scale="log")
    page.axes[1, 0].set_ylabel("excess loss / DP-GD's")
    for axis in page.axes[1]:
        axis.set_yticks([0.5, 1, 2, 5], ["0.5", "1", "2", "5"])
        axis.minorticks_off()
    relations = "δ = n⁻², n public, add/remove neighbours"
    if "aop" in algorithms:
        relations += " (AOP: replace-one, so its ε asks for more)"
    unprivate = [look(a).label for a in algorithms if not look(a).private]
    finding = _lowest(table)
    return page.figure(table.drop(columns=["settings"])), {
        "seeds": span(table["seeds"]),
        "relations": relations,
        "unprivate": f" Not private: {', '.join(unprivate)} (its step size looks at the data)." if unprivate else "",
        "found": bool(finding),
        "finding": finding,
    }


def _lowest(table: pd.DataFrame) -> str:
    """The private method with the lowest mean in at least half of the cells (data set, ε), as a sentence; or ""."""
    private = table["algorithm"].map(lambda name: look(name).private).astype(bool)
    first = mostly_lowest(table[private], ["problem", "epsilon"])
    if first is None:
        return ""
    name, count, cells = first
    return f"{look(name).label} has the lowest excess loss in {count} of {cells} cells (data set, ε)"


def _note_missing_points(page: Panels, axis: Axes, name: str, panel: pd.DataFrame, problem: str) -> None:
    """The points of the grid that have no rows yet: how many in the panel, which in the figure's gaps."""
    cells = {(a, e) for p, a, e in page.context.cells(name) if p == problem}
    missing = cells - set(zip(panel["algorithm"], panel["epsilon"], strict=True))
    for algorithm in dict.fromkeys(a for a, _ in sorted(missing)):
        epsilons = ", ".join(f"{e:g}" for e in sorted(e for a, e in missing if a == algorithm))
        page.note(f"{look(algorithm).label} on {problem} at ε = {epsilons}")
    if missing:
        told = f"{len(cells) - len(missing)} of {len(cells)} points have rows"
        axis.text(0.02, 0.03, told, transform=axis.transAxes, fontsize=6.5, color=GREY)


@PAPER.artefact("c5")
def c5(context: Context) -> WithWords:
    """DP-GD with other learning rates: excess loss at the tuned T against ε, a line per step."""
    import matplotlib.pyplot as plt

    problems = context.problems("c5")
    steps = sorted({s for block in context.blocks("c5") for s in block.settings["step"]})
    longest = max(T for block in context.blocks("c5") for T in block.values("T"))
    rows = expand_settings(context.rows("c5", timed=0))
    by_step = {step: select(rows, **{"set.step": step}) if len(rows) else rows for step in steps}
    table = pd.concat([tuned(part).assign(step=step) for step, part in by_step.items()], ignore_index=True)
    page = Panels(context, "c5", len(problems), columns=len(problems), size=(2.5, 2.5), room=0.6)
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(steps)))
    for axis, problem in page.over(problems, title=problem_title):
        panel = select(table, problem=problem)
        if page.empty(axis, panel, problem, problem):
            continue
        for step, colour, marker in zip(steps, colours, "osD^v<>ph*", strict=False):
            line = select(panel, step=step)
            label = f"step {step:g}" + (" = 1/smoothness" if step == 4 else "")
            curve(axis, line, "epsilon", look("dp-gd"), label, color=colour, marker=marker)
            ended = line[line["at_end"] == "largest"]
            axis.plot(ended["epsilon"], ended["mean"], ls="", marker=marker, mfc="white", mec=colour)
    page.label("ε", "excess loss", scale="log")
    first = mostly_lowest(table, ["problem", "epsilon"], who="step")
    rate = f"{first[0]:g} in {first[1]} of {first[2]} cells (data set, ε)" if first else ""
    return page.figure(table.drop(columns=["settings"]), legend=5), {
        "seeds": span(table["seeds"]),
        "longest": longest,
        "found": bool(rate),
        **({"rate": rate} if rate else {}),
    }


@PAPER.artefact("fig5")
def fig5(context: Context) -> WithWords:
    """log(1 + eˣ) at x₀ with its second-order Taylor polynomial, the bound of Lemma 5.1, the smoothness bound."""
    import matplotlib.pyplot as plt

    x, x0 = np.linspace(-10, 10, 401), 3.0
    curves = logistic_approximations(x, x0)
    styles = {
        "log(1 + eˣ)": ("#000000", "-"),
        "Taylor, second order": ("#0072B2", ":"),
        "quadratic upper bound (Lemma 5.1)": ("#D55E00", "-"),
        "smoothness bound": ("#009E73", "--"),
    }
    figure, axis = plt.subplots(figsize=(4.6, 3.3), layout="constrained")
    for label, values in curves.items():
        colour, line = styles[label]
        axis.plot(x, values, line, color=colour, label=label, lw=2.2 if colour == "#000000" else 1.5)
    axis.plot([x0], [np.logaddexp(0, x0)], "o", color="#000000", ms=5)
    axis.annotate(f"x₀ = {x0:g}", (x0, np.logaddexp(0, x0)), xytext=(6, -12), textcoords="offset points")
    axis.set(ylim=(-3, 14), xlabel="x", ylabel="value")
    legend_below(figure, [axis], columns=2)
    return Figure(figure, pd.DataFrame({"x": x} | curves)), {"x0": x0}


def logistic_approximations(x: Any, x0: float) -> dict[str, np.ndarray]:
    """log(1+eˣ) and its quadratics around x₀: curvature σ'(x₀), tanh(x₀/2)/(2x₀) (Lemma 5.1), and 1/4."""
    value, slope = np.logaddexp(0, x0), 1 / (1 + np.exp(-x0))
    curvature = {
        "Taylor, second order": slope * (1 - slope),
        "quadratic upper bound (Lemma 5.1)": np.tanh(x0 / 2) / (2 * x0) if x0 else 0.25,
        "smoothness bound": 0.25,
    }
    step = np.asarray(x) - x0
    quadratics = {name: value + slope * step + c / 2 * step**2 for name, c in curvature.items()}
    return {"log(1 + eˣ)": np.logaddexp(0, x)} | quadratics
