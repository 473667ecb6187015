"""second_order's rows at their tuned T, and what an iteration costs: one rule behind every figure, table and claim."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench.run import outcomes
from dpbench.run.row import setting, settings_of
from dpbench.study.context import Context, select
from dpbench.study.paper import Paper
from dpbench.study.style import problem_title
from dpbench.study.tuning import best

NEWTON = "dp-newton-hess-clip"
VARIANTS = ("dp-newton-hess-clip", "dp-newton-hess-add", "dp-newton-qu-clip", "dp-newton-qu-add")
PAPER = Paper(__package__)


def tuned(rows: pd.DataFrame) -> pd.DataFrame:
    """The row at the best T of each (problem, algorithm, ε), held out: see `study.tuning`."""
    return best(rows, split="halves")


def both(context: Context) -> pd.DataFrame:
    """The untimed rows of Figs. 2 and 6 together."""
    return pd.concat([context.rows(artefact, timed=0) for artefact in ("fig2", "fig6")])


def at_zero(rows: pd.DataFrame) -> pd.Series:
    """The excess loss of w = 0, log 2 - f*, by problem: a release of nothing."""
    known = rows.dropna(subset=["excess", "objective"])
    known = known[np.isfinite(known["excess"])]
    # The objective is of the last iterate: its median over runs leaves out rounding, and runs thrown far off.
    optimum: pd.Series = (known["objective"] - known["excess"]).groupby(known["problem"]).median()
    return math.log(2) - optimum


class Run(NamedTuple):
    """What decides how long a run takes."""

    problem: str
    algorithm: str
    T: float
    settings: str


def run_seconds(
    context: Context, problem: str, algorithm: str, T: float, settings: str = "{}"
) -> tuple[np.ndarray, bool]:
    """Seconds of T iterations alone, one per repetition, and whether runs of just this T were timed.

    Of those at the nearest T otherwise, in proportion; at any ε and with any other settings: nothing but T and the
    rates of sampling changes the work. Of other rates only where those of `settings` (JSON) were not timed: then they
    are no runs of just this T. Empty without any.
    """
    timed = select(context.runs, problem=problem, algorithm=algorithm)
    timed = timed[(timed["timed"] > 0) & outcomes.has_result(timed["status"])]
    # Measuring memory samples the process while it runs, which takes time of its own.
    timed = timed[setting(timed, "measure_memory").ne(True)]
    if timed.empty:
        return np.empty(0), False
    rates = _rates(settings)
    same = np.array([not rates or _rates(one) == rates for one in timed["settings"]])
    timed = timed[same] if same.any() else timed
    # Near on a logarithmic scale: fixed costs weigh most on short runs.
    gaps = np.abs(np.log(timed["T"].astype(float) / T))
    nearest = timed[gaps <= gaps.min() + 1e-12]
    exact = bool(gaps.min() < 1e-12 and same.any())
    return (nearest["seconds"] * (T / nearest["T"])).to_numpy(dtype=float), exact


def processors(context: Context, artefact: str) -> str:
    """On which processors the seconds of an artefact were measured, and for which data sets two are mixed."""
    timed = select(context.runs, problem=context.problems(artefact)).query("timed > 0")
    named = timed["environment"].fillna("").str.extract(r"; ([^;]*CPUs)", expand=False).fillna("not recorded")
    several = named.groupby(timed["problem"]).nunique() > 1
    mixed = [problem_title(str(problem)) for problem in several.index[several]]
    told = " and ".join(sorted(named.unique())) or "none, as no run is timed"
    return told + (f", mixed on {', '.join(mixed)}" if mixed else "")


def _rates(settings: str) -> dict[str, float]:
    return {name: value for name, value in settings_of(settings).items() if name.endswith("rate")}
