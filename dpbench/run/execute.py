"""One batch of jobs, from streams to checked rows. The runner and the Python API both end here."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import extract_tb, format_exception
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms, datasets
from dpbench.algorithms.base import Algorithm, BaseSettings, Outcome, batch_settings, no_trace
from dpbench.errors import Defect, PrivacyError, UserError, WorkerDied
from dpbench.privacy.budget import Budget, Budgets
from dpbench.privacy.check import check, guarantee
from dpbench.privacy.disclosure import undeclared
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.streams import stream
from dpbench.problems import Declaration, Problem, build, starts
from dpbench.problems.optimum import NoOptimum, Optimum
from dpbench.problems.scores import held_out_scores
from dpbench.problems.sharded import Elsewhere
from dpbench.run import outcomes
from dpbench.run.environment import environment
from dpbench.run.jobs import JSON, Job, delta_value
from dpbench.run.outcomes import Status
from dpbench.run.results import FILLED, RUNS, Row
from dpbench.run.trace import Clock, Trace, schedule
from dpbench.version import DISTRIBUTION, __version__

# A timed run shorter than this is made twice, and the second is measured: the first pages in the data, solves for the
# noise scale (which is kept) and compiles loops. In a longer one these do not count.
REHEARSED = 10.0  # seconds
Build: TypeAlias = Callable[[str], Problem]
DIVERGED = 1 / np.finfo(float).eps  # an objective this many times that of the start: none of its digits are the data's


class BatchRun(NamedTuple):
    """What came out of one batch: final iterates, the ledger, and what is known of each replicate.

    errors: why a replicate's iterates were withheld, "" where they were not. columns: those of `Outcome`, checked.
    """

    W: np.ndarray
    objective: np.ndarray
    status: list[Status]
    errors: list[str]
    T: Sequence[int | None]
    columns: dict[str, Any]
    mechanisms: Mechanisms
    trace: Trace | None
    seconds: float
    evidence: Any = None  # see Outcome


def run_batch(
    problem: Problem,
    algorithm: Algorithm,
    settings: list[BaseSettings],
    start: np.ndarray,
    budget: Budget | Budgets,
    stream_keys: list[str],
    *,
    traced: bool = False,
    noiseless: bool = False,
    mechanisms_class: type[Mechanisms] = Mechanisms,
    seeds: tuple[int, ...] = (),
) -> BatchRun:
    """Run k replicates together from `start` (k, d); replicate i draws its noise from stream_keys[i] alone.

    seeds: of the replicates' jobs, where there are jobs: see `Mechanisms`.
    """
    declared = budget.relation if algorithm.either else algorithm.relation
    mechanisms = mechanisms_class(stream_keys, budget, noiseless=noiseless, declared=declared)
    mechanisms.seeds = seeds
    checked(algorithm, problem, settings, budget, mechanisms)
    clock = Clock()
    iterations = algorithm.iterations(problem, settings[0])
    trace = Trace(problem.value, schedule(iterations), clock) if traced and iterations else None
    batch = batch_settings(settings, algorithm.per_replicate)
    try:
        with np.errstate(all="ignore"):  # a diverging iterate is a result (its status says so), not a warning
            outcome = algorithm.run(problem, start.copy(), mechanisms, batch, trace or no_trace)
    except Elsewhere as error:
        raise UserError(f"{algorithm.name}: it {error}; run it without shards") from error
    seconds = clock.seconds
    if not isinstance(outcome, Outcome):
        outcome = Outcome(outcome)
    with np.errstate(all="ignore"):
        objective = problem.value(outcome.W)
        within = objective <= DIVERGED
        if not within.all():  # else the start's is not needed, which is a pass over the data
            within = objective <= DIVERGED * np.maximum(1, abs(problem.value(start)))
        sane = np.isfinite(outcome.W).all(axis=1) & within
    k = len(settings)
    errors = list(outcome.withheld or [""] * k)
    status: list[Status] = [
        "refused" if error else "done" if fine else "diverged" for error, fine in zip(errors, sane, strict=True)
    ]
    planned: Sequence[int | None] = outcome.T or [algorithm.iterations(problem, one) for one in settings]
    columns = _declared(algorithm, outcome.columns, k)
    return BatchRun(
        outcome.W, objective, status, errors, planned, columns, mechanisms, trace, seconds, outcome.evidence
    )


def checked(
    algorithm: Algorithm,
    problem: Declaration,
    settings: list[BaseSettings],
    budget: Budget | Budgets,
    mechanisms: Mechanisms,
) -> None:
    """Have every replicate's releases planned, and check them by both routes before the data are touched.

    Raises:
        PrivacyError: for a plan of more than the budget, or of releases that were never declared. The published
            calibrations that keep no ε (`Algorithm.flaw`) are told by their rows.
    """
    bare = problem.bare
    for i, one in enumerate(settings):
        algorithm.plan(bare, mechanisms.member(i), one)
        own = budget[i] if isinstance(budget, Budgets) else budget
        composition = mechanisms.ledger.planned(i)
        claims = bool(composition) and algorithm.private and not algorithm.flaw(one, own.accounting)
        if claims and (error := check(composition, own).error or undeclared(composition, algorithm.labels)):
            raise PrivacyError(f"its plan: {error}")


def _declared(algorithm: Algorithm, columns: dict[str, Any], k: int) -> dict[str, Any]:
    """`columns`; Defect unless each is declared, under a name that is not the runner's, with a value per replicate."""
    declared = {one.name for one in algorithm.diagnostics}
    if clash := sorted(declared & FILLED):
        raise Defect(f"diagnostics: {', '.join(clash)}: columns that the runner fills; give them other names")
    if unknown := sorted(columns.keys() - declared):
        raise Defect(f"{', '.join(unknown)}: returned, but never declared; add a Diagnostic to `diagnostics`")
    if short := sorted(name for name, values in columns.items() if len(values) != k):
        raise Defect(f"{', '.join(short)}: needs a value for each of the {k} replicates")
    return columns


