"""dpbench board, submit, archive and verify: what others can check, and what the leaderboard takes."""

from __future__ import annotations

from typing import Any

import click

import dpbench
from dpbench.cli.options import (
    DATASETS,
    EXPERIMENTS,
    JOBS,
    RESULTS,
    VerbGroup,
    flag,
    option,
    out,
    profile,
    several,
)
from dpbench.cli.output import by_reason, say
from dpbench.errors import UserError, counted

PROFILE = profile("The profile whose problems or rows to use.")
TRUSTED = flag("--trusted", help="Let it have the rows, as another library's solver must; read its code first.")


@click.group("board", cls=VerbGroup)
def board() -> None:
    """Add submissions to the leaderboard.

    dpbench board merge averaged-gd.dpbench.zip
    """


@board.command("merge")
@click.argument("archive")
@profile("The profile to run it on and to add it to.")
@flag("--replace", help="Replace an earlier submission of the same method.")
@TRUSTED
@JOBS
@RESULTS
def merge(archive: str, **given: Any) -> None:
    """Run what an archive of `dpbench submit` holds on private copies of all problems, and add these runs to a folder.

    dpbench board merge averaged-gd.dpbench.zip

    It is the check of dpbench submit --check. To see the method on the board, run dpbench report --experiment
    leaderboard.
    """
    click.echo(f"{dpbench.merge(archive, **given, notify=say)}; next: dpbench report --experiment leaderboard")


@click.command("submit")
@option("--algo", "algorithm", metavar="FILE.py:CLASS", help="Your method: path/to/file.py:Class.")
@option("--author", default="", metavar="TEXT", help="Author of the method.")
@option("--licence", default="", metavar="SPDX", help="Licence of the method, for example Apache-2.0.")
@out("FILE", "The archive to write; NAME.dpbench.zip by default.")
@option("--check", "archive", metavar="ARCHIVE", help="Check this archive, or the folder of a merged one.")
@profile("The grid; quick is a rehearsal.")
@several("--dataset", "problems", metavar="NAME", shell_complete=DATASETS, help="Only this problem")
@TRUSTED
@JOBS
@RESULTS
def submit(algorithm: str | None, archive: str | None, author: str, licence: str, out: str | None, **given: Any) -> int:
    """Put a method into an archive and check it as the leaderboard does; or check an archive.

    \b
    dpbench submit --algo my_method.py:MyMethod --author "Ada L." --profile quick
    dpbench submit --check my-method.dpbench.zip

    A check draws private copies of the problems and runs the method on them in a process that has no rows: it asks for
    noised sums, within ε. On each problem, at each ε, one run is repeated on the same replies and must return the same.
    The check needs bubblewrap for a place; without it the method is "served, not isolated". The exit code is 1 if the
    check objects to anything. dpbench board merge checks an archive and adds its runs to a results folder.
    """
    if (algorithm is None) == (archive is None):
        raise UserError("give either --algo FILE.py:CLASS or --check ARCHIVE")
    if algorithm is not None:
        archive = str(dpbench.submit(algorithm, author=author, licence=licence, out=out))
    elif author or licence or out:
        raise UserError("--author, --licence and --out go with --algo")
    assert archive is not None
    result = dpbench.check_submission(archive, **given, notify=say)
    manifest, runs = result.submission.manifest, sum(len(one.rows) for one in result.replicates)
    for line in by_reason(result.left_out):
        click.echo(f"  left out  {line}")
    for line in result.problems:
        click.echo(f"  WRONG     {line}")
    click.echo(f"{manifest.method} ({manifest.title}): {counted(runs, 'run')} on private copies; {result.how}")
    if not result.sound:
        click.echo(f"{archive}: its check fails")
    elif not result.placed:
        click.echo(f"{archive}: sound; without a sandbox (bubblewrap) around it, so it would have no place")
    else:
        click.echo(f"{archive}: sound, with a place")
    return 0 if result.sound else 1


@click.command("archive")
@click.argument("experiment", shell_complete=EXPERIMENTS)
@PROFILE
@out("FILE", "The file to write; NAME-PROFILE.zip by default.")
@RESULTS
def archive(experiment: str, profile: str, out: str | None, results: str) -> None:
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


# Rows of years are by dozens of versions; a few tell which time they are of.
SHOWN = 3
EXIT = {"holds": 0, "wrong": 1, "not checked": 3}


@click.command("verify")
@click.argument("archive")
@option("--sample", default=5, metavar="N", help="How many runs to make again.")
@option("--seed", metavar="N", help="Of their choice; drawn anew by default, and printed.")
@option("--accept", multiple=True, metavar="seconds", help="Take measured times on trust: they cannot be repeated.")
def verify(archive: str, sample: int, seed: int | None, accept: tuple[str, ...]) -> int:
    """Check an archive of an experiment: digests, keys, its grid, and a sample of its runs, made again here.

    dpbench verify paper.zip --sample 5 --accept seconds

    A run that is made again must agree in every column and in its trace. The exit code is 0 if the archive holds, 1 if
    something is wrong, and 3 if something could not be checked: the output lists it.

    Runs are made by what is installed here, and nothing in the archive is run.
    """
    result = dpbench.verify(archive, sample=sample, seed=seed, accept=accept)
    manifest, versions = result.manifest, result.code_versions
    click.echo(f"{manifest.experiment} ({manifest.title}), {manifest.profile} profile: {result.outcome.upper()}")
    more = f" and {len(versions) - SHOWN} others" if len(versions) > SHOWN else ""
    click.echo(f"{result.rows:,} rows of {manifest.distribution}, by {', '.join(versions[:SHOWN])}{more}")
    click.echo(f"digest: {result.digest}")
    # Worst first: whoever stops reading early has seen what decides.
    lines = {
        "WRONG": result.problems,
        "NOT CHECKED": result.unchecked,
        "accepted": result.accepted,
        "checked": result.checked,
    }
    for word, each in lines.items():
        for line in each:
            click.echo(f"  {word:<11}  {line}")
    return EXIT[result.outcome]
