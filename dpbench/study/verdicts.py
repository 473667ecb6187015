"""What became of a published value: the values, their classes, and whether they survive a guarantee that is kept.

A `Cell` is one table's row and column with all that is printed in it from the same runs. It has one verdict, from one
setting of the runs. An experiment yields its cells as data: what is printed, and our runs by the set of `Switch`es that
are on. `judge` does the rest; `Report.headline` counts. The statistics are in `study.laws`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpbench.study import laws, printed

NO_DATA, NOT_COMPARABLE, EXACT, MATCH, DIFFERS = "no data", "not comparable", "exact", "match", "differs"
WORDS = (EXACT, MATCH, DIFFERS, NOT_COMPARABLE, NO_DATA)
OTHER_COSTS, NOT_PUBLIC = "other unit costs", "problem not public"
TOO_WIDE, NOTHING_VARIES = "too wide", "nothing printed that varies"
REASONS = (OTHER_COSTS, NOT_PUBLIC, TOO_WIDE, NOTHING_VARIES)
SURVIVES, EXPLAINED, LOST, UNTRIED = "yes", "explained", "no", "not tried"  # under a kept ε
MEAN, STD, COUNT, ALL, ROUNDED, FIXED = "mean", "std", "count", "all", "rounded mean", "fixed"  # laws of a number
LEVEL = 0.05
WIDEST, WIDEST_COUNT = 0.05, 1.0  # half-widths of the law of means beyond which a match would say nothing
POWER = (  # of two numbers, means of five, 100 runs of ours
    "How much a match says: a gap of 1.6 standard deviations of one run would have been noticed with probability .9, "
    "a gap of 1 in about half of all cases."
)
HONEST: frozenset[str] = frozenset()

Runs: TypeAlias = Mapping[str, Sequence[float]]  # quantity → a value per seed
Switches: TypeAlias = frozenset[str]


class Place(NamedTuple):
    """Where the paper prints a cell: "Table 1", its row and its column, in the paper's words."""

    table: str
    row: str = ""
    column: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


@dataclass(frozen=True)
class Switch:
    """One difference between the honest run and the published one.

    setting: the one setting of the algorithm that turns it on, and its value; source: the line of the authors' code or
    text that shows it; keeps_epsilon: whether a run with it on still has the ε that it states.
    """

    name: str
    setting: tuple[str, object]
    source: str
    keeps_epsilon: bool = False

    def __post_init__(self) -> None:
        pair = self.setting if isinstance(self.setting, tuple) else ()
        if len(pair) != 2 or not isinstance(pair[0], str) or isinstance(pair[1], (Mapping, list, tuple, set)):
            raise ValueError(f"switch {self.name}: a switch is one setting and its value, got {self.setting!r}; "
                             "register a bundle as one switch per difference")  # fmt: skip
        if not self.source.strip():
            raise ValueError(f"switch {self.name}: name the line of the authors' code or text that shows it")


@dataclass(frozen=True)
class Number:
    """One printed number of a cell.

    quantity: its name in the cell's runs; text: as printed, "0.710" ("yes" or "×" where law is `ALL`); k: over how many
    runs. law: `MEAN`; `STD` (ddof = 1); `COUNT` (of the k runs, how many; values 0 or 1); `ALL` (whether all k did);
    `ROUNDED` (a mean printed as a whole number); `FIXED` (nothing random: ours must round to it).
    count: of counts: a mean may be 1 wide instead of 5 %, and laws are those of counts. lowest: the least mean of a
    grid, which lies low.
    """

    quantity: str
    text: str
    law: str = MEAN
    k: int = 1
    count: bool = False
    lowest: bool = False

    def __post_init__(self) -> None:
        if self.law not in (MEAN, STD, COUNT, ALL, ROUNDED, FIXED):
            raise ValueError(f"number {self.quantity}: {self.law!r} is no law of a printed number")
        if self.law == ALL:
            if self.text not in ("yes", "×"):
                raise ValueError(f'number {self.quantity}: print "yes" or "×", not {self.text!r}')
        else:
            printed.number(self.text)

    @property
    def value(self) -> float:
        return float(self.text == "yes") if self.law == ALL else printed.number(self.text)

    @property
    def slack(self) -> float:
        return 0.0 if self.law == ALL else printed.unit(self.text) / 2


