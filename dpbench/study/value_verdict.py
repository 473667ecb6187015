"""What became of a published value: its class, how much that class says, and whether runs at a proven ε give it.

A `PublishedValue` is one row and column of a table with all that is printed in it from the same runs. It has one
verdict, from one setting of the runs. An experiment yields its values as data: what is printed, our runs by the set of
`Switch`es that are on, and runs that are wrong on purpose. `judge` does the rest: a value is reproduced only if half
and twice the noise, judged as the right runs are, would have failed. The statistics and every threshold are in
`study.laws`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpbench.study import laws, printed
from dpbench.study.printed import FIXED, MEAN, STD, Number

NO_DATA, NOT_COMPARABLE, TRIVIAL = "no data", "not comparable", "trivial"
EXACT, MATCH, DIFFERS = "exact", "match", "differs"
BLIND, UNPLANTED = "blind to noise", "noise not planted"
# As pages list them: what was reproduced first, what was left out last.
WORDS = (EXACT, MATCH, DIFFERS, BLIND, UNPLANTED, TRIVIAL, NOT_COMPARABLE, NO_DATA)
LEFT_OUT = (TRIVIAL, NOT_COMPARABLE, NO_DATA)
OTHER_COSTS, NOT_PUBLIC, NOTHING_VARIES = "other unit costs", "problem not public", "nothing printed that varies"
SURVIVES, LOST, CANNOT_TELL, NOT_RUN = "yes", "no", "cannot tell", "not run"  # at a proven ε
NOISE = {laws.HALF: "half the noise", laws.TWICE: "twice the noise", 0.0: "no noise"}  # recipes, by factor
# No noise is judged and shown beside these, and does not decide.
DECIDING = NOISE[laws.HALF], NOISE[laws.TWICE]
NEIGHBOUR = "another setting"  # of the paper's grid: the runs of the next value
OTHER_DATA, HALF_AS_LONG = "another data set", "rows half as long"  # with the right noise
HONEST: frozenset[str] = frozenset()

Runs: TypeAlias = Mapping[str, Sequence[float]]  # quantity → a value per seed
Switches: TypeAlias = frozenset[str]


class Place(NamedTuple):
    """Where the paper prints a value: "Table 1", its row and its column, in the paper's words."""

    table: str
    row: str = ""
    column: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


