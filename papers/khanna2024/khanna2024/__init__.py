"""Khanna, Raff and Inkawhich, "SoK: a review of differentially private linear models" (SaTML 2024): Tables II and V.

A run is the review's whole protocol: 20 splits, the tuning grid, and the choice among its settings. What the package
says in words is in words.md.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from dpbench.privacy.ledger import CountedRelease, Laplace, PureDP, Relation
from dpbench.privacy.verify import spent
from dpbench.study.claims import Case
from dpbench.study.context import Context, memoised, select
from dpbench.study.laws import FEWEST
from dpbench.study.output import Table
from dpbench.study.paper import End, Ends, Paper, Stroke, by_recipe, by_switches, drawn_lines
from dpbench.study.printed import Number
from dpbench.study.style import BLACK, BLUE, GREEN, RED
from dpbench.study.value_verdict import Place, PublishedValue

from khanna2024.protocol import TITLES

SHARED, CONSTANTS = "shared noise", "constants as released"
PAPER = Paper(__name__)
ROBUST = ("htfw", "htpl", "htsl", "htso")
TABLES = {"table2": "Table II", "table5": "Table V"}
SETS = {"table2": "Bodyfat", "table5": "Heart"}
BETTER = {"table2": -1, "table5": 1}  # less error, more accuracy
PRIVATE, NONPRIVATE = (0.1, 0.5, 1.0, 2.0, 5.0), 100.0
PRINTED, KEPT, PLAIN = "printed", "noise at a proven ε, tuned", "noise at a proven ε, one setting"
RELEASED, INDEPENDENT = "shared noise, as released", "independent noise, as released"
FORMS = {f"{SHARED} + {CONSTANTS}": RELEASED, CONSTANTS: INDEPENDENT, "": KEPT}  # by the switches that are on
LOOKS = {RELEASED: (RED, "-"), INDEPENDENT: (BLUE, "-"), KEPT: (GREEN, "-"), PLAIN: (GREEN, ":")}
DRAWN = [{"table": which, "method": one} for which, ones in (("table2", ("htso", "htsl", "dpight", "fw")),
         ("table5", ("htso", "htfw", "dpight", "fw"))) for one in ones]  # fmt: skip
LIMITS = {"table2": (0.02, 0.13), "table5": (0.4, 0.9)}
QUANTITIES = ("mean", "two errors")
DELTA = 151.0**-2


@memoised
def runs(context: Context, table: str, artefact: str = "") -> pd.DataFrame:
    """The runs of a table's data set with `method`, `form`, and what a table prints: `mean` and `two` errors."""
    rows = PAPER.rows(context, artefact or table)
    rows = rows[rows["problem"].str.startswith(f"khanna-{SETS[table].lower()}") & rows["measured"].notna()]
    if rows.empty:
        return rows.assign(method=[], form=[], mean=[], two=[])
    return rows.assign(
        method=rows["algorithm"].str.removeprefix("review-"),
        form=rows["on"].map(FORMS).where(rows["set.tuned"].ne(False), PLAIN),
        mean=rows["measured"].astype(float),
        two=2 * rows["measured_error"].astype(float),
    )


@memoised
def ends(context: Context, table: str) -> pd.DataFrame:
    """What a table prints, and the means over our runs of the same, by form, method and ε: `mean`, and its `se`.

    low, high: between which 90 % of our runs are.
    """
    paper, data = context.experiment.published(), runs(context, table)
    ours = data.groupby(["form", "method", "epsilon"], sort=False).agg(
        mean=("mean", "mean"), se=("two", lambda two: two.mean() / 2), seeds=("mean", "size"),
        low=("mean", lambda mean: mean.quantile(0.05)), high=("mean", lambda mean: mean.quantile(0.95)),
    )  # fmt: skip
    printed = [
        {"form": PRINTED, "method": method, "epsilon": float(e), "mean": float(m), "se": float(two) / 2, "seeds": 1}
        for method in TITLES if method in paper[table]
        for e, m, two in zip(paper["epsilon"], paper[table][method]["mean"], paper[table][method]["error"], strict=True)
    ]  # fmt: skip
    return pd.concat([pd.DataFrame(printed), ours.reset_index()], ignore_index=True)


