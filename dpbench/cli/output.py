"""What verbs print: the progress of long work, and tables.

Progress is a line with ETA, written over on a terminal. Tables have aligned columns, in plain text, the same on a
terminal and in a file.
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
    from dpbench.run.runner import Progress


# Seconds between plain lines, at the least: a log of an hour's run stays readable. On a terminal one line changes.
EVERY, OFTEN = 15.0, 0.1
CLEAR = "\x1b[K"  # to the end of the line; click leaves it out where there is no terminal


class ProgressLine:
    """What long work prints on stderr: on a terminal one line, written over; elsewhere one every EVERY seconds."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._start = self._last = time.monotonic()
        self._done, self._doing = 0, ""

    def __call__(self, state: Progress) -> None:
        """Of `runner.run(report=…)`."""
        # Fewer runs are done than before: a second phase has begun.
        if state.done <= self._done:
            self._start = self._last
        self._done = state.done
        what = f"{state.done:>6}/{state.total} runs"
        self._share(what, state.share, state.done >= state.total, f"  {_name(state)}")

    def doing(self, what: str, share: float) -> None:
        """What is being done, and the share of it."""
        if self._doing != what:
            self._start, self._doing = time.monotonic(), what
        self._share(what, share, share >= 1)

    def reading(self, what: str, share: float) -> None:
        """Of a large file: what is being done, and the share of it."""
        self.doing(f"reading, {what}", share)

    def download(self, name: str, done: int, total: int) -> None:
        """Of `datasets.fetch(progress=…)`: bytes so far, and in all, 0 where nobody says."""
        of = f" of {total / 1e6:.1f}" if total else ""
        begins, self._doing = self._doing != name, name
        self._print(f"{name}: {done / 1e6:.1f}{of} MB", begins or done == total)

    def _share(self, what: str, share: float, ends: bool, more: str = "") -> None:
        elapsed = time.monotonic() - self._start
        times = f"elapsed {clock(elapsed)}  ETA {eta(elapsed, share)}"
        self._print(f"{what}  {100 * share:3.0f} %  {times}{more}", ends)

    def _print(self, line: str, always: bool) -> None:
        now = time.monotonic()
        if not always and now - self._last < (OFTEN if self._live else EVERY):
            return
        self._last = now
        room = shutil.get_terminal_size().columns - 1
        click.echo(f"{line[:room]}{CLEAR}\r" if self._live else line, err=True, nl=not self._live)

    def close(self) -> None:
        """What comes next stands below the last line."""
        if self._live and self._last > self._start:
            click.echo(err=True)


@contextmanager
def progress() -> Iterator[ProgressLine]:
    """Yields what long work reports to."""
    line = ProgressLine()
    try:
        yield line
    finally:
        line.close()


def _name(state: Progress) -> str:
    alone = "  (timed alone)" if state.seconds_alone else ""
    mark = "" if state.last.private else " (not private)"
    name = state.last.algorithm.rpartition("/")[2]
    return f"{name}{mark} on {state.last.problem}, ε = {state.last.epsilon:g}{alone}"


def eta(elapsed: float, share: float) -> str:
    """What is left at the pace so far; never 0:00 before the end.

    >>> eta(30.0, 0.25), eta(3.0, 0.999), eta(3.0, 1.0), eta(3.0, 0.0)
    ('1:30', '0:01', '0:00', '–')
    """
    if share <= 0:
        return "–"
    return clock(elapsed * (1 - share) / share if share >= 1 else max(1.0, elapsed * (1 - share) / share))


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

    >>> duration(30.0), duration(3000.0), duration(5400.0), duration(2e5), duration(3e9)
    ('1 minute', '50 minutes', '2 hours', '2 days', '95 years')
    """
    for unit, length in (("year", 31_557_600.0), ("day", 86_400.0), ("hour", 3_600.0)):
        if seconds >= length:
            return counted(round(seconds / length), unit) if seconds < 1e15 else "more than a million years"
    return counted(max(1, round(seconds / 60)), "minute")


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
    """What is no result goes to stderr; over the line of progress, where there is one."""
    click.echo(CLEAR + line, err=True)


# What is no terminal has as many columns as a line needs.
UNKNOWN = 100_000
INDENT = "    "


def width(text: str) -> int:
    """How many columns of the terminal a text takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def print_table(
    header: list[str],
    rows: list[list[str]],
    right: Collection[int] = (),
    droppable: Iterable[str] = (),
) -> None:
    """Print rows under a header; columns whose index is in `right` are aligned on the right.

    On a terminal that is too narrow the last columns stand below each row, each under its name; with columns that are
    droppable these are left out, in this order, until the rest has room.
    """
    room = shutil.get_terminal_size((120 if droppable else UNKNOWN, 24)).columns
    cells = [header, *rows]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]
    kept = list(range(len(header)))

    def wide() -> bool:
        return sum(widths[i] + 2 for i in kept) - 2 > room

    for name in droppable:
        if wide() and name in header:
            kept.remove(header.index(name))
    rest: list[int] = []
    while not droppable and len(kept) > 1 and wide():
        rest.insert(0, kept.pop())

    def aligned(row: list[str], i: int) -> str:
        gap = " " * (widths[i] - width(row[i]))
        return gap + row[i] if i in right else row[i] + gap

    def line(row: list[str]) -> str:
        return "  ".join(aligned(row, i) for i in kept).rstrip()

    click.echo(line(header))
    click.echo("  ".join("─" * widths[i] for i in kept))
    for row in rows:
        click.echo(line(row))
        if below := "; ".join(f"{header[i]}: {row[i]}" for i in rest if row[i]):
            told = textwrap.fill(below, room - len(INDENT), break_on_hyphens=False)  # names such as dp-gd stay whole
            click.echo(textwrap.indent(told, INDENT))


Cells = TypeVar("Cells")


def print_columns(rows: Iterable[Cells], columns: Mapping[str, Callable[[Cells], object]]) -> None:
    """Print a table of columns declared as {header: cell of a row}; a header of numbers begins with >."""
    right = {i for i, header in enumerate(columns) if header.startswith(">")}
    cells = [[str(cell(row)) for cell in columns.values()] for row in rows]
    print_table([header.removeprefix(">") for header in columns], cells, right)


def tell(text: str, err: bool = False) -> None:
    """Print a paragraph, wrapped to the terminal."""
    for line in textwrap.wrap(text, min(shutil.get_terminal_size((120, 24)).columns, 120), break_on_hyphens=False):
        click.echo(line, err=err)


def by_reason(left_out: Mapping[str, str]) -> list[str]:
    """
    >>> by_reason({"dp-gd": "slow", "aop": "new", "dp-sgd": "slow"})
    ['dp-gd, dp-sgd: slow', 'aop: new']
    """
    groups: dict[str, list[str]] = {}
    for name, why in left_out.items():
        groups.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in groups.items()]


def number(value: float | None, digits: int = 3) -> str:
    """
    >>> number(0.000123456), number(None), number(float("inf"))
    ('0.000123', '–', 'inf')
    """
    return "–" if value is None or value != value else f"{value:.{digits}g}"
