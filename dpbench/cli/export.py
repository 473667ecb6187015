"""dpbench export: a saved model for where there is no dpbench."""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.output import say


@click.command("export")
@click.argument("model", metavar="MODEL.json")
@click.option("--out", required=True, metavar="FILE.onnx", help="Where to write the graph.")
def command(model: str, out: str) -> None:
    """Write a saved model as an ONNX graph that predicts as it does.

    dpbench export model.json --out model.onnx

    Missing, unknown and out-of-bounds cells count as the schema says. The graph computes in double precision and has an
    input for each column: numbers, missing ones NaN, and text, missing ones empty. Dates are refused: ONNX has none.
    """
    dpbench.export(model, out=out)
    say(f"wrote {out}")
