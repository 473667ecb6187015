"""nonconvex: Gao and Wright, "Differentially private optimization for smooth nonconvex ERM", 2023."""

from functools import partial

from dpbench.experiments.base import Artefact, Experiment
from dpbench.experiments.nonconvex import claims, comparisons, figures, tables
from dpbench.experiments.nonconvex.study import TARGETS, place

EXPERIMENT = Experiment(
    name="nonconvex",
    title="Differentially private optimisation for smooth nonconvex ERM",
    citation="Gao and Wright, 2023",
    package=__name__,
    artefacts=(
        *(
            Artefact(f"table{target.table}", f"Table {target.table}: {place(target)}", partial(tables.loss, target))
            for target in TARGETS
        ),
        *(
            Artefact(
                f"table{target.hessians}",
                f"Table {target.hessians}: Hessian evaluations of {place(target)}",
                partial(tables.hessians, target),
            )
            for target in TARGETS
            if target.hessians
        ),
        Artefact("differences", "Rows that differ from the published ones", tables.differences),
        Artefact("endings", "Where the runs ended, beside Tables 1 to 12 (not in the paper)", figures.endings),
        Artefact("convergence", "Loss against gradient evaluations, covertype (not in the paper)", figures.covertype),
        Artefact("convergence_ijcnn", "Loss against gradient evaluations, ijcnn (not in the paper)", figures.ijcnn),
        Artefact("variants", "Other minibatches, radii, and dp-gd-2ns (not in the paper)", tables.variants),
    ),
    claims=claims.CLAIMS,
    comparisons=comparisons.comparisons,
)
