"""dpbench new paper NAME"""

from __future__ import annotations

import click

import dpbench


@click.command("new")
@click.argument("kind", metavar="paper|algorithm|dataset|loss")
@click.argument("name")
@click.option("--in", "out", default=".", show_default=True, metavar="DIR", help="Where the package's folder goes.")
def command(kind: str, name: str, out: str) -> None:
    """Begin a package of your own, which passes its own tests from the start.

    \b
    dpbench new paper my_paper
    dpbench new algorithm dp-adam
    dpbench new dataset my-data
    dpbench new loss log-cosh

    dpbench finds the package as long as it is installed (pip install -e ./NAME). Its name then works wherever a
    built-in one does. Its README has the commands to go on with.
    """
    for path in dpbench.new(kind, name, out=out):
        click.echo(str(path))
    click.echo(f"next: pip install -e ./{name} in {out}, then see its README.md", err=True)
