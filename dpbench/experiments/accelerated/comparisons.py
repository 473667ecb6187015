"""The published numbers of accelerated beside ours: where its curves start, and the T' that its code chooses."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.accelerated.errors import mean_traces, runs_of
from dpbench.experiments.accelerated.formulas import published_code_T
from dpbench.study.context import Context, select
from dpbench.study.style import look
from dpbench.study.welch import DIFFERS, EXPLAINED, Match, Place, PublishedMean, compare


def comparisons(context: Context) -> Iterator[PublishedMean]:
    """The paper's curves have no numbers beside these. Ours do not vary, so the margin alone decides."""
    published = context.experiment.published()
    starts = mean_traces(context, "fig3").query("iteration == 0")["mean"]
    start = Place("Fig. 3", "all panels", "T = 0")
    gap = compare(starts, published["initial_gap"])
    yield PublishedMean("F(x₀) - F*, where the curves of Fig. 3 start", gap, start, "fig3")
    chosen = published["chosen_T"]
    runs = select(runs_of(context, "chosen_T"), T_asked=1000)
    for algorithm in ("dp-nag-opt", "dp-masg-opt"):
        for c, theirs in zip(chosen["c"], chosen[algorithm], strict=True):
            ours = select(runs, algorithm=algorithm, c=c)["T"]
            place = Place("Section 5 (published code)", look(algorithm).label, f"T' at T = 1,000, c = {c:g}")
            name = f"T' of {algorithm} at T = 1,000, c = {c:g} (published code)"
            match = compare(ours, theirs)
            coded = published_code_T(algorithm, c, 1000)
            if match.word == DIFFERS and coded == theirs:
                match = Match(EXPLAINED, f"{match.numbers}; with the published code's weights {coded}")
            yield PublishedMean(name, match, place, "chosen_T")
