"""What a paper declares: short functions for numbers, and a `words.md` beside them for everything that is prose.

    PAPER = Paper(__name__)

    @PAPER.artefact("fig3")                  # words.md: "## fig3: Fig. 3: error against iterations", caption, method
    def fig3(context): ...                   # (a Figure or Table, {name: value} for its words)

    @PAPER.claim("1")                        # words.md: "## claim 1", its text, Place, Shows, Numbers
    def one(context): ...                    # (whether it holds, {name: value}), or several such

    @PAPER.erratum("scale")                  # words.md: "## erratum scale: …", Ran, Misses, Bounds
    def scale(): ...                         # its cases

    EXPERIMENT = PAPER.experiment()          # words.md: title, citation, short and about of "phrases"

A section's first paragraph is the caption, or a claim's text; one that begins with a word of `PARTS` and a colon is
that part, and "As: OTHER" stands for the parts of another section. A {name} in them is a value that the function
gives, or a phrase: a paragraph "name: text" of the section "phrases". A brace that begins no name is doubled, as in
format strings.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from dpbench import frames
from dpbench.run import outcomes
from dpbench.study import claims
from dpbench.study.claims import NOT_TESTABLE, Artefact, Claim, Erratum, NotEnough, Verdict, Why
from dpbench.study.context import Context, select
from dpbench.study.experiment import Experiment
from dpbench.study.output import Figure, Table
from dpbench.study.panels import Panels, band
from dpbench.study.power import words_on_wrong_runs
from dpbench.study.statistics import Mean, excess, plus_minus
from dpbench.study.tuning import expand_settings
from dpbench.study.value_verdict import HONEST, OTHER_DATA, Runs, Switch, Switches

# What stands before any other colon is prose.
PARTS = ("As", "Method", "Finding", "Place", "Shows", "Numbers", "Interval", "Power", "Case", "Why", "Ran", "Misses",
         "Bounds")  # fmt: skip
Key: TypeAlias = Mapping[str, Any]
WithWords: TypeAlias = tuple[Any, dict[str, Any]]  # an artefact, or whether a claim holds, and the values of its words


class Words(NamedTuple):
    """A section of words.md: its title, and its parts by name; "" is the first paragraph."""

    title: str
    parts: Mapping[str, str]

    def get(self, part: str, values: Key) -> str:
        """The part with its {names} filled in; "" where the section has none."""
        try:
            return self.parts.get(part, "").format_map(values)
        except KeyError as unknown:
            what = f"{part or 'first paragraph'} {self.parts[part][:40]!r}…"
            raise ValueError(f"words.md: {what} names {unknown}, which its function does not give") from None


def read_words(text: str) -> dict[str, Words]:
    """The sections of a words.md by name; the lines of a paragraph are joined, but those of a table.

    ValueError for a second section of a name, and for a second paragraph that is no known part.
    """
    sections: dict[str, Words] = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        name, _, title = heading.partition(": ")
        parts: dict[str, str] = {}
        for paragraph in filter(None, map(str.strip, re.split(r"\n\s*\n", body))):
            line = paragraph if paragraph.startswith("|") else " ".join(paragraph.split("\n"))
            part, colon, rest = line.partition(": ")
            part, rest = (part, rest) if colon and (part in PARTS or name == "phrases") else ("", line)
            if part in parts:
                raise ValueError(f"words.md: section {name!r} has a second {part or 'paragraph'}: {rest[:40]!r}…; "
                                 f"a paragraph begins with one of: {', '.join(PARTS)}")  # fmt: skip
            parts[part] = rest
        if name in sections:
            raise ValueError(f"words.md: section {name!r} is there twice")
        sections[name] = Words(title.strip(), parts)
    return sections


def _whys(text: str) -> tuple[Why, ...]:
    """What verdicts come from, one each: "VERDICT or VERDICT, ARTEFACT, CASE: text", where the case may be left out."""
    head, _, reason = text.partition(": ")
    words, *where = head.split(", ")
    return tuple(Why(word, reason, *where) for word in words.split(" or ") if word)


class Paper:
    """What the modules of one paper declare, by the names of the sections of its words.md.

    Args:
        package: the dotted name of the paper's package, which has the words.md.

    Attributes:
        phrases: name → text, of the section "phrases"; title, citation, short and about are of the paper as a whole.
        switches: the differences to the published runs that its values name, of "table switches"; `rows` tells which
            are on.

    ValueError where a declaration has no section.
    """

    def __init__(self, package: str) -> None:
        self.package = package
        self._words = read_words((resources.files(package) / "words.md").read_text(encoding="utf-8"))
        self.phrases = dict(self._words.pop("phrases", Words("", {})).parts)
        self.unused = set(self._words)  # sections that nothing has asked for
        listed = self.table("switches", self.phrases) if "table switches" in self._words else []
        self.switches = tuple(
            Switch(one["switch"], (one["setting"], {"true": True}.get(one["value"], one["value"])), one["source"],
                   keeps_epsilon=one["keeps ε"] == "yes")
            for one in listed
        )  # fmt: skip

    def experiment(self, *modules: ModuleType, **declared: Any) -> Experiment:
        """What the modules (by default the package itself) declare, as the experiment that has the package's name.

        declared: the other fields of `Experiment`, as `published_values`.
        """
        told: dict[str, Any] = {name: self.phrases.get(name, "") for name in ("title", "citation", "short", "about")}
        return Experiment(self.package.rpartition(".")[2], package=self.package, switches=self.switches,
                          modules=modules or (sys.modules[self.package],), **told, **declared)  # fmt: skip

    def words(self, section: str) -> Words:
        """The section of this name; "As: OTHER" takes all but the title from another section."""
        self.unused.discard(section)
        if section not in self._words:
            raise ValueError(f"words.md: there is no section {section!r}; add a line: ## {section}: TITLE")
        words = self._words[section]
        return words._replace(parts=self.words(words.parts["As"]).parts) if "As" in words.parts else words

    def artefact(self, name: str, /, *, section: str = "", **parameters: Any) -> Callable[[Any], Any]:
        """Declare a figure or table: the function gives it, and the values that its words name.

        Its finding is shown but where the values have found=False.

        Args:
            name: of the artefact in the grid, the command line and the report.
            section: whose words it has, where several artefacts share them; by default that of its name.
            parameters: what the function is called with after the context; title and words may name them, too.
        """
        words = self.words(section or name)

        def declared(function: Any) -> Any:
            def render(context: Context) -> Figure | Table:
                drawn: Figure | Table
                drawn, given = function(context, **parameters)
                values = self.phrases | parameters | given
                drawn.caption, drawn.method = words.get("", values), words.get("Method", values)
                drawn.finding = words.get("Finding", values) if values.get("found", True) else ""
                return drawn

            return claims.keep(function, Artefact(name, words.title.format_map(parameters), render))

        return declared

    def table(self, name: str, values: Key) -> list[dict[str, str]]:
        """The rows of the pipe table in the section `table NAME`, heading → cell, with {names} filled in."""
        head, _, *lines = (
            re.split(r" *(?<!\\)[|] *", line)[1:-1] for line in self.words(f"table {name}").parts[""].split("\n")
        )
        return [dict(zip(head, (cell.format_map(values) for cell in line), strict=True)) for line in lines]

    def claim(
        self,
        name: str,
        /,
        *,
        section: str = "",
        exchange: Mapping[str, str] | None = None,
        planted: bool = True,
        **parameters: Any,
    ) -> Callable[[Any], Any]:
        """Declare a claim: the function gives whether it holds (None: open), and the values that its words name.

        It may give several such pairs, the word of a verdict for whether it holds, or whole verdicts. A claim that
        holds with its two sides exchanged as well is not testable.

        Args:
            name: of the claim in the scorecard.
            section: whose words it has, where several claims share them; by default that of its name.
            exchange: method → the other side, for the claim's {wrong}: see `study.power`.
            planted: whether {wrong} has the runs with wrong noise; not where they are of a part of what is chosen from.
            parameters: what the function is called with after the context; text and place may name them, too.
        """
        words = self.words(f"claim {section or name}")
        interval, power = (words.parts.get(part, "") for part in ("Interval", "Power"))

        def declared(function: Any) -> Any:
            def judged(context: Context) -> Iterator[tuple[Verdict, Key]]:
                result = function(context, **parameters)
                for one in [result] if isinstance(result, tuple | Verdict) else result:
                    if isinstance(one, Verdict):
                        yield one, {}
                        continue
                    held, given = one
                    values = self.phrases | parameters | given
                    made = Verdict if isinstance(held, str) else Verdict.of
                    yield made(held, words.get("Numbers", values), words.get("Case", values)), values

            def check(context: Context) -> Iterator[Verdict]:
                # Only where the words ask for it: most of a claim's time is in the wrong runs.
                wrong = None
                for verdict, values in judged(context):
                    if not values:
                        yield verdict
                        continue
                    if "{wrong}" in power:
                        wrong = wrong or words_on_wrong_runs(
                            context, exchange or {}, planted, lambda other: (one for one, _ in judged(other))
                        )
                        told, testable = wrong(verdict)
                        verdict = verdict if testable else replace(verdict, word=NOT_TESTABLE)
                        values = {**values, "wrong": told}
                    ends = ((part, words.get(part, values)) for part in ("Interval", "Power"))
                    given = "".join(f"; {part.lower()}: {text}" for part, text in ends if text)
                    yield replace(verdict, numbers=verdict.numbers + given)

            parts = ("", "Place", "Shows", "Why")
            text, place, shows, why = (words.get(part, self.phrases | parameters) for part in parts)
            return claims.keep(function, Claim(name, text, check, place, shows, _whys(why), interval, power))

        return declared

    def erratum(self, name: str) -> Callable[[Any], Any]:
        """Declare an erratum whose cases the function gives."""
        words = self.words(f"erratum {name}")
        ran, misses, bounds = (words.get(part, self.phrases) for part in ("Ran", "Misses", "Bounds"))
        return lambda function: claims.keep(function, Erratum(name, words.title, ran, misses, bounds, function))

    def rows(self, context: Context, artefact: str, **names: str) -> pd.DataFrame:
        """The artefact's runs with a result: a column per setting, `excess` (infinite where diverged), and `on`.

        names: setting → its column, where that is not `set.<name>`. on: the switches that are on, joined by " + ".
        """
        rows = context.rows(artefact)
        # A diverged run has a result, and stays as infinite: left out, it would flatter its setting.
        rows = rows[outcomes.has_result(rows["status"])]
        if rows.empty:
            return rows.assign(on=[], **{column: [] for column in names.values()})
        rows = expand_settings(rows)
        on = pd.Series("", index=rows.index)
        for one in self.switches:
            setting, value = one.setting
            here = rows.get(f"set.{setting}", on) == value
            on[here] = on[here].where(on[here].eq(""), on[here] + " + ") + one.name
        rows = rows.rename(columns={f"set.{name}": column for name, column in names.items()})
        return rows.assign(excess=excess(rows), on=on)


def by_switches(rows: pd.DataFrame, **columns: str) -> dict[Switches, Runs]:
    """Switches that are on (a set) → quantity → a value per seed, as `PublishedValue` has them.

    columns: quantity=column, where a blank of the quantity is "_".
    """
    named = {quantity.replace("_", " "): column for quantity, column in columns.items()}
    return {
        frozenset(filter(None, str(on).split(" + "))): {q: part[c].astype(float).tolist() for q, c in named.items()}
        for on, part in rows.groupby("on", sort=False)
    }


def by_recipe(rows: pd.DataFrame, data: str = OTHER_DATA, /, **columns: str) -> dict[float | str, Runs]:
    """What is wrong on purpose with runs → quantity → a value per seed: the factor on their noise, or their data.

    data: the name of those with the right noise, which are of other rows; columns: as above.
    """
    recipes = rows["planted"].astype(object).where(rows["planted"].notna(), data)
    order = sorted(set(recipes), key=lambda one: (one == data, str(one)))
    return {one: by_switches(rows[recipes.eq(one)].assign(on=""), **columns)[HONEST] for one in order}


@dataclass(frozen=True, order=True)
class End:
    """Where the runs of one key end, ordered by mean: the mean over seeds, its standard error, how many seeds.

    key: names and values, and what else its table has of it: `end["T"]`, in words {end[T]}.
    """

    mean: float
    se: float
    seeds: int
    key: Key = field(compare=False)

    def __str__(self) -> str:
        return plus_minus(self.mean, self.se)

    def __getitem__(self, name: str) -> Any:
        return self.key[name]

    def lead(self, other: End) -> float:
        """How far this end is below another, in standard errors of the difference; infinite where neither varies."""
        difference, error = other.mean - self.mean, math.hypot(self.se, other.se)
        return 0.0 if difference == 0 else difference / error if error else math.copysign(math.inf, difference)


class Ends:
    """Means by named keys, as claims read them: `ends(algorithm="dp-hb", c=1)`.

    Args:
        table: a row per key with the columns of `statistics.Mean`.
        artefact: whose rows they are: what a reader runs where one is missing.
        words: what a missing one is called, as "{algorithm} at c = {c:g}".
    """

    def __init__(self, table: pd.DataFrame, artefact: str, words: str) -> None:
        self._table, self._artefact, self._words = table, artefact, words

    def matching(self, **key: Any) -> list[End]:
        """Every end with this key, which may leave columns open."""
        rows = select(self._table, **key)
        return [
            End(mean.mean, mean.se, mean.seeds, record)
            for mean, record in zip(frames.records(rows, Mean), frames.mappings(rows), strict=True)
        ]

    def all(self, **key: Any) -> list[End]:
        """The same; NotEnough where there is none."""
        if ends := self.matching(**key):
            return ends
        raise NotEnough(self._words.format_map(key), self._artefact)

    def __call__(self, **key: Any) -> End:
        """The one end with this key, or of several the lowest mean; NotEnough where there is none."""
        return min(self.all(**key))


class Stroke(NamedTuple):
    """How one line of a panel is drawn: of which rows (column → value), in which colour, width (points) and style.

    end: whether a dot marks its last point.
    """

    rows: Key
    label: str
    colour: str
    width: float
    style: str = "-"
    end: bool = True


def drawn_lines(
    context: Context,
    artefact: str,
    table: pd.DataFrame,
    x: str,
    over: Sequence[Key],
    strokes: Sequence[Stroke],
    where: Callable[[Key, str], str],
    *,
    panel: Callable[[Any, Key], None] = lambda axis, key: None,
    **shape: Any,
) -> Panels:
    """A panel per key of `over` with the lines of `strokes`; a line without rows is a gap.

    Args:
        table: columns x, mean and se (or low and high), and those of the keys.
        over: what the rows of each panel have in common, column → value.
        where: (a panel's key, the labels of its lines without rows) → the words of the gap.
        panel: what else is set on the axis of a panel with rows.
        shape: columns, size and room, as of `Panels`.
    """
    page = Panels(context, artefact, len(over), **shape)
    for axis, key in page.over(over):
        rows = select(table, **key)
        lines = [(stroke, select(rows, **stroke.rows).sort_values(x)) for stroke in strokes]
        lacking = ", ".join(stroke.label for stroke, line in lines if line.empty)
        if page.empty(axis, rows, where(key, lacking)):
            continue
        if lacking:
            page.note(where(key, lacking))
        for stroke, line in lines:
            axis.plot(line[x], line["mean"], stroke.style, color=stroke.colour, lw=stroke.width, label=stroke.label)
            band(axis, line, x, stroke.colour)
            if stroke.end:
                axis.plot(line[x].tail(1), line["mean"].tail(1), "o", color=stroke.colour, ms=stroke.width + 2)
        panel(axis, key)
    return page
