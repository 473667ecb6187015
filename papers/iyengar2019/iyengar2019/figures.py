"""Test accuracy against ε, as the paper draws it, and the same as a table."""

import math

from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Figure, Table
from dpbench.study.panels import Panels, band
from dpbench.study.statistics import plus_minus
from dpbench.study.style import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED

from iyengar2019.study import BASELINE, METHODS, OURS, SETS, accuracies, epsilons

COLOURS = dict(zip(METHODS, (RED, ORANGE, GREEN, BLUE, PINK, BLACK), strict=True))
MARKERS = dict(zip(METHODS, "os^vDx", strict=True))
TUNED = (
    "Every method but H-F AMP runs at the settings of its grid that have the best mean test accuracy, as in the paper; "
    "that choice is not private. H-F AMP has no setting to choose. A fifth of the rows is kept apart as test rows."
)


@artefact("accuracy", "Test accuracy against ε")
def accuracy(context: Context) -> Figure:
    """A panel per data set, logistic loss."""
    table = select(accuracies(context), loss="logistic")
    page = Panels(context, "accuracy", len(SETS), columns=3, size=(3.0, 2.6), room=0.8)
    for axis, (name, title) in page.over(SETS.items(), title=lambda pair: pair[1]):
        panel = select(table, data=title)
        if page.empty(axis, panel, title, f"{name}:logistic,apart=5"):
            continue
        for method in METHODS:
            line = select(panel, method=method).sort_values("epsilon")
            if len(line):
                style = {"color": COLOURS[method], "marker": MARKERS[method], "ls": "--" if method == OURS else "-"}
                axis.plot(line["epsilon"], line["mean"], label=method, **style)
                band(axis, line, "epsilon", COLOURS[method])
        for row in select(panel, method=BASELINE).itertuples():
            axis.axhline(row.mean, color=GREY, lw=1, ls=":", label=BASELINE)
        axis.set_xscale("log")
    page.label("ε", "test accuracy (%)")
    caption = "Mean test accuracy against ε, logistic loss. Bands are ± 1 standard error. Dotted: without noise."
    return page.figure(caption, table, method=TUNED)


@artefact("table", "Test accuracy, both losses")
def table(context: Context) -> Table:
    """A row per data set, loss and method, a column per ε."""
    found = accuracies(context)
    records = found[found["method"].ne(BASELINE)].to_dict("records")
    order = {name: place for place, name in enumerate((*SETS.values(), *METHODS))}
    return Table.spread(
        sorted(
            records,
            key=lambda one: (order[one["data"]], one["loss"] != "logistic", order[one["method"]], one["epsilon"]),
        ),
        "data, loss, method",
        lambda one: f"{one['data']}, {one['loss']}, {one['method']}",
        lambda one: f"ε = {one['epsilon']:g}",
        lambda one: plus_minus(one["mean"], one["se"] if one["seeds"] > 1 else math.nan, ".2f", ".2f"),
        "Mean test accuracy in percent ± its standard error, at the best setting tried.",
        [] if len(records) and epsilons(context) else [context.gap("accuracy", "every row")],
        method=TUNED,
    )
