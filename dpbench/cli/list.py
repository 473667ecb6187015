"""dpbench list [algorithms|datasets|losses|experiments]"""

from __future__ import annotations

import math

import click

import dpbench
from dpbench.cli.output import print_table

LISTINGS = ("algorithms", "datasets", "losses", "experiments")
HEADS = {
    "home_experiment": "experiment",
    "sound": "keeps ε under",
    "L0": "slope ≤",
    "L1": "curvature ≤",
    "L2": "third derivative ≤",
}
NUMBERS = ("rows", "columns", "L0", "L1", "L2", "methods")


@click.command("list")
@click.argument("what", type=click.Choice(list(LISTINGS)), required=False)
def command(what: str | None) -> None:
    """Show algorithms, data sets, losses and experiments: all of them, or one kind.

    dpbench list algorithms

    An algorithm keeps its ε under the accountings in the third column; a run under any other is marked not private.
    """
    for i, name in enumerate([what] if what else LISTINGS):
        if i:
            click.echo()
        found = dpbench.listing(name)
        right = {i for i, column in enumerate(found) if column in NUMBERS}
        cells = [[_cell(value) for value in row] for row in found.itertuples(index=False)]
        header = [HEADS.get(column, column.replace("_", " ")) for column in found.columns]
        print_table(header, cells, right=right, below=True)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "no bound" if value == math.inf else f"{value:.4g}"
    return "?" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
