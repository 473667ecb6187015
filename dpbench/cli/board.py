"""dpbench board: what whoever keeps a leaderboard needs."""

from __future__ import annotations

import click

from dpbench.cli.shared import say


@click.command("board")
@click.argument("what", type=click.Choice(["secret"]))
@click.option("--seed", metavar="FILE", required=True, help="The secret; made where there is no such file.")
@click.option("--profile", default="full", show_default=True, metavar="quick|full", help="Whose problems.")
def command(what: str, seed: str, profile: str) -> None:
    """Private copies of the board's problems, on which submissions are run again.

    dpbench board secret --seed my-secret.txt

    Each copy has a secret subset of the rows, flipped labels and another basis. Keep the file to yourself, and give it
    to dpbench submit --check ARCHIVE --rerun --seed FILE; without one, every check draws its own.
    """
    from dpbench import api

    found = api.board_secret(seed, profile=profile)
    say(f"{seed}: keep it secret; {len(found)} private copies of the problems whose data are at hand")
    click.echo(found.to_string(index=False))
