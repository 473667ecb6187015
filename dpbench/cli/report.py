"""dpbench report and diff, both at the end of reproduce; and a package of your own, new."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from typing import TYPE_CHECKING

import click

import dpbench
from dpbench import frames
from dpbench.cli import group
from dpbench.cli.options import RESULTS, experiment, flag, option, out, profile
from dpbench.cli.output import number, print_columns, print_table, tell
from dpbench.errors import UserError

if TYPE_CHECKING:
    import pandas


@click.command("report")
@experiment("One experiment or artefact; all by default.")
@profile("One profile; by default every profile that has results.", None, "quick|full|adhoc")
@RESULTS
@option("--out", "figures", default="figures", metavar="DIR", help="Folder of the figures and pages.")
@flag("--check", help="Print the scorecard, claim by claim, and write nothing.")
def report(
    reference: str | None,
    profile: str | None,
    figures: str,
    check: bool,
    results: str,
) -> int | None:
    """Rebuild every figure (PDF, PNG, SVG), table (Markdown, LaTeX, CSV) and page from the rows; no solver runs.

    dpbench report --experiment second_order --profile full

    The pages start at DIR/PROFILE/index.html. All runs of your own (dpbench run --algo) share the page of --profile
    adhoc: the excess loss against ε beside the full profile's best methods, a table, curves of runs that were made with
    --trace, and the commands that made them. Missing rows leave a gap that
    names the command to fill it.
    With --check, the exit code is 2 if an experiment has no results to judge, and 0 otherwise,
    whatever the verdicts.
    """
    if check:
        return _scorecard(reference, profile, results)
    dpbench.report(reference, profile=profile, results=results, figures=figures, notify=click.echo)
    return None


def _scorecard(reference: str | None, profile: str | None, results: str) -> int:
    card = dpbench.scorecard(reference, profile=profile, results=results)
    for (name, each), rows in card.verdicts.groupby(["experiment", "profile"], sort=False):
        click.echo(f"{name}, {each} profile")
        for verdict, claim, text, numbers in rows[["verdict", "name", "text", "numbers"]].itertuples(index=False):
            _line(verdict, f"{claim}: {text}" if text else claim, numbers)
    if card.verdicts.empty:
        raise UserError(f"no results to judge in {results}; run: dpbench run --experiment NAME --profile quick")
    for name in card.missing:
        rerun = f"dpbench run --experiment {name} --profile {profile or 'quick'}"
        click.echo(f"no results to judge of {name}; run: {rerun}", err=True)
    return 2 if card.missing else 0


def _line(word: str, what: str, numbers: str) -> None:
    under = " " * 19
    room = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)
    for text, first in ((f"{word:<15}  {what}", "  "), (numbers, under)):
        click.echo(textwrap.fill(text, room, initial_indent=first, subsequent_indent=under, break_on_hyphens=False))


WIDEST = 132  # columns of a line of the scorecard, where the terminal has as many
# A change of code moves hundreds of means alike: the first few show what it did.
ROWS = 25


@click.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@option("--errors", type=float, default=3.0, help="How many standard errors count as moved.")
@option("--save", metavar="FILE", help="Write the summary of A to a file, to compare with later, and stop.")
def diff(first: str, second: str | None, errors: float, save: str | None) -> int:
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
    if save is not None and second is None:
        click.echo(f"{save}: {dpbench.summarise(first, save):,} settings")
        return 0
    if second is None or save is not None:
        raise UserError("diff takes two results, or one and --save FILE")
    result = dpbench.diff(first, second, errors=errors)
    if not result.compared and not result.judged:
        raise UserError(f"{first} and {second} have no setting in common: nothing was compared ({result})")
    if len(result.moved):
        _moved(result.moved)
        chance = f"{result.chance:.0f} would have if A and B were independent draws"
        tell(f"moved: by more than {errors:g} standard errors; {chance}")
        click.echo()
    if len(result.changed):
        header = ["experiment", "claim", "A", "B"]
        print_table(header, [list(row) for row in result.changed.to_numpy()])
        click.echo()
    tell(str(result))
    return 0 if result.same else 1


def _moved(table: pandas.DataFrame) -> None:
    print_columns(frames.mappings(table.head(ROWS)), {
        "problem": lambda row: row["problem"],
        "algorithm": lambda row: row["algorithm"],
        ">ε": lambda row: f"{row['epsilon']:g}",
        ">A": lambda row: number(row["mean_a"], 5),
        ">± s.e. of A": lambda row: number(row["se_a"], 2),
        ">B": lambda row: number(row["mean_b"], 5),
        ">± s.e. of B": lambda row: number(row["se_b"], 2),
        ">apart": lambda row: number(row["apart"], 2),
        "settings": lambda row: row["settings"],
    })  # fmt: skip
    if len(table) > ROWS:
        click.echo(f"… and {len(table) - ROWS:,} more")


REPRODUCE = (
    ("fetch", "all"),
    ("run", "--experiment", "all", "--profile", "quick"),
    ("report", "--profile", "quick"),
    ("diff", "results/quick", "results/quick.json"),
)


@click.command("reproduce")
def reproduce() -> int:
    """Rebuild every figure and table at reduced size, and compare the rows with the summary in the repository.

    dpbench reproduce

    The same as four commands, of which each is printed: fetch all, run all quick grids, report, diff. It stops at the
    first that fails. Real data come from DPBENCH_MIRROR or the network; those that are missing leave labelled gaps.
    """
    for words in REPRODUCE:
        click.echo(f"$ dpbench {' '.join(words)}", err=True)
        # Through the command line, so that a user may type the same words and get the same.
        if code := group.main([*words], prog_name="dpbench", standalone_mode=False):
            return int(code)
    return 0


@click.command("new")
@click.argument("kind", metavar="paper|algorithm|dataset|loss")
@click.argument("name")
@out("DIR", "Where the package's folder goes.", default=".")
def new(kind: str, name: str, out: str) -> None:
    """Begin a package of your own, which passes its own tests from the start.

    \b
    dpbench new paper my_paper
    dpbench new algorithm dp-adam
    dpbench new dataset my-data
    dpbench new loss log-cosh

    dpbench finds the package as long as it is installed (pip install -e ./NAME). Its name then works wherever a
    built-in one does. Its README has the commands to go on with.
    """
    for path in dpbench.new(kind, name, out=out):
        click.echo(str(path))
    click.echo(f"next: pip install -e {shlex.quote(f'{out}/{name}')}, then see its README.md", err=True)
