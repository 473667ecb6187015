"""Yu et al., "Gradient perturbation is underrated for differentially private convex optimization" (IJCAI 2020)."""

import math
from collections.abc import Iterator

from dpbench.study.context import Context, memoised, select
from dpbench.study.output import Table
from dpbench.study.paper import Ends, Paper
from dpbench.study.printed import Number
from dpbench.study.statistics import means, plus_minus
from dpbench.study.tuning import chosen
from dpbench.study.value_verdict import HONEST, Place, PublishedValue

PAPER = Paper(__name__)
METHODS = {"aop": "AMP", "psgd": "Out-SGD", "dp-sgd": "DP-SGD", "dp-gd": "DP-GD"}
ERRORS = 2.0  # standard errors of a difference


@memoised
def runs(context: Context):
    """(rows of each method at the setting of its grid with the best mean test accuracy, these means)."""
    rows = context.rows("table2")
    rows = rows[rows["held_accuracy"].notna()].assign(percent=lambda table: 100 * table["held_accuracy"])
    best = chosen(rows.assign(error=-rows["percent"]), ["algorithm"], ["settings"], "error")
    return best, means(best, ["algorithm", "settings"], "percent").set_index("algorithm")


@PAPER.artefact("table2")
def table2(context: Context):
    best, printed = runs(context)[1], context.experiment.published()["table2"]
    shown = {name: plus_minus(row["mean"], row["se"], ".2f", ".2f") for name, row in best.iterrows()}
    records = [
        {"method": title, "ours": shown.get(name, "–"), "printed": printed[title]} for name, title in METHODS.items()
    ]
    gaps = [context.gap("table2", title) for name, title in METHODS.items() if name not in best.index]
    columns = {"method": "{method}", "ours (%)": "{ours}", "printed (%)": "{printed}"}
    return Table.of(records, columns, gaps), {}


@PAPER.claim("gradient")
def gradient(context: Context):
    at = Ends(runs(context)[1].reset_index(), "table2", "rows of {algorithm} are missing")
    found = {name: at(algorithm=name) for name in METHODS}
    mine, other = min(found["dp-gd"], found["dp-sgd"]), max(found["aop"], found["psgd"])
    lead = other.lead(mine)
    return (True if lead > ERRORS else False if lead < -ERRORS else None), {
        "mine": mine, "other": other, "gap": mine.mean - other.mean, "error": ERRORS * math.hypot(mine.se, other.se),
    }  # fmt: skip


def published_values(context: Context) -> Iterator[PublishedValue]:
    """The printed means on Adult, each beside our runs at the best setting."""
    rows, printed = runs(context)[0], context.experiment.published()["table2"]
    for name, title in METHODS.items():
        mine = select(rows, algorithm=name)
        number = Number("accuracy", printed[title], k=printed["runs"])
        found = {HONEST: {"accuracy": mine["percent"].tolist()}} if len(mine) else {}
        yield PublishedValue(Place("Table 2", title, "Adult"), "table2", (number,), found, series=("Adult",))


EXPERIMENT = PAPER.experiment(published_values=published_values)
