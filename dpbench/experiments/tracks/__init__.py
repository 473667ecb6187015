"""tracks: the leaderboard on many problems, without tuning, with an oracle's, and with tuning that is paid for.

The leaderboard's rules: replace-one neighbours, δ = n⁻² (0 for pure DP), each method's best accounting (see
`experiments.leaderboard`). Every problem has rows within ‖x‖₂ ≤ 1 and a certified optimum.
"""

from __future__ import annotations

from dpbench.experiments.tracks import figures, tables
from dpbench.leaderboard import tracks
from dpbench.study.experiment import Experiment

EXPERIMENT = Experiment(
    name="tracks",
    title="The leaderboard without tuning, with an oracle's, with paid tuning",
    citation="not in any of the papers",
    package="dpbench.leaderboard",
    modules=(tables, figures),
    short="Leaderboard by tuning",
    expand=lambda block, profile: tracks.expand(block),  # the settings that its track gives each method
    order=("answers", "moves", "default", "oracle", "private", "submitted", "problems"),
)
