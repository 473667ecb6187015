"""dpbench forget: what compare kept of a file of one's own."""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.output import RESULTS


@click.command("forget")
@click.argument("data", metavar="FILE")
@RESULTS
def command(data: str, results: str) -> None:
    """Remove what compare keeps of a file: a copy of the prepared rows, and the finished runs on them.

    dpbench forget my.csv

    The file itself is not touched, and need not exist any longer. dpbench compare --no-cache keeps nothing.
    """
    gone = dpbench.forget(data, results=results)
    for folder in gone:
        click.echo(f"removed {folder}")
    if not gone:
        click.echo(f"nothing is kept of {data}")
