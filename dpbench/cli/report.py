"""dpbench report: figures and tables from parquet."""

from __future__ import annotations

import click

from dpbench.cli.run import RESULTS
from dpbench.errors import UserError


@click.command("report")
@click.option("--experiment", metavar="NAME[/ARTEFACT]", help="One experiment or artefact; all by default.")
@click.option("--profile", metavar="quick|full", help="One profile; by default each one that has results.")
@click.option("--figures", default="figures", show_default=True, metavar="DIR", help="Where figures go.")
@click.option("--check", is_flag=True, help="Print the scorecard, claim by claim, and write nothing.")
@RESULTS
def command(experiment, profile, figures, check, out):
    """Rebuild every figure (PDF, PNG, SVG) and table (Markdown, LaTeX, CSV) from the rows; no solver runs.

    What has no rows yet is drawn as a visible gap with the command that fills it.
    """
    if check:
        return _scorecard(experiment, profile, out)
    from dpbench.report import build

    for line in build(experiment, profile, results=out, figures=figures):
        click.echo(line)


def _scorecard(experiment, profile, out) -> int:
    """Exit code 0 whatever the verdicts, 2 when there are no results to judge."""
    from dpbench import report

    heading, found = None, False
    for context, claim, verdict in report.check(experiment, profile, results=out):
        found = True
        if heading != (heading := f"{context.experiment.name}, {context.profile} profile"):
            click.echo(heading)
        click.echo(f"  {verdict.word:<15}  {claim.name}: {claim.text}")
        click.echo(f"  {'':<15}  {verdict.numbers}")
    if not found:
        raise UserError(f"no results to judge in {out}; run: dpbench run --experiment NAME --profile quick")
    return 0