@dataclass(frozen=True)
class Cell:
    """A published value, and our runs for it.

    place: where it is printed; artefact: ours that shows it and whose grid makes its runs; numbers: all that is printed
    in it from the same runs. runs: by the set of switches that are on, `HONEST` for none; switches: those that make the
    published setting of this cell. stream: by set of switches, the k runs that the published random stream gives.
    fits: by name, runs with a fitted number: shown, never an explanation. tuned: by quantity, draws of the least mean
    of our grid over k seeds. not_comparable: `NOT_PUBLIC` or `NOTHING_VARIES`. run_time: seconds, never comparable.
    trivial: why it could not have come out otherwise, "" where it could. shares: the name of the cell whose runs these
    are. series: names of the rows or columns along which its neighbours' numbers are wrong ones (see `placebo`).
    """

    place: Place
    artefact: str
    numbers: tuple[Number, ...]
    runs: Mapping[Switches, Runs] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    stream: Mapping[Switches, Runs] = field(default_factory=dict)
    fits: Mapping[str, Runs] = field(default_factory=dict)
    tuned: Mapping[str, Sequence[float]] = field(default_factory=dict)
    not_comparable: str = ""
    run_time: bool = False
    trivial: str = ""
    shares: str = ""
    series: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.numbers:
            raise ValueError(f"{self.place}: a cell has at least one printed number")
        if self.not_comparable not in ("", NOT_PUBLIC, NOTHING_VARIES):
            raise ValueError(f"{self.place}: not comparable for {self.not_comparable!r}, which is none of the reasons "
                             f"to declare: {NOT_PUBLIC}, {NOTHING_VARIES}")  # fmt: skip

    @property
    def name(self) -> str:
        return str(self.place)

    @property
    def published(self) -> Switches:
        return frozenset(self.switches)


@dataclass(frozen=True)
class Outcome:
    """A cell under one setting of the runs, before its report's correction: see `Judged`."""

    word: str
    reason: str = ""
    chance: float = math.nan  # the least of the numbers' chances times how many were tested; nan where none was
    numbers: str = ""
    seeds: int = 0
    wide: bool = False  # a match that would say nothing

    @property
    def good(self) -> bool:
        return self.word in (EXACT, MATCH)

    def released(self) -> Outcome:
        """The same where the report's correction takes the difference back."""
        if self.wide:
            return replace(self, word=NOT_COMPARABLE, reason=TOO_WIDE)
        return replace(self, word=MATCH)


@dataclass(frozen=True)
class Judged:
    """A cell's verdict. outcome: its class, under the published setting; survival: in runs that keep their ε, one of
    `SURVIVES`, `EXPLAINED`, `LOST`, `UNTRIED`; by: the switches that explain it, in words; private: whether the
    settings under which it got its class keep their ε; fits: what fitted runs come to; copy_of: the cell whose runs
    these are."""

    cell: Cell
    outcome: Outcome
    survival: str
    by: tuple[str, ...] = ()
    how: str = ""
    private: bool = True
    fits: str = ""
    copy_of: str = ""

    @property
    def counts(self) -> bool:
        """Whether the cell is in a share: comparable, not trivial, not a copy."""
        return self.outcome.word in (EXACT, MATCH, DIFFERS) and not self.cell.trivial and not self.copy_of

    def record(self, kind: str = "cell") -> dict[str, Any]:
        """The verdict as one row of plain values."""
        place, outcome = self.cell.place, self.outcome
        return {
            "kind": kind, "table": place.table, "row": place.row, "column": place.column, "value": self.cell.name,
            "artefact": self.cell.artefact, "verdict": outcome.word, "reason": outcome.reason,
            "trivial": self.cell.trivial, "private": self.private, "survives": self.survival,
            "by": " + ".join(self.by), "how": self.how, "copy_of": self.copy_of, "run_time": self.cell.run_time,
            "counts": self.counts, "chance": outcome.chance, "seeds": outcome.seeds, "numbers": outcome.numbers,
            "fits": self.fits,
        }  # fmt: skip


def judge(cells: Iterable[Cell], switches: Iterable[Switch] = ()) -> list[Judged]:
    """A verdict per cell, in their order.

    ValueError where a cell names a switch that is not registered: a fit is none, nor is a bundle.
    """
    cells, known = list(cells), {one.name: one for one in switches}
    for cell in cells:
        if wrong := {*cell.switches, *itertools.chain(*cell.runs), *itertools.chain(*cell.stream)} - known.keys():
            raise ValueError(f"{cell.name}: {sorted(wrong)[0]!r} is no registered switch")
    names = {cell.name for cell in cells}
    own = [cell for cell in cells if cell.shares not in names]
    found = _corrected(own, [outcome_of(cell, cell.published) for cell in own])
    honest = _corrected(own, [outcome_of(cell, HONEST) for cell in own])
    done = {cell.name: _judged(cell, mine, kept, known) for cell, mine, kept in zip(own, found, honest, strict=True)}
    for cell in cells:
        if cell.name not in done:
            done[cell.name] = _copied(cell, done[cell.shares], known)
    return [done[cell.name] for cell in cells]


