"""Rows for any experiment's quick grid, made up from names and settings alone: the same on every machine, no solver."""

import hashlib
import itertools
import json
import math

from dpbench.run.execute import describe
from dpbench.run.row import RUNS
from dpbench.run.store import Store
from dpbench.study.plan import plan
from tests.batches import write

STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
ENDINGS = {"nonconvex": ("terminated", "terminated", "terminated", "not terminated")}


def uniform(*names) -> float:
    """A number in (0, 1) that these names determine."""
    digest = hashlib.sha256(repr(names).encode()).digest()
    return (int.from_bytes(digest[:6], "big") + 0.5) / 2**48


def excess_of(job, settings: str) -> float:
    cell = uniform(job.problem, job.algorithm, settings)
    return 10 ** (-1 - 2 * cell) / math.sqrt(job.epsilon) * (0.9 + 0.2 * uniform(settings, job.seed))


def row_and_traces(job, experiment: str) -> tuple[dict, list[dict]]:
    known = {name: value for name, value in describe(job, job.parsed()).record().items() if value is not None}
    final = excess_of(job, known["settings"])
    T = known.get("T") or 50

    def number(name, low=0.0, high=1.0):
        return low + (high - low) * uniform(name, job.algorithm, job.problem, known["settings"], job.seed)

    row = {name: number(name) for name, kind in RUNS.items() if kind == "double"}
    row |= {name: round(number(name, 1, 100)) for name, kind in RUNS.items() if kind == "int64"}
    endings = ENDINGS.get(experiment, (None,))
    row["planted"] = None  # noise as it should be, unless the job says otherwise
    row |= known | {
        "T": T,
        "excess": final,
        "objective": 0.3 + final,
        "epsilon_planned": 0.95 * job.epsilon,
        "epsilon_realised": 0.95 * job.epsilon,
        "delta": 1e-6,
        "seconds": number("seconds", 0.1, 0.2) * T / 100 if job.timed else None,
        "iterations": T,
        "status": "done",
        "ending": endings[int(number("status") * len(endings))],
        "relation": "add-remove",
        "accounting": job.accounting if job.accounting != "paper" else "bs16",
        "private": True,
        "code_version": "made up",
        "environment": "made up",
    }
    if job.algorithm == "probe-optimum":
        notes = {"n": 1000, "d": 100, "weights": {"l1": number("l1")}, "M": [0.5, 0.1, 0.9], "start": 2.0}
        row |= {"notes": json.dumps(notes), "values": [number(i) for i in range(12)]}
    if job.algorithm == "probe-kinks":
        notes = {name: number(name) for name in ("start", "first", "F_start", "F", "error", "noise")}
        more = {"epochs": 24, "failed": round(number("failed", 0, 24)), "off": [number("off"), number("aside")]}
        row["notes"] = json.dumps(notes | more)
    if job.sweep:
        members = math.prod(len(values) for values in job.axes.values())
        row["values"] = [10 ** (-2 * uniform(known["settings"], job.problem, i, job.seed)) for i in range(members)]
    traces = [
        {"key": job.key, "iteration": t, "passes": float(t), "excess": final * (1 + 9 * math.exp(-t / 3)),
         "seconds": (row["seconds"] or 0.0) * t / T}
        for t in sorted({*itertools.takewhile(lambda t: t < T, STEPS), T})
    ]  # fmt: skip
    return row, traces if job.trace else []


def made_up(experiment, folder) -> Store:
    """A store of the experiment's quick grid; blocks that wait for tuning follow when their rows are there."""
    store = Store(folder, "quick", experiment.name)
    for _ in range(4):
        there, traced = set(store.runs()["key"]), store.traced()
        planned = plan(experiment.blocks("quick"), store).jobs
        jobs = [job for job in planned if job.key not in there or (job.trace and job.key not in traced)]
        if not jobs:
            break
        made = [row_and_traces(job, experiment.name) for job in jobs]
        write(store, [row for row, _ in made], [trace for _, traces in made for trace in traces])
    return store
