"""Results of more seeds: the greedy rules at their chosen settings, and the cell of Table 3 that does not come out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpbench import frames
from dpbench.experiments.greedy_coordinate.study import (
    CASES,
    DAGGER,
    L1,
    LOOKS,
    PRIVACY,
    TITLES,
    TUNING,
    Final,
    finals,
    gaps,
    shown_runs,
    tuned_runs,
)
from dpbench.experiments.greedy_coordinate.tables import half_a_digit, published_end
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Table, Words
from dpbench.study.statistics import capitalised, plus_minus

DRAWS = 20_000  # means of five that are drawn from the seeds
CELL = {"set.passes": 1.0, "set.clip": 7.91, "set.step": 2.15}  # Table 4, madelon + L1, DP-GCD


@artefact("rules", "The greedy rules on more seeds (not in the paper)")
def rules(context: Context) -> Table:
    """Mean relative error of GS-r, GS-s and GS-q at their chosen settings, per problem: what claim 5 is judged on."""
    runs = tuned_runs(context, "rules", traced=False)
    ends = finals(runs)
    methods = [method for case in CASES for method in case.rules]
    data: list[dict[str, Any]] = [
        {"problem": problem, "algorithm": method, "mean": row.mean, "se": row.se, "seeds": row.seeds, "T": row.T}
        for problem in L1
        for method in methods
        for row in frames.records(select(ends, problem=problem, algorithm=method), Final)
    ]
    caption = (
        "Mean relative error ± standard error of DP-GCD's three greedy rules at their chosen settings. †: the "
        "published noise, not private at ε = 1."
    )
    method = (
        "Numbers are relative errors at the settings that were chosen on five seeds: mean ± standard error over "
        f"these and further seeds. Privacy: {PRIVACY}. {DAGGER}. {capitalised(TUNING)}."
    )
    columns: dict[str, Words] = {
        "problem": lambda one: TITLES[one["problem"]],
        "rule": lambda one: LOOKS[one["algorithm"]].label,
        "relative error": lambda one: plus_minus(one["mean"], one["se"]),
        "seeds": "{seeds}",
        "iterations": "{T:g}",
    }
    return Table.of(data, columns, caption, gaps(context, "rules", runs, L1, tuple(methods)), method=method)


@artefact("one_cell", "Table 3, madelon + L1, DP-GCD: what gives the published number (not in the paper)")
def one_cell(context: Context) -> Table:
    """Runs at the paper's setting and at its neighbours in one thing each: means, and means of five, as published."""
    runs = shown_runs(context, "one_cell")
    paper = context.experiment.published()
    data: list[dict[str, Any]] = []
    by = ["problem", "epsilon", "algorithm", "set.passes", "set.clip", "set.step"]
    order = {"madelon-l1": 0, "madelon": 1, "california": 2}
    groups = runs.groupby(by) if len(runs) else ()
    cells = sorted(groups, key=lambda cell: (order[cell[0][0]], not _as_published(cell[0], by), -cell[0][1]))
    for key, rows in cells:
        values = rows["relative"].to_numpy(float)
        published = published_end(paper, str(key[0]), "dp-gcd")
        low, high, chance = means_of_five(values, published)
        at = dict(zip(by, key, strict=True))
        data.append({name.removeprefix("set."): value for name, value in at.items()}
                    | {"seeds": len(values), "mean": values.mean(), "low": low, "high": high, "published": published,
                       "chance": chance, "changed": words(at), "right": rows["support_correct"].mean(),
                       "wrong": rows["support_wrong"].mean()})  # fmt: skip
    verdict = "the number has no rows yet."
    for one in data[:1]:
        inside = "inside" if one["low"] <= one["published"] <= one["high"] else "outside"
        verdict = (
            "the number, {published:.2g}, is {inside} the 95 % interval of means of five, at a chance of {chance:.1%}."
        )
        verdict = verdict.format(**one, inside=inside)
    caption = (
        "Relative error at the paper's hyperparameters, and with one thing changed. “of five”: where 95 % of means of "
        "five seeds lie; “chance”: how often one is as far out as the published number."
    )
    method = (
        "Numbers are relative errors at the hyperparameters of the paper's Table 4 with the published noise, or with "
        "one thing changed. ε = 0.5 and 0.333 mean noise of twice and three times the published scale. of five: the "
        "95 % interval of means of five seeds, drawn from ours; the paper prints such means. chance: how often such "
        "a mean is as far from our mean as the published one, on the same side. support: right and wrong non-zeros; "
        "the paper prints 1 and 0. Why this cell: on madelon + L1, five of our seeds did not give the published "
        f"number. With 200 seeds, {verdict} No neighbouring step, threshold, rule or selection noise gives it more "
        "often. Two iterations do, and so does more noise, but more noise misses the published numbers of the two "
        f"problems below. {DAGGER}."
    )
    columns: dict[str, Words] = {
        "problem": lambda one: TITLES[one["problem"]],
        "what is changed": "{changed}",
        "seeds": "{seeds}",
        "mean": "{mean:.2g}",
        "of five": "{low:.2g} – {high:.2g}",
        "published": "{published:.2g}",
        "chance": "{chance:.3f}",
        "support": lambda one: "–" if math.isnan(one["right"]) else "{right:.2f} / {wrong:.2f}".format_map(one),
    }
    missing = [] if data else [context.gap("one_cell", "one_cell")]
    return Table.of(data, columns, caption, missing, unsaved=["changed", "right", "wrong"], method=method)


def means_of_five(values: np.ndarray, published: float) -> tuple[float, float, float]:
    """(2.5 % and 97.5 % quantile of means of five of the values, chance that one lies beyond `published` on its side).

    Beyond: to half of its last digit.
    """
    generator = np.random.Generator(np.random.PCG64DXSM(0))
    means = values[generator.integers(len(values), size=(DRAWS, 5))].mean(axis=1)
    slack = half_a_digit(published)
    beyond = means >= published - slack if published > values.mean() else means <= published + slack
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high), float(beyond.mean())


def _as_published(key: tuple[Any, ...], by: list[str]) -> bool:
    return words(dict(zip(by, key, strict=True))) == "nothing"


def words(cell: dict[str, Any]) -> str:
    """What a cell of `one_cell` has changed.

    >>> words({"problem": "madelon-l1", "epsilon": 1.0, "algorithm": "dp-gcd-published"} | CELL | {"set.step": 1.0})
    'step 1'
    """
    said = []
    if cell["epsilon"] != 1:
        said.append(f"noise × {1 / cell['epsilon']:.3g}")
    if cell["algorithm"] == "dp-gcd":
        said.append("selection noise × 2, on the score")
    elif "gs-" in cell["algorithm"]:
        said.append("rule " + cell["algorithm"].removeprefix("dp-gcd-").removesuffix("-published").upper())
    if cell["problem"] == "madelon-l1":
        said += [f"{name.removeprefix('set.')} {cell[name]:g}" for name, value in CELL.items() if cell[name] != value]
    return ", ".join(said) or "nothing"
