"""tracks: the leaderboard on many problems, without tuning, with an oracle's, and with tuning that is paid for.

The leaderboard's rules: replace-one neighbours, δ = n⁻² (0 for pure DP), each method's best accounting (see
`experiments.leaderboard`). Every problem has rows within ‖x‖₂ ≤ 1 and a certified optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpbench.experiments.tracks import figures, study, tables
from dpbench.study.experiment import Experiment
from dpbench.study.grid import GridEntry


@dataclass(frozen=True)
class Tracks(Experiment):
    """An experiment whose blocks name a track: they are expanded to the settings that it gives each method."""

    def expand(self, block: GridEntry, profile: str) -> list[GridEntry]:
        return study.expand(block)


EXPERIMENT = Tracks(
    name="tracks",
    title="The leaderboard without tuning, with an oracle's, with paid tuning",
    citation="not in any of the papers",
    package=__name__,
    modules=(tables, figures),
    short="Leaderboard by tuning",
    order=("answers", "moves", "default", "oracle", "private", "submitted", "problems"),
)
