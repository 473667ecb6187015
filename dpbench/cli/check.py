"""dpbench check: what a schema does to a table, for the owner of the data."""

from __future__ import annotations

import click


@click.command("check")
@click.argument("data", metavar="FILE")
@click.option("--schema", required=True, metavar="FILE.toml", help="What is public of the table: see dpbench schema.")
def command(data: str, schema: str) -> int:
    """List every kind of cell that a private fit would replace, cut off or shorten.

    dpbench check titanic.csv --schema titanic.toml

    A private fit says nothing about single cells, since that would tell of the data: look here before. The counts are
    exact, so they are not private. Exit code 1 if there is anything to look at.
    """
    from dpbench import api

    lines = api.check_data(data, schema)
    for line in lines:
        click.echo(line)
    if not lines:
        click.echo(f"{data}: every cell is as {schema} says")
    return 1 if lines else 0
