"""A page of all runs of one's own: excess loss against ε, a table, curves, and the commands that made them.

Beside them stand the runs of the full profile on the same problems, where `results/full` has them.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from dpbench import experiments, files, frames
from dpbench.errors import counted
from dpbench.leaderboard import stored
from dpbench.reporting import glossary, pages
from dpbench.reporting.html import articles, breakable, join, link, page, tag
from dpbench.reporting.html import table as html_table
from dpbench.run import outcomes
from dpbench.run.store import Store, list_parts
from dpbench.study.output import Figure, Table
from dpbench.study.overview import flags, in_words
from dpbench.study.panels import Panels, band
from dpbench.study.statistics import ProblemEpsilon, excess, means, plus_minus, span
from dpbench.study.style import GREY, figure_style, look, problem_title
from dpbench.study.tuning import chosen

PROFILE = "adhoc"
CONFIGURATION = ["problem", "epsilon", "algorithm", "settings", "accounting", "relation", "planted"]
# Of the full profile's half a million rows, only these columns are read.
READ = ("experiment", "problem", "algorithm", "epsilon", "settings", "accounting", "relation", "planted",
        "seed", "timed", "private", "status", "excess", "key")  # fmt: skip
# These are of data of a user's own, which have no published method beside them.
OF_OTHER_VERBS = ("compare-", "submit-")
DEFAULT = {"results": "results", "out": "figures"}  # of the options of `dpbench report`
NAMED = 5  # methods of the full profile that are drawn and listed on each problem
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def folders(results: Path) -> list[str]:
    """The folders under `results/adhoc` that have runs of `dpbench run`: not those of `compare` and of `submit`."""
    folders = sorted(path.parent for path in (results / PROFILE).glob("*/runs"))
    return [path.name for path in folders if list_parts(path / "runs") and not path.name.startswith(OF_OTHER_VERBS)]


def build(results: str | os.PathLike[str], figures: str | os.PathLike[str]) -> Iterator[str]:
    """Write `figures/adhoc/index.html` on all folders together; a line for each file group."""
    target, stores = Path(figures) / PROFILE, [Store(results, PROFILE, name) for name in folders(Path(results))]
    # The same run may lie in two folders, made by two commands; it counts once.
    rows = pd.concat([store.runs() for store in stores], ignore_index=True).drop_duplicates("key")
    traces = pd.concat([store.traces() for store in stores], ignore_index=True)
    others = beside(Path(results), rows)
    with figure_style():  # drawn and saved in it, and left before the caller goes on
        outputs = [(*one, one[-1].save(target / one[0], one[1])) for one in _outputs(rows, traces, others)]
    sections = []
    for stem, title, output, saved in outputs:
        yield f"{target / stem}.*  {title}"
        sections.append((stem, title, _section(stem, title, output, saved, target)))
    sections.append(("commands", "Commands that make these runs and this page", _commands(stores, results, figures)))
    nav = [("index.html", "Your runs"), (glossary.PAGE, glossary.TITLE)]
    table = next(output for stem, _, output, _ in outputs if stem == "runs")
    answer = f"{table.finding or table.caption}.".replace("..", ".")
    head = tag("h1", "Your runs") + tag("p", answer, cls="lead")
    files.write(target / "index.html", page("Your runs – dpbench", nav, head + articles(sections), here="index.html"))
    glossary.save(target, nav)
    yield f"to read your own runs, open {target / 'index.html'}"


def beside(results: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """The full profile's best settings of each (problem, method, ε) on the problems of `rows`: their mean excess.

    Best: the lowest mean over seeds, which is read off the data; methods that do not keep their ε are left out.
    """
    frames = []
    for name in experiments.names():
        store = Store(results, stored.PROFILE, name)
        # In an installation there is no results/full; the board's rows are in the wheel.
        if name == stored.EXPERIMENT and not store.folder.is_dir() and (home := stored.shipped()):
            store = Store(results, stored.PROFILE, name, folder=home)
        if store.folder.is_dir():
            frame = pd.DataFrame([*zip(*store.lists(*READ), strict=True)], columns=list(READ))
            # Timed rows repeat the best settings, whose seeds would count twice.
            there = frame["problem"].isin(set(rows["problem"])) & frame["private"].eq(True) & frame["timed"].eq(0)
            frame = frame[there & outcomes.has_result(frame["status"]) & frame["excess"].notna()]
            frames.append(frame.assign(experiment=name, planted=1.0))  # wrong noise is not private
    whole = pd.concat(frames) if frames else pd.DataFrame(columns=list(READ))
    if whole.empty:
        return whole.assign(mean=[], se=[], seeds=[])
    # Accounting and relation are settings here: a reader wants the best line of a method, whatever it ran under.
    by = ["problem", "algorithm", "epsilon"]
    settings = [name for name in (*CONFIGURATION, "experiment") if name not in by]
    return means(chosen(whole.assign(excess=excess(whole)), by, settings), [*CONFIGURATION, "experiment"])


def _outputs(rows: pd.DataFrame, traces: pd.DataFrame, others: pd.DataFrame) -> Iterator[tuple[str, str, Any]]:
    """(file, title, figure or table)."""
    ended = rows[outcomes.has_result(rows["status"])]
    # Runs with the right noise have no factor; a group needs one.
    ended = ended.assign(planted=ended["planted"].astype(float).fillna(1.0))
    table = means(ended.assign(excess=excess(ended)), CONFIGURATION, planned=("epsilon_planned", "max"),
                  checked=("checked_by", "first"), private=("private", "all"))  # fmt: skip
    if len(table):
        yield "excess", "Excess loss against ε", _against_epsilon(table, others)
    yield "runs", "Your runs: excess loss by problem and ε", _table(rows, table, others)
    traces = traces[traces["key"].isin(ended["key"])]
    if len(traces):
        yield "curves", "Excess loss along the way", _curves(ended, traces)


class _Line(NamedTuple):
    problem: str
    epsilon: float
    algorithm: str
    settings: str
    accounting: str
    relation: str
    planted: float
    mean: float
    se: float
    seeds: int

    def cells(self, name: str, planned: str, where: str) -> tuple[str, ...]:
        """As the table has it. Of the settings, those that are not the method's defaults."""
        given = flags(self.algorithm, self.settings, self.accounting, self.relation)
        wrong = "" if self.planted == 1 else f"--noise × {self.planted:g}"
        parts = [part.strip().removeprefix("set ") for part in f"{given}{wrong}".split("--")]
        loss = plus_minus(self.mean, self.se)
        settings = ", ".join(filter(None, parts)) or "–"
        return (problem_title(self.problem), f"{self.epsilon:g}", name, settings, str(self.seeds), loss, planned, where)


