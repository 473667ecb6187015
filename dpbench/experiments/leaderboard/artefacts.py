"""The tables and figures of the leaderboard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.board import LEVELS, PAPER, Board, board, marked, track_means
from dpbench.leaderboard import entrants, headline, places, tracks
from dpbench.leaderboard.headline import is_drawn
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, CLIP, EXCESS, HELD, NOTHING, two
from dpbench.leaderboard.stored import submissions
from dpbench.study.claims import each
from dpbench.study.context import Context, select
from dpbench.study.output import Figure, Table
from dpbench.study.paper import WithWords
from dpbench.study.style import GREY, legend_below, look, problem_title

WORST = 2.0  # decades on either side of nothing: the ends of the colours
SHOWN = 16  # methods in a figure: more names do not fit beside one another


def _table(context: Context, name: str, frame: pd.DataFrame, data: pd.DataFrame) -> Table:
    """The table of these lines; without any, its gap is every row."""
    return Table(frame, data, [] if len(frame) else [context.gap(name, "every row")])


LOSSES = {HELD: "held-out loss", EXCESS: "training objective"}
OUTPUTS = {"logistic": "two classes", "squared": "numbers"}


@PAPER.artefact("kept")
def kept(context: Context) -> WithWords:
    """A row per loss and group of families, a cell per ε: what the default keeps of the gain without privacy."""
    lines, data, words = [], [], dict[str, Any]()
    for column, loss in LOSSES.items():
        ranked = board(context, column)
        members: dict[str, list[str]] = {}
        for problem in sorted(ranked.choice.keys() & set(ranked.scores["problem"])):
            members.setdefault(tracks.families().get(problem, problem), []).append(problem)
        shares = {e: ranked.kept(e) for e in ranked.epsilons}
        groups = headline.groups(members)
        if groups["real"] == groups["all"]:
            del groups["all"]
        for group, names in groups.items():
            ones = {e: headline.kept(group, own[own.index.isin(names)]) for e, own in shares.items()}
            most = max((one.families for one in ones.values()), default=0)
            if most:
                data += [{"loss": column, "epsilon": e, **one._asdict()} for e, one in ones.items()]
                told = {f"at ε = {e:g}": _kept(one) for e, one in ones.items()}
                lines.append({"loss": loss, "families": f"{group} ({most})", **told})
                words = words or {"median": share(ones[1.0].median), "families": ones[1.0].families}
    without = sorted(nulls("held").keys() - nulls("best"))
    words |= {"found": bool(words), "without": ", ".join(map(problem_title, without)), "tables": len(nulls("held"))}
    return _table(context, "kept", pd.DataFrame(lines), pd.DataFrame(data)), words


def share(kept: float) -> str:
    """A share in percent, with a decimal where 99 to 100 % would hide it.

    >>> share(0.868), share(0.9929), share(1.0), share(-0.5)
    ('87 %', '99.3 %', '100 %', '-50 %')
    """
    percent = round(100 * kept, 1 if 0.99 < kept < 0.9995 else None)
    return f"{percent} %"


def _quartiles(one: headline.Kept) -> str:
    return f"{share(one.median)} ({share(one.low)} to {share(one.high)})"


def _kept(one: headline.Kept) -> str:
    """ "87 % (58 % to 97 %); 26 of 26, p < .001"."""
    chance = "< .001" if one.sign < 0.001 else f"= {one.sign:.1g}"
    return f"{_quartiles(one)}; {one.better} of {one.families}, p {chance}" if one.families else "–"


@PAPER.artefact("held_out")
def held_out(context: Context) -> WithWords:
    """A row per method and kind of outputs: place by the median over families, and its quartiles, at each ε."""
    ranked = board(context, HELD)
    data: list[dict[str, Any]] = []
    for loss, outputs in OUTPUTS.items():
        for e in ranked.epsilons:
            names = sorted({*ranked.scores["algorithm"]} - {AUTO})
            ones = [(name, headline.kept(outputs, ranked.kept(e, name, loss))) for name in names]
            place = 0
            for name, one in sorted((at for at in ones if at[1].families), key=lambda at: -at[1].median):
                place += name not in ranked.unpaid
                shown = 0 if name in ranked.unpaid else place
                data.append({"epsilon": e, "algorithm": name, "place": shown, **one._asdict()})
    table = pd.DataFrame(data)
    order = table.groupby(["group", "algorithm"])["median"].mean().sort_values(ascending=False) if data else table
    keys = [
        {"group": group, "algorithm": name} for group in OUTPUTS.values() for at, name in order.index if at == group
    ]
    default = {(OUTPUTS.get(tracks.kind(p).split()[0]), name) for p, name in ranked.choice.items()}
    label = {at: f"{ranked.label(at[1])} (the default)" for at in default}
    made = Table.crossed(
        table, keys, {
            "outputs": lambda key: key["group"],
            "method": lambda key: label.get((key["group"], key["algorithm"])) or ranked.label(key["algorithm"]),
        }, {f"ε = {e:g}": {"epsilon": e} for e in ranked.epsilons if data},
        lambda one: f"{one['place'] or '–'}: {share(one['median'])} ({share(one['low'])} to {share(one['high'])})",
        data=table,
    )  # fmt: skip
    made.gaps = [] if data else [context.gap("held_out", "every row")]
    counts = {
        group: max(one["families"] for one in data if one["group"] == group) for group in {*table.get("group", ())}
    }
    of = " and ".join(f"{counts[group]} with {group}" for group in OUTPUTS.values() if group in counts)
    return made, {"of": of or "none", "unscored": unscored(ranked)}


@PAPER.artefact("places")
def placed(context: Context) -> WithWords:
    """A row per method in the order of its mean over all ε: place and score at each ε, cost."""
    ranked = board(context)
    lined = [(e, one) for e in ranked.epsilons for one in ranked.placed(e)]
    data = [{"epsilon": e, **one._asdict(), "told": f"{one.place or '–'}: {one.interval}"} for e, one in lined]
    table = pd.DataFrame(data)
    order = table.groupby("algorithm")["score"].mean().sort_values(kind="stable").index if data else ()
    made = Table.crossed(
        table, [{"algorithm": name} for name in order], {"method": lambda key: ranked.label(key["algorithm"])},
        {f"ε = {e:g}": {"epsilon": e} for e in ranked.epsilons if data}, lambda one: one["told"],
        trail={"seconds": lambda key: f"{ranked.seconds.get(key['algorithm'], math.nan):.2g}".replace("nan", "–")},
        data=table.drop(columns="told", errors="ignore"),
    )  # fmt: skip
    made.gaps = [] if data else [context.gap("places", "every row")]
    problems = set(ranked.scores["problem"])
    return made, {
        "problems": len(problems),
        "families": len({tracks.families().get(problem, problem) for problem in problems}),
        "unscored": unscored(ranked),
    }


@PAPER.artefact("needed")
def needed(context: Context) -> WithWords:
    """A row per problem by n: the least n·ε at which the default, and at which any method, is better than w = 0."""
    least: dict[str, tuple[str, headline.Reach, Board]] = {}
    for column, loss in LOSSES.items():
        ranked = board(context, column)
        rows = ranked.losses[~ranked.losses["algorithm"].isin([*ranked.unpaid, *ranked.titles])]
        # Rows held out come first: a problem that has them is not judged by the training objective.
        rows = rows[rows["problem"].isin(ranked.choice) & ~rows["problem"].isin(least)]
        for one in headline.reach(rows, ranked.scale.nulls, ranked.choice) if len(rows) else ():
            least[one.problem] = loss, one, ranked
    ones = sorted(least.values(), key=lambda at: (at[1].n, at[1].problem))
    lines = [
        [problem_title(one.problem), "drawn" if headline.is_drawn(one.problem) else "real", loss, f"{one.n:,}",
         _rows(one.default), _rows(one.any) + (f" ({ranked.label(one.method)})" if one.method else "")]
        for loss, one, ranked in ones
    ]  # fmt: skip
    columns = ["problem", "data", "loss", "n", "n·ε of the default", "n·ε of any method"]
    data = pd.DataFrame([{"loss": loss, **one._asdict()} for loss, one, _ in ones])
    return _table(context, "needed", pd.DataFrame(lines, columns=columns), data), {}


def _rows(count: float) -> str:
    return "–" if math.isnan(count) else f"{count:,.0f}"


@PAPER.artefact("against", column=HELD, loss="held-out loss",
                unit="by how many points the default keeps more of the gain than the method")  # fmt: skip
@PAPER.artefact("against_excess", section="against", column=EXCESS, loss="training objective",
                unit="log10 of the default's excess loss over the method's")  # fmt: skip
def against(context: Context, column: str, **_: str) -> WithWords:
    """A row per method, a cell per ε: the mean difference of the default and the method, and which is better."""
    ranked, by = board(context, column), {}
    for e in ranked.epsilons:
        at, scores = (select(table, epsilon=e) for table in (ranked.losses, ranked.scores))
        scores = scores[~scores["algorithm"].isin([*ranked.unpaid, NOTHING])]
        ones = headline.against(at, scores, ranked.scale, ranked.choice, tracks.families())
        by[e] = {one.algorithm: one for one in ones}
    names = sorted({name for ones in by.values() for name in ones}, key=ranked.label)
    lines = [
        [ranked.label(name), *(_against(ones[name], column) if name in ones else "–" for ones in by.values())]
        for name in names
    ]
    frame = pd.DataFrame(lines, columns=["method", *(f"ε = {e:g}" for e in by)])
    data = pd.DataFrame([{"epsilon": e, **one._asdict()} for e, ones in by.items() for one in ones.values()])
    return _table(context, "against" if column == HELD else "against_excess", frame, data), {}


def _against(one: headline.Against, column: str) -> str:
    if one.equal == one.families:
        return "it is the default"
    if column == HELD:
        # An end that is not 0 is not told as 0, and 0 is not as -0: the verdict is by its sign.
        ends = (0 - 100 * one.high, 0 - 100 * one.low)
        low, high = (f"{end:.0f}" if abs(end) >= 0.5 else f"{end:.1g}" for end in ends)
        told = f"{round(-100 * one.difference):+d} [{low}, {high}]"
    else:
        told = f"{two(one.difference)} [{two(one.low)}, {two(one.high)}]"
    return f"{told} on {one.families}: {one.words}"


TUNED = {
    "private": "tuned within ε: three values around the rule",
    "nearby": "the best of three values around the rule (free here, not private)",
}


@PAPER.artefact("price")
def price(context: Context) -> WithWords:
    """A row per way to settings, a column per ε: mean excess loss over that of the public rule, where both ran."""
    rule = track_means(context, "default")
    epsilons = sorted(set(rule["epsilon"]))
    data: list[dict[str, Any]] = []
    for track in TUNED:
        other = track_means(context, track)
        for epsilon in epsilons:
            one = places.price(rule[rule["epsilon"] == epsilon], other[other["epsilon"] == epsilon], tracks.families())
            data.append({"track": track, "epsilon": epsilon, **one._asdict()})
    shown = "{ratio:.2f} [{low:.2f}, {high:.2f}] (combinations: {combinations}, families: {families})"
    table, ways = pd.DataFrame(data), [{"track": track} for track in TUNED if epsilons]
    made = Table.crossed(
        table, ways, {"settings": lambda key: TUNED[key["track"]]}, {f"ε = {e:g}": {"epsilon": e} for e in epsilons},
        lambda one: shown.format_map(one) if one["combinations"] else "–", data=table,
    )  # fmt: skip
    made.gaps = [] if epsilons else [context.gap("price", "every row")]
    ratios = [one["ratio"] for one in data if one["track"] == "private" and one["combinations"]]
    ends = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(ratios), max(ratios)))) if ratios else ""
    return made, {"found": bool(ratios), "ratios": ends}


@PAPER.artefact("problems")
def problems(context: Context) -> WithWords:
    """A row per problem: size, kind, family, what w = 0 loses, how many methods are on it; then who is left out."""
    on = board(context).scores.groupby("problem")["algorithm"].nunique()
    lines = []
    for problem in context.problems("problems"):
        n, d = tracks.size(problem)
        family = tracks.families().get(problem, problem)
        null = f"{nulls()[problem]:.3g}" if problem in nulls() else "–"
        count = int(on.get(problem, 2)) - 2  # without w = 0 and the default
        lines.append([problem, f"{n:,}", f"{d:,}", tracks.kind(problem), family, null, str(max(count, 0))])
    header = ["problem", "n", "d", "kind", "family", "excess loss of w = 0", "methods"]
    left_out = "; ".join(f"{look(name).label}: {why}" for name, why in tracks.excluded().items())
    return Table(pd.DataFrame(lines, columns=header)), {"left_out": left_out}


@PAPER.artefact("fits")
def fits(context: Context) -> WithWords:
    """Every method that is left out of a problem, with the reason."""
    asked = context.problems("fits")
    where: dict[tuple[str, str], list[str]] = {}  # (method, reason) → problems
    for problem in asked:
        for name in entrants.entrants():
            if name not in tracks.excluded() and (why := entrants.reason(problem, name)):
                where.setdefault((name, why), []).append(problem_title(problem))
    names: dict[tuple[str, str], list[str]] = {}  # (problems, reason) → methods
    for (name, why), on in where.items():
        names.setdefault(("all" if len(on) == len(asked) else ", ".join(on), why), []).append(look(name).label)
    rows = [[on, "; ".join(labels), why] for (on, why), labels in names.items()]
    return Table(pd.DataFrame(rows, columns=["not on", "methods", "why"])), {}


@PAPER.artefact("submitted")
def submitted(context: Context) -> WithWords:
    """A row per submission that `dpbench board merge` added."""
    lines = []
    for one in submissions(context.store):
        told, checked = one.manifest, one.checked
        how = checked["how"] + ("" if one.placed else ": no place")
        planned = one.rows["epsilon_planned"] / one.rows["epsilon"]
        lines.append(
            [marked(told), how, f"{len(one.rows):,} on {one.rows['problem'].nunique()} problems",
             f"{planned.min():.2f} to {planned.max():.2f} of what was asked", told["author"] or "–",
             told["licence"] or "–", told["sha256"]["method.py"][:16], checked["code_version"],
             checked["archive_sha256"][:16]]
        )  # fmt: skip
    header = ["method", "how it was run", "rows", "planned ε", "author", "licence", "code", "dpbench", "archive"]
    return Table(pd.DataFrame(lines, columns=header)), {"none": "" if lines else " None so far."}


def unscored(ranked: Board) -> str:
    """A sentence on the (problem, ε) that are not scored yet; "" without any."""
    if not ranked.waiting:
        return ""
    return f" {ranked.waiting} (problem, ε) are not scored yet: the runs of some method on them are not made."


@each(PAPER.artefact(f"heat_{name}", section="heat", epsilon=e) for name, e in LEVELS.items())
def heat(context: Context, epsilon: float) -> WithWords:
    """A column per method, a row per problem, by kind, real above drawn; blue is better than nothing, red worse."""
    import matplotlib.pyplot as plt

    ranked = board(context)
    table = select(ranked.scores, epsilon=epsilon).sort_values(["algorithm", "problem"])
    placed = ranked.placed(epsilon) if len(table) else ()
    order = [one.algorithm for one in placed if one.place and one.score < 0][:SHOWN]
    problems = sorted(set(table["problem"]), key=lambda p: (tracks.KINDS.index(tracks.kind(p)), tracks.size(p)[0], p))
    parts = [part for part in ([p for p in problems if is_drawn(p) == drawn] for drawn in (False, True)) if part]
    figure, axes = plt.subplots(
        len(parts) or 1, 1, figsize=(7, 1.6 + 0.15 * max(len(problems), 8)), layout="constrained", sharex=True,
        squeeze=False, height_ratios=[len(part) for part in parts] or None,
    )  # fmt: skip
    shades = plt.get_cmap("RdBu_r").with_extremes(bad="#c6c6c6")  # no score: not the white of 0
    for axis, part in zip(axes[:, 0], parts, strict=bool(parts)):
        grid = table.pivot_table(index="problem", columns="algorithm", values="score").reindex(part)[order]
        drawn = axis.imshow(grid.to_numpy(), cmap=shades, vmin=-WORST, vmax=WORST, aspect="auto")
        for y, x in np.argwhere(grid.to_numpy() >= CLIP):
            axis.text(x, y, "×", color="white", ha="center", va="center", fontsize=7)
        axis.set_yticks(range(len(part)), [problem_title(p) for p in part], fontsize=6.5)
        axis.set_xticks(range(len(order)), [ranked.label(name) for name in order], rotation=55, ha="right", fontsize=7)
        kinds = pd.Series([tracks.kind(problem) for problem in part])
        for kind, rows in kinds.groupby(kinds):
            axis.axhline(rows.index[-1] + 0.5, color="white", lw=2)
            axis.text(len(order) - 0.4, rows.index[0] - 0.5, kind, va="top", fontsize=7)
        axis.set_ylabel("drawn data" if is_drawn(part[0]) else "real data")
        axis.grid(False)
        axis.tick_params(length=0)
    if parts:
        bar = figure.colorbar(drawn, ax=axes, location="top", shrink=0.5, aspect=40, pad=0.01, extend="both")
        bar.set_label("log10 of the excess loss over that of w = 0")
    gaps = [] if parts else [context.gap(f"heat_{_level(epsilon)}", "every cell")]
    return Figure(figure, table, gaps), {"methods": len(order)}


@PAPER.artefact("reach")
def reach(context: Context) -> WithWords:
    """A line per problem: what the default keeps against n·ε, and the median of the real ones by half decades."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
    panels = []
    for axis, column, title in zip(axes, (HELD, EXCESS), ("held-out loss", "training objective"), strict=True):
        ranked = board(context, column)
        panel = ranked.scores[ranked.scores["algorithm"].eq(AUTO)].sort_values(["problem", "epsilon"])
        rows = np.array([tracks.size(problem)[0] for problem in panel["problem"]])
        panel = panel.assign(
            loss=column, kept=ranked.scale.kept(panel["score"]), reach=rows * panel["epsilon"].astype(float),
            drawn=panel["problem"].map(is_drawn),
        )  # fmt: skip
        for (_, drawn), line in panel.groupby(["problem", "drawn"]):
            colour, label = (GREY, "a drawn problem") if drawn else ("C0", "a real problem")
            axis.plot(line["reach"], line["kept"], color=colour, label=label, lw=0.6, marker="o", ms=2, alpha=0.6)
        real = panel[panel["drawn"].eq(False)]
        median = real.groupby(np.round(2 * np.log10(real["reach"])) / 2)["kept"].median()
        axis.plot(10.0**median.index, median, color="black", lw=1.5, label="median of the real ones")
        axis.axhline(0.0, color="black", lw=0.6, ls=":")
        axis.set(title=title, xscale="log" if len(panel) else "linear", xlabel="n·ε")
        panels.append(panel)
    axes[0].set_ylabel("share of the gain that is kept")
    legend_below(figure, axes)
    table = pd.concat(panels, ignore_index=True)
    return Figure(figure, table, [] if len(table) else [context.gap("reach", "every line")]), {}


def _level(epsilon: float) -> str:
    return next(name for name, value in LEVELS.items() if value == epsilon)