def floor(context: Context, table: str) -> End:
    """w = 0, which in Table V is the class that most rows have."""
    mean, two = map(float, context.experiment.published()["floor"][table])
    return End(mean, two / 2, 1, {})


@PAPER.artefact("table2", section="table", which="table2", name="Table II: Bodyfat, mean squared error", least="w = 0")
@PAPER.artefact("table5", section="table", which="table5", name="Table V: Heart, accuracy", least="w = 0: larger class")
def table(context: Context, which, name, least):
    data, base = ends(context, which), floor(context, which)
    across = {"nonprivate" if e == NONPRIVATE else f"ε = {e:g}": {"epsilon": e} for e in sorted(set(data["epsilon"]))}
    bottom = [{"form": "", "method": least, "mean": base.mean, "se": base.se} | at for at in across.values()]
    keys = [{"method": one, "form": form} for one in TITLES for form in (PRINTED, *LOOKS)]
    keys = [{"method": least, "form": ""}, *(key for key in keys if len(select(data, **key)))]
    lead = {"method": lambda key: TITLES.get(key["method"], key["method"]), "runs": "{form}"}
    data = pd.concat([pd.DataFrame(bottom), data], ignore_index=True)
    made = Table.crossed(data, keys, lead, across, lambda one: f"{one['mean']:.4f} ({2 * one['se']:.4f})", data=data)
    made.gaps = [] if len(runs(context, which)) else [context.gap(which, "every run")]
    return made, {}


def place(key) -> str:
    return f"{TITLES[key['method']]} on {SETS[key['table']]}"


@PAPER.artefact("curves")
def curves(context: Context):
    data = pd.concat([ends(context, which).assign(table=which) for which in TABLES]).query("epsilon != @NONPRIVATE")

    def panel(axis, key):
        dots = select(data, form=PRINTED, **key)
        axis.errorbar(dots["epsilon"], dots["mean"], 2 * dots["se"], fmt="o", color=BLACK, ms=4, lw=1, label=PRINTED)
        axis.axhline(floor(context, key["table"]).mean, color=BLACK, lw=1, ls=":", label="w = 0")
        axis.set(xscale="log", ylim=LIMITS[key["table"]], title=place(key))

    page = drawn_lines(
        context, "curves", data[data["form"].ne(PRINTED)], "epsilon", DRAWN,
        [Stroke({"form": form}, form, colour, 1.2, style, end=False) for form, (colour, style) in LOOKS.items()],
        lambda key, lines: f"{place(key)}: {lines}", panel=panel,
        columns=4, size=(2.6, 2.5), room=0.9,
    )  # fmt: skip
    page.label("ε", "error (above), accuracy (below)")
    return page.figure(data), {}


def found(context: Context, table: str, **key) -> Iterator[tuple[str, list[End], list[bool]]]:
    """By form, the best end with this key at each ε, and whether it is better than w = 0 by two errors of its own."""
    base, sign = floor(context, table), BETTER[table]
    for form in (PRINTED, *FORMS.values()):
        at = Ends(select(ends(context, table), form=form, **key), table, f"no run: {form}, ε = {{epsilon:g}}")
        levels = [e for e in context.epsilons(table) if e != NONPRIVATE]
        best = [max(at.all(epsilon=e), key=lambda end: sign * end.mean) for e in levels]
        yield form, best, [sign * (end.mean - base.mean) > 2 * end.se for end in best]


@PAPER.claim("htso_bodyfat", section="htso", table="table2", name="Bodyfat")
@PAPER.claim("htso_heart", section="htso", table="table5", name="Heart")
def htso(context: Context, table, name):
    least = floor(context, table).mean
    for form, best, ahead in found(context, table, method="htso"):
        given = {"form": form, "won": sum(ahead), "of": len(best), "least": least}
        yield all(ahead), given | {"means": ", ".join(f"{end.mean:.4f}" for end in best)}


