"""dpbench check: what a schema does to a table, for the owner of the data."""

from __future__ import annotations

import click

import dpbench


@click.command("check")
@click.argument("data", metavar="FILE")
@click.option(
    "--schema", required=True, metavar="FILE.toml", help="Public description of the table: see dpbench schema."
)
def command(data: str, schema: str) -> int:
    """List the cells that a private fit would replace, clip or shorten, by kind.

    dpbench check titanic.csv --schema titanic.toml

    A private fit cannot report such cells, because a report would reveal something about the data. Run this check
    before it. The counts are exact, so they are not private: do not publish them. The exit code is 1 if the list is not
    empty.
    """
    lines = dpbench.check_data(data, schema)
    for line in lines:
        click.echo(line)
    if not lines:
        click.echo(f"{data}: every cell is as {schema} says")
    return 1 if lines else 0