def execute(jobs: list[Job], build: Build = build) -> tuple[list[Row], list[Row]]:
    """Rows of `runs` and of `traces` for jobs of one group; failures become rows, never exceptions.

    build: what gives the problem of a name.
    """
    with threadpool_limits(1):
        try:
            return _sweep(jobs[0], build) if jobs[0].sweep else _execute(jobs, build)
        except (KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:
            return [failed_row(job, error) for job in jobs], []


def _execute(jobs: list[Job], build: Build) -> tuple[list[Row], list[Row]]:
    first = jobs[0]
    algorithm = algorithms.get(first.algorithm)
    problem = build(first.problem)
    settings = [algorithm.complete(problem, job.parsed()) for job in jobs]
    flaw = algorithm.flaw(settings[0], algorithm.accounting(first.accounting))
    algorithm.needs.check(problem, algorithm.name, rows=not flaw)
    budgets = [
        Budget(
            epsilon=job.epsilon,
            delta=delta_value(job.delta, problem.n),
            relation=job.neighbours,
            accounting=algorithm.accounting(job.accounting),
        )
        for job in jobs
    ]
    budget = budgets[0] if len(set(budgets)) == 1 else Budgets(tuple(budgets))
    rule = first.recipe.start
    start = np.stack([starts.draw(rule, problem.d, stream(job.start_key, "init")) for job in jobs])
    keys = [job.stream_key for job in jobs]
    seeds = tuple(job.seed for job in jobs)
    run = run_batch(problem, algorithm, settings, start, budget, keys, traced=first.trace, seeds=seeds)
    if first.timed and run.seconds < REHEARSED:
        run = run_batch(problem, algorithm, settings, start, budget, keys, traced=first.trace, seeds=seeds)
    outcome = Outcome(run.W, run.columns, evidence=run.evidence)
    measured = algorithm.measure(problem, outcome, settings[0], [stream(job.stream_key, "measure") for job in jobs])
    run = run._replace(columns=run.columns | _declared(algorithm, measured, len(jobs)))
    optimum = _optimum(problem)
    rows = _rows(jobs, settings, problem, algorithm, budgets, run, optimum)
    return rows, _trace_rows(jobs, run.trace, optimum)


def _sweep(job: Job, build: Build) -> tuple[list[Row], list[Row]]:
    """The one row of a sweep: the excess losses of its members (infinite where one diverged), their worst ε."""
    members = job.members()
    problem, algorithm = build(job.problem), algorithms.get(job.algorithm)
    size = algorithm.batch_size(problem.n, problem.d)
    rows = [row for i in range(0, len(members), size) for row in _execute(members[i : i + size], build)[0]]
    worst = max(rows, key=lambda row: (row["status"] not in outcomes.RESULTS, row["epsilon_planned"]))
    kept = ("T", "delta", "relation", "accounting", "private", "epsilon_planned", "epsilon_realised",
            "epsilon_accounted", "checked_by", "counts_public", "error", "data_sha256")  # fmt: skip
    excess = [row["excess"] if row["status"] == "done" and np.isfinite(row["excess"]) else np.inf for row in rows]
    status = outcomes.worst([row["status"] for row in rows])
    status = "done" if status in outcomes.RESULTS else status
    return [describe(job, job.parsed()) | {k: worst[k] for k in kept} | {"values": excess, "status": status}], []


@functools.lru_cache(maxsize=32)  # a failed search is long, and not worth repeating for every batch
def _optimum(problem: Problem) -> Optimum | None:
    """None where there is none to high accuracy (nonconvex, separable data): excess is then left empty."""
    try:
        return problem.optimum() if problem.convex else None
    except NoOptimum:
        return None


def _support(problem: Problem, W: np.ndarray, optimum: Optimum | None) -> dict[str, np.ndarray]:
    """With l1: the non-zeros of each of W (k, d) that the optimum has too, and those that it has not."""
    if not problem.l1 or optimum is None:
        return {}
    found, true = W != 0, optimum.w != 0
    return {"support_correct": (found & true).sum(axis=1), "support_wrong": (found & ~true).sum(axis=1)}


def _held_out(job: Job, problem: Problem, W: np.ndarray, optimum: Optimum | None) -> dict[str, np.ndarray]:
    """Scores on the rows that the data set keeps apart, where it does."""
    data = datasets.load(job.recipe.dataset)
    if data.held_out is None:
        return {}
    reference = np.zeros(problem.d) if optimum is None else optimum.w
    with np.errstate(all="ignore"):
        return held_out_scores(problem.loss, *data.held_out, W, reference, problem.mean_label)


def _rows(
    jobs: list[Job],
    settings: list[BaseSettings],
    problem: Problem,
    algorithm: Algorithm,
    budgets: list[Budget],
    run: BatchRun,
    optimum: Optimum | None,
) -> list[Row]:
    with np.errstate(all="ignore"):
        gradient_norm = np.linalg.norm(problem.gradient(run.W), axis=1)
        accuracy = problem.accuracy(run.W) if problem.loss.binary else None
    columns = run.columns | _support(problem, run.W, optimum) | _held_out(jobs[0], problem, run.W, optimum)
    rows = []
    for i, job in enumerate(jobs):
        flaw = algorithm.flaw(settings[i], budgets[i].accounting)
        privacy = _privacy(run.mechanisms.ledger, i, budgets[i], algorithm, flaw, run.errors[i])
        given = {name: values[i] for name, values in columns.items() if not _blank(values[i])}
        plain = {name: msgspec.to_builtins(value, enc_hook=_plain) for name, value in given.items()}
        own = {name: plain.pop(name) for name in plain.keys() - RUNS.keys()}
        rows.append(
            describe(job, settings[i])
            | plain
            | {
                "diagnostics": JSON.encode(own).decode() if own else None,
                "T": run.T[i],
                "delta": budgets[i].delta,
                "objective": float(run.objective[i]),
                "excess": None if optimum is None else float(run.objective[i] - optimum.value),
                "gradient_norm": float(gradient_norm[i]),
                "accuracy": None if accuracy is None else float(accuracy[i]),
                "seconds": run.seconds if job.timed else None,
                "status": run.status[i],
                "data_sha256": problem.data_hash,
            }
            | privacy
        )
    return rows


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else float(value)


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value)


