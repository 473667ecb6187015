"""dpbench submit: a method's rows for the leaderboard in one archive, or the check of one."""

from __future__ import annotations

from typing import Any

import click

from dpbench.cli.progress import progress
from dpbench.cli.shared import JOBS, RESULTS, say
from dpbench.errors import UserError


@click.command("submit")
@click.option("--algo", "algorithm", metavar="FILE:CLASS", help="Your method: path/to/file.py:Class.")
@click.option("--profile", default="full", show_default=True, metavar="quick|full", help="quick: a rehearsal.")
@click.option("--problem", "problems", multiple=True, metavar="NAME", help="These alone; may be repeated.")
@click.option("--runs", type=int, metavar="N", help="Runs of the audit; enough for a bound near the claim by default.")
@click.option("--archive", metavar="FILE", help="The archive to write; NAME.dpbench.zip by default.")
@click.option("--check", "checked", metavar="ARCHIVE", help="Check an archive; nothing in it is run.")
@click.option("--rerun", is_flag=True, help="With --check: run its code again on a few cells. No sandbox.")
@JOBS
@RESULTS
def command(algorithm: str | None, checked: str | None, rerun: bool, **given: Any) -> int:
    """Run the leaderboard's default track for one method, audit it, and write one archive; or check one.

    \b
    dpbench submit --algo my_method.py:MyMethod --profile quick
    dpbench submit --check my-method.dpbench.zip

    A check reads hashes, keys, seeds, ε and losses, and composes every ledger anew; it executes nothing from the
    archive. With --rerun it does, in a process of its own with your rights. The exit code is 1 where it finds
    something. dpbench merge adds a sound archive to a results folder.
    """
    from dpbench import api

    if (algorithm is None) == (checked is None):
        raise UserError("give either --algo FILE:CLASS or --check ARCHIVE")
    if checked is None:
        if rerun:
            raise UserError("--rerun goes with --check")
        assert algorithm is not None
        with progress() as report:
            path = api.submit(algorithm, **given, progress=report, notify=say)
        click.echo(f"{path}: ready; its check: dpbench submit --check {path}")
        return 0
    if rerun:
        say("running the archive's code, in a process of its own with your rights")
    found = api.check_submission(checked, rerun=rerun)
    manifest = found.submission.manifest
    click.echo(f"{manifest.method} ({manifest.title}), {manifest.profile} profile, {len(found.submission.rows):,} rows")
    click.echo(f"by {manifest.code_version} on {manifest.environment}")
    for line in found.checked:
        click.echo(f"  checked  {line}")
    for line in found.shown:
        click.echo(f"  WRONG    {line}")
    click.echo("not sound" if found.problems else "sound" + ("" if rerun else "; its code was not run (--rerun does)"))
    return 1 if found.problems else 0
