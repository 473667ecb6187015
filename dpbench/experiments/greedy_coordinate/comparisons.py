"""The published relative errors beside ours at the paper's own hyperparameters, with the published noise."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.greedy_coordinate.study import LOOKS, PAPER, TITLES, problems, runs_at_published_settings
from dpbench.experiments.greedy_coordinate.tables import AS_PUBLISHED, half_a_digit, published_end
from dpbench.study.context import Context, select
from dpbench.study.welch import Place, PublishedMean, compare


def comparisons(context: Context) -> Iterator[PublishedMean]:
    """One per (problem, method) with a published number; like with like: Table 4's settings. No spread is published.

    Equivalence: within 10 %, or half of the last of the two printed digits.
    """
    paper, runs = context.experiment.published(), runs_at_published_settings(context)
    for problem in problems(runs, PAPER):
        for method in AS_PUBLISHED:
            theirs = published_end(paper, problem, method)
            if theirs > 0:
                ours = select(runs, problem=problem, algorithm=method)["relative"]
                margin = max(0.1, half_a_digit(theirs) / theirs)
                name = f"{TITLES[problem]}, {LOOKS[method].label}: relative error at the settings of Table 4"
                printed = "Table 3" if problem in paper["support"] else "Fig. 1"
                place = Place(printed, LOOKS[method].label, f"{TITLES[problem]}: relative gap")
                yield PublishedMean(name, compare(ours, theirs, margin=margin), place, "published_settings")