def _privacy(ledger: Ledger, i: int, budget: Budget, algorithm: Algorithm, flaw: str, withheld: str) -> Row:
    """The privacy columns, which nothing else writes; a private run that fails its check is a defect."""
    columns: Row = {
        "relation": budget.relation.value,
        "accounting": budget.accounting,
        "private": algorithm.private and not flaw,
    }
    result = guarantee(ledger, i, budget, algorithm.labels)
    columns |= {"epsilon_planned": result.planned, "epsilon_realised": result.realised}
    columns |= {"epsilon_accounted": result.accounted, "checked_by": result.checked_by, "error": withheld or flaw}
    if columns["private"] and result.error:
        columns |= {"status": "defect", "private": False, "error": result.error}
    return columns


def describe(job: Job, settings: BaseSettings) -> Row:
    """The columns that are known before a job has run."""
    values = msgspec.to_builtins(settings)
    full = {name: getattr(settings, name) for name in settings.__struct_fields__} | values
    return {
        "key": job.key,
        "problem": job.problem,
        "algorithm": algorithms.display_name(job.algorithm, settings),
        "epsilon": job.epsilon,
        "seed": job.seed,
        "settings": msgspec.json.encode(full | job.axes, order="deterministic").decode(),
        "sweep": job.sweep or None,
        "T": full.get("T"),
        "timed": job.timed,
        "code_version": code_version(),
        "environment": environment(),
        "counts_public": algorithms.get(job.algorithm).public(settings),
    }


