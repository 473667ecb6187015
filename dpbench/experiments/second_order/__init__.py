"""second_order: Ganesh, Haghifam, Steinke, Thakurta, "Faster differentially private convex optimization via
second-order methods", NeurIPS 2023."""

from dpbench.experiments.second_order import (
    cells,
    claims,
    convergence,
    equal_loss,
    errata,
    figures,
    first_figure,
    published_variants,
    rules,
    run_times,
    tables,
    variants,
)
from dpbench.study.experiment import Experiment

EXPERIMENT = Experiment(
    name="second_order",
    title="Faster differentially private convex optimisation via second-order methods",
    citation="Ganesh, Haghifam, Steinke, Thakurta, NeurIPS 2023",
    package=__name__,
    modules=(
        first_figure,
        convergence,
        figures,
        run_times,
        equal_loss,
        tables,
        rules,
        variants,
        published_variants,
        claims,
        errata,
    ),
    order=(*(f"fig{i}" for i in range(1, 9)), "c5", "c7", *(f"table{i}" for i in range(1, 5)), "shapes", "equal_loss"),
    cells=cells.cells,
    switches=cells.SWITCHES,
    short="Second-order methods",
    about="The paper proposes DP-Newton for logistic regression: Newton's method with noise in the gradient and in the "
    "curvature, where DP-GD has noise in the gradient only. Its four variants take the curvature from the Hessian or "
    "from a quadratic upper bound (hess, qu), and change its eigenvalues by clipping or adding (clip, add). T is the "
    "number of iterations. In adult-max and covertype-max, numeric columns are divided by their maximum.",
)
