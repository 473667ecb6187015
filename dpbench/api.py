"""The Python API: all that the command line can do, a function per verb. What a function needs loads when it is called.

`progress` takes a `dpbench.run.runner.Progress` after each batch; `notify` takes one line where there is something to
say (data that are not fetched, settings that were tuned). Both are silent by default: what matters is in the result.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench.errors import NotAtHand, UserError, positive
from dpbench.run.fit import Diagnostics, Fit, Released, fit

if TYPE_CHECKING:
    import pandas

    from dpbench.auditing.foreign import Target
    from dpbench.auditing.releases import Row as ReleaseAudit
    from dpbench.auditing.runs import Audit
    from dpbench.comparing.own_data import Comparison
    from dpbench.datasets import FetchResult
    from dpbench.estimators.plan import Plan
    from dpbench.leaderboard.versions import Version
    from dpbench.privacy.statement import Statement
    from dpbench.reporting.diff import Difference
    from dpbench.run.results import Store
    from dpbench.run.runner import Progress, Summary
    from dpbench.schema import Schema
    from dpbench.study.standing import Standing
    from dpbench.submitting.checking import Report as SubmissionReport

__all__ = ["Diagnostics", "Fit", "Released", "Runs", "Scorecard", "audit", "audit_releases", "board_freeze",
           "board_retract", "board_secret", "board_versions", "card", "check_data", "check_rows", "check_submission",
           "cite", "compact", "compare", "diff", "draft_schema", "export", "fetch", "fit", "forget", "listing", "merge",
           "new",
           "plan", "privacy_profile", "report", "results", "run_algorithm", "run_experiment", "scorecard", "standings",
           "statement", "status", "submit", "summarise"]  # fmt: skip

Listener = Callable[["Progress"], None]
Notify = Callable[[str], None]


def _silent(*_: Any) -> None:
    pass


def _several(given: Any) -> list[Any]:
    """What may be one thing or several, as a list."""
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


@dataclass(frozen=True)
class Runs:
    """What `run_algorithm` and `run_experiment` did.

    Attributes:
        summary: runs by status, and those found finished.
        store: where the rows are.
        missing_data: problem → data set that is not fetched.
        waiting: cells whose settings depend on rows that are not there.
        tuned: whether settings that were not given are an experiment's tuned ones.
    """

    summary: Summary
    store: Store
    missing_data: Mapping[str, str]
    waiting: tuple[str, ...] = ()
    tuned: bool = False

    def rows(self) -> pandas.DataFrame:
        """The rows of the runs asked for, those found finished among them."""
        runs = self.store.runs().set_index("key", drop=False)
        return runs.loc[[key for key in self.summary.keys if key in runs.index]].reset_index(drop=True)

    def table(self) -> pandas.DataFrame:
        """What the rows come to: a row per setting, or per problem and ε where settings are the `tuned` ones."""
        from dpbench.study import overview

        return (overview.by_problem if self.tuned else overview.by_setting)(self.rows())

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
    shards: int | None = None,
    trace: bool = False,
    progress: Listener = _silent,
    notify: Notify = _silent,
    estimated: Callable[[float], None] = _silent,
) -> Runs:
    """Run one algorithm on problems of the catalogue; finished runs are found in `results` and not repeated.

    Args:
        algorithm: a name from `dpbench list algorithms`, or "path/to/file.py:Class".
        problems: data sets or problems, one or several; none takes those of the algorithm's experiment that are at
            hand, or "synthetic" for a class from a file that names no experiment (`home`).
        epsilon: the budget ε > 0, one or several.
        seeds: independent replicates of each.
        settings: the algorithm's settings. Those not given are the tuned ones that ship with its experiment, if there
            are any: such runs are made one at a time, and timed.
        accounting, delta, relation: as for `fit`.
        results: the folder of all results; the rows go to `results/adhoc/ALGORITHM`.
        jobs: worker processes or threads, None for one per core. backend: "loky", "threading" or "dask".
            scheduler: dask's, "tcp://host:port" or its scheduler file. shards: cut the rows into so many parts, which
            lie with dask's workers; the runs themselves are made here, one batch at a time.
        trace: record the excess loss along the way, which `report` draws.
        estimated: gets the seconds that the runs will roughly take before they start; what it raises stops them.

    Raises:
        UserError: for any argument that does not fit, in one line that names it; NotAtHand: for data not fetched.
    """
    from dpbench import algorithms, datasets
    from dpbench.experiments.tuned import lookup
    from dpbench.problems import catalogue
    from dpbench.run import executors, runner
    from dpbench.run.jobs import make_job
    from dpbench.run.results import Store

    executors.check(backend, jobs, scheduler, shards)
    if seeds < 1:
        raise UserError(f"seeds must be at least 1, got {seeds}")
    method, _ = algorithms.resolve(algorithm)
    missing: dict[str, str] = {}
    names = _several(problems)
    if not names:
        own = ".py:" in algorithm and not any("home" in vars(base) for base in type(method).__mro__[:-2])
        names, missing = (["synthetic"], {}) if own else _home_problems(method.home)
        if missing:
            notify(f"not fetched: {', '.join(missing)} (dpbench fetch gets them)")
    for problem in names:
        dataset = catalogue.recipe_of(problem).dataset
        if not datasets.available(dataset):
            raise NotAtHand(f"data set {dataset} is not fetched; run: dpbench fetch {dataset}")
    for problem in _several(problems):  # one that was asked for by name is refused before any process starts
        method.needs.check(catalogue.declare(problem), method.name, rows=False)
    given = dict(settings or {})
    cells = list(itertools.product(names, [positive("epsilon", each) for each in _several(epsilon)]))
    tuned = {(problem, each): lookup(algorithm, method.home, problem, each) for problem, each in cells}
    used = {at: one for at, one in tuned.items() if one is not None and set(one.settings) - set(given)}
    if used:
        at = ", ".join(sorted({f"{one.epsilon:g}" for one in used.values()}))
        notify(f"settings not given: tuned (not privately) in {method.home} at ε = {at}; timed alone")
    todo = [
        make_job(
            problem=problem,
            algorithm=algorithm,
            epsilon=each,
            seed=seed,
            settings=(used[problem, each].settings if (problem, each) in used else {}) | given,
            accounting=accounting,
            delta=delta,
            relation=relation,
            timed=int(bool(used)),
            trace=trace,
        )
        for problem, each in cells
        for seed in range(seeds)
    ]
    store = Store(results, "adhoc", method.name)
    estimated(runner.estimate(todo, store, jobs))
    summary = runner.run(
        todo, store, workers=jobs, backend=backend, scheduler=scheduler, shards=shards, report=progress
    )
    return Runs(summary, store, missing, tuned=bool(used))


def privacy_profile(key: str, *, results: str | os.PathLike[str] = "results") -> list[Path]:
    """The privacy profile ε(δ) and the trade-off curve of the run whose row has `key`, as csv and png; their paths.

    key: of a row in `results`, or its beginning. The run is made again, for what it planned to release; the files are
    in `results/profiles`. Of a fit: `Fit.profile`, `Fit.trade_off`.
    """
    from dpbench.reporting import profile_figure
    from dpbench.run import replay

    row = replay.row_of(key, results)
    composition, budget = replay.planned(row)
    return profile_figure.save(row, composition, budget.relation, Path(results) / "profiles")


def _home_problems(home: str) -> tuple[list[str], dict[str, str]]:
    """The problems of an experiment whose data are fetched, and problem → data set of the others."""
    from dpbench import datasets, experiments
    from dpbench.problems import catalogue

    if home not in experiments.names():
        return ["synthetic"], {}
    wanted = {problem: catalogue.recipe_of(problem).dataset for problem in experiments.get(home).problems()}
    missing = {problem: dataset for problem, dataset in wanted.items() if not datasets.available(dataset)}
    return [problem for problem in wanted if problem not in missing], missing


def run_experiment(
    reference: str,
    *,
    profile: str = "quick",
    config: str | os.PathLike[str] | None = None,
    results: str | os.PathLike[str] = "results",
    jobs: int | None = None,
    backend: str = "loky",
    scheduler: str | None = None,
    shards: int | None = None,
    progress: Listener = _silent,
    notify: Notify = _silent,
) -> Runs:
    """Run the grid of an experiment, or of one artefact ("second_order/fig2"); finished runs are not repeated.

    In two phases: first what depends on no other rows, then what does ("best" settings, `timed_if`). Data that are not
    fetched leave a gap. profile: "quick" or "full". config: a grid of your own (TOML) instead of the experiment's;
    where it asks for other runs than the experiment's, its rows go to `results/adhoc/FILE`. The rest as of
    `run_algorithm`.
    """
    from dpbench import experiments
    from dpbench.run import executors, runner
    from dpbench.run.results import Store
    from dpbench.study.plan import plan

    executors.check(backend, jobs, scheduler, shards)
    name, _, artefact = reference.partition("/")
    experiment = experiments.get(name)
    blocks = experiment.blocks(profile, artefact or None, config)
    store = Store(results, profile, name)
    if config is not None and not experiment.has(blocks, profile):  # else they are tuned on, and counted, as its own
        store = Store(results, "adhoc", Path(config).stem)
    summary = runner.Summary()
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
                draw = f"dpbench report --with {store.folder} --figures DIR"
                notify(f"not runs of {name}: the rows go to {store.folder}; draw them with: {draw}")
        for problem, dataset in planned.missing_data.items():
            if problem not in missing:
                notify(f"data not fetched: {problem} (dpbench fetch {dataset}); its panels will show the gap")
        missing |= planned.missing_data
        for what in planned.waiting:
            notify(f"rows to decide on are missing: {what}")
        waiting += planned.waiting
        summary += runner.run(
            planned.runnable, store, workers=jobs, backend=backend, scheduler=scheduler, shards=shards, report=progress
        )
    return Runs(summary, store, missing, tuple(waiting))


def results(experiment: str, profile: str = "full", *, results: str | os.PathLike[str] = "results") -> pandas.DataFrame:
    """The rows of an experiment under a profile, one per run; profile "adhoc" has those of `run_algorithm`.

    The full profile's rows of the leaderboard come with the package where `results` has none. Raises UserError where
    there are no rows, with the command that makes them.
    """
    from dpbench import experiments
    from dpbench.leaderboard import shipped
    from dpbench.run.results import Store

    found = Store(results, profile, experiment).runs()
    if found.empty and (profile, experiment) == (shipped.PROFILE, shipped.EXPERIMENT) and (home := shipped.folder()):
        found = Store(home.parent.parent, profile, experiment, folder=home).runs()
    if found.empty:
        if profile == "adhoc":
            told = f"dpbench run --algo {experiment}"
        else:
            experiments.get(experiment).blocks(profile)  # a name that is not known is told as such
            told = f"dpbench run --experiment {experiment} --profile {profile}"
        raise UserError(f"no rows of {experiment}, profile {profile}, in {os.fspath(results)}; run: {told}")
    return found


def status(
    experiment: str | None = None, profile: str | None = None, *, results: str | os.PathLike[str] = "results"
) -> pandas.DataFrame:
    """A row per artefact and profile: how many of its runs are done, missing and failed, and notes.

    experiment, profile: one of them, None for all. Raises UserError for an unknown one.
    """
    import pandas as pd

    from dpbench.study.standing import Standing

    found = standings(experiment, profile, results=results)
    return pd.DataFrame(found, columns=list(Standing.__dataclass_fields__))


def standings(
    experiment: str | None = None, profile: str | None = None, *, results: str | os.PathLike[str] = "results"
) -> list[Standing]:
    """The rows of `status` as a list, without pandas, which takes as long to load as they take to count."""
    from dpbench import experiments
    from dpbench.run.results import Store
    from dpbench.study.standing import standing

    asked = [experiments.get(name) for name in ([experiment] if experiment else experiments.names())]
    if profile is not None and not any(profile in one.grid() for one in asked):
        asked[0].blocks(profile)  # raises, with the nearest profile
    return [
        row
        for one in asked
        for each in ([profile] if profile else one.grid())
        if experiment is not None or each in one.grid()  # a package's paper may have profiles of its own
        for row in standing(one, each, Store(results, each, one.name))
    ]


LISTINGS = ("algorithms", "datasets", "losses", "experiments")


def listing(what: str) -> pandas.DataFrame:
    """What there is: "algorithms", "datasets" (with whether each is fetched), "losses" or "experiments", a row each.

    An algorithm's `private`: whether it keeps its ε as `--accounting paper` runs it; `sound`: the accountings under
    which it does, "all" or "none". A loss's `L0`, `L1` and `L2` bound its first, second and third derivative;
    `methods`: how many private ones cover it; `package`: the one that it comes from.
    """
    import pandas as pd

    from dpbench import algorithms, datasets, experiments
    from dpbench.algorithms.base import make_settings
    from dpbench.errors import nearest
    from dpbench.problems import losses

    if what not in LISTINGS:
        raise UserError(f"listing: there is no {what!r}; {nearest(what, LISTINGS)}")
    rows: list[dict[str, Any]] = []
    if what == "algorithms":
        for name in algorithms.names():
            method, fixed = algorithms.resolve(name)
            settings = ", ".join(field for field in method.Settings.__struct_fields__ if field not in fixed)
            sound = method.sound(make_settings(method, fixed))
            told = "all" if len(sound) == len({"paper", *method.accountings}) else ", ".join(sound) or "none"
            rows.append({"algorithm": name, "private": "paper" in sound, "sound": told,
                         "relation": method.relation.value, "home_experiment": method.home,
                         "settings": settings})  # fmt: skip
    elif what == "datasets":
        for name in datasets.names():
            spec = datasets.describe(name)
            state = "generated" if spec.synthetic else "fetched" if datasets.available(name) else "not fetched"
            rows.append({"data_set": name, "rows": spec.rows, "columns": spec.columns, "state": state,
                         "title": spec.title})  # fmt: skip
    elif what == "losses":
        methods = [method for method, _ in map(algorithms.resolve, algorithms.names()) if method.private]
        for name in losses.names():
            loss = losses.get(name)
            covering = {method.name for method in methods if not method.needs.lacks(loss)}
            rows.append({"loss": name, "labels": "-1, +1" if loss.binary else "numbers", "convex": loss.convex,
                         "L0": loss.lipschitz, "L1": loss.smoothness, "L2": loss.hessian_lipschitz,
                         "methods": len(covering), "package": type(loss).__module__.partition(".")[0]})  # fmt: skip
    else:
        for name in experiments.names():
            one = experiments.get(name)
            artefacts = ", ".join(artefact.name for artefact in one.artefacts)
            rows.append({"experiment": name, "artefacts": artefacts, "paper": one.citation})
    return pd.DataFrame(rows, dtype=object)


def new(kind: str, name: str, *, out: str | os.PathLike[str] = ".") -> list[Path]:
    """Begin a package of one's own: files that pass their own tests, in a new folder.

    Args:
        kind: "paper", "algorithm", "dataset" or "loss".
        name: of the package and of what it brings: small letters, digits, - and _, a letter first.
        out: the folder that the package's own goes into.

    Returns:
        The files.

    Raises:
        UserError: for a name that will not do or is taken, or a folder that is there already; nothing is written then.
    """
    from dpbench import scaffolding

    return scaffolding.make(kind, name, out)


def cite(experiment: str | None = None) -> str:
    """BibTeX entries of dpbench and, of an experiment, its paper and data sets."""
    from dpbench.experiments.citing import bibtex

    return bibtex(experiment)


def fetch(
    names: str | Iterable[str],
    *,
    mirror: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[FetchResult]:
    """Download and prepare data sets, one or several names, or "all"; what became of each.

    mirror: a folder or URL that holds the upstream files under their names, else DPBENCH_MIRROR. progress: called with
    (file name, bytes so far, bytes in all or 0). Raises UserError for an unknown name, before anything is done.
    """
    from dpbench import datasets
    from dpbench.errors import nearest

    known = datasets.names()
    wanted = list(dict.fromkeys(_several(names)))
    if "all" in wanted:
        wanted = known
    for name in wanted:
        if name not in known:
            raise UserError(f"unknown data set {name!r}: {nearest(name, known)}")
    return datasets.fetch(wanted, mirror=mirror, progress=progress)


def compare(
    data: str | os.PathLike[str],
    target: str | None = None,
    *,
    epsilon: float | Iterable[float] = 1.0,
    loss: str | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    row_bound: float | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    standardise: bool = True,
    drop: Iterable[str] = (),
    schema: str | os.PathLike[str] | Schema | None = None,
    extra: Iterable[str] = (),
    holdout: float = 0.2,
    precision: str = "float64",
    track: str | Iterable[str] = "default",
    profile: str = "quick",
    seeds: int = 5,
    timed: bool = False,
    results: str | os.PathLike[str] = "results",
    cache: bool = True,
    jobs: int | None = None,
    reading: Callable[[str, float], None] = _silent,
    progress: Listener = _silent,
    notify: Notify = _silent,
) -> Comparison:
    """Judge every private method that fits on rows of your own that it has not seen.

    Models are set against the majority class (or the mean), the start and the optimum without privacy; when none is
    better than the first by two standard errors, the recommendation is not to use any. The scores are exact, so they
    are not private, and nor is the choice made by them.

    Args:
        data: a csv, tsv, parquet or svmlight file.
        target: the column to predict; None for svmlight, whose labels come first.
        epsilon: the budget ε > 0 of every run, one or several, at δ = n⁻², for replace-one neighbours.
        loss: None takes logistic for two classes and squared for numbers. l1, l2: weights of ‖w‖₁ and ‖w‖²/2.
        row_bound, bounds, standardise, drop: see `dpbench.datasets.tables.read`.
        schema: what is public of the table (`dpbench.schema`), or its TOML file; takes the place of target, row_bound,
            bounds, standardise and drop.
        extra: further methods, names or "file.py:Class".
        holdout: the share of rows kept apart to judge by, in (0, 0.5], chosen by their positions.
        precision: "float64" or "float32", in which the rows are kept and multiplied; sums are float64 in both.
        track: the rule for settings, one or several: "default" takes each method's public rule in n, d and ε, "tuned"
            the best of a few on the rows in use, which is not private, "private" searches a few around the rule within
            ε; methods that cannot be searched so are left out.
        profile: "quick" or "full": how many settings "tuned" tries. seeds: replicates of each. timed: measure the
            seconds of each, alone.
        results, jobs: as of `run_algorithm`; the runs go to `results/adhoc/compare-DATA`.
        cache: keep the prepared rows, which nobody but the user may read, and the runs, so that the next call makes
            none of them again; `forget` removes both. False removes them at the end.
        reading: called with what is being done and the share of it while a large file is read.

    Raises:
        UserError, DataError: in one line that names the argument or column.
    """
    from dpbench.comparing.own_data import compare_file

    columns = {"row_bound": row_bound, "bounds": dict(bounds or {}), "standardise": standardise, "drop": list(drop)}
    return compare_file(
        data,
        target,
        columns,
        epsilons=[float(each) for each in _several(epsilon)],
        tracks=_several(track),
        holdout=holdout,
        precision=precision,
        loss=loss,
        weights={name: weight for name, weight in (("l1", l1), ("l2", l2)) if weight},
        schema=schema,
        extra=extra,
        profile=profile,
        seeds=seeds,
        timed=timed,
        results=results,
        cached=cache,
        jobs=jobs,
        reading_of_file=reading,
        progress=progress,
        notify=notify,
    )


def forget(data: str | os.PathLike[str], *, results: str | os.PathLike[str] = "results") -> list[Path]:
    """Remove what `compare` kept of a file: its prepared rows, and the runs on them with their exact scores.

    Args:
        data: the file, which need not be there any more.
        results: the folder of all results, as of `compare`.

    Returns:
        The folders that are gone; none where nothing was kept.

    Raises:
        UserError: a folder cannot be removed.
    """
    from dpbench.comparing.private_copies import forget as removed

    return removed(data, results)


def plan(
    schema: str | os.PathLike[str] | Schema,
    n: int,
    *,
    epsilon: float | Iterable[float] = 1.0,
    delta: float | str | None = None,
    algorithm: str | Iterable[str] = (),
    like: str | os.PathLike[str] | None = None,
    share: Mapping[str, float] | None = None,
    signal: float | None = None,
    reach: str | None = None,
    worlds: int = 40,
    seed: int = 0,
    figure: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[str, float], None] = _silent,
) -> Plan:
    """What each method releases and is expected to score on a table of this schema, before the table is touched.

    Releases and their noise follow from n, d, ε and δ, and are those that a fit is checked by. Scores are of the
    estimators, fitted to simulated tables that the schema allows, or to public rows.

    Args:
        schema: what is public of the table (`dpbench.schema`), or its TOML file.
        n: how many rows there will be, 50 at least.
        epsilon: one or several ε > 0. delta: as of the estimators; None takes n⁻².
        algorithm: methods to set beside the default, one or several names; "all" for each that is on the leaderboard,
            "auto" for the default alone. None: a few that are usual for the task.
        like: a csv, tsv or parquet file of public or older rows with the schema's columns, to draw worlds from.
        share: {class: share} that somebody guesses without the data; the other classes are drawn.
        signal: a guess of the AUC (for numbers R²) that a model without privacy has.
        reach: "auc=0.8", "accuracy=0.9", "r2=0.3" or "kept=0.9": also find the ε and the n at which the default
            reaches it. kept: the share of the AUC above 0.5, or of R², that a model without privacy has.
        worlds: how many tables are simulated. seed: of them and of the noise.
        figure: a file to draw the scores against ε to (png, pdf or svg).
        jobs: worker processes, all cores by default.
        progress: called with what is being done and the share of it.

    Raises:
        UserError, DataError: one line that names the argument.
    """
    from dpbench import schema as schemas
    from dpbench.datasets import tables
    from dpbench.estimators import plan as planning
    from dpbench.estimators import worlds as simulated

    for name, value, least in (("n", n, 50), ("worlds", worlds, 2), ("jobs", 1 if jobs is None else jobs, 1)):
        if value < least:
            raise UserError(f"{name} must be at least {least}, got {value}")
    found = schemas.load(schema)
    simulated.check_guesses(found, share or {}, signal)
    given = {"share": share, "signal": signal}
    if like is not None and (clash := [name for name, value in given.items() if value]):
        raise UserError(f"{clash[0]}: like takes it from the public rows; leave one of the two out")
    rows = None if like is None else simulated.rows_of(found, tables.frame_of(like), os.fspath(like))
    epsilons = sorted(dict.fromkeys(positive("epsilon", float(each)) for each in _several(epsilon)))
    frame = planning.Frame(found, int(n), delta, dict(share or {}), signal, rows, seed)
    made = planning.make(frame, epsilons, _several(algorithm), worlds, reach, jobs, progress)
    if figure is not None:
        from dpbench.estimators.figure import draw

        draw(made, Path(figure))
    return made


def draft_schema(
    data: str | os.PathLike[str], target: str, *, out: str | os.PathLike[str] | None = None
) -> tuple[Schema, list[str]]:
    """A first schema of a csv, tsv or parquet file, and remarks for whoever decides: see `dpbench.schema.draft`.

    Args:
        data: the file.
        target: the column to predict.
        out: a file that is not there yet, to write the schema to; None writes none.

    Returns:
        The schema, in which everything that was taken from the data is marked, and one line for each remark.

    Raises:
        UserError, DataError: one line on a file or column that does not fit.
    """
    from dpbench import schema
    from dpbench.datasets import tables
    from dpbench.files import replacing

    if out is not None and Path(out).exists():
        raise UserError(f"out: {out} is there already; remove it or give another name")
    drafted, remarks = schema.draft(tables.frame_of(data), target)
    if out is not None:
        with replacing(Path(out)) as staged:
            os.chmod(staged, 0o600)  # it tells of the data until it is decided
            staged.write_text(drafted.toml(), encoding="utf-8")
    return drafted, remarks


def check_data(data: str | os.PathLike[str], schema: str | os.PathLike[str] | Schema) -> list[str]:
    """One line for everything in a table that a private fit would replace, cut off or shorten.

    Args:
        data: a csv, tsv or parquet file.
        schema: what is public of it, or the TOML file that says so.

    Returns:
        Lines with exact counts, so not private; none where every cell is as the schema says.

    Raises:
        UserError, DataError: one line on a file, schema or column that does not fit.
    """
    from dpbench import schema as schemas
    from dpbench.datasets import tables

    return schemas.inspect(schemas.load(schema), tables.frame_of(data))


def statement(model: str | os.PathLike[str]) -> tuple[Statement, list[str]]:
    """The release statement of a model that an estimator saved, and one line for each thing that was computed again.

    Args:
        model: the file.

    Returns:
        The statement, see `dpbench.privacy.statement`, and what holds.

    Raises:
        UserError: the file is none that dpbench wrote, or it is damaged.
        DoesNotHold: its releases compose to more than it states.
    """
    from dpbench.privacy.statement import checked, read

    found = read(model)[1]
    return found, checked(found)


def card(
    model: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    like: str | os.PathLike[str] | None = None,
    share: Mapping[str, float] | None = None,
    signal: float | None = None,
    worlds: int = 40,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[str, float], None] = _silent,
) -> str:
    """A Markdown card of a saved model: its guarantee, its inputs, and the accuracy to expect of it.

    No score of the private rows is in it: what is to be expected is simulated, as by `plan`. So the card can go
    wherever the model goes.

    Args:
        model: the file that an estimator saved.
        out: a Markdown file to write; None writes none.
        like, share, signal, worlds, seed, jobs, progress: as of `plan`.

    Raises:
        UserError: the file is none that dpbench wrote, or an argument does not fit.
        DoesNotHold: its releases compose to more than it states.
    """
    from dpbench.estimators.card import card_of, described

    found, schema, statement_ = described(model)
    if statement_.rows is None:
        raise UserError(f"{model}: an older version wrote it, without the number of rows; fit and save it again")
    foreseen = plan(
        schema,
        statement_.rows,
        epsilon=statement_.epsilon,
        delta=statement_.delta,
        algorithm=statement_.mechanism,
        like=like,
        share=share,
        signal=signal,
        worlds=worlds,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    return _written(card_of(Path(model).name, found, schema, statement_, foreseen), out)


def export(model: str | os.PathLike[str], *, table: str = "rows", out: str | os.PathLike[str] | None = None) -> str:
    """A SQL query that predicts as a saved model does, for where there is no dpbench.

    Args:
        model: the file that an estimator saved.
        table: what the table with the model's columns is called.
        out: a file to write the query to; None writes none.

    Returns:
        The query. It adds the scores and a column `prediction`, by CASE and arithmetic alone.

    Raises:
        UserError: the file is none that dpbench wrote, or its schema has dates or a row bound, which SQL cannot say.
        DoesNotHold: its releases compose to more than it states.
    """
    from dpbench.estimators.sql import query

    return _written(query(model, table), out)


def _written(text: str, out: str | os.PathLike[str] | None) -> str:
    from dpbench.files import replacing

    if out is not None:
        try:
            with replacing(Path(out)) as staged:
                staged.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{out}: {error.strerror}") from None
    return text


def check_rows(X: Any, y: Any, *, algorithm: str = "dp-gd", loss: str = "logistic", **settings: Any) -> list[str]:
    """One line for everything in (X, y) that a release by `fit` would repair in silence, because a message would reveal
    something about the data.

    Args:
        X, y: as of `fit`, in memory.
        algorithm: whose bound on the rows counts, with these settings.
        loss: what labels are, as of `fit`.
        **settings: of the algorithm, as of `fit`.

    Returns:
        Lines with exact counts and values, so not private; none where nothing would be changed.

    Raises:
        UserError: for an unknown algorithm or loss. DataError: for shapes that do not fit each other.
    """
    from dpbench import algorithms
    from dpbench.algorithms.base import make_settings
    from dpbench.problems import losses
    from dpbench.run import given

    method, fixed = algorithms.resolve(algorithm)
    needed = method.row_bound(losses.get(loss), make_settings(method, {**fixed, **settings}))
    return given.findings(X, y, method=method.name, loss=loss, needed=needed)


def report(
    reference: str | None = None,
    *,
    profile: str | None = None,
    results: str | os.PathLike[str] = "results",
    figures: str | os.PathLike[str] = "figures",
    beside: Iterable[str | os.PathLike[str]] = (),
    notify: Notify = _silent,
) -> None:
    """Rebuild figures, tables and pages from the rows, under `figures/PROFILE/index.html`; no solver runs.

    reference: an experiment or "experiment/artefact"; None for all. profile: None for each that has rows. beside:
    folders of other rows (`results/adhoc/NAME`) to draw into every artefact that has their problem and ε; they need
    `figures` of their own. notify: gets a line for each file group written. Raises UserError when the selection has no
    results.
    """
    from dpbench.reporting.build import build

    if (reference or "").partition("/")[0] == "leaderboard" and profile in (None, "full"):
        _lay_out_board(results, notify)
    beside = list(beside)
    if beside and Path(figures) == Path("figures"):
        raise UserError("figures: with rows of your own beside, give a folder of your own, as --figures my-figures")
    for line in build(reference, profile, results=results, figures=figures, beside=beside):
        notify(line)


@dataclass(frozen=True)
class Scorecard:
    """verdicts: a row per claim and per published mean: experiment, profile, name, text, verdict, numbers.

    missing: the experiments asked for that have no rows to judge.
    """

    verdicts: pandas.DataFrame
    missing: list[str]


def scorecard(
    reference: str | None = None, *, profile: str | None = None, results: str | os.PathLike[str] = "results"
) -> Scorecard:
    """Judge the papers' claims and the cells that they print, on the rows that exist; nothing is written.

    reference, profile, results: as of `report`.
    """
    import pandas as pd

    from dpbench.reporting import build
    from dpbench.reporting.scorecard import in_words, judged, statement, verdicts
    from dpbench.study.context import Context

    rows, missing = [], []
    for found in build.check(reference, profile, results=results):
        if not isinstance(found, Context):
            missing.append(found.name)
            continue
        where = (found.experiment.name, found.profile)
        rows += [(*where, one.name, statement(one, v), v.word, v.numbers) for one, v in verdicts(found)]
        rows += [
            (
                *where,
                one.cell.name,
                f"from runs that keep their ε: {in_words(one)}",
                one.outcome.word,
                one.outcome.numbers,
            )
            for one in judged(found)[0]
        ]
    columns = ["experiment", "profile", "name", "text", "verdict", "numbers"]
    return Scorecard(pd.DataFrame(rows, columns=columns), missing)


def diff(first: str | os.PathLike[str], second: str | os.PathLike[str], *, errors: float = 3.0) -> Difference:
    """What differs between two sets of results: settings whose means moved, verdicts that changed.

    first, second: folders of rows, as "results/quick", or summaries that `summarise` wrote. errors: how many standard
    errors of the difference count as moved. Raises UserError for a place without either.
    """
    from dpbench.reporting.diff import diff as compared
    from dpbench.reporting.summary import load

    return compared(load(Path(first)), load(Path(second)), positive("errors", errors))


def summarise(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Write the summary of a folder of rows to a file that `diff` reads; how many settings it has."""
    from dpbench.reporting.summary import load, save

    found = load(Path(source))
    save(found, Path(target))
    return len(found.cells)


