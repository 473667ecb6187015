"""dpbench diff: what differs between two folders of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

import dpbench
from dpbench import frames
from dpbench.cli.output import number, print_table

if TYPE_CHECKING:
    import pandas

ROWS = 25  # printed


@click.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@click.option("--errors", type=float, default=3.0, show_default=True, help="How many standard errors count as moved.")
@click.option("--save", metavar="FILE", help="Write the summary of A to a file, to compare with later, and stop.")
def command(first: str, second: str | None, errors: float, save: str | None) -> int:
    """Compare two sets of results: which means moved by more than their standard errors, which verdicts changed.

    \b
    dpbench diff results/quick results/quick.json
    dpbench diff results/full other/results/full
    dpbench diff results/quick --save results/quick.json

    A and B are folders of rows (results/PROFILE, or one experiment's folder in it) or summaries written by --save. The
    same seeds draw the same noise on every machine, so a mean that moved means that the code or the data changed.
    Experiments and settings that only one side has are counted and named, but are no difference. Exit codes: 0 nothing
    moved, 1 something did, 2 a mistake in the call, or nothing in common.
    """
    from dpbench.errors import UserError

    if save is not None and second is None:
        click.echo(f"{save}: {dpbench.summarise(first, save):,} settings")
        return 0
    if second is None or save is not None:
        raise UserError("diff takes two results, or one and --save FILE")
    found = dpbench.diff(first, second, errors=errors)
    if not found.compared and not found.judged:
        raise UserError(f"{first} and {second} have no setting in common: nothing was compared ({found})")
    if len(found.moved):
        _moved(found.moved)
        click.echo(f"moved: by more than {errors:g} standard errors; {found.chance:.0f} would have if A and B were "
                   "independent draws\n")  # fmt: skip
    if len(found.changed):
        header = ["experiment", "claim", "A", "B"]
        print_table(header, [list(row) for row in found.changed.to_numpy()])
        click.echo()
    click.echo(str(found))
    return 0 if found.same else 1


class _Moved(NamedTuple):
    problem: str
    algorithm: str
    epsilon: float
    mean_a: float
    se_a: float
    mean_b: float
    se_b: float
    apart: float
    settings: str


def _moved(table: pandas.DataFrame) -> None:
    header = ["problem", "algorithm", "ε", "A", "± s.e.", "B", "± s.e.", "apart", "settings"]
    rows = [
        [row.problem, row.algorithm, f"{row.epsilon:g}", number(row.mean_a, 5), number(row.se_a, 2),
         number(row.mean_b, 5), number(row.se_b, 2), number(row.apart, 2), row.settings]
        for row in frames.records(table.head(ROWS), _Moved)
    ]  # fmt: skip
    print_table(header, rows, right={2, 3, 4, 5, 6, 7})
    if len(table) > ROWS:
        click.echo(f"… and {len(table) - ROWS:,} more")
