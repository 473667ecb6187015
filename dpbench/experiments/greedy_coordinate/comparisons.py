"""The relative errors of the paper's Table 3 beside ours."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.base import select
from dpbench.experiments.greedy_coordinate.study import ALGORITHMS, PUBLISHED, label, published_method, tuned_runs
from dpbench.report.compare import Comparison, compare


def comparisons(context) -> Iterator[Comparison]:
    """One per (problem, algorithm); the paper states no spread and no λ, on which the errors depend.

    Its DP-GCD is compared with both selections: the one that keeps the ε and the published one.
    """
    runs = tuned_runs(context, "table3")
    for problem, published in context.experiment.published()["support"].items():
        for algorithm in (*ALGORITHMS, PUBLISHED):
            theirs = published[published_method(algorithm)][2]
            ours = select(runs, problem=problem, algorithm=algorithm)["relative"]
            yield Comparison(f"Table 3, {problem}, {label(algorithm)}: relative error", compare(ours, theirs))
