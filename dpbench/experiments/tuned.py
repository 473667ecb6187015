"""The tuned settings of every experiment (see `study.tuned`).

`python -m dpbench.experiments.tuned EXPERIMENT [RESULTS]` writes its `tuned.toml` from the rows: the "best" settings of
the grid's blocks, of the full profile where its rows are there, else of the quick one. The tuning looks at the data:
these settings reproduce the paper's numbers and are no private choice for data of one's own.
"""

from __future__ import annotations

import math
import sys

from dpbench import experiments, files
from dpbench.study.tuned import Tuned, as_toml, shipped, tune


def lookup(algorithm: str, home: str, problem: str, epsilon: float) -> Tuned | None:
    """The entry for (algorithm or alias, problem) at the nearest ε on a log scale, in the experiment called `home`."""
    if home not in experiments.names():
        return None
    known = [one for one in shipped(experiments.get(home)) if (one.algorithm, one.problem) == (algorithm, problem)]
    return min(known, key=lambda one: abs(math.log(one.epsilon / epsilon)), default=None)


def main(name: str, results: str = "results") -> None:
    """Write the settings tuned on the rows that exist into the experiment's `tuned.toml`."""
    experiment = experiments.get(name)
    tuned = tune(experiment, results)
    if not tuned:
        sys.exit(f"error: no rows of {name} to tune on in {results}; run: dpbench run --experiment {name}")
    path = experiment.file("tuned.toml")
    files.write(path, as_toml(experiment, tuned))
    print(f"{path}: {len(tuned)} settings")


if __name__ == "__main__":
    main(*sys.argv[1:])
