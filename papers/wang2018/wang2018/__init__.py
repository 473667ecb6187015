"""Wang, "Revisiting differentially private linear regression" (UAI 2018): AdaSSP on 26 of its UCI sets.

The printed values are the authors' result file; what the package says in words is in words.md.
"""

import math
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pandas as pd
from dpbench.privacy.ledger import ConvexPerturbation, CountedRelease, Gaussian, Relation
from dpbench.privacy.verify import spent
from dpbench.study.claims import Case, NotEnough
from dpbench.study.context import Context, memoised, select
from dpbench.study.output import Table
from dpbench.study.panels import Panels, band
from dpbench.study.paper import End, Ends, Paper, by_recipe, by_switches
from dpbench.study.printed import Number
from dpbench.study.statistics import means, plus_minus
from dpbench.study.style import BLACK, BLUE, GREEN, GREY, RED
from dpbench.study.value_verdict import Place, PublishedValue

CONSTANTS, HALF = "constants as released", "half of Xᵀy"
PAPER = Paper(__name__)
W0, BEST = "w = 0", "non-private"
METHODS = {"ssp-2018": "SSP", "adassp": "AdaSSP", "adassp-2018": "AdaSSP", "objpert-2018": "ObjPert"}
RELEASED = {"SSP": {CONSTANTS}, "AdaSSP": {CONSTANTS}, "ObjPert": {CONSTANTS, HALF}}
JUDGED = ("AdaSSP", "ObjPert")
LOOKS = {"SSP": (GREEN, "^"), "AdaSSP": (RED, "o"), "ObjPert": (BLUE, "s")}
RELEASED_FORM = " as released"
RIVALS = ("ObjPert as released", "ObjPert", "SSP as released", "SSP", W0)
SHOWN = ("bike", "protein", "wine", "airfoil", "sml", "housing")
NEARLY_ALL, ERRORS = 0.9, 2.0  # share of the sets; standard errors of a difference
EPSILON, LAST = 1.0, 10.0


@memoised
def runs(context: Context, artefact: str = "errors") -> pd.DataFrame:
    """The runs with `set`, `method`, `error` (mean squared error on the tenth kept apart) and `on`, the switches."""
    rows = PAPER.rows(context, artefact)
    if rows.empty:
        return rows.assign(set=[], method=[], error=[])
    rows = rows[rows["held_loss"].notna()]
    bare = rows["planted"].eq(0) & (artefact == "errors")  # all noise of SSP taken away
    released = rows["algorithm"].eq("adassp-2018")  # its constants are its own, not a setting
    return rows.assign(
        set=rows["problem"].str.removeprefix("wang-").str.partition(":")[0],
        method=rows["algorithm"].map(METHODS).where(~bare, BEST),
        error=2 * rows["held_loss"],
        on=rows["on"].where(~released, CONSTANTS).where(~bare, ""),
    )


@memoised
def table(context: Context) -> pd.DataFrame:
    """Mean errors by set, method, the switches that are on, and ε; the model without noise is at ε = 1 alone."""
    return means(runs(context), ["set", "method", "on", "epsilon"], "error")


def on(method: str, released: bool) -> str:
    """The switches of a method's released form; its exact form has none."""
    return " + ".join(one for one in (CONSTANTS, HALF) if released and one in RELEASED[method])


def sets(context: Context) -> list[str]:
    """The sets with rows, in the paper's order."""
    there = set(runs(context)["set"])
    return [name for name in context.experiment.published()[W0] if name in there]


def printed(context: Context, method: str, name: str, epsilon: float = EPSILON) -> str:
    """The file's mean; of w = 0 and the model without noise there is one for all ε."""
    paper = context.experiment.published()
    values = paper[method][name]["mean"]
    return values[paper["epsilon"].index(epsilon)] if len(values) > 1 else values[0]


