"""dpbench compare: the leaderboard's methods on a file of one's own."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from pathlib import Path

import click

from dpbench.cli.run import RESULTS
from dpbench.cli.tables import number, print_table, width
from dpbench.errors import UserError


@click.command("compare")
@click.option("--data", required=True, metavar="FILE", help="csv, tsv, parquet or svmlight.")
@click.option("--target", metavar="COLUMN", help="What to predict; not for svmlight, whose labels come first.")
@click.option("--eps", "epsilon", type=float, default=1.0, show_default=True, metavar="ε", help="Privacy budget.")
@click.option("--loss", metavar="NAME", help="By default logistic for two classes, squared for numbers.")
@click.option("--l1", type=float, default=0.0, metavar="WEIGHT", help="Weight of ‖w‖₁.")
@click.option("--l2", type=float, default=0.0, metavar="WEIGHT", help="Weight of ‖w‖²/2.")
@click.option("--row-bound", type=float, metavar="R", help="Bound on ‖x‖₂; longer rows are shortened to it.")
@click.option("--bounds", multiple=True, metavar="COLUMN=LOW:HIGH", help="Public bounds of a column; may be repeated.")
@click.option("--standardise/--no-standardise", default=True, help="Numeric columns without bounds; uses the data.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")
@click.option("--algo", "extra", multiple=True, metavar="FILE.py:CLASS", help="A method of yours; may be repeated.")
@click.option(
    "--profile", default="quick", show_default=True, metavar="quick|full", help="How many settings are tried."
)
@click.option("--seeds", type=int, default=5, show_default=True, help="How many seeds.")
@click.option("--jobs", type=int, metavar="N", help="Worker processes; all cores by default.")
@RESULTS
def command(
    data, target, epsilon, loss, l1, l2, row_bound, bounds, standardise, drop, extra, profile, seeds, jobs, out
):
    """Rank every private method on your data, recommend one, and print the code to run it.

    \b
    dpbench compare --data my.csv --target label --eps 1

    All methods are run under replace-one neighbours at δ = n⁻², each at the best of a few settings. Finished runs are
    kept under results/adhoc and not repeated.
    """
    from dpbench import compare, datasets
    from dpbench.datasets import tables
    from dpbench.jobs import check_epsilon
    from dpbench.problems import losses
    from dpbench.results import Store

    jobs = os.cpu_count() if jobs is None else jobs
    for flag, value in (("--jobs", jobs), ("--seeds", seeds)):
        if value < 1:
            raise UserError(f"{flag} must be at least 1, got {value}")
    if profile not in ("quick", "full"):
        raise UserError(f"--profile must be quick or full, got {profile!r}")
    check_epsilon(epsilon)
    weights = {name: weight for name, weight in (("l1", l1), ("l2", l2)) if weight}
    given = {
        "row_bound": row_bound,
        "bounds": parse_bounds(bounds),
        "standardise": standardise,
        "drop": list(drop),
        "task": None if loss is None else "binary" if losses.get(loss).binary else "regression",
    }
    table = tables.read(data, target, **given)
    for line in table.warnings:
        _say(f"warning: not private: {line}")
    loss = loss or ("logistic" if table.task == "binary" else "squared")
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(data).name.partition(".")[0]).strip("-").lower() or "data"
    dataset = datasets.keep(table.X, table.y, name, table.recipe, labels="binary" if table.task == "binary" else "real")
    words = ",".join([loss, *(f"{key}={weight!r}" for key, weight in weights.items())])
    _say(f"{dataset}: {table.X.shape[0]:,} rows, {table.X.shape[1]:,} columns, {words}; {table.recipe}")

    store = Store(out, "adhoc", f"compare-{dataset}")
    found = compare.compare(
        f"{dataset}:{words}", epsilon, store, _runner(store, jobs), extra=extra, seeds=seeds, profile=profile
    )
    _print(found, table.task, seeds, profile)
    if found.best is None:
        return 1
    click.echo()
    call = _source(data, target, given)
    reference = found.references[found.best.algorithm]
    click.echo(compare.snippet(call, found.best, reference, seeds=seeds, loss=loss, weights=weights))
    _say(compare.PRICE)
    return 1 if found.failed else 0


def parse_bounds(pairs) -> dict[str, tuple[float, float]]:
    """["age=0:100"] → {"age": (0.0, 100.0)}; UserError for anything else."""
    bounds = {}
    for pair in pairs:
        name, equals, ends = pair.rpartition("=")
        low, colon, high = ends.partition(":")
        try:
            if not (name and equals and colon):
                raise ValueError
            bounds[name] = (float(low), float(high))
        except ValueError:
            raise UserError(f"--bounds takes COLUMN=LOW:HIGH, got {pair!r}") from None
    return bounds


def _runner(store, workers):
    from dpbench import runner
    from dpbench.cli.progress import progress

    def run(jobs):
        with progress() as report:
            return runner.run(jobs, store, workers=workers, report=report)

    return run


def _print(found, task, seeds, profile) -> None:
    from dpbench import compare

    excess = "excess loss" if found.has_excess else "objective"
    header = ["#", "method", f"{excess} ± s.e.", "accuracy", "seconds", "settings", "accounting"]
    rows = [
        [
            f"{row.rank}{'=' if row.beaten_by == 0 else ''}",
            row.algorithm,
            f"{number(row.mean)} ± {number(row.se, 1)}",
            number(row.accuracy, 3),
            number(row.seconds, 2),
            compare.shown_settings(row, found.references[row.algorithm], profile),
            row.accounting,
        ]
        for row in found.table.itertuples()
    ]
    dropped = set() if task == "binary" else {3}
    room = shutil.get_terminal_size((120, 24)).columns
    for least in (6, 5, 3):
        kept = [i for i in range(len(header)) if i not in dropped]
        if sum(max(width(line[i]) for line in (header, *rows)) + 2 for i in kept) - 2 <= room:
            break
        dropped.add(least)
    kept = [i for i in range(len(header)) if i not in dropped]
    right = {j for j, i in enumerate(kept) if i in (3, 4)}
    print_table([header[i] for i in kept], [[row[i] for i in kept] for row in rows], right=right)
    click.echo()
    _tell(f"Means over {seeds} seeds; = marks what is within two standard errors of the best.")
    for why, names in _by_reason({**found.left_out, **found.failed}).items():
        _say(f"not in it: {', '.join(names)}: {why}")
    for sentence in compare.recommendation(found, profile):
        _tell(sentence)


def _by_reason(left_out: dict[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, why in left_out.items():
        groups.setdefault(why, []).append(name)
    return groups


def _source(data, target, given) -> str:
    defaults = {"row_bound": None, "bounds": {}, "standardise": True, "drop": [], "task": None}
    words = [repr(str(data)), *([repr(target)] if target is not None else [])]
    words += [f"{name}={value!r}" for name, value in given.items() if value != defaults[name]]
    return f"tables.read({', '.join(words)})"


def _tell(text: str, err: bool = False) -> None:
    """A paragraph, wrapped to the terminal."""
    for line in textwrap.wrap(text, min(shutil.get_terminal_size((120, 24)).columns, 120), break_on_hyphens=False):
        click.echo(line, err=err)


def _say(text: str) -> None:
    _tell(text, err=True)