def outcome_of(cell: Cell, on: Switches) -> Outcome:
    """The class of a cell under one setting of the runs, the classes tried in their order."""
    runs, stream = cell.runs.get(on), cell.stream.get(on)
    if cell.run_time:
        return Outcome(NOT_COMPARABLE, OTHER_COSTS, numbers=_told(cell, runs))
    if not _has_values(cell, runs) and stream is None:
        return Outcome(NO_DATA, numbers=_told(cell, runs), seeds=_seeds(cell, runs))
    if cell.not_comparable:
        return Outcome(NOT_COMPARABLE, cell.not_comparable, numbers=_told(cell, runs), seeds=_seeds(cell, runs))
    fixed = all(number.law == FIXED for number in cell.numbers)
    exact = stream if stream is not None else runs if fixed else None
    told = ""
    if exact is not None:
        agreed = {_agrees(number, exact) for number in cell.numbers}
        if agreed == {printed.EQUAL}:
            shown = "; ".join(_printed(number) for number in cell.numbers)
            return Outcome(EXACT, numbers=f"every printed number: {shown}", seeds=_seeds(cell, exact))
        missed = "; ".join(_missed(number, exact) for number in cell.numbers if _agrees(number, exact) != printed.EQUAL)
        told = f"published stream: {missed}" if stream is not None else missed
        if fixed:
            return Outcome(DIFFERS, chance=0.0, numbers=told, seeds=_seeds(cell, exact))
    if not _has_values(cell, runs):  # the stream alone, and it misses
        return Outcome(DIFFERS, chance=0.0, numbers=told, seeds=_seeds(cell, exact))
    return _tested(cell, runs or {}, told)


def placebo(cells: Iterable[Cell], switches: Iterable[Switch] = ()) -> list[Judged]:
    """The same cells with wrong numbers on purpose: those of the next cell and of the one before along each series.

    Wrong numbers that the paper prints in both cells are right and left out; so are trivial cells and copies.
    """
    cells = list(cells)
    rows: dict[str, list[Cell]] = {}
    for cell in cells:
        if not (cell.trivial or cell.shares or cell.run_time or cell.not_comparable):
            for name in cell.series:
                rows.setdefault(name, []).append(cell)
    wrong = []
    for row in rows.values():
        for a, b in itertools.chain(itertools.pairwise(row), itertools.pairwise(row[::-1])):
            theirs = {(n.quantity, n.law): n for n in b.numbers}
            swapped = tuple(theirs.get((n.quantity, n.law), n) for n in a.numbers)
            if [n.text for n in swapped] != [n.text for n in a.numbers]:
                place = a.place._replace(column=f"{a.place.column} with the numbers of {b.place.row}, {b.place.column}")
                wrong.append(replace(a, numbers=swapped, place=place))
    named = {cell.name: cell for cell in wrong}
    return judge(named.values(), switches)


def _judged(cell: Cell, outcome: Outcome, honest: Outcome, known: Mapping[str, Switch]) -> Judged:
    private = all(known[name].keeps_epsilon for name in cell.switches)
    fits = "; ".join(f"{name}: {_fit(cell, runs)}" for name, runs in cell.fits.items())
    if outcome.word in (NO_DATA, NOT_COMPARABLE):
        return Judged(cell, outcome, UNTRIED, private=private, fits=fits)
    if honest.good:
        return Judged(cell, outcome, SURVIVES, private=private, fits=fits)
    # Where the published setting itself differs, one of many smaller sets that matches does so by chance.
    by, how = _smallest(cell, known) if outcome.good else (None, "")
    if by is not None:
        how = "; ".join(filter(None, ["the honest run is missing" if honest.word == NO_DATA else "", how]))
        return Judged(cell, outcome, EXPLAINED, by, how, private, fits)
    word = UNTRIED if honest.word == NO_DATA else LOST
    return Judged(
        cell, outcome, word, how=honest.word if word == LOST else "no honest runs", private=private, fits=fits
    )


def _smallest(cell: Cell, known: Mapping[str, Switch]) -> tuple[tuple[str, ...] | None, str]:
    """The smallest set of switches with which the cell is exact or match; and what was not searched."""
    order = list(known)
    tried = sorted(
        ({*cell.runs, *cell.stream} - {HONEST}), key=lambda on: (len(on), sorted(order.index(name) for name in on))
    )
    for on in tried:
        outcome = outcome_of(cell, on)
        if outcome.good:
            smaller = sum(math.comb(len(on), size) for size in range(1, len(on)))
            there = sum(1 for other in tried if other < on)
            untried = smaller - there
            how = (
                f"{outcome.word}, not attributed" if on == cell.published and untried else "reduced" if untried else ""
            )
            how += f"; {untried:,} of its {smaller:,} smaller sets not searched" if untried else ""
            return tuple(sorted(on, key=order.index)), how
    return None, ""


