"""dpbench board: for the keeper of a leaderboard."""

from __future__ import annotations

from typing import Any

import click

import dpbench
from dpbench.cli.output import RESULTS, say
from dpbench.errors import UserError

PROFILE = click.option(
    "--profile",
    default="full",
    show_default=True,
    metavar="quick|full",
    help="The profile whose problems or rows to use.",
)


@click.group("board")
def command() -> None:
    """Keep a leaderboard: private problems for re-runs, versions.

    dpbench board secret --seed my-secret.txt
    """


@command.command("secret")
@click.option("--seed", metavar="FILE", help="File with the secret; it is made if there is none.")
@PROFILE
def secret(seed: str | None, profile: str) -> None:
    """Make private copies of problems, for re-runs of submissions.

    dpbench board secret --seed my-secret.txt

    Each copy has a secret subset of the rows, flipped labels and another basis. Keep the file to yourself, and give it
    to dpbench submit --check ARCHIVE --rerun --seed FILE; without one, every check draws its own.
    """
    if seed is None:
        raise UserError("--seed: name the file with the secret; it is made where there is none")
    found = dpbench.board_secret(seed, profile=profile)
    say(f"{seed}: keep it secret; {len(found)} private copies of the problems whose data are fetched")
    click.echo(found.to_string(index=False))


@command.command("versions")
@PROFILE
@RESULTS
def versions(**given: Any) -> None:
    """List the frozen versions, and say which of them the rows belong to."""
    found, told = dpbench.board_versions(**given)
    if len(found):
        click.echo(found.to_string(index=False))
    click.echo(told)
