"""accelerated: Kuru, Birbil, Gürbüzbalaban, Yıldırım, "Differentially private accelerated optimization algorithms",
SIAM Journal on Optimization 32 (2022)."""

from dpbench.experiments.accelerated import cells, claims, errata, figures, tables
from dpbench.study.experiment import Experiment
from dpbench.study.verdict import PROVEN

EXPERIMENT = Experiment(
    name="accelerated",
    title="Differentially private accelerated optimisation algorithms",
    citation="Kuru, Birbil, Gürbüzbalaban, Yıldırım, SIAM J. Optim. 2022",
    package=__name__,
    modules=(figures, tables, claims, errata),
    cells=cells.cells,
    switches=cells.SWITCHES,
    short="Accelerated methods",
    about="The paper adds momentum to private gradient descent with Laplace noise (pure ε-DP): heavy ball (DP-HB), "
    "Nesterov's method (DP-NAG) and its multistage form (DP-MASG). The -opt forms divide ε unevenly over the "
    "T' ≤ T iterations that they choose. T is the number of iterations asked for, c the step size in units of 1/L, and "
    "m the number of rows per iteration, of n.",
    alone=PROVEN,  # what was published has b/√2
)
