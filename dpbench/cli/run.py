"""dpbench run: an algorithm of your choice, or a paper's experiment."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import dpbench
from dpbench import frames
from dpbench.cli.completion import ALGORITHMS, DATASETS, EXPERIMENTS
from dpbench.cli.output import EPS, JOBS, RESULTS, SEEDS, duration, number, print_table, progress, say
from dpbench.errors import UserError

if TYPE_CHECKING:
    import pandas

    from dpbench.experiments.running import Runs

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
    "--algo", "algorithm", metavar="NAME", shell_complete=ALGORITHMS, help="Algorithm, alias, or path/to/file.py:Class."
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
def command(algorithm: str | None, reference: str | None, key: str | None, debug: bool, yes: bool, **given: Any) -> int:
    """Run one algorithm (--algo), or an experiment's grid (--experiment), and keep the rows.

    \b
    dpbench run --algo dp-gd --dataset a1a --eps 1 --seeds 5 --set T=100
    dpbench run --experiment second_order/fig2 --profile quick
    dpbench run --profile-of 1f0c9a

    Finished runs are kept and not repeated, so an interrupted command resumes. Without --dataset, the algorithm runs on
    those data sets of its paper's experiment that are fetched, and on the synthetic one. Settings that you do not give
    take the tuned values that ship with that experiment, if there are any; such runs are made one at a time and timed.
    """
    if key is not None:
        if algorithm is not None or reference is not None:
            raise UserError("--profile-of stands alone: it takes the key of a row that there is")
        for path in dpbench.privacy_profile(key, results=given["results"]):
            click.echo(str(path))
        return 0
    if (algorithm is None) == (reference is None):
        raise UserError("give either --algo NAME or --experiment NAME")
    context = click.get_current_context()
    other = OF_A_GRID if algorithm is not None else OF_ONE
    clash = [flag for name, flag in other.items() if context.get_parameter_source(name) is COMMANDLINE]
    if clash and algorithm is not None:
        raise UserError(f"{clash[0]} goes with --experiment")
    if clash:
        raise UserError(f"{clash[0]} goes with --algo; an experiment's grid is changed with --config FILE")
    of_one, of_a_grid = ({name: given.pop(name) for name in names} for names in (OF_ONE, OF_A_GRID))
    if algorithm is not None:
        of_one["settings"] = parse_settings(of_one["settings"])
        with progress() as report:
            ask = (lambda seconds: None) if yes else _not_for_hours
            runs = dpbench.run_algorithm(algorithm, **of_one, **given, progress=report, notify=say, estimated=ask)
        (_print_tuned if runs.tuned else _print)(runs.table())
        for line in runs.warnings():
            say(line)
        return _verdict(runs, debug)
    assert reference is not None
    codes = []
    for one in dpbench.listing("experiments")["experiment"] if reference == "all" else [reference]:
        with progress() as report:
            runs = dpbench.run_experiment(one, **of_a_grid, **given, progress=report, notify=say)
        codes.append(_verdict(runs, debug))
    return max(codes)


def _not_for_hours(seconds: float) -> None:
    """UserError for what takes longer than an hour by a rough estimate."""
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
