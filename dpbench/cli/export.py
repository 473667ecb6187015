"""dpbench export: a saved model for where there is no dpbench."""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.output import say
from dpbench.errors import UserError


@click.command("export")
@click.argument("model", metavar="MODEL.json")
@click.option("--to", default="sql", show_default=True, metavar="sql|onnx|sklearn", help="In which form.")
@click.option("--table", default="rows", show_default=True, metavar="NAME", help="Name of the table in the query.")
@click.option("--out", metavar="FILE", help="Where to write it; the terminal by default.")
def command(model: str, to: str, table: str, out: str | None) -> None:
    """Write a saved model as a SQL query, an ONNX graph or a scikit-learn pipeline that predicts as it does.

    \b
    dpbench export model.json --table people --out model.sql
    dpbench export model.json --to onnx --out model.onnx
    dpbench export model.json --to sklearn --out model.py

    Missing, unknown and out-of-bounds cells count as the schema says. The query uses CASE and arithmetic, and SQRT
    where rows have a bound, so that every SQL dialect can run it; the graph computes in double precision; the pipeline
    is Python source that needs scikit-learn and pandas alone. Dates are refused in SQL and ONNX: neither can say them.
    """
    if to == "onnx" and out is None:
        raise UserError("--out: an ONNX graph is no text; name a file, as in --out model.onnx")
    found = dpbench.export(model, to=to, table=table, out=out)
    if out is None:
        click.echo(found, nl=False)
    else:
        say(f"wrote {out}")
