"""dpbench report: figures and tables from parquet."""

from __future__ import annotations

import click

from dpbench.cli.run import RESULTS


@click.command("report")
@click.option("--experiment", metavar="NAME[/ARTEFACT]", help="One experiment or artefact; all by default.")
@click.option("--profile", metavar="quick|full", help="One profile; by default each one that has results.")
@click.option("--figures", default="figures", show_default=True, metavar="DIR", help="Where figures go.")
@RESULTS
def command(experiment, profile, figures, out):
    """Rebuild every figure (PDF, PNG, SVG) and table (Markdown, LaTeX, CSV) from the rows; no solver runs.

    What has no rows yet is drawn as a visible gap with the command that fills it.
    """
    from dpbench.report import build

    for line in build(experiment, profile, results=out, figures=figures):
        click.echo(line)
