"""The tables of greedy_coordinate."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd

from dpbench.experiments.greedy_coordinate.rows import (
    CASES,
    CD,
    GCD,
    L1,
    LOOKS,
    METHODS,
    PAPER,
    PROBLEMS,
    SGD,
    STAND_INS,
    TITLES,
    end_of,
    facts,
    finals,
    gaps,
    plain,
    problems,
    published_method,
    published_name,
    runs_at_published_settings,
    trust,
    tuned_runs,
)
from dpbench.study.context import Context
from dpbench.study.grid import GridEntry
from dpbench.study.output import Table, Words
from dpbench.study.paper import End, WithWords
from dpbench.study.statistics import span
from dpbench.study.style import look


@PAPER.artefact("table1")
def table1(context: Context) -> WithWords:
    """Sizes, λ and how sure it is, M_j, quasi-sparsity, non-zeros and start."""
    paper, known = context.experiment.published(), facts(context, "table1")
    rows, data = [], []
    names = problems(pd.DataFrame({"problem": list(known)}))
    for problem in names:
        name = published_name(problem)
        n, d = paper["sizes"][name]
        recipe = paper["recipe"][name]
        theirs = [str(paper["nonzeros"].get(name, "")), f"{recipe['start']:g}" if "start" in recipe else ""]
        words = f"{recipe['trust']}: {recipe['why']}"
        # Without its data, what the paper prints of a problem still stands.
        if problem not in known:
            rows.append([TITLES[problem], f"{n:,} × {d:,}", *["–"] * 5, theirs[0], "–", theirs[1], "–", words])
            continue
        fact = known[problem]
        ((kind, weight),) = fact.weights.items()
        mean, least, largest = fact.M
        alpha = fact.quasi_sparsity()
        rows.append([TITLES[problem], f"{n:,} × {d:,}", f"{fact.n:,} × {fact.d:,}", f"{weight:.4g} ({kind.upper()})",
                     f"{mean:.4g} [{least:.4g}, {largest:.4g}]", f"{alpha:.3g}", f"{fact.optimum:.5g}", theirs[0],
                     f"{len(fact.nonzero):,}", theirs[1], f"{fact.start:.3g}", words])  # fmt: skip
        data.append({"problem": problem, "n": fact.n, "d": fact.d, kind: weight, "M_mean": mean, "M_min": least,
                     "M_max": largest, "nonzero": len(fact.nonzero), "alpha5": alpha, "optimum": fact.optimum,
                     "start": fact.start, "published": recipe.get("start"), "trust": recipe["trust"]})  # fmt: skip
    header = ["problem", "paper", "here", "λ", "M", "α", "f*", "‖w*‖₀, paper", "‖w*‖₀", "start, paper", "start",
              "recipe"]  # fmt: skip
    missing = [context.gap("table1", p) for p in names if p not in known]
    missing += [
        f"{name}: {other} stands in; dpbench fetch {name}" for name, other in STAND_INS.items() if other in names
    ]
    return Table(pd.DataFrame(rows, columns=header), pd.DataFrame(data), missing), {}


@PAPER.artefact("table2")
def table2(context: Context) -> WithWords:
    """The grid: published, and run here."""
    published = context.experiment.published()["grid"]
    keys = set(context.runs["key"])
    rows = []
    for algorithm in (GCD, CD, SGD):
        sweeps = [block for block in context.blocks("table2") if algorithm in block.algorithms and block.sweep]
        thin = [block for block in sweeps if block.problems == ["dorothea"]]
        whole = [block for block in sweeps if block not in thin]
        for name, title in (("passes", "passes"), ("step", "step sizes"), ("clip", "clipping thresholds")):
            row = [look(algorithm).label, title, _in_words(published[algorithm][name])]
            rows.append([*row, _values(whole, name), _values(thin, name)])
    jobs = [job for job in context.jobs("table2") if job.sweep]
    header = ["algorithm", "parameter", "paper", "here", "here, dorothea"]
    return Table(pd.DataFrame(rows, columns=header)), {
        "profile": context.profile, "seeds": context.blocks("table2")[0].seeds,
        "done": sum(job.run_count for job in jobs if job.key in keys), "all": sum(job.run_count for job in jobs),
    }  # fmt: skip


def _values(blocks: list[GridEntry], name: str) -> str:
    return next((_in_words(block.settings[name]) for block in blocks), "")


def _in_words(values: Any) -> str:
    if isinstance(values, dict):
        low, high, count = values["logspace"]
        return f"logspace({low:g}, {high:g}, {count})"
    return ", ".join(f"{v:g}" for v in values)


def _both(context: Context, artefact: str, names: tuple[str, ...]) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """`finals` of the tuned runs and of those at the paper's settings; the gaps of the former."""
    runs = tuned_runs(context, artefact)
    return finals(runs), finals(runs_at_published_settings(context)), gaps(context, artefact, runs, names)