def _copied(cell: Cell, of: Judged, known: Mapping[str, Switch]) -> Judged:
    """A cell whose runs are another's: exact on its own where it is, else as the other."""
    own = outcome_of(cell, cell.published)
    if own.word == EXACT and of.outcome.word == EXACT:
        return _judged(cell, own, outcome_of(cell, HONEST), known)
    return replace(of, cell=cell, copy_of=of.cell.name)


def _corrected(cells: Sequence[Cell], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of a report, with the differences taken back that Benjamini and Hochberg do not let stand."""
    tested = [
        i
        for i, one in enumerate(outcomes)
        if one.word not in (EXACT, NO_DATA) and not math.isnan(one.chance) and not cells[i].trivial
    ]
    stands = dict(zip(tested, laws.benjamini_hochberg([outcomes[i].chance for i in tested], LEVEL), strict=True))
    return [
        one.released() if one.word == DIFFERS and not stands.get(i, True) else one for i, one in enumerate(outcomes)
    ]


def _tested(cell: Cell, runs: Runs, told: str) -> Outcome:
    """Match, differs or too wide, by the chance of every number."""
    chances, wide, words = [], False, [told] if told else []
    for number in cell.numbers:
        values = np.asarray(runs[number.quantity], dtype=float)
        chance, too_wide, word = _chance(number, values, cell.tuned.get(number.quantity), _beside(cell, number))
        wide |= too_wide
        words.append(word)
        if not math.isnan(chance):
            chances.append(chance)
    numbers, seeds = "; ".join(words), _seeds(cell, runs)
    if not chances:
        return Outcome(NOT_COMPARABLE, TOO_WIDE, numbers=numbers, seeds=seeds, wide=True)
    least = min(1.0, min(chances) * len(chances))
    found = Outcome(DIFFERS, chance=least, numbers=numbers, seeds=seeds, wide=wide)
    return found if least < LEVEL else found.released()


def _beside(cell: Cell, number: Number) -> tuple[Number, Number] | None:
    """The printed mean and deviation of the counts that `number` is of; None where not both are printed."""
    both = {one.law: one for one in cell.numbers if one.quantity == number.quantity and one.count}
    return (both[MEAN], both[STD]) if both.keys() >= {MEAN, STD} else None


def _chance(
    number: Number, values: np.ndarray, tuned: Sequence[float] | None, counts: tuple[Number, Number] | None = None
) -> tuple[float, bool, str]:
    """(chance, whether a match would say nothing, in words); the chance is nan where a number cannot be tested.

    counts: the mean and the deviation that are printed of the same counts.
    """
    k, name = number.k, number.quantity
    if number.law == ALL:
        chance = laws.all_chance(values, number.text == "yes", k)
        return (
            chance,
            False,
            f"{name}: ours {int(values.sum())} of {len(values)}, published {number.text}, {_p(chance)}",
        )
    if number.law == COUNT:
        chance = laws.count_chance(values, int(number.value), k)
        said = f"{name}: ours {int(values.sum())} of {len(values)}, published {number.text} of {k}, {_p(chance)}"
        return chance, False, said
    if number.law == FIXED:
        agreed = _agrees(number, {name: values.tolist()}) == printed.EQUAL
        return float(agreed), False, f"{name}: ours {values[0]:.6g}, published {number.text}"
    finite = values[np.isfinite(values)]
    share = (len(finite) / len(values)) ** k  # of k runs, none diverges
    if len(finite) < laws.FEWEST:
        return 0.0, False, f"{name}: {len(values) - len(finite)} of {len(values)} of ours diverged"
    center, spread = float(finite.mean()), float(finite.std(ddof=1))
    ours = f"{name}: ours {center:.4g} (sd {spread:.2g}, N = {len(values)})"
    if number.law == ROUNDED:
        chance = share * laws.rounded_chance(finite, int(number.value), k)
        return chance, False, f"{ours}, published {number.text}, {_p(chance)}"
    if counts and number in counts and not spread and share == 1:  # one law for both: they say the same
        mean, std = counts
        chance = laws.odd_ones_chance(finite, (mean.value, mean.slack), (std.value, std.slack), k)
        sd = " sd" if number.law == STD else ""
        said = f"{name}: ours {center:.4g} in all of {len(values)}, published{sd} {number.text} (k = {k}), {_p(chance)}"
        return chance, False, said
    if number.law == STD:
        chance = share * float(laws.std_chance(finite, number.value, k, slack=number.slack, count=number.count))
        return chance, False, f"{name}: ours sd {spread:.3g}, published {number.text}, {_p(chance)}"
    width = float(laws.half_width(finite, k))
    wide = width > (WIDEST_COUNT if number.count else WIDEST * min(abs(number.value), abs(center)))
    theirs = f"published {number.text} (k = {k})"
    plain = share * float(laws.mean_chance(finite, number.value, k, slack=number.slack))
    if number.lowest and number.value + number.slack < center:
        if tuned is None:
            side = "on the better side of ours, where the least of a grid lies"
            return math.nan, True, f"{ours}, {theirs}, {_p(plain)}, but {side}"
        finite = np.asarray(tuned, dtype=float)
        chance = share * float(laws.mean_chance(finite, number.value, 1, slack=number.slack))
        return chance, wide, f"{ours}, {theirs}, {_p(chance)} by the law of our tuned minimum ({finite.mean():.4g})"
    return plain, wide, f"{ours}, {theirs}, {_p(plain)}, half-width {width:.2g}{' (too wide)' if wide else ''}"


def _p(chance: float) -> str:
    return "chance < .001" if chance < 0.001 else f"chance {chance:.2g}"


def _agrees(number: Number, runs: Runs) -> str:
    """Whether k runs of the published stream give the printed number: see `printed.agreement`."""
    values = np.asarray(runs[number.quantity], dtype=float)
    if number.law == FIXED:
        return printed.agreement(float(values[0]), number.text) if np.ptp(values) == 0 else printed.OTHER
    if len(values) != number.k or not np.isfinite(values).all():
        return printed.OTHER
    if number.law == ALL:
        return printed.EQUAL if bool(values.all()) is (number.text == "yes") else printed.OTHER
    return printed.agreement(_statistic(number, values), number.text)


def _statistic(number: Number, values: np.ndarray) -> float:
    """What the paper prints of these runs."""
    if number.law == STD:
        return float(values.std(ddof=1))
    return float(values.sum() if number.law == COUNT else values.mean())


def _missed(number: Number, runs: Runs) -> str:
    """What k runs of the published stream give instead of the printed number; a tie is named."""
    values = np.asarray(runs[number.quantity], dtype=float)
    if number.law == ALL:
        return f"{number.quantity}: {int(values.sum())} of {len(values)}, published {number.text}"
    if number.law != FIXED and len(values) != number.k:
        return f"{number.quantity}: {len(values)} runs, published of {number.k}"
    value = _statistic(number, values)
    if _agrees(number, runs) == printed.TIE:
        rules = ", ".join(f"{rule} gives {text}" for rule, text in printed.roundings(value, number.text).items())
        return f"{number.quantity}: a rounding tie ({value:.6g}: {rules}), published {number.text}"
    return f"{number.quantity}: {value:.6g}, published {number.text}"


def _printed(number: Number) -> str:
    of = {MEAN: "", FIXED: "", ROUNDED: "", STD: " sd", COUNT: "", ALL: ""}[number.law]
    return f"{number.quantity}{of} {number.text}"


def _has_values(cell: Cell, runs: Runs | None) -> bool:
    """Whether there are runs enough: a number without randomness needs one, any other `laws.FEWEST`."""
    return runs is not None and all(
        len(runs.get(number.quantity, ())) >= (1 if number.law == FIXED else laws.FEWEST) for number in cell.numbers
    )


def _seeds(cell: Cell, runs: Runs | None) -> int:
    return min((len(runs.get(number.quantity, ())) for number in cell.numbers), default=0) if runs else 0


def _told(cell: Cell, runs: Runs | None) -> str:
    """The numbers of a cell that is not judged, with the chances where there are runs."""
    if _has_values(cell, runs) and not cell.run_time and runs is not None:
        return _tested(cell, runs, "").numbers
    seeds = _seeds(cell, runs)
    values = [
        f"ours {np.mean(np.asarray(runs[number.quantity], dtype=float)):.4g}, published {number.text}"
        if runs and len(runs.get(number.quantity, ()))
        else f"published {number.text}"
        for number in cell.numbers
    ]
    few = f" ({seeds} of the {laws.FEWEST} runs that a verdict takes)" if not cell.run_time else ""
    return "; ".join(values) + few


def _fit(cell: Cell, runs: Runs) -> str:
    """What runs with a fitted number come to: a chance, no verdict."""
    return _tested(cell, runs, "").numbers if _has_values(cell, runs) else "no rows"
