"""dpbench report: figures, tables and pages from parquet, and the scorecard."""

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
    """Rebuild every figure (PDF, PNG, SVG), table (Markdown, LaTeX, CSV) and page from the rows; no solver runs.

    The pages start at DIR/PROFILE/index.html. What has no rows yet is a visible gap with the command that fills it.
    With --check the exit code is 0 whatever the verdicts, and 2 where an experiment has no results to judge.
    """
    if check:
        return _scorecard(experiment, profile, out)
    from dpbench.report import build

    for line in build(experiment, profile, results=out, figures=figures):
        click.echo(line)


def _scorecard(reference, profile, out) -> int:
    from dpbench import report
    from dpbench.experiments.base import Experiment
    from dpbench.report import scorecard

    missing, judged = [], False
    for context in report.check(reference, profile, results=out):
        if isinstance(context, Experiment):
            missing.append(context.name)
            continue
        judged = True
        click.echo(f"{context.experiment.name}, {context.profile} profile")
        for claim, verdict in scorecard.verdicts(context):
            _line(verdict.word, f"{claim.name}: {claim.text}", verdict.numbers)
        for name, match in scorecard.comparisons(context):
            _line(match.word, name, match.numbers)
    if not judged:
        raise UserError(f"no results to judge in {out}; run: dpbench run --experiment NAME --profile quick")
    for name in missing:
        rerun = f"dpbench run --experiment {name} --profile {profile or 'quick'}"
        click.echo(f"no results to judge of {name}; run: {rerun}", err=True)
    return 2 if missing else 0


def _line(word: str, what: str, numbers: str) -> None:
    click.echo(f"  {word:<15}  {what}")
    click.echo(f"  {'':<15}  {numbers}")
