"""The tables of zeroth_order: none is in the paper."""

from __future__ import annotations

import math
from typing import Any

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
from dpbench.study.output import Record, Table, Words
from dpbench.study.statistics import plus_minus


@artefact("fractions", f"Runs that are not stationary, and F at the end ({TEST} Theorem 4.9)")
def fractions(context: Context) -> Table:
    """By method, ρ and M: failed runs with their interval, F, and the measure's mean beside the theorem's bound."""
    rows = studied(context, "fractions")
    data: list[dict[str, Any]] = []
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
            data.append({"problem": problem, "algorithm": algorithm, "rho": rho, "M": M, "failed": found.failed,
                         "runs": found.runs, "lower": found.lower, "upper": found.upper, "objective": F,
                         "objective_se": F_se, "measured": reached, "se": error, "bound": whole})  # fmt: skip
    caption = (
        "How many runs end at a point that is not stationary, with a 95 % interval of their share, and F there. Last: "
        "the mean measure beside the theorem's bound on it."
    )
    method = (
        "Not in the paper: a test of its Theorem 4.9. A run counts as not stationary if its ‖∇F(w)‖_2δ is 1e-6 or "
        "more. Its share has a 95 % Clopper–Pearson interval; F at the end is a mean ± 1 standard error. The measure "
        "is almost always either 0 or about .14, so its mean (last column) is the failure rate times .14. bound: the "
        f"right-hand side of the theorem with the constants of its proof (h nodes for 2 ln T). {SETTING}."
    )
    columns: dict[str, Words] = {
        "problem": lambda one: TITLES[one["problem"]],
        "algorithm": lambda one: METHODS[one["algorithm"]].legend,
        "ρ": _rho,
        "M": "{M:,.0f}",
        "not stationary": "{failed} of {runs}",
        "95 %": "{lower:.2f} – {upper:.2f}",
        "F": _mean("objective", "objective_se", ".4f"),
        "mean measure": _mean("measured", "se", ".4f"),
        "bound": lambda one: "–" if math.isnan(one["bound"]) else f"{one['bound']:.3g}",
    }
    gaps = [] if data else [context.gap("fractions", "fractions")]
    return Table.of(data, columns, caption, gaps, method=method)


@artefact("sphere", f"Bound, start and what is reached on the sphere family ({TEST} Theorem 4.9)")
def sphere(context: Context) -> Table:
    """By ρ and M: the theorem's bound, the measure at the start, its mean over all epochs, F before and after."""
    rows = sphere_rows(context)
    data: list[dict[str, Any]] = []
    for (rho, M), group in [] if rows.empty else rows.groupby(["rho", "set.M"]):
        bound, start, reached = float(whole_bound(group).iloc[0]), group["start"].mean(), group["measured"]
        failed, epochs, T, seeds = group["failed"].sum(), group["epochs"].sum(), group["T"].iloc[0], len(group)
        F_start, F, F_se = group["F_start"].mean(), group["F"].mean(), group["F"].sem()
        data.append({"rho": rho, "M": M, "T": T, "bound": bound, "start": start, "measured": reached.mean(),
                     "se": reached.sem(), "failed": failed, "epochs": epochs, "F_start": F_start, "F": F, "F_se": F_se,
                     "seeds": seeds})  # fmt: skip
    caption = (
        "A problem on which Theorem 4.9 can fail: its bound, the measure at the start, and its mean over all epochs. "
        "“can fail”: a run that stays at its start would exceed the bound."
    )
    method = (
        "Not in the paper: a test of its Theorem 4.9 that can fail. F(x) = E|‖x - z‖ - 1| with z uniform on the "
        "sphere of radius 0.1 in R⁵, drawn anew for each row. The start is x₁ = (1.45, 0, …), where F(x₁) - inf F = "
        "0.45. bound: the right-hand side of the theorem with the constants of its proof. mean measure: ‖∇F‖_2δ at "
        "the point of each epoch, averaged over all epochs, ± 1 standard error over seeds. can fail: the bound is "
        "below the measure at the start, so a run that does not move violates it. epochs above 1e-6: counted over "
        f"all seeds. F: at the point of the last epoch. {SETTING}."
    )
    columns: dict[str, Words] = {
        "ρ": _rho,
        "M": "{M:,.0f}",
        "T": "{T:,.0f}",
        "bound": "{bound:.3g}",
        "start": "{start:.3f}",
        "mean measure": _mean("measured", "se", ".4f"),
        "can fail": lambda one: "yes" if one["bound"] < one["start"] else "no",
        "epochs above 1e-6": "{failed} of {epochs}",
        "F at x₁": "{F_start:.4f}",
        "F": _mean("F", "F_se", ".5f"),
        "seeds": "{seeds}",
    }
    gaps = [] if data else [context.gap("sphere", "sphere")]
    return Table.of(data, columns, caption, gaps, method=method)


