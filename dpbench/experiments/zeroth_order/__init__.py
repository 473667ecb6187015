"""zeroth_order: Zhang, Tran, Cutkosky, "Private zeroth-order nonsmooth nonconvex optimization", ICLR 2024.

The paper is theory only and publishes no experiments: every artefact here is a test of one of its theorems.
"""

from dpbench.experiments.base import Artefact, Experiment
from dpbench.experiments.zeroth_order import claims, figures, tables

TEST = "not in the paper: a test of its"

EXPERIMENT = Experiment(
    name="zeroth_order",
    title="Private zeroth-order nonsmooth nonconvex optimisation",
    citation="Zhang, Tran, Cutkosky, ICLR 2024",
    package=__name__,
    artefacts=(
        Artefact("estimators", f"Variance of GRAD and DIFF ({TEST} Lemmas 3.1 and 3.2)", figures.estimators),
        Artefact("tree_noise", f"Noise of the tree and naive noise ({TEST} Corollary 4.5)", figures.tree_noise),
        Artefact("stationarity", f"Stationarity against M ({TEST} Theorem 4.9)", figures.stationarity),
        Artefact("objective", f"F against M ({TEST} Theorem 4.9)", figures.objective),
        Artefact("slopes", f"Fitted exponents of M ({TEST} Theorem 4.9)", tables.slopes),
        Artefact("privacy_for_free", f"Stationarity against ρ ({TEST} Theorem 4.9)", figures.privacy_for_free),
        Artefact("guarantee", f"d, M, ε and stationarity ({TEST} Theorem 4.9)", tables.guarantee),
    ),
    claims=claims.CLAIMS,
    synthetic=("phase-5", "phase-20", "phase-100"),
)
