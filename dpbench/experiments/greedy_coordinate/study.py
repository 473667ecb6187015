"""The rows of greedy_coordinate, as its figures, tables and claims read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dpbench.experiments.base import select
from dpbench.experiments.tuning import expand_settings
from dpbench.report.style import Look, look

if TYPE_CHECKING:
    import pandas

ALGORITHMS = ("dp-gcd", "dp-cd", "dp-sgd-1")
RULES = ("dp-gcd", "dp-gcd-gs-s", "dp-gcd-gs-q")  # GS-r is dp-gcd's own
COVERED = "dp-sgd-1-rdp"  # dp-sgd-1 under an accounting that covers it: how the rows read from here on call it
PUBLISHED = "dp-gcd-published"  # half the selection noise, and for L1 on the gradient: not private at ε
TITLES = {
    "log1": "log1 (logistic + L2)",
    "log2": "log2 (logistic + L2)",
    "mtp": "mtp (squared + L2)",
    "mtp-qsar": "mtp-qsar (squared + L2)",
    "madelon": "madelon (logistic + L2)",
    "square": "square (squared + L1)",
    "california": "california (squared + L1)",
    "dorothea": "dorothea (logistic + L1)",
    "madelon-l1": "madelon (logistic + L1)",
}
PAPER = ("log1", "log2", "mtp", "madelon", "square", "california", "dorothea", "madelon-l1")  # Fig. 1 (a) to (h)
L1 = ("square", "california", "dorothea", "madelon-l1")
STAND_INS = {"mtp": "mtp-qsar"}  # a near substitute, used where the data set itself is absent

PRIVACY = "ε = 1, δ = 1/n², replace-one neighbours"
ACCOUNTING = (
    "DP-GCD by eq. (2) (advanced composition), DP-CD and DP-SGD by RDP, DP-SGD † as the paper accounts for it (RDP of "
    "Poisson sampling: an add/remove guarantee that does not cover the one uniform row a step runs on, so under "
    "replace-one its runs spend more than ε = 1 and count as not private)"
)
TUNING = (
    "passes, step size and clipping threshold chosen together, by the lowest mean over the seeds of those of the "
    "grid's runs that are there, which share their random numbers and are drawn again here; this tuning and the "
    "constants M_j, λ and the standardisation look at the data and are not private, as in the paper"
)


def problems(rows: pandas.DataFrame, names=PAPER) -> list[str]:
    """`names`, each replaced by its stand-in where only that has rows."""
    there = set(rows["problem"])
    return [STAND_INS[name] if name in STAND_INS and name not in there else name for name in names]


def published_name(problem: str) -> str:
    """The paper's name of a problem."""
    return next((name for name, stand_in in STAND_INS.items() if stand_in == problem), problem)


def published_method(algorithm: str) -> str:
    """The paper's method that a variant of ours stands beside."""
    return {COVERED: "dp-sgd-1", PUBLISHED: "dp-gcd"}.get(algorithm, algorithm)


def tuned_runs(context, artefact: str, *, timed: bool = False) -> pandas.DataFrame:
    """The runs at the tuned settings, with `set.*` columns, f* as `optimum` and (f - f*)/f* as `relative`.

    A diverged run has an infinite error. dp-sgd-1 is called `COVERED` where its accounting is rdp, not the paper's.
    """
    import numpy as np

    rows = context.rows(artefact)
    covered = rows["algorithm"].eq("dp-sgd-1") & rows["accounting"].eq("rdp")
    rows = rows.assign(algorithm=rows["algorithm"].mask(covered, COVERED))
    rows = rows[rows["sweep"].isna() & rows["status"].ne("failed") & rows["algorithm"].ne("probe-optimum")]
    rows = rows[rows["timed"].gt(0) == timed]
    if rows.empty:
        return rows.assign(relative=[], optimum=[])
    rows = expand_settings(rows)
    excess = rows["excess"].astype(float).where(rows["status"].ne("diverged"), np.inf)
    optimum = (rows["objective"] - rows["excess"]).groupby(rows["problem"]).transform("median")
    return rows.assign(optimum=optimum, relative=excess / optimum)


