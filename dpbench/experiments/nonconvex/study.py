"""What tables, figures and claims share: the targets, our rows cell by cell, the published ones, their distance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpbench import datasets
from dpbench.experiments.tuning import expand_settings
from dpbench.problems import catalogue

if TYPE_CHECKING:
    import pandas


class Target(NamedTuple):
    """A published table of losses, the table of the same runs' Hessian evaluations (0: none), and what was asked."""

    table: int
    hessians: int
    problem: str
    alpha: float
    name: str

    @property
    def artefact(self) -> str:
        return f"table{self.table}"


TARGETS = (
    Target(1, 0, "covertype12-logistic", 0.06, "loose"),
    Target(2, 0, "covertype12-logistic", 0.03, "tight"),
    Target(3, 0, "ijcnn-logistic", 0.04, "loose"),
    Target(4, 0, "ijcnn-logistic", 0.02, "tight"),
    Target(5, 6, "covertype12-sigmoid", 0.04, "loose"),
    Target(7, 8, "covertype12-sigmoid", 0.02, "tight"),
    Target(9, 10, "ijcnn-sigmoid", 0.04, "loose"),
    Target(11, 12, "ijcnn-sigmoid", 0.02, "tight"),
)
METHODS = ("dp-tr", "dp-tr-b", "opt", "opt-b", "opt-ls", "2opt", "2opt-b", "2opt-ls")
EPSILONS = (0.2, 0.6, 1.0)
LOSSES = {"logistic": "loss A", "sigmoid": "loss B"}
TERMINATED = "terminated"
CAP = 2000  # iterations of a run where the grid does not say otherwise
CELL = ["problem", "alpha", "algorithm", "epsilon"]
APART = 2.0  # standard errors beyond which a row differs from the published one
QUANTITIES = ("loss", "hessian_evaluations")
ROUNDING = {"loss": 5e-4, "hessian_evaluations": 0.05}  # half a unit of the last published digit


def place(target: Target) -> str:
    """ "covertype, loss A, loose target".

    >>> place(TARGETS[0])
    'covertype, loss A, loose target'
    """
    return f"{problem_name(target.problem)}, {target.name} target"


def problem_name(problem: str) -> str:
    """The data set and the loss in the paper's words."""
    data, _, loss = problem.partition("-")
    return f"{data.removesuffix('12')}, {LOSSES[loss]}"


def setting(target: Target) -> str:
    """What every caption says of a target's runs."""
    n = datasets.describe(catalogue.dataset_of(target.problem)).rows
    return (
        f"n = {n:,}, (ε_g, ε_H) = ({target.alpha:.3f}, {math.sqrt(target.alpha):.3f}), replace-one neighbours, "
        f"δ = 1/n = {1 / n:.3g}, zCDP composed over T iterations and converted as in the text (minibatches: RDP of "
        "sampling without replacement, m = ⌊n/50⌋)"
    )


def most_iterations(context, artefact: str) -> str:
    """The iterations that an artefact's runs may last, whatever their T.

    >>> class Quick:
    ...     def blocks(self, artefact):
    ...         from dpbench.experiments import get
    ...         return get("nonconvex").blocks("full", artefact)
    >>> most_iterations(Quick(), "table1")
    '2,000'
    """
    caps = sorted({int(block.settings.get("cap", CAP)) for block in context.blocks(artefact)})
    return " or ".join(f"{cap:,}" for cap in caps)


def finished(rows: pandas.DataFrame) -> pandas.DataFrame:
    """The rows that ran, with a column `alpha` and one `set.<name>` per setting; the failed ones are left out."""
    rows = rows[rows["status"].ne("failed")]
    rows = rows.assign(**{"set.alpha": []}) if rows.empty else expand_settings(rows)
    return rows.assign(alpha=rows["set.alpha"].astype(float))


