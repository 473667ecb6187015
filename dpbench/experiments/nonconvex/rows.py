"""The runs of nonconvex beside the published ones; and which differences to the published runs are on.

A difference is one setting of the algorithm (`dpbench.algorithms.nonconvex_base`), read in the authors' scripts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench.problems import catalogue
from dpbench.study.context import Context, memoised, select
from dpbench.study.paper import Paper
from dpbench.study.power import run_by

PUBLISHED = "published"  # all that the published runs of a method have

PAPER = Paper(__package__)
_NAMES = {one.setting[0]: one.name for one in PAPER.switches}


@functools.cache
def published(problem: str, method: str) -> tuple[str, ...]:
    """The names of the switches that the published runs of a method have, in the order of words.md.

    >>> published("ijcnn-logistic", "dp-tr")
    ('rows as scaled', 'loss before the last step', 'overflow loses the run', 'published stream')
    """
    loss_a = "logistic" in problem
    minibatch = method.endswith("-b")
    # Read in the public scripts, one by one: no rule of the paper says which script has which difference.
    own = {"rows"}
    own |= {"overflow", "stream"} if loss_a else set()
    own |= {"batch_noise", "batch_draw"} if minibatch else {"loss_read"}
    own |= {"search"} if method in ("opt-b", "2opt-b") else set()
    own |= {"hessian_root"} if method.startswith("dp-tr") and not loss_a else set()
    own |= {"stop"} if method in (("opt", "opt-ls") if loss_a else ("opt", "opt-ls", "2opt", "2opt-ls")) else set()
    return tuple(name for setting, name in _NAMES.items() if setting in own)


class LossTable(NamedTuple):
    """A published table of losses, the table of the same runs' Hessian evaluations (0: none), and what was asked.

    alpha: the α that the table ran at; titled: the α in its title.
    """

    table: int
    hessians: int
    problem: str
    alpha: float
    name: str
    titled: float

    @property
    def artefact(self) -> str:
        return f"table{self.table}"

    @property
    def place(self) -> str:
        """The data set, the loss and the target, in the paper's words.

        >>> TARGETS[0].place
        'covertype, loss A, loose target'
        """
        return f"{problem_name(self.problem)}, {self.name} target"

    @property
    def twin(self) -> LossTable:
        """The same loss and target on the other data set."""
        loss = self.problem.partition("-")[2]
        return next(one for one in TARGETS if one.problem.endswith(loss) and one.name == self.name and one != self)


# The titles of Tables 3 and 4 name another α than their runs had: see the table misprints.
TARGETS = (
    LossTable(1, 0, "covertype12-logistic", 0.06, "loose", 0.06),
    LossTable(2, 0, "covertype12-logistic", 0.03, "tight", 0.03),
    LossTable(3, 0, "ijcnn-logistic", 0.06, "loose", 0.04),
    LossTable(4, 0, "ijcnn-logistic", 0.03, "tight", 0.02),
    LossTable(5, 6, "covertype12-sigmoid", 0.04, "loose", 0.04),
    LossTable(7, 8, "covertype12-sigmoid", 0.02, "tight", 0.02),
    LossTable(9, 10, "ijcnn-sigmoid", 0.04, "loose", 0.04),
    LossTable(11, 12, "ijcnn-sigmoid", 0.02, "tight", 0.02),
)
METHODS = ("dp-tr", "dp-tr-b", "opt", "opt-b", "opt-ls", "2opt", "2opt-b", "2opt-ls")
EPSILONS = (0.2, 0.6, 1.0)
LOSSES = {"logistic": "loss A", "sigmoid": "loss B"}
TERMINATED, CRASHED = "terminated", "crashed"
CAP = 2000  # iterations of a run where the grid does not say otherwise
CONFIGURATION = ["problem", "alpha", "algorithm", "epsilon"]


def problem_name(problem: str) -> str:
    """The data set and the loss in the paper's words."""
    data, _, loss = problem.partition("-")
    return f"{data.removesuffix('12')}, {LOSSES[loss]}"


def setting(target: LossTable) -> str:
    """What every caption says of a target's runs."""
    n, (asked, titled) = (
        catalogue.declare(target.problem).n,
        (f"({alpha:.3f}, {math.sqrt(alpha):.3f})" for alpha in (target.alpha, target.titled)),
    )
    other = "" if asked == titled else f"; its title says {titled}, an erratum"
    return PAPER.phrases["setting"].format(n=n, asked=asked, title=other, delta=1 / n)


def most_iterations(context: Context, artefact: str) -> str:
    """The iterations that an artefact's runs at a proven ε may last, whatever their T.

    >>> class Quick:
    ...     def blocks(self, artefact):
    ...         from dpbench.experiments import get
    ...         return get("nonconvex").blocks("full", artefact)
    >>> most_iterations(Quick(), "table1")
    '2,000'
    """
    blocks = context.blocks(artefact)
    return f"{max(int(block.settings.get('cap', CAP)) for block in blocks if 'rows' not in block.settings):,}"


def finished(context: Context, artefact: str, **equal: Any) -> pd.DataFrame:
    """The artefact's rows with a result: `Paper.rows`, and alpha and variant.

    variant: "" for a run at a proven ε, `PUBLISHED` where all is on that the method's published runs have, else `on`.
    equal: columns that are kept, as timed=0.
    """
    rows = select(PAPER.rows(context, artefact), **equal)
    names = zip(rows["problem"], run_by(context, rows["algorithm"]), strict=True)
    whole = [" + ".join(published(problem, algorithm)) for problem, algorithm in names]
    variant = rows["on"].where((rows["on"] != whole) | rows["on"].eq(""), PUBLISHED)
    alpha = rows["set.alpha"] if len(rows) else pd.Series(dtype=float)
    return rows.assign(**{"set.alpha": alpha}, alpha=alpha.astype(float), variant=variant)


