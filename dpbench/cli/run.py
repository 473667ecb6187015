"""dpbench run, and its rows before and after: fetch, list, status."""

from __future__ import annotations

import gc
import math
import operator
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpbench
from dpbench import frames
from dpbench.cli.options import (
    ALGORITHMS,
    DATASETS,
    DEBUG,
    DELTA,
    EPS,
    JOBS,
    RESULTS,
    SEEDS,
    experiment,
    flag,
    option,
    parse_pairs,
    profile,
    several,
    typed,
)
from dpbench.cli.output import (
    duration,
    lazily,
    number,
    print_columns,
    print_table,
    progress,
    say,
)
from dpbench.errors import UserError, counted, marked

if TYPE_CHECKING:
    import pandas

    from dpbench.experiments.running import Runs


@click.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all", shell_complete=DATASETS)
@option(
    "--mirror",
    metavar="DIR|URL",
    help="Folder or URL with the upstream files under their own names; also DPBENCH_MIRROR.",
)
def fetch(names: tuple[str, ...], mirror: str | None) -> int:
    """Download data sets, check them and prepare them for use.

    dpbench fetch a1a adult

    Data sets that are already prepared are left alone. Without network, downloads fail within seconds; the files of the
    mirror are still prepared, and the table says what is missing. The exit code is 1 if a data set that you named is
    missing; with `all`, data sets that cannot be reached are skipped.
    """
    with progress() as report:
        results = dpbench.fetch(names, mirror=mirror, progress=report.download)
    print_table(["data set", "status", "detail"], [[r.name, r.status, r.detail] for r in results])
    bad = [r.name for r in results if r.status in ("missing", "failed")]
    broken = [r.name for r in results if r.status == "failed"]
    return 1 if broken or (bad and "all" not in names) else 0


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
@click.argument("what", required=False, metavar="[algorithms|datasets|losses|experiments]")
@flag("--cite", help="Print BibTeX: of dpbench, or of an experiment's paper and data sets.")
def list_(what: str | None, cite: bool) -> None:
    """Show algorithms, data sets, losses and experiments: all of them, or one kind.

    \b
    dpbench list algorithms
    dpbench list --cite second_order >> references.bib

    An algorithm keeps its ε under the accountings in the third column; a run under any other is marked not private.
    """
    if cite:
        click.echo(dpbench.cite(what), nl=False)
        return
    # No listing needs pandas, whose import takes as long as the rest.
    lazily("pandas")
    for i, name in enumerate([what] if what else LISTINGS):
        if i:
            click.echo()
        found = dpbench.listed(name)
        columns = list(found[0])
        right = {i for i, column in enumerate(columns) if column in NUMBERS}
        cells = [[_cell(value) for value in row.values()] for row in found]
        header = [HEADS.get(column, column.replace("_", " ")) for column in columns]
        print_table(header, cells, right=right)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "no bound" if value == math.inf else f"{value:.4g}"
    return "?" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


OF_A_GRID = ("profile", "config")
OF_ONE = ("problems", "epsilon", "settings", "seeds", "accounting", "delta", "relation", "trace", "served")
HOUR = 3600.0


@click.command("run")
@several(
    "--algo",
    "algorithm",
    metavar="NAME",
    shell_complete=ALGORITHMS,
    help="Algorithm, alias, or path/to/file.py:Class",
)
@several("--dataset", "problems", metavar="NAME", shell_complete=DATASETS, help="Data set or problem")
@EPS
@SEEDS
@several("--set", "settings", metavar="KEY=VALUE", help="A setting")
@option(
    "--accounting",
    default="paper",
    metavar="MODE",
    help="How the noise is set for ε: paper, tight, or another that the algorithm has (text, bs16, cks20, standard, "
    "rdp, basic).",
)
@DELTA
@option("--relation", metavar="NAME", help="add-remove or replace-one; by default the method's own.")
@experiment("A paper's experiment, or one of its artefacts; all: every one.")
@profile("Size of the grid.", "quick")
@option(
    "--config",
    metavar="FILE",
    help="A grid of your own (TOML) instead of the experiment's; runs that the experiment does not have go to "
    "DIR/adhoc/FILE.",
)
@JOBS
@option(
    "--backend",
    type=click.Choice(["loky", "threading", "dask"]),
    default="loky",
    help="Processes or threads here, or a dask cluster.",
)
@option("--scheduler", metavar="ADDRESS", help="dask's scheduler: tcp://host:port, or its scheduler file.")
@option("--part", metavar="I/N", help="Only the I-th of N parts of the runs, for N processes on one DIR.")
@flag("--trace", help="Record the excess loss after each iteration; dpbench report draws it.")
@flag("--served", help="Run the algorithm in a process without the rows: private by construction.")
@flag("--yes", help="Start even if the runs take more than an hour.")
@DEBUG
@RESULTS
def run(algorithm: tuple[str, ...], reference: str | None, debug: bool, yes: bool, **given: Any) -> int:
    """Run algorithms (--algo), or an experiment's grid (--experiment), and keep the rows.

    \b
    dpbench run --algo dp-gd --algo my_method.py:MyMethod --dataset synthetic --eps 1 --seeds 5
    dpbench run --experiment second_order/fig2 --profile quick

    Finished runs are kept and not repeated, so an interrupted command resumes. Without --dataset, the algorithm runs on
    those data sets of its paper's experiment that are fetched, and on the synthetic one. Settings that you do not give
    are the algorithm's defaults.
    """
    clash = typed(*(OF_A_GRID if reference is None else OF_ONE))
    if clash and reference is None:
        raise UserError(f"{clash[0]} goes with --experiment NAME")
    if bool(algorithm) == (reference is not None):
        raise UserError("give either --algo NAME or --experiment NAME")
    if clash:
        raise UserError(f"{clash[0]} goes with --algo; an experiment's grid is changed with --config FILE")
    of_one, of_a_grid = ({name: given.pop(name) for name in names} for names in (OF_ONE, OF_A_GRID))
    codes = []
    if algorithm:
        of_one["settings"] = parse_pairs("--set", "KEY=VALUE", of_one["settings"])
        for method in dict.fromkeys(algorithm):
            with progress() as report:
                ask = (lambda seconds: None) if yes else _refuse_long_runs
                runs = dpbench.run_algorithm(method, **of_one, **given, progress=report, notify=say, estimated=ask)
            if words := click.get_current_context().obj:
                runs.store.remember(shlex.join(["dpbench", *words]))
            _print(runs.table())
            for line in runs.warnings():
                say(line)
            codes.append(_verdict(runs, debug))
        return max(codes)
    assert reference is not None
    for one in dpbench.listing("experiments")["experiment"] if reference == "all" else [reference]:
        with progress() as report:
            runs = dpbench.run_experiment(one, **of_a_grid, **given, progress=report, notify=say)
        if runs.summary.keys or given["part"]:  # else a line has said why there is nothing to run
            codes.append(_verdict(runs, debug))
    return max(codes, default=0)


