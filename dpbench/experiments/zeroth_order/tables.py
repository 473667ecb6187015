"""The tables of zeroth_order: none is in the paper."""

from __future__ import annotations

import pandas as pd

from dpbench.experiments.zeroth_order.study import (
    FLOORS,
    METHODS,
    SETTING,
    TEST,
    TITLES,
    dimension_of,
    exponent,
    first_term,
    slope,
    studied,
    whole_bound,
)
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Table
from dpbench.study.statistics import plus_minus


@artefact("slopes", f"Fitted exponents of M ({TEST} Theorem 4.9)")
def slopes(context: Context) -> Table:
    """Fitted exponents of M beside those of Theorem 4.9."""
    rows = studied(context, "slopes")
    lines, data = [], []
    for problem in TITLES:
        panel = rows[rows["problem"].eq(problem)]
        for (algorithm, rho), group in panel.groupby(["algorithm", "rho"]):
            floor = panel[panel["algorithm"].eq(FLOORS.get(algorithm, algorithm))]
            fitted = slope(group)
            if fitted is None or floor.empty:
                continue
            last = group["set.M"].max()
            T, T0 = (part.loc[part["set.M"].eq(last), "T"].iloc[0] for part in (group, floor))
            theory = exponent(algorithm, T, T0)
            seeds = group["seed"].nunique()
            at_last = group[group["set.M"].eq(last)]
            reached, error = at_last["measured"].mean(), at_last["measured"].sem()
            bounds, words = [float("nan")] * 2, ["–", "–"]
            if algorithm in ("o2nc", "o2nc-tree"):
                bounds = [float(bound(at_last).iloc[0]) for bound in (first_term, whole_bound)]
                words = [f"{bound:.3g}" for bound in bounds]
            fit = [fitted.value, fitted.lower, fitted.upper, theory]
            data.append([problem, algorithm, rho, *fit, seeds, reached, error, *bounds])
            span = f"{fitted.low:,.0f} – {fitted.high:,.0f}"
            said = "no flatter" if fitted.upper <= theory else "flatter" if fitted.lower > theory else "open"
            shown = [METHODS[algorithm].legend, _rho(rho), span, str(fitted), f"{theory:.2f}", said]
            lines.append([TITLES[problem], *shown, plus_minus(reached, error, ".4f", ".4f"), *words])
    caption = (
        "Not in the paper: a test of its Theorem 4.9. Exponent of M in the measured ‖∇F(w)‖_2δ: least squares of the "
        "log mean over seeds on log M over the last decade of M; brackets: 95 % percentile bootstrap over seeds, means "
        "below 0.001 (the measure's own error) taken as that. theorem: −1/3 where the first term sets T, −1/2 where "
        "the tree's noise does; a bound, so a steeper fall does not contradict it. flatter: the whole interval lies "
        "above the exponent; no flatter: at or below it; open: on both sides. Where noise holds a run at its start, "
        "the exponent is that of a run that hardly moves. measured: at the largest M, ± 1 standard error; first term: "
        "2(F + 2Lδ)T/(δM) of the theorem's bound; bound: all of it, with the constants that its proof prints (h nodes "
        f"for 2 ln T). {SETTING}."
    )
    header = ["problem", "algorithm", "ρ", "M", "exponent", "theorem", "than the theorem"]
    header += ["measured", "first term", "bound"]
    names = ["problem", "algorithm", "rho", "slope", "lower", "upper", "theorem", "seeds"]
    names += ["measured", "se", "first_term", "bound"]
    gaps = [] if lines else [context.gap("slopes", "slopes")]
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data, columns=names), gaps)


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
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data, columns=names), gaps)


def _rho(rho: float) -> str:
    return "∞" if rho == float("inf") else f"{rho:g}"