@PAPER.artefact("errors")
def errors(context: Context):
    records = []
    for method in (W0, BEST, *RELEASED):
        forms = {"as released": on(method, True), "exact": ""} if method in RELEASED else {"ours": ""}
        for name in sets(context):
            records.append({"set": name, "column": f"{method}, printed", "text": printed(context, method, name)})
            for form, switches in forms.items():
                cell = select(table(context), set=name, method=method, on=switches, epsilon=EPSILON)
                records += [
                    {"set": name, "column": f"{method}, {form}", "text": plus_minus(one.mean, one.se, ".4f", ".4f")}
                    for one in cell.itertuples()
                ]
    data = pd.DataFrame(records, columns=["set", "column", "text"])
    columns = {name: {"column": name} for name in data["column"].unique()}
    made = Table.crossed(data, [{"set": name} for name in sets(context)], {"set": "{set}"}, columns, "{text}")
    made.gaps = [] if records else [context.gap("errors", "every row")]
    return made, {"epsilon": EPSILON}


@PAPER.artefact("curves")
def curves(context: Context):
    page = Panels(context, "errors", len(SHOWN), columns=3, size=(3.0, 2.5), room=0.9)
    levels = context.experiment.published()["epsilon"]
    for axis, name in page.over(SHOWN, title=str):
        panel = select(table(context), set=name)
        if page.empty(axis, panel, name, f"wang-{name}"):
            continue
        for method, (colour, marker) in LOOKS.items():
            for released, form, style in ((True, "as released", "-"), (False, "exact", "--")):
                line = select(panel, method=method, on=on(method, released)).sort_values("epsilon")
                axis.plot(line["epsilon"], line["mean"], style, color=colour, label=f"{method}, {form}")
                band(axis, line, "epsilon", colour)
            values = [float(printed(context, method, name, each)) for each in levels]
            axis.plot(levels, values, marker, color=colour, mfc="none", ms=5, label=f"{method}, printed")
        low, high = (float(printed(context, method, name)) for method in (BEST, W0))
        for value, method, colour in ((high, W0, BLACK), (low, BEST, GREY)):
            axis.axhline(value, color=colour, lw=1, ls=":", label=f"{method}, printed")
        axis.set(xscale="log", yscale="log", ylim=(0.8 * low, 3 * max(low, high)))
    page.label("ε", "mean squared error")
    return page.figure(table(context), legend=4), {}


def won(context: Context, rival: str, epsilon: float) -> tuple[int, int, int]:
    """(sets on which AdaSSP's mean is below the rival's, on which by 2 standard errors, of how many).

    As released it is set against what is as released, else the exact form against the exact one.
    """
    at, leads = Ends(table(context), "errors", "no rows of {method} on {set}"), []
    method, released = rival.removesuffix(RELEASED_FORM), rival.endswith(RELEASED_FORM)
    for name in sets(context):
        mine = at.matching(set=name, method="AdaSSP", on=on("AdaSSP", released), epsilon=epsilon)
        if method == W0:
            leads += [one.lead(End(float(printed(context, W0, name)), 0.0, 1, {})) for one in mine]
            continue
        other = at.matching(set=name, method=method, on=on(method, released), epsilon=epsilon)
        leads += [one.lead(two) for one, two in zip(mine, other, strict=False)]
    return sum(lead > 0 for lead in leads), sum(lead > ERRORS for lead in leads), len(leads)


@PAPER.artefact("wins")
def wins(context: Context):
    counts = {e: {rival: won(context, rival, e) for rival in RIVALS} for e in context.epsilons("wins")}
    records = [
        {"ε": f"{e:g}"} | {rival: f"{below} ({clearly}) of {of}" for rival, (below, clearly, of) in by.items()}
        for e, by in counts.items()
    ]
    gaps = [] if len(runs(context)) else [context.gap("wins", "every row")]
    return Table(pd.DataFrame(records, columns=["ε", *RIVALS]), pd.DataFrame(records), gaps), {}


@PAPER.claim("better", rival="ObjPert", title="objective perturbation")
@PAPER.claim("better_ssp", section="better", rival="SSP", title="sufficient statistics perturbation")
def better(context: Context, rival, title):
    """On nine sets in ten, by means; all sets are needed."""
    every = len(context.experiment.published()[W0])
    for suffix, form in ((RELEASED_FORM, "as released"), ("", "both with exact accounting")):
        below, clearly, of = won(context, rival + suffix, EPSILON)
        if of < every:
            raise NotEnough(f"{of} of {every} sets have rows", "errors")
        yield below >= NEARLY_ALL * of, {"form": form, "below": below, "clearly": clearly, "of": of}


