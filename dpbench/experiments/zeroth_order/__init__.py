"""zeroth_order: Zhang, Tran, Cutkosky, "Private zeroth-order nonsmooth nonconvex optimization", ICLR 2024.

The paper is theory only and publishes no experiments: every artefact here is a test of one of its theorems.
"""

from dpbench.experiments.zeroth_order import artefacts, claims, kinks
from dpbench.experiments.zeroth_order.rows import PAPER

EXPERIMENT = PAPER.experiment(artefacts, claims, kinks)