def _table(rows: pd.DataFrame, table: pd.DataFrame, others: pd.DataFrame) -> Table:
    lines = []
    for (problem, epsilon), mine in frames.groups(table.sort_values("mean"), ProblemEpsilon, sort=True):
        for one, private, planned in zip(frames.records(mine, _Line), mine["private"], mine["planned"], strict=True):
            name = one.algorithm.rpartition("/")[2] + ("" if private else " (not private)")
            lines.append(one.cells(name, "–" if pd.isna(planned) else f"{planned:.4g}", "yours"))
        best = _best(others, problem, epsilon)
        for other, paper in zip(frames.records(best, _Line), best["experiment"], strict=True):
            lines.append(other.cells(look(other.algorithm).label, "", f"full/{paper}"))
    # Runs without a result are told: a mean over what is left would hide them.
    without = len(rows) - int(outcomes.has_result(rows["status"]).sum())
    gaps = [f"{counted(without, 'run')} without a result: {', '.join(sorted(set(rows['error'].dropna())))[:200]}"]
    header = ["problem", "ε", "method", "settings", "seeds", "excess loss", "ε planned", "runs"]
    caption = (
        "Mean excess loss ± standard error of each setting that you ran, and of the best methods of the full profile "
        "on the same problem at the same ε."
    )
    method = (
        f"{counted(len(rows), 'run')} of your own. From the full profile: up to {NAMED} private methods, each at the "
        "settings with the lowest mean, which were chosen on the data, not privately; their accounting and neighbours "
        "may differ from yours. Where no such lines stand, the full profile has no runs of this problem at this ε. "
        "Settings: what is not the method's default. "
        f"Your ε planned is checked by {' and '.join(sorted(set(table['checked'].dropna()))) or 'nobody'}."
    )
    return Table(
        pd.DataFrame(lines, columns=header), table, gaps if without else [], caption, method, _finding(table, others)
    )


def _best(others: pd.DataFrame, problem: str, epsilon: float) -> pd.DataFrame:
    there = others[others["problem"].eq(problem) & others["epsilon"].eq(epsilon)]
    return there.sort_values("mean").drop_duplicates("algorithm").head(NAMED)


def _finding(table: pd.DataFrame, others: pd.DataFrame) -> str:
    """Your best setting against the best of the full profile, over the comparisons (problem, ε) that both have."""
    ratios = []
    for (problem, epsilon), mine in frames.groups(table[table["planted"].eq(1)], ProblemEpsilon):
        theirs = others[others["problem"].eq(problem) & others["epsilon"].eq(epsilon)]
        # The method itself is left out: one's own run of it is no rival to it.
        losses = theirs[~theirs["algorithm"].isin(set(mine["algorithm"]))]["mean"]
        if len(losses) and losses.min() > 0:
            ratios.append(mine["mean"].min() / losses.min())
    if not ratios:
        return ""
    said = "the best other private method of the full profile, at its best settings"
    if len(ratios) == 1:
        return f"Your best runs lose {ratios[0]:.3g} times what is lost by {said}"
    won = sum(ratio < 1 for ratio in ratios)
    return f"Your best runs lose less than {said}, in {won} of {len(ratios)} comparisons (problem, ε)"


def _panels(problems: list[str]) -> Panels:
    columns = min(3, len(problems))
    size = (3.6 if columns > 1 else 5.2, 2.8)
    return Panels(None, "", len(problems), columns=columns, size=size, room=0.7)


