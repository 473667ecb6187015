"""Which method should I use? The answer by data set and ε; every method on every problem; how sure the ranks are.

All three are drawn from the rows of `overall`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpbench.errors import NotAtHand
from dpbench.experiments.leaderboard.summary import label
from dpbench.experiments.leaderboard.summary import over_all as sentences
from dpbench.experiments.leaderboard.tables import RULES, of_problem, seeds_of
from dpbench.leaderboard.ranking import CELL, board
from dpbench.leaderboard.ranking import overall as over_all
from dpbench.problems import catalogue
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Figure, Table
from dpbench.study.statistics import plus_minus
from dpbench.study.style import GREY, look, problem_title

MOST = 2  # methods named beside the best
DRAWS = 2000  # of the bootstrap
LEVEL = 0.95
WORST = 100.0  # times the best: the end of the colours


@artefact("guide", "Which should I use?")
def guide(context: Context) -> Table:
    """The best method by problem, whose n, d and loss are told, and by ε."""
    table = board(context.rows("overall"))
    epsilons = sorted(set(table["epsilon"]))
    rows = []
    for problem in context.problems("overall"):
        if problem in set(table["problem"]):
            cells = [_answer(of_problem(table, problem, epsilon)) for epsilon in epsilons]
            rows.append([*shape(problem), *cells, problem_title(problem)])
    header = ["loss", "n", "d", *(f"at ε = {epsilon:g}" for epsilon in epsilons), "measured on"]
    caption = (
        f"{' '.join(sentences(table))} In each cell the method with the lowest mean excess loss and, after “or”, those "
        f"that are not worse by more than two standard errors of the difference (at most {MOST} named). {RULES}"
    )
    gaps = [] if rows else [context.gap("overall", "every row")]
    return Table(pd.DataFrame(rows, columns=header), caption, table, gaps)


def shape(problem: str) -> list[str]:
    """Loss and regulariser, n, d of a problem, in words; dashes where that takes data that are not at hand."""
    try:
        found = catalogue.declare(problem)
    except NotAtHand:
        return ["–", "–", "–"]
    penalties = [name for name, weight in (("L1", found.l1), ("L2", found.l2)) if weight]
    return [" + ".join([found.loss.name, *penalties]), f"{found.n:,}", f"{found.d:,}"]


def _answer(cell: pd.DataFrame) -> str:
    """ "DP-GD (0.0165), or AOP": the best method of a cell, and what cannot be told from it."""
    finite = cell[np.isfinite(cell["mean"])]
    if finite.empty:
        return "–"
    tied = [label(name) for name in finite[finite["beaten_by"] == 0]["algorithm"][1:]]
    more = f" and {len(tied) - MOST} more" if len(tied) > MOST else ""
    rest = f", or {', '.join(tied[:MOST])}{more}" if tied else ""
    return f"{label(finite['algorithm'].iloc[0])} ({plus_minus(finite['mean'].iloc[0], np.nan)}){rest}"


@artefact("heat", "Every method on every problem: excess loss over the best")
def heat(context: Context) -> Figure:
    """A row per method, a column per problem and ε; white rings: not distinguishable from the column's best."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    table = board(context.rows("overall"))
    problems = [p for p in context.problems("overall") if p in set(table["problem"])]
    columns = [(e, p) for e in sorted(set(table["epsilon"])) for p in problems]
    columns = [at for at in columns if len(of_problem(table, at[1], at[0]))]
    order = list(over_all(table)["algorithm"])
    best = table.groupby(CELL)["mean"].transform("min")
    table = table.assign(ratio=(table["mean"] / best).where(best > 0))
    found = {(row.algorithm, row.epsilon, row.problem): row for row in table.itertuples()}
    figure, axis = plt.subplots(
        figsize=(3.0 + 0.36 * max(len(columns), 4), 1.6 + 0.2 * len(order)), layout="constrained"
    )
    grid = np.full((len(order), len(columns)), np.nan)
    for i, name in enumerate(order):
        for j, at in enumerate(columns):
            row = found.get((name, *at))
            if row is not None:
                grid[i, j] = min(row.ratio, WORST) if np.isfinite(row.ratio) else WORST
                _mark(axis, i, j, row)
    shades = plt.get_cmap("viridis").with_extremes(bad="#ececec")
    drawn = axis.imshow(np.ma.masked_invalid(grid), cmap=shades, norm=LogNorm(1, WORST), aspect="auto")
    axis.set_xticks(range(len(columns)), [problem_title(p) for _, p in columns], rotation=90, fontsize=7)
    axis.set_yticks(range(len(order)), [label(name) for name in order], fontsize=7.5)
    axis.grid(False)
    axis.tick_params(length=0)
    for epsilon in sorted({e for e, _ in columns}):
        within = [j for j, (e, _) in enumerate(columns) if e == epsilon]
        axis.text(sum(within) / len(within), -0.9, f"ε = {epsilon:g}", ha="center", va="bottom", fontsize=9)
        if within[0]:
            axis.axvline(within[0] - 0.5, color="white", lw=3)
    if order:
        bar = figure.colorbar(drawn, ax=axis, shrink=0.5, pad=0.01, extend="max")
        bar.set_ticks([1, 2, 5, 10, 20, 50, 100], labels=["1×", "2×", "5×", "10×", "20×", "50×", "100×"])
        bar.ax.minorticks_off()
        bar.set_label("mean excess loss over the best")
    caption = (
        "Mean excess loss over that of the column's best method, methods in the order of the mean share of rivals "
        f"beaten; {seeds_of(table)}. White ring: not worse than the best by more than two standard errors of the "
        "difference. ∞: a seed diverged at every candidate. Grey: not applicable: the method's proof does not cover "
        f"the problem, or its accounting reaches no such ε with any noise (see fits). {RULES}"
    )
    gaps = [] if order else [context.gap("overall", "every cell")]
    return Figure(figure, table, caption, gaps)


