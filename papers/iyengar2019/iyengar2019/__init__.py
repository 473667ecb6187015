"""Iyengar, Near, Song, Thakkar, Thakurta and Wang, "Towards practical differentially private convex optimization".

What it says in words is in words.md. The paper shows accuracies as curves alone, and prints no number that our rows
could be compared with: there are no printed cells. What "negligible" and "competitive" mean is not said there; the
thresholds below are ours.
"""

import math

import pandas as pd
from dpbench.study.claims import Case
from dpbench.study.context import Context, memoised, select
from dpbench.study.output import Table
from dpbench.study.panels import Panels, band
from dpbench.study.paper import Ends, Paper
from dpbench.study.statistics import means, plus_minus
from dpbench.study.style import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED

PAPER = Paper(__name__)
SETS = {"iyengar-adult": "Adult", "iyengar-synthetic-l": "Synthetic-L", "iyengar-synthetic-h": "Synthetic-H"}
HF, AMP, OURS = "H-F AMP", "AMP", "AOP, tight accounting (not in the paper)"
LABELS = {"dp-sgd": "Private SGD", "psgd": "Private PSGD", "dp-frank-wolfe": "Private Frank-Wolfe"}
BASELINE = "Without noise"
METHODS = (AMP, HF, *LABELS.values(), OURS)
COLOURS = dict(zip(METHODS, (RED, ORANGE, GREEN, BLUE, PINK, BLACK), strict=True))
MARKERS = dict(zip(METHODS, "os^vDx", strict=True))
LOW, HIGH = ("Adult", "Synthetic-L"), ("Synthetic-H",)
NEGLIGIBLE = 1.0  # percentage points below the baseline
COMPETITIVE = 1.0  # percentage points below the tuned variant
ERRORS = 2.0  # standard errors by which another method has to be better


def method_of(row) -> str:
    """The paper's name of a run: aop is its AMP, tuned over the share of ε unless that follows its rule."""
    if row.epsilon > 1e5:
        return BASELINE
    if row.algorithm != "aop":
        return LABELS[row.algorithm]
    if row.accounting == "tight":
        return OURS
    return HF if '"fraction":null' in row.settings.replace(" ", "") else AMP


@memoised
def accuracies(context: Context) -> pd.DataFrame:
    """Rows (data, loss, method, epsilon, mean, se, sd, seeds) in percent; the best setting by that very mean."""
    rows = context.rows("accuracy")
    rows = rows[rows["status"].eq("done") & rows["held_accuracy"].notna()]
    if rows.empty:
        return rows.assign(data=[], loss=[], method=[], mean=[], se=[], sd=[], seeds=[])
    rows = rows.assign(
        data=rows["problem"].map(lambda name: SETS[name.partition(":")[0]]),
        loss=rows["problem"].map(lambda name: name.partition(":")[2].partition(",")[0]),
        method=[method_of(row) for row in rows.itertuples()],
        percent=100 * rows["held_accuracy"],
    )
    by = ["data", "loss", "method", "epsilon"]
    table = means(rows, [*by, "settings"], "percent")
    return table.loc[table.groupby(by, sort=False)["mean"].idxmax()].reset_index(drop=True)


def epsilons(context: Context) -> list[float]:
    """The ε of the private runs, rising."""
    return [epsilon for epsilon in context.epsilons("accuracy") if epsilon < 1e5]


@PAPER.artefact("accuracy")
def accuracy(context: Context):
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
    return page.figure(table), {}


@PAPER.artefact("table")
def table(context: Context):
    found = accuracies(context)
    order = {name: place for place, name in enumerate((*SETS.values(), "logistic", "huber-svm", *METHODS))}
    found = found[found["method"].ne(BASELINE)]
    found = found.sort_values(["data", "loss", "method", "epsilon"], key=lambda column: column.replace(order))
    made = Table.crossed(
        found, found[["data", "loss", "method"]].drop_duplicates().to_dict("records"),
        {"data, loss, method": "{data}, {loss}, {method}"},
        {f"ε = {epsilon:g}": {"epsilon": epsilon} for epsilon in sorted(set(found["epsilon"]))},
        lambda one: plus_minus(one["mean"], one["se"] if one["seeds"] > 1 else math.nan, ".2f", ".2f"), data=found,
    )  # fmt: skip
    made.gaps = [] if len(found) else [context.gap("accuracy", "every row")]
    return made, {}


def ends(context: Context) -> Ends:
    """Accuracies in percent by data, method and ε, logistic loss."""
    return Ends(select(accuracies(context), loss="logistic"), "accuracy", "no rows of {method} on {data}")


@PAPER.claim("cost")
def cost(context: Context):
    at = ends(context)
    whole, private = at(data="Adult", method=BASELINE), at(data="Adult", method=HF, epsilon=1.0)
    lost = whole.mean - private.mean
    return lost <= NEGLIGIBLE, {"lost": lost, "error": ERRORS * math.hypot(whole.se, private.se)}


@PAPER.claim("low", names=LOW, mine=(AMP, HF), others=tuple(LABELS.values()))
@PAPER.claim("high", names=HIGH, mine=(LABELS["dp-frank-wolfe"],), others=(HF, LABELS["dp-sgd"], LABELS["psgd"]))
def best_of(context: Context, names, mine, others):
    """Where none of the others is better than the best of mine by more than their errors."""
    at, found = ends(context), []
    for data in names:
        for epsilon in epsilons(context):
            best = max((at(data=data, method=name, epsilon=epsilon) for name in mine), key=lambda end: end.mean)
            for other in (at(data=data, method=name, epsilon=epsilon) for name in others):
                if best.lead(other) > ERRORS:
                    gap = other.mean - best.mean
                    found.append(f"{other['method']} on {data} at ε = {epsilon:g} by {gap:.2f}")
    return not found, {"by": "beaten by: " + "; ".join(found) if found else "no other method is better anywhere"}


@PAPER.claim("tuning")
def untuned(context: Context):
    at = ends(context)
    gaps = {
        (data, epsilon): (at(data=data, method=AMP, epsilon=epsilon), at(data=data, method=HF, epsilon=epsilon))
        for data in LOW
        for epsilon in epsilons(context)
    }
    (data, epsilon), (tuned, own) = max(gaps.items(), key=lambda pair: pair[1][0].mean - pair[1][1].mean)
    gap, error = tuned.mean - own.mean, ERRORS * math.hypot(tuned.se, own.se)
    return gap <= COMPETITIVE, {"gap": gap, "error": error, "data": data, "epsilon": epsilon}


@PAPER.erratum("seeds")
def seeds():
    """One case for all: the number of seeds does not depend on ε."""
    yield Case("AMP and H-F AMP, at every published ε (256 outputs)", 10.0, math.inf, math.inf)


EXPERIMENT = PAPER.experiment()