@PAPER.artefact("table3")
def table3(context: Context) -> WithWords:
    """Support recovery on the L1 problems: published, at the published hyperparameters, and tuned."""
    paper = context.experiment.published()
    table, at_paper, missing = _both(context, "table3", L1)
    rows = []
    for method, problem in itertools.product(METHODS, L1):
        correct, wrong, relative = paper["support"][problem][published_method(method)]
        names = [LOOKS[method].label, TITLES[problem], paper["nonzeros"][problem]]
        theirs, tuned = (end_of(one, problem, method) for one in (at_paper, table))
        rest = [str(tuned), f"{tuned['T']:.0f}"] if tuned else ["–"] * 2
        rows.append([*names, f"{correct} / {wrong} ({relative:g})", _support(theirs), _support(tuned), *rest])
    header = ["algorithm", "problem", "‖w*‖₀", "paper", "at the paper's setting", "tuned", "relative error",
              "iterations"]  # fmt: skip
    made = Table(pd.DataFrame(rows, columns=header), plain(table), missing)
    return made, {"seeds": span(table["seeds"]), "trust": trust(context, L1)}


def _support(end: End | None) -> str:
    """Mean counts of correct and incorrect non-zeros, and the relative error."""
    return f"{end['support_correct']:.1f} / {end['support_wrong']:.1f} ({end.mean:.2g})" if end else "–"


@PAPER.artefact("table4")
def table4(context: Context) -> WithWords:
    """The chosen hyperparameters, beside the published."""
    chosen = context.experiment.published()["chosen"]
    table, at_paper, missing = _both(context, "table4", PROBLEMS)
    rows = []
    for method, problem in itertools.product(METHODS, problems(table)):
        passes, clip, step = chosen[published_name(problem)][published_method(method)]
        names = [LOOKS[method].label, TITLES[problem], f"{passes:g}", f"{clip:.3g}", f"{step:.3g}"]
        theirs, tuned = (end_of(one, problem, method) for one in (at_paper, table))
        digits = {"passes": "g", "clip": ".3g", "step": ".3g"}
        ours = [f"{tuned[f'set.{name}']:{form}}" if tuned else "–" for name, form in digits.items()]
        rows.append([*names, str(theirs or "–"), *ours, str(tuned or "–")])
    header = ["algorithm", "problem", "passes, paper", "clip, paper", "step, paper", "error there", "passes", "clip",
              "step", "error"]  # fmt: skip
    made = Table(pd.DataFrame(rows, columns=header), plain(table), missing)
    return made, {"seeds": span(table["seeds"]), "trust": trust(context)}


@PAPER.artefact("rules")
def rules(context: Context) -> WithWords:
    """Mean relative error of GS-r, GS-s and GS-q at their chosen settings, per problem: what claim 5 is judged on."""
    runs = tuned_runs(context, "rules", traced=False)
    table = finals(runs)
    methods = [method for case in CASES for method in case.rules]
    ends = [(p, m, end) for p in L1 for m in methods if (end := end_of(table, p, m))]
    data = [{"problem": problem, "algorithm": method, "mean": end.mean, "se": end.se, "seeds": end.seeds, "T": end["T"]}
            for problem, method, end in ends]  # fmt: skip
    columns: dict[str, Words] = {
        "problem": lambda one: TITLES[one["problem"]],
        "rule": lambda one: LOOKS[one["algorithm"]].label,
        "relative error": lambda one: str(End(one["mean"], one["se"], one["seeds"], one)),
        "seeds": "{seeds}",
        "iterations": "{T:g}",
    }
    return Table.of(data, columns, gaps(context, "rules", runs, L1, tuple(methods))), {}