def audit(
    algorithm: str | Target | Callable[..., Any] = "all",
    epsilon: float | Iterable[float] = 1.0,
    *,
    runs: int | None = None,
    seed: int = 0,
    one_run: bool = False,
    loss: str = "",
) -> list[Audit]:
    """Compute empirical lower bounds on an algorithm's ε and compare them with its ledger's claims; a pass proves
    nothing.

    Args:
        algorithm: a name, "file.py:Class", or "all" private ones; or somebody else's learner, (X, y, epsilon, rng) →
            vector or a `dpbench.auditing.foreign.Target`, itself or as "file.py:name".
        epsilon: the ε > 0 that is claimed: one or several.
        runs: half of them on either of two neighbours, at least 40; None takes enough for bounds near the claim, for
            "all" enough to notice halved noise.
        seed: of all random numbers, >= 0.
        one_run: a bound on ε from one run with many canaries (`dpbench.auditing.one_run.audit_in_one_run`), which is
            quick, and low.
        loss: on which one algorithm is audited, one of an installed package too; "" for that of its own case.

    Returns:
        An `Audit` per ε, of "all" per algorithm and ε.

    Raises:
        UserError: for an algorithm that is not known or not private, and for any argument out of its range.
    """
    from dpbench.auditing import runs as audits

    if seed < 0:
        raise UserError(f"seed must be at least 0, got {seed}")
    epsilons = [positive("epsilon", each) for each in _several(epsilon)]
    from dpbench.auditing.foreign import audit_callable, of_solver

    learner = algorithm if not isinstance(algorithm, str) else audits.learner(algorithm) or of_solver(algorithm)
    if loss and (one_run or algorithm == "all" or learner is not None):
        raise UserError("loss: goes with one algorithm of dpbench's own kind, and not with one run")
    if one_run:
        from dpbench.auditing.one_run import audit_in_one_run

        if runs is not None or algorithm == "all":
            raise UserError(f"one run: takes one algorithm, and no {'runs' if runs is not None else 'list of all'}")
        return [audit_in_one_run(learner or algorithm, each, seed=seed) for each in epsilons]
    if learner is not None:
        return [audit_callable(learner, each, runs=runs, seed=seed) for each in epsilons]
    assert isinstance(algorithm, str)
    names, near = (audits.auditable(), False) if algorithm == "all" else ([algorithm], True)
    return [audits.audit(name, each, runs=runs, seed=seed, near=near, loss=loss) for name in names for each in epsilons]


