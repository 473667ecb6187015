"""dpbench verify paper.zip --sample 5"""

from __future__ import annotations

import click

import dpbench

SHOWN = 3  # versions of the code


@click.command("verify")
@click.argument("archive")
@click.option("--sample", type=int, default=5, show_default=True, metavar="N", help="How many runs to make again.")
@click.option("--seed", type=int, metavar="N", help="Of their choice; drawn anew by default, and printed.")
@click.option("--run-code", is_flag=True, help="Run the archive's own methods too, in a sandbox.")
def command(archive: str, sample: int, seed: int | None, run_code: bool) -> int:
    """Check an archive of an experiment: digests, keys, seeds, and a sample of its runs, made again here.

    dpbench verify paper.zip --sample 5

    Runs are made by what is installed here. Nothing in the archive is run, unless --run-code says so: then methods that
    are not installed run from its code, in a sandbox (bubblewrap) without network, and losses and ε are computed
    outside. The exit code is 1 if anything differs.
    """
    found = dpbench.verify(archive, sample=sample, seed=seed, run_code=run_code)
    manifest = found.manifest
    click.echo(f"{manifest.experiment} ({manifest.title}), {manifest.profile} profile, {manifest.rows:,} rows")
    versions = manifest.code_versions
    more = f" and {len(versions) - SHOWN} others" if len(versions) > SHOWN else ""
    click.echo(f"of {manifest.distribution}, by {', '.join(versions[:SHOWN])}{more}")
    click.echo(f"digest: {found.digest}")
    for line in found.checked:
        click.echo(f"  checked  {line}")
    for line in found.unchecked:
        click.echo(f"  NOT CHECKED  {line}")
    for line in found.problems:
        click.echo(f"  WRONG    {line}")
    click.echo("sound, as far as it was checked" if found.sound else "not sound")
    return 0 if found.sound else 1