@dataclass(frozen=True)
class Switch:
    """One difference between the run at a proven ε and the published one.

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
class PublishedValue:
    """What a paper prints in one place, and our runs for it.

    place: where it is printed; artefact: ours that shows it and whose grid makes its runs; numbers: all that is printed
    in it from the same runs. runs: by the set of switches that are on, `HONEST` for none; switches: those that make the
    published setting of this value. stream: by set of switches, the k runs that the published random stream gives.
    planted: by recipe (the factor on the noise, or words), runs that are wrong on purpose; planted_stream: those by the
    published stream. fits: by name, runs with a fitted number: shown, never an explanation. tuned: by quantity, draws
    of the least mean of our grid over k seeds. not_comparable: `NOT_PUBLIC` or `NOTHING_VARIES`. run_time: seconds,
    never comparable. trivial: why it could not have come out otherwise, "" where it could. shares: the name of the
    value whose runs these are. series: names of the rows or columns along which its neighbours' runs are wrong ones.
    curve: what the values of one curve share, as their seeds; "" for its own.
    """

    place: Place
    artefact: str
    numbers: tuple[Number, ...]
    runs: Mapping[Switches, Runs] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    stream: Mapping[Switches, Runs] = field(default_factory=dict)
    planted: Mapping[float | str, Runs] = field(default_factory=dict)
    planted_stream: Mapping[float | str, Runs] = field(default_factory=dict)
    fits: Mapping[str, Runs] = field(default_factory=dict)
    tuned: Mapping[str, Sequence[float]] = field(default_factory=dict)
    not_comparable: str = ""
    run_time: bool = False
    trivial: str = ""
    shares: str = ""
    series: tuple[str, ...] = ()
    curve: str = ""

    def __post_init__(self) -> None:
        if not self.numbers:
            raise ValueError(f"{self.place}: a published value has at least one printed number")
        if self.not_comparable not in ("", NOT_PUBLIC, NOTHING_VARIES):
            raise ValueError(f"{self.place}: not comparable for {self.not_comparable!r}, which is none of the reasons "
                             f"to declare: {NOT_PUBLIC}, {NOTHING_VARIES}")  # fmt: skip

    @property
    def name(self) -> str:
        return str(self.place)

    @property
    def published(self) -> Switches:
        return frozenset(self.switches)

    def wrong(self) -> Iterator[tuple[str, Runs | None, Runs | None]]:
        """(recipe, runs, runs by the published stream) of each recipe that is planted."""
        for recipe in dict.fromkeys([*self.planted, *self.planted_stream]):
            name = recipe if isinstance(recipe, str) else NOISE.get(recipe, f"{recipe:g} times the noise")
            yield name, self.planted.get(recipe), self.planted_stream.get(recipe)

    def ratio(self, runs: Runs | None) -> float:
        """Our mean over the published one, of the first mean that is printed; nan where there is none of both."""
        for number in self.numbers:
            values = np.asarray((runs or {}).get(number.quantity, ()), dtype=float)
            if number.law == MEAN and len(values) and number.value > 0:
                return float(values.mean() / number.value) if values.mean() > 0 else math.nan
        return math.nan


@dataclass(frozen=True)
class Outcome:
    """A value under one setting of the runs, before its report's correction and its power: see `Judged`.

    word: `NO_DATA`, `NOT_COMPARABLE`, `TRIVIAL`, `EXACT`, `DIFFERS`, or `MATCH` for one that is not rejected. chance:
    the least of the numbers' chances times how many were tested; nan where none was.
    """

    word: str
    reason: str = ""
    chance: float = math.nan
    numbers: str = ""
    seeds: int = 0

    @property
    def good(self) -> bool:
        return self.word in (EXACT, MATCH)


@dataclass(frozen=True)
class Judged:
    """A value's verdict. outcome: under the published setting; notices: by recipe that is planted, whether its runs get
    another verdict than the right ones; survival: at a proven ε, one of `SURVIVES`, `LOST`, `CANNOT_TELL`,
    `NOT_RUN`, "" where there is nothing to survive; by: the switches that explain a value that is lost, in words;
    private: whether the settings under which it got its class keep their ε; fits: what fitted runs come to; copy_of:
    the value whose runs these are; resolution: the gap that is seen with probability .9, relative to the value."""

    value: PublishedValue
    outcome: Outcome
    notices: Mapping[str, bool] = field(default_factory=dict)
    survival: str = ""
    by: tuple[str, ...] = ()
    how: str = ""
    private: bool = True
    fits: str = ""
    copy_of: str = ""
    resolution: float = math.nan

    @property
    def word(self) -> str:
        """One of `WORDS`: exact and match need runs with half and with twice the noise, and to notice both."""
        if not self.outcome.good:
            return self.outcome.word
        known = [self.notices.get(recipe) for recipe in DECIDING]
        # Passing with the wrong noise, the value says nothing of the noise: that comes before "not planted".
        if False in known:
            return BLIND
        return UNPLANTED if None in known else self.outcome.word

    @property
    def counts(self) -> bool:
        """Whether the value is in a share: judged, and not a copy."""
        return self.word not in LEFT_OUT and not self.copy_of

    def record(self) -> dict[str, Any]:
        """The verdict as one row of plain values."""
        place, value, outcome = self.value.place, self.value, self.outcome
        return {
            "table": place.table, "row": place.row, "column": place.column, "value": value.name,
            "artefact": value.artefact, "verdict": self.word, "exact": outcome.word == EXACT,
            "reason": outcome.reason, "private": self.private, "survives": self.survival,
            "by": " + ".join(self.by), "how": self.how, "copy_of": self.copy_of, "run_time": value.run_time,
            "counts": self.counts, "chance": outcome.chance, "seeds": outcome.seeds, "numbers": outcome.numbers,
            "fits": self.fits, "resolution": self.resolution,
            "notices": "; ".join(name for name, noticed in self.notices.items() if noticed),
            "misses": "; ".join(name for name, noticed in self.notices.items() if not noticed),
            "curve": value.curve or value.name,
            **{f"ratio, {name}": ratio for name, ratio in self._ratios().items()},
        }  # fmt: skip

    def _ratios(self) -> dict[str, float]:
        """Our mean over the published one, by what the runs are."""
        planted = {name: runs for name, runs, _ in self.value.wrong()}
        runs = {PUBLISHED: self.value.runs.get(self.value.published), KEPT: self.value.runs.get(HONEST)}
        return {name: self.value.ratio(one) for name, one in (runs | {at: planted.get(at) for at in DECIDING}).items()}


PUBLISHED, KEPT = "published noise", "noise at a proven ε"
POOLED = (PUBLISHED, KEPT, *DECIDING)  # the settings whose ratios are pooled


def judge(values: Iterable[PublishedValue], switches: Iterable[Switch] = ()) -> list[Judged]:
    """A verdict per value, in their order.

    ValueError where a value names a switch that is not registered: a fit is none, nor is a bundle.
    """
    values, known = list(values), {one.name: one for one in switches}
    for value in values:
        if wrong := {*value.switches, *itertools.chain(*value.runs), *itertools.chain(*value.stream)} - known.keys():
            raise ValueError(f"{value.name}: {sorted(wrong)[0]!r} is no registered switch")
    copies = _copies(values)
    own = [value for value in values if value.name not in copies]
    outcomes, bars = corrected([outcome_of(value, value.published) for value in own])
    honest, _ = corrected([outcome_of(value, HONEST) for value in own])
    # A copy is no neighbour: its runs are those of the value itself.
    beside = _neighbours(own)
    done = {}
    for i, value in enumerate(own):
        noticed = dict(_noticed(value, outcomes[i], lambda chance, i=i: bars(i, chance), beside.get(value.name, ())))
        done[value.name] = _judged(value, outcomes[i], honest[i], noticed, known)
    for value in values:
        if value.name in copies:
            done[value.name] = replace(done[copies[value.name]], value=value, copy_of=copies[value.name])
    return [done[value.name] for value in values]


def outcome_of(value: PublishedValue, on: Switches) -> Outcome:
    """The class of a value under one setting of the runs, before any correction."""
    return _outcome(value, value.runs.get(on), value.stream.get(on))


def _outcome(value: PublishedValue, runs: Runs | None, stream: Runs | None) -> Outcome:
    """The classes tried in their order."""
    if value.run_time:
        return Outcome(NOT_COMPARABLE, OTHER_COSTS, numbers=_numbers_without_verdict(value, runs))
    if not _has_values(value, runs) and stream is None:
        return Outcome(NO_DATA, numbers=_numbers_without_verdict(value, runs), seeds=_seeds(value, runs))
    for word, reason in ((NOT_COMPARABLE, value.not_comparable), (TRIVIAL, value.trivial)):
        if reason:
            return Outcome(word, reason, numbers=_numbers_without_verdict(value, runs), seeds=_seeds(value, runs))
    fixed = all(number.law == FIXED for number in value.numbers)
    # A published stream gives the very numbers; without randomness one run does too.
    exact = stream if stream is not None else runs if fixed else None
    told = ""
    if exact is not None:
        agreed = {printed.agrees(number, exact[number.quantity]) for number in value.numbers}
        if agreed == {printed.EQUAL}:
            shown = "; ".join(printed.named(number) for number in value.numbers)
            return Outcome(EXACT, numbers=f"every printed number: {shown}", seeds=_seeds(value, exact))
        wrong = [one for one in value.numbers if printed.agrees(one, exact[one.quantity]) != printed.EQUAL]
        missed = "; ".join(printed.missed(one, exact[one.quantity]) for one in wrong)
        told = f"published stream: {missed}" if stream is not None else missed
    if fixed or not _has_values(value, runs):  # the stream alone, and it misses
        return Outcome(DIFFERS, chance=0.0, numbers=told, seeds=_seeds(value, exact))
    return _tested(value, runs or {}, told)


def _copies(values: Sequence[PublishedValue]) -> dict[str, str]:
    """By value whose runs are another's: that other one, declared or found seed by seed in the runs.

    Runs of whole numbers alone, as of what ended, may be equal by chance and make no copy.
    """
    names = {value.name for value in values}
    seen: dict[tuple[tuple[str, tuple[float, ...]], ...], str] = {}
    copies: dict[str, str] = {}
    for value in values:
        first = value.name
        runs = value.stream.get(value.published) or value.runs.get(value.published) or {}
        draws = tuple((name, tuple(map(float, of))) for name, of in sorted(runs.items()))
        # Whole numbers may agree by chance; fractions to the last digit do not.
        if any(one % 1 for _, of in draws for one in of if math.isfinite(one)):
            first = seen.setdefault(draws, value.name)
        if value.shares in names and value.shares != value.name:
            first = value.shares
        if first != value.name:
            # Of a copy's copy, the first of all: so shares count each set of runs once.
            copies[value.name] = copies.get(first, first)
    return copies


def corrected(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], Any]:
    """The outcomes of a report, differences taken back that Benjamini and Hochberg do not let stand.

    And stands(i, chance): whether a difference of that chance would stand in the place of the i-th.
    """
    chances = np.array([math.nan if one.word == EXACT or one.word in LEFT_OUT else one.chance for one in outcomes])

    def stands(i: int, chance: float) -> bool:
        # In the place of the right runs' chance, so that a planted run meets the same correction.
        other = np.where(np.arange(len(chances)) == i, chance, chances)
        tested = ~np.isnan(other)
        return bool(laws.benjamini_hochberg(other[tested])[tested[:i].sum()])

    kept = [
        replace(one, word=MATCH) if one.word == DIFFERS and not stands(i, one.chance) else one
        for i, one in enumerate(outcomes)
    ]
    return kept, stands


def _neighbours(values: Sequence[PublishedValue]) -> dict[str, list[PublishedValue]]:
    """By value, those before and after it along each of its series: their runs are right ones of another setting."""
    rows: dict[str, list[PublishedValue]] = {}
    neighbours: dict[str, list[PublishedValue]] = {}
    for value in values:
        for name in value.series:
            rows.setdefault(name, []).append(value)
    for row in rows.values():
        for a, b in itertools.chain(itertools.pairwise(row), itertools.pairwise(row[::-1])):
            neighbours.setdefault(a.name, []).append(b)
    return neighbours


def _noticed(
    value: PublishedValue, right: Outcome, stands: Any, beside: Iterable[PublishedValue]
) -> Iterator[tuple[str, bool]]:
    """(recipe, whether its runs get another verdict than the right ones), each alone in the right report.

    Runs that are equal to the right ones, seed by seed, say nothing, unless they have half or twice the noise: if all
    crash with either, the value is blind to it. Of several neighbours all have to be noticed.
    """
    if not right.good:
        return
    own = (value.runs.get(value.published), value.stream.get(value.published))
    recipes = [*value.wrong()]
    recipes += [(NEIGHBOUR, one.runs.get(one.published), one.stream.get(one.published)) for one in beside]
    noticed_by: dict[str, bool] = {}
    for name, runs, stream in recipes:
        varies = not all(number.law == FIXED for number in value.numbers)
        if varies and name not in DECIDING and (stream, runs)[stream is None] == (own[1], own[0])[stream is None]:
            continue
        few = min(len(runs.get(number.quantity, ())) for number in value.numbers) if runs else 0
        if few == 1 and stream is None and varies:  # without noise and samples all seeds are one run
            runs = {quantity: [*values] * laws.FEWEST for quantity, values in (runs or {}).items()}
        other = _outcome(value, runs, stream)
        # Too few planted runs to be judged: that neither notices nor misses.
        if other.word in LEFT_OUT:
            continue
        by_digits = right.word == EXACT and (stream is not None or not varies)
        noticed = other.word != EXACT if by_digits else other.word == DIFFERS and stands(other.chance)
        noticed_by[name] = noticed_by.get(name, True) and bool(noticed)
    yield from noticed_by.items()


def _judged(
    value: PublishedValue, outcome: Outcome, honest: Outcome, noticed: Mapping[str, bool], known: Mapping[str, Switch]
) -> Judged:
    private = all(known[name].keeps_epsilon for name in value.switches)
    fits = "; ".join(f"{name}: {_fit(value, runs)}" for name, runs in value.fits.items())
    judged = Judged(value, outcome, noticed, private=private, fits=fits, resolution=_resolution(value))
    if judged.word not in (EXACT, MATCH):
        return judged
    if value.published == HONEST:
        return replace(judged, survival=SURVIVES)
    if honest.word == NO_DATA:
        few = f"{honest.seeds} of {laws.FEWEST} seeds"
        return replace(judged, survival=NOT_RUN, how=few if honest.seeds else "no runs at a proven ε")
    if not honest.good:
        by, how = _smallest(value, known)
        return replace(judged, survival=LOST, by=by or (), how=how)
    blind = [name for name in DECIDING if not _seen_by_means(value, name)] if outcome.word == EXACT else []
    word = CANNOT_TELL if blind and honest.word != EXACT else SURVIVES
    return replace(judged, survival=word, how=f"by means alone, {' and '.join(blind)} would pass" if blind else "")


def _seen_by_means(value: PublishedValue, recipe: str) -> bool:
    """Whether the test that runs at a proven ε get, without the published stream, notices a recipe."""
    for name, runs, stream in value.wrong():
        ours = runs or stream
        if name == recipe and ours and min(len(ours.get(one.quantity, ())) for one in value.numbers) > 1:
            return _tested(value, ours, "").word == DIFFERS
    return False


def _resolution(value: PublishedValue) -> float:
    """The least relative gap of a mean that is seen with probability .9, over the value's means."""
    runs, gaps = value.runs.get(value.published) or {}, []
    for number in value.numbers:
        values = np.asarray(runs.get(number.quantity, ()), dtype=float)
        if number.law == MEAN and len(values) > 1 and np.isfinite(values).all() and number.value:
            gaps.append(laws.resolution(values, number.k) / abs(number.value))
    return min(gaps, default=math.nan)