def audit_releases(*, runs: int | None = None, seed: int = 0) -> list[ReleaseAudit]:
    """Audit every kind of release alone, against its ledger entry, and weakened: noise halved, sample doubled.

    runs: of each, at least 400; None takes 20,000. seed: as of `audit`. Raises UserError for too few runs.
    """
    from dpbench.auditing import releases

    return releases.table(seed=seed) if runs is None else releases.table(runs=runs, seed=seed)


def submit(
    algorithm: str,
    *,
    profile: str = "full",
    problems: Collection[str] = (),
    author: str = "",
    licence: str = "",
    key: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    archive: str | os.PathLike[str] | None = None,
    results: str | os.PathLike[str] = "results",
    jobs: int | None = None,
    progress: Listener = _silent,
    notify: Notify = _silent,
) -> Path:
    """Run the leaderboard's default track for one method, audit it at ε = 1, and write one archive; its path.

    Args:
        algorithm: "path/to/file.py:Class"; it runs at its `public_settings`, on every problem it fits.
        profile: "full", or "quick" for a rehearsal.
        problems: these alone, for a slow method; the archive says that the others were not run.
        author, licence: of the method, as tables show them; the licence as SPDX spells it.
        key: the file with minisign's public key, for an archive that will be signed: later ones of this method must be
            signed by it too.
        runs: of the audit, as of `audit`.
        archive: where to write; None: NAME.dpbench.zip here.
        results, jobs: as of `run_algorithm`; rows are kept in `results/adhoc/submit-NAME`, so a killed call goes on.

    Raises:
        UserError: for a method that is not private, has a taken name, fits nothing, or has failed runs.
    """
    from dpbench.submitting.making import submit as made

    return made(
        algorithm,
        audits=lambda: audit(algorithm, 1.0, runs=runs),
        profile=profile,
        problems=problems,
        author=author,
        licence=licence,
        key=key,
        out=archive,
        results=results,
        jobs=jobs,
        progress=progress,
        notify=notify,
    )


