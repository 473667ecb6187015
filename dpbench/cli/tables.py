"""Tables on the terminal: aligned columns, plain text, the same on a terminal and in a file."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

import click


def width(text: str) -> int:
    """How many columns of the terminal a text takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def print_table(header: list[str], rows: list[list[str]], right: Collection[int] = ()) -> None:
    """Print rows under a header; columns whose index is in `right` are aligned on the right."""
    cells = [header, *rows]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]

    def line(row: list[str]) -> str:
        parts = []
        for i, text in enumerate(row):
            gap = " " * (widths[i] - width(text))
            parts.append(gap + text if i in right else text + gap)
        return "  ".join(parts).rstrip()

    click.echo(line(header))
    click.echo("  ".join("─" * w for w in widths))
    for row in rows:
        click.echo(line(row))


def number(value: float | None, digits: int = 3) -> str:
    """
    >>> number(0.000123456), number(None), number(float("inf"))
    ('0.000123', '–', 'inf')
    """
    return "–" if value is None or value != value else f"{value:.{digits}g}"
