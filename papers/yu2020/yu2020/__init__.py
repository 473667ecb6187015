"""Yu et al., "Gradient perturbation is underrated for differentially private convex optimization" (IJCAI 2020)."""

import sys
from collections.abc import Iterator

from dpbench.study.context import Context, kept, select
from dpbench.study.declare import artefact, claim
from dpbench.study.experiment import Experiment
from dpbench.study.output import Table
from dpbench.study.statistics import means, plus_minus
from dpbench.study.verdict import NotEnough, Verdict
from dpbench.study.verdicts import HONEST, Cell, Number, Place

METHODS = {"aop": "AMP", "psgd": "Out-SGD", "dp-sgd": "DP-SGD", "dp-gd": "DP-GD"}
ERRORS = 2.0  # standard errors of a difference


@kept
def runs(context: Context):
    """(rows of each method at the setting of its grid with the best mean test accuracy, these means)."""
    rows = context.rows("table2")
    rows = rows[rows["held_accuracy"].notna()].assign(percent=lambda table: 100 * table["held_accuracy"])
    table = means(rows, ["algorithm", "settings"], "percent")
    best = table.loc[table.groupby("algorithm", sort=False)["mean"].idxmax()]
    return rows.merge(best[["algorithm", "settings"]]), best.set_index("algorithm")


@artefact("table2", "Table 2: test accuracy on Adult at ε = 0.1")
def table2(context: Context) -> Table:
    """The printed means beside ours."""
    best, printed = runs(context)[1], context.experiment.published()["table2"]
    told = {name: plus_minus(row["mean"], row["se"], ".2f", ".2f") for name, row in best.iterrows()}
    records = [
        {"method": title, "ours": told.get(name, "–"), "printed": printed[title]} for name, title in METHODS.items()
    ]
    gaps = [context.gap("table2", title) for name, title in METHODS.items() if name not in best.index]
    columns = {"method": "{method}", "ours (%)": "{ours}", "printed (%)": "{printed}"}
    caption = "Mean test accuracy ± its standard error at the best setting tried, beside the printed mean of 20 runs."
    return Table.of(records, columns, caption, gaps)


@claim("gradient", "Gradient perturbation beats objective and output perturbation.", place="Section 4, Table 2",
       shows="table2")  # fmt: skip
def gradient(context: Context) -> Verdict:
    """The worse of DP-GD and DP-SGD against the better of the others."""
    best = runs(context)[1]
    if set(METHODS) - set(best.index):
        raise NotEnough
    mine = best.loc[["dp-gd", "dp-sgd"]].nsmallest(1, "mean").iloc[0]
    other = best.loc[["aop", "psgd"]].nlargest(1, "mean").iloc[0]
    gap, error = mine["mean"] - other["mean"], ERRORS * (mine["se"] ** 2 + other["se"] ** 2) ** 0.5
    held = True if gap > error else False if gap < -error else None
    return Verdict.of(held, f"{mine.name} is {gap:+.2f} percentage points from {other.name} (± {error:.2f})")


def cells(context: Context) -> Iterator[Cell]:
    """The printed means on Adult, each beside our runs at the best setting."""
    rows, printed = runs(context)[0], context.experiment.published()["table2"]
    for name, title in METHODS.items():
        mine = select(rows, algorithm=name)
        number = Number("accuracy", printed[title], k=printed["runs"])
        found = {HONEST: {"accuracy": mine["percent"].tolist()}} if len(mine) else {}
        yield Cell(Place("Table 2", title, "Adult"), "table2", (number,), found, series=("Adult",))


EXPERIMENT = Experiment(
    name="yu2020",
    title="Gradient perturbation is underrated for differentially private convex optimization",
    citation="Yu, Zhang, Chen, Yin, Liu, IJCAI 2020",
    package=__name__,
    modules=(sys.modules[__name__],),
    cells=cells,
    short="Gradient perturbation",
)
