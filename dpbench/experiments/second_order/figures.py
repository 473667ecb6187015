"""The figures of second_order."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.tuning import best
from dpbench.report.output import Figure
from dpbench.report.style import gap, legend_below, look, problem_title


def fig2(context) -> Figure:
    """Excess loss at the tuned T against ε, a panel per data set; bands are ± 1 standard error over seeds."""
    return privacy_utility(context, "fig2", columns=2)


def privacy_utility(context, artefact: str, columns: int) -> Figure:
    """The privacy-utility panels of Figs. 2 and 6."""
    import matplotlib.pyplot as plt

    blocks = context.blocks(artefact)
    problems = list(dict.fromkeys(p for block in blocks for p in block.problems))
    algorithms = list(dict.fromkeys(a for block in blocks for a in block.algorithms))
    table = best(context.rows(artefact, timed=0))
    figure, axes = plt.subplots(
        -(-len(problems) // columns), columns, figsize=(3.4 * columns, 2.6 * -(-len(problems) // columns) + 0.7),
        layout="constrained", squeeze=False,
    )  # fmt: skip
    gaps = []
    for axis, problem in zip(axes.flat, problems, strict=False):
        axis.set_title(problem_title(problem))
        panel = table[table["problem"] == problem]
        if panel.empty:
            gap(axis, f"no rows yet\n{context.command(artefact)}")
            gaps.append(f"{problem}: {context.command(artefact)}")
            continue
        for algorithm in algorithms:
            line = panel[panel["algorithm"] == algorithm].sort_values("epsilon")
            line = line[np.isfinite(line["mean"])]
            style = look(algorithm)
            axis.plot(line["epsilon"], line["mean"], style.line, color=style.colour, marker=style.marker,
                      label=style.legend)  # fmt: skip
            low = np.maximum(line["mean"] - line["se"], line["mean"] * 0.05)
            axis.fill_between(line["epsilon"], low, line["mean"] + line["se"], color=style.colour, alpha=0.18, lw=0)
        axis.set_xscale("log")
        axis.set_yscale("log")
    for axis in axes[:, 0]:
        axis.set_ylabel("excess loss")
    for axis in axes[-1]:
        axis.set_xlabel("ε")
    for axis in axes.flat[len(problems) :]:
        axis.set_visible(False)
    legend_below(figure, axes.flat)
    seeds = sorted(table["seeds"].unique())
    caption = (
        f"Mean excess loss over {' to '.join(str(s) for s in {seeds[0], seeds[-1]}) if seeds else 'no'} seeds at the "
        "T with the lowest mean (tuning is non-private, as in the paper; the chosen T is in the table best_T); "
        "bands: ± 1 standard error of the mean. δ = n⁻², add/remove neighbours, n public, accounting bs16."
    )
    return Figure(figure, table.drop(columns=["settings"]), caption, gaps)


def fig5(context) -> Figure:
    """log(1 + eˣ) at x₀ with its second-order Taylor polynomial, the bound of Lemma 5.1, the smoothness bound."""
    import matplotlib.pyplot as plt
    import pandas as pd

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
    axis.set_ylim(-3, 14)
    axis.set_xlabel("x")
    axis.set_ylabel("value")
    legend_below(figure, [axis], columns=2)
    caption = (
        f"Three quadratics that touch log(1 + eˣ) at x₀ = {x0:g}. A formula: no rows. The bound of Lemma 5.1 lies "
        "between the function and the smoothness bound everywhere; the Taylor polynomial is no bound."
    )
    return Figure(figure, pd.DataFrame({"x": x} | curves), caption)


def logistic_approximations(x, x0: float) -> dict[str, np.ndarray]:
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
