"""dpbench compact: rows that no grid asks for any more."""

from __future__ import annotations

import click

from dpbench.cli.shared import RESULTS
from dpbench.errors import counted


@click.command("compact")
@click.option("--experiment", required=True, metavar="NAME|all", help="Whose rows.")
@click.option("--profile", default="full", show_default=True, metavar="quick|full", help="Of which profile.")
@RESULTS
def command(experiment: str, profile: str, results: str) -> None:
    """Drop the rows that the grid no longer asks for, and merge the files that hold the others.

    dpbench compact --experiment second_order

    A row goes stale when its algorithm, its data or the grid change: it is drawn nowhere, but whoever reads the files
    averages over it. Rows of settings that wait for other rows are kept.
    """
    from dpbench import api

    for name, (kept, dropped) in api.compact(experiment, profile=profile, results=results).items():
        click.echo(f"{name}: {counted(kept, 'row')} kept, {dropped:,} dropped")
