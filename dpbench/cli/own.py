"""dpbench schema, plan and model: what is public of a table of your own, what a fit of it would be, and a saved one."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

import click

import dpbench
from dpbench.cli.options import (
    ALGORITHMS,
    DELTA,
    EPS,
    JOBS,
    LIKE,
    SEED,
    SHARE,
    SIGNAL,
    WORLDS,
    VerbGroup,
    option,
    out,
    parse_shares,
)
from dpbench.cli.output import by_reason, number, print_columns, print_table, progress, say, tell
from dpbench.errors import UserError

if TYPE_CHECKING:
    from dpbench.own.forecast import Forecasts, Needed


@click.command("schema")
@click.argument("data", metavar="FILE")
@option("--target", metavar="COLUMN", help="What to predict.")
@out("FILE.toml", "Where to write it; the terminal by default. Never overwrites.")
@option("--check", "schema", metavar="FILE.toml", help="Check the table by this schema instead.")
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
    words = ["dpbench", "schema", data, "--check", out]
    click.echo(f"wrote {out}: decide {left} {what}, then run: {shlex.join(words)}")
    return 0


def _checked(data: str, schema: str) -> int:
    lines = dpbench.check_data(data, schema)
    for line in lines:
        click.echo(line)
    if not lines:
        click.echo(f"{data}: every cell is as {schema} says")
    return 1 if lines else 0


@click.command("plan")
@option("--schema", required=True, metavar="FILE.toml", help="Public description of the table: see dpbench schema.")
@option("--n", required=True, metavar="N", help="How many rows the table has; persons, where the schema has a unit.")
@EPS
@DELTA
@option(
    "--algo",
    "algorithm",
    multiple=True,
    metavar="NAME",
    shell_complete=ALGORITHMS,
    help="A method to show beside the default; may be repeated. all: every method; auto: only the default.",
)
@LIKE
@SHARE
@SIGNAL
@option(
    "--reach",
    metavar="SCORE=VALUE",
    help="Also print the ε and the n that a score needs: auc=0.8, accuracy=0.9, r2=0.3 or kept=0.9.",
)
@WORLDS
@SEED
@option(
    "--row-bound",
    type=click.Choice(["auto", "private", "rule", "window", "none"]),
    default="auto",
    help="How the bound on a row's length is found, as of the estimators: released (auto does; for numbers beside a "
    "window around the target), or by a public rule. "
    "With none, rows may be as long as the columns allow, which costs about 6 points of accuracy at ε = 1.",
)
@JOBS
def plan(share: tuple[str, ...], **given: Any) -> None:
    """Predict what a private fit will release and how it will score, from a schema alone.

    \b
    dpbench plan --schema titanic.toml --n 1300 --eps 0.3 --eps 1 --eps 3

    It reads no data, so it costs no privacy. The first table is simulated: the estimators are fitted to random tables
    that the schema allows. The second table is exact: it lists the releases of a fit, with their noise.
    """
    # The API's None is no word that a user could type.
    given["row_bound"] = None if given["row_bound"] == "none" else given["row_bound"]
    with progress() as report:
        forecasts = dpbench.plan(share=parse_shares(share), **given, progress=report.doing)
    _answer(forecasts, given["reach"])
    click.echo()
    _scores(forecasts)
    _releases(forecasts)
    for line in by_reason(forecasts.left_out):
        say(f"left out: {line}")
    for note in forecasts.notes:
        say(f"note: {note}")


def _answer(forecasts: Forecasts, reach: str | None) -> None:
    """What to expect of the default, a sentence for each ε, and what the target needs."""
    default, score = forecasts.forecasts[0].method, forecasts.scores[0]
    for one in forecasts.forecasts:
        if one.method == default:
            median, low, _ = (round(value, 2) + 0.0 for value in one.interval(score))  # never -0.00
            kept, least, _ = one.interval("kept")
            worth = f"{100 * kept:.0f} % of what can be learned without privacy (at least {100 * max(least, 0):.0f} %)"
            tell(
                f"At ε = {one.epsilon:g} expect {score} {median:.2f} of {default} "
                f"(in 19 of 20 tables {low:.2f} or more): "
                + (f"{worth}." if kept > 0 else "no better than one answer for all.")
            )
    for needed in forecasts.needed:
        tell(_needed(needed, str(reach)))


def _scores(forecasts: Forecasts) -> None:
    several = any(not math.isnan(one.beats) for one in forecasts.forecasts)
    tell(
        f"{forecasts.rows:,} rows, {forecasts.columns} columns once encoded; {forecasts.worlds} simulated tables. "
        "Median [nine tenths of the tables]; kept: the share of what can be learned without privacy"
        + (
            "; beats it: the share of the tables in which a method has a lower loss than the default."
            if several
            else "."
        )
    )
    click.echo()
    default, last = forecasts.forecasts[0].method, None
    rows = []
    for one in forecasts.forecasts:
        name = one.method + (" (default)" if one.method == default else "")
        shown = [_interval(*one.interval(score)) for score in forecasts.scores]
        beats = "" if math.isnan(one.beats) else f"{100 * one.beats:.0f} %"
        rows.append(["" if one.epsilon == last else f"{one.epsilon:g}", name, *shown, *[beats] * several])
        last = one.epsilon
    for label in forecasts.references:
        shown = [_interval(*forecasts.reference(label, score)) if score != "kept" else "" for score in forecasts.scores]
        rows.append(["", f"({label})", *shown, *[""] * several])
    header = ["ε", "method", *forecasts.scores, *["beats it"] * several]
    print_table(header, rows, droppable=("log loss", "RMSE", "accuracy", "beats it"))
    click.echo()


def _releases(forecasts: Forecasts) -> None:
    print_columns(forecasts.forecasts, {
        "ε": lambda one: f"{one.epsilon:g}",
        "method": lambda one: one.method,
        "planned ε": lambda one: number(one.epsilon_planned, 4),
        "δ": lambda one: f"{one.delta:.3g}",
        "settings": lambda one: ", ".join(f"{name}={value}" for name, value in one.settings.items()) or "–",
        "releases": lambda one: "; ".join(one.releases) or "said while it runs",
    })  # fmt: skip
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
    # A score of 0.81 ± 0.04 has two decimals that mean something, an error in thousands has none.
    size = max(abs(low), abs(high))
    digits = 2 if size < 20 else 1 if size < 200 else 0
    middle, least, most = (f"{round(value, digits) + 0.0:,.{digits}f}" for value in (median, low, high))
    return f"{middle} [{least}, {most}]"


@click.group("model", cls=VerbGroup)
def model() -> None:
    """Show and check a saved model's release statement, write its card, export it.

    \b
    dpbench model statement model.json
    dpbench model card model.json --out model.md
    dpbench model export model.json --out model.onnx
    """


@model.command("statement")
@click.argument("model", metavar="MODEL.json")
def _statement(model: str) -> None:
    """Show the release statement of a saved model, and check what can be checked.

    dpbench model statement model.json

    The second accountant recomputes the ε of the releases that the statement lists. The exit code is 2 if they cost
    more than it states.
    """
    statement, holds = dpbench.statement(model)
    for line in statement.lines():
        click.echo(line)
    for line in holds:
        click.echo(f"checked: {line}")


@model.command("card")
@click.argument("model", metavar="MODEL.json")
@out("FILE.md", "Where to write it; the terminal by default.")
@click.option("--holder", metavar="FILE.toml", help="What only you can state: use, access, other releases, …")
@click.option("--registry", metavar="FILE.yaml", help="Also write a draft entry of the Deployments Registry.")
@LIKE
@SHARE
@SIGNAL
@WORLDS
@SEED
@JOBS
def _card(model: str, out: str | None, share: tuple[str, ...], **given: Any) -> None:
    """Write the card of a saved model: its guarantee, its inputs, and the accuracy to expect of it.

    dpbench model card model.json --out model.md

    The expected accuracy is simulated, as by dpbench plan. The card contains no score on the private rows, so you can
    publish it with the model. The second accountant recomputes the ε of the releases; the exit code is 2 if they cost
    more than the model states.
    """
    with progress() as report:
        text = dpbench.card(model, out=out, share=parse_shares(share), **given, progress=report.doing)
    if out is None:
        click.echo(text, nl=False)
    else:
        say(f"wrote {out}")


@model.command("export")
@click.argument("model", metavar="MODEL.json")
@out("FILE.onnx", "Where to write the graph.", required=True)
def _export(model: str, out: str) -> None:
    """Write a saved model as an ONNX graph that predicts as it does.

    dpbench model export model.json --out model.onnx

    Missing, unknown and out-of-bounds cells count as the schema says. The graph computes in double precision and has an
    input for each column: numbers, missing ones NaN, and text, missing ones empty. Dates are refused: ONNX has none.
    """
    dpbench.export(model, out=out)
    say(f"wrote {out}")
