"""The figures of second_order."""

from __future__ import annotations

import numpy as np

from dpbench import datasets
from dpbench.experiments.tuning import best, expand_settings
from dpbench.problems import catalogue
from dpbench.report.output import Figure
from dpbench.report.style import gap, legend_below, look, problem_title


def fig2(context) -> Figure:
    """Excess loss at the tuned T against ε, a panel per data set; bands are ± 1 standard error over seeds."""
    return privacy_utility(context, "fig2", columns=2)


def fig6(context) -> Figure:
    """Fig. 2 on the appendix's data sets."""
    return privacy_utility(context, "fig6", columns=2)


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
            gap(axis, why_missing(context, artefact, problem))
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
        private = panel[[look(algorithm).private for algorithm in panel["algorithm"]]]["mean"]
        private = private[np.isfinite(private)]
        if len(private):
            axis.set_ylim(private.min() / 2, private.max() * 3)
    for axis in axes[:, 0]:
        axis.set_ylabel("excess loss")
    for axis in axes[-1]:
        axis.set_xlabel("ε")
    for axis in axes.flat[len(problems) :]:
        axis.set_visible(False)
    legend_below(figure, axes.flat)
    relations = "δ = n⁻², n public, add/remove neighbours"
    if "aop" in algorithms:
        relations += " (AOP: replace-one, so its ε asks for more)"
    unprivate = [look(a).label for a in algorithms if not look(a).private]
    caption = (
        f"Mean excess loss over {_span(table['seeds'])} seeds at the T with the lowest mean (tuning is non-private, as "
        "in the paper; the chosen T is in the table best_T; AOP has none); bands: ± 1 standard error of the mean. "
        f"{relations}; accounting bs16, RDP for samples, (ε, δ) added up for AOP."
        + (f" Not private: {', '.join(unprivate)} (its step size looks at the data);" if unprivate else "")
        + (" where it is far above the others it leaves the panel." if unprivate else "")
    )
    return Figure(figure, table.drop(columns=["settings"]), caption, gaps)


def c5(context) -> Figure:
    """DP-GD with other learning rates: excess loss at the tuned T against ε, a line per step."""
    import matplotlib.pyplot as plt

    problems = list(dict.fromkeys(p for block in context.blocks("c5") for p in block.problems))
    steps = sorted({s for block in context.blocks("c5") for s in block.settings["step"]})
    table = best_by_step(context.rows("c5", timed=0), steps)
    figure, axes = plt.subplots(
        1, len(problems), figsize=(2.5 * len(problems), 3.1), layout="constrained", squeeze=False
    )
    colours, gaps = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(steps))), []
    for axis, problem in zip(axes.flat, problems, strict=True):
        axis.set_title(problem_title(problem))
        axis.set_xlabel("ε")
        panel = table[table["problem"] == problem]
        if panel.empty:
            gap(axis, why_missing(context, "c5", problem))
            gaps.append(f"{problem}: {context.command('c5')}")
            continue
        for step, colour, marker in zip(steps, colours, "osD^v<>ph*", strict=False):
            line = panel[panel["step"] == step].sort_values("epsilon")
            label = f"step {step:g}" + (" = 1/smoothness" if step == 4 else "")
            axis.plot(line["epsilon"], line["mean"], marker=marker, color=colour, label=label)
            axis.fill_between(line["epsilon"], line["mean"] - line["se"], line["mean"] + line["se"], color=colour,
                              alpha=0.18, lw=0)  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
    axes[0, 0].set_ylabel("excess loss")
    legend_below(figure, axes.flat, columns=5)
    caption = (
        f"DP-GD at other learning rates: mean excess loss over {_span(table['seeds'])} seeds at the T "
        "with the lowest mean for that step (tuned non-privately, on the same grid for all steps); bands: ± 1 standard "
        "error of the mean. δ = n⁻², add/remove neighbours, n public, accounting bs16."
    )
    return Figure(figure, table.drop(columns=["settings"]), caption, gaps)


def best_by_step(runs, steps):
    """The summary row with the lowest mean excess for each (problem, ε, step), with its `step`."""
    import pandas as pd

    if runs.empty:
        return best(runs).assign(step=[])
    runs = expand_settings(runs)
    return pd.concat([best(runs[runs["set.step"] == step]).assign(step=step) for step in steps], ignore_index=True)


def why_missing(context, artefact: str, problem: str) -> str:
    """What a panel without rows says: what is missing, and the commands that fill it."""
    dataset = catalogue.dataset_of(problem)
    if datasets.available(dataset):
        return f"no rows yet\n{context.command(artefact)}"
    return f"data not at hand\ndpbench fetch {dataset}\n{context.command(artefact)}"


def _span(counts) -> str:
    low, high = (min(counts), max(counts)) if len(counts) else (0, 0)
    return f"{low}" if low == high else f"{low} to {high}"


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
