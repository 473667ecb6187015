"""What several verbs have. An option is called as the argument of the API that it is."""

from __future__ import annotations

import click

RESULTS = click.option(
    "--out", "--results", "results", default="results", show_default=True, metavar="DIR", help="Where results lie."
)
JOBS = click.option("--jobs", type=int, metavar="N", help="Worker processes; all cores by default.")
SEEDS = click.option("--seeds", type=int, metavar="N", default=5, show_default=True, help="How many seeds.")


def say(line: str) -> None:
    """What is no result goes to stderr."""
    click.echo(line, err=True)
