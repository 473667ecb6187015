"""nonconvex: Gao and Wright, "Differentially private optimization for smooth nonconvex ERM", 2023."""

from dpbench.experiments.nonconvex import cells, claims, figures, tables
from dpbench.experiments.nonconvex.rows import PAPER, SWITCHES
from dpbench.study.experiment import Experiment
from dpbench.study.verdict import PROVEN

EXPERIMENT = Experiment(
    name="nonconvex",
    title="Differentially private optimisation for smooth nonconvex ERM",
    citation="Gao and Wright, 2023",
    package=__name__,
    modules=(tables, figures, claims),
    order=tuple(f"table{number}" for number in (1, 2, 3, 4, 5, 7, 9, 11, 6, 8, 10, 12)),
    cells=cells.cells,
    switches=SWITCHES,
    short="Smooth nonconvex ERM",
    about=PAPER.phrases["about"],
    alone=PROVEN,  # claims judged once are judged on runs that keep their ε
)
