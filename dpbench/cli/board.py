"""dpbench board: what whoever keeps a leaderboard needs."""

from __future__ import annotations

import click

from dpbench.cli.shared import RESULTS, say
from dpbench.errors import UserError, counted


@click.command("board")
@click.argument("what", type=click.Choice(["secret", "compact"]))
@click.option("--seed", metavar="FILE", help="secret: the file with it; made where there is none.")
@click.option("--profile", default="full", show_default=True, metavar="quick|full", help="Whose problems or rows.")
@RESULTS
def command(what: str, seed: str | None, profile: str, results: str) -> None:
    """Private copies of problems, for re-runs of submissions; or drop rows that the grid no longer asks for.

    \b
    dpbench board secret --seed my-secret.txt
    dpbench board compact

    Each private copy has a secret subset of the rows, flipped labels and another basis. Keep the file to yourself, and
    give it to dpbench submit --check ARCHIVE --rerun --seed FILE; without one, every check draws its own.
    """
    from dpbench import api

    if what == "compact":
        if seed is not None:
            raise UserError("--seed goes with dpbench board secret")
        kept, dropped = api.board_compact(profile=profile, results=results)
        click.echo(f"{counted(kept, 'row')} kept, {dropped:,} dropped")
        return
    if seed is None:
        raise UserError("--seed: name the file with the secret; it is made where there is none")
    found = api.board_secret(seed, profile=profile)
    say(f"{seed}: keep it secret; {len(found)} private copies of the problems whose data are at hand")
    click.echo(found.to_string(index=False))