def _smallest(value: PublishedValue, known: Mapping[str, Switch]) -> tuple[tuple[str, ...] | None, str]:
    """The smallest set of switches with which the value is exact or match; and what was not searched."""
    order = list(known)
    tried = sorted(
        ({*value.runs, *value.stream} - {HONEST}), key=lambda on: (len(on), sorted(order.index(name) for name in on))
    )
    for on in tried:
        outcome = outcome_of(value, on)
        if outcome.good:
            smaller = sum(math.comb(len(on), size) for size in range(1, len(on)))
            # Proper subsets that were run; with the others missing, a smaller set may do as well.
            there = sum(1 for other in tried if other < on)
            untried = smaller - there
            how = (
                f"{outcome.word}, not attributed" if on == value.published and untried else "reduced" if untried else ""
            )
            how += f"; {untried:,} of its {smaller:,} smaller sets not searched" if untried else ""
            return tuple(sorted(on, key=order.index)), how
    return None, ""


def _tested(value: PublishedValue, runs: Runs, told: str) -> Outcome:
    """Not rejected, or differs, by the chance of every number; a number that cannot be tested rejects nothing."""
    chances, words = [], [told] if told else []
    for number in value.numbers:
        values = np.asarray(runs[number.quantity], dtype=float)
        chance, word = printed.chance(number, values, value.tuned.get(number.quantity), _beside(value, number))
        words.append(word)
        chances.append(1.0 if math.isnan(chance) else chance)
    # Bonferroni within a value: its numbers are of the same runs.
    least = min(1.0, min(chances) * len(chances))
    word = DIFFERS if least < laws.LEVEL else MATCH
    return Outcome(word, chance=least, numbers="; ".join(words), seeds=_seeds(value, runs))


