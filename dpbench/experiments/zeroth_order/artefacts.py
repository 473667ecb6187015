"""The figures and tables of zeroth_order: none is in the paper, each tests a theorem."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.experiments.zeroth_order.rows import (
    DELTA,
    FLOORS,
    METHODS,
    PAPER,
    TITLES,
    failed_shares,
    failures,
    over_seeds,
    studied,
    whole_bound,
)
from dpbench.study.context import Context
from dpbench.study.output import Table, Words
from dpbench.study.panels import Panels, curve, joined
from dpbench.study.paper import WithWords
from dpbench.study.statistics import plus_minus
from dpbench.study.style import BLUE, GREY, ORANGE, RED, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIMENSION_LOOKS = {"phase-5": (BLUE, "o", 4), "phase-20": (ORANGE, "s", 7), "phase-100": (RED, "D", 11)}
LONGEST = 1024  # rounds of the left panel of tree_noise


@PAPER.artefact("estimators")
def estimators(context: Context) -> WithWords:
    """Variance of GRAD against b and of DIFF against ‖x - y‖/δ beside the bounds of Lemmas 3.1 and 3.2."""
    rows = studied(context, "estimators")
    page = Panels(context, "estimators", 2, columns=2, size=(4.2, 3.6))
    if "set.directions" in rows:
        rows = rows[rows["set.directions"].isna()]
    panels = [
        ("GRAD: variance", "grad", "set.b", "b (rows)"),
        ("DIFF: variance, b = 1", "diff", "set.distance", "‖x − y‖ / δ"),
    ]
    tables = []
    for axis, (title, estimator, x, label) in page.over(panels, title=lambda panel: panel[0]):
        if page.empty(axis, rows, "estimators"):
            continue
        part = rows[rows["set.estimator"].eq(estimator) & rows["set.quantity"].eq("variance")]
        table = over_seeds(part, ["problem", x]).merge(part.groupby(["problem", x])["bound"].first().reset_index())
        tables.append(table.rename(columns={x: "x"}).assign(panel=title))
        for problem, line in table.groupby("problem"):
            colour, marker, size = DIMENSION_LOOKS[str(problem)]
            d = str(problem).removeprefix("phase-")
            axis.plot(line[x], line["mean"], "-", color=colour, marker=marker, ms=size, mfc="none",
                      label=f"measured, d = {d}")  # fmt: skip
            axis.plot(line[x], line["bound"], ":", color=colour, label=f"bound, d = {d}")
        _log(axis, label, "E‖estimate − mean‖²")
    draws = f"{rows['set.draws'].max():,.0f} draws at each of {rows['seed'].nunique()} starts. " if len(rows) else ""
    return page.figure(joined(tables)), {"draws": draws}


@PAPER.artefact("tree_noise")
def tree_noise(context: Context) -> WithWords:
    """E‖TREE(t)‖² against t and against T, beside naive noise at the same M, K, T."""
    rows = studied(context, "tree_noise")
    page = Panels(context, "tree_noise", 2, columns=2, size=(4.2, 3.6))
    tables = []
    panels = [
        ("set.t", rows[rows["set.T"].eq(LONGEST)] if len(rows) else rows),
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
            axis.plot(line[x], line["measured"], ls=ls, color=style.colour, marker=style.marker,
                      label=f"{style.label}, measured")  # fmt: skip
            if mechanism == "tree":
                axis.plot(line[x], line["bound"], ":", color=style.colour, label="(⌊log₂ t⌋ + 1) dσ²")
        _log(axis, x.removeprefix("set."), "E‖noise in round t‖²")
    left, right = page.axes.flat
    left.set_title(f"T = {LONGEST}")
    right.set_title("the noisiest round, t = T − 1")
    if len(rows):
        line = rows[rows["set.t"].eq(rows["set.T"] - 1) & rows["set.mechanism"].eq("tree")].sort_values("set.T")
        T = line["set.T"].to_numpy(float)
        # Anchored at the last T, where the slope that is claimed should hold best.
        right.plot(T, line["measured"].to_numpy()[-1] * (T / T[-1]) ** -2, "--", color=GREY, lw=1, label="∝ T⁻²")
    return page.figure(joined(tables), legend=4), {}


@PAPER.artefact("fractions")
def fractions(context: Context) -> WithWords:
    """By method, ρ and M: failed runs with their interval, F, and the measure's mean beside the theorem's bound."""
    rows = studied(context, "fractions")
    data: list[dict[str, Any]] = []
    for problem in TITLES:
        panel = rows[rows["problem"].eq(problem)]
        for (algorithm, rho, M), group in [] if panel.empty else panel.groupby(["algorithm", "rho", "set.M"]):
            share = failures(group)
            if share is None:
                continue
            bounded, private = algorithm in ("o2nc", "o2nc-tree"), bool(group["private"].iloc[0])
            data.append({
                "problem": problem, "algorithm": algorithm, "rho": rho, "M": M, "failed": share.failed,
                "runs": share.runs, "lower": share.lower, "upper": share.upper,
                "objective": group["objective"].mean(), "objective_se": group["objective"].sem(),
                "measured": group["measured"].mean(), "se": group["measured"].sem(),
                "bound": float(whole_bound(group).iloc[0]) if bounded else math.nan,
                "epsilon": group["epsilon"].iloc[0] if private else math.inf,
                "spent": group["epsilon_planned"].max() if private else math.inf,
            })  # fmt: skip
    columns: dict[str, Words] = {
        "problem": lambda one: TITLES[one["problem"]],
        "algorithm": lambda one: METHODS[one["algorithm"]].legend,
        "ρ": lambda one: "∞" if math.isinf(one["rho"]) else f"{one['rho']:g}",
        "ε asked, spent": lambda one: "∞" if math.isinf(one["epsilon"]) else "{epsilon:.4g}, {spent:.4g}".format(**one),
        "M": "{M:,.0f}",
        "not stationary": "{failed} of {runs}",
        "95 %": "{lower:.2f} – {upper:.2f}",
        "F": _mean("objective", "objective_se", ".4f"),
        "mean measure": _mean("measured", "se", ".4f"),
        "bound": lambda one: "–" if math.isnan(one["bound"]) else f"{one['bound']:.3g}",
    }
    return Table.of(data, columns, [] if data else [context.gap("fractions", "fractions")]), {}


@PAPER.artefact("privacy_for_free")
def privacy_for_free(context: Context) -> WithWords:
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
        # A reader thinks in ε: the paper's own conversion of its ρ.
        epsilons = {rho: rho**2 / 2 + rho * np.sqrt(-2 * np.log(DELTA)) for rho in (0.1, 1, 10, 100)}
        top.set_xticks(list(epsilons), [f"ε = {e:,.2f}" if e < 10 else f"ε = {e:,.0f}" for e in epsilons.values()])
        top.tick_params(labelsize=7.5)
    seeds = f"{tables[0]['seeds'].max()}" if tables else "no"
    M = f"{rows['set.M'].iloc[0]:,.0f}" if len(rows) else "–"
    return page.figure(joined(tables), legend=4), {"M": M, "seeds": seeds}


def _log(axis: Axes, x: str, y: str) -> None:
    axis.set(xscale="log", yscale="log", xlabel=x, ylabel=y)


def _mean(value: str, error: str, digits: str) -> Words:
    return lambda one: plus_minus(one[value], one[error], digits, digits)