def check_submission(
    archive: str | os.PathLike[str],
    *,
    rerun: bool = False,
    seed: str | os.PathLike[str] | None = None,
    notify: Notify = _silent,
) -> SubmissionReport:
    """Check an archive of `submit` without running anything in it; its `problems` are empty where it is sound.

    rerun: also run its code on every cell under new seeds, on private copies of problems and for an audit, in a sandbox
    (bubblewrap); without a sandbox that works its report's `unchecked` says "not re-run". seed: the file with the
    private copies' secret, see `board_secret`; None draws one. Raises UserError where the archive cannot be read.
    """
    from dpbench.submitting.checking import check

    return check(archive, rerun=_rerun(seed, notify) if rerun else None)


def _rerun(seed: str | os.PathLike[str] | None, notify: Notify) -> Callable[[Any], Any]:
    """What runs a submission again, with this dpbench's audit as judge."""
    from dpbench.auditing.claims import PureClaim
    from dpbench.auditing.decide import decide, least_runs
    from dpbench.submitting import replaying, secret

    level = 1e-3

    def runs(epsilon: float, delta: float) -> int:
        return least_runs(PureClaim(epsilon, delta), level)

    def verdict(first: Any, second: Any, epsilon: float, delta: float) -> tuple[float, float]:
        found = decide(first, second, PureClaim(epsilon, delta), level)
        return found.bound, found.claim

    judge, key = replaying.Judge(runs, verdict), secret.seed_of(seed)
    return lambda submission: replaying.replay(submission, judge, key, notify=notify)


