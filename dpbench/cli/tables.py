"""Tables on the terminal: aligned columns, plain text, the same on a terminal and in a file."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from collections.abc import Collection

import click

UNKNOWN = 100_000  # columns of what is no terminal
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


def number(value: float | None, digits: int = 3) -> str:
    """
    >>> number(0.000123456), number(None), number(float("inf"))
    ('0.000123', '–', 'inf')
    """
    return "–" if value is None or value != value else f"{value:.{digits}g}"