def finals(runs: pandas.DataFrame) -> pandas.DataFrame:
    """One row per (problem, algorithm): mean, se, min and max of the relative error, seeds, and the chosen settings."""
    import numpy as np

    columns = ["relative", "support_correct", "support_wrong", "seconds"]
    if runs.empty:
        return runs.assign(mean=[], se=[], seeds=[])[["problem", "algorithm", "mean", "se", "seeds"]]
    grouped = runs.groupby(["problem", "algorithm"], sort=False)
    with np.errstate(invalid="ignore"):
        table = grouped["relative"].agg(["mean", "std", "min", "max", "size"]).rename(columns={"size": "seeds"})
    table["se"] = table.pop("std") / np.sqrt(table["seeds"])
    for name in columns[1:]:
        table[name] = grouped[name].mean()
    for name in ("T", "epsilon_spent", "private", "set.passes", "set.step", "set.clip"):
        table[name] = grouped[name].first()
    return table.reset_index()


def curves(context, runs: pandas.DataFrame) -> pandas.DataFrame:
    """(problem, algorithm, iteration): passes, seconds, and mean, min and max over seeds of the relative error."""
    import numpy as np

    if runs.empty:
        return runs.assign(iteration=[], passes=[], mean=[], low=[], high=[], seeds=[])
    traces = context.traces(runs)
    with np.errstate(invalid="ignore"):
        traces = traces.assign(relative=(traces["excess"] / traces["optimum"]).fillna(np.inf))
    grouped = traces.groupby(["problem", "algorithm", "iteration"], sort=False)
    return grouped.agg(
        passes=("passes", "mean"),
        seconds=("seconds", "median"),
        mean=("relative", "mean"),
        low=("relative", "min"),
        high=("relative", "max"),
        seeds=("relative", "size"),
    ).reset_index()


class Facts(NamedTuple):
    """What the probe of a problem's optimum has measured (see `algorithms.probes.OptimumProbe`)."""

    n: int
    d: int
    weights: dict[str, float]
    M: tuple[float, float, float]  # mean, least, largest
    optimum: float
    start: float  # f(0)/f* - 1
    nonzero: list[float]  # |w*_j| of the non-zero coordinates, falling

    def quasi_sparsity(self, tau: int = 5) -> float:
        """α such that w* is (α, τ)-quasi-sparse: its (τ + 1)-st largest |w*_j|."""
        return self.nonzero[tau] if len(self.nonzero) > tau else 0.0


def facts(context, artefact: str) -> dict[str, Facts]:
    """problem → what is known of it and its optimum."""
    import json

    found = {}
    for row in select(context.rows(artefact), algorithm="probe-optimum", status="done").itertuples():
        notes = json.loads(row.notes)
        optimum = row.objective - row.excess
        found[row.problem] = Facts(
            notes["n"], notes["d"], notes["weights"], tuple(notes["M"]), optimum, notes["start"] / optimum - 1,
            [float(v) for v in row.values],
        )  # fmt: skip
    return found


def gaps(context, artefact: str, runs: pandas.DataFrame, names=PAPER, algorithms=ALGORITHMS) -> list[str]:
    """A line per (problem, algorithm) without rows."""
    there = set(zip(runs["problem"], runs["algorithm"], strict=True))
    missing = [
        f"{problem}, {algorithm}: {context.command(artefact)}"
        for problem in problems(runs, names)
        for algorithm in algorithms
        if (problem, algorithm) not in there
    ]
    absent = [name for name in names if name in STAND_INS and name not in set(runs["problem"])]
    return missing + [f"{name}: {STAND_INS[name]} stands in; dpbench fetch {name}" for name in absent]


def label(algorithm: str) -> str:
    """The algorithm's name in tables and legends, marked where its runs do not keep the ε asked for."""
    style = style_of(algorithm)
    return f"{style.label} †" if algorithm == "dp-sgd-1" else style.legend


def style_of(algorithm: str) -> Look:
    """How a figure draws it: dashed where its runs do not keep the ε asked for."""
    if algorithm == COVERED:
        return look("dp-sgd-1")
    return look(algorithm)._replace(private=False) if algorithm == "dp-sgd-1" else look(algorithm)


def seeds_in_words(table: pandas.DataFrame) -> str:
    counts = sorted({int(n) for n in table["seeds"]})
    return " to ".join(str(n) for n in dict.fromkeys([counts[0], counts[-1]])) if counts else "no"
