"""accelerated: Kuru, Birbil, Gürbüzbalaban, Yıldırım, "Differentially private accelerated optimization algorithms",
SIAM Journal on Optimization 32 (2022)."""

from dpbench.experiments.accelerated import claims, comparisons, figures, tables
from dpbench.experiments.base import Artefact, Experiment

EXPERIMENT = Experiment(
    name="accelerated",
    title="Differentially private accelerated optimisation algorithms",
    citation="Kuru, Birbil, Gürbüzbalaban, Yıldırım, SIAM J. Optim. 2022",
    package=__name__,
    artefacts=(
        Artefact("fig1", "Fig. 1: heavy ball on a quadratic: rate and error bound", figures.fig1),
        Artefact("fig2", "Fig. 2: optimal noise of the multistage method", figures.fig2),
        Artefact("fig3", "Fig. 3: error against iterations, m = n", figures.fig3),
        Artefact("fig4", "Fig. 4: error against iterations, m = 1,000", figures.fig4),
        Artefact("noise_scale", "Laplace scale b beside the published code's b/√2", figures.noise_scale),
        Artefact("best_errors", "Best final error of each algorithm", tables.best_errors),
        Artefact("chosen_T", "The number of iterations that the -opt methods choose", tables.chosen_T),
    ),
    claims=claims.CLAIMS,
    comparisons=comparisons.comparisons,
    synthetic=("accelerated",),
)
