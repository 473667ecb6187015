"""Progress of long work: a bar with ETA on a terminal, plain lines with the same facts elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager

import click

EVERY = 15.0  # seconds between plain lines, at the least


@contextmanager
def progress():
    """Yields a callback for `runner.run(report=…)`."""
    if sys.stderr.isatty():
        with _bar() as callback:
            yield callback
    else:
        yield _Lines()


@contextmanager
def _bar():
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.fields[done]}/{task.fields[total_jobs]} runs"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
    )
    task = bar.add_task("", total=1.0, done=0, total_jobs="?")

    def callback(state):
        bar.update(task, completed=state.share, done=state.done, total_jobs=state.total, description=_name(state))

    with bar:
        yield callback


class _Lines:
    def __init__(self):
        self._start = self._last = time.monotonic()

    def __call__(self, state):
        now = time.monotonic()
        if now - self._last < EVERY and state.done < state.total:
            return
        self._last = now
        elapsed = now - self._start
        left = elapsed * (1 - state.share) / state.share if state.share else float("inf")
        click.echo(
            f"{state.done:>6}/{state.total} runs  {100 * state.share:3.0f} %  elapsed {clock(elapsed)}  "
            f"ETA {clock(left)}  {_name(state)}",
            err=True,
        )


def _name(state) -> str:
    alone = "  (timed alone)" if state.seconds_alone else ""
    return f"{state.last.algorithm.rpartition('/')[2]} on {state.last.problem}, ε = {state.last.epsilon:g}{alone}"


def clock(seconds: float) -> str:
    """
    >>> clock(3725)
    '1:02:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


@contextmanager
def downloads():
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
    tasks = {}

    def callback(name, done, total):
        if name not in tasks:
            tasks[name] = bar.add_task(name)
        bar.update(tasks[name], completed=done, total=total or None)

    with bar:
        yield callback


class _DownloadLines:
    def __init__(self):
        self._last = {}

    def __call__(self, name, done, total):
        now = time.monotonic()
        if name in self._last and now - self._last[name] < EVERY and done != total:
            return
        self._last[name] = now
        of = f" of {total / 1e6:.1f}" if total else ""
        click.echo(f"{name}: {done / 1e6:.1f}{of} MB", err=True)
