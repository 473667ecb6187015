"""dpbench archive my_paper --out paper.zip"""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.completion import EXPERIMENTS
from dpbench.cli.output import RESULTS_ONLY


@click.command("archive")
@click.argument("experiment", shell_complete=EXPERIMENTS)
@click.option("--profile", default="full", show_default=True, metavar="quick|full", help="Whose rows.")
@click.option("--out", metavar="FILE", help="The file to write; NAME-PROFILE.zip by default.")
@RESULTS_ONLY
def command(experiment: str, profile: str, out: str | None, results: str) -> None:
    """Put an experiment into one file for reviewers: rows, traces, code, grid, environment, versions of all packages.

    dpbench archive my_paper --profile quick --out paper.zip

    Raw data stay out: rows have their digests. The digest that is printed stands for all of the file; print it in the
    paper. dpbench verify checks the file and makes a sample of its runs again.
    """
    made = dpbench.archive(experiment, profile, results=results, out=out)
    click.echo(f"{made.path}: {made.rows:,} rows of the {made.planned:,} runs of its grid")
    for name in made.left_out:
        click.echo(f"left out, as too large for code: {name}", err=True)
    click.echo(f"digest: {made.digest}")
