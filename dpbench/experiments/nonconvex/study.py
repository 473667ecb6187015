"""What tables, figures and claims share: the targets, our rows cell by cell, the published ones beside."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench import algorithms
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Entry, Gaussian, WithoutReplacement
from dpbench.problems import catalogue
from dpbench.run import outcomes
from dpbench.study.context import Context, kept, select
from dpbench.study.tuning import expand_settings
from dpbench.study.welch import DIFFERS, EXPLAINED, MATCH, NO_DATA, NOT_COMPARABLE, Match, compare


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
COLUMNS = {"loss": "objective", "hessian_evaluations": "hessian_evaluations"}
ROUNDING = {"loss": 5e-4, "hessian_evaluations": 0.05}  # half a unit of the last published digit
# Equivalence with a published mean: a loss within 5 %, a count within one evaluation; where no difference is seen, a
# loss within 10 % (five runs on either side seldom tell more) and a count within a factor of two.
MARGINS = {
    "loss": {"margin": 0.05, "wider": 0.1},
    "hessian_evaluations": {"margin": 0.05, "least": 1.0, "wider": 1.0},
    "seconds": {"margin": 0.1, "wider": 0.5},  # of a ratio
}
END = "end"  # the quantity that is × or not


class Variant(NamedTuple):
    """Runs that do what the published ones did. known: from the authors' code; else a fit, which explains nothing."""

    name: str
    settings: dict[str, Any]
    known: bool


VARIANTS = (
    Variant("published code", {"calibration": "as-published-code", "noise": 1.0}, True),
    Variant("published code, half the noise", {"calibration": "as-published-code", "noise": 0.5}, False),
)


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
    n = catalogue.declare(target.problem).n
    return (
        f"n = {n:,}, (ε_g, ε_H) = ({target.alpha:.3f}, {math.sqrt(target.alpha):.3f}), replace-one neighbours, "
        f"δ = 1/n = {1 / n:.3g}, zCDP composed over T iterations and converted as in the text (minibatches: RDP of "
        "sampling without replacement, m = ⌊n/50⌋)"
    )


def most_iterations(context: Context, artefact: str) -> str:
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


