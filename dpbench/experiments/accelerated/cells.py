"""The published numbers of accelerated beside ours: where its curves start, its code's T', and two ends of Fig. 4."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.accelerated.errors import mean_traces, runs_of
from dpbench.study import printed
from dpbench.study.context import Context, select
from dpbench.study.style import look
from dpbench.study.verdicts import FIXED, HONEST, Cell, Number, Place, Switch

SWITCHES: tuple[Switch, ...] = ()


def cells(context: Context) -> Iterator[Cell]:
    """The start of the curves, and the T' that the authors' code chooses at T = 1,000."""
    published = context.experiment.published()
    starts = mean_traces(context, "fig3").query("iteration == 0")["mean"].round(9).unique().tolist()
    number = Number("F(x₀) - F*", printed.shown(published["initial_gap"], 1), FIXED)
    place = Place("Fig. 3", "all panels", "t = 0")
    yield Cell(place, "fig3", (number,), {HONEST: {number.quantity: starts}} if starts else {},
               trivial="the value of the start")  # fmt: skip
    chosen = published["chosen_T"]
    runs = select(runs_of(context, "chosen_T"), T_asked=1000)
    for algorithm in ("dp-nag-opt", "dp-masg-opt"):
        for c, theirs in zip(chosen["c"], chosen[algorithm], strict=True):
            ours = select(runs, algorithm=algorithm, c=c)["T"].unique().tolist()
            yield Cell(
                Place("Section 5 (published code)", look(algorithm).label, f"T' at T = 1,000, c = {c:g}"),
                "chosen_T",
                (Number("T'", printed.shown(theirs, 0), FIXED),),
                {HONEST: {"T'": ours}} if ours else {},
                series=(algorithm,),
            )
