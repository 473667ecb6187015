"""dpbench report: figures, tables and pages from parquet, and the scorecard."""

from __future__ import annotations

import click

from dpbench.cli.completion import EXPERIMENTS
from dpbench.cli.shared import RESULTS
from dpbench.errors import UserError


@click.command("report")
@click.option(
    "--experiment",
    "reference",
    metavar="NAME[/ARTEFACT]",
    shell_complete=EXPERIMENTS,
    help="One experiment or artefact; all by default.",
)
@click.option("--profile", metavar="quick|full|adhoc", help="One profile; by default each one that has results.")
@click.option("--figures", default="figures", show_default=True, metavar="DIR", help="Where figures go.")
@click.option("--with", "beside", multiple=True, metavar="DIR", help="Draw these rows in too: results/adhoc/NAME.")
@click.option("--check", is_flag=True, help="Print the scorecard, claim by claim, and write nothing.")
@RESULTS
def command(
    reference: str | None, profile: str | None, figures: str, beside: tuple[str, ...], check: bool, results: str
) -> int | None:
    """Rebuild every figure (PDF, PNG, SVG), table (Markdown, LaTeX, CSV) and page from the rows; no solver runs.

    dpbench report --experiment second_order --profile full

    The pages start at DIR/PROFILE/index.html. Runs of your own (dpbench run --algo) have a page each under DIR/adhoc:
    a table, excess loss against ε, and curves where runs were made with --trace. What has no rows yet is a visible gap
    with the command that fills it.
    --with draws the rows of a method of yours into every figure and table that has their problem and ε; it asks for
    --figures of its own. With --check the exit code is 0 whatever the verdicts, and 2 where an experiment has no
    results to judge.
    """
    if check and beside:
        raise UserError("--with goes without --check: claims are about the methods of their paper")
    if check:
        return _scorecard(reference, profile, results)
    from dpbench import api

    api.report(reference, profile=profile, results=results, figures=figures, beside=beside, notify=click.echo)
    return None


def _scorecard(reference: str | None, profile: str | None, results: str) -> int:
    from dpbench import api

    found = api.scorecard(reference, profile=profile, results=results)
    for (name, each), rows in found.verdicts.groupby(["experiment", "profile"], sort=False):
        click.echo(f"{name}, {each} profile")
        for row in rows.itertuples():
            _line(row.verdict, f"{row.name}: {row.text}" if row.text else row.name, row.numbers)
    if found.verdicts.empty:
        raise UserError(f"no results to judge in {results}; run: dpbench run --experiment NAME --profile quick")
    for name in found.missing:
        rerun = f"dpbench run --experiment {name} --profile {profile or 'quick'}"
        click.echo(f"no results to judge of {name}; run: {rerun}", err=True)
    return 2 if found.missing else 0


def _line(word: str, what: str, numbers: str) -> None:
    click.echo(f"  {word:<15}  {what}")
    click.echo(f"  {'':<15}  {numbers}")
