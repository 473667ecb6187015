"""greedy_coordinate: Mangold, Bellet, Salmon, Tommasi, "High-dimensional private empirical risk minimization by greedy
coordinate descent", AISTATS 2023."""

from dpbench.experiments.base import Artefact, Experiment
from dpbench.experiments.greedy_coordinate import claims, comparisons, figures, selection, tables

EXPERIMENT = Experiment(
    name="greedy_coordinate",
    title="High-dimensional private empirical risk minimisation by greedy coordinate descent",
    citation="Mangold, Bellet, Salmon, Tommasi, AISTATS 2023",
    package=__name__,
    artefacts=(
        Artefact("fig1", "Fig. 1: relative error against passes", figures.fig1),
        Artefact("fig2", "Fig. 2: histograms of the optimum's coordinates", figures.fig2),
        Artefact("fig3", "Fig. 3: the greedy rules of proximal DP-GCD", figures.fig3),
        Artefact("fig4", "Fig. 4: relative error against run time", figures.fig4),
        Artefact("table1", "Table 1: sizes, and the constants the paper does not print", tables.table1),
        Artefact("table2", "Table 2: hyperparameter grids", tables.table2),
        Artefact("table3", "Table 3: support recovery", tables.table3),
        Artefact("table4", "Table 4: chosen hyperparameters", tables.table4),
        Artefact(
            "selection_error",
            "The error that the published selection buys (not in the paper)",
            selection.selection_error,
        ),
        Artefact("tight_noise", "The noise that tight accounting saves (not in the paper)", selection.tight_noise),
        Artefact(
            "published_selection", "The ε of the published selection (not in the paper)", selection.published_selection
        ),
    ),
    claims=claims.CLAIMS,
    comparisons=comparisons.comparisons,
    synthetic=("log1", "log2", "square"),
)
