"""nonconvex: Gao and Wright, "Differentially private optimization for smooth nonconvex ERM", 2023."""

from dpbench.experiments.nonconvex import claims, published, tables
from dpbench.experiments.nonconvex.rows import PAPER
from dpbench.study.claims import PROVEN

EXPERIMENT = PAPER.experiment(
    tables,
    claims,
    order=tuple(f"table{number}" for number in (1, 2, 3, 4, 5, 7, 9, 11, 6, 8, 10, 12)),
    published_values=published.published_values,
    alone=PROVEN,  # claims judged once are judged at a proven ε
)