def compact(
    experiment: str, *, profile: str = "full", results: str | os.PathLike[str] = "results"
) -> dict[str, tuple[int, int]]:
    """Drop the rows of an experiment, or of "all", that its grid no longer asks for: name → (rows kept, rows dropped).

    A row goes stale when its algorithm, data or settings change, and is known by its key alone. What cannot be decided
    from the rows that exist, as a method's settings that wait for tuning, is kept. profile, results: as of `report`.
    """
    from dpbench import algorithms, experiments
    from dpbench.run.results import Store
    from dpbench.study.plan import plan

    found = {}
    for one in map(experiments.get, experiments.names() if experiment == "all" else [experiment]):
        store = Store(results, profile, one.name)
        rows = list(store.columns("key", "problem", "algorithm"))
        planned = plan(one.blocks(profile), store)
        there = {key for key, *_ in rows}
        missing = (job for key, job in planned.by_key.items() if key not in there)
        partial = {(job.problem, algorithms.display_name(job.algorithm, job.parsed())) for job in missing}
        tuned = {cell[:2] for block in one.blocks(profile) if block.tuned for cell in block.cells}
        unknown = planned.unknown | (partial & tuned)  # with more rows another setting may be the best
        stale = {key for key, *cell in rows if key not in planned.keys and tuple(cell) not in unknown}
        if stale:
            store.compact(stale)
        found[one.name] = (len(rows) - len(stale), len(stale))
    return found


