"""What verbs print: the progress of long work, and tables.

Progress is a bar with ETA on a terminal, plain lines with the same facts elsewhere. Tables have aligned columns, in
plain text, the same on a terminal and in a file.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import textwrap
import time
import types
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpbench.errors import counted

if TYPE_CHECKING:
    from rich import progress as rich_progress
    from rich.text import Text

    from dpbench.run.runner import Progress


# Seconds between plain lines, at the least: a log of an hour's run stays readable.
EVERY = 15.0


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


class _Reading:
    def doing(self, what: str, share: float) -> None:
        """What is being done, and the share of it."""
        raise NotImplementedError

    def reading(self, what: str, share: float) -> None:
        """Of a large file: what is being done, and the share of it."""
        self.doing(f"reading, {what}", share)


class _Bar(_Reading):
    def __init__(self, bar: rich_progress.Progress, task: rich_progress.TaskID) -> None:
        self._bar, self._task, self._doing = bar, task, ""

    def __call__(self, state: Progress) -> None:
        # Fewer runs are done than before: a second phase has begun.
        if state.done <= self._bar.tasks[0].fields["done"] or self._doing:
            self._begin("")
        self._bar.update(
            self._task, completed=state.share, done=state.done, total_jobs=state.total, description=_name(state)
        )

    def doing(self, what: str, share: float) -> None:
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


class _Lines(_Reading):
    def __init__(self) -> None:
        self._start = self._last = time.monotonic()
        self._done, self._doing = 0, ""

    def __call__(self, state: Progress) -> None:
        now = time.monotonic()
        # Fewer runs are done than before: a second phase has begun.
        if state.done <= self._done:
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

    def doing(self, what: str, share: float) -> None:
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


class _Later(types.ModuleType):
    """Stands for a module until a name of it is asked for; importlib's own LazyLoader loads at a second `import`."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        vars(self).update(vars(importlib.import_module(self.__name__)))
        return object.__getattribute__(self, name)


def lazily(name: str) -> None:
    """Let `import name` load the module at the first use of one of its names: a verb that uses none does not wait."""
    if name not in sys.modules:
        later = _Later(name)
        later.__spec__ = importlib.util.find_spec(name)
        sys.modules[name] = later


def say(line: str) -> None:
    """What is no result goes to stderr."""
    click.echo(line, err=True)


# What is no terminal has as many columns as a line needs.
UNKNOWN = 100_000
INDENT = "    "


def width(text: str) -> int:
    """How many columns of the terminal a text takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def print_table(header: list[str], rows: list[list[str]], right: Collection[int] = (), *, below: bool = False) -> None:
    """Print rows under a header; columns whose index is in `right` are aligned on the right.

    below: on a terminal that is too narrow, the last columns stand in lines of their own below each row.
    """
    room = shutil.get_terminal_size((UNKNOWN, 24)).columns
    cells = [header, *rows]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]
    kept = len(header)
    while below and kept > 1 and sum(widths[:kept]) + 2 * (kept - 1) > room:
        kept -= 1

    def line(row: list[str]) -> str:
        parts = []
        for i, text in enumerate(row[:kept]):
            gap = " " * (widths[i] - width(text))
            parts.append(gap + text if i in right else text + gap)
        return "  ".join(parts).rstrip()

    click.echo(line(header))
    click.echo("  ".join("─" * w for w in widths[:kept]))
    for row in rows:
        click.echo(line(row))
        for text in filter(None, row[kept:]):
            click.echo(textwrap.fill(text, room, initial_indent=INDENT, subsequent_indent=INDENT))


Row = TypeVar("Row")


def print_columns(rows: Iterable[Row], columns: Mapping[str, Callable[[Row], object]], **how: Any) -> None:
    """Print a table whose columns are declared as {header: cell of a row}.

    A column of numbers has a header that begins with >. how: as of `print_table`.
    """
    right = {i for i, header in enumerate(columns) if header.startswith(">")}
    cells = [[str(cell(row)) for cell in columns.values()] for row in rows]
    print_table([header.removeprefix(">") for header in columns], cells, right, **how)


def fitting(
    header: list[str], rows: list[list[str]], droppable: Iterable[int], dropped: Iterable[int] = ()
) -> list[int]:
    """The columns that are printed: without `dropped`, and without the first of `droppable` until the rest has room."""
    kept = [i for i in range(len(header)) if i not in {*dropped}]
    room = shutil.get_terminal_size((120, 24)).columns
    for least in droppable:
        if sum(max(width(line[i]) for line in (header, *rows)) + 2 for i in kept) - 2 <= room:
            break
        kept = [i for i in kept if i != least]
    return kept


def tell(text: str, err: bool = False) -> None:
    """Print a paragraph, wrapped to the terminal."""
    for line in textwrap.wrap(text, min(shutil.get_terminal_size((120, 24)).columns, 120), break_on_hyphens=False):
        click.echo(line, err=err)


def number(value: float | None, digits: int = 3) -> str:
    """
    >>> number(0.000123456), number(None), number(float("inf"))
    ('0.000123', '–', 'inf')
    """
    return "–" if value is None or value != value else f"{value:.{digits}g}"


def marked(name: str, private: bool, code: object) -> str:
    """A name, with what a reader must not miss: that no ε holds, or that its code ran beside the rows."""
    foreign = code if isinstance(code, str) and code != "built in" else ""
    marks = "; ".join(filter(None, ("" if private else "not private", foreign)))
    return f"{name} ({marks})" if marks else name
