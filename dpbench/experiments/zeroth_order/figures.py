"""The figures of zeroth_order: none is in the paper, each tests a theorem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.zeroth_order.study import (
    DELTA,
    FLOORS,
    METHODS,
    SETTING,
    TEST,
    TITLES,
    Method,
    dimension_of,
    failed_shares,
    first_term,
    over_seeds,
    rho_of,
    studied,
)
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, curve, joined
from dpbench.study.statistics import span
from dpbench.study.style import BLACK, BLUE, GREY, ORANGE, RED, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIMENSION_LOOKS = {"phase-5": (BLUE, "o", 4), "phase-20": (ORANGE, "s", 7), "phase-100": (RED, "D", 11)}
STATIONARITY = r"$\Vert\nabla F(w)\Vert_{2\delta}$, measured"


@artefact("estimators", f"Variance of GRAD and DIFF ({TEST} Lemmas 3.1 and 3.2)")
def estimators(context: Context) -> Figure:
    """Variance of GRAD against b and of DIFF against ‖x - y‖/δ beside the bounds of Lemmas 3.1 and 3.2; and bias."""
    rows = studied(context, "estimators")
    page = Panels(context, "estimators", 3, columns=3, size=(3.4, 3.6))
    if "set.directions" in rows:
        rows = rows[rows["set.directions"].isna()]
    panels = [
        ("GRAD: variance", "grad", "variance", "set.b", "b (rows)"),
        ("DIFF: variance, b = 1", "diff", "variance", "set.distance", "‖x − y‖ / δ"),
    ]
    tables = []
    for axis, (title, estimator, quantity, x, label) in page.over(panels, title=lambda panel: panel[0]):
        if page.empty(axis, rows, "estimators"):
            continue
        part = rows[rows["set.estimator"].eq(estimator) & rows["set.quantity"].eq(quantity)]
        table = over_seeds(part, ["problem", x]).merge(part.groupby(["problem", x])["bound"].first().reset_index())
        tables.append(table.rename(columns={x: "x"}).assign(panel=title))
        for problem, line in table.groupby("problem"):
            colour, marker, size = DIMENSION_LOOKS[str(problem)]
            d = str(problem).removeprefix("phase-")
            axis.plot(
                line[x], line["mean"], "-", color=colour, marker=marker, ms=size, mfc="none", label=f"measured, d = {d}"
            )
            axis.plot(line[x], line["bound"], ":", color=colour, label=f"bound, d = {d}")
        _log(axis, label, "E‖estimate − mean‖²")
    _bias(page.axes[0, 2], rows)
    caption = (
        "Left and middle: measured variance of GRAD and DIFF, beside the bounds of Lemmas 3.1 and 3.2 (dotted). Right: "
        "bias in units of the Monte-Carlo error; about 1 means unbiased."
    )
    method = (
        "Not in the paper: a test of its Lemmas 3.1 and 3.2. Left and middle: the variance of GRAD and DIFF, "
        "averaged over starts x (d directions for each row, rows drawn with replacement, δ = 0.1). Dotted: the "
        "bounds of the lemmas, 16dL²/b and 16dL²‖x−y‖²/(bδ²), with L = 1. Right: the bias ‖mean of the draws − ∇F̂‖ "
        "over what Monte-Carlo error alone would give; an unbiased estimator has about 1. ∇F̂ is computed from "
        f"gradients in the ball. {_draws(rows)}Problem: phase retrieval, n = 100,000. The figure looks at the data, "
        "so it is not private."
    )
    return page.figure(caption, joined(tables), method=method)


def _bias(axis: Axes, rows: pd.DataFrame) -> None:
    axis.set_title("bias over Monte-Carlo error")
    if rows.empty:
        return
    part = rows[rows["set.quantity"].eq("bias")]
    for problem, line in part.groupby("problem"):
        colour, marker, _ = DIMENSION_LOOKS[str(problem)]
        for i, estimator in enumerate(("grad", "diff")):
            ratio = (line["measured"] / line["measured_error"])[line["set.estimator"].eq(estimator)]
            place = i + {"phase-5": -0.2, "phase-20": 0, "phase-100": 0.2}[str(problem)]
            axis.plot(np.full(len(ratio), place), ratio, marker, color=colour, alpha=0.6, ls="none")
    axis.axhline(1, color=GREY, lw=1)
    axis.set_xticks([0, 1], ["GRAD", "DIFF"])
    axis.set(ylim=(0, None), ylabel="‖mean − ∇F̂‖ / expected")


@artefact("tree_noise", f"Noise of the tree and naive noise ({TEST} Corollary 4.5)")
def tree_noise(context: Context) -> Figure:
    """E‖TREE(t)‖² against t and against T, beside naive noise at the same M, K, T."""
    rows = studied(context, "tree_noise")
    page = Panels(context, "tree_noise", 2, columns=2, size=(4.2, 3.6))
    tables = []
    longest = 1024
    panels = [
        ("set.t", rows[rows["set.T"].eq(longest)] if len(rows) else rows),
        ("set.T", rows[rows["set.t"].eq(rows["set.T"] - 1)] if len(rows) else rows),
    ]
    for axis, (x, part) in page.over(panels):
        if page.empty(axis, part, "tree_noise"):
            continue
        table = part.sort_values(x)[["set.mechanism", "set.T", "set.t", "measured", "measured_error", "bound"]]
        tables.append(table)
        for mechanism in ("tree", "naive"):
            line, style = table[table["set.mechanism"].eq(mechanism)], look(f"o2nc-{mechanism}")
            ls = "-" if x == "set.T" or mechanism == "naive" else "none"  # |NODE(t)| jumps with t
            label = f"{style.label}, measured"
            axis.plot(line[x], line["measured"], ls=ls, color=style.colour, marker=style.marker, label=label)
            if mechanism == "tree":
                axis.plot(line[x], line["bound"], ":", color=style.colour, label="(⌊log₂ t⌋ + 1) dσ²")
        _log(axis, x.removeprefix("set."), "E‖noise in round t‖²")
    left, right = page.axes.flat
    left.set_title(f"T = {longest}")
    right.set_title("the noisiest round, t = T − 1")
    if len(rows):
        line = rows[rows["set.t"].eq(rows["set.T"] - 1) & rows["set.mechanism"].eq("tree")].sort_values("set.T")
        T = line["set.T"].to_numpy(float)
        last = line["measured"].to_numpy()[-1]
        right.plot(T, last * (T / T[-1]) ** -2, "--", color=GREY, lw=1, label="∝ T⁻²")
    caption = (
        "Mean squared noise that round t adds, by the tree and by the naive oracle at the same ε. Dotted: Corollary "
        "4.5. Dashed: the T⁻² that Section 4.1 states."
    )
    method = (
        "Not in the paper: a test of its Corollary 4.5, and of the T² reduction that Section 4.1 states (up to ln² "
        "T). A line is the mean squared norm of the noise that round t adds, over 1,000 draws (standard errors below "
        "3 %). ρ = 1, d = 5, L = 1. M, K and T are equal for both oracles, so the naive oracle has B = 2 rows per "
        f"round. The noise of both is set for the same ε. {SETTING}."
    )
    return page.figure(caption, joined(tables), legend=4, method=method, finding=_saved(rows, longest))


def _saved(rows: pd.DataFrame, T: int) -> str:
    """How much less noise the tree adds in the noisiest of T rounds, as a sentence; "" without rows of both."""
    if rows.empty:
        return ""
    last = rows[rows["set.T"].eq(T) & rows["set.t"].eq(T - 1)].groupby("set.mechanism")["measured"].mean()
    if not {"tree", "naive"} <= set(last.index):
        return ""
    ratio = last["naive"] / last["tree"]
    return f"In the noisiest of {T:,} rounds, the naive oracle adds {ratio:,.3g} times the tree's squared noise"


@artefact("stationarity", f"Stationarity against M ({TEST} Theorem 4.9)")
def stationarity(context: Context) -> Figure:
    """The measured ‖∇F(w)‖_{2δ} against M, a column per ρ and a row per problem."""
    caption = (
        "Mean stationarity measure of the output against M, the number of rows used; lower is better. Grey: the "
        "theorem's rate M^(−1/3). Black: the first term of its bound. Bands: ± 1 standard error."
    )
    method = (
        "Not in the paper: a test of its Theorem 4.9. A point is the mean of the measured ‖∇F(w)‖_2δ of the output w "
        f"over {{seeds}} seeds. Bands: ± 1 standard error. The measure is the norm of the smallest convex combination "
        "of gradients of F at points in the 2δ-ball around w. It is an upper estimate; its own error is in the table "
        "guarantee. Phase retrieval: δ = 0.1, start uniform on the unit sphere. a1a: δ = 0.5, n = 32,561, start N(0, "
        "I). Each row is used once. Private gradients, the first-order baseline: the same steps with noisy "
        "subgradients of one row each. Grey: M^(−1/3), the theorem's rate at ρ = ∞. Black: the first part 2(F + "
        "2Lδ)T/(δM) of the theorem's bound, cut off at the edge of the plot; the whole bound is larger (table "
        f"fractions). {SETTING}."
    )
    return _against_M(context, "stationarity", "measured", STATIONARITY, caption, rate=-1 / 3, method=method)


@artefact("objective", f"F against M ({TEST} Theorem 4.9)")
def objective(context: Context) -> Figure:
    """F at the output against M, of the same runs."""
    caption = (
        "Mean objective F of the output against M, the number of rows used. Bands: ± 1 standard error of the mean."
    )
    method = (
        "Not in the paper: the objective behind the test of its Theorem 4.9. A point is the mean F of the output "
        f"over {{seeds}} seeds, for the runs of the figure stationarity. F is computed on all n rows. Bands: ± 1 "
        f"standard error. {SETTING}."
    )
    return _against_M(context, "objective", "objective", "F(w)", caption, method=method)


def _against_M(
    context: Context, name: str, value: str, label: str, caption: str, rate: float | None = None, *, method: str
) -> Figure:
    rows = studied(context, name)
    problems = context.problems(name)
    private = {e for block in context.blocks(name) if "o2nc-tree" in block.algorithms for e in block.epsilon}
    rhos = sorted({round(rho_of(e), 3) for e in private}, reverse=True)
    count = len(problems) * len(rhos)
    page = Panels(context, name, count, columns=len(rhos), size=(3.3, 2.7), room=0.8, sharex="row", sharey="row")
    tables = {problem: _by_M(rows, problem, value) for problem in problems}
    for axis, (problem, rho) in page.over([(problem, rho) for problem in problems for rho in rhos]):
        table = tables[problem]
        if table.empty:
            if rho == rhos[0]:
                page.empty(axis, table, name)
            continue
        axis.set_title(f"{TITLES[problem]}, ρ = {rho:g}", fontsize=8.5)
        for solver, style in METHODS.items():
            line = table[table["algorithm"].eq(solver) & table["rho"].isin([rho, np.inf])]
            if len(line):
                curve(axis, line, "set.M", style, lw=1 if solver in FLOORS.values() else 1.5)
        hardly = table.loc[table["set.M"].eq(table["set.M"].min()), "mean"].max()
        axis.axhline(hardly, color=GREY, lw=0.8, label="about the start: runs that hardly move")
        if rate is not None:
            M = np.sort(table["set.M"].unique()).astype(float)
            top = table["mean"].max()
            axis.plot(M, top * (M / M[0]) ** rate, ":", color=GREY, lw=1, label="∝ $M^{-1/3}$")
            tree = rows[rows["problem"].eq(problem) & rows["algorithm"].eq("o2nc-tree") & rows["rho"].eq(rho)]
            least = first_term(tree).groupby(tree["set.M"]).first()
            axis.plot(least.index, least, "-.", color=BLACK, lw=1, label="first term of Theorem 4.9's bound (tree)")
        below, left = problem == problems[-1], rho == rhos[0]
        _log(axis, "M (rows used)" if below else "", label if left else "")
        if value == "objective":
            axis.set_yscale("linear")
        else:
            axis.set_ylim(None, 1.1 * (table["mean"] + table["se"].fillna(0)).max())
        ticks = sorted(table["set.M"].unique())
        axis.set_xticks(ticks, [f"{M:,.0f}" if np.log10(M) % 1 == 0 else "" for M in ticks])
        axis.set_xticks([], minor=True)
    drawn = joined([table for table in tables.values() if len(table)])
    seeds = span(drawn["seeds"]) if len(drawn) else "0"
    return page.figure(caption, drawn, legend=4, method=method.format(seeds=seeds))


def _by_M(rows: pd.DataFrame, problem: str, value: str) -> pd.DataFrame:
    panel = rows[rows["problem"].eq(problem)]
    return over_seeds(panel, ["problem", "algorithm", "rho", "set.M"], value) if len(panel) else panel


@artefact("privacy_for_free", f"Stationarity against ρ ({TEST} Theorem 4.9)")
def privacy_for_free(context: Context) -> Figure:
    """Runs that are not stationary, and F, against ρ at one M; the band is o2nc's, without noise."""
    rows = studied(context, "privacy_for_free")
    page = Panels(context, "privacy_for_free", 2, columns=2, size=(4.2, 3.5))
    by, tables = ["problem", "algorithm", "rho", "set.M"], []
    for axis, (value, label) in page.over([("measured", "share of runs not stationary"), ("objective", "F(w)")]):
        if page.empty(axis, rows, "privacy_for_free"):
            continue
        table = failed_shares(rows, by) if value == "measured" else over_seeds(rows, by, value)
        tables.append(table.assign(quantity=value))
        if value != "measured":
            table = table.assign(low=table["mean"] - table["se"], high=table["mean"] + table["se"])
        style = look("o2nc")
        floor = table[table["algorithm"].eq("o2nc")]
        for mean, low, high in zip(floor["mean"], floor["low"], floor["high"], strict=True):
            axis.axhline(mean, ls=style.line, color=style.colour, label=style.legend)
            axis.axhspan(low, high, color=style.colour, alpha=0.1, lw=0)
            if value == "measured":
                reached = rows.loc[rows["algorithm"].eq("o2nc"), "measured"].mean()
                axis.axvline(np.sqrt(5) * reached, color=GREY, lw=1, ls=":",
                             label="ρ = √d · (mean measure without noise)")  # fmt: skip
        for method, base in FLOORS.items():
            curve(axis, table[table["algorithm"].eq(method)], "rho", METHODS[method])
            line = table[table["algorithm"].eq(base)]
            if base != "o2nc" and len(line):
                style = METHODS[base]
                axis.axhline(line["mean"].iloc[0], ls=style.line, color=style.colour, lw=1, label=style.legend)
        _log(axis, "ρ", label)
        axis.set_yscale("linear")
        if value == "measured":
            axis.set_ylim(0, 1)
        top = axis.secondary_xaxis("top")
        epsilons = {rho: rho**2 / 2 + rho * np.sqrt(-2 * np.log(DELTA)) for rho in (0.1, 1, 10, 100)}
        top.set_xticks(list(epsilons), [f"ε = {e:,.2f}" if e < 10 else f"ε = {e:,.0f}" for e in epsilons.values()])
        top.tick_params(labelsize=7.5)
    M = f"{rows['set.M'].iloc[0]:,.0f}" if len(rows) else "–"
    seeds = f"{tables[0]['seeds'].max()}" if tables else "no"
    caption = (
        "Left: the share of runs that end far from stationary, with 95 % intervals; right: F, mean ± 1 standard error; "
        "against ρ (ε above). Dashed: without noise. Where a line meets its dashed one, privacy costs nothing."
    )
    method = (
        "Not in the paper: a test of “privacy for free” (Theorem 4.9 and Section 1.1). Problem: phase retrieval, d = "
        f"5, M = {M} of n = 100,000 rows, δ = 0.1. Left: the share of {seeds} runs whose ‖∇F(w)‖_2δ is 1e-6 or more, "
        "with its 95 % Clopper–Pearson interval; the measure has only two values, 0 and about 0.14. Right: F, mean ± "
        "1 standard error. Dashed: each of the three methods without noise. The theorem expects privacy to cost "
        f"nothing for ρ above √d times the stationarity reached, up to constants and logarithms. {SETTING}."
    )
    return page.figure(caption, joined(tables), legend=4, method=method)


