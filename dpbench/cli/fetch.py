"""dpbench fetch NAME…|all"""

from __future__ import annotations

import click

import dpbench
from dpbench.cli.completion import DATASETS
from dpbench.cli.output import downloads, print_table


@click.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all", shell_complete=DATASETS)
@click.option(
    "--mirror",
    metavar="DIR|URL",
    help="Folder or URL with the upstream files under their own names; also DPBENCH_MIRROR.",
)
def command(names: tuple[str, ...], mirror: str | None) -> int:
    """Download data sets, check them and prepare them for use.

    dpbench fetch a1a adult

    Data sets that are already prepared are left alone. Without network, downloads fail within seconds; the files of the
    mirror are still prepared, and the table says what is missing. The exit code is 1 if a data set that you named is
    missing; with `all`, data sets that cannot be reached are skipped.
    """
    with downloads() as report:
        results = dpbench.fetch(names, mirror=mirror, progress=report)
    print_table(["data set", "status", "detail"], [[r.name, r.status, r.detail] for r in results])
    bad = [r.name for r in results if r.status in ("missing", "failed")]
    broken = [r.name for r in results if r.status == "failed"]
    return 1 if broken or (bad and "all" not in names) else 0
