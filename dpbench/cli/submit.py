"""dpbench submit: a method's rows for the leaderboard in one archive, or the check of one."""

from __future__ import annotations

from typing import Any

import click

import dpbench
from dpbench.cli.output import JOBS, RESULTS, progress, say
from dpbench.errors import UserError, counted


@click.command("submit")
@click.option("--algo", "algorithm", metavar="FILE:CLASS", help="Your method: path/to/file.py:Class.")
@click.option(
    "--profile", default="full", show_default=True, metavar="quick|full", help="The grid; quick is a rehearsal."
)
@click.option("--problem", "problems", multiple=True, metavar="NAME", help="Only this problem; may be repeated.")
@click.option("--author", default="", metavar="TEXT", help="Author of the method.")
@click.option("--licence", default="", metavar="SPDX", help="Licence of the method, for example Apache-2.0.")
@click.option(
    "--runs", type=int, metavar="N", help="Number of runs of the audit; by default enough for a bound near the claim."
)
@click.option("--archive", metavar="FILE", help="The archive to write; NAME.dpbench.zip by default.")
@click.option("--check", "checked", metavar="ARCHIVE", help="Check this archive; nothing in it is run.")
@click.option("--rerun", is_flag=True, help="With --check: run it again, in a sandbox.")
@click.option("--seed", metavar="FILE", help="With --rerun: the secret of the private copies (dpbench board secret).")
@JOBS
@RESULTS
def command(algorithm: str | None, checked: str | None, rerun: bool, seed: str | None, **given: Any) -> int:
    """Make a submission to the leaderboard (run one method, audit it, write an archive), or check one.

    \b
    dpbench submit --algo my_method.py:MyMethod --profile quick
    dpbench submit --check my-method.dpbench.zip

    A check compares hashes, keys, seeds, ε and losses, and recomputes the ε of every ledger. It runs nothing from the
    archive. With --rerun it does run the method, in a sandbox (bubblewrap): every cell under new
    seeds, private copies of the problems, and an audit. The exit code is 1 if the check objects to anything. dpbench
    merge adds a sound archive to a results folder.
    """
    if (algorithm is None) == (checked is None):
        raise UserError("give either --algo FILE:CLASS or --check ARCHIVE")
    if checked is None:
        if rerun or seed is not None:
            raise UserError("--rerun and --seed go with --check")
        assert algorithm is not None
        with progress() as report:
            path = dpbench.submit(algorithm, **given, progress=report, notify=say)
        click.echo(f"{path}: ready; its check: dpbench submit --check {path}")
        return 0
    found = dpbench.check_submission(checked, rerun=rerun, seed=seed, notify=say)
    manifest = found.submission.manifest
    rows = counted(len(found.submission.rows), "row")
    click.echo(f"{manifest.method} ({manifest.title}), {manifest.profile} profile, {rows}")
    click.echo(f"by {manifest.code_version} on {manifest.environment}")
    click.echo(f"author: {manifest.author or 'not stated'}; licence: {manifest.licence or 'not stated'}")
    for line in found.checked:
        click.echo(f"  checked  {line}")
    for line in [] if found.problems else found.unchecked:
        click.echo(f"  NOT CHECKED  {line}")
    for line in found.shown:
        click.echo(f"  WRONG    {line}")
    for line in found.replay.flags if found.replay else []:
        click.echo(f"  FLAG     {line}")
    if found.problems:
        click.echo("not sound")
    else:
        click.echo("sound, and run again" if found.placed else "sound; not re-run, so without a place (see --rerun)")
    return 1 if found.problems else 0