@artefact("dimension", f"Stationarity against d ({TEST} Theorem 4.9)")
def dimension(context: Context) -> Figure:
    """Measured stationarity and F against d of problems that have the same F, for O2NC and the tree at one ρ."""
    rows = studied(context, "dimension")
    page = Panels(context, "dimension", 2, columns=2, size=(4.2, 3.3), room=0.5)
    tables = []
    for axis, (value, label) in page.over([("measured", STATIONARITY), ("objective", "F(w)")]):
        if page.empty(axis, rows, "dimension"):
            continue
        table = over_seeds(rows.assign(d=rows["problem"].map(dimension_of)), ["algorithm", "rho", "d"], value)
        tables.append(table.assign(quantity=value))
        for (method, rho), line in frames.groups(table, Method, sort=True):
            style = METHODS[method]
            curve(axis, line, "d", style, style.legend if np.isinf(rho) else f"{style.legend}, ρ = {rho:g}")
        _log(axis, "d", label)
        if value == "measured":
            d = np.sort(table["d"].unique()).astype(float)
            low = table.loc[table["rho"].eq(np.inf) & table["d"].eq(d[0]), "mean"]
            if len(low):
                axis.plot(d, low.iloc[0] * (d / d[0]) ** (1 / 3), ":", color=GREY, lw=1, label="∝ $d^{1/3}$")
        else:
            axis.set_yscale("linear")
        ticks = sorted(table["d"].unique())
        axis.set_xticks(ticks, [f"{d}" for d in ticks])
        axis.set_xticks([], minor=True)
    M = f"{rows['set.M'].iloc[0]:,.0f}" if len(rows) else "–"
    seeds = span(tables[0]["seeds"]) if tables else "no"
    caption = (
        "Measured stationarity and F against d, on problems that have the same F at every d. Dotted: d^(1/3). Bands: ± "
        "1 standard error of the mean."
    )
    method = (
        "Not in the paper: a test of what its Theorem 4.9 says about d. Phase retrieval in 5 coordinates; the others "
        "belong to the search space but occur in no row. So F, its start and δ = 0.1 are the same for every d. "
        f"Points are means over {seeds} seeds ± 1 standard error, with M = {M} of n = 100,000 rows. {SETTING}."
    )
    return page.figure(caption, joined(tables), legend=4, method=method)


def _log(axis: Axes, x: str, y: str) -> None:
    axis.set(xscale="log", yscale="log", xlabel=x, ylabel=y)


def _draws(rows: pd.DataFrame) -> str:
    if rows.empty:
        return ""
    return f"{rows['set.draws'].max():,.0f} draws at each of {rows['seed'].nunique()} starts. "
