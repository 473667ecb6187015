"""second_order: Ganesh, Haghifam, Steinke, Thakurta, "Faster differentially private convex optimization via
second-order methods", NeurIPS 2023."""

from dpbench.experiments.base import Artefact, Experiment
from dpbench.experiments.second_order import figures, tables

EXPERIMENT = Experiment(
    name="second_order",
    title="Faster differentially private convex optimisation via second-order methods",
    citation="Ganesh, Haghifam, Steinke, Thakurta, NeurIPS 2023",
    package=__name__,
    artefacts=(
        Artefact("fig2", "Fig. 2: best excess loss against ε", figures.fig2),
        Artefact("fig5", "Fig. 5: quadratic approximations of the logistic loss", figures.fig5),
        Artefact("table1", "Table 1: run time of DP-GD over DP-Newton", tables.table1),
        Artefact("table2", "Table 2: hyperparameters of DP-Newton", tables.table2),
        Artefact("table3", "Table 3: data sets", tables.table3),
        Artefact("best_T", "The tuned number of iterations behind Fig. 2", tables.best_T),
    ),
)
