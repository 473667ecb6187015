"""The family `Kinks`, where an epoch's gradient turns: theorems that wrong oracles, noise and epochs break.

A verdict counts only if a run that is wrong on purpose gets another one; its numbers say which ones do.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.zeroth_order.rows import (
    PAPER,
    exponent,
    mean_of,
    noise_of,
    noted,
    over_seeds,
    stderr,
    variance_of,
    whole,
    whole_bound,
)
from dpbench.study import laws
from dpbench.study.claims import NOT_TESTABLE, NotEnough
from dpbench.study.context import Context
from dpbench.study.laws import mean_interval
from dpbench.study.output import Table, Words
from dpbench.study.panels import Panels, curve, joined
from dpbench.study.paper import Ends, WithWords
from dpbench.study.statistics import plus_minus
from dpbench.study.style import BLUE, GREY, Look

SURE = laws.errors(36)  # two checks of nine kinds of runs at two ρ: the largest by chance, in standard errors
MOVES = 5.0  # standard errors by which a wrong run has to move the measure
NEAR = 0.1  # how far above the theorem's a measured exponent may be
NOISE = {0.5: "half the noise", 2.0: "twice the noise"}
# These have to move the measure; a doubled GRAD or a smaller radius leads along the gutters as well.
MOVING = ("no DIFF", "DIFF negated", "radius tripled", "ascent", *NOISE.values())


class KinkRuns(NamedTuple):
    """The ρ of some runs, and what is wrong with them."""

    rho: float
    wrong: str


def runs_of(context: Context) -> dict[float, dict[str, pd.DataFrame]]:
    """By ρ and by what is wrong ("" where nothing is): the rows of the family."""
    rows = noted(context, "kinks")
    if rows.empty:
        raise NotEnough("no rows", "kinks")
    rows = rows.assign(wrong=rows["planted"].map(NOISE).fillna(rows["set.wrong"]))
    found: dict[float, dict[str, pd.DataFrame]] = {}
    for (rho, wrong), runs in frames.groups(rows, KinkRuns, sort=True):
        found.setdefault(rho, {})[wrong] = runs
    return {rho: runs for rho, runs in found.items() if "" in runs}


def moved(runs: dict[str, pd.DataFrame]) -> dict[str, float]:
    """By wrong run: how far its measure is above the right runs', in standard errors of the difference."""
    ends = Ends(over_seeds(pd.concat(runs.values()), ["wrong"]), "kinks", "")
    return {wrong: ends(wrong="").lead(ends(wrong=wrong)) for wrong in runs if wrong}


# Checks: rows of one run → whether the theorem holds there, and its numbers.


def bounded(rows: pd.DataFrame) -> tuple[bool, str]:
    """Theorem 4.9."""
    measured, bound = rows["measured"].mean(), whole_bound(rows).iloc[0]
    return bool(measured <= bound), f"{measured:.3g} (bound {bound:.3g})"


def follows(rows: pd.DataFrame) -> tuple[bool, str]:
    """Lemma 4.8."""
    error, bound = rows["error"].mean(), variance_of(rows).iloc[0]
    return bool(error <= bound), f"{error:.2g} (bound {bound:.2g})"


def unbiased(rows: pd.DataFrame) -> tuple[bool, str]:
    """Lemma 2.2 (iv) with Lemmas 3.1 and 3.2: the larger of the two coordinates' deviations from 0."""
    off = np.stack(rows["off"].to_list())
    z = float(np.abs(off.mean(axis=0) / stderr(off)).max())
    return z < SURE, f"{z:.1f} s.e. from 0"


def noisy(rows: pd.DataFrame) -> tuple[bool, str]:
    """Theorem 4.3 with Corollary 4.5: neither more nor less noise than ρ asks for."""
    ratio = rows["noise"] / noise_of(rows)
    return bool(abs(ratio.mean() - 1) < SURE * stderr(ratio)[0]), mean_of(ratio)


