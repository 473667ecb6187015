"""The runs of greedy_coordinate at the settings that are shown, and what is known of its problems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench.run import outcomes
from dpbench.run.row import settings_of
from dpbench.study.context import Context, select
from dpbench.study.experiment import PLANTED
from dpbench.study.paper import End, Ends, Paper
from dpbench.study.plan import plan
from dpbench.study.statistics import excess, means
from dpbench.study.style import PALETTE, Look
from dpbench.study.tuning import expand_settings

# Methods as the rows read from here on call them: algorithm, variant and accounting in one name.
GCD, TIGHT, PUBLISHED = "dp-gcd", "dp-gcd-tight", "dp-gcd-published"  # GS-r: eq. (2), tight, half the selection noise
CD = "dp-cd"
SGD, DOUBLED, COVERED = "dp-sgd-1", "dp-sgd-1-2zc", "dp-sgd-1-rdp"  # the paper's, as σ = zC or 2zC; with a proof
ROOT = "dp-sgd-1-sqrt2zc"  # σ = √2·zC, a fit
METHODS = (CD, SGD, DOUBLED, COVERED, PUBLISHED, GCD, TIGHT)


class ClaimSetting(NamedTuple):
    """What a claim is judged on: the variants of DP-GCD, of which the best counts, their rivals, and the rules.

    rivals: by what the paper's DP-SGD is taken to be, "" where that is no question.
    """

    name: str
    greedy: tuple[str, ...]
    rivals: Mapping[str, tuple[str, ...]]
    rules: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.greedy, *(one for rivals in self.rivals.values() for one in rivals)]))

    @property
    def exchanged(self) -> ClaimSetting:
        """DP-CD in the place of DP-GCD, and DP-GCD among the rivals: a claim that holds of it, too, tells nothing."""
        rivals = {name: (*self.greedy, *(one for one in rivals if one != CD)) for name, rivals in self.rivals.items()}
        return self._replace(greedy=(CD,), rivals=rivals)


CASES = tuple(
    ClaimSetting(name, greedy, rivals, (f"dp-gcd-{suffix}", f"dp-gcd-gs-s-{suffix}", f"dp-gcd-gs-q-{suffix}"))
    for name, suffix, greedy, rivals in (
        ("as published", "published", (PUBLISHED,), {"σ = zC": (CD, SGD), "σ = 2zC": (CD, DOUBLED)}),
        ("at a proven ε = 1", "tight", (GCD, TIGHT), {"": (CD, COVERED)}),
    )
)
PROBLEMS = ("log1", "log2", "mtp", "madelon", "square", "california", "dorothea", "madelon-l1")  # Fig. 1 (a) to (h)
L1 = ("square", "california", "dorothea", "madelon-l1")
STAND_INS = {"mtp": "mtp-qsar"}  # a near substitute, used where the data set itself is absent

SELECTION, SAMPLING = "selection noise", "sampling"
PAPER = Paper(__package__)
LOOKS = {
    one["method"]: Look(one["label"], PALETTE[one["colour"]], one["marker"], one["private"] == "yes")
    for one in PAPER.table("looks", {})
}
TITLES = {one["problem"]: one["title"] for one in PAPER.table("problems", {})}


def problems(rows: pd.DataFrame, names: tuple[str, ...] = PROBLEMS) -> list[str]:
    """`names`, each replaced by its stand-in where only that has rows."""
    there = set(rows["problem"])
    return [STAND_INS[name] if name in STAND_INS and name not in there else name for name in names]


def published_name(problem: str) -> str:
    """The paper's name of a problem."""
    return next((name for name, stand_in in STAND_INS.items() if stand_in == problem), problem)


def published_method(method: str) -> str:
    """The paper's method that a variant of ours stands beside."""
    return next(name for name in (GCD, CD, SGD) if method.startswith(name))


def trust(context: Context, names: list[str] | tuple[str, ...] = PROBLEMS) -> str:
    """What is known of the problems' recipes, in a sentence for a caption."""
    known = context.experiment.published()["recipe"]
    words = dict.fromkeys(known[published_name(name)]["trust"] for name in names)
    lists = [f"{word} for {', '.join(n for n in names if known[published_name(n)]['trust'] == word)}" for word in words]
    return f"The paper does not print λ and the recipes of the data. Ours are {'; '.join(lists)} (table1)"


def tuned_runs(context: Context, artefact: str, *, timed: bool = False, traced: bool = True) -> pd.DataFrame:
    """The runs at the chosen settings: see `_shown`. They alone are traced; of an artefact whose runs are not, those
    that its own blocks ask for, and not those they are chosen from."""
    if traced:
        jobs = [job for job in context.jobs(artefact) if job.trace and bool(job.timed) == timed]
    else:
        # The sweep that settings are chosen from lies beside them in the rows.
        jobs = plan([block for block in context.blocks(artefact) if artefact in block.artefacts], context.store).jobs
    return _shown(context, artefact, {job.key for job in jobs})


def runs_at_published_settings(context: Context) -> pd.DataFrame:
    """The runs at the settings of the paper's Table 4: see `_shown`."""
    return _shown(context, "published_settings", {job.key for job in context.jobs("published_settings")})


def runs_with_wrong_noise(context: Context) -> pd.DataFrame:
    """The same with noise that is wrong on purpose: by the column `planted`, its factor.

    Not those at the chosen settings, which the claims are judged on: see `study.power`.
    """
    blocks = [block for block in context.blocks(PLANTED) if PLANTED in block.artefacts and not block.tuned]
    return _shown(context, PLANTED, plan(blocks, context.store).keys)