def _mark(axis: Any, i: int, j: int, row: Any) -> None:
    """A ring where the method leads or ties, ∞ where it diverged, else its ratio in small figures."""
    if not np.isfinite(row.ratio):
        axis.text(j, i, "∞", ha="center", va="center", fontsize=7, color="black")
        return
    if row.beaten_by == 0:
        axis.plot(j, i, "o", mfc="none", mec="white", mew=1.4, ms=6.5)
        return
    ratio = f"{row.ratio:.1f}" if row.ratio < 9.95 else f"{row.ratio:.0f}" if row.ratio < 999.5 else ">999"
    dark = row.ratio < 12
    axis.text(j, i, ratio, ha="center", va="center", fontsize=5.6, color="white" if dark else "black")


@artefact("standing", "Rank over all, with bootstrap intervals")
def standing(context: Context) -> Figure:
    """Mean share of rivals beaten, methods in few cells apart."""
    import matplotlib.pyplot as plt

    table = board(context.rows("overall"))
    result = intervals(table)
    often, few = result[result["often"]], result[~result["often"]]
    order = [*often.itertuples(), *([None] if len(few) else []), *few.itertuples()]
    figure, axis = plt.subplots(figsize=(7.2, 1.1 + 0.2 * max(len(order), 3)), layout="constrained")
    for y, row in enumerate(order):
        if row is None:
            axis.axhline(y, color=GREY, lw=0.8, ls=":")
            axis.text(0.005, y, "in fewer than half of the cells: no rank", fontsize=7, color=GREY, va="bottom")
            continue
        style = look(row.algorithm)
        colour = style.colour if row.often else GREY
        axis.plot([row.low, row.high], [y, y], color=colour, lw=1.6, solid_capstyle="butt")
        axis.plot(row.share, y, "o", color=colour, ms=4.5)
        rank = f"rank {row.rank_low:.0f} to {row.rank_high:.0f}, " if row.often else ""
        axis.text(1.015, y, f"{rank}{row.cells} cells", fontsize=6.8, va="center", color="#5a5f66")
    names = ["" if row is None else label(row.algorithm) for row in order]
    axis.set_yticks(range(len(order)), names, fontsize=7.5)
    axis.set(ylim=(max(len(order), 1) - 0.4, -0.6), xlim=(0, 1), xlabel="mean share of rivals beaten")
    axis.grid(False, axis="y")
    caption = (
        "Mean over cells (problem × ε) of the share of rivals beaten, 1 for the best of every cell; lines and ranks: "
        f"{100 * LEVEL:.0f} % bootstrap intervals ({DRAWS:,} draws: problems with replacement, each mean with its "
        f"standard error over {seeds_of(table)}). So few problems leave wide intervals: methods whose lines overlap "
        f"are not told apart. {RULES}"
    )
    gaps = [] if len(result) else [context.gap("overall", "every line")]
    return Figure(figure, result, caption, gaps)


def intervals(table: pd.DataFrame, draws: int = DRAWS) -> pd.DataFrame:
    """`ranking.overall` with bootstrap bounds: `low`, `high` of the share, `rank_low`, `rank_high` of the rank.

    A draw takes the problems with replacement and every mean from a normal distribution with its standard error. Ranks
    are among the methods in at least half of the cells; the others have none (NaN).
    """
    result = over_all(table)
    if table.empty:
        return result.assign(low=[], high=[], rank_low=[], rank_high=[])
    rng = np.random.default_rng(0)
    methods, problems = list(result["algorithm"]), list(dict.fromkeys(table["problem"]))
    # Per cell a column of drawn shares; methods that are not in it stay NaN.
    cells, of = [], []
    for (problem, _), cell in table.groupby(CELL):
        mean, error = cell["mean"].to_numpy(), cell["se"].fillna(0).to_numpy()
        drawn = np.where(np.isfinite(mean), mean + error * rng.standard_normal((draws, len(cell))), np.inf)
        rank = drawn.argsort(axis=1).argsort(axis=1)
        shares = np.full((draws, len(methods)), np.nan)
        shares[:, [methods.index(name) for name in cell["algorithm"]]] = 1 - rank / max(len(cell) - 1, 1)
        cells.append(shares)
        of.append(problems.index(problem))
    weight = np.apply_along_axis(np.bincount, 1, rng.integers(len(problems), size=(draws, len(problems))),
                                 minlength=len(problems))[:, of]  # fmt: skip
    total, counted = np.zeros((draws, len(methods))), np.zeros((draws, len(methods)))
    for j, shares in enumerate(cells):
        there = ~np.isnan(shares)
        total += np.where(there, shares, 0) * weight[:, [j]]
        counted += there * weight[:, [j]]
    with np.errstate(invalid="ignore"):
        share = total / counted  # NaN where a draw holds none of a method's problems
    often = result["often"].to_numpy()
    rank = np.full(share.shape, np.nan)
    among = np.where(np.isnan(share[:, often]), -1.0, share[:, often])
    rank[:, often] = 1 + (-among).argsort(axis=1, kind="stable").argsort(axis=1)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.nanpercentile(share, [tail, 100 - tail], axis=0)
    bounds = np.full((2, len(methods)), np.nan)
    if often.any():
        bounds[:, often] = np.percentile(rank[:, often], [tail, 100 - tail], axis=0, method="nearest")
    return result.assign(low=low, high=high, rank_low=bounds[0], rank_high=bounds[1])
