"""dpbench run, and its rows before and after: fetch, list, status."""

from __future__ import annotations

import gc
import json
import math
import shlex
from collections.abc import Iterable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import dpbench
from dpbench import frames
from dpbench.cli.output import (
    ALGORITHMS,
    DATASETS,
    EPS,
    EXPERIMENTS,
    JOBS,
    RESULTS,
    SEEDS,
    downloads,
    duration,
    lazily,
    number,
    print_table,
    progress,
    say,
)
from dpbench.errors import UserError, counted

if TYPE_CHECKING:
    import pandas

    from dpbench.experiments.running import Runs


@click.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME…|all", shell_complete=DATASETS)
@click.option(
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
    with downloads() as report:
        results = dpbench.fetch(names, mirror=mirror, progress=report)
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
@click.option("--cite", is_flag=True, help="Print BibTeX: of dpbench, or of an experiment's paper and data sets.")
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
    lazily("pandas")  # as in `status`: no listing needs it
    for i, name in enumerate([what] if what else LISTINGS):
        if i:
            click.echo()
        found = dpbench.listed(name)
        columns = list(found[0])
        right = {i for i, column in enumerate(columns) if column in NUMBERS}
        cells = [[_cell(value) for value in row.values()] for row in found]
        header = [HEADS.get(column, column.replace("_", " ")) for column in columns]
        print_table(header, cells, right=right, below=True)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "no bound" if value == math.inf else f"{value:.4g}"
    return "?" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


COMMANDLINE = click.core.ParameterSource.COMMANDLINE
OF_A_GRID = {"profile": "--profile", "config": "--config"}
OF_ONE = {
    "problems": "--dataset",
    "epsilon": "--eps",
    "settings": "--set",
    "seeds": "--seeds",
    "accounting": "--accounting",
    "delta": "--delta",
    "relation": "--relation",
    "trace": "--trace",
}
HOUR = 3600.0


@click.command("run")
@click.option(
    "--algo",
    "algorithm",
    multiple=True,
    metavar="NAME",
    shell_complete=ALGORITHMS,
    help="Algorithm, alias, or path/to/file.py:Class; may be repeated.",
)
@click.option(
    "--dataset",
    "problems",
    multiple=True,
    metavar="NAME",
    shell_complete=DATASETS,
    help="Data set or problem; may be repeated.",
)
@EPS
@SEEDS
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated.")
@click.option(
    "--accounting",
    default="paper",
    show_default=True,
    metavar="MODE",
    help="How the noise is set for ε: paper, tight, or another that the algorithm has (text, bs16, cks20, standard, "
    "rdp, "
    "basic).",
)
@click.option("--delta", metavar="δ", help="A number, n^-2 or n^-1; by default the algorithm's own rule.")
@click.option("--relation", metavar="NAME", help="add-remove or replace-one; by default the algorithm's own.")
@click.option(
    "--experiment",
    "reference",
    metavar="NAME[/ARTEFACT]",
    shell_complete=EXPERIMENTS,
    help="A paper's experiment, or one of its artefacts.",
)
@click.option("--profile", default="quick", show_default=True, metavar="quick|full", help="Size of the grid.")
@click.option(
    "--config",
    metavar="FILE",
    help="A grid of your own (TOML) instead of the experiment's; runs that the experiment does not have go to "
    "DIR/adhoc/FILE.",
)
@JOBS
@click.option(
    "--backend",
    type=click.Choice(["loky", "threading", "dask"]),
    default="loky",
    show_default=True,
    help="Processes or threads here, or a dask cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="dask's scheduler: tcp://host:port, or its scheduler file.")
@click.option("--shards", type=int, metavar="N", help="Split the rows into N parts, kept by dask's workers.")
@click.option("--part", metavar="I/N", help="Only the I-th of N parts of the runs, for N processes on one DIR.")
@click.option(
    "--profile-of", "key", metavar="KEY", help="Print the privacy profile and trade-off curve of the run with this key."
)
@click.option("--trace", is_flag=True, help="Record the excess loss after each iteration; dpbench report draws it.")
@click.option("--yes", is_flag=True, help="Start even if the runs take more than an hour.")
@click.option("--debug", is_flag=True, help="Show the traceback of an algorithm that raised.")
@RESULTS
def run(
    algorithm: tuple[str, ...], reference: str | None, key: str | None, debug: bool, yes: bool, **given: Any
) -> int:
    """Run algorithms (--algo), or an experiment's grid (--experiment), and keep the rows.

    \b
    dpbench run --algo dp-gd --algo my_method.py:MyMethod --dataset synthetic --eps 1 --seeds 5
    dpbench run --experiment second_order/fig2 --profile quick
    dpbench run --profile-of 1f0c9a

    Finished runs are kept and not repeated, so an interrupted command resumes. Without --dataset, the algorithm runs on
    those data sets of its paper's experiment that are fetched, and on the synthetic one. Settings that you do not give
    take the tuned values that ship with that experiment, if there are any; such runs are made one at a time and timed.
    """
    if key is not None:
        if algorithm or reference is not None:
            raise UserError("--profile-of stands alone: it takes the key of a row that there is")
        for path in dpbench.privacy_profile(key, results=given["results"]):
            click.echo(str(path))
        return 0
    if bool(algorithm) == (reference is not None):
        raise UserError("give either --algo NAME or --experiment NAME")
    context = click.get_current_context()
    other = OF_A_GRID if algorithm else OF_ONE
    clash = [flag for name, flag in other.items() if context.get_parameter_source(name) is COMMANDLINE]
    if clash and algorithm:
        raise UserError(f"{clash[0]} goes with --experiment")
    if clash:
        raise UserError(f"{clash[0]} goes with --algo; an experiment's grid is changed with --config FILE")
    of_one, of_a_grid = ({name: given.pop(name) for name in names} for names in (OF_ONE, OF_A_GRID))
    codes = []
    if algorithm:
        of_one["settings"] = parse_settings(of_one["settings"])
        for method in dict.fromkeys(algorithm):
            with progress() as report:
                ask = (lambda seconds: None) if yes else _refuse_long_runs
                runs = dpbench.run_algorithm(method, **of_one, **given, progress=report, notify=say, estimated=ask)
            if context.obj:
                runs.store.remember(shlex.join(["dpbench", *context.obj]))
            (_print_tuned if runs.tuned else _print)(runs.table())
            for line in runs.warnings():
                say(line)
            codes.append(_verdict(runs, debug))
        return max(codes)
    assert reference is not None
    for one in dpbench.listing("experiments")["experiment"] if reference == "all" else [reference]:
        with progress() as report:
            runs = dpbench.run_experiment(one, **of_a_grid, **given, progress=report, notify=say)
        codes.append(_verdict(runs, debug))
    return max(codes)


def _refuse_long_runs(seconds: float) -> None:
    """UserError, before anything runs, where a rough estimate of the time is more than an hour.

    A refusal and no question: `dpbench run` has to work in scripts, where nobody answers.
    """
    if seconds > HOUR:
        raise UserError(f"these runs take about {duration(seconds)}; to start them all the same, add --yes")


def parse_settings(pairs: Iterable[str]) -> dict[str, str]:
    """["T=100", "step=4"] → {"T": "100", "step": "4"}; UserError for anything else."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise UserError(f"--set takes KEY=VALUE, got {pair!r}")
        if key in settings:
            raise UserError(f"--set {key} is given twice")
        settings[key] = value
    return settings


class _Setting(NamedTuple):
    problem: str
    algorithm: str
    private: bool
    epsilon: float
    T: float
    seeds: int
    objective: float
    mean: float
    se: float
    planned: float
    realised: float
    checked: str | None


class _Tuned(NamedTuple):
    problem: str
    epsilon: float
    settings: str
    seeds: int
    mean: float
    se: float
    support_correct: float
    support_wrong: float
    seconds: float
    planned: float
    private: bool


def _print(table: pandas.DataFrame) -> None:
    """One line per setting."""
    early = bool((table["realised"] < table["planned"]).any())
    print_table(
        [
            "problem",
            "algorithm",
            "ε",
            "T",
            "seeds",
            "objective",
            "excess loss",
            "± s.e.",
            "ε planned",
            *(["realised"] if early else []),
            "checked by",
        ],
        [
            [
                row.problem,
                row.algorithm + ("" if row.private else " (not private)"),
                f"{row.epsilon:g}",
                number(row.T, 6),
                str(row.seeds),
                number(row.objective, 5),
                number(row.mean),
                number(row.se, 2),
                number(row.planned, 4),
                *([number(row.realised, 4)] if early else []),
                row.checked or "–",
            ]
            for row in frames.records(table, _Setting)
        ],
        right={*range(2, 9 + early)},
    )


def _print_tuned(table: pandas.DataFrame) -> None:
    """One line per (problem, ε): what was reached, beside the settings that differ between problems."""
    from dpbench.study.statistics import plus_minus

    print_table(
        ["problem", "ε", "settings", "seeds", "(F - F*)/F*", "support found", "seconds", "ε planned"],
        [
            [
                row.problem,
                f"{row.epsilon:g}",
                ", ".join(f"{k} {v:g}" for k, v in json.loads(row.settings).items() if isinstance(v, float)),
                str(row.seeds),
                plus_minus(row.mean, row.se, spread_digits=".2g"),
                "–"
                if isnan(row.support_correct)
                else f"{row.support_correct:.1f} right, {row.support_wrong:.1f} wrong",
                number(row.seconds),
                number(row.planned, 4) + ("" if row.private else " (not private)"),
            ]
            for row in frames.records(table, _Tuned)
        ],
        right={1, 3, 4, 6, 7},
    )


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
@click.option("--experiment", metavar="NAME", shell_complete=EXPERIMENTS, help="One experiment; all by default.")
@click.option("--profile", metavar="quick|full", help="One profile; both by default.")
@click.option("--compact", is_flag=True, help="First drop the rows that the grids no longer ask for, and merge files.")
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
    lazily("pandas")  # the papers' modules import it, to draw and to judge
    chosen = click.get_current_context().get_parameter_source("results") is click.core.ParameterSource.COMMANDLINE
    if chosen and not Path(results).is_dir():
        raise UserError(f"--out {results}: there is no such folder; dpbench run --out {results} makes it")
    gc.disable()  # the plans are half a million objects, and none of them is garbage
    try:
        found = dpbench.standings(experiment, profile, results=results)
    finally:
        gc.freeze()
        gc.enable()
    if not found:
        raise UserError("nothing is planned for this selection")
    print_table(list(vars(found[0])), [[str(cell) for cell in vars(one).values()] for one in found], right={2, 3, 4})