def _shown(context: Context, artefact: str, keys: set[str]) -> pd.DataFrame:
    """Rows with `set.*` columns, f* as `optimum` and (f - f*)/f* as `relative`; `algorithm` is the method's name.

    A diverged run has an infinite error.
    """
    rows = context.rows(artefact)
    rows = rows[rows["key"].isin(keys) & outcomes.has_result(rows["status"]) & rows["algorithm"].ne("probe-optimum")]
    if rows.empty:
        return rows.assign(relative=[], optimum=[])
    rows = expand_settings(rows)
    # f* is not a column: any run tells it, and the median is safe from the rounding of one.
    optimum = (rows["objective"] - rows["excess"]).groupby(rows["problem"]).transform("median")
    return rows.assign(algorithm=_named(rows), optimum=optimum, relative=excess(rows) / optimum)


def _named(rows: pd.DataFrame) -> list[str]:
    names = []
    for algorithm, mode, text in zip(rows["algorithm"], rows["accounting"], rows["settings"], strict=True):
        settings = settings_of(text)
        name = next(base for base in (GCD, CD, SGD) if algorithm.startswith(base))
        name += "" if settings.get("rule", "gs-r") == "gs-r" else f"-{settings['rule']}"
        name += "-published" if settings.get("selection") == "published" else ""
        name += {"2zC": "-2zc", "sqrt2zC": "-sqrt2zc"}.get(settings.get("noise", ""), "")
        accounted = {(GCD, "tight"): "-tight", (SGD, "rdp"): "-rdp"}
        names.append(name + accounted.get((published_method(name), mode), ""))
    return names


def finals(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per (problem, method): mean, se, min and max of the relative error, seeds, and the chosen settings."""
    firsts = ("T", "epsilon_planned", "private", "set.passes", "set.step", "set.clip")
    averages = ("support_correct", "support_wrong", "seconds")
    if runs.empty:
        return pd.DataFrame(columns=["problem", "algorithm", "mean", "se", "seeds", *averages, *firsts])
    others: dict[str, Any] = {name: (name, "mean") for name in averages} | {name: (name, "first") for name in firsts}
    table = means(
        runs, ["problem", "algorithm"], "relative", min=("relative", "min"), max=("relative", "max"), **others
    )
    return table.drop(columns="sd")


def end_of(table: pd.DataFrame, problem: str, method: str) -> End | None:
    """The end of a method on a problem, of a table of `finals`; None where there is none."""
    return next(iter(Ends(table, "", "").matching(problem=problem, algorithm=method)), None)


def curves(context: Context, runs: pd.DataFrame) -> pd.DataFrame:
    """(problem, method, iteration): passes, seconds, and mean, min and max over seeds of the relative error."""
    if runs.empty:
        columns = ["problem", "algorithm", "iteration", "passes", "seconds", "mean", "low", "high", "seeds"]
        return pd.DataFrame(columns=columns)
    traces = context.traces(runs)
    with np.errstate(invalid="ignore"):
        traces = traces.assign(relative=(traces["excess"] / traces["optimum"]).fillna(np.inf))
    grouped = traces.groupby(["problem", "algorithm", "iteration"], sort=False)
    return grouped.agg(
        passes=("passes", "mean"),
        seconds=("seconds", "median"),
        mean=("relative", "mean"),
        low=("relative", "min"),
        high=("relative", "max"),
        seeds=("relative", "size"),
    ).reset_index()


class Facts(NamedTuple):
    """What the probe of a problem's optimum has measured (see `run.probes.OptimumProbe`)."""

    n: int
    d: int
    weights: dict[str, float]
    M: tuple[float, float, float]  # mean, least, largest
    optimum: float
    start: float  # f(0)/f* - 1
    nonzero: list[float]  # |w*_j| of the non-zero coordinates, falling

    def quasi_sparsity(self) -> float:
        """α such that w* is (α, 5)-quasi-sparse: its sixth largest |w*_j|."""
        return self.nonzero[5] if len(self.nonzero) > 5 else 0.0


def facts(context: Context, artefact: str) -> dict[str, Facts]:
    """problem → what is known of it and its optimum."""
    facts = {}
    rows = select(context.rows(artefact), algorithm="probe-optimum", status="done")
    optima = rows["objective"] - rows["excess"]
    for problem, text, optimum, values in zip(rows["problem"], rows["notes"], optima, rows["values"], strict=True):
        notes = json.loads(text)
        facts[problem] = Facts(
            notes["n"], notes["d"], notes["weights"], tuple(notes["M"]), optimum, notes["start"] / optimum - 1,
            [float(v) for v in values],
        )  # fmt: skip
    return facts


def gaps(
    context: Context,
    artefact: str,
    runs: pd.DataFrame,
    names: tuple[str, ...] = PROBLEMS,
    methods: tuple[str, ...] = METHODS,
) -> list[str]:
    """A line per (problem, method) without rows."""
    there = set(zip(runs["problem"], runs["algorithm"], strict=True))
    missing = [
        context.gap(artefact, f"{problem}, {method}")
        for problem in problems(runs, names)
        for method in methods
        if (problem, method) not in there
    ]
    return missing + standing_in(problems(runs, names))


def standing_in(names: list[str]) -> list[str]:
    """A line per stand-in among `names`: what to fetch instead."""
    return [f"{name}: {other} stands in; dpbench fetch {name}" for name, other in STAND_INS.items() if other in names]


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """The table behind the strings, settings by their own names."""
    return table.drop(columns=["private"], errors="ignore").rename(columns=lambda name: name.removeprefix("set."))
