"""The headline of a report on published values: one sentence and one line per count, for every page and the README."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpbench.errors import counted
from dpbench.study import laws
from dpbench.study.value_verdict import (
    BLIND,
    CANNOT_TELL,
    DECIDING,
    DIFFERS,
    EXACT,
    LEFT_OUT,
    MATCH,
    NOT_RUN,
    POOLED,
    SURVIVES,
    UNPLANTED,
)

COPY = "copy of another value"
FREQUENT = 3  # sets of switches that are named


@dataclass(frozen=True)
class Headline:
    """Counts of published values.

    total: all of them; words: by verdict, those that are judged; left: by reason, those left out, so that both add up
    to `total`. blind_exact: those blind to noise that have every digit. survival: of the exact and matching ones;
    sets: switches that explain a value that is lost, the most frequent first. differs: (value, chance). tested: how
    many values had a test. resolution: the median gap that a match would have shown. placebo: by recipe, (how many
    values that pass all else would pass it too, of how many). pooled: by setting of the runs.
    """

    total: int
    words: Mapping[str, int]
    left: Mapping[str, int]
    blind_exact: int
    survival: Mapping[str, int]
    sets: tuple[tuple[str, int], ...]
    differs: tuple[tuple[str, float], ...]
    tested: int
    resolution: float
    placebo: Mapping[str, tuple[int, int]]
    pooled: Mapping[str, laws.Pooled]

    @property
    def reproduced(self) -> int:
        """The exact and the matching ones."""
        return self.words[EXACT] + self.words[MATCH]

    def sentence(self) -> str:
        """What came out, in words that need no glossary: for captions."""
        if not sum(self.words.values()):
            why = "see why below" if self.total else "run times and memory depend on the machine"
            return f"None of the published values can be compared: {why}."
        n = self.words
        return (
            f"Of {counted(self.total, 'published value')}, {self.reproduced} {'is' if self.reproduced == 1 else 'are'} "
            f"reproduced, and would not be with half or twice the noise: {n[EXACT]} to the last digit, "
            f"{n[MATCH]} within statistical error. {n[DIFFERS]} differ{_s(n[DIFFERS])}."
        )

    def paragraph(self) -> str:
        """The sentence, what became of the other values, and how many survive: for README and pages."""
        n, left, lives = self.words, sum(self.left.values()), self.survival[SURVIVES]
        parts = [self.sentence()]
        if n[BLIND]:
            parts.append(f"{n[BLIND]} agree{_s(n[BLIND])}, but would also with half or twice the noise.")
        if n[UNPLANTED]:
            parts.append(f"{n[UNPLANTED]} agree{_s(n[UNPLANTED])}, but {'is' if n[UNPLANTED] == 1 else 'are'} not yet "
                         "tested with wrong noise.")  # fmt: skip
        if left and sum(n.values()):
            parts.append(f"{left} {'is' if left == 1 else 'are'} left out.")
        if self.reproduced:
            parts.append(f"At a proven ε, {lives} of the {self.reproduced} still come{_s(lives)} out{self._untold()}.")
        return " ".join(parts)

    def _untold(self) -> str:
        rest = [
            f"{self.survival[word]} {text}"
            for word, text in ((CANNOT_TELL, "cannot be tested"), (NOT_RUN, "not run"))
            if self.survival[word]
        ]
        return f" ({', '.join(rest)})" if rest else ""

    def lines(self) -> list[str]:
        """What the sentence leaves out: a line per subject, each share with its denominator."""
        left = ", ".join(f"{reason}: {n}" for reason, n in self.left.items())
        named = ", ".join(f"{name} ({n})" for name, n in self.sets)
        listed = "; ".join(f"{name} ({'p < .001' if p < 0.001 else f'p = {p:.2g}'})" for name, p in self.differs)
        lines = [
            f"left out: {sum(self.left.values())} of {self.total}" + (f" ({left})" if left else ""),
            f"blind to noise: {self.words[BLIND]}, {self.blind_exact} of them to the last digit",
            f"differs: {len(self.differs)}" + (f" ({listed})" if listed else "")
            + (f"; chance alone would give {laws.LEVEL * self.tested:.1f} of {self.tested} tests a p below "
               f"{laws.LEVEL:g}, which the verdicts correct for" if self.tested else ""),
        ]  # fmt: skip
        if named:
            lines.append(f"most values that are lost at a proven ε come back with {named}")
        if not math.isnan(self.resolution):
            lines.append(f"resolution: half of the matches would have shown a gap of {100 * self.resolution:.0f} %")
        if self.placebo:
            told = ", ".join(f"{name} {some} of {of}" for name, (some, of) in self.placebo.items())
            lines.append(f"wrong runs that would pass, made on purpose: {told}")
        lines += [f"pooled ratio of ours to published, {name}: {one}" for name, one in self.pooled.items()]
        return lines


def _s(count: int) -> str:
    return "s" if count == 1 else ""


def headline(records: Iterable[Mapping[str, Any]]) -> Headline:
    """The counts of `Judged.record`s; run times are a quantity of their own and in none of them."""
    compared = [one for one in records if not one["run_time"]]
    judged = [one for one in compared if one["counts"]]
    good = [one for one in judged if one["verdict"] in (EXACT, MATCH)]
    left = Counter(
        COPY if one["copy_of"] and one["verdict"] not in LEFT_OUT else one["reason"] or one["verdict"]
        for one in compared if not one["counts"]
    )  # fmt: skip
    sizes = [one["resolution"] for one in judged if one["verdict"] == MATCH and not math.isnan(one["resolution"])]
    return Headline(
        total=len(compared),
        words=Counter(one["verdict"] for one in judged),
        left=left,
        blind_exact=sum(one["verdict"] == BLIND and one["exact"] for one in judged),
        survival=Counter(one["survives"] for one in good),
        sets=tuple(Counter(one["by"] for one in good if one["by"]).most_common(FREQUENT)),
        differs=tuple((one["value"], one["chance"]) for one in judged if one["verdict"] == DIFFERS),
        tested=sum(not one["exact"] and one["chance"] == one["chance"] for one in judged),
        resolution=statistics.median(sizes) if sizes else math.nan,
        placebo=_placebo(judged),
        pooled={name: ratio for name in POOLED if (ratio := _pooled(judged, name))},
    )


def _placebo(judged: list[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """By recipe: of the values that agree and notice what else decides, how many its runs would pass."""
    passed: dict[str, list[bool]] = {}
    for one in judged:
        if one["verdict"] == DIFFERS:
            continue
        notices, misses = (set(filter(None, one[name].split("; "))) for name in ("notices", "misses"))
        for recipe in notices | misses:
            # Of a value that is blind to something else, passing this recipe too would tell nothing new.
            if set(DECIDING) - {recipe} <= notices:
                passed.setdefault(recipe, []).append(recipe in misses)
    order = sorted(passed, key=lambda name: (name not in DECIDING, name))
    return {name: (sum(passed[name]), len(passed[name])) for name in order}


def _pooled(judged: list[Mapping[str, Any]], name: str) -> laws.Pooled | None:
    """Over the values that would have noticed wrong noise, or differ: those that do not would only narrow it."""
    curves: dict[str, list[float]] = {}
    for one in judged:
        ratio = one[f"ratio, {name}"]
        if one["verdict"] in (EXACT, MATCH, DIFFERS) and ratio == ratio:
            curves.setdefault(one["curve"], []).append(ratio)
    return laws.pooled(curves)
