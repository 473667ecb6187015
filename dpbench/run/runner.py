"""From a list of jobs to rows in the store: group, batch, run in a process pool, survive what goes wrong.

How long a call of `run` still takes is known from rough costs before it starts, then from the batches that have ended.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from dpbench import algorithms, datasets
from dpbench.errors import UserError
from dpbench.run import outcomes
from dpbench.run.cluster import BatchRows
from dpbench.run.executors import Here, cores, open_executor, results
from dpbench.run.job import Job, seconds, work
from dpbench.run.row import Row
from dpbench.run.store import Store

FADE = 0.8  # weight of a batch for each that ended after it


class Pace:
    """Seconds left, at the pace of the batches that ended last.

    Per flop and per run, and the lesser of the two: batches start with the costliest, so that where runs wait for more
    than arithmetic (noise that is calibrated for each, say) seconds per flop go up and say so, and where the rest is
    cheap seconds per run say too much. `clock` gives seconds.
    """

    def __init__(self, work: float, runs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = [work or 1.0, float(runs or 1)]
        self._clock = clock
        self._start = self._last = clock()
        self._rates, self._weight = [0.0, 0.0], 0.0  # sums of seconds per flop and per run, and of their weights

    def ended(self, work: float, runs: int) -> None:
        """Note a batch that has just ended."""
        now = self._clock()
        for i, done in enumerate((work, runs)):
            self._rates[i] = FADE * self._rates[i] + (now - self._last) / max(done, 1e-300)
            self._left[i] = max(0.0, self._left[i] - done)
        self._weight = FADE * self._weight + 1.0
        self._last = now

    @property
    def left(self) -> float:
        """Seconds left; infinite before the first batch has ended, 0 after the last."""
        if self._left[1] <= 0:
            return 0.0
        if not self._weight:
            return math.inf
        return min(rate / self._weight * left for rate, left in zip(self._rates, self._left, strict=True))

    @property
    def share(self) -> float:
        """The share of the time that has passed, in [0, 1]; 1 only at the end."""
        left, passed = self.left, self._last - self._start
        if self._left[1] <= 0:
            return 1.0
        return min(passed / (passed + left), 0.999) if math.isfinite(left) and passed + left > 0 else 0.0


# The full profile of nonconvex, simulated on 10 workers, takes 0:51 hours at 4 and 1:14 at 1, where its longest batch
# decides.
CUT = 4


@dataclass
class RunSummary:
    """What a call of `run` did: rows by status, jobs found finished, and the rows without a result."""

    found: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[Row] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return len(self.failures)

    def __add__(self, other: RunSummary) -> RunSummary:
        """Of two calls, one after the other."""
        return RunSummary(
            self.found + other.found,
            self.statuses + other.statuses,
            self.failures + other.failures,
            self.keys + other.keys,
        )


@dataclass(frozen=True)
class Progress:
    """Reported after each batch: the share of the time that has passed, in [0, 1], and what just ended."""

    share: float
    done: int
    total: int
    last: Job
    seconds_alone: bool


def estimate(jobs: list[Job], store: Store, workers: int | None) -> float:
    """Roughly the seconds that the jobs take which the store has not finished; infinite where the cost overflows."""
    ended = store.ended()
    missing = [job for job in jobs if not ended.done(job.key, job.trace)]
    timed = sum(1 for job in missing if job.timed)
    flops = [job.cost for job in missing]
    steps = sum(job.run_count * float(getattr(job.parsed(), "T", None) or 1) for job in missing)
    return seconds(sum(flops), steps, 1 if timed else workers or cores())


def batches(jobs: list[Job], workers: int = 1) -> list[list[Job]]:
    """Jobs grouped into batches that advance together, the costliest first so that no core idles at the end.

    With many `workers`, a batch that is more than a quarter of one's even share is cut: it would be the last to end.
    """
    groups = defaultdict(list)
    for job in jobs:
        groups[job.group].append(job)
    share = sum(map(work, jobs)) / workers
    result = []
    for group in groups.values():
        size = algorithms.get(group[0].algorithm).batch_size(*group[0].size)
        part = min(size, max(1, int(share / CUT / work(group[0])))) if workers > 1 else size
        for first in range(0, len(group), size):
            batch = group[first : first + size]
            result += [batch[i : i + part] for i in range(0, len(batch), part)]
    return sorted(result, key=lambda batch: -sum(work(job) for job in batch))


def run(
    jobs: list[Job],
    store: Store,
    *,
    workers: int | None = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    part: str | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> RunSummary:
    """Run the jobs that the store has not finished and write each batch's rows as soon as it ends.

    Batches of untimed jobs go to the executor of `backend`, `workers` and `scheduler` (see `executors`).
    Timed jobs run afterwards, one at a time with nothing else of ours running, in the driver. Interrupting loses at
    most the batches in flight.
    part: of a run that several processes share, "2/8" the second of eight.
    """
    unique = {job.key: job for job in (jobs if part is None else part_of(jobs, part))}
    there = store.ended()
    missing = [job for key, job in unique.items() if not there.done(key, job.trace)]
    if missing:
        store.prepare()
        _heal(missing)
    summary = RunSummary(found=len(unique) - len(missing), keys=list(unique))
    pace, done = Pace(sum(work(job) for job in missing), len(missing)), 0

    def ended(batch: list[Job], rows: BatchRows, alone: bool) -> None:
        nonlocal done
        store.write(rows.runs, rows.traces)
        summary.statuses.update(str(row.status) for row in rows.runs)
        summary.failures += [row for row in rows.runs if row.status not in outcomes.RESULTS]
        done += len(batch)
        pace.ended(sum(work(job) for job in batch), len(batch))
        report(Progress(pace.share, done, len(missing), batch[-1], alone))

    timed = [job for job in missing if job.timed]
    pooled = [job for job in missing if not job.timed]
    if pooled:
        with open_executor(backend, workers, scheduler) as executor:
            for batch, rows in results(batches(pooled, executor.shares()), executor):
                ended(batch, rows, alone=False)
    for batch, rows in results(batches(timed), Here()):
        ended(batch, rows, alone=True)
    # Every row is in the store by now, so merging its parts may fail, and waits for the next run.
    with contextlib.suppress(UserError):
        store.compact()
    return summary


def part_of(jobs: list[Job], part: str) -> list[Job]:
    """The jobs of part "I/N": by a hash of their group, so that what is computed as one batch stays together.

    UserError unless 1 ≤ I ≤ N.
    """
    number, slash, count = part.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UserError(f"part must be I/N with 1 ≤ I ≤ N, as 2/8, got {part!r}")
    return [job for job in jobs if zlib.crc32(repr(job.group).encode()) % int(count) == int(number) - 1]


def _heal(jobs: list[Job]) -> None:
    """Hash the prepared data before they are used; what was damaged on the disk is prepared anew."""
    for name in sorted({job.recipe.dataset for job in jobs}):
        if datasets.heal(name):
            print(f"warning: data set {name}: its prepared arrays were damaged; prepared anew", file=sys.stderr)
