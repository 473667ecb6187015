"""dpbench compare: the leaderboard's methods on a file of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import dpbench
from dpbench.cli.options import DEBUG, EPS, JOBS, RESULTS, SEEDS, flag, option, several
from dpbench.cli.output import by_reason, print_table, progress, tell

if TYPE_CHECKING:
    from dpbench.comparing.own_data import Comparison
    from dpbench.comparing.ranking import Ranked, Ranking
    from dpbench.comparing.references import Reference

# The best and those hardly worse fit a terminal; --all shows the others.
SHOWN = 5


@click.command("compare")
@option("--data", required=True, metavar="FILE", help="csv, tsv or parquet.")
@option("--target", metavar="COLUMN", help="What to predict; by default the schema's.")
@EPS
@option("--loss", metavar="NAME", help="By default logistic for two classes, squared for numbers.")
@option("--l1", default=0.0, metavar="WEIGHT", help="Weight of ‖w‖₁.")
@option("--l2", default=0.0, metavar="WEIGHT", help="Weight of ‖w‖²/2.")
@option(
    "--schema", metavar="FILE.toml", help="Public description of the table; without one it is drafted from the data."
)
@several("--algo", "extra", metavar="FILE.py:CLASS", help="A method of yours")
@option("--holdout", default=0.2, metavar="SHARE", help="Share of the rows that the methods are scored on.")
@option(
    "--precision",
    default="float64",
    metavar="float64|float32",
    help="Precision of the rows; sums are always float64.",
)
@SEEDS
@click.option("--cache/--no-cache", default=True, help="Keep the prepared rows and finished runs for the next call.")
@JOBS
@flag("--forget", help="Remove what is kept of the file: prepared rows and finished runs.")
@flag("--all", "everything", help="Show every method, not only the first five.")
@DEBUG
@RESULTS
def compare(forget: bool, debug: bool, everything: bool, **given: Any) -> int:
    """Score every private method on held-out rows of your data, recommend one or none, and print its code.

    \b
    dpbench compare --data my.csv --target label --eps 1

    All methods run under replace-one neighbours at δ = n⁻², each at settings that do not depend on the data. The scores
    in the table are exact, so they are not private: do not publish them. The prepared rows (readable by you only) and
    the finished runs are kept for the next call. dpbench compare --data my.csv --forget removes both; --no-cache
    keeps neither.
    """
    if forget:
        gone = dpbench.forget(given["data"], results=given["results"])
        for folder in gone:
            click.echo(f"removed {folder}")
        if not gone:
            click.echo(f"nothing is kept of {given['data']}")
        return 0
    with progress() as report:
        comparison = dpbench.compare(**given, reading=report.reading, progress=report, notify=_say)
    for one in comparison.rankings:
        _print(comparison, one, everything)
    _explain(comparison, given["seeds"])
    if debug:
        for one in comparison.rankings:
            for trace in one.tracebacks:
                click.echo(trace, err=True)
    if comparison.snippet:
        click.echo()
        click.echo(comparison.snippet)
        _say(comparison.price)
    return 1 if any(one.failed or one.best is None for one in comparison.rankings) else 0


def _print(comparison: Comparison, ranking: Ranking, everything: bool) -> None:
    """One table: the methods, strictly private ones first, then by loss, and what they are set against."""
    from dpbench.study.statistics import plus_minus

    def scores(line: Ranked | Reference) -> list[str]:
        return [plus_minus(mean, se) for mean, se in comparison.scores(line).values()]

    ordered = ranking.lines
    shown = ordered if everything else ordered[:SHOWN]
    names = [*comparison.scores(comparison.references[0])]
    header = ["#", "method", *names, "settings", "accounting"]
    rows = [
        [
            f"{row.rank}{'=' if row.beaten_by == 0 else ''}",
            row.shown,
            *scores(row),
            ranking.settings_of(row),
            row.accounting,
        ]
        for row in shown
    ]
    rows += [["", f"({line.name})", *scores(line), "", ""] for line in comparison.references]
    if len(comparison.rankings) > 1:
        tell(f"ε = {ranking.epsilon:g}")
    # What matters least goes first where the terminal is narrow; what is recommended and its loss stay.
    print_table(header, rows, droppable=["accounting", "settings", *names[2:0:-1]])
    if more := len(ordered) - len(shown):
        click.echo(f"and {more} more method{'s' * (more > 1)}: --all shows every one")
    click.echo()


def _explain(comparison: Comparison, seeds: int) -> None:
    tell(
        f"Scores are of {comparison.held:,} of {comparison.held + comparison.rows:,} rows, held out by position: "
        f"exact, so not private. Means over {seeds} seed{'s' * (seeds > 1)} ± the standard deviation of one fit's "
        f'score on other such rows; "=": within two standard errors of the best. The recommended method is chosen on '
        "the other rows. Methods that count nothing of the data as public come first. Each is at its public rule in n, "
        "d and ε."
    )
    told: dict[str, list[str]] = {}
    for one in comparison.rankings:
        for line in by_reason({**one.left_out, **one.failed}):
            told.setdefault(line, []).append(f" (ε = {one.epsilon:g})")
    # A reason that holds at every ε is said once.
    for line, places in told.items():
        everywhere = len(places) == len(comparison.rankings)
        _say(f"left out: {line}" + ("" if everywhere else "".join(places)))
    for line in comparison.counts_public:
        tell(line)
    for sentence in comparison.recommendation:
        tell(sentence)


def _say(text: str) -> None:
    tell(text, err=True)