def failed_row(job: Job, error: BaseException) -> Row:
    """The row of a job that raised: its description, and one line on why.

    "traceback" is for the user of this run, and not kept in the store.
    """
    algorithm = algorithms.get(job.algorithm)
    line, traceback = " ".join(str(error).split()) or type(error).__name__, ""
    if not isinstance(error, UserError | Defect | WorkerDied):
        line = f"{type(error).__name__}: {line}{_place(error, algorithm)}"[:500]
        traceback = "".join(format_exception(error)) if error.__traceback__ else ""
    return describe(job, job.parsed()) | {
        "delta": None if isinstance(job.delta, str) else job.delta,
        "status": outcomes.of(error),
        "error": line[:500],
        "traceback": traceback,
        "relation": job.neighbours.value,
        "accounting": algorithm.accounting(job.accounting),
        "private": algorithm.private,
    }


def _place(error: BaseException, algorithm: Algorithm) -> str:
    """ " (file:line)" of the algorithm's own code that raised; of any code where that was not in it; "" of none."""
    frames = extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == type(algorithm).run.__code__.co_filename]
    return "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in (own or frames)[-1:])


def _trace_rows(jobs: list[Job], trace: Trace | None, optimum: Optimum | None) -> list[Row]:
    if trace is None:
        return []
    reference = 0.0 if optimum is None else optimum.value
    return [
        {
            "key": job.key,
            "iteration": iteration,
            "passes": float(passes[i]),
            "seconds": seconds if job.timed else None,
            "excess": float(values[i] - reference),
        }
        for i, job in enumerate(jobs)
        for iteration, passes, seconds, values in trace.points
        if not np.isnan(passes[i])
    ]


@functools.cache
def code_version() -> str:
    """Distribution and version, with the commit when it runs from a git checkout; in rows, not in their keys."""
    version = f"{DISTRIBUTION} {__version__}"
    root = Path(__file__).resolve().parent.parent.parent
    if not (root / ".git").exists():
        return version
    try:
        commit = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short=10", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        commit = ""
    return f"{version}+g{commit}" if commit else version
