"""The figures and tables of greedy_coordinate."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.greedy_coordinate.published import published_numbers
from dpbench.experiments.greedy_coordinate.rows import (
    CASES,
    CD,
    COVERED,
    DOUBLED,
    GCD,
    L1,
    LOOKS,
    METHODS,
    PAPER,
    PROBLEMS,
    PUBLISHED,
    SGD,
    TIGHT,
    TITLES,
    curves,
    end_of,
    facts,
    finals,
    gaps,
    plain,
    problems,
    published_method,
    published_name,
    runs_at_published_settings,
    standing_in,
    trust,
    tuned_runs,
)
from dpbench.study.context import Context, select
from dpbench.study.grid import GridEntry
from dpbench.study.output import Table, Words
from dpbench.study.panels import Panels, band
from dpbench.study.paper import End, WithWords
from dpbench.study.statistics import mostly_lowest, span
from dpbench.study.style import GREY, PINK, Look, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR = 1e-6  # the lowest relative error drawn
NEAR = 0.03  # of the longest run, and of the error of the start: who ends as near has not left it
TIMED = (CD, SGD, COVERED, GCD, TIGHT)
RULES = tuple(rule for case in CASES for rule in case.rules)
AS_PUBLISHED = (CD, SGD, DOUBLED, PUBLISHED)  # what runs at the hyperparameters of Table 4


@PAPER.artefact("fig2")
def fig2(context: Context) -> WithWords:
    """|w*_j| with the α of (α, 5)-quasi-sparsity."""
    known = facts(context, "fig2")
    names = problems(pd.DataFrame({"problem": list(known)}))
    page = Panels(context, "fig2", len(names), columns=4, size=(2.8, 2.9), room=0.4)
    data = []
    for axis, problem in page.over(names, title=_lettered(names)):
        if page.empty(axis, known.keys() & {problem}, problem, problem):
            continue
        fact = known[problem]
        sizes = np.zeros(fact.d)
        sizes[: len(fact.nonzero)] = fact.nonzero
        counts, edges, _ = axis.hist(sizes, bins=30, color=GREY)
        alpha = fact.quasi_sparsity()
        axis.axvline(alpha, color=PINK, lw=1.8, label="α of (α, 5)-quasi-sparsity")
        axis.set(yscale="log", ylim=(0.6, fact.d * 2))
        axis.set_title(
            f"{axis.get_title()}\nα = {alpha:.3g}, {len(fact.nonzero):,} of {fact.d:,} non-zero", fontsize=8.5
        )
        data += [{"problem": problem, "from": a, "to": b, "coordinates": int(c), "alpha": alpha}
                 for a, b, c in zip(edges, edges[1:], counts, strict=False)]  # fmt: skip
    page.label("$|w^*_j|$", "coordinates")
    return page.figure(pd.DataFrame(data)), {"trust": trust(context)}


@PAPER.artefact("fig1", name="fig1", names=PROBLEMS, methods=METHODS, words="passes")
@PAPER.artefact("fig3", name="fig3", names=L1, methods=(CD, SGD, COVERED, *RULES), words="rules")
@PAPER.artefact("fig4", name="fig4", names=PROBLEMS, methods=TIMED, words="seconds")
def error_curves(
    context: Context, name: str, names: tuple[str, ...], methods: tuple[str, ...], words: str
) -> WithWords:
    """One panel per problem: mean and range per method, the start, and a marker where a run ends."""
    x = "seconds" if words == "seconds" else "passes"
    runs = tuned_runs(context, name, timed=x == "seconds")
    known, table = facts(context, name), curves(context, runs)
    # As wide as a page of print, where letters keep their size: three panels a row, or two of four.
    columns, size = (3, (2.4, 2.1)) if len(names) > 4 else (2, (3.6, 2.2))
    page = Panels(context, name, len(names), columns=columns, size=size, room=1.0)
    shown = problems(runs, names)
    for axis, problem in page.over(shown, title=_lettered(shown)):
        panel = select(table, problem=problem, algorithm=methods)
        if page.empty(axis, panel, problem, problem):
            continue
        lines = [(m, select(panel, algorithm=m).sort_values("iteration")) for m in methods]
        lines = [(method, line) for method, line in lines if len(line)]
        for i, (method, line) in enumerate(lines):
            style = LOOKS[method]
            axis.plot(line[x], line["mean"], style.line, color=style.colour, zorder=3 - i / 10)
            axis.plot([], [], style.line, color=style.colour, marker=style.marker, label=style.label)
            band(axis, line.assign(low=line["low"].clip(lower=FLOOR)), x, style.colour, alpha=0.13)
        start = known[problem].start if problem in known else panel["high"].max()
        axis.axhline(start, color=GREY, ls=":", lw=1, label="the start, w = 0")
        _abscissa(axis, panel, x)
        _ordinate(axis, panel, start)
        _ends(axis, [(LOOKS[m], line[x].iloc[-1], line["mean"].iloc[-1]) for m, line in lines], (panel[x].max(), start))
    page.label("seconds" if x == "seconds" else "passes over the data", "(f − f*) / f*")
    figure = page.figure(table, legend=4)
    figure.gaps = gaps(context, name, runs, names, methods)
    first = None if x == "seconds" or table.empty else _lowest(table)
    who, count, panels = first or ("", 0, 0)
    return figure, {
        "found": bool(first), "seeds": span(table["seeds"]), "x": PAPER.phrases[words],
        "against": "seconds" if x == "seconds" else "passes over the data", "trust": trust(context, names),
        "who": LOOKS[who].label if who else "", "count": count, "problems": panels,
    }  # fmt: skip


def _lowest(table: pd.DataFrame) -> tuple[str, int, int] | None:
    """Which private method ends lowest, on how many problems of how many."""
    private = table[[LOOKS[method].private for method in table["algorithm"]]]
    ends = private.sort_values("iteration").groupby(["problem", "algorithm"], sort=False).tail(1)
    return mostly_lowest(ends, ["problem"])


def _lettered(names: list[str]) -> Callable[[str], str]:
    """The title of a panel, with the letter it has in the paper."""
    return lambda problem: f"({'abcdefgh'[names.index(problem)]}) {TITLES[problem]}"


def _ends(axis: Axes, ends: list[tuple[Look, float, float]], stands: tuple[float, float]) -> None:
    """A marker per end; methods that end where they start are named instead, as their markers would be on one point.

    stands: the largest abscissa, and the error of the start.
    """
    still = []
    for style, x, y in ends:
        if x < NEAR * stands[0] and abs(y / stands[1] - 1) < NEAR:
            still.append(style.label)
        elif np.isfinite(y):
            axis.plot(x, max(y, FLOOR), style.marker, color=style.colour, mec="white", mew=0.7, ms=6.5, zorder=4,
                      clip_on=False)  # fmt: skip
    if still:
        words = ["at the start:", *still]
        axis.text(0.99, 0.02, "\n".join(words), transform=axis.transAxes, fontsize=6.5, color=GREY, ha="right")
        low, high = axis.get_ylim()  # and room below all curves and bands, 7 % of the axis for each line
        axis.set_ylim(low * (low / high) ** (0.07 * len(words) / (1 - 0.07 * len(words))))


def _ordinate(axis: Axes, panel: pd.DataFrame, start: float) -> None:
    """Logarithmic, with a little room; the start is in it."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    finite = panel.loc[np.isfinite(panel["high"]), "high"]
    top, low = max(finite.max(), start), min(panel["low"].clip(lower=FLOOR).min(), start)
    room = max((top / low) ** 0.06, 1.03)
    low, high = low / room, top * room
    axis.set(yscale="log", ylim=(low, high))
    # Plain numbers at equal distances on a short axis, where 1, 2 and 5 would leave one tick or none.
    if high < 10 * low:
        axis.yaxis.set_major_locator(MaxNLocator(4))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_locator(NullLocator())


