"""The tables of zeroth_order: none is in the paper."""

from __future__ import annotations

from dpbench.experiments.zeroth_order.study import SETTING, TITLES, exponent, slope, studied
from dpbench.report.output import Table
from dpbench.report.style import look


def slopes(context) -> Table:
    """Fitted exponents of M beside those of Theorem 4.9."""
    import pandas as pd

    rows = studied(context, "slopes")
    lines, data = [], []
    for problem in TITLES:
        panel = rows[rows["problem"].eq(problem)]
        floor = panel[panel["algorithm"].eq("o2nc")]
        for (algorithm, rho), group in panel.groupby(["algorithm", "rho"]):
            fitted = slope(group)
            if fitted is None or floor.empty:
                continue
            last = group["set.M"].max()
            T, T0 = (part.loc[part["set.M"].eq(last), "T"].iloc[0] for part in (group, floor))
            theory = exponent(algorithm, T, T0)
            seeds = group["seed"].nunique()
            data.append([problem, algorithm, rho, fitted.value, fitted.lower, fitted.upper, theory, seeds])
            span = f"{fitted.low:,.0f} – {fitted.high:,.0f}"
            said = "no flatter" if fitted.lower <= theory else "flatter"
            lines.append([TITLES[problem], look(algorithm).legend, _rho(rho), span, str(fitted), f"{theory:.2f}", said])
    caption = (
        "Not in the paper: a test of its Theorem 4.9. Exponent of M in the measured ‖∇F(w)‖_2δ: least squares of the "
        "log mean over seeds on log M over the last decade of M; brackets: 95 % percentile bootstrap over seeds, means "
        "below 0.001 (the measure's own error) taken as that. theorem: "
        "−1/3 where the first term sets T, −1/2 where the tree's noise does; a bound, so a steeper fall does not "
        'contradict it. "flatter": the whole interval lies above the exponent. On a1a the start is nearly stationary, '
        f"so with noise the measure rises while the run leaves it. {SETTING}."
    )
    header = ["problem", "algorithm", "ρ", "M", "exponent", "theorem", "than the theorem"]
    names = ["problem", "algorithm", "rho", "slope", "lower", "upper", "theorem", "seeds"]
    gaps = [] if lines else [f"slopes: {context.command('slopes')}"]
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data, columns=names), gaps)


def guarantee(context) -> Table:
    """d, M, ρ and ε at δ = 1e-6, with what the tree method reaches: the guarantee in a practitioner's units."""
    import pandas as pd

    rows = studied(context, "guarantee")
    rows = rows[rows["algorithm"].isin(["o2nc", "o2nc-tree"])]
    lines, data = [], []
    for problem in TITLES:
        panel = rows[rows["problem"].eq(problem)]
        if panel.empty:
            continue
        for (M, rho), group in panel.groupby(["set.M", "rho"]):
            mean, se, n = group["measured"].mean(), group["measured"].sem(), len(group)
            error, spent, d = group["measured_error"].mean(), group["epsilon_spent"].max(), TITLES[problem].split()[-1]
            private = bool(group["private"].iloc[0])
            F, T = group["objective"].mean(), group["T"].iloc[0]
            epsilon, spent = (group["epsilon"].iloc[0], spent) if private else (float("inf"), float("inf"))
            data.append([problem, int(d), M, rho, epsilon, spent, mean, se, error, F, n])
            words = [f"{epsilon:.4g}", f"{spent:.4g}"] if private else ["∞ (not private)", "∞"]
            reached = [f"{T:,.0f}", f"{mean:.4f} ± {se:.4f}", f"{error:.4f}", f"{F:.4f}", n]
            lines.append([TITLES[problem].rpartition(",")[0], d, f"{M:,.0f}", _rho(rho), *words, *reached])
    caption = (
        "Not in the paper: its guarantee in a practitioner's units. O2NC-Tree; ρ = ∞ is O2NC without noise. ε asked: "
        "of the paper's RDP bound at δ_dp = 1e-6; ε spent: of the ledger, by an independent accountant (exact "
        "Gaussian). stationarity: mean measured ‖∇F(w)‖_2δ ± 1 standard error over seeds; its error: how much larger "
        f"the worse half of the sampled gradients says it is. {SETTING}."
    )
    header = ["problem", "d", "M", "ρ", "ε asked", "ε spent", "T", "stationarity", "its error", "F", "seeds"]
    names = ["problem", "d", "M", "rho", "epsilon", "spent", "stationarity", "se", "error", "objective", "seeds"]
    gaps = [
        f"{problem}: {context.command('guarantee')}"
        for problem in dict.fromkeys(p for block in context.blocks("guarantee") for p in block.problems)
        if rows[rows["problem"].eq(problem)].empty
    ]
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data, columns=names), gaps)


def _rho(rho: float) -> str:
    return "∞" if rho == float("inf") else f"{rho:g}"