def _against_epsilon(table: pd.DataFrame, others: pd.DataFrame) -> Figure:
    """Your settings as points, the best methods of the full profile as lines."""
    problems = list(dict.fromkeys(table["problem"]))
    page = _panels(problems)
    for axis, problem in page.over(problems, title=problem_title):
        theirs = others[others["problem"].eq(problem)]
        low, high = (getattr(table.loc[table["problem"].eq(problem), "epsilon"], end)() for end in ("min", "max"))
        # Methods are ordered by what they do near the ε of these runs, not at ε that nobody asked for.
        near = theirs[theirs["epsilon"].between(low / 3, high * 3)]
        ratio = near["mean"] / near.groupby("epsilon")["mean"].transform("min")
        order = ratio.groupby(near["algorithm"]).median().sort_values().index[:NAMED]
        for name in order:
            line, style = theirs[theirs["algorithm"].eq(name)].sort_values("epsilon"), look(str(name))
            axis.plot(line["epsilon"], line["mean"], color=style.colour, marker=style.marker, ms=3, lw=1, alpha=0.6,
                      label=f"{style.label}, full profile")  # fmt: skip
        own = table[table["problem"].eq(problem)]
        numbers: Counter[str] = Counter()
        for i, ((method, *_), mine) in enumerate(own.groupby(CONFIGURATION[2:], sort=False)):
            name = str(method)
            numbers[name] += 1
            label = f"{look(name).label}, yours" + (f" (setting {numbers[name]})" if numbers[name] > 1 else "")
            mine = mine.sort_values("epsilon")
            axis.errorbar(mine["epsilon"], mine["mean"], mine["se"].fillna(0), fmt="o-", ms=6, lw=1.8, zorder=4,
                          color=LINES[i % len(LINES)], label=label)  # fmt: skip
        axis.set(xlabel="ε", ylabel="excess loss", xscale="log", yscale="log")
    figure = page.figure(table, legend=2)
    figure.caption = (
        "Mean excess loss against ε; bars: ± 1 standard error. Thick: your runs. Thin: the best private methods of the "
        "full profile on the same problem, each at its best settings."
    )
    figure.method = "The best settings were chosen on the data, which is not private."
    return figure


def _curves(ended: pd.DataFrame, traces: pd.DataFrame) -> Figure:
    """Means over seeds after each iteration, a panel per problem."""
    own = ended[[*CONFIGURATION, "key"]]
    table = means(traces.merge(own, on="key"), [*CONFIGURATION, "iteration"])
    table = table.assign(se=table["se"].fillna(0.0))
    problems = list(dict.fromkeys(table["problem"]))
    page = _panels(problems)
    for axis, problem in page.over(problems, title=problem_title):
        curves = table[table["problem"].eq(problem)].groupby(CONFIGURATION, sort=False)
        for i, ((_, epsilon, name, settings, *_, planted), line) in enumerate(curves):
            # Iteration 0 is the start, the same for all, and would stretch the axis.
            line = line[line["iteration"] > 0].sort_values("iteration")
            label = f"{look(str(name)).label}, ε = {epsilon:g}, {in_words(str(settings)) or 'defaults'}"
            label += "" if planted == 1 else f", noise × {planted:g}"
            colour = LINES[i] if i < len(LINES) else GREY
            axis.plot(line["iteration"], line["mean"], color=colour, label=label)
            band(axis, line, "iteration", colour)
        axis.set(xlabel="iteration", ylabel="excess loss", yscale="log")
    figure, seeds = page.figure(table, legend=2), span(table["seeds"])
    figure.caption = f"Mean excess loss after each iteration, over {seeds} seeds. Bands: ± 1 standard error."
    return figure


def _section(stem: str, title: str, output: Any, saved: list[Path], folder: Path) -> Markup:
    if isinstance(output, Table):
        content = html_table([str(name) for name in output.frame], output.frame.astype(str).to_numpy().tolist())
    else:
        content = pages.figure(folder, stem, f"{title}. {output.caption.partition('. ')[0]}.")
    gaps = tag("ul", join(tag("li", breakable(line)) for line in output.gaps), cls="gap") if output.gaps else ""
    named = join((link(path.name, path.suffix[1:].upper()) for path in saved), " · ")
    method = pages.method({"method": output.method}, "")
    return content + tag("p", breakable(output.caption), cls="caption") + method + gaps + tag("p", named, cls="files")


def _commands(stores: list[Store], results: str | os.PathLike[str], figures: str | os.PathLike[str]) -> Markup:
    """The commands as they were typed, in the folder that they were typed in; rows made from Python have none."""
    lines = []
    for store in stores:
        # A comment of the shell, so that the whole block can still be pasted.
        lines += store.commands() or [f"# made from Python: {store.folder}"]
    given = zip(DEFAULT.items(), (str(results), str(figures)), strict=True)
    where = [word for (name, usual), path in given if path != usual for word in (f"--{name}", path)]
    redrawn = shlex.join(["dpbench", "report", "--profile", PROFILE, *where])
    return tag("pre", "\n".join([*dict.fromkeys(lines), redrawn]))
