"""dpbench compact: rows that no grid asks for any more."""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.output import RESULTS
from dpbench.errors import counted


@click.command("compact")
@click.option("--experiment", required=True, metavar="NAME|all", help="The experiment whose rows to compact.")
@click.option("--profile", default="full", show_default=True, metavar="quick|full", help="The profile of the rows.")
@RESULTS
def command(experiment: str, profile: str, results: str) -> None:
    """Drop the rows that the grid no longer asks for, and merge the files of the others.

    dpbench compact --experiment second_order

    A row goes stale when its algorithm, its data or the grid changes. No figure draws it, but other programs that read
    the files would average over it. Rows whose settings still wait for tuning are kept.
    """
    for name, (kept, dropped) in dpbench.compact(experiment, profile=profile, results=results).items():
        click.echo(f"{name}: {counted(kept, 'row')} kept, {dropped:,} dropped")
