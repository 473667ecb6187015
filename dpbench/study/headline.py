"""The headline numbers of a report on published values: six, in one order, each share with its denominator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpbench.errors import counted
from dpbench.study.verdicts import (
    DIFFERS,
    EXACT,
    EXPLAINED,
    LEVEL,
    MATCH,
    NO_DATA,
    NOT_COMPARABLE,
    REASONS,
    SURVIVES,
    TOO_WIDE,
)

CELL, PLACEBO = "cell", "placebo"  # kinds of records
LARGE = 4  # sets of switches of this size and more are counted together
FREQUENT = 3  # sets that are named


@dataclass(frozen=True)
class Headline:
    """Counts of published values. copies: those of the same runs as another value and not trivial, so that all counts
    add up to `cells`. comparable: the denominator, cells that are exact, match or differ and are neither trivial nor
    copies; explained: by size of the set; sets: the most frequent ones; placebo: (good, judged)."""

    cells: int
    trivial: int
    copies: int
    not_comparable: Mapping[str, int]
    no_data: int
    comparable: int
    exact: int
    match: int
    survives: int
    explained: Mapping[int, int]
    sets: tuple[tuple[str, int], ...]
    differs: tuple[tuple[str, float], ...]
    tested: int
    placebo: tuple[int, int]

    def lines(self) -> list[str]:
        """The six lines, in their order."""
        return [
            self.cells_line(), self.reproduced_line(), self.survives_line(), self.explained_line(),
            self.differs_line(), self.placebo_line(),
        ]  # fmt: skip

    def cells_line(self) -> str:
        left = [f"{self.trivial:,} trivial (could not have come out otherwise)"] if self.trivial else []
        left += [f"{self.copies:,} of the same runs as another value"] if self.copies else []
        if self.not_comparable:
            words = {TOO_WIDE: "spread too wide to judge"}
            why = ", ".join(f"{words.get(reason, reason)}: {n:,}" for reason, n in self.not_comparable.items())
            left.append(f"{sum(self.not_comparable.values()):,} not comparable ({why})")
        left += [f"{self.no_data:,} without data"] if self.no_data else []
        return f"published values: {self.cells:,}" + (f"; left out of the shares: {', '.join(left)}" if left else "")

    def reproduced_line(self) -> str:
        exact, match = (f"{some:,} of {self.comparable:,}" for some in (self.exact, self.match))
        return f"reproduced: exact (every digit) {exact}, match (within statistical error) {match}"

    def survives_line(self) -> str:
        return f"also from runs that keep their ε: {self.survives:,} of {self.comparable:,}"

    def explained_line(self) -> str:
        sizes = Counter({min(size, LARGE): 0 for size in self.explained})
        for size, n in self.explained.items():
            sizes[min(size, LARGE)] += n
        words = [
            f"{n:,} by {f'{LARGE} or more' if size == LARGE else size}"
            + (f" switch{'es' if size > 1 else ''} of the authors' code" if i == 0 else "")
            for i, (size, n) in enumerate(sorted(sizes.items()))
        ]
        named = ", ".join(f"{name} ({n:,})" for name, n in self.sets)
        total = f"{sum(sizes.values()):,} of {self.comparable:,}"
        return f"explained: {total}" + (f" ({', '.join(words)}); most often {named}" if words else "")

    def differs_line(self) -> str:
        listed = "; ".join(
            f"{name} ({'p < .001' if chance < 0.001 else f'p = {chance:.2g}'})" for name, chance in self.differs
        )
        by_chance = (
            f"chance alone would give {LEVEL * self.tested:.1f} of {self.tested:,} tests a p below .05, which the "
            "verdicts correct for"
        )
        return f"differs: {len(self.differs):,} of {self.comparable:,}" + (
            f" ({listed})" if listed else ""
        ) + (f"; {by_chance}" if self.tested else "")  # fmt: skip

    def placebo_line(self) -> str:
        good, judged = self.placebo
        if not judged:
            return "placebo: no value has a neighbour to be judged against"
        return f"placebo: {good:,} of {judged:,} deliberately wrong values come out exact, match or explained"

    def sentence(self) -> str:
        """The first three numbers in one sentence."""
        if not self.comparable:
            why = "see why below" if self.cells else "run times and memory depend on the machine"
            return f"None of the published values can be compared: {why}."
        exact, match, differs = self.exact, self.match, len(self.differs)
        return (
            f"Of {counted(self.cells, 'published value')}, {self.comparable:,} can be judged: {exact:,} "
            f"{'is' if exact == 1 else 'are'} exact, {match:,} match{'es' if match == 1 else ''}, {differs:,} "
            f"differ{'s' if differs == 1 else ''}. {self.survives:,} also come{'s' if self.survives == 1 else ''} out "
            f"of "
            "runs that keep their ε."
        )


def headline(records: Iterable[Mapping[str, Any]]) -> Headline:
    """The counts of `Judged.record`s of both kinds; run times are a quantity of their own and in none of them."""
    records = [one for one in records if not one["run_time"]]
    cells = [one for one in records if one["kind"] == CELL]
    counted = [one for one in cells if one["counts"]]
    words = Counter(one["verdict"] for one in counted)
    explained = [one["by"] for one in counted if one["survives"] == EXPLAINED]
    reasons = Counter(one["reason"] for one in cells if one["verdict"] == NOT_COMPARABLE)
    wrong = [one for one in records if one["kind"] == PLACEBO and one["counts"]]
    left_out = [one for one in cells if not one["counts"] and one["verdict"] not in (NO_DATA, NOT_COMPARABLE)]
    return Headline(
        cells=len(cells),
        trivial=sum(bool(one["trivial"]) for one in left_out),
        copies=sum(not one["trivial"] for one in left_out),
        not_comparable={reason: reasons[reason] for reason in REASONS if reasons[reason]},
        no_data=sum(one["verdict"] == NO_DATA for one in cells),
        comparable=len(counted),
        exact=words[EXACT],
        match=words[MATCH],
        survives=sum(one["survives"] == SURVIVES for one in counted),
        explained=Counter(len(one.split(" + ")) for one in explained),
        sets=tuple(Counter(explained).most_common(FREQUENT)),
        differs=tuple((one["value"], one["chance"]) for one in counted if one["verdict"] == DIFFERS),
        tested=sum(one["verdict"] != EXACT and one["chance"] == one["chance"] for one in counted),
        placebo=(
            sum(one["verdict"] in (EXACT, MATCH) or one["survives"] in (SURVIVES, EXPLAINED) for one in wrong),
            len(wrong),
        ),
    )
