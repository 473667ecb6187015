"""dpbench card: a description that goes with a model to its users."""

from __future__ import annotations

from typing import Any

import click

import dpbench
from dpbench.cli.output import JOBS, parse_shares, progress, say


@click.command("card")
@click.argument("model", metavar="MODEL.json")
@click.option("--out", metavar="FILE.md", help="Where to write it; the terminal by default.")
@click.option("--like", metavar="FILE", help="Public or older rows with the same columns, to simulate from.")
@click.option(
    "--share", multiple=True, metavar="CLASS=SHARE", help="Your guess of a class's share of the rows; may be repeated."
)
@click.option("--signal", type=float, metavar="SCORE", help="Your guess of the AUC (or R²) possible without privacy.")
@click.option("--worlds", type=int, default=40, show_default=True, metavar="N", help="How many tables to simulate.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the simulation.")
@JOBS
def command(model: str, out: str | None, share: tuple[str, ...], **given: Any) -> None:
    """Write the card of a saved model: its guarantee, its inputs, and the accuracy to expect of it.

    dpbench card model.json --out model.md

    The expected accuracy is simulated, as by dpbench plan. The card contains no score on the private rows, so you can
    publish it with the model. The second accountant recomputes the ε of the releases; the exit code is 2 if they cost
    more than the model states.
    """
    with progress() as report:
        text = dpbench.card(model, out=out, share=parse_shares(share), **given, progress=report.doing)
    if out is None:
        click.echo(text, nl=False)
    else:
        say(f"wrote {out}")
