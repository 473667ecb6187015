"""zeroth_order: Zhang, Tran, Cutkosky, "Private zeroth-order nonsmooth nonconvex optimization", ICLR 2024.

The paper is theory only and publishes no experiments: every artefact here is a test of one of its theorems.
"""

from dpbench.experiments.zeroth_order import claims, errata, figures, reached, tables
from dpbench.study.experiment import Experiment

EXPERIMENT = Experiment(
    name="zeroth_order",
    title="Private zeroth-order nonsmooth nonconvex optimisation",
    citation="Zhang, Tran, Cutkosky, ICLR 2024",
    package=__name__,
    modules=(figures, tables, claims, reached, errata),
    short="Zeroth-order methods",
    about="The paper minimises nonsmooth nonconvex functions F from their values alone. O2NC-Tree estimates gradients "
    "by "
    "differences (GRAD, DIFF) and adds correlated noise along a tree; the naive oracle adds independent noise. Success "
    "is stationarity ‖∇F(w)‖_2δ near 0. A run fails if it ends where this is not 0. M is the number of rows used, K "
    "the number of epochs, T their length, ρ the level of privacy (larger is less private), d the dimension, δ the "
    "radius of the smoothing. The paper has no experiments; these are tests of its theorems.",
    order=("estimators", "tree_noise", "stationarity", "objective", "dimension", "fractions", "sphere"),
)
