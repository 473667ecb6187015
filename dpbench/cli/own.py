"""dpbench schema and plan: what is public of a table of your own, and what a private fit of it would be."""

from __future__ import annotations

import math
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import click

import dpbench
from dpbench.cli.output import EPS, JOBS, parse_shares, print_table, progress, say, width
from dpbench.errors import UserError

if TYPE_CHECKING:
    from dpbench.own.forecast import Forecasts, Needed


@click.command("schema")
@click.argument("data", metavar="FILE")
@click.option("--target", metavar="COLUMN", help="What to predict.")
@click.option("--out", metavar="FILE.toml", help="Where to write it; the terminal by default. Never overwrites.")
@click.option("--check", "--schema", "schema", metavar="FILE.toml", help="Check the table by this schema instead.")
def schema(data: str, target: str | None, out: str | None, schema: str | None) -> int:
    """Draft the public schema of a csv, tsv or parquet file; with --check, list what a private fit would replace.

    \b
    dpbench schema titanic.csv --target survived --out titanic.toml
    dpbench schema titanic.csv --check titanic.toml

    The draft takes bounds, categories and classes from the data and marks them "decide". Replace each by what the
    meaning of the column says, and remove the mark: a private fit is refused while one is left. The draft itself
    reveals something about the data, so do not publish it.

    --check lists the cells that a private fit would replace, clip or shorten, by kind. A fit cannot report them,
    because a report would reveal something about the data. The counts are exact, so not private: do not publish them.
    The exit code is 1 if the list is not empty.
    """
    if schema is not None:
        if target is not None or out is not None:
            raise UserError("--check goes without --target and --out: it drafts nothing")
        return _checked(data, schema)
    if target is None:
        raise UserError("--target: name the column to predict, or --check FILE.toml to check the table by a schema")
    drafted, remarks = dpbench.draft_schema(data, target, out=out)
    for remark in remarks:
        click.echo(f"note: {remark}", err=True)
    if out is None:
        click.echo(drafted.toml(), nl=False)
        return 0
    left = len(drafted.undecided)
    what = "entry" if left == 1 else "entries"
    click.echo(f"wrote {out}: decide {left} {what}, then run: dpbench schema {data} --check {out}")
    return 0


def _checked(data: str, schema: str) -> int:
    lines = dpbench.check_data(data, schema)
    for line in lines:
        click.echo(line)
    if not lines:
        click.echo(f"{data}: every cell is as {schema} says")
    return 1 if lines else 0


@click.command("plan")
@click.option(
    "--schema", required=True, metavar="FILE.toml", help="Public description of the table: see dpbench schema."
)
@click.option("--n", type=int, required=True, metavar="N", help="How many rows the table has, or will have.")
@EPS
@click.option("--delta", metavar="δ", help="A number, n^-1 or n^-2; n^-2 by default.")
@click.option(
    "--algo",
    "algorithm",
    multiple=True,
    metavar="NAME",
    help="A method to show beside the default; may be repeated. all: every method; auto: only the default.",
)
@click.option("--like", metavar="FILE", help="Public or older rows with the same columns, to simulate from.")
@click.option(
    "--share", multiple=True, metavar="CLASS=SHARE", help="Your guess of a class's share of the rows; may be repeated."
)
@click.option("--signal", type=float, metavar="SCORE", help="Your guess of the AUC (or R²) possible without privacy.")
@click.option(
    "--reach",
    metavar="SCORE=VALUE",
    help="Also print the ε and the n that a score needs: auc=0.8, accuracy=0.9, r2=0.3 or kept=0.9.",
)
@click.option("--worlds", type=int, default=40, show_default=True, metavar="N", help="How many tables to simulate.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the simulation.")
@click.option(
    "--row-bound",
    type=click.Choice(["auto", "private", "rule", "none"]),
    default="auto",
    show_default=True,
    help="How the bound on a row's length is found, as of the estimators: released (auto does), or by a public rule. "
    "With none, rows may be as long as the columns allow, which costs about 6 points of accuracy at ε = 1.",
)
@click.option("--figure", metavar="FILE.png", help="Draw the scores against ε.")
@JOBS
def plan(share: tuple[str, ...], **given: Any) -> None:
    """Predict what a private fit will release and how it will score, from a schema alone.

    \b
    dpbench plan --schema titanic.toml --n 1300 --eps 0.3 --eps 1 --eps 3

    It reads no data, so it costs no privacy. The first table is simulated: the estimators are fitted to random tables
    that the schema allows. The second table is exact: it lists the releases of a fit, with their noise.
    """
    given["row_bound"] = None if given["row_bound"] == "none" else given["row_bound"]
    with progress() as report:
        found = dpbench.plan(share=parse_shares(share), **given, progress=report.doing)
    _answer(found, given["reach"])
    click.echo()
    _scores(found)
    _releases(found)
    for name, why in found.left_out.items():
        say(f"left out: {name}: {why}")
    for note in found.notes:
        say(f"note: {note}")
    if given["figure"]:
        say(f"drew {given['figure']}")


