"""greedy_coordinate: Mangold, Bellet, Salmon, Tommasi, "High-dimensional private empirical risk minimization by greedy
coordinate descent", AISTATS 2023."""

from dpbench.experiments.greedy_coordinate import artefacts, claims, published
from dpbench.experiments.greedy_coordinate.rows import PAPER

EXPERIMENT = PAPER.experiment(
    artefacts,
    claims,
    order=("fig1", "fig2", "fig3", "fig4", "table1", "table2", "table3", "table4"),
    published_values=published.published_values,
)
