"""dpbench board: for the keeper of a leaderboard."""

from __future__ import annotations

from typing import Any

import click

import dpbench
from dpbench.cli.shared import RESULTS, say
from dpbench.errors import UserError, counted

PROFILE = click.option(
    "--profile",
    default="full",
    show_default=True,
    metavar="quick|full",
    help="The profile whose problems or rows to use.",
)


@click.group("board")
def command() -> None:
    """Keep a leaderboard: private problems for re-runs, versions with frozen rows, retractions.

    \b
    dpbench board secret --seed my-secret.txt
    dpbench board freeze 3 --notes "55 problems"
    dpbench board retract their-method --reason "noise of half the size"
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


@command.command("freeze")
@click.argument("version")
@click.option("--notes", default="", metavar="TEXT", help="What is new in this version, in one line.")
@PROFILE
@RESULTS
def freeze(version: str, **given: Any) -> None:
    """Freeze the rows as a version: record their digest and the places that follow from them.

    dpbench board freeze 3 --notes "55 problems"

    Rows that the grid no longer asks for are dropped first (see dpbench compact). The leaderboard's page names the
    version for as long as the rows stay the same.
    """
    made = dpbench.board_freeze(version, **given)
    click.echo(f"version {made.name}: {counted(made.rows, 'row')}, sha256 {made.digest}")


@command.command("versions")
@PROFILE
@RESULTS
def versions(**given: Any) -> None:
    """List the frozen versions, and say which of them the rows belong to."""
    found, told = dpbench.board_versions(**given)
    if len(found):
        click.echo(found.to_string(index=False))
    click.echo(told)


@command.command("retract")
@click.argument("method")
@click.option("--reason", default="", metavar="TEXT", help="Why, in one line.")
@PROFILE
@RESULTS
def retract(method: str, **given: Any) -> None:
    """Retract a submission: it stays listed, with the reason and without a place."""
    click.echo(f"{dpbench.board_retract(method, **given)}; next: dpbench report --experiment leaderboard")