def board_freeze(
    version: str, *, notes: str = "", profile: str = "full", results: str | os.PathLike[str] = "results"
) -> Version:
    """Freeze the leaderboard's rows as a version: a digest of them, and the places that come of them.

    Rows that the grid no longer asks for are dropped first. version: its name. notes: a line on what is new. profile,
    results: as of `report`. Raises UserError for a name that is taken, and where there are no rows.
    """
    from dpbench.experiments.leaderboard import EXPERIMENT
    from dpbench.experiments.leaderboard.board import frozen
    from dpbench.run.results import Store
    from dpbench.study.context import Context

    compact(EXPERIMENT.name, profile=profile, results=results)
    return frozen(Context(EXPERIMENT, profile, Store(results, profile, EXPERIMENT.name)), version, notes)


def board_versions(
    *, profile: str = "full", results: str | os.PathLike[str] = "results"
) -> tuple[pandas.DataFrame, str]:
    """The frozen versions of the leaderboard, the oldest first, and a sentence on which one the rows are."""
    import pandas as pd

    from dpbench.leaderboard import versions
    from dpbench.run.results import Store

    store = Store(results, profile, "leaderboard")
    rows = [
        {"version": one.name, "frozen": one.frozen, "rows": one.rows, "sha256": one.digest[:12], "notes": one.notes}
        for one in versions.versions(store)
    ]
    return pd.DataFrame(rows), versions.told(store)


