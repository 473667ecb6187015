"""leaderboard: every registered private method side by side (none of the papers has it).

One relation for all, replace-one: an add/remove method runs at twice its sensitivities and on samples of a fixed size
instead of Poisson ones (see `privacy.mechanisms`). One δ = n⁻²; pure-DP methods at δ = 0, which is more than asked. The
`tight` accounting, or the best that a method has, which each row says. One rule of tuning: the candidates of
tuning.toml, the lowest mean over seeds, not private.

One problem for all that fit it. a1a, adult, covertype and ijcnn have rows within ‖x‖₂ ≤ 1 already; log1, square and
madelon have standardised columns, and are measured in the unit √d, which is public, so that their rows are about as
long; those a little longer are shortened to 1. The measured largest norm as unit would look at the data. Clipping
methods run on these rows too. Each problem keeps its regulariser, so methods whose proof takes none are not on log1,
square and madelon: the table `fits` has every reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dpbench.experiments.base import Artefact, Experiment
from dpbench.experiments.leaderboard import entrants, figures, summary, tables

LEVELS = {"low": 0.1, "mid": 1.0, "high": 10.0}


@dataclass(frozen=True)
class Leaderboard(Experiment):
    """An experiment whose blocks name "every" method: they are expanded to those that fit each problem."""

    def blocks(self, profile, artefact=None, config=None):
        listed = super().blocks(profile, artefact, config)
        return [one for block in listed for one in entrants.expand(block, profile)]


EXPERIMENT = Leaderboard(
    name="leaderboard",
    title="All private methods side by side",
    citation="not in any of the papers",
    package=__name__,
    artefacts=(
        Artefact("summary", "What the numbers say, in words", summary.summary),
        Artefact("overall", "All methods over all problems and ε", tables.overall),
        *(
            Artefact(
                f"ranking_{level}", f"Ranking at ε = {epsilon:g}", partial(tables.ranking, epsilon=epsilon, level=level)
            )
            for level, epsilon in LEVELS.items()
        ),
        *(
            Artefact(
                f"pareto_{level}",
                f"Excess loss against seconds at ε = {epsilon:g}",
                partial(figures.pareto, epsilon=epsilon, level=level),
            )
            for level, epsilon in LEVELS.items()
        ),
        Artefact("fits", "Who is not on which problem, and why", tables.fits),
    ),
)
