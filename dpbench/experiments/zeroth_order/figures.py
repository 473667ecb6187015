"""The figures of zeroth_order: none is in the paper, each tests a theorem."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.zeroth_order.study import (
    ALGORITHMS,
    DELTA,
    RESOLUTION,
    SETTING,
    TITLES,
    means,
    rho_of,
    studied,
)
from dpbench.report.output import Figure
from dpbench.report.style import BLUE, GREY, ORANGE, RED, gap, legend_below, look

DIMENSION_LOOKS = {"phase-5": (BLUE, "o", 4), "phase-20": (ORANGE, "s", 7), "phase-100": (RED, "D", 11)}


def estimators(context) -> Figure:
    """Variance of GRAD against b and of DIFF against ‖x - y‖/δ beside the bounds of Lemmas 3.1 and 3.2; and bias."""
    import matplotlib.pyplot as plt

    rows = studied(context, "estimators")
    figure, axes = plt.subplots(1, 3, figsize=(10.2, 3.6), layout="constrained")
    panels = [
        ("GRAD: variance", "grad", "variance", "set.b", "b (rows)"),
        ("DIFF: variance, b = 1", "diff", "variance", "set.distance", "‖x − y‖ / δ"),
    ]
    gaps, tables = [], []
    for axis, (title, estimator, quantity, x, label) in zip(axes, panels, strict=False):
        axis.set_title(title)
        if rows.empty:
            gaps.append(_gap(context, axis, "estimators"))
            continue
        part = rows[rows["set.estimator"].eq(estimator) & rows["set.quantity"].eq(quantity)]
        table = means(part, ["problem", x]).merge(part.groupby(["problem", x])["bound"].first().reset_index())
        tables.append(table.rename(columns={x: "x"}).assign(panel=title))
        for problem, line in table.groupby("problem"):
            colour, marker, size = DIMENSION_LOOKS[problem]
            d = problem.removeprefix("phase-")
            axis.plot(
                line[x], line["mean"], "-", color=colour, marker=marker, ms=size, mfc="none", label=f"measured, d = {d}"
            )
            axis.plot(line[x], line["bound"], ":", color=colour, label=f"bound, d = {d}")
        _log(axis, label, "E‖estimate − mean‖²")
    _bias(axes[2], rows)
    legend_below(figure, axes[:2], columns=3)
    caption = (
        "Not in the paper: a test of its Lemmas 3.1 and 3.2. Left and middle: variance of GRAD and DIFF (d directions "
        "for each row, rows drawn with replacement, δ = 0.1), mean over starts x of sample variances; dotted: the "
        "lemmas' 16dL²/b and 16dL²‖x−y‖²/(bδ²), L = 1. Right: ‖mean of the draws − ∇F̂‖, ∇F̂ from gradients in the "
        "ball, over what Monte-Carlo error alone gives; 1 is expected of an unbiased estimator. "
        f"{_draws(rows)}Phase retrieval, n = 100,000. Looks at the data: not private."
    )
    return Figure(figure, _concat(tables), caption, gaps)


def _bias(axis, rows) -> None:
    axis.set_title("bias over Monte-Carlo error")
    if rows.empty:
        return
    part = rows[rows["set.quantity"].eq("bias")]
    for problem, line in part.groupby("problem"):
        colour, marker, _ = DIMENSION_LOOKS[problem]
        for i, estimator in enumerate(("grad", "diff")):
            ratio = (line["measured"] / line["measured_error"])[line["set.estimator"].eq(estimator)]
            place = i + {"phase-5": -0.2, "phase-20": 0, "phase-100": 0.2}[problem]
            axis.plot(np.full(len(ratio), place), ratio, marker, color=colour, alpha=0.6, ls="none")
    axis.axhline(1, color=GREY, lw=1)
    axis.set_xticks([0, 1], ["GRAD", "DIFF"])
    axis.set_ylim(0, None)
    axis.set_ylabel("‖mean − ∇F̂‖ / expected")


def tree_noise(context) -> Figure:
    """E‖TREE(t)‖² against t and against T, beside naive noise at the same M, K, T."""
    import matplotlib.pyplot as plt

    rows = studied(context, "tree_noise")
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    gaps, tables = [], []
    longest = 1024
    for axis, x, part in (
        (axes[0], "set.t", rows[rows["set.T"].eq(longest)] if len(rows) else rows),
        (axes[1], "set.T", rows[rows["set.t"].eq(rows["set.T"] - 1)] if len(rows) else rows),
    ):
        if part.empty:
            gaps.append(_gap(context, axis, "tree_noise"))
            continue
        table = part.sort_values(x)[["set.mechanism", "set.T", "set.t", "measured", "measured_error", "bound"]]
        tables.append(table)
        for mechanism in ("tree", "naive"):
            line, style = table[table["set.mechanism"].eq(mechanism)], look(f"o2nc-{mechanism}")
            joined = "-" if x == "set.T" or mechanism == "naive" else "none"  # |NODE(t)| jumps with t
            label = f"{style.label}, measured"
            axis.plot(line[x], line["measured"], ls=joined, color=style.colour, marker=style.marker, label=label)
            if mechanism == "tree":
                axis.plot(line[x], line["bound"], ":", color=style.colour, label="(⌊log₂ t⌋ + 1) dσ²")
        _log(axis, x.removeprefix("set."), "E‖noise in round t‖²")
    axes[0].set_title(f"T = {longest}")
    axes[1].set_title("the noisiest round, t = T − 1")
    if len(rows):
        line = rows[rows["set.t"].eq(rows["set.T"] - 1) & rows["set.mechanism"].eq("tree")].sort_values("set.T")
        T = line["set.T"].to_numpy(float)
        last = line["measured"].to_numpy()[-1]
        axes[1].plot(T, last * (T / T[-1]) ** -2, "--", color=GREY, lw=1, label="∝ T⁻²")
    legend_below(figure, axes, columns=4)
    caption = (
        "Not in the paper: a test of its Corollary 4.5 and of the T² reduction that Section 4.1 states (up to ln² T). "
        "Mean squared norm of the noise that round t adds, over 1,000 draws (standard errors: below 3 %), at ρ = 1, "
        " d = 5, L = 1 and equal M, K and T: the naive oracle then has B = 2 rows a round. Both are calibrated "
        f"to the same ε; {SETTING}."
    )
    return Figure(figure, _concat(tables), caption, gaps)


def stationarity(context) -> Figure:
    """The measured ‖∇F(w)‖_{2δ} against M, a column per ρ and a row per problem."""
    caption = (
        "Not in the paper: a test of its Theorem 4.9. Mean over {seeds} seeds of the measured ‖∇F(w)‖_2δ of the output "
        "w, bands ± 1 standard error: the norm of the least convex combination of gradients of F at points in the "
        "2δ-ball around w, an upper estimate (its own error is in the table guarantee). Phase retrieval: δ = 0.1, "
        "n = 100,000, start uniform on the unit sphere; a1a: δ = 0.5, n = 32,561, start 0, a kink of every row and so "
        "nearly stationary itself: runs that noise holds there measure low (see objective). Each row is used once. "
        f"Grey: M^(−1/3), the theorem's rate at ρ = ∞. {SETTING}."
    )
    return _against_M(context, "stationarity", "measured", "‖∇F(w)‖_2δ, measured", caption, rate=-1 / 3)


def objective(context) -> Figure:
    """F at the output against M, of the same runs."""
    caption = (
        "Not in the paper: the objective behind the test of its Theorem 4.9. Mean F of the output over {seeds} seeds, "
        f"bands ± 1 standard error, of the runs of the figure stationarity. F is that of all n rows. {SETTING}."
    )
    return _against_M(context, "objective", "objective", "F(w)", caption)


def _against_M(context, artefact, value, label, caption, rate=None) -> Figure:
    import matplotlib.pyplot as plt

    rows = studied(context, artefact)
    blocks = context.blocks(artefact)
    problems = list(dict.fromkeys(p for block in blocks for p in block.problems))
    private = {e for block in blocks if "o2nc-tree" in block.algorithms for e in block.epsilon}
    columns = sorted({round(rho_of(e), 3) for e in private}, reverse=True)
    figure, axes = plt.subplots(
        len(problems), len(columns), figsize=(3.1 * len(columns), 2.5 * len(problems) + 0.6),
        layout="constrained", squeeze=False, sharex="row", sharey="row",
    )  # fmt: skip
    gaps, tables = [], []
    for line_of_axes, problem in zip(axes, problems, strict=True):
        panel = rows[rows["problem"].eq(problem)]
        if panel.empty:
            gaps += [_gap(context, axis, artefact) for axis in line_of_axes[:1]]
            continue
        table = means(panel, ["problem", "algorithm", "rho", "set.M"], value)
        tables.append(table)
        for axis, rho in zip(line_of_axes, columns, strict=True):
            axis.set_title(f"{TITLES[problem]}, ρ = {rho:g}", fontsize=8.5)
            for algorithm in ALGORITHMS:
                line = table[table["algorithm"].eq(algorithm) & table["rho"].isin([rho, np.inf])]
                _line(axis, line, "set.M", algorithm)
            if rate is not None and len(line):
                M = np.sort(table["set.M"].unique()).astype(float)
                top = table["mean"].max()
                axis.plot(M, top * (M / M[0]) ** rate, ":", color=GREY, lw=1, label="∝ M^(−1/3)")
            below, left = problem == problems[-1], rho == columns[0]
            _log(axis, "M (rows used)" if below else "", label if left else "")
            if value == "objective":
                axis.set_yscale("linear")
            ticks = sorted(table["set.M"].unique())
            axis.set_xticks(ticks, [f"{M:,.0f}" for M in ticks], fontsize=7.5)
            axis.set_xticks([], minor=True)
    legend_below(figure, axes.flat, columns=4)
    seeds = _concat(tables)["seeds"] if tables else [0]
    span = f"{min(seeds)} to {max(seeds)}" if min(seeds) != max(seeds) else f"{max(seeds)}"
    return Figure(figure, _concat(tables), caption.format(seeds=span), gaps)


def privacy_for_free(context) -> Figure:
    """Measured stationarity and F against ρ at one M; the band is o2nc's, without noise."""
    import matplotlib.pyplot as plt

    rows = studied(context, "privacy_for_free")
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.5), layout="constrained")
    gaps, tables = [], []
    for axis, value, label in ((axes[0], "measured", "‖∇F(w)‖_2δ, measured"), (axes[1], "objective", "F(w)")):
        if rows.empty:
            gaps.append(_gap(context, axis, "privacy_for_free"))
            continue
        table = means(rows, ["problem", "algorithm", "rho", "set.M"], value)
        tables.append(table.assign(quantity=value))
        floor = table[table["algorithm"].eq("o2nc")]
        style = look("o2nc")
        for mean, se in zip(floor["mean"], floor["se"], strict=True):
            axis.axhline(mean, ls=style.line, color=style.colour, label=style.legend)
            axis.axhspan(mean - se, mean + se, color=style.colour, alpha=0.1, lw=0)
            if value == "measured":
                axis.axvline(np.sqrt(5) * mean, color=GREY, lw=1, ls=":", label="ρ = √d · (stationarity without noise)")
        for algorithm in ALGORITHMS[1:]:
            _line(axis, table[table["algorithm"].eq(algorithm)], "rho", algorithm)
        _log(axis, "ρ", label)
        if value == "measured":
            axis.set_ylim(RESOLUTION, None)
        else:
            axis.set_yscale("linear")
        top = axis.secondary_xaxis("top")
        epsilons = {rho: rho**2 / 2 + rho * np.sqrt(-2 * np.log(DELTA)) for rho in (0.1, 1, 10, 100)}
        top.set_xticks(list(epsilons), [f"ε = {e:,.2f}" if e < 10 else f"ε = {e:,.0f}" for e in epsilons.values()])
        top.tick_params(labelsize=7.5)
    legend_below(figure, axes, columns=4)
    M = f"{rows['set.M'].iloc[0]:,.0f}" if len(rows) else "–"
    seeds = f"{tables[0]['seeds'].max()}" if tables else "no"
    caption = (
        'Not in the paper: a test of "privacy for free" (Theorem 4.9 and Section 1.1). Phase retrieval, d = 5, '
        f"M = {M} of n = 100,000 rows, δ = 0.1: measured stationarity of the output and F, mean over {seeds} seeds ± 1 "
        "standard error; dashed: no noise. The theorem expects no cost for ρ above √d times the stationarity reached, "
        f"up to constants and logarithms. Values below 0.001, the measure's own error, are cut off. {SETTING}."
    )
    return Figure(figure, _concat(tables), caption, gaps)


def _line(axis, line, x: str, algorithm: str) -> None:
    style = look(algorithm)
    line = line.sort_values(x)
    axis.plot(line[x], line["mean"], style.line, color=style.colour, marker=style.marker, label=style.legend)
    low = np.maximum(line["mean"] - line["se"], line["mean"] * 0.05)
    axis.fill_between(line[x], low, line["mean"] + line["se"], color=style.colour, alpha=0.15, lw=0)


def _log(axis, x: str, y: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(x)
    axis.set_ylabel(y)


def _gap(context, axis, artefact: str) -> str:
    gap(axis, f"no rows yet\n{context.command(artefact)}")
    return f"{artefact}: {context.command(artefact)}"


def _draws(rows) -> str:
    if rows.empty:
        return ""
    return f"{rows['set.draws'].max():,.0f} draws at each of {rows['seed'].nunique()} starts. "


def _concat(tables):
    import pandas as pd

    return pd.concat(tables) if tables else pd.DataFrame()