CHECKS: dict[str, Callable[[pd.DataFrame], tuple[bool, str]]] = {
    "Theorem 4.9": bounded, "Lemma 4.8": follows, "Lemma 2.2": unbiased, "Theorem 4.3": noisy,
}  # fmt: skip
# What the checks are of, a value per run; a bias is in standard errors already.
ESTIMANDS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "Theorem 4.9": lambda rows: rows["measured"], "Lemma 4.8": lambda rows: rows["error"],
    "Theorem 4.3": lambda rows: rows["noise"] / noise_of(rows),
}  # fmt: skip


@PAPER.claim("kinks_bound", section="kinks", name="Theorem 4.9", says="stationarity is below the theorem's bound",
             what="the mean measure over all epochs")  # fmt: skip
@PAPER.claim("kinks_variance", section="kinks", name="Lemma 4.8", says="the variance of g_t is at most 80d/T",
             what="E‖g_t - ∇F̂(w_t)‖² over all rounds")  # fmt: skip
@PAPER.claim("kinks_unbiased", section="kinks", name="Lemma 2.2", what="mean of g_t - ∇F̂(w_t) over all rounds",
             says="differences of values follow the smoothed gradient without bias")  # fmt: skip
@PAPER.claim("kinks_noise", section="kinks", name="Theorem 4.3", says="every g̃_t has the noise that ρ asks for",
             what="‖g̃_t - g_t‖² over |NODE(t)| dσ²")  # fmt: skip
def on_kinks(context: Context, name: str, **words: str) -> WithWords:
    """At the least ρ: the check of the right runs, and which wrong ones it tells from them."""
    whole(context, "kinks")
    # The least ρ has the most noise, so there every wrong run can be told from the right ones.
    rho, runs = min(runs_of(context).items())
    found = {wrong: CHECKS[name](rows) for wrong, rows in runs.items()}
    held, numbers = found.pop("")
    of = ESTIMANDS.get(name)
    noticed = {wrong: text for wrong, (one, text) in found.items() if one is not held}
    return held if noticed else NOT_TESTABLE, {
        "interval": mean_interval(of(runs[""])) if of else PAPER.phrases["in errors"],
        "rho": rho, "numbers": numbers, "runs": len(runs[""]), "M": runs[""]["set.M"].iloc[0],
        "noticed": ", ".join(f"{wrong} {text}" for wrong, text in noticed.items()) or "none, so it could not fail",
        "missed": ", ".join(wrong for wrong in found if wrong not in noticed) or "none",
    }  # fmt: skip


@PAPER.claim("kinks_power")
def power(context: Context) -> Iterator[WithWords]:
    """By ρ: whether each of `MOVING` moves the measure."""
    whole(context, "kinks")
    for rho, runs in runs_of(context).items():
        gaps = moved(runs)
        if not {*MOVING} <= {*gaps}:
            raise NotEnough(f"wrong runs are missing at ρ = {rho:g}", "kinks")
        yield all(abs(gaps[wrong]) >= MOVES for wrong in MOVING), {
            "case": f"ρ = {rho:g}", "apart": MOVES, "gaps": ", ".join(f"{one} {z:+.1f}" for one, z in gaps.items()),
        }  # fmt: skip


@PAPER.artefact("kinks")
def kinks(context: Context) -> WithWords:
    """By ρ and by what is wrong: the measure, how far that moves it, and what the checks say."""
    try:
        found = runs_of(context)
    except NotEnough:
        found = {}
    data: list[dict[str, Any]] = []
    for rho, runs in found.items():
        gaps = moved(runs)
        # From what moves the measure least: what it cannot tell comes first.
        for wrong, rows in sorted(runs.items(), key=lambda item: abs(gaps.get(item[0], 0.0))):
            checked = {name: check(rows) for name, check in CHECKS.items()}
            data.append({
                "rho": rho, "wrong": wrong or "nothing", "measured": rows["measured"].mean(),
                "se": rows["measured"].sem(), "apart": gaps.get(wrong, math.nan), "seeds": len(rows),
                **{name: text for name, (_, text) in checked.items()},
                "broken": ", ".join(name for name, (held, _) in checked.items() if not held),
            })  # fmt: skip
    columns: dict[str, Words] = {
        "ρ": "{rho:g}",
        "wrong": "{wrong}",
        "measure": lambda one: plus_minus(one["measured"], one["se"], ".4f", ".4f"),
        "moved (s.e.)": lambda one: "–" if math.isnan(one["apart"]) else f"{one['apart']:+.1f}",
        **{name: operator.itemgetter(name) for name in CHECKS},
        "not held": lambda one: one["broken"] or "–",
        "seeds": "{seeds}",
    }
    planted = [one for one in data if one["rho"] == data[0]["rho"] and one["wrong"] != "nothing"]
    return Table.of(data, columns, [] if data else [context.gap("kinks", "kinks")]), {
        "found": bool(planted), "rho": data[0]["rho"] if data else "", "of": len(planted), "by": MOVES,
        "moved": sum(abs(one["apart"]) >= MOVES for one in planted),
        "broken": sum(bool(one["broken"]) for one in planted),
    }  # fmt: skip