@artefact("guarantee", f"d, M, ε and stationarity ({TEST} Theorem 4.9)")
def guarantee(context: Context) -> Table:
    """d, M, ρ and ε at δ = 1e-6, with what the tree method reaches: the guarantee in a practitioner's units."""
    rows = studied(context, "guarantee")
    rows = rows[rows["algorithm"].isin(["o2nc", "o2nc-tree"])]
    data: list[dict[str, Any]] = []
    for problem in TITLES:
        panel = rows[rows["problem"].eq(problem)]
        if panel.empty:
            continue
        for (M, rho), group in panel.groupby(["set.M", "rho"]):
            mean, se, n = group["measured"].mean(), group["measured"].sem(), len(group)
            error, spent = group["measured_error"].mean(), group["epsilon_planned"].max()
            private = bool(group["private"].iloc[0])
            epsilon, spent = (group["epsilon"].iloc[0], spent) if private else (math.inf, math.inf)
            data.append({"problem": problem, "d": dimension_of(problem), "M": M, "rho": rho, "epsilon": epsilon,
                         "spent": spent, "stationarity": mean, "se": se, "error": error,
                         "objective": group["objective"].mean(), "seeds": n, "T": group["T"].iloc[0]})  # fmt: skip
    caption = (
        "What O2NC-Tree reaches in a practitioner's units: ε asked and ε spent at δ = 1e-6, and the mean measured "
        "stationarity ± 1 standard error. ρ = ∞: no noise."
    )
    method = (
        "Not in the paper: its guarantee in a practitioner's units, for O2NC-Tree; ρ = ∞ is O2NC without noise. ε "
        "asked for: by the paper's RDP bound at δ_dp = 1e-6. ε spent: computed from the ledger by an independent "
        "accountant (exact Gaussian). stationarity: the mean measured ‖∇F(w)‖_2δ ± 1 standard error over seeds. its "
        f"error: how much larger the measure is when only the worse half of the sampled gradients is used. {SETTING}."
    )
    columns: dict[str, Words] = {
        "problem": lambda one: TITLES[one["problem"]].rpartition(",")[0],
        "d": "{d}",
        "M": "{M:,.0f}",
        "ρ": _rho,
        "ε asked": lambda one: "∞ (not private)" if math.isinf(one["epsilon"]) else f"{one['epsilon']:.4g}",
        "ε spent": lambda one: "∞" if math.isinf(one["spent"]) else f"{one['spent']:.4g}",
        "T": "{T:,.0f}",
        "stationarity": _mean("stationarity", "se", ".4f"),
        "its error": "{error:.4f}",
        "F": "{objective:.4f}",
        "seeds": "{seeds}",
    }
    gaps = [
        context.gap("guarantee", problem)
        for problem in context.problems("guarantee")
        if rows[rows["problem"].eq(problem)].empty
    ]
    return Table.of(data, columns, caption, gaps, unsaved=["T"], method=method)


def _rho(one: Record) -> str:
    return "∞" if math.isinf(one["rho"]) else f"{one['rho']:g}"


def _mean(value: str, error: str, digits: str) -> Words:
    return lambda one: plus_minus(one[value], one[error], digits, digits)