@PAPER.claim("robust_bodyfat", section="robust", table="table2", name="Bodyfat")
@PAPER.claim("robust_heart", section="robust", table="table5", name="Heart")
def robust(context: Context, table, name):
    for form, best, ahead in found(context, table):
        first = [end["method"] in ROBUST for end in best]
        won, named = sum(map(min, first, ahead)), ", ".join(TITLES[end["method"]] for end in best)
        yield won == len(best), {"form": form, "first": sum(first), "won": won, "of": len(best), "named": named}


@PAPER.claim("shared")
def shared(context: Context):
    """At each ε, whether HTSO's printed error on Bodyfat is nearer to the mean of shared noise or of independent."""
    means = {form: np.array([end.mean for end in best]) for form, best, _ in found(context, "table2", method="htso")}
    printed, ours, other = (means[form] for form in (PRINTED, RELEASED, INDEPENDENT))
    near = abs(printed - ours) < abs(printed - other)
    given = {"printed": printed.mean(), "ours": ours.mean(), "other": other.mean()}
    return bool(near.all()), given | {"near": near.sum(), "of": len(near)}


@PAPER.erratum("peeling")
def peeling():
    """s = 10 choices by report noisy max, and the 10 chosen values, each moved by λ, with scale λ·2√(3 s ln(1/δ)/ε)."""
    for epsilon in PRIVATE:
        scale = 2 * math.sqrt(30 * math.log(1 / DELTA) / epsilon)
        choices, values = CountedRelease(PureDP(2 / scale), 10, "choices"), CountedRelease(Laplace(scale), 10, "values")
        low, high = (spent(plan, DELTA, Relation.REPLACE_ONE).epsilon for plan in ((values,), (choices, values)))
        yield Case(f"s = 10, ε = {epsilon:g}", epsilon, low, high, part=True)


@PAPER.erratum("truncation")
def truncation():
    return (Case(f"residuals of any size, ε = {epsilon:g}", epsilon, 0.0, math.inf) for epsilon in PRIVATE)


@PAPER.erratum("location")
def location():
    """Scale 1: a row of the second half moves the direction by 8η at most, which then shrinks by 1 - η a step."""
    eta = math.log(151 / math.log(28)) / 151
    plan = tuple(CountedRelease(PureDP(16 * eta * (1 - eta) ** i), 1, "direction") for i in range(76))
    cost = spent(plan, DELTA, Relation.REPLACE_ONE).epsilon
    for epsilon in PRIVATE:
        yield Case(f"Bodyfat, ε = {epsilon:g}", epsilon, 0.0, cost)


def published_values(context: Context) -> Iterator[PublishedValue]:
    """Every printed pair of the methods that are here: the mean of 20 splits and its two standard errors.

    With shared noise the 20 splits are one draw, so a printed pair is one of our runs, whose seed is the draw.
    """
    paper, names = context.experiment.published(), {"mean": "mean", "two_errors": "two"}
    for which, title in TABLES.items():
        rows, wrong = runs(context, which), runs(context, which, "planted")
        rows, base = rows[rows["form"].ne(PLAIN)], [[float(one)] * FEWEST for one in paper["floor"][which]]
        for (method, epsilon), own in rows.groupby(["method", "epsilon"]):
            printed, off = paper[which][method], select(wrong, method=method, epsilon=epsilon)
            pair = (printed[name][paper["epsilon"].index(epsilon)] for name in ("mean", "error"))
            planted, ours = by_recipe(off, **names) if len(off) else {}, by_switches(own, **names)
            planted |= {
                "w = 0": dict(zip(QUANTITIES, base, strict=True)),
                INDEPENDENT: ours.get(frozenset([CONSTANTS]), {}),
            }
            yield PublishedValue(
                Place(title, TITLES[method], "nonprivate" if epsilon == NONPRIVATE else f"ε = {epsilon:g}"),
                which,
                tuple(map(Number, QUANTITIES, pair)),
                ours,
                switches=(SHARED, CONSTANTS),
                planted=planted,
            )


EXPERIMENT = PAPER.experiment(published_values=published_values)