def _abscissa(axis: Axes, panel: pd.DataFrame, x: str) -> None:
    """Passes on a linear scale; seconds on a logarithmic one, linear below a millisecond, with 0."""
    if x == "passes":
        axis.set_xlim(-0.02 * panel[x].max(), panel[x].max() * 1.05)
        return
    axis.set_xscale("symlog", linthresh=1e-3)
    axis.set_xlim(0, panel[x].max() * 1.3)


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
    missing = [context.gap("table1", p) for p in names if p not in known] + standing_in(names)
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


@PAPER.artefact("published_settings")
def published_settings(context: Context) -> WithWords:
    """Relative errors: published, at Table 4's hyperparameters with the published noise, and tuned."""
    paper = context.experiment.published()
    table = select(finals(runs_at_published_settings(context)), algorithm=AS_PUBLISHED)
    tuned, data = finals(tuned_runs(context, "table4")), []
    for problem, method in itertools.product(problems(table), AS_PUBLISHED):
        printed, best = published_numbers(paper, problem, method), end_of(tuned, problem, method)
        names = {"problem": problem, "algorithm": method, "published": printed[0].text if printed else ""}
        own = frames.mappings(plain(select(table, problem=problem, algorithm=method)))
        data += [one | names | {"tuned": f"{best.mean:.3g}" if best else ""} for one in own]
    columns: dict[str, Words] = {
        "problem": lambda one: TITLES[one["problem"]],
        "algorithm": lambda one: LOOKS[one["algorithm"]].label,
        "paper": "{published}",
        "at the paper's setting": "{mean:.3g} [{min:.3g}, {max:.3g}]",
        "tuned": "{tuned}",
    }
    made = Table.of(data, columns, gaps(context, "published_settings", table, methods=AS_PUBLISHED))
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
