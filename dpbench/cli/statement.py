"""dpbench statement: what the release of a saved model was, and whether it holds."""

from __future__ import annotations

import click

import dpbench


@click.command("statement")
@click.argument("model", metavar="MODEL.json")
def command(model: str) -> None:
    """Show the release statement of a saved model, and check what can be checked.

    dpbench statement model.json

    The second accountant recomputes the ε of the releases that the statement lists. The exit code is 2 if they cost
    more than it states.
    """
    statement, holds = dpbench.statement(model)
    for line in statement.lines():
        click.echo(line)
    for line in holds:
        click.echo(f"checked: {line}")
