"""dpbench cite second_order"""

from __future__ import annotations

import click

import dpbench


@click.command("cite")
@click.argument("experiment", required=False)
def command(experiment: str | None) -> None:
    """Print BibTeX entries: of dpbench, and of an experiment's paper and data sets.

    dpbench cite second_order >> references.bib
    """
    click.echo(dpbench.cite(experiment), nl=False)
