"""The tables of zeroth_order: none is in the paper."""

from __future__ import annotations

import pandas as pd

from dpbench.experiments.zeroth_order.study import (
    METHODS,
    SETTING,
    TEST,
    TITLES,
    dimension_of,
    failures,
    sphere_rows,
    studied,
    whole_bound,
)
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Table
from dpbench.study.statistics import plus_minus


@artefact("fractions", f"Runs that are not stationary, and F at the end ({TEST} Theorem 4.9)")
def fractions(context: Context) -> Table:
    """By method, ρ and M: failed runs with their interval, F, and the measure's mean beside the theorem's bound."""
    rows = studied(context, "fractions")
    lines, data = [], []
    for problem in TITLES:
        panel = rows[rows["problem"].eq(problem)]
        if panel.empty:
            continue
        for (algorithm, rho, M), group in panel.groupby(["algorithm", "rho", "set.M"]):
            found = failures(group)
            if found is None:
                continue
            F, F_se = group["objective"].mean(), group["objective"].sem()
            reached, error = group["measured"].mean(), group["measured"].sem()
            whole = float(whole_bound(group).iloc[0]) if algorithm in ("o2nc", "o2nc-tree") else float("nan")
            data.append([problem, algorithm, rho, M, found.failed, found.runs, found.lower, found.upper, F, F_se,
                         reached, error, whole])  # fmt: skip
            interval = f"{found.lower:.2f} – {found.upper:.2f}"
            shown = [METHODS[algorithm].legend, _rho(rho), f"{M:,.0f}", f"{found.failed} of {found.runs}", interval]
            means = [plus_minus(F, F_se, ".4f", ".4f"), plus_minus(reached, error, ".4f", ".4f")]
            lines.append([TITLES[problem], *shown, *means, "–" if whole != whole else f"{whole:.3g}"])
    caption = (
        "How many runs end at a point that is not stationary, with a 95 % interval of their share, and F there. Last: "
        "the mean measure beside the theorem's bound on it."
    )
    method = (
        "Not in the paper: a test of its Theorem 4.9. Runs whose ‖∇F(w)‖_2δ is 1e-6 or more, with the 95 % "
        "Clopper–Pearson interval of their share; F where they end, ± 1 standard error. The measure has two values "
        "and hardly any between, so its mean (beside it) is a failure rate times .14. bound: the right-hand side of "
        f"the theorem with the constants of its proof (h nodes for 2 ln T). {SETTING}."
    )
    header = ["problem", "algorithm", "ρ", "M", "not stationary", "95 %", "F", "mean measure", "bound"]
    names = ["problem", "algorithm", "rho", "M", "failed", "runs", "lower", "upper", "objective", "objective_se"]
    names += ["measured", "se", "bound"]
    gaps = [] if lines else [context.gap("fractions", "fractions")]
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data, columns=names), gaps, method=method)


