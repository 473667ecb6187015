"""dpbench merge: a submission into a results folder."""

from __future__ import annotations

from typing import Any

import click

import dpbench
from dpbench.cli.output import RESULTS, say


@click.command("merge")
@click.argument("archive")
@click.option("--replace", is_flag=True, help="Replace an earlier submission of the same method.")
@click.option("--rerun", is_flag=True, help="Run it again in a sandbox; only then it gets a place on the board.")
@click.option("--seed", metavar="FILE", help="With --rerun: the secret of the private copies (dpbench board secret).")
@RESULTS
def command(archive: str, **given: Any) -> None:
    """Check an archive of `dpbench submit` and add its rows and provenance to a results folder.

    dpbench merge averaged-gd.dpbench.zip --rerun

    With --rerun, the method is run again in a sandbox, and the rows of these runs are added. Without it, nothing from
    the archive is run, and the method is listed as "not re-run", without a place. To see it on the board, run dpbench
    report --experiment leaderboard.
    """
    click.echo(f"{dpbench.merge(archive, **given, notify=say)}; next: dpbench report --experiment leaderboard")
