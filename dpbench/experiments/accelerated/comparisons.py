"""The published numbers of accelerated beside ours: where its curves start, and the T' that its code chooses."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.accelerated.errors import mean_traces, runs_of
from dpbench.experiments.base import select
from dpbench.report.compare import Comparison, compare


def comparisons(context) -> Iterator[Comparison]:
    """The paper's curves have no numbers beside these. Ours do not vary, so the margin alone decides."""
    published = context.experiment.published()
    starts = mean_traces(context, "fig3").query("iteration == 0")["mean"]
    yield Comparison("F(x₀) - F*, where the curves of Fig. 3 start", compare(starts, published["initial_gap"]))
    chosen = published["chosen_T"]
    runs = select(runs_of(context, "chosen_T"), T_asked=1000)
    for algorithm in ("dp-nag-opt", "dp-masg-opt"):
        for c, theirs in zip(chosen["c"], chosen[algorithm], strict=True):
            ours = select(runs, algorithm=algorithm, c=c)["T"]
            yield Comparison(f"T' of {algorithm} at T = 1,000, c = {c:g} (published code)", compare(ours, theirs))
