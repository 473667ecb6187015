"""dpbench export: a saved model for where there is no dpbench."""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.shared import say


@click.command("export")
@click.argument("model", metavar="MODEL.json")
@click.option("--table", default="rows", show_default=True, metavar="NAME", help="Name of the table in the query.")
@click.option("--out", metavar="FILE.sql", help="Where to write it; the terminal by default.")
def command(model: str, table: str, out: str | None) -> None:
    """Write a saved model as a SQL query that predicts as it does.

    dpbench export model.json --table people --out model.sql

    The query uses only CASE and arithmetic, so that every SQL dialect can run it. Missing, unknown and out-of-bounds
    cells count as the schema says. Models with dates or a row bound are refused, because SQL dialects differ on these.
    """
    text = dpbench.export(model, table=table, out=out)
    if out is None:
        click.echo(text, nl=False)
    else:
        say(f"wrote {out}")
