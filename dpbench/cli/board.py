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
    SECRET,
    flag,
    option,
    out,
    profile,
    several,
)
from dpbench.cli.output import progress, say
from dpbench.errors import UserError, counted

PROFILE = profile("The profile whose problems or rows to use.")
TRUSTED = flag("--trusted", help="With --rerun: it gets all rows, as another library's solver has to; read its code.")
RERUN = flag("--rerun", help="Run it again in a sandbox; only then it gets a place on the board.")


@click.group("board")
def board() -> None:
    """Keep a leaderboard: submissions, and private problems for re-runs.

    \b
    dpbench board merge averaged-gd.dpbench.zip --rerun
    dpbench board secret --secret my-secret.txt
    """


@board.command("secret")
@option("--secret", "seed", metavar="FILE", help="File with the secret; it is made if there is none.")
@PROFILE
def secret(seed: str | None, profile: str) -> None:
    """Make private copies of problems, for re-runs of submissions.

    dpbench board secret --secret my-secret.txt

    Each copy has a secret subset of the rows, flipped labels and another basis. Keep the file to yourself, and give it
    to dpbench submit --check ARCHIVE --rerun --secret FILE; without one, every check draws its own.
    """
    if seed is None:
        raise UserError("--secret: name the file with the secret; it is made where there is none")
    copies = dpbench.board_secret(seed, profile=profile)
    say(f"{seed}: keep it secret; {len(copies)} private copies of the problems whose data are fetched")
    click.echo(copies.to_string(index=False))


@board.command("merge")
@click.argument("archive")
@flag("--replace", help="Replace an earlier submission of the same method.")
@RERUN
@TRUSTED
@SECRET
@RESULTS
def merge(archive: str, **given: Any) -> None:
    """Check an archive of `dpbench submit` and add its rows and provenance to a results folder.

    dpbench board merge averaged-gd.dpbench.zip --rerun

    With --rerun, the method is run again in a sandbox, and the rows of these runs are added. Without it, nothing from
    the archive is run, and the method is listed as "not re-run", without a place. To see it on the board, run dpbench
    report --experiment leaderboard.
    """
    click.echo(f"{dpbench.merge(archive, **given, notify=say)}; next: dpbench report --experiment leaderboard")


@click.command("submit")
@option("--algo", "algorithm", metavar="FILE.py:CLASS", help="Your method: path/to/file.py:Class.")
@profile("The grid; quick is a rehearsal.")
@several("--dataset", "problems", metavar="NAME", shell_complete=DATASETS, help="Only this problem")
@option("--author", default="", metavar="TEXT", help="Author of the method.")
@option("--licence", default="", metavar="SPDX", help="Licence of the method, for example Apache-2.0.")
@option("--runs", metavar="N", help="Number of runs of the audit; by default enough for a bound near the claim.")
@out("FILE", "The archive to write; NAME.dpbench.zip by default.")
@option("--check", "archive", metavar="ARCHIVE", help="Check this archive; nothing in it is run.")
@RERUN
@TRUSTED
@SECRET
@JOBS
@RESULTS
def submit(
    algorithm: str | None, archive: str | None, rerun: bool, trusted: bool, seed: str | None, **given: Any
) -> int:
    """Make a submission to the leaderboard (run one method, audit it, write an archive), or check one.

    \b
    dpbench submit --algo my_method.py:MyMethod --profile quick
    dpbench submit --check my-method.dpbench.zip

    A check compares hashes, keys, seeds, ε and losses, and recomputes the ε of every ledger. It runs nothing from the
    archive. With --rerun it does run the method: every cell under new seeds in a sandbox (bubblewrap), and private
    copies of the problems, whose rows the method never gets. The exit code is 1 if the check objects to anything, also
    where a new archive fails its own check. dpbench board merge adds a sound archive to a results folder.
    """
    if (algorithm is None) == (archive is None):
        raise UserError("give either --algo FILE.py:CLASS or --check ARCHIVE")
    if archive is None:
        if rerun or trusted or seed is not None:
            raise UserError("--rerun, --trusted and --secret go with --check")
        assert algorithm is not None
        with progress() as report:
            path = dpbench.submit(algorithm, **given, progress=report, notify=say)
        if wrong := dpbench.check_submission(path).shown:
            for line in wrong:
                click.echo(f"  WRONG    {line}")
            click.echo(f"{path}: written, but its check fails; mend this and submit again")
            return 1
        click.echo(f"{path}: ready; its check: dpbench submit --check {path}")
        return 0
    result = dpbench.check_submission(archive, rerun=rerun, trusted=trusted, seed=seed, notify=say)
    manifest = result.submission.manifest
    rows = counted(len(result.submission.rows), "row")
    click.echo(f"{manifest.method} ({manifest.title}), {manifest.profile} profile, {rows}")
    click.echo(f"by {manifest.code_version} on {manifest.environment}")
    click.echo(f"author: {manifest.author or 'not stated'}; licence: {manifest.licence or 'not stated'}")
    for line in result.checked:
        click.echo(f"  checked  {line}")
    # What could not be checked matters only where nothing is wrong already.
    for line in [] if result.problems else result.unchecked:
        click.echo(f"  NOT CHECKED  {line}")
    for line in result.shown:
        click.echo(f"  WRONG    {line}")
    for line in result.replay.flags if result.replay else []:
        click.echo(f"  FLAG     {line}")
    if result.problems:
        click.echo("not sound")
    else:
        click.echo("sound, and run again" if result.placed else "sound; not re-run, so without a place (see --rerun)")
    return 1 if result.problems else 0


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