class Rate(NamedTuple):
    """A number that goes with a power of x: what the theorem allows at most, and the axis."""

    x: str
    most: float
    label: str


RATES = {
    "M": Rate("set.M", -1 / 3, "M (rows used)"),
    "d": Rate("set.d", 1 / 3, "d"),
    "ρ": Rate("1/ρ", 1.0, "1/ρ (tree)"),
}


def series(context: Context, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The right runs along one axis of `RATES`, and the wrong ones, which share points that are right in both."""
    rows, x = noted(context, "kink_rates"), RATES[name].x
    if rows.empty:
        return rows, rows
    tree, varied = rows["set.method"].eq("o2nc-tree"), rows.groupby("set.M")["set.d"].transform("nunique") > 1
    rows = rows.assign(**{"1/ρ": 1 / rows["rho"]})[tree if name == "ρ" else ~tree & (varied == (name == "d"))]
    wrong = rows["set.T"].notna() | rows["planted"].notna()
    shared = ~wrong & ~rows[x].isin(rows.loc[wrong, x])
    return rows[~wrong], rows[wrong | shared]


@PAPER.claim("kink_rates")
def rates(context: Context) -> Iterator[WithWords]:
    """By M, d and 1/ρ: the exponent of the right runs, and of those with wrong epochs or wrong noise."""
    whole(context, "kink_rates")
    for name, (x, most, _) in RATES.items():
        right, wrong = (exponent(rows, x, ["seed"], "kink_rates") for rows in series(context, name))
        held, passes = (one.beyond(most + NEAR, below=True) for one in (right, wrong))
        yield NOT_TESTABLE if held and passes else held, {
            "case": name, "x": x.removeprefix("set."), "right": right, "other": wrong, "most": most, "near": NEAR,
            "recipe": PAPER.phrases["wrong noise" if name == "ρ" else "wrong epochs"],
        }  # fmt: skip


@PAPER.artefact("kink_rates")
def kink_rates(context: Context) -> WithWords:
    """The measure against M, d and 1/ρ, of right runs and of wrong ones, with the theorem's slope."""
    page = Panels(context, "kink_rates", 3, columns=3, size=(3.0, 2.6), room=0.4, sharey=True)
    looks = (Look("right", BLUE, "o"), Look("wrong on purpose", GREY, "x"))
    tables = []
    for axis, name in page.over(RATES):
        (x, most, label), both = RATES[name], series(context, name)
        if page.empty(axis, both[0], name):
            continue
        for rows, style in zip(both, looks, strict=True):
            line = over_seeds(rows, [x])
            curve(axis, line, x, style)
            tables.append(line.rename(columns={x: "x"}).assign(axis=name, runs=style.legend))
        right = over_seeds(both[0], [x])
        axis.plot(right[x], right["mean"].iloc[0] * (right[x] / right[x].iloc[0]) ** most, ":", color=GREY,
                  label="the theorem's slope")  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.set_xticks(right[x], [f"{at:,.6g}" for at in right[x]])
        axis.set_xticks([], minor=True)  # a logarithmic axis adds its own
    page.axes[0, 0].set_ylabel("mean measure")
    return page.figure(joined(tables), legend=3), {}
