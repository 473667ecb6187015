"""The figures of accelerated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpbench.experiments.accelerated import formulas
from dpbench.experiments.accelerated.errors import ALGORITHMS, FULL_BATCH, PRIVACY, PUBLIC, final_errors, mean_traces
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, band
from dpbench.study.statistics import listed, span
from dpbench.study.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, SKY, gap, legend_below, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Light to dark with T; thick to thin, so that equal curves (the -opt methods choose one T') all show.
T_LINES = {100: (SKY, 3.4), 200: (GREEN, 2.5), 500: (ORANGE, 1.8), 1000: (RED, 1.1)}
ROWS = (0.1, 1.0)  # the paper's c


@artefact("fig1", "Fig. 1: heavy ball on a quadratic: rate and error bound")
def fig1(context: Context) -> Figure:
    """ρ(α, β) of heavy ball, and the logarithm of Theorem 3.5's bound, on Q = diag(0.5, 1)."""
    import matplotlib.pyplot as plt

    betas, t = np.linspace(0, 0.99, 199), np.arange(1, 251)
    figure, axes = plt.subplots(3, 3, figsize=(9.0, 7.2), layout="constrained", sharex="row", sharey="row")
    data = []
    for (top, *below), factor in zip(axes.T, (0.1, 0.5, 1.0), strict=True):
        alpha = factor / formulas.L
        best = formulas.best_beta(alpha)
        rates = [formulas.rate(alpha, beta) for beta in betas]
        top.plot(betas, rates, color=BLACK)
        top.plot([best], [formulas.rate(alpha, best)], "o", color=RED)
        top.annotate(f"β = {best:.3f}", (best, formulas.rate(alpha, best)), xytext=(9, -4),
                     textcoords="offset points", color=RED)  # fmt: skip
        top.set(ylim=(0.2, 1.02), title=f"α = {factor:g}/L", xlabel="β")
        data += [{"alpha": alpha, "x": b, "quantity": "rho", "value": r} for b, r in zip(betas, rates, strict=True)]
        lines = [(0.0, "β = 0", BLACK, "-"), (0.3, "β = 0.3", BLUE, "--"), (0.7, "β = 0.7", GREEN, "-."),
                 (best, "β of the best rate", RED, "-")]  # fmt: skip
        for axis, c_w in zip(below, (1e-4, 1e-2), strict=True):
            for beta, label, colour, line in lines:
                values = np.log(formulas.error_bound(t, alpha, beta, c_w))
                axis.plot(t, values, line, color=colour, label=label)
                data += [
                    {"alpha": alpha, "beta": beta, "c_w": c_w, "x": x, "quantity": "log bound", "value": v}
                    for x, v in zip(t, values, strict=True)
                ]
            axis.set_xlabel("t")
    axes[0, 0].set_ylabel("rate ρ")
    axes[1, 0].set_ylabel("log bound, $c_w = 10^{-4}$")
    axes[2, 0].set_ylabel("log bound, $c_w = 10^{-2}$")
    legend_below(figure, axes[1], columns=4)
    caption = (
        "Heavy ball on a quadratic. Top: convergence rate ρ against β, the best β marked. Below: logarithm of the "
        "error bound after t iterations, for two noise levels. A formula: no runs."
    )
    method = (
        "A formula, no runs: heavy ball on a quadratic with Q = diag(0.5, 1). Top: the rate ρ of (3.18) against β; "
        "the mark is the best β = (1 - √(αμ))². Below: the natural logarithm of the bound of Theorem 3.5 after t "
        "iterations, with noise of standard deviation c_w·t, C_t = t and an initial term of 10. We drew what the "
        "text states. The published figure was drawn with μ = 0.1, the roots of Nesterov's method and β = (1 - "
        "√(αμ))/(1 + √(αμ)), so its curves differ."
    )
    return Figure(figure, pd.DataFrame(data), caption, method=method)


