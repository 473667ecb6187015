"""The published values of second_order beside ours: Tables 1 to 4, the ends of Fig. 1, App. C.7, the text's numbers.

Most are seconds or bytes of a machine, or what no run varies; the ends of Fig. 1 alone are judged. Their runs have half
and twice the noise on purpose in the artefact `planted`. At ε = 1 the published conversions of ε are `bs16`, and no run
of a good T goes as far as the published reset, so the runs at a proven ε are the published ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpbench import datasets, frames
from dpbench.experiments.second_order.figures import rows_of_ends
from dpbench.experiments.second_order.run_times import FIGURE, PUBLISHED, Timed, timed_ratios
from dpbench.experiments.second_order.tables import PARAMETERS, hyperparameters, whole_process
from dpbench.study import printed
from dpbench.study.context import Context, select
from dpbench.study.experiment import PLANTED
from dpbench.study.paper import by_recipe
from dpbench.study.printed import FIXED, Number
from dpbench.study.style import look, problem_title
from dpbench.study.value_verdict import HONEST, NOTHING_VARIES, Place, PublishedValue


def published_values(context: Context) -> Iterator[PublishedValue]:
    """One per printed value; no headline counts those of a machine."""
    published = context.experiment.published()
    yield from ends_of_the_figure(context, published)
    yield from run_times(context, published["table1"])
    theirs, ours = hyperparameters(context)
    for name, (letter, words) in PARAMETERS.items():
        yield fixed(Place("Table 2", letter or words, "value"), "table2", theirs[name], ours[name])
    for problem, size in published["table3"].items():
        spec = datasets.describe(problem)
        here = [float(one) for one in (spec.rows, spec.columns) if one]
        yield fixed(Place("Table 3", problem_title(problem), "rows × columns"), "table3", size, here)
    # The appendix prints the memory of the clipped Hessian alone.
    rows = select(context.rows("c7"), algorithm="dp-newton-hess-clip").dropna(subset=["measured"])
    for problem in context.problems("c7"):
        peaks = whole_process(select(rows, problem=problem)).tolist()
        place = Place("App. C.7", problem_title(problem), "MiB of the clipped Hessian")
        yield of_a_machine(place, "c7", MiB=(printed.shown(published["memory"][problem], 0), peaks))
    for one in published["text"]:
        yield of_a_machine(Place(one["place"], one["row"], "times faster"), one["artefact"],
                           **{end: (text, []) for end, text in one["times"].items()})  # fmt: skip


def ends_of_the_figure(context: Context, published: Mapping[str, Any]) -> Iterator[PublishedValue]:
    """Where the curves of Fig. 1 end, and its dashed best loss, which we take for DP-GD's."""
    rows, planted = rows_of_ends(context), context.rows(PLANTED, timed=0, epsilon=1.0)
    for name, end in published["fig1"]["ends"].items():
        # Without a switch: at ε = 1 the published ρ is that of bs16, so runs at a proven ε are the published ones.
        own = select(rows, algorithm=name)["excess"].tolist()
        yield PublishedValue(
            Place("Fig. 1", look(name).label, "best loss (dashed)" if name == "dp-gd" else "end"),
            "fig1",
            (Number("excess loss", end, k=published["table2"]["runs"]),),
            {HONEST: {"excess loss": own}} if own else {},
            planted=by_recipe(select(planted, algorithm=name), excess_loss="excess"),
            curve=f"Fig. 1, {name}",
        )


def run_times(context: Context, published: Mapping[str, Any]) -> Iterator[PublishedValue]:
    """The 24 printed ratios of Tables 1 and 4, and DP-Newton's seconds; ours at the T tuned by the published rule."""
    for name, figure in FIGURE.items():
        place = functools.partial(Place, name.replace("table", "Table "))
        ours = frames.records(select(timed_ratios(context, name), rule=PUBLISHED.name), Timed)
        for problem in context.problems(figure):
            here = [one for one in ours if one.problem == problem]
            for epsilon, theirs in zip(published["epsilon"], published["ratio"].get(problem, ()), strict=False):
                ratios = [one.ratio for one in here if one.epsilon == epsilon and not np.isnan(one.ratio)]
                yield of_a_machine(place(problem_title(problem), f"ε = {epsilon:g}"), name,
                                   **{"times faster": (printed.shown(theirs, 2), ratios)})  # fmt: skip
            seconds = [one.dp_newton_seconds for one in here if not np.isnan(one.dp_newton_seconds)]
            ends: tuple[Callable[[Any], float], ...] = (min, max)
            both = zip(("least", "most"), published["seconds"].get(problem, ()), ends, strict=False)
            texts = {word: (f"{theirs:g}", [end(seconds)] if seconds else []) for word, theirs, end in both}
            if texts:
                yield of_a_machine(place(problem_title(problem), "seconds"), name, **texts)


def of_a_machine(place: Place, artefact: str, **numbers: tuple[str, Sequence[float]]) -> PublishedValue:
    """A value of seconds or bytes: quantity=(as printed, ours)."""
    ours = {quantity: values for quantity, (_, values) in numbers.items() if len(values)}
    texts = tuple(Number(quantity, text) for quantity, (text, _) in numbers.items())
    return PublishedValue(place, artefact, texts, {HONEST: ours} if ours else {}, run_time=True)


def fixed(place: Place, artefact: str, theirs: Sequence[float], ours: Sequence[float]) -> PublishedValue:
    """A value of what no run varies, as a setting or a size; ours where as many are known."""
    names = [f"number {i + 1}" for i in range(len(theirs))]
    numbers = tuple(Number(name, f"{value:g}", FIXED) for name, value in zip(names, theirs, strict=True))
    known = {name: [float(value)] for name, value in zip(names, ours, strict=False)}
    return PublishedValue(place, artefact, numbers, {HONEST: known} if len(ours) == len(theirs) else {},
                not_comparable=NOTHING_VARIES)  # fmt: skip
