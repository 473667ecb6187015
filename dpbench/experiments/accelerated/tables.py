"""The tables of accelerated."""

from __future__ import annotations

from dpbench.experiments.accelerated.errors import (
    ALGORITHMS,
    FULL_BATCH,
    PRIVACY,
    PUBLIC,
    final_errors,
    runs_of,
    seeds_in_words,
)
from dpbench.experiments.base import select
from dpbench.report.output import Table
from dpbench.report.style import look


def best_errors(context) -> Table:
    """The lowest mean final error over T per (algorithm, m, c), its T and its standard error."""
    import pandas as pd

    table = final_errors(context, "best_errors", pooled=True)
    best = table.loc[table.groupby(["algorithm", "m", "c"], sort=False)["mean"].idxmin()]
    columns = [(m, c) for m in sorted(set(table["m"]), reverse=True) for c in sorted(set(table["c"]))]
    rows, gaps = [], []
    for algorithm in ALGORITHMS:
        cells = []
        for m, c in columns:
            cell = select(best, algorithm=algorithm, m=m, c=c)
            if cell.empty:
                gaps.append(f"{algorithm} at m = {m:,.0f}, c = {c:g}: {context.command('best_errors')}")
            cells.append(cell_of(cell.iloc[0]) if len(cell) else "–")
        rows.append([look(algorithm).label, *cells])
    header = ["algorithm", *[f"{'m = n' if m == FULL_BATCH else f'm = {m:,.0f}'}, c = {c:g}" for m, c in columns]]
    if not columns:
        gaps = [f"every row: {context.command('best_errors')}"]
    caption = (
        f"Lowest mean final error F(x_T) - F* over T = 100, 200, 500 and 1000 ± its standard error over "
        f"{seeds_in_words(best)} seeds, and its T: for the -opt methods the T' that they choose, where the runs of all "
        f"T that lead to one T' count together. Which T is best is read off the errors, which is not private. "
        f"n = {FULL_BATCH:,}, {PRIVACY}; {PUBLIC}."
    )
    return Table(pd.DataFrame(rows, columns=header), caption, best.drop(columns="noise_scale"), gaps)


def cell_of(row) -> str:
    return f"{row['mean']:.3g} ± {row['se']:.1g} (T = {row['T']:.0f})"


def chosen_T(context) -> Table:
    """T' of the -opt methods beside the published code's."""
    import pandas as pd

    published = context.experiment.published()["chosen_T"]
    runs = select(runs_of(context, "chosen_T"), algorithm=["dp-nag-opt", "dp-masg-opt"])
    chosen = runs.groupby(["algorithm", "c", "T_asked"])["T"].agg(lambda T: ", ".join(str(v) for v in sorted(set(T))))
    rows, gaps = [], []
    asked = sorted(set(runs["T_asked"]))
    for algorithm in ("dp-nag-opt", "dp-masg-opt"):
        for c, theirs in zip(published["c"], published[algorithm], strict=True):
            cells = [chosen.get((algorithm, c, T), "–") for T in asked]
            if not any(cell != "–" for cell in cells):
                gaps.append(f"{algorithm} at c = {c:g} is not in this profile's rows: {context.command('chosen_T')}")
            rows.append([look(algorithm).label, f"{c:g}", *cells, str(theirs)])
    header = ["algorithm", "c", *[f"T = {T:,.0f}" for T in asked], "published code, T = 1,000"]
    caption = (
        "T' ≤ T that minimises the bound (4.6), with E₀ = 10 and the weights of (4.8); the same for m = n and 1,000 "
        "(Remark 4.2). The published code has a factor 2 before E₀ and half the weight of the noise, which moves the "
        "minimum."
    )
    return Table(pd.DataFrame(rows, columns=header), caption, gaps=gaps)
