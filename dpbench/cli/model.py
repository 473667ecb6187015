"""dpbench model: the statement of a saved model, its card, and other forms of it."""

from __future__ import annotations

from typing import Any

import click

import dpbench
from dpbench.cli.output import JOBS, parse_shares, progress, say


@click.group("model")
def model() -> None:
    """Show and check a saved model's release statement, write its card, export it.

    \b
    dpbench model statement model.json
    dpbench model card model.json --out model.md
    dpbench model export model.json --out model.onnx
    """


@model.command("statement")
@click.argument("model", metavar="MODEL.json")
def _statement(model: str) -> None:
    """Show the release statement of a saved model, and check what can be checked.

    dpbench model statement model.json

    The second accountant recomputes the ε of the releases that the statement lists. The exit code is 2 if they cost
    more than it states.
    """
    statement, holds = dpbench.statement(model)
    for line in statement.lines():
        click.echo(line)
    for line in holds:
        click.echo(f"checked: {line}")


@model.command("card")
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
def _card(model: str, out: str | None, share: tuple[str, ...], **given: Any) -> None:
    """Write the card of a saved model: its guarantee, its inputs, and the accuracy to expect of it.

    dpbench model card model.json --out model.md

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


@model.command("export")
@click.argument("model", metavar="MODEL.json")
@click.option("--out", required=True, metavar="FILE.onnx", help="Where to write the graph.")
def _export(model: str, out: str) -> None:
    """Write a saved model as an ONNX graph that predicts as it does.

    dpbench model export model.json --out model.onnx

    Missing, unknown and out-of-bounds cells count as the schema says. The graph computes in double precision and has an
    input for each column: numbers, missing ones NaN, and text, missing ones empty. Dates are refused: ONNX has none.
    """
    dpbench.export(model, out=out)
    say(f"wrote {out}")