def _beside(value: PublishedValue, number: Number) -> tuple[Number, Number] | None:
    """The printed mean and deviation of the counts that `number` is of; None where not both are printed."""
    both = {one.law: one for one in value.numbers if one.quantity == number.quantity and one.count}
    return (both[MEAN], both[STD]) if both.keys() >= {MEAN, STD} else None


def _has_values(value: PublishedValue, runs: Runs | None) -> bool:
    """Whether there are runs enough: a number without randomness needs one, any other `laws.FEWEST`."""
    return runs is not None and all(
        len(runs.get(number.quantity, ())) >= (1 if number.law == FIXED else laws.FEWEST) for number in value.numbers
    )


def _seeds(value: PublishedValue, runs: Runs | None) -> int:
    return min((len(runs.get(number.quantity, ())) for number in value.numbers), default=0) if runs else 0


def _numbers_without_verdict(value: PublishedValue, runs: Runs | None) -> str:
    """The numbers of a value that is not judged, with the chances where there are runs."""
    if _has_values(value, runs) and not value.run_time and runs is not None:
        return _tested(value, runs, "").numbers
    seeds = _seeds(value, runs)
    values = [
        f"ours {np.mean(np.asarray(runs[number.quantity], dtype=float)):.4g}, published {number.text}"
        if runs and len(runs.get(number.quantity, ()))
        else f"published {number.text}"
        for number in value.numbers
    ]
    few = f" ({seeds} of the {laws.FEWEST} runs that a verdict takes)" if not value.run_time else ""
    return "; ".join(values) + few


def _fit(value: PublishedValue, runs: Runs) -> str:
    """What runs with a fitted number come to: a chance, no verdict."""
    return _tested(value, runs, "").numbers if _has_values(value, runs) else "no rows"
