"""second_order: Ganesh, Haghifam, Steinke, Thakurta, "Faster differentially private convex optimization via
second-order methods", NeurIPS 2023."""

from dpbench.experiments.second_order import claims, curves, figures, published, rules, run_times, tables, variants
from dpbench.experiments.second_order.rows import PAPER
from dpbench.study.experiment import Experiment

EXPERIMENT = Experiment(
    name="second_order",
    title="Faster differentially private convex optimisation via second-order methods",
    citation="Ganesh, Haghifam, Steinke, Thakurta, NeurIPS 2023",
    package=__name__,
    modules=(curves, figures, run_times, tables, rules, variants, claims),
    order=(*(f"fig{i}" for i in range(1, 9)), "c5", "c7", *(f"table{i}" for i in range(1, 5)), "shapes"),
    cells=published.cells,
    short="Second-order methods",
    about=PAPER.phrases["about"],
)