def _refuse_long_runs(seconds: float) -> None:
    """UserError, before anything runs, where a rough estimate of the time is more than an hour.

    A refusal and no question: `dpbench run` has to work in scripts, where nobody answers.
    """
    if seconds > HOUR:
        raise UserError(f"these runs take about {duration(seconds)}; to start them all the same, add --yes")


def _print(table: pandas.DataFrame) -> None:
    """One line per setting."""
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "problem": lambda row: row["problem"],
        "algorithm": lambda row: marked(row["algorithm"], row["private"], row["code"]),
        ">ε": lambda row: f"{row['epsilon']:g}",
        ">T": lambda row: number(row["T"], 6),
        ">seeds": lambda row: row["seeds"],
        ">objective": lambda row: number(row["objective"], 5),
        ">excess loss": lambda row: number(row["mean"]),
        ">± s.e.": lambda row: number(row["se"], 2),
        ">ε planned": lambda row: number(row["planned"], 4),
        ">realised": lambda row: number(row["realised"], 4),
        "checked by": lambda row: row["checked"] if isinstance(row["checked"], str) else "–",
    }
    # Only methods that may stop early realise less than they plan.
    if not (table["realised"] < table["planned"]).any():
        del columns[">realised"]
    print_columns(frames.mappings(table), columns)


def _verdict(runs: Runs, debug: bool) -> int:
    summary = runs.summary
    counts = ", ".join(f"{count} {status}" for status, count in sorted(summary.statuses.items())) or "nothing to do"
    say(f"{counts}; {summary.found} finished before; rows in {runs.store.folder}")
    for error, example in {row.error: row for row in summary.failures}.items():
        say(f"failed: {example.algorithm} on {example.problem}: {error}")
        if debug and example.traceback:
            say(example.traceback)
    return 1 if summary.failed else 0


@click.command("status")
@experiment("One experiment; all by default.", "experiment", "NAME")
@profile("One profile; both by default.", None)
@flag("--compact", help="First drop the rows that the grids no longer ask for, and merge files.")
@RESULTS
def status(experiment: str | None, profile: str | None, compact: bool, results: str) -> None:
    """Show, for every artefact, how many of its runs are done, missing and failed.

    \b
    dpbench status --experiment second_order --profile full
    dpbench status --compact

    A row goes stale when its algorithm, its data or the grid changes. No figure draws it, but other programs that read
    the files would average over it. --compact drops such rows, of the full profile unless you name another. It keeps
    rows whose settings still wait for tuning.
    """
    if compact:
        counts = dpbench.compact(experiment or "all", profile=profile or "full", results=results)
        for name, (kept, dropped) in counts.items():
            click.echo(f"{name}: {counted(kept, 'row')} kept, {dropped:,} dropped")
        return
    # The papers' modules import pandas to draw and to judge, which a status does not.
    lazily("pandas")
    if typed("results") and not Path(results).is_dir():
        raise UserError(f"--results {results}: there is no such folder; dpbench run --results {results} makes it")
    # The plans are half a million objects, and none of them is garbage.
    gc.disable()
    try:
        found = dpbench.standings(experiment, profile, results=results)
    finally:
        gc.freeze()
        gc.enable()
    if not found:
        raise UserError("nothing is planned for this selection")
    header = [f">{name}" if name in ("done", "missing", "failed") else name for name in vars(found[0])]
    print_columns(found, {each: operator.attrgetter(each.removeprefix(">")) for each in header})
