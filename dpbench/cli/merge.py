"""dpbench merge: a submission into a results folder."""

from __future__ import annotations

import click

from dpbench.cli.shared import RESULTS


@click.command("merge")
@click.argument("archive")
@click.option("--replace", is_flag=True, help="Take the place of an earlier submission of the same method.")
@RESULTS
def command(archive: str, replace: bool, results: str) -> None:
    """Check an archive of `dpbench submit` and add its rows and provenance to a results folder; nothing in it is run.

    dpbench merge averaged-gd.dpbench.zip

    dpbench report --experiment tracks then shows the method, marked as submitted.
    """
    from dpbench import api

    click.echo(f"{api.merge(archive, results=results, replace=replace)}; next: dpbench report --experiment tracks")