def finished(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that ran, with a column `alpha` and one `set.<name>` per setting; the failed ones are left out.

    variant: the name of one of `VARIANTS`, "" for a run that keeps its ε.
    """
    rows = rows[outcomes.has_result(rows["status"])]
    rows = rows.assign(**{"set.alpha": []}) if rows.empty else expand_settings(rows)
    default = {"calibration": "private", "noise": 1.0}
    given = {k: rows[f"set.{k}"].fillna(v) if f"set.{k}" in rows else v for k, v in default.items()}
    rows = rows.assign(alpha=rows["set.alpha"].astype(float), variant="", **given)
    for one in VARIANTS:
        its = rows["calibration"].eq(one.settings["calibration"]) & rows["noise"].eq(one.settings["noise"])
        rows.loc[its, "variant"] = one.name
    return rows.drop(columns=list(given))


def cells(rows: pd.DataFrame, by: list[str] = CELL) -> pd.DataFrame:
    """One row per cell: mean and std (ddof = 1) over seeds of what the runs ended with, and how many terminated.

    rows: of `finished`, timed ones included. `seconds` is NaN unless every seed was timed alone.
    """
    named = {"objective": "loss", "hessian_evaluations": "hessian_evaluations", "iterations": "iterations", "T": "T"}
    rows = rows[[*by, "seed", "timed", "seconds", "ending", *named]]
    untimed, timed = rows[rows["timed"].eq(0)], rows[rows["timed"].gt(0)]
    ended = untimed.astype(dict.fromkeys(named, float)).assign(
        terminated=untimed["ending"].eq(TERMINATED), capped=untimed["ending"].str.endswith("(cap)").astype(bool)
    )
    grouped = ended.groupby(by, sort=False)
    parts = [grouped.agg(seeds=("seed", "size"), terminated=("terminated", "sum"), capped=("capped", "sum"))]
    for column, name in named.items():
        parts.append(grouped[column].agg(["mean", "std"]).rename(columns={"mean": name, "std": f"{name}_std"}))
    clock = timed.assign(seconds=timed["seconds"].astype(float)).groupby([*by, "seed"], sort=False)["seconds"].median()
    clock = clock.groupby(level=by, sort=False).agg(["mean", "std", "size"])
    parts.append(clock.rename(columns={"mean": "seconds", "std": "seconds_std", "size": "timed_seeds"}))
    table = pd.concat(parts, axis=1).reset_index()
    partial = table["timed_seeds"].ne(table["seeds"])
    table.loc[partial, ["seconds", "seconds_std"]] = np.nan
    return table.drop(columns=["timed_seeds", "T_std"])


def published_cells(published: dict) -> pd.DataFrame:
    """The published tables as one row per (table, method, ε): mean, std, runs, seconds; × as terminated = False.

    A cell that the paper prints as <NA> has no row.
    """
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


@kept
def compared(context: Context, target: Target, quantity: str = "loss", variant: str = "") -> pd.DataFrame:
    """Our cells of a target beside the published ones (columns `paper_…`, NaN where there is none), in table order.

    A row for each (method, ε) that the profile's grid asks for, with or without runs.

    variant: whose rows; "" for those that keep their ε.
    apart: (ours - published)/standard error, of two means, published digits' rounding included.
    """
    on = ["algorithm", "epsilon"]
    order = pd.DataFrame(asked(context, target), columns=on)
    ours = cells(select(finished(context.rows(target.artefact)), variant=variant))
    paper = published_cells(context.experiment.published())
    paper = select(paper, alpha=target.alpha, problem=target.problem, quantity=quantity)
    paper = paper.drop(columns=["problem", "alpha", "quantity", "table"])
    paper = paper.rename(columns={name: f"paper_{name}" for name in paper if name not in on})
    ours = order.merge(ours.drop(columns=["problem", "alpha"]), on=on, how="left")
    table = ours.merge(paper, on=on, how="left")
    variance = table[f"{quantity}_std"] ** 2 / table["seeds"] + table["paper_std"] ** 2 / table["paper_runs"]
    apart = (table[quantity] - table["paper_mean"]) / np.sqrt(variance + ROUNDING[quantity] ** 2 / 3)
    return table.assign(apart=apart, all_ended=table["terminated"].eq(table["seeds"]))


def asked(context: Context, target: Target) -> list[tuple[str, float]]:
    """(method, ε) of a target's grid, in table order."""
    there = {(a, e) for block in context.blocks(target.artefact) for a in block.algorithms for e in block.epsilon}
    return [(a, e) for a in METHODS for e in EPSILONS if (a, e) in there]


@kept
def judged(context: Context, target: Target) -> pd.DataFrame:
    """Every published value of a target and of its Hessian table beside ours: loss, count, and × or not.

    word: "match" for ours; "explained" where a known variant matches instead; else what ours is, see `study.welch`.
    variant: the first variant that matches where ours does not. ours, theirs (the variant's): means, or the share of
    seeds that terminated; numbers: what was compared.
    """
    rows = finished(context.rows(target.artefact, timed=0))
    paper = published_cells(context.experiment.published())
    paper = paper[paper["table"].isin([target.table, target.hessians])]
    there, found = set(asked(context, target)), []
    ended = dict(list(rows.groupby(["algorithm", "epsilon", "variant"])))
    for cell in paper.itertuples():
        if (cell.algorithm, cell.epsilon) not in there:
            continue
        mine = {name: ended.get((cell.algorithm, cell.epsilon, name), rows[:0]) for name in NAMES}
        for quantity in (cell.quantity, *([END] if cell.quantity == "loss" else [])):
            ours, match = value_and_match(mine[""], cell, quantity)
            word, numbers, other, theirs = *match, None, math.nan
            if word != MATCH and ours == ours:  # not without rows of ours
                tried = ((one, *value_and_match(mine[one.name], cell, quantity)) for one in VARIANTS)
                other, theirs, match = next((each for each in tried if each[2].word == MATCH), (None, math.nan, match))
            if other:
                word = EXPLAINED if other.known else word
                numbers += f"; {other.name}: {match.numbers}"
            found.append({
                "table": cell.table, "algorithm": cell.algorithm, "epsilon": cell.epsilon, "quantity": quantity,
                "paper": float(cell.terminated) if quantity == END else cell.mean, "ours": ours, "word": word,
                "variant": other.name if other else "", "theirs": theirs,
                "numbers": numbers,
            })  # fmt: skip
    return pd.DataFrame(found)


NAMES = ("", *(one.name for one in VARIANTS))


def value_and_match(rows: pd.DataFrame, cell: Any, quantity: str) -> tuple[float, Match]:
    """The mean over the rows of a cell, and whether it is the published one."""
    if rows.empty:
        return math.nan, Match(NO_DATA, "no rows")
    if quantity != END:
        values = rows[COLUMNS[quantity]].astype(float)
        return values.mean(), compare(values, cell.mean, cell.std, cell.runs, **MARGINS[quantity])
    ended = rows["ending"].eq(TERMINATED)
    word = MATCH if bool(ended.all()) is bool(cell.terminated) else DIFFERS
    paper = "published: all" if cell.terminated else "published ×"
    return ended.mean(), Match(word, f"{ended.sum()} of {len(ended)} seeds terminate, {paper}")


def time_ratio(rows: pd.DataFrame, cell: Any, base: Any) -> Match:
    """The seconds of a published cell over those of `base`, a cell of the same table, beside ours.

    rows: of `finished`, of one target and variant, timed ones included. Either side's ratio is of means, its spread to
    first order (the delta method: ours over the seeds that both share), half of the published last digit included.
    """
    clocks = []
    for one in (cell, base):
        mine = select(rows, algorithm=one.algorithm, epsilon=one.epsilon)
        ended = mine.loc[mine["timed"].eq(0), "ending"].eq(TERMINATED)
        if not ended.all():
            return Match(
                NOT_COMPARABLE, f"{ended.sum()} of {len(ended)} seeds of {one.algorithm} terminate: no run time"
            )
        clocks.append(mine[mine["timed"].gt(0)].groupby("seed")["seconds"].median().astype(float))
    if not min(cell.seconds, base.seconds) > 0:
        return Match(NOT_COMPARABLE, "published as 0.0 seconds")
    a, b = (clock.loc[clocks[0].index.intersection(clocks[1].index)] for clock in clocks)
    ratio, published = a.mean() / b.mean(), cell.seconds / base.seconds
    spread = sum(((one.seconds_std**2 + one.runs * half_a_digit(one.seconds) ** 2 / 3) / one.seconds**2)
                 for one in (cell, base))  # fmt: skip
    values = ratio * (1 + a / a.mean() - b / b.mean())
    return compare(values, published, published * math.sqrt(spread), cell.runs, **MARGINS["seconds"])


def half_a_digit(seconds: float) -> float:
    """Half a unit of the last digit that the paper prints of a run time.

    >>> half_a_digit(0.6), half_a_digit(0.045)
    (0.05, 0.0005)
    """
    return 0.05 if math.isclose(seconds, round(seconds, 1)) else 0.0005


@functools.cache
def planned_epsilon(target: Target, algorithm: str, epsilon: float) -> float:
    """ε of all that the published code of a minibatch method may release, as if on subsets of their own."""
    method: Any = algorithms.get(algorithm)
    problem = catalogue.declare(target.problem)
    settings = method.complete(problem, method.Settings(alpha=target.alpha, **VARIANTS[0].settings))
    budget = Budget(epsilon, 1 / problem.n, method.relation, method.paper_accounting)
    if hasattr(method, "phases"):
        phases = [(*phase, 1.0) for phase in method.phases(problem, budget, target.alpha, settings)]
    else:
        T = method.planned(target.alpha, problem.d)
        phases = [(T, method.sigma(problem, budget, T, settings), math.sqrt(problem.d))]
    n, m = problem.n, settings.m
    entries = [
        Entry(WithoutReplacement(n, m, Gaussian(sigma * each * m / n)), T, "")
        for T, sigma, factor in phases
        for each in (1.0, factor)
    ]
    proved = budget.epsilon_of(tuple(entries))
    return math.inf if proved is None else proved
