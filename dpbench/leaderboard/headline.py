"""What the front page says of the default: one function each for "how much", "better than w = 0?" and "A or B?".

A share is what is kept of the gain of the optimum without privacy over w = 0: 1 is its loss, 0 that of w = 0, below 0
is worse than w = 0. On rows held out it can leave 0 to 1, so it is cut off at -1 and 1; by the training objective it is
1 less what is left of the excess loss. Quartiles of families say more than a mean. "Better than w = 0?" is a sign test
over families, as shares are far from normal. "A or B?" is asked of the default and every other method, and of nothing
else, so there is no search; its interval is a bootstrap over families, and over the seeds within them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench.leaderboard import entrants
from dpbench.leaderboard.places import AUTO, METHOD, Scale
from dpbench.problems import catalogue

SIZES = (1_500, 6_000)  # n of the most rows of small and of middling families
DRAWS, LEVEL = 2_000, 0.95  # of the bootstrap


class Kept(NamedTuple):
    """What a method keeps of the gain on a group of families, in shares; better: on how many it is above w = 0.

    sign: the chance of as many or more families by coin flips: a one-sided sign test. low, high: quartiles.
    """

    group: str
    families: int
    median: float
    low: float
    high: float
    better: int
    sign: float


class Against(NamedTuple):
    """The default's score less another method's: the mean over families that admit both, with its interval.

    lower: on how many the default is lower; equal: on how many it is that very method.
    """

    algorithm: str
    families: int
    difference: float
    low: float
    high: float
    lower: int
    equal: int

    @property
    def words(self) -> str:
        """Which of the two has the lower score, where the interval says so."""
        return "the default" if self.high < 0 else "the other" if self.low > 0 else "not distinguishable"


def is_drawn(problem: str) -> bool:
    """Whether the data are drawn from a seed, not collected by anybody."""
    spec = catalogue.recipe_of(problem).spec
    return spec.synthetic and not spec.citation


def rows_of(problem: str) -> int:
    """n, of the rows that are trained on."""
    return catalogue.recipe_of(problem).rows or 0


def groups(families: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Group → its families, by where the data come from and by the most rows of a problem."""
    # A family is drawn only if all of it is: one real data set makes it evidence about real data.
    drawn = {name for name, problems in families.items() if all(map(is_drawn, problems))}
    most = {name: max(map(rows_of, problems)) for name, problems in families.items()}
    small, large = SIZES
    members: dict[str, Callable[[str], bool]] = {
        "all": lambda name: True,
        "real": lambda name: name not in drawn,
        "drawn": lambda name: name in drawn,
        "of persons": lambda name: all(map(entrants.of_persons, families[name])),
        f"n < {small:,}": lambda name: most[name] < small,
        f"n from {small:,} to {large:,}": lambda name: small <= most[name] <= large,
        f"n > {large:,}": lambda name: most[name] > large,
    }
    return {group: [name for name in families if belongs(name)] for group, belongs in members.items()}


def kept(group: str, shares: pd.Series) -> Kept:
    """Of a method's shares by family, those of one group."""
    from scipy.stats import binomtest

    if not len(shares):
        return Kept(group, 0, np.nan, np.nan, np.nan, 0, np.nan)
    low, median, high = np.quantile(shares, [0.25, 0.5, 0.75])
    better, undecided = int((shares > 0).sum()), int((shares == 0).sum())
    # The sign test leaves out ties: they speak for neither side.
    decided = len(shares) - undecided
    sign = binomtest(better, decided, alternative="greater").pvalue if decided else 1.0
    return Kept(group, len(shares), float(median), float(low), float(high), better, float(sign))


def against(
    losses: pd.DataFrame,
    scores: pd.DataFrame,
    scale: Scale,
    choice: Mapping[str, str],
    families: Mapping[str, str],
) -> list[Against]:
    """The default against every method of `scores` (problem, algorithm, score), at one ε.

    losses: (problem, algorithm, loss), a row per seed. choice: problem → the method that is the default there. A
    method without losses keeps its score in every draw.
    """
    # A fixed seed: the page must not change from build to build.
    rng = np.random.default_rng(0)
    seeds = {at: table["loss"].to_numpy(float) for at, table in losses.groupby(METHOD[::2])}
    drawn = {at: _scores(seeds.get(at), at[0], scale, score, rng) for at, score in _by_method(scores).items()}
    # Of a problem on which the default is another entrant both are the same runs, in every draw too.
    default = {p: drawn.get((p, choice.get(p, AUTO)), values) for (p, name), values in drawn.items() if name == AUTO}
    results = []
    for name in sorted({name for _, name in drawn} - {AUTO}):
        gaps = pd.DataFrame({p: mine - drawn[p, name] for p, mine in default.items() if (p, name) in drawn}).T
        # First within families: problems of one origin are one observation, so families are resampled.
        table = gaps.groupby([families.get(problem, problem) for problem in gaps.index]).mean()
        values = table.to_numpy()
        chosen = rng.integers(len(values), size=(DRAWS, len(values)))
        means = values[chosen, np.arange(1, DRAWS + 1)[:, None]].mean(axis=1)
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        first = values[:, 0]
        lower, equal = int((first < 0).sum()), int((first == 0).sum())
        results.append(Against(name, len(values), float(first.mean()), float(low), float(high), lower, equal))
    return sorted(results, key=lambda one: -one.difference)


class Reach(NamedTuple):
    """The least n·ε at which the default, and at which any method, is below w = 0 on a problem; NaN where at none.

    method: the one that is below it there on the most seeds, the first by name of several.
    """

    problem: str
    n: int
    default: float
    any: float
    method: str


def reach(losses: pd.DataFrame, nulls: Mapping[str, float], choice: Mapping[str, str]) -> list[Reach]:
    """Of each problem of `losses`, by a one-sided sign test over seeds; by n.

    losses: (problem, ε, algorithm, loss). Where any method will do, all at an ε are tested, so their level is shared.
    """
    from scipy.stats import binom

    below = losses.assign(below=losses["loss"] < losses["problem"].map(nulls))
    tests = below.groupby(METHOD)["below"].agg(["sum", "size"]).reset_index()
    tests["p"] = binom.sf(tests["sum"] - 1, tests["size"], 0.5)
    results = []
    for problem, rows in tests.groupby("problem"):
        own = rows[rows["algorithm"].eq(choice.get(str(problem), "")) & rows["p"].lt(1 - LEVEL)]
        count = rows.groupby("epsilon")["algorithm"].transform("size")
        some = rows[rows["p"] < (1 - LEVEL) / count].sort_values(["epsilon", "p", "algorithm"])
        n, name = rows_of(str(problem)), next(iter(some["algorithm"]), "")
        results.append(Reach(str(problem), n, n * own["epsilon"].min(), n * some["epsilon"].min(), name))
    return sorted(results, key=lambda one: (one.n, one.problem))


def _by_method(scores: pd.DataFrame) -> dict[tuple[str, str], float]:
    return dict(zip(zip(scores["problem"], scores["algorithm"], strict=True), scores["score"], strict=True))


def _scores(
    losses: np.ndarray | None, problem: str, scale: Scale, score: float, rng: np.random.Generator
) -> np.ndarray:
    """(1 + DRAWS,) the score, then those of resampled seeds."""
    # A mean with an infinite loss is infinite in most draws; its score is the clip in all.
    if losses is None or not np.isfinite(losses).all():
        return np.full(1 + DRAWS, score)
    means = losses[rng.integers(len(losses), size=(DRAWS, len(losses)))].mean(axis=1)
    return np.concatenate([[score], scale.scores(problem, means)])
