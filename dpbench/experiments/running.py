"""Runs of one algorithm, or of an experiment's grid: what is finished is found, the rest is made."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench import algorithms, datasets, experiments
from dpbench.errors import NotAtHand, UserError, at_least, positive, several, silent
from dpbench.problems import catalogue
from dpbench.run import executors, runner
from dpbench.run.job import make_job
from dpbench.run.runner import Progress, RunSummary
from dpbench.run.store import Store
from dpbench.study.plan import plan

if TYPE_CHECKING:
    import pandas

MOST_SEEDS = 100_000


@dataclass(frozen=True)
class Runs:
    """What `run_algorithm` and `run_experiment` did.

    Attributes:
        summary: runs by status, and those found finished.
        store: where the rows are.
        missing_data: problem → data set that is not fetched.
        waiting: combinations whose settings depend on rows that are not there.
    """

    summary: RunSummary
    store: Store
    missing_data: Mapping[str, str]
    waiting: tuple[str, ...] = ()

    def rows(self) -> pandas.DataFrame:
        """The rows of the runs asked for, those found finished among them."""
        runs = self.store.runs().set_index("key", drop=False)
        return runs.loc[[key for key in self.summary.keys if key in runs.index]].reset_index(drop=True)

    def table(self) -> pandas.DataFrame:
        """What the rows come to: a row per setting."""
        from dpbench.study import overview

        return overview.by_setting(self.rows())

    def warnings(self) -> list[str]:
        """One line for each method that does not keep its ε, and for what, beside n, counts as public."""
        from dpbench.study import overview

        rows = self.rows()
        return overview.not_private(rows) + overview.counts_as_public(rows)


def run_algorithm(
    algorithm: str,
    problems: str | Iterable[str] = (),
    epsilon: float | Iterable[float] = 1.0,
    *,
    seeds: int = 5,
    settings: Mapping[str, Any] | None = None,
    accounting: str = "paper",
    delta: float | str | None = None,
    relation: str | None = None,
    results: str | os.PathLike[str] = "results",
    jobs: int | None = None,
    backend: str = "loky",
    scheduler: str | None = None,
    part: str | None = None,
    trace: bool = False,
    served: bool = False,
    progress: Callable[[Progress], None] = silent,
    notify: Callable[[str], None] = silent,
    estimated: Callable[[float], None] = silent,
) -> Runs:
    """Run one algorithm on problems of the catalogue; finished runs are found in `results` and not repeated.

    Args:
        algorithm: a name from `dpbench list algorithms`, or "path/to/file.py:Class".
        problems: data sets or problems, one or several; none takes those of the algorithm's experiment that are at
            hand, or "synthetic" for a class from a file that names no experiment (`home`).
        epsilon: the budget ε > 0, one or several.
        seeds: independent replicates of each.
        settings: the algorithm's settings; its defaults for those not given.
        accounting, delta, relation: as for `fit`.
        results: the folder of all results; the rows go to `results/adhoc/ALGORITHM`.
        jobs: worker processes or threads, None for one per core. backend: "loky", "threading" or "dask".
            scheduler: dask's, "tcp://host:port" or its scheduler file. part: "2/8" makes the second of eight parts of
            the runs, for as many processes that share `results`.
        trace: record the excess loss along the way, which `report` draws.
        served: run it in a process that has no rows, and releases through noise alone (the guide "Audit");
            one run is one process then, and its noise is the operating system's, so that no seed repeats it.
        progress: gets a `dpbench.run.runner.Progress` after each batch.
        notify: gets a line where there is something to say, as of data that are not fetched.
        estimated: gets the seconds that the runs will roughly take before they start; what it raises stops them.

    Raises:
        UserError: for any argument that does not fit, in one line that names it; NotAtHand: for data not fetched.
    """
    executors.check(backend, jobs, scheduler)
    if at_least("seeds", seeds) > MOST_SEEDS:  # each is a job, which is planned before anything runs
        raise UserError(f"seeds must be at most {MOST_SEEDS:,}, got {seeds:,}")
    if not several(epsilon):
        raise UserError("epsilon: give one at least")
    if not isinstance(settings, Mapping | None):
        raise UserError(f"settings must be {{name: value}}, got {settings!r}")
    if served:
        if trace:
            raise UserError("served: it does not go with trace, which the server has not")
        algorithm = algorithms.SERVED + algorithm
    method, _ = algorithms.resolve(algorithm)
    missing: dict[str, str] = {}
    names = several(problems)
    if not names:
        own = ".py:" in algorithm and not any("home" in vars(base) for base in type(method).__mro__[:-2])
        names, missing = (["synthetic"], {}) if own else _home_problems(method.home)
        if missing:
            notify(f"not fetched: {', '.join(missing)} (dpbench fetch gets them)")
    for problem in names:
        dataset = catalogue.recipe_of(problem).dataset
        if not datasets.available(dataset):
            raise NotAtHand(f"data set {dataset} is not fetched; run: dpbench fetch {dataset}")
    for problem in several(problems):  # one that was asked for by name is refused before any process starts
        method.needs.check(catalogue.declare(problem), method.name, rows=False)
    job = partial(make_job, algorithm=algorithm, settings=dict(settings or {}), accounting=accounting, delta=delta,
                  relation=relation, trace=trace)  # fmt: skip
    every = itertools.product(names, [positive("epsilon", each) for each in several(epsilon)], range(seeds))
    todo = [job(problem=problem, epsilon=each, seed=seed) for problem, each, seed in every]
    store = Store(results, "adhoc", method.name)
    estimated(runner.estimate(todo, store, jobs))
    summary = runner.run(todo, store, workers=jobs, backend=backend, scheduler=scheduler, part=part, report=progress)
    return Runs(summary, store, missing)


def run_experiment(
    reference: str,
    *,
    profile: str = "quick",
    config: str | os.PathLike[str] | None = None,
    results: str | os.PathLike[str] = "results",
    jobs: int | None = None,
    backend: str = "loky",
    scheduler: str | None = None,
    part: str | None = None,
    progress: Callable[[Progress], None] = silent,
    notify: Callable[[str], None] = silent,
) -> Runs:
    """Run the grid of an experiment, or of one artefact ("second_order/fig2"); finished runs are not repeated.

    In two phases: first what depends on no other rows, then what does ("best" settings, `timed_if`). Data that are not
    fetched leave a gap.

    Args:
        reference: the experiment, or "experiment/artefact".
        profile: "quick" or "full".
        config: a grid of your own (TOML) instead of the experiment's; where it asks for other runs than the
            experiment's, its rows go to `results/adhoc/FILE`.
        results, jobs, backend, scheduler, part, progress, notify: as of `run_algorithm`.

    Raises:
        UserError: for any argument that does not fit, in one line that names it.
    """
    executors.check(backend, jobs, scheduler)
    name, _, artefact = reference.partition("/")
    experiment = experiments.get(name)
    blocks = experiment.blocks(profile, artefact or None, config)
    store = Store(results, profile, name)
    if artefact and not blocks:
        notify(
            f"{reference} has no runs of its own, profile {profile}: it is drawn from data, formulas or rows of other "
            f"artefacts, which come with: dpbench run --experiment {name} --profile {profile}"
        )
        return Runs(runner.RunSummary(), store, {})
    if config is not None and not experiment.has(blocks, profile):  # else they are tuned on, and counted, as its own
        store = Store(results, "adhoc", Path(config).stem)
    summary = runner.RunSummary()
    missing: dict[str, str] = {}
    waiting: list[str] = []
    for waits in (False, True):
        phase = [block for block in blocks if block.waits == waits]
        if waits and not phase:
            continue
        planned = plan(phase, store)  # a mistake in the grid is told before anything else
        if not waits:
            notify(f"{name}: {experiment.title} ({profile})")
            if store.folder.parent.name != profile:
                draw = "dpbench report --profile adhoc"
                notify(f"not runs of {name}: the rows go to {store.folder}; draw them with: {draw}")
        for problem, dataset in planned.missing_data.items():
            if problem not in missing:
                notify(f"data not fetched: {problem} (dpbench fetch {dataset}); its panels will show the gap")
        missing |= planned.missing_data
        for what in planned.waiting:
            notify(f"rows to decide on are missing: {what}")
        waiting += planned.waiting
        summary += runner.run(
            planned.runnable,
            store,
            workers=jobs,
            backend=backend,
            scheduler=scheduler,
            part=part,
            report=progress,
        )
    return Runs(summary, store, missing, tuple(waiting))


def _home_problems(home: str) -> tuple[list[str], dict[str, str]]:
    """The problems of an experiment whose data are fetched, and problem → data set of the others."""
    if home not in experiments.names():
        return ["synthetic"], {}
    wanted = {problem: catalogue.recipe_of(problem).dataset for problem in experiments.get(home).problems()}
    missing = {problem: dataset for problem, dataset in wanted.items() if not datasets.available(dataset)}
    return [problem for problem in wanted if problem not in missing], missing