@PAPER.claim("half")
def half(context: Context):
    """(ObjPert - non-private)/(w = 0 - non-private) at ε = 10, of sets where w = 0 is twice as far off or more."""
    at, ratios = Ends(table(context), "errors", "no rows of {method} on {set}"), []
    for name in sets(context):
        floor, width, there = (
            float(printed(context, *at)) for at in ((BEST, name), (W0, name), ("ObjPert", name, LAST))
        )
        if width < 2 * floor:
            continue
        best = at(set=name, method=BEST, on="", epsilon=EPSILON).mean
        ours = [at(set=name, method="ObjPert", on=form, epsilon=LAST).mean for form in (on("ObjPert", True), CONSTANTS)]
        ratios.append([(there - floor) / (width - floor), *((mean - best) / (width - best) for mean in ours)])
    if not ratios:
        raise NotEnough("no set has a wide enough gap", "errors")
    published, halved, whole = np.median(ratios, axis=0)
    near = abs(published - halved) < abs(published - whole)
    return bool(near), {"printed": published, "halved": halved, "whole": whole, "of": len(ratios)}


@PAPER.erratum("ssp")
def ssp():
    """√ln(4/δ)/ε on each of two releases, which a row of length 1 with |y| = 1 moves by 1 each."""
    for epsilon in (0.1, 1.0, 10.0):
        releases = (CountedRelease(Gaussian(math.sqrt(math.log(4 / 1e-6)) / epsilon), 2, "sums"),)
        cost = spent(releases, 1e-6, Relation.ADD_REMOVE).epsilon
        yield Case(f"δ = 1e-6, ε = {epsilon:g}", epsilon, cost, cost)


@PAPER.erratum("objpert")
def objpert():
    """Half of Xᵀy: a row moves the gradient by 3, not by 2."""
    for epsilon in (0.1, 1.0, 2.0, 10.0):
        z = math.sqrt(4 * math.log(2 / 1e-6) + 2 * epsilon) / epsilon**2
        event = ConvexPerturbation(2 / 3 * z, epsilon**2 / 2, Relation.ADD_REMOVE)
        cost = spent((CountedRelease(event, 1, "minimiser"),), 1e-6, Relation.ADD_REMOVE).epsilon
        yield Case(f"δ = 1e-6, ε = {epsilon:g}", epsilon, 0.0, cost)


def published_values(context: Context) -> Iterator[PublishedValue]:
    """Every mean of the file for AdaSSP and objective perturbation, beyond that of the model without noise.

    Fold by fold, as the folds' own variance, which both have in common, would hide the noise. SSP is not judged: noise
    may make XᵀX singular, so its squared error has no mean that ten folds could estimate.
    """
    rows, paper = runs(context), context.experiment.published()
    wrong = runs(context, "planted")
    wrong = wrong.assign(method=wrong["algorithm"].map(METHODS))
    floor = select(rows, method=BEST).groupby("problem")["error"].mean().to_dict()
    rows, wrong = (
        part.assign(error=part["error"] - part["problem"].map(floor).astype(float)) for part in (rows, wrong)
    )
    for method in JUDGED:
        for name in sets(context):
            for epsilon in paper["epsilon"]:
                own, off = (select(part, set=name, method=method, epsilon=epsilon) for part in (rows, wrong))
                if own.empty:
                    continue
                beyond = Decimal(printed(context, method, name, epsilon)) - Decimal(printed(context, BEST, name))
                yield PublishedValue(
                    Place(f"ε = {epsilon:g}", method, name),
                    "errors",
                    (Number("added error", str(beyond), k=paper["folds"]),),
                    by_switches(own, added_error="error"),
                    switches=tuple(one for one in (CONSTANTS, HALF) if one in RELEASED[method]),
                    planted=by_recipe(off, added_error="error") if len(off) else {},
                    series=(name,),
                )


EXPERIMENT = PAPER.experiment(published_values=published_values)