class Ours(NamedTuple):
    """A row of `aggregated`; NaN where there are no runs."""

    algorithm: str
    epsilon: float
    seeds: float
    terminated: float
    crashed: float
    loss: float
    loss_std: float
    iterations: float
    iterations_std: float
    hessian_evaluations: float
    hessian_evaluations_std: float
    T: float
    seconds: float
    seconds_std: float


class Beside(NamedTuple):
    """What the paper has beside a row of `compared`; NaN, or None, where it has nothing."""

    paper_mean: float
    paper_std: float
    paper_runs: float
    paper_terminated: bool | None


class Published(NamedTuple):
    """A row of `published_table`."""

    table: int
    problem: str
    alpha: float
    algorithm: str
    epsilon: float
    quantity: str
    mean: float
    std: float
    runs: int
    seconds: float
    seconds_std: float
    terminated: bool


def aggregated(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per configuration: mean and std (ddof = 1) of what the runs ended with, over those that left a row.

    rows: of `finished`, timed ones included. seeds: of all runs; terminated, capped, crashed: how many ended so.
    `seconds` is NaN unless every seed was timed alone.
    """
    named = {"objective": "loss", "hessian_evaluations": "hessian_evaluations", "iterations": "iterations", "T": "T"}
    rows = rows[[*CONFIGURATION, "seed", "timed", "seconds", "ending", *named]]
    untimed, timed = rows[rows["timed"].eq(0)], rows[rows["timed"].gt(0)]
    ended = untimed.astype(dict.fromkeys(named, float)).assign(
        terminated=untimed["ending"].eq(TERMINATED),
        capped=untimed["ending"].str.endswith("(cap)").astype(bool),
        crashed=untimed["ending"].eq(CRASHED),
    )
    ended.loc[ended["crashed"].to_numpy(), "objective"] = np.nan  # a lost run has no loss, but counts as a seed
    sums = {name: (name, "sum") for name in ("terminated", "capped", "crashed")}
    averages = {
        f"{name}{end}": (column, how) for column, name in named.items() for end, how in (("", "mean"), ("_std", "std"))
    }
    grouped = ended.groupby(CONFIGURATION, sort=False).agg(seeds=("seed", "size"), **sums, **averages)
    timed = timed.assign(seconds=timed["seconds"].astype(float))
    clock = timed.groupby([*CONFIGURATION, "seed"], sort=False)["seconds"].median()
    spread = clock.groupby(level=CONFIGURATION, sort=False).agg(["mean", "std", "size"])
    spread = spread.rename(columns={"mean": "seconds", "std": "seconds_std", "size": "timed_seeds"})
    table = pd.concat([grouped, spread], axis=1).reset_index()
    # A mean over some of the seeds would mix runs alone on the machine with runs beside others.
    few = table["timed_seeds"].isna()
    table.loc[few, ["seconds", "seconds_std"]] = np.nan
    return table.drop(columns=["timed_seeds", "T_std"])


def published_table(published: Mapping[str, Any]) -> pd.DataFrame:
    """The published tables as one row per (table, method, ε): mean, std, runs, seconds; × as terminated = False.

    runs: those that left a row; none where the paper prints <NA>, and then mean and std are NaN.
    """
    rows = []
    # "left" counts the runs behind a printed number: <NA> is printed where overflow lost all but one.
    for name, table in published.items():
        if not name.startswith("table"):
            continue
        for method in METHODS:
            left = table.get("left", {}).get(method, [table.get("runs", published["runs"])] * len(published["epsilon"]))
            for epsilon, values, runs in zip(published["epsilon"], table[method], left, strict=True):
                mean, std, *seconds = values or [math.nan, math.nan]
                clock, clock_std = seconds or (math.nan, math.nan)
                at = (int(name.removeprefix("table")), table["problem"], table["alpha"], method, epsilon)
                value = table.get("value", "loss")
                rows.append(Published(*at, value, mean, std, runs, clock, clock_std, bool(seconds)))
    return pd.DataFrame(rows, columns=Published._fields)


@memoised
def compared(context: Context, target: LossTable, quantity: str = "loss", variant: str = "") -> pd.DataFrame:
    """Our runs of a target beside the published ones (columns `paper_…`, NaN where there is none), in table order.

    A row for each (method, ε) that the profile's grid asks for, with or without runs.

    variant: whose rows; "" for those that keep their ε.
    """
    on = ["algorithm", "epsilon"]
    order = pd.DataFrame(methods_and_epsilons(context, target), columns=on)
    rows = finished(context, target.artefact)
    ours = aggregated(select(rows.assign(problem=target.problem), variant=variant))
    paper = published_table(context.experiment.published())
    paper = select(paper, alpha=target.alpha, problem=target.problem, quantity=quantity)
    paper = paper.drop(columns=["problem", "alpha", "quantity", "table"])
    paper = paper.rename(columns={name: f"paper_{name}" for name in paper if name not in on})
    ours = order.merge(ours.drop(columns=["problem", "alpha"]), on=on, how="left")
    table = ours.merge(paper, on=on, how="left")
    return table.assign(all_ended=table["terminated"].eq(table["seeds"]))


def methods_and_epsilons(context: Context, target: LossTable) -> list[tuple[str, float]]:
    """(method, ε) of a target's grid, in table order."""
    there = {(a, e) for _, a, e in context.combinations(target.artefact)}
    return [(a, e) for a in METHODS for e in EPSILONS if (a, e) in there]