@artefact("sphere", f"Bound, start and what is reached on the sphere family ({TEST} Theorem 4.9)")
def sphere(context: Context) -> Table:
    """By ρ and M: the theorem's bound, the measure at the start, its mean over all epochs, F before and after."""
    rows = sphere_rows(context)
    lines, data = [], []
    for (rho, M), group in [] if rows.empty else rows.groupby(["rho", "set.M"]):
        bound, start, reached = float(whole_bound(group).iloc[0]), group["start"].mean(), group["measured"]
        failed, epochs, T, seeds = group["failed"].sum(), group["epochs"].sum(), group["T"].iloc[0], len(group)
        F_start, F, F_se = group["F_start"].mean(), group["F"].mean(), group["F"].sem()
        data.append([rho, M, T, bound, start, reached.mean(), reached.sem(), failed, epochs, F_start, F, F_se, seeds])
        shown = [f"{bound:.3g}", f"{start:.3f}", plus_minus(reached.mean(), reached.sem(), ".4f", ".4f")]
        ends = [f"{failed} of {epochs}", f"{F_start:.4f}", plus_minus(F, F_se, ".5f", ".5f"), seeds]
        lines.append([_rho(rho), f"{M:,.0f}", f"{T:,.0f}", *shown, "yes" if bound < start else "no", *ends])
    caption = (
        "A problem on which Theorem 4.9 can fail: its bound, the measure at the start, and its mean over all epochs. "
        "“can fail”: a run that stays at its start would exceed the bound."
    )
    method = (
        "Not in the paper: a test of its Theorem 4.9 that can fail. F(x) = E|‖x - z‖ - 1|, z uniform on the sphere of "
        "radius 0.1 in R⁵ and drawn fresh, from x₁ = (1.45, 0, …), with 0.45 for F(x₁) - inf F. bound: the right-hand "
        "side of the theorem with the constants of its proof. mean measure: ‖∇F‖_2δ of each epoch's point, over all "
        "epochs, ± 1 standard error over seeds. can fail: the bound is below the start's measure, so that a run which "
        f"stays is above it. epochs above 1e-6: of all seeds. F: at the last epoch's point. {SETTING}."
    )
    header = ["ρ", "M", "T", "bound", "start", "mean measure", "can fail", "epochs above 1e-6", "F at x₁", "F", "seeds"]
    names = ["rho", "M", "T", "bound", "start", "measured", "se", "failed", "epochs", "F_start", "F", "F_se", "seeds"]
    gaps = [] if lines else [context.gap("sphere", "sphere")]
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data, columns=names), gaps, method=method)


@artefact("guarantee", f"d, M, ε and stationarity ({TEST} Theorem 4.9)")
def guarantee(context: Context) -> Table:
    """d, M, ρ and ε at δ = 1e-6, with what the tree method reaches: the guarantee in a practitioner's units."""
    rows = studied(context, "guarantee")
    rows = rows[rows["algorithm"].isin(["o2nc", "o2nc-tree"])]
    lines, data = [], []
    for problem in TITLES:
        panel = rows[rows["problem"].eq(problem)]
        if panel.empty:
            continue
        for (M, rho), group in panel.groupby(["set.M", "rho"]):
            mean, se, n = group["measured"].mean(), group["measured"].sem(), len(group)
            error, spent = group["measured_error"].mean(), group["epsilon_planned"].max()
            d = dimension_of(problem)
            private = bool(group["private"].iloc[0])
            F, T = group["objective"].mean(), group["T"].iloc[0]
            epsilon, spent = (group["epsilon"].iloc[0], spent) if private else (float("inf"), float("inf"))
            data.append([problem, d, M, rho, epsilon, spent, mean, se, error, F, n])
            words = [f"{epsilon:.4g}", f"{spent:.4g}"] if private else ["∞ (not private)", "∞"]
            reached = [f"{T:,.0f}", plus_minus(mean, se, ".4f", ".4f"), f"{error:.4f}", f"{F:.4f}", n]
            lines.append([TITLES[problem].rpartition(",")[0], str(d), f"{M:,.0f}", _rho(rho), *words, *reached])
    caption = (
        "What O2NC-Tree reaches in a practitioner's units: ε asked and ε spent at δ = 1e-6, and the mean measured "
        "stationarity ± 1 standard error. ρ = ∞: no noise."
    )
    method = (
        "Not in the paper: its guarantee in a practitioner's units. O2NC-Tree; ρ = ∞ is O2NC without noise. ε asked: "
        "of the paper's RDP bound at δ_dp = 1e-6; ε spent: of the ledger, by an independent accountant (exact "
        "Gaussian). stationarity: mean measured ‖∇F(w)‖_2δ ± 1 standard error over seeds; its error: how much larger "
        f"the worse half of the sampled gradients says it is. {SETTING}."
    )
    header = ["problem", "d", "M", "ρ", "ε asked", "ε spent", "T", "stationarity", "its error", "F", "seeds"]
    names = ["problem", "d", "M", "rho", "epsilon", "spent", "stationarity", "se", "error", "objective", "seeds"]
    gaps = [
        context.gap("guarantee", problem)
        for problem in context.problems("guarantee")
        if rows[rows["problem"].eq(problem)].empty
    ]
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data, columns=names), gaps, method=method)


def _rho(rho: float) -> str:
    return "∞" if rho == float("inf") else f"{rho:g}"
