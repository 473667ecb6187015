"""dpbench fetch NAME…|all"""

from __future__ import annotations

import click

from dpbench.cli.progress import downloads
from dpbench.cli.tables import print_table
from dpbench.errors import UserError, nearest


@click.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all")
@click.option("--mirror", metavar="DIR|URL", help="Where upstream files lie under their names; also DPBENCH_MIRROR.")
def command(names, mirror):
    """Download data sets, check them and prepare them for use.

    Names that are already prepared are left alone. Without network, sources fail within seconds; what the mirror
    holds is prepared all the same, and the table says what is missing. Exit code 1 when a data set named is
    missing; `all` takes what it can get.
    """
    from dpbench import datasets

    known = datasets.names()
    everything = "all" in names
    wanted = known if everything else list(dict.fromkeys(names))
    for name in wanted:
        if name not in known:
            raise UserError(f"unknown data set {name!r}: {nearest(name, known)}")
    with downloads() as report:
        results = datasets.fetch(wanted, mirror=mirror, progress=report)
    print_table(["data set", "status", "detail"], [[r.name, r.status, r.detail] for r in results])
    bad = [r.name for r in results if r.status in ("missing", "failed")]
    broken = [r.name for r in results if r.status == "failed"]
    return 1 if broken or (bad and not everything) else 0