def _answer(found: Forecasts, reach: str | None) -> None:
    """What to expect of the default, a sentence for each ε, and what the target needs."""
    default, score = found.forecasts[0].method, found.scores[0]
    for one in found.forecasts:
        if one.method == default:
            median, low, _ = one.interval(score)
            kept, least, _ = one.interval("kept")
            worth = f"{100 * kept:.0f} % of what can be learned without privacy (at least {100 * max(least, 0):.0f} %)"
            _tell(
                f"At ε = {one.epsilon:g} expect {score} {median:.2f} of {default} "
                f"(in 19 of 20 tables {low:.2f} or more): "
                + (f"{worth}." if kept > 0 else "no better than one answer for all.")
            )
    for needed in found.needed:
        _tell(_needed(needed, str(reach)))


def _scores(found: Forecasts) -> None:
    several = any(not math.isnan(one.beats) for one in found.forecasts)
    _tell(
        f"{found.rows:,} rows, {found.columns} columns once encoded; {found.worlds} simulated tables. "
        "Median [nine tenths of the tables]; kept: the share of what can be learned without privacy"
        + (
            "; beats it: the share of the tables in which a method has a lower loss than the default."
            if several
            else "."
        )
    )
    click.echo()
    header = ["ε", "method", *found.scores, "beats it"]
    default = found.forecasts[0].method
    rows, last = [], None
    for one in found.forecasts:
        name = one.method + (" (default)" if one.method == default else "")
        told = [_interval(*one.interval(score)) for score in found.scores]
        beats = "" if math.isnan(one.beats) else f"{100 * one.beats:.0f} %"
        rows.append(["" if one.epsilon == last else f"{one.epsilon:g}", name, *told, beats])
        last = one.epsilon
    for label in found.references:
        told = [_interval(*found.reference(label, score)) if score != "kept" else "" for score in found.scores]
        rows.append(["", f"({label})", *told, ""])
    room = shutil.get_terminal_size((120, 24)).columns
    kept = [i for i in range(len(header)) if i < len(header) - 1 or any(row[i] for row in rows)]
    for dropped in ("log loss", "RMSE", "accuracy", "beats it"):
        if sum(max(width(line[i]) for line in (header, *rows)) + 2 for i in kept) - 2 > room and dropped in header:
            kept.remove(header.index(dropped))
    print_table([header[i] for i in kept], [[row[i] for i in kept] for row in rows])
    click.echo()


def _releases(found: Forecasts) -> None:
    rows = [
        [
            f"{one.epsilon:g}",
            one.method,
            "–" if math.isnan(one.epsilon_planned) else f"{one.epsilon_planned:.4g}",
            f"{one.delta:.3g}",
            ", ".join(f"{name}={value}" for name, value in one.settings.items()) or "–",
            "; ".join(one.releases) or "said while it runs",
        ]
        for one in found.forecasts
    ]
    print_table(["ε", "method", "planned ε", "δ", "settings", "releases"], rows, below=True)
    click.echo()


def _needed(one: Needed, reach: str) -> str:
    def shown(value: float) -> str:
        if one.what == "ε":
            return f"{value:.2g}"
        return f"{float(f'{value:.2g}'):,.0f}"

    where = f"at n = {one.at:,.0f}" if one.what == "ε" else f"at ε = {one.at:g}"
    if math.isinf(one.median):
        return f"For {reach} {where} no {one.what} up to {shown(one.sought)} is enough in half of the tables."
    most = f"{one.what} = {shown(one.high)} in 19 of 20"
    if math.isinf(one.high):
        most = f"in 1 of 20 or more not even {shown(one.sought)}"
    return f"For {reach} {where}: {one.what} = {shown(one.median)} is enough in half of the tables, {most}."


def _interval(median: float, low: float, high: float) -> str:
    """ "0.81 [0.77, 0.84]", in as many digits as the numbers have in common."""
    if math.isnan(median):
        return "–"
    size = max(abs(low), abs(high))
    digits = 2 if size < 20 else 1 if size < 200 else 0
    middle, least, most = (f"{round(value, digits) + 0.0:,.{digits}f}" for value in (median, low, high))
    return f"{middle} [{least}, {most}]"


def _tell(text: str) -> None:
    for line in textwrap.wrap(text, min(shutil.get_terminal_size((120, 24)).columns, 120), break_on_hyphens=False):
        click.echo(line)