def board_retract(
    method: str, *, reason: str, profile: str = "full", results: str | os.PathLike[str] = "results"
) -> Path:
    """Retract a submission: it stays listed with the reason, without a place; the file that says so.

    method: its name. reason: one line. Raises UserError for an unknown one, or one that is retracted already.
    """
    from dpbench.leaderboard import submitted
    from dpbench.run.results import Store

    return submitted.retract(Store(results, profile, "leaderboard"), method, reason)


def board_secret(seed: str | os.PathLike[str], *, profile: str = "full") -> pandas.DataFrame:
    """The private copies of the board's problems that the secret in the file `seed` makes; the file is made if missing.

    A row per copy of a problem whose data are fetched: problem, n and d of the copy, the excess loss of w = 0 there.
    """
    import pandas as pd

    from dpbench.submitting import secret

    return pd.DataFrame(secret.listing(secret.seed_of(seed), profile))


def merge(
    archive: str | os.PathLike[str],
    *,
    results: str | os.PathLike[str] = "results",
    replace: bool = False,
    rerun: bool = False,
    seed: str | os.PathLike[str] | None = None,
    notify: Notify = _silent,
) -> Path:
    """Check an archive of `submit` and add it under `results/PROFILE/leaderboard/submissions/METHOD`; that folder.

    replace: take the place of an earlier one. rerun, seed: as of `check_submission`; without, it is listed as "not
    re-run" and has no place. Raises UserError for one that is not sound.
    """
    from dpbench.submitting.merging import merge as merged

    folder = merged(archive, results, replace=replace, rerun=_rerun(seed, notify) if rerun else None)
    _lay_out_board(results, notify)
    return folder


def _lay_out_board(results: str | os.PathLike[str], notify: Notify) -> None:
    """Put the board's rows that come with the package where `results` has none, and say so."""
    from dpbench.leaderboard import shipped

    if folder := shipped.lay_out(results):
        notify(f"{folder}: the board's rows that come with this version were copied there")
