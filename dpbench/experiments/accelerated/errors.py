"""The rows of accelerated, as its figures, table and claims read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbench.experiments.tuning import expand_settings

if TYPE_CHECKING:
    import pandas

ALGORITHMS = ("dp-gd-laplace", "dp-hb", "dp-nag", "dp-masg", "dp-nag-opt", "dp-masg-opt")
FULL_BATCH = 100_000
PRIVACY = "pure ε-DP at ε = 1 (δ = 0, replace-one neighbours, basic composition)"
PUBLIC = "as in the paper, n and the smoothness constant L behind the step size c/L count as public"


def runs_of(context, artefact: str) -> pandas.DataFrame:
    """The artefact's finished rows with columns m, c, T_asked and noise_scale; T is what was run (T' for -opt)."""
    rows = context.rows(artefact)
    rows = rows[rows["status"] != "failed"]
    if rows.empty:
        return rows.assign(m=[], c=[], T_asked=[], noise_scale=[])
    rows = expand_settings(rows).rename(columns={"set.T": "T_asked"})
    return rows.rename(columns={f"set.{name}": name for name in ("m", "c", "noise_scale")})


def final_errors(context, artefact: str, *, pooled: bool = False) -> pandas.DataFrame:
    """Mean final F(x_T) - F* over seeds, its standard error and the ε spent, per algorithm, m, c, T_asked and noise.

    pooled: per T run instead of T_asked, since an -opt method that chooses one T' for several T is one method.
    A diverged replicate counts as an infinite error.
    """
    import numpy as np

    runs = runs_of(context, artefact)
    runs = runs.assign(excess=runs["excess"].astype(float).where(runs["status"].ne("diverged"), np.inf))
    by, other = ("T", "T_asked") if pooled else ("T_asked", "T")
    grouped = runs.groupby(["algorithm", "m", "c", by, "noise_scale"], sort=False)
    with np.errstate(invalid="ignore"):
        table = grouped.agg(
            **{other: (other, "min")},
            mean=("excess", "mean"),
            sd=("excess", "std"),
            seeds=("excess", "size"),
            epsilon_spent=("epsilon_spent", "max"),
        ).reset_index()
    return table.assign(se=table["sd"] / np.sqrt(table["seeds"])).drop(columns="sd")


def mean_traces(context, artefact: str) -> pandas.DataFrame:
    """Mean F(x_t) - F* over seeds and its standard error at every recorded t; the columns of `final_errors`."""
    import numpy as np

    traces = context.traces(runs_of(context, artefact))
    by = ["algorithm", "m", "c", "T_asked", "noise_scale", "T", "iteration"]
    with np.errstate(invalid="ignore"):
        table = traces.groupby(by, sort=False)["excess"].agg(["mean", "std", "count"]).reset_index()
    return (
        table.assign(se=table["std"] / np.sqrt(table["count"])).rename(columns={"count": "seeds"}).drop(columns="std")
    )


def seeds_in_words(table: pandas.DataFrame) -> str:
    counts = sorted(set(table["seeds"]))
    return " to ".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]])) if counts else "no"
