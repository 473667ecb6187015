"""The rows of accelerated, as its figures, table and claims read them."""

from __future__ import annotations

import pandas as pd

from dpbench.run import outcomes
from dpbench.study.context import Context
from dpbench.study.statistics import excess, means
from dpbench.study.tuning import expand_settings

ALGORITHMS = ("dp-gd-laplace", "dp-hb", "dp-nag", "dp-masg", "dp-nag-opt", "dp-masg-opt")
FULL_BATCH = 100_000
PRIVACY = "pure ε-DP at ε = 1 (δ = 0, replace-one neighbours, basic composition)"
PUBLIC = "n and the smoothness constant L (which sets the step size c/L) count as public, as in the paper"


def runs_of(context: Context, artefact: str) -> pd.DataFrame:
    """The artefact's finished rows with columns m, c, T_asked and noise_scale; T is what was run (T' for -opt)."""
    rows = context.rows(artefact)
    rows = rows[outcomes.has_result(rows["status"])]
    if rows.empty:
        return rows.assign(m=[], c=[], T_asked=[], noise_scale=[])
    rows = expand_settings(rows).rename(columns={"set.T": "T_asked"})
    return rows.rename(columns={f"set.{name}": name for name in ("m", "c", "noise_scale")})


def final_errors(context: Context, artefact: str, *, pooled: bool = False) -> pd.DataFrame:
    """Mean final F(x_T) - F* over seeds, its standard error and the ε spent, per algorithm, m, c, T_asked and noise.

    pooled: per T run instead of T_asked, since an -opt method that chooses one T' for several T is one method.
    A diverged replicate counts as an infinite error.
    """
    runs = runs_of(context, artefact)
    one, other = ("T", "T_asked") if pooled else ("T_asked", "T")
    by = ["algorithm", "m", "c", one, "noise_scale"]
    table = means(
        runs.assign(excess=excess(runs)), by, least=(other, "min"), epsilon_planned=("epsilon_planned", "max")
    )
    table = table.rename(columns={"least": other})
    return table[[*by, other, "mean", "seeds", "epsilon_planned", "se"]]


def mean_traces(context: Context, artefact: str) -> pd.DataFrame:
    """Mean F(x_t) - F* over seeds and its standard error at every recorded t; the columns of `final_errors`."""
    traces = context.traces(runs_of(context, artefact))
    by = ["algorithm", "m", "c", "T_asked", "noise_scale", "T", "iteration"]
    return means(traces, by).drop(columns="sd")
