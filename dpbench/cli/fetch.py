"""dpbench fetch NAME…|all"""

from __future__ import annotations

import click

from dpbench.cli.completion import DATASETS
from dpbench.cli.progress import downloads
from dpbench.cli.tables import print_table


@click.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all", shell_complete=DATASETS)
@click.option("--mirror", metavar="DIR|URL", help="Where upstream files lie under their names; also DPBENCH_MIRROR.")
def command(names: tuple[str, ...], mirror: str | None) -> int:
    """Download data sets, check them and prepare them for use.

    dpbench fetch a1a adult

    Names that are already prepared are left alone. Without network, sources fail within seconds; what the mirror
    holds is prepared all the same, and the table says what is missing. Exit code 1 when a data set named is
    missing; with `all`, data sets that cannot be reached are skipped.
    """
    from dpbench import api

    with downloads() as report:
        results = api.fetch(names, mirror=mirror, progress=report)
    print_table(["data set", "status", "detail"], [[r.name, r.status, r.detail] for r in results])
    bad = [r.name for r in results if r.status in ("missing", "failed")]
    broken = [r.name for r in results if r.status == "failed"]
    return 1 if broken or (bad and "all" not in names) else 0
