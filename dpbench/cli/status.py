"""dpbench status: what is done, missing or failed."""

from __future__ import annotations

import gc
from pathlib import Path

import click

import dpbench
from dpbench.cli.completion import EXPERIMENTS
from dpbench.cli.output import RESULTS, lazily, print_table
from dpbench.errors import UserError


@click.command("status")
@click.option("--experiment", metavar="NAME", shell_complete=EXPERIMENTS, help="One experiment; all by default.")
@click.option("--profile", metavar="quick|full", help="One profile; both by default.")
@RESULTS
def command(experiment: str | None, profile: str | None, results: str) -> None:
    """Show, for every artefact, how many of its runs are done, missing and failed.

    dpbench status --experiment second_order --profile full
    """
    lazily("pandas")  # the papers' modules import it, to draw and to judge
    chosen = click.get_current_context().get_parameter_source("results") is click.core.ParameterSource.COMMANDLINE
    if chosen and not Path(results).is_dir():
        raise UserError(f"--out {results}: there is no such folder; dpbench run --out {results} makes it")
    gc.disable()  # the plans are half a million objects, and none of them is garbage
    try:
        found = dpbench.standings(experiment, profile, results=results)
    finally:
        gc.freeze()
        gc.enable()
    if not found:
        raise UserError("nothing is planned for this selection")
    print_table(list(vars(found[0])), [[str(cell) for cell in vars(one).values()] for one in found], right={2, 3, 4})
