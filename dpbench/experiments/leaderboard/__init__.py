"""leaderboard: every registered private method side by side (none of the papers has it).

One relation for all, replace-one: an add/remove method runs at twice its sensitivities and, where its accounting is
not `tight`, on samples of a fixed size instead of Poisson ones (see `privacy.mechanisms`). One δ = n⁻²; pure-DP
methods at δ = 0, which is more than asked. The `tight` accounting, or the best that a method has, which each row says.
One rule of tuning: the candidates of tuning.toml, the lowest mean over seeds, not private.

One problem for all that fit it. a1a, adult, covertype and ijcnn have rows within ‖x‖₂ ≤ 1 already; log1, square,
california and madelon have standardised columns, and are measured in the unit √d, which is public, so that their rows
are about as long; those a little longer are shortened to 1. The measured largest norm as unit would look at the data.
Clipping methods run on these rows too. Each problem keeps its regulariser, so methods whose proof takes none are not on
those four: the table `fits` has every reason.
"""

from __future__ import annotations

from dpbench.experiments.leaderboard import figures, guide, sharper, summary, tables
from dpbench.leaderboard import entrants
from dpbench.leaderboard.ranking import LEVELS
from dpbench.study.experiment import Experiment

EXPERIMENT = Experiment(
    name="leaderboard",
    title="All private methods side by side",
    citation="not in any of the papers",
    package=__name__,
    modules=(guide, summary, tables, figures, sharper),
    order=(
        "guide",
        "heat",
        "standing",
        "summary",
        "overall",
        *(f"{kind}_{level}" for kind in ("ranking", "pareto") for level in LEVELS),
    ),
    short="Leaderboard",
    expand=entrants.expand,  # "every" method: those that fit each problem
)
