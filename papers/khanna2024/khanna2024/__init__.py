"""A high-dimensional track: families of private linear models where d is large, in the manner of Khanna et al. (2024).

The review compares methods at settings tuned on each data set. Here every method runs at its public rule, from n, d and
ε alone, as on the leaderboard, whose keys these runs share: rows of the one are rows of the other.
"""

import sys

import numpy as np
from dpbench.leaderboard import tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.study.context import Context, memoised, select
from dpbench.study.experiment import Experiment
from dpbench.study.output import Table
from dpbench.study.panels import Panels, curve
from dpbench.study.paper import Ends, Paper
from dpbench.study.statistics import excess, means, plus_minus
from dpbench.study.style import GREY, look
from dpbench.study.verdict import NotEnough

PAPER = Paper(__name__)
FAMILIES = {
    "coordinate descent": ("dp-cd", "dp-gcd"),
    "Frank-Wolfe": ("dp-frank-wolfe",),
    "objective perturbation": ("objpert", "objpert-pure"),
    "output perturbation": ("output-perturbation",),
    "gradient descent": ("dp-gd-average", "dp-sgd-1"),
}
FAMILY = {name: family for family, names in FAMILIES.items() for name in names}
COORDINATE = "coordinate descent"
ERRORS = 2.0  # standard errors of a difference
LEARNS = 0.99  # of the excess loss of w = 0: what is above it stays there
TITLES = {"madelon-l1-unit": "madelon, d = 501", "gen-wide": "drawn, n = 1,000, d = 2,000",
          "gen-very-wide": "drawn, n = 600, d = 20,000", "dorothea-unit": "dorothea, n = 800, d = 88,119"}  # fmt: skip


@memoised
def losses(context: Context):
    """Mean excess loss by problem, method and ε, in units of that of w = 0; families by name."""
    rows = context.rows("losses")
    rows = rows[rows["excess"].notna() | rows["status"].eq("diverged")]
    rows = rows[rows["algorithm"].isin(FAMILY)]
    ratio = excess(rows) / rows["problem"].map(nulls()).astype(float)
    table = means(rows.assign(ratio=ratio), ["problem", "algorithm", "epsilon"], "ratio")
    return table.assign(family=table["algorithm"].map(FAMILY))


@PAPER.artefact("losses")
def figure(context: Context):
    """A panel per problem."""
    table, problems = losses(context), context.problems("losses")
    page = Panels(context, "losses", len(problems), columns=2, size=(3.6, 2.6), room=0.8)
    for axis, problem in page.over(problems, title=TITLES.get):
        panel = select(table, problem=problem)
        if page.empty(axis, panel, problem, problem):
            continue
        for name in FAMILY:
            line = select(panel, algorithm=name)
            curve(axis, line[np.isfinite(line["mean"])], "epsilon", look(name))
        axis.axhline(1, color=GREY, ls=":", lw=1)
    page.label("ε", "excess loss / that of w = 0", scale="log")
    return page.figure(table), {}


@PAPER.artefact("best")
def best_table(context: Context):
    """The best method of each family, a column per problem and ε."""
    table = losses(context).sort_values("mean", kind="stable").drop_duplicates(["problem", "epsilon", "family"])
    for column, order in (("epsilon", None), ("problem", list(TITLES)), ("family", list(FAMILIES))):
        table = table.sort_values(column, key=lambda c: c.map(order.index) if order else c, kind="stable")  # noqa: B023
    cells = table[["problem", "epsilon", "family", "mean", "se"]]
    across = {f"{p}, ε = {e:g}": {"problem": p, "epsilon": e} for p, e in cells[["problem", "epsilon"]].to_numpy()}
    made = Table.crossed(
        cells, [{"family": one} for one in dict.fromkeys(cells["family"])], {"family": "{family}"}, across,
        lambda one: plus_minus(one["mean"], one["se"], ".2g"), data=cells,
    )  # fmt: skip
    made.gaps = [] if len(cells) else [context.gap("losses", "every row")]
    return made, {}


@PAPER.claim("coordinates")
def coordinates(context: Context):
    """The best coordinate method against the best of all other families, cell by cell."""
    better, worse, alike, still = [], [], 0, 0
    for (problem, epsilon), part in losses(context).groupby(["problem", "epsilon"], sort=False):
        ends, mine = Ends(part, "losses", ""), part["family"].eq(COORDINATE)
        if not mine.any() or mine.all():
            continue
        best, other = ends(family=COORDINATE), ends(family=[one for one in FAMILIES if one != COORDINATE])
        lead, where = best.lead(other), f"{problem} at ε = {epsilon:g}"
        alike += abs(lead) <= ERRORS
        still += lead > ERRORS and best.mean > LEARNS
        (better if lead > ERRORS else worse if lead < -ERRORS else []).append(where)
    if not better and not worse and not alike:
        raise NotEnough
    return len(better) > len(worse), {"better": len(better), "still": still, "alike": alike, "worse": len(worse),
                                      "where": "; ".join(worse) or "none"}  # fmt: skip


@PAPER.claim("useful")
def useful(context: Context):
    """At each ε, on how many problems some method is below w = 0 by 1 % and by two standard errors."""
    found = losses(context)
    if found.empty:
        raise NotEnough
    for epsilon, part in found.groupby("epsilon"):
        below = part[part["mean"] + ERRORS * part["se"] < LEARNS].groupby("problem").size()
        there = part["problem"].nunique()
        held = True if len(below) == there else None if len(below) else False
        yield held, {"epsilon": epsilon, "below": len(below), "there": there, "where": ", ".join(below.index) or "none"}


EXPERIMENT = Experiment(
    name="khanna2024",
    title="Private linear models for high-dimensional data",
    citation="Khanna, Raff, Inkawhich, SaTML 2024",
    package=__name__,
    modules=(sys.modules[__name__],),
    short="High-dimensional models",
    expand=lambda block, profile: tracks.expand(block),
)
