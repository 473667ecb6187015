"""greedy_coordinate: Mangold, Bellet, Salmon, Tommasi, "High-dimensional private empirical risk minimization by greedy
coordinate descent", AISTATS 2023."""

from dpbench.experiments.greedy_coordinate import cells, claims, errata, figures, more_seeds, selection, tables
from dpbench.study.experiment import Experiment

EXPERIMENT = Experiment(
    name="greedy_coordinate",
    title="High-dimensional private empirical risk minimisation by greedy coordinate descent",
    citation="Mangold, Bellet, Salmon, Tommasi, AISTATS 2023",
    package=__name__,
    modules=(figures, tables, selection, more_seeds, claims, errata),
    order=("fig1", "fig2", "fig3", "fig4", "table1", "table2", "table3", "table4"),
    cells=cells.cells,
    switches=cells.SWITCHES,
    short="Greedy coordinate descent",
    about="The paper proposes DP-GCD: each iteration updates the one coordinate with the largest noisy gradient, which "
    "suits problems with more columns than rows. GS-r, GS-s and GS-q are three rules for “largest”. It is compared "
    "with "
    "random coordinates (DP-CD) and DP-SGD. The words after a method's name say how its noise is set: by the paper's "
    "eq. (2), by Rényi DP (rdp), or by the best bounds (tight); σ = zC and 2zC are two readings of the paper. p, or d, "
    "is the number of columns, and w* the optimum without privacy.",
)
