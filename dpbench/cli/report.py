"""dpbench report: figures, tables and pages from parquet, and the scorecard."""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.completion import EXPERIMENTS
from dpbench.cli.output import RESULTS
from dpbench.errors import UserError


@click.command("report")
@click.option(
    "--experiment",
    "reference",
    metavar="NAME[/ARTEFACT]",
    shell_complete=EXPERIMENTS,
    help="One experiment or artefact; all by default.",
)
@click.option("--profile", metavar="quick|full|adhoc", help="One profile; by default every profile that has results.")
@click.option("--figures", default="figures", show_default=True, metavar="DIR", help="Folder of the figures.")
@click.option(
    "--with", "beside", multiple=True, metavar="DIR", help="Also draw the rows of this folder: results/adhoc/NAME."
)
@click.option("--latex", is_flag=True, help="Also write a section of a paper: section.tex and references.bib.")
@click.option("--check", is_flag=True, help="Print the scorecard, claim by claim, and write nothing.")
@RESULTS
def command(
    reference: str | None,
    profile: str | None,
    figures: str,
    beside: tuple[str, ...],
    latex: bool,
    check: bool,
    results: str,
) -> int | None:
    """Rebuild every figure (PDF, PNG, SVG), table (Markdown, LaTeX, CSV) and page from the rows; no solver runs.

    dpbench report --experiment second_order --profile full

    The pages start at DIR/PROFILE/index.html. Runs of your own (dpbench run --algo) get a page under DIR/adhoc: a
    table, the excess loss against ε, and curves of runs that were made with --trace. Missing rows leave a gap that
    names the command to fill it.
    With --latex, each experiment's folder also gets section.tex, with its figures, tables and claims, which a document
    can \\input, and references.bib.
    --with adds the rows of your own method to every figure and table that has their problem and ε; give it its own
    --figures folder. With --check, the exit code is 2 if an experiment has no results to judge, and 0 otherwise,
    whatever the verdicts.
    """
    if check and latex:
        raise UserError("--latex goes without --check, which writes nothing")
    if check and beside:
        raise UserError("--with goes without --check: claims are about the methods of their paper")
    if check:
        return _scorecard(reference, profile, results)
    dpbench.report(
        reference, profile=profile, results=results, figures=figures, beside=beside, latex=latex, notify=click.echo
    )
    return None


def _scorecard(reference: str | None, profile: str | None, results: str) -> int:
    found = dpbench.scorecard(reference, profile=profile, results=results)
    for (name, each), rows in found.verdicts.groupby(["experiment", "profile"], sort=False):
        click.echo(f"{name}, {each} profile")
        for verdict, claim, text, numbers in rows[["verdict", "name", "text", "numbers"]].itertuples(index=False):
            _line(verdict, f"{claim}: {text}" if text else claim, numbers)
    if found.verdicts.empty:
        raise UserError(f"no results to judge in {results}; run: dpbench run --experiment NAME --profile quick")
    for name in found.missing:
        rerun = f"dpbench run --experiment {name} --profile {profile or 'quick'}"
        click.echo(f"no results to judge of {name}; run: {rerun}", err=True)
    return 2 if found.missing else 0


def _line(word: str, what: str, numbers: str) -> None:
    click.echo(f"  {word:<15}  {what}")
    click.echo(f"  {'':<15}  {numbers}")