def cells(rows: pandas.DataFrame, by: list[str] = CELL) -> pandas.DataFrame:
    """One row per cell: mean and std (ddof = 1) over seeds of what the runs ended with, and how many terminated.

    rows: of `finished`, timed ones included. `seconds` is NaN unless every seed was timed alone.
    """
    import pandas as pd

    untimed, timed = rows[rows["timed"].eq(0)], rows[rows["timed"].gt(0)]
    ended = untimed.assign(
        terminated=untimed["status"].eq(TERMINATED), capped=untimed["status"].str.endswith("(cap)").astype(bool)
    )
    grouped = ended.groupby(by, sort=False)
    parts = [grouped.agg(seeds=("seed", "size"), terminated=("terminated", "sum"), capped=("capped", "sum"))]
    named = {"objective": "loss", "hessian_evaluations": "hessian_evaluations", "iterations": "iterations", "T": "T"}
    for column, name in named.items():
        values = ended.assign(value=ended[column].astype(float)).groupby(by, sort=False)["value"]
        parts.append(values.agg(["mean", "std"]).rename(columns={"mean": name, "std": f"{name}_std"}))
    clock = timed.assign(seconds=timed["seconds"].astype(float)).groupby([*by, "seed"], sort=False)["seconds"].median()
    clock = clock.groupby(level=by, sort=False).agg(["mean", "std", "size"])
    parts.append(clock.rename(columns={"mean": "seconds", "std": "seconds_std", "size": "timed_seeds"}))
    table = pd.concat(parts, axis=1).reset_index()
    partial = table["timed_seeds"].ne(table["seeds"])
    table.loc[partial, ["seconds", "seconds_std"]] = np.nan
    return table.drop(columns=["timed_seeds", "T_std"])


def published_cells(published: dict) -> pandas.DataFrame:
    """The published tables as one row per (table, method, ε): mean, std, runs, seconds; × as terminated = False.

    A cell that the paper prints as <NA> has no row.
    """
    import pandas as pd

    rows = []
    for name, table in published.items():
        if not name.startswith("table"):
            continue
        for method in METHODS:
            for epsilon, values in zip(published["epsilon"], table[method], strict=True):
                if values:
                    seconds = values[2:] or [math.nan, math.nan]
                    rows.append({
                        "table": int(name.removeprefix("table")), "problem": table["problem"], "alpha": table["alpha"],
                        "algorithm": method, "epsilon": epsilon, "quantity": table.get("value", "loss"),
                        "mean": values[0], "std": values[1], "runs": table.get("runs", published["runs"]),
                        "seconds": seconds[0], "seconds_std": seconds[1], "terminated": len(values) == 4,
                    })  # fmt: skip
    return pd.DataFrame(rows)


def compared(context, target: Target, quantity: str = "loss") -> pandas.DataFrame:
    """Our cells of a target beside the published ones (columns `paper_…`, NaN where there is none), in table order.

    A row for each (method, ε) that the profile's grid asks for, with or without runs.

    apart: (ours - published)/standard error, of two means, published digits' rounding included.
    same_end: whether all our seeds terminated where the paper's did and not all where it prints ×.
    """
    import pandas as pd

    on = ["algorithm", "epsilon"]
    asked = {(a, e) for block in context.blocks(target.artefact) for a in block.algorithms for e in block.epsilon}
    order = pd.DataFrame([(a, e) for a in METHODS for e in EPSILONS if (a, e) in asked], columns=on)
    ours = cells(finished(context.rows(target.artefact)))
    paper = published_cells(context.experiment.published())
    paper = paper[paper["alpha"].eq(target.alpha) & paper["problem"].eq(target.problem)]
    paper = paper[paper["quantity"].eq(quantity)].drop(columns=["problem", "alpha", "quantity", "table"])
    paper = paper.rename(columns={name: f"paper_{name}" for name in paper if name not in on})
    ours = order.merge(ours.drop(columns=["problem", "alpha"]), on=on, how="left")
    table = ours.merge(paper, on=on, how="left")
    variance = table[f"{quantity}_std"] ** 2 / table["seeds"] + table["paper_std"] ** 2 / table["paper_runs"]
    apart = (table[quantity] - table["paper_mean"]) / np.sqrt(variance + ROUNDING[quantity] ** 2 / 3)
    all_ended = table["terminated"].eq(table["seeds"])
    known = table["seeds"].notna() & table["paper_mean"].notna()
    same_end = all_ended.eq(table["paper_terminated"].eq(True)).astype(object).where(known, None)
    return table.assign(apart=apart, all_ended=all_ended, same_end=same_end)