@artefact("fig2", "Fig. 2: optimal noise of the multistage method")
def fig2(context: Context) -> Figure:
    """b_t nε/S₁ of the multistage method with optimised budgets, for 2 to 5 stages."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.4, 3.5), layout="constrained")
    data = []
    colours = dict(zip(range(2, 6), (SKY, GREEN, ORANGE, RED), strict=True))
    for K, colour in colours.items():
        values = formulas.optimal_noise(K)
        t = np.arange(1, len(values) + 1)
        changes = 1 + np.flatnonzero(np.diff(values) > 0)  # within a stage the noise falls
        for stage_t, stage_values in zip(np.split(t, changes), np.split(values, changes), strict=True):
            axis.plot(stage_t, stage_values, color=colour)
        axis.annotate(f"K = {K}, T = {len(values)}", (t[-1], values[-1]), xytext=(5, 0), textcoords="offset points",
                      va="center", color=colour)  # fmt: skip
        data += [{"K": K, "t": a, "b_t n epsilon / S1": b} for a, b in zip(t, values, strict=True)]
    axis.set(yscale="log", xlim=(-5, 800), xlabel="t", ylabel="$b_t\\,n\\varepsilon/S_1$")
    caption = (
        "Laplace scale of iteration t that minimises the error bound over K stages. Within a stage the noise falls; a "
        "new stage starts with more. A formula: no runs."
    )
    method = (
        "A formula, no runs. A curve is the Laplace scale of iteration t, in units of S₁/(nε), that minimises the "
        "error bound of DP-MASG over K stages (Proposition 4.2 with Theorem 4.3). μ = 1, L = 20, p = 1, c = 1, m = "
        "n; the stages have 13, 40, 80, 160 and 320 iterations. Within a stage the noise falls. A new stage starts "
        "with more noise, because its step is smaller and passes less of it on. The ε of all iterations of a curve "
        "add up to the same total."
    )
    return Figure(figure, pd.DataFrame(data), caption, method=method)


@artefact(
    "fig3", "Fig. 3: error against iterations, m = n", name="fig3", batch="All n = 100,000 rows at each iteration"
)
@artefact(
    "fig4",
    "Fig. 4: error against iterations, m = 1,000",
    name="fig4",
    batch="At each iteration m = 1,000 of n = 100,000 rows without replacement",
)
def error_curves(context: Context, name: str, batch: str) -> Figure:
    """Mean F(x_t) - F*: a column per algorithm, a row per c, a line per T."""
    table = mean_traces(context, name)
    page = Panels(context, name, 2 * len(ALGORITHMS), columns=len(ALGORITHMS), size=(11.5 / 6, 2.45))
    for axis, (c, algorithm) in page.over([(c, algorithm) for c in ROWS for algorithm in ALGORITHMS]):
        axis.set_title(look(algorithm).label if c == ROWS[0] else "")
        panel = select(table, algorithm=algorithm, c=c)
        missing = ", ".join(f"{T:,}" for T in T_LINES if T not in set(panel["T_asked"]))
        where = f"{algorithm} at c = {c:g}, T = {missing}"
        if page.empty(axis, panel, where):
            continue
        if missing:
            page.note(where)
        for T, (colour, width) in T_LINES.items():
            curve(axis, select(panel, T_asked=T).sort_values("iteration"), colour, f"T = {T:,}", width)
        axis.set_yscale("log")
        axis.set(xlim=(-20, 1030), xticks=[0, 500, 1000], ylim=(min(5e-3, table["mean"].min() * 0.6), 50))
        axis.tick_params(labelleft=algorithm == ALGORITHMS[0])
    page.label("t", "")
    for axis, c in zip(page.axes[:, 0], ROWS, strict=True):
        axis.set_ylabel(f"c = {c:g}\nF($x_t$) − F*")
    start = f"Every curve starts at {select(table, iteration=0)['mean'].mean():.2f}. " if len(table) else ""
    caption = (
        "Mean error F(x_t) − F* at pure ε = 1: a column per method, a row per step size c, a line per T. Dots: the "
        "last iterate. Bands: ± 1 standard error of the mean."
    )
    method = (
        f"A line is the mean error F(x_t) - F* over {span(table['seeds'])} seeds, where F* is the certified optimum. "
        "Bands: ± 1 standard error of the mean. Dots: the last iterate. Each line is a run of T iterations, with the "
        "noise set for that T. The -opt methods stop at a T' ≤ T of their choice (table chosen_T); lines with the "
        f"same T' coincide. {batch}. Privacy: {PRIVACY}; {PUBLIC}. {start}The published curves start at 29.1, and "
        "their noise floors are about half as high: see noise_scale."
    )
    return page.figure(caption, table.drop(columns=["noise_scale"]), legend=4, method=method)


@artefact("noise_scale", "Laplace scale b beside the published code's b/√2")
def noise_scale(context: Context) -> Figure:
    """Both noise scales in one panel: why our noise floors are above the published ones."""
    table = mean_traces(context, "noise_scale")
    final = final_errors(context, "noise_scale")
    page = Panels(context, "noise_scale", 1, columns=1, size=(6.0, 3.9))
    (axis,) = page.axes.flat
    ratios = {}
    for algorithm in ALGORITHMS:
        style = look(algorithm)
        ours = select(table, algorithm=algorithm, noise_scale="laplace")
        theirs = select(table, algorithm=algorithm, noise_scale="as-published-code")
        if ours.empty or theirs.empty:
            page.note(algorithm)
            continue
        curve(axis, ours.sort_values("iteration"), style.colour, style.label, 1.6)
        curve(axis, theirs.sort_values("iteration"), style.colour, "", 1.6, "--")
        ends = select(final, algorithm=algorithm).set_index("noise_scale")["mean"]
        ratios[style.label] = ends["as-published-code"] / ends["laplace"]
    if ratios:
        axis.plot([], [], "-", color=GREY, label="scale b")
        axis.plot([], [], "--", color=GREY, label="scale b/√2, not ε-DP")
        axis.set(yscale="log", xlabel="t", ylabel="F($x_t$) − F*")
    else:
        gap(axis, context.why_missing("noise_scale"))
    T = "–" if final.empty else f"{final['T_asked'].iloc[0]:.0f}"
    flawed = select(final, noise_scale="as-published-code")["epsilon_planned"]
    real = f"spends ε = {flawed.max():.3f} instead of 1" if len(flawed) else "spends more than its ε"
    told = listed(ratios, digits=".2f", between="; ") or "no rows"
    caption = (
        f"Mean error with the Laplace scale b that ε = 1 needs (solid), and with the published code's b/√2 (dashed), "
        f"which {real}. Bands: ± 1 standard error of the mean."
    )
    method = (
        f"A line is the mean error over {span(table['seeds'])} seeds at T = {T}, c = 1, m = n = {FULL_BATCH:,}. "
        "Bands: ± 1 standard error of the mean. Solid: Laplace noise of scale b = S₁/(m ε₀), variance 2b². Dashed: "
        f"scale b/√2, as the published code draws it; it {real}, so it is not ε-DP and its rows are marked not "
        f"private. Final error, dashed over solid: {told}. Privacy: {PRIVACY}; {PUBLIC}."
    )
    between = " to ".join(f"{end:.2f}" for end in (min(ratios.values()), max(ratios.values()))) if ratios else ""
    said = f"With the published code's noise the final error is {between} times ours, and it {real}"
    return page.figure(caption, table, legend=4, method=method, finding=said if ratios else "")


def curve(axis: Axes, line: pd.DataFrame, colour: str, label: str, width: float, style: str = "-") -> None:
    """One mean curve with its band and a dot at its end."""
    axis.plot(line["iteration"], line["mean"], style, color=colour, lw=width, label=label)
    band(axis, line, "iteration", colour)
    axis.plot(line["iteration"].iloc[-1:], line["mean"].iloc[-1:], "o", color=colour, ms=width + 2)
