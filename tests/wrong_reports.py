"""What the judge leaves of a report that is wrong as a whole: `python -m tests.wrong_reports [PAPER …]`.

The published values of each paper with the committed rows, and once more with each value's runs replaced by those of
one recipe that is wrong on purpose (half, twice or no noise, scaled data, another data set). Of the values that the
right report calls reproduced, a wrong one may keep a quarter. The exit status is 1 where one keeps more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dpbench import experiments
from dpbench.run.store import Store
from dpbench.study.context import Context
from dpbench.study.value_verdict import (
    DECIDING,
    EXACT,
    LEFT_OUT,
    MATCH,
    NEIGHBOUR,
    NOISE,
    Judged,
    PublishedValue,
    Switch,
    corrected,
    judge,
    outcome_of,
)

ROOT = Path(__file__).resolve().parent.parent
KEPT = 0.25  # of the right report's reproduced values, at most
ALONE = {"α of the title", "m = n // 50"}  # another setting of the same method: no noise, and no other data


class Left(NamedTuple):
    """What a report under one recipe keeps of the `tested` values that the right one calls reproduced."""

    recipe: str
    kept: int
    tested: int

    @property
    def fine(self) -> bool:
        return self.kept <= KEPT * self.tested


def wrong_reports(values: Sequence[PublishedValue], switches: Sequence[Switch] = ()) -> list[Left]:
    """By recipe, how many reproduced values of the right report agree with its runs as well, all of them replaced."""
    right = [one for one in judge(values, switches) if one.word in (EXACT, MATCH) and not one.copy_of]
    recipes = dict.fromkeys([*DECIDING, NOISE[0.0], *(name for one in right for name, *_ in one.value.wrong())])
    left = []
    for recipe in recipes:
        wrong = [_under(one, recipe) for one in right if recipe in {name for name, *_ in one.value.wrong()}]
        # Each value by its own number, also where several have one run, as without noise at each ε; too few runs of a
        # recipe notice nothing.
        outcomes = [outcome for value in wrong if (outcome := outcome_of(value, value.published)).word not in LEFT_OUT]
        if outcomes:
            left.append(Left(recipe, sum(one.good for one in corrected(outcomes)[0]), len(outcomes)))
    return left


def _under(one: Judged, recipe: str) -> PublishedValue:
    """The value with the runs of a recipe in the place of its own."""
    (runs, stream) = next((runs, stream) for name, runs, stream in one.value.wrong() if name == recipe)
    if runs and min(map(len, runs.values())) == 1:  # without noise and samples all seeds are one run
        runs = {name: [*values] * 20 for name, values in runs.items()}
    on = one.value.published
    return replace(
        one.value, runs={on: runs} if runs else {}, stream={on: stream} if stream else {}, planted={}, planted_stream={}
    )


def reports_of(name: str, results: Path = ROOT / "results", profile: str = "full") -> list[Left]:
    """`wrong_reports` of a paper's committed rows."""
    experiment = experiments.get(name)
    context = Context(experiment, profile, Store(results, profile, name))
    return wrong_reports(list(experiment.published_values(context)), experiment.switches)


def main(names: Sequence[str]) -> int:
    """Print a line per paper and recipe; 1 where a wrong report keeps too much."""
    failed = False
    for name in names or [one for one in experiments.names() if experiments.get(one).published_values]:
        for one in reports_of(name):
            decides = one.recipe not in ALONE and one.recipe != NEIGHBOUR
            failed |= decides and not one.fine
            told = "" if one.fine else "  TOO MANY" if decides else "  (another setting: shown, does not decide)"
            print(f"{name}: under {one.recipe}, {one.kept} of {one.tested} reproduced values are kept{told}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
