"""leaderboard: every registered private method side by side, at settings that nothing of the data decides.

None of the papers has it. One relation for all, replace-one: an add/remove method runs at twice its sensitivities and,
where its accounting is not `tight`, on samples of a fixed size instead of Poisson ones (see `privacy.mechanisms`). One
δ = n⁻²; pure-DP methods at δ = 0, which is more than asked. The `tight` accounting, or the best that a method has.
Every problem has rows within ‖x‖₂ ≤ 1, in public units, and a certified optimum; each keeps its regulariser, so a
method whose proof takes none is not on those: the table `fits` has every reason.

How rows become places is `dpbench.leaderboard.places`; who enters at which settings, `entrants` and `tracks` there.
"""

from __future__ import annotations

from dpbench.experiments.leaderboard import artefacts
from dpbench.leaderboard import tracks
from dpbench.study.experiment import Experiment

EXPERIMENT = Experiment(
    name="leaderboard",
    title="All private methods side by side",
    citation="not in any of the papers",
    package="dpbench.leaderboard",
    modules=(artefacts,),
    order=(
        "kept",
        "held_out",
        "against",
        "reach",
        "places",
        "against_excess",
        "needed",
        "heat_low",
        "heat_mid",
        "heat_high",
        "price",
    ),
    short="Leaderboard",
    about="Every private method runs on the same problems at the same ε, with settings that do not look at the data. "
    "The first score is the loss on held-out rows of real tables: what share a method keeps of the gain of the optimum "
    "without privacy over w = 0, the model without training. The second is the training objective, on all problems. "
    "The default (auto) is what PrivateClassifier and PrivateRegressor use.",
    expand=lambda block, profile: tracks.expand(block),  # the settings that its track gives each method
)
