"""second_order: Ganesh, Haghifam, Steinke, Thakurta, "Faster differentially private convex optimization via
second-order methods", NeurIPS 2023."""

from dpbench.experiments.base import Artefact, Experiment
from dpbench.experiments.second_order import claims, comparisons, convergence, figures, tables

EXPERIMENT = Experiment(
    name="second_order",
    title="Faster differentially private convex optimisation via second-order methods",
    citation="Ganesh, Haghifam, Steinke, Thakurta, NeurIPS 2023",
    package=__name__,
    artefacts=(
        Artefact("fig1", "Fig. 1: excess loss against wall time, covertype, ε = 1", convergence.fig1),
        Artefact("fig2", "Fig. 2: best excess loss against ε", figures.fig2),
        Artefact("fig3", "Fig. 3: convergence against DP-GD with the oracle's step", convergence.fig3),
        Artefact("fig4", "Fig. 4: minibatch variants against wall time", convergence.fig4),
        Artefact("fig5", "Fig. 5: quadratic approximations of the logistic loss", figures.fig5),
        Artefact("fig6", "Fig. 6: best excess loss against ε, Fashion-MNIST and protein", figures.fig6),
        Artefact("fig7", "Fig. 7: convergence against the oracle's step, Fashion-MNIST and protein", convergence.fig7),
        Artefact("fig8", "Fig. 8: minibatch variants, Fashion-MNIST and protein", convergence.fig8),
        Artefact("c5", "App. C.5: DP-GD with other learning rates", figures.c5),
        Artefact("c7", "App. C.7: peak memory of the eigenvalue modification", tables.c7),
        Artefact("table1", "Table 1: run time of DP-GD over DP-Newton", tables.table1),
        Artefact("table2", "Table 2: hyperparameters of DP-Newton", tables.table2),
        Artefact("table3", "Table 3: data sets", tables.table3),
        Artefact("table4", "Table 4: run time of DP-GD over DP-Newton, Fashion-MNIST and protein", tables.table4),
        Artefact("best_T", "The tuned number of iterations behind Figs. 2 and 6", tables.best_T),
    ),
    claims=claims.CLAIMS,
    comparisons=comparisons.comparisons,
)
