"""dpbench schema: a first declaration of what is public of a table."""

from __future__ import annotations

import click

import dpbench


@click.command("schema")
@click.argument("data", metavar="FILE")
@click.option("--target", required=True, metavar="COLUMN", help="What to predict.")
@click.option("--out", metavar="FILE.toml", help="Where to write it; the terminal by default. Never overwrites.")
def command(data: str, target: str, out: str | None) -> None:
    """Draft the public schema of a csv, tsv or parquet file.

    \b
    dpbench schema titanic.csv --target survived --out titanic.toml

    The draft takes bounds, categories and classes from the data and marks them "decide". Replace each by what the
    meaning of the column says, and remove the mark: a private fit is refused while one is left. The draft itself
    reveals something about the data, so do not publish it.
    """
    schema, remarks = dpbench.draft_schema(data, target, out=out)
    for remark in remarks:
        click.echo(f"note: {remark}", err=True)
    if out is None:
        click.echo(schema.toml(), nl=False)
        return
    left = len(schema.undecided)
    what = "entry" if left == 1 else "entries"
    click.echo(f"wrote {out}: decide {left} {what}, then run: dpbench check {data} --schema {out}")
