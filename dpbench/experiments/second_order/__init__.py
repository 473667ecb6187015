"""second_order: Ganesh, Haghifam, Steinke, Thakurta, "Faster differentially private convex optimization via
second-order methods", NeurIPS 2023."""

from dpbench.experiments.second_order import claims, errata, figures, published, rules, run_times, tables
from dpbench.experiments.second_order.rows import PAPER

EXPERIMENT = PAPER.experiment(
    figures, run_times, tables, rules, claims, errata,
    order=(*(f"fig{i}" for i in range(1, 9)), "c5", "c7", *(f"table{i}" for i in range(1, 5)),
           "best_T", "tuning_rules"),
    published_values=published.published_values,
)  # fmt: skip
