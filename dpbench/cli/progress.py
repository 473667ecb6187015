"""Progress of long work: a bar with ETA on a terminal, plain lines with the same facts elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from dpbench.errors import counted

if TYPE_CHECKING:
    from rich import progress as rich_progress
    from rich.text import Text

    from dpbench.run.runner import Progress

EVERY = 15.0  # seconds between plain lines, at the least


@contextmanager
def progress() -> Iterator[_Bar | _Lines]:
    """Yields a callback for `runner.run(report=…)`."""
    if sys.stderr.isatty():
        with _bar() as callback:
            yield callback
    else:
        yield _Lines()


@contextmanager
def _bar() -> Iterator[_Bar]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Left(ProgressColumn):
        """ETA from the share that is done and the time it took: known from the first batch on, 0:00 only at the end."""

        def render(self, task: rich_progress.Task) -> Text:
            return Text(f"ETA {eta(task.elapsed or 0.0, task.completed)}", no_wrap=True)

    bar = Progress(
        TextColumn("{task.fields[done]}/{task.fields[total_jobs]}", table_column=Column(no_wrap=True)),
        BarColumn(bar_width=12),
        TextColumn("{task.percentage:>3.0f} %", table_column=Column(no_wrap=True)),
        Left(table_column=Column(no_wrap=True)),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        console=Console(stderr=True),
        expand=True,
    )
    task = bar.add_task("", total=1.0, done=0, total_jobs="?")

    with bar:
        yield _Bar(bar, task)


class _Bar:
    def __init__(self, bar: rich_progress.Progress, task: rich_progress.TaskID) -> None:
        self._bar, self._task, self._doing = bar, task, ""

    def __call__(self, state: Progress) -> None:
        if state.done <= self._bar.tasks[0].fields["done"] or self._doing:  # a second phase
            self._begin("")
        self._bar.update(
            self._task, completed=state.share, done=state.done, total_jobs=state.total, description=_name(state)
        )

    def reading(self, what: str, share: float) -> None:
        """Of a large file: what is being done, and the share of it."""
        self.doing(f"reading, {what}", share)

    def doing(self, what: str, share: float) -> None:
        """What is being done, and the share of it."""
        if what != self._doing:
            self._begin(what)
        self._bar.update(self._task, completed=share, description=what)

    def _begin(self, what: str) -> None:
        self._doing = what
        self._bar.reset(self._task, total=1.0, done=0, total_jobs="?")


def eta(elapsed: float, share: float) -> str:
    """What is left at the pace so far; never 0:00 before the end.

    >>> eta(30.0, 0.25), eta(3.0, 0.999), eta(3.0, 1.0), eta(3.0, 0.0)
    ('1:30', '0:01', '0:00', '–')
    """
    if share <= 0:
        return "–"
    return clock(elapsed * (1 - share) / share if share >= 1 else max(1.0, elapsed * (1 - share) / share))


class _Lines:
    def __init__(self) -> None:
        self._start = self._last = time.monotonic()
        self._done, self._doing = 0, ""

    def __call__(self, state: Progress) -> None:
        now = time.monotonic()
        if state.done <= self._done:  # a second phase
            self._start = self._last
        self._done = state.done
        if now - self._last < EVERY and state.done < state.total:
            return
        self._last = now
        elapsed = now - self._start
        click.echo(
            f"{state.done:>6}/{state.total} runs  {100 * state.share:3.0f} %  elapsed {clock(elapsed)}  "
            f"ETA {eta(elapsed, state.share)}  {_name(state)}",
            err=True,
        )

    def reading(self, what: str, share: float) -> None:
        """Of a large file: what is being done, and the share of it."""
        self.doing(f"reading, {what}", share)

    def doing(self, what: str, share: float) -> None:
        """What is being done, and the share of it."""
        now = time.monotonic()
        if self._doing != what:
            self._start, self._doing = now, what
        if now - self._last >= EVERY or share >= 1:
            self._last = now
            elapsed = now - self._start
            click.echo(f"{what}  {100 * share:3.0f} %  elapsed {clock(elapsed)}  ETA {eta(elapsed, share)}", err=True)


def _name(state: Progress) -> str:
    alone = "  (timed alone)" if state.seconds_alone else ""
    mark = "" if state.last.private else " (not private)"
    name = state.last.algorithm.rpartition("/")[2]
    return f"{name}{mark} on {state.last.problem}, ε = {state.last.epsilon:g}{alone}"


def clock(seconds: float) -> str:
    """
    >>> clock(3725)
    '1:02:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def duration(seconds: float) -> str:
    """A time in words, to the order that a rough estimate has.

    >>> duration(30.0), duration(5400.0), duration(2e5), duration(3e9)
    ('1 minute', '2 hours', '2 days', '95 years')
    """
    for unit, length in (("year", 31_557_600.0), ("day", 86_400.0), ("hour", 3_600.0)):
        if seconds >= length:
            return counted(round(seconds / length), unit) if seconds < 1e15 else "more than a million years"
    return counted(max(1, round(seconds / 60)), "minute")


@contextmanager
def downloads() -> Iterator[Callable[[str, int, int], None]]:
    """Yields a callback (file name, bytes so far, bytes in all or 0) for `datasets.fetch(progress=…)`."""
    if not sys.stderr.isatty():
        yield _DownloadLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
    )
    tasks: dict[str, rich_progress.TaskID] = {}

    def callback(name: str, done: int, total: int) -> None:
        if name not in tasks:
            tasks[name] = bar.add_task(name)
        bar.update(tasks[name], completed=done, total=total or None)

    with bar:
        yield callback


class _DownloadLines:
    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def __call__(self, name: str, done: int, total: int) -> None:
        now = time.monotonic()
        if name in self._last and now - self._last[name] < EVERY and done != total:
            return
        self._last[name] = now
        of = f" of {total / 1e6:.1f}" if total else ""
        click.echo(f"{name}: {done / 1e6:.1f}{of} MB", err=True)
