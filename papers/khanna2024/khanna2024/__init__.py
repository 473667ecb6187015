"""A high-dimensional track: families of private linear models where d is large, in the manner of Khanna et al. (2024).

The review compares methods at settings tuned on each data set. Here every method runs at its public rule, from n, d and
ε alone, as on the leaderboard, whose keys these runs share: rows of the one are rows of the other.
"""

import sys

import numpy as np
from dpbench.leaderboard import tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.study.context import Context, memoised, select
from dpbench.study.declare import artefact, claim
from dpbench.study.experiment import Experiment
from dpbench.study.output import Figure, Table
from dpbench.study.panels import Panels, curve
from dpbench.study.statistics import excess, means, plus_minus
from dpbench.study.style import GREY, look
from dpbench.study.verdict import NotEnough, Verdict

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
TUNED = "Every method runs at its public rule, from n, d and ε alone. Neighbours: replace-one; δ = 1/n²."


@memoised
def losses(context: Context):
    """Mean excess loss by problem, method and ε, in units of that of w = 0; families by name."""
    rows = context.rows("losses")
    rows = rows[rows["excess"].notna() | rows["status"].eq("diverged")]
    rows = rows[rows["algorithm"].isin(FAMILY)]
    ratio = excess(rows) / rows["problem"].map(nulls()).astype(float)
    table = means(rows.assign(ratio=ratio), ["problem", "algorithm", "epsilon"], "ratio")
    return table.assign(family=table["algorithm"].map(FAMILY))


@artefact("losses", "Excess loss over that of w = 0, where d is large")
def figure(context: Context) -> Figure:
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
    caption = "Mean excess loss in units of that of w = 0 (dotted: no data used). Bands are ± 1 standard error."
    return page.figure(caption, table, method=TUNED)


@artefact("best", "The best family on each problem")
def best_table(context: Context) -> Table:
    """The best method of each family, a column per problem and ε."""
    records = []
    for (problem, epsilon, family), part in losses(context).groupby(["problem", "epsilon", "family"], sort=False):
        one = part.loc[part["mean"].idxmin()]
        records.append({"problem": problem, "epsilon": epsilon, "family": family, "mean": one["mean"], "se": one["se"]})
    families, problems = list(FAMILIES), list(TITLES)
    records.sort(key=lambda one: (families.index(one["family"]), problems.index(one["problem"]), one["epsilon"]))
    gaps = [] if records else [context.gap("losses", "every row")]
    return Table.spread(records, "family", "{family}", lambda one: f"{one['problem']}, ε = {one['epsilon']:g}",
                        lambda one: plus_minus(one["mean"], one["se"], ".2g"),
                        "Excess loss over that of w = 0, of the best method of each family ± its standard error.",
                        gaps, method=TUNED)  # fmt: skip


def cells(context: Context):
    """(problem, ε, best coordinate method, best of the others), where both are there."""
    found = losses(context)
    for (problem, epsilon), part in found.groupby(["problem", "epsilon"], sort=False):
        mine = part["family"].eq(COORDINATE)
        if mine.any() and (~mine).any():
            yield problem, epsilon, *(each.loc[each["mean"].idxmin()] for each in (part[mine], part[~mine]))


@claim("coordinates", "Coordinate-wise methods perform best.", place="abstract", shows="losses")
def coordinates(context: Context) -> Verdict:
    """The best coordinate method against the best of all other families, cell by cell."""
    wins, losses_, ties, still = [], [], 0, 0
    for problem, epsilon, mine, other in cells(context):
        gap, error = mine["mean"] - other["mean"], ERRORS * np.hypot(mine["se"], other["se"])
        where = f"{problem} at ε = {epsilon:g}"
        ties += bool(abs(gap) <= error)
        still += bool(gap < -error and mine["mean"] > LEARNS)
        (wins if gap < -error else losses_ if gap > error else []).append(where)
    if not wins and not losses_ and not ties:
        raise NotEnough
    told = f"better on {len(wins)} cells (on {still} of them by staying at w = 0), as good on {ties}, worse on "
    return Verdict.of(len(wins) > len(losses_), f"{told}{len(losses_)}: {'; '.join(losses_) or 'none'}")


@claim("useful", "Some private method learns: it is better than w = 0.", place="not in the paper", shows="losses")
def useful(context: Context):
    """At each ε, on how many problems some method is below w = 0 by 1 % and by two standard errors."""
    found = losses(context)
    if found.empty:
        raise NotEnough
    for epsilon, part in found.groupby("epsilon"):
        below = part[part["mean"] + ERRORS * part["se"] < LEARNS].groupby("problem").size()
        there = part["problem"].nunique()
        held = True if len(below) == there else None if len(below) else False
        yield Verdict.of(
            held, f"on {len(below)} of {there} problems: {', '.join(below.index) or 'none'}", f"ε = {epsilon:g}"
        )


EXPERIMENT = Experiment(
    name="khanna2024",
    title="Private linear models for high-dimensional data",
    citation="Khanna, Raff, Inkawhich, SaTML 2024",
    package=__name__,
    modules=(sys.modules[__name__],),
    short="High-dimensional models",
    expand=lambda block, profile: tracks.expand(block),
)
