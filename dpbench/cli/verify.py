"""dpbench verify paper.zip --sample 5 --accept seconds"""

from __future__ import annotations

import click

import dpbench

SHOWN = 3  # versions of the code
EXIT = {"holds": 0, "wrong": 1, "not checked": 3}


@click.command("verify")
@click.argument("archive")
@click.option("--sample", type=int, default=5, show_default=True, metavar="N", help="How many runs to make again.")
@click.option("--seed", type=int, metavar="N", help="Of their choice; drawn anew by default, and printed.")
@click.option(
    "--accept", multiple=True, metavar="seconds", help="Take measured times on trust: they cannot be repeated."
)
@click.option("--run-code", is_flag=True, help="Run the archive's own methods too, in a sandbox.")
def command(archive: str, sample: int, seed: int | None, accept: tuple[str, ...], run_code: bool) -> int:
    """Check an archive of an experiment: digests, keys, its grid, and a sample of its runs, made again here.

    dpbench verify paper.zip --sample 5 --accept seconds

    A run that is made again must agree in every column and in its trace. The exit code is 0 if the archive holds, 1 if
    something is wrong, and 3 if something could not be checked: the output lists it.

    Runs are made by what is installed here. Nothing in the archive is run, unless --run-code says so: then methods that
    are not installed run from its code, in a sandbox (bubblewrap) without network, and losses and ε are computed
    outside.
    """
    found = dpbench.verify(archive, sample=sample, seed=seed, run_code=run_code, accept=accept)
    manifest, versions = found.manifest, found.code_versions
    click.echo(f"{manifest.experiment} ({manifest.title}), {manifest.profile} profile: {found.outcome.upper()}")
    more = f" and {len(versions) - SHOWN} others" if len(versions) > SHOWN else ""
    click.echo(f"{found.rows:,} rows of {manifest.distribution}, by {', '.join(versions[:SHOWN])}{more}")
    click.echo(f"digest: {found.digest}")
    lines = {
        "WRONG": found.problems,
        "NOT CHECKED": found.unchecked,
        "accepted": found.accepted,
        "checked": found.checked,
    }
    for word, each in lines.items():
        for line in each:
            click.echo(f"  {word:<11}  {line}")
    return EXIT[found.outcome]
