"""Whether a claim could have come out otherwise: it is judged once more on runs that are wrong on purpose.

The wrong runs take the place of the right ones in a `Context`, so that the claim's own function judges them: nothing of
a claim is written twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from dpbench.study.claims import HELD, NOT_ENOUGH, NotEnough, Verdict
from dpbench.study.context import Context
from dpbench.study.value_verdict import NOISE

# What a run and the same run with wrong noise have in common; their keys differ by the factor on the noise.
PLACE = ["problem", "algorithm", "epsilon", "delta", "settings", "accounting", "relation", "seed"]
NO_RUNS = "no runs"


@dataclass(frozen=True)
class WrongContext(Context):
    """The grid of a context with other runs in the place of its own: see `wrong_contexts`.

    turned: method → the one in whose place it stands; planted: whether the runs have the wrong noise.
    """

    wrong: pd.DataFrame
    turned: Mapping[str, str]
    planted: bool = False

    @cached_property
    def runs(self) -> pd.DataFrame:
        return self.wrong

    def traces(self, runs: pd.DataFrame) -> pd.DataFrame:
        # Planted runs stand under the keys of right ones, whose traces are not theirs.
        return super().traces(runs.iloc[:0] if self.planted else runs)


def run_by(context: Context, methods: pd.Series) -> pd.Series:
    """The methods whose runs stand under these names: the same, but where two are exchanged."""
    return methods.replace(dict(context.turned)) if isinstance(context, WrongContext) else methods


def wrong_contexts(
    context: Context, exchange: Mapping[str, str], planted: bool = True
) -> Iterator[tuple[str, WrongContext]]:
    """(words, context) of each kind of wrong runs that are there.

    The planted runs by the factor on their noise; and the right runs with each method of `exchange` and its partner in
    one another's place.
    """
    runs, grid = context.runs, (context.experiment, context.profile, context.store)
    still = runs[runs["algorithm"].eq("probe-optimum")]  # the optimum has no noise, and is the same for wrong runs
    keys = runs.loc[runs["planted"].isna() & runs["timed"].eq(0), [*PLACE, "key"]]
    for factor, words in NOISE.items() if planted else ():
        wrong = runs[runs["planted"].eq(factor)].drop(columns="key").merge(keys, on=PLACE)
        if len(wrong):
            wrong = pd.concat([wrong.assign(planted=math.nan), still])
            yield words, WrongContext(*grid, wrong, {}, planted=True)
    if exchange:
        turned = {**exchange, **{other: one for one, other in exchange.items()}}
        named = ", ".join(f"{one} and {other}" for one, other in exchange.items())
        exchanged = runs.assign(algorithm=runs["algorithm"].replace(turned))
        yield f"{named} exchanged", WrongContext(*grid, exchanged, turned)


def words_on_wrong_runs(
    context: Context, exchange: Mapping[str, str], planted: bool, judge: Callable[[Context], Iterable[Verdict]]
) -> Callable[[Verdict], tuple[str, bool]]:
    """For a verdict on the right runs: the words of its case on each kind of wrong runs, and whether it is testable.

    Args:
        exchange: method → the method that takes its place, and the other way round.
        planted: whether the runs with wrong noise are among them.
        judge: gives the verdicts on a context; NotEnough where it has too few runs.
    """
    judged: dict[str, dict[str, str]] = {}
    for kind, wrong in wrong_contexts(context, exchange, planted):
        words = judged.setdefault(kind, {})
        try:
            # One by one: what was judged before runs were found missing stands.
            for verdict in judge(wrong):
                words[verdict.case] = verdict.word
        except NotEnough:
            pass

    def on_each_kind(verdict: Verdict) -> tuple[str, bool]:
        words = {kind: by_case.get(verdict.case, NO_RUNS) for kind, by_case in judged.items()}
        kinds: dict[str, list[str]] = {}
        for kind, word in words.items():
            kinds.setdefault(NO_RUNS if word == NOT_ENOUGH else word, []).append(kind)
        turned = [word for kind, word in words.items() if kind.endswith("exchanged")]
        shown = "; ".join(f"{word} with {', '.join(names)}" for word, names in kinds.items())
        return shown or NO_RUNS, not (verdict.word == HELD and turned == [HELD])

    return on_each_kind
