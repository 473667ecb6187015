"""dpbench run: an algorithm of your choice, or a paper's experiment."""

from __future__ import annotations

import itertools
import json
import os

import click

from dpbench.cli.progress import progress
from dpbench.cli.tables import number, print_table
from dpbench.errors import NotAtHand, UserError

RESULTS = click.option(
    "--out",
    "--results",
    "out",
    default="results",
    show_default=True,
    metavar="DIR",
    help="Where results lie.",
)


@click.command("run")
@click.option("--algo", "algorithm", metavar="NAME", help="Algorithm, alias, or path/to/file.py:Class.")
@click.option("--dataset", "problems", multiple=True, metavar="NAME", help="Data set or problem; may be repeated.")
@click.option("--eps", "epsilons", type=float, multiple=True, metavar="ε", help="Privacy budget; may be repeated.")
@click.option("--seeds", type=int, default=5, show_default=True, help="How many seeds.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated.")
@click.option(
    "--accounting",
    default="paper",
    show_default=True,
    metavar="MODE",
    help="paper, tight, or another the algorithm takes (text, bs16, cks20, standard, rdp, basic).",
)
@click.option("--delta", metavar="δ", help="A number, n^-2 or n^-1; the algorithm's own rule by default.")
@click.option("--relation", metavar="NAME", help="add-remove or replace-one; the algorithm's own by default.")
@click.option("--experiment", metavar="NAME[/ARTEFACT]", help="A paper's experiment, or one of its artefacts.")
@click.option("--profile", default="quick", show_default=True, metavar="quick|full", help="Which grid.")
@click.option("--config", metavar="FILE", help="A grid of your own (TOML) instead of the experiment's.")
@click.option("--jobs", type=int, metavar="N", help="Worker processes; all cores by default.")
@click.option(
    "--backend",
    type=click.Choice(["loky", "threading", "dask"]),
    default="loky",
    show_default=True,
    help="Processes or threads here, or a dask cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="dask's scheduler: tcp://host:port, or its scheduler file.")
@RESULTS
def command(
    algorithm,
    problems,
    epsilons,
    seeds,
    settings,
    accounting,
    delta,
    relation,
    experiment,
    profile,
    config,
    jobs,
    backend,
    scheduler,
    out,
):
    """Run one algorithm (--algo), or an experiment's grid (--experiment), and keep the rows.

    \b
    dpbench run --algo dp-gd --dataset a1a --eps 1 --seeds 5 --set T=100
    dpbench run --experiment second_order/fig2 --profile quick

    Finished runs are found and not repeated, so an interrupted command goes on where it was. Without --dataset
    the algorithm runs on its home experiment's data sets that are at hand, and on the synthetic one. Settings not given
    are the tuned ones that ship with that experiment, if there are any: such runs are made one at a time, and timed.
    """
    jobs = os.cpu_count() if jobs is None else jobs
    if jobs < 1:
        raise UserError(f"--jobs must be at least 1, got {jobs}")
    if (backend == "dask") != (scheduler is not None):
        raise UserError("--backend dask and --scheduler ADDRESS go together")
    pool = {"workers": jobs, "backend": backend, "scheduler": scheduler}
    if (algorithm is None) == (experiment is None):
        raise UserError("give either --algo NAME or --experiment NAME")
    if algorithm is None:
        clash = [flag for flag, given in (("--dataset", problems), ("--eps", epsilons), ("--set", settings)) if given]
        if clash:
            raise UserError(f"{clash[0]} goes with --algo; an experiment's grid is changed with --config FILE")
        return _experiment(experiment, profile, config, pool, out)
    if config is not None:
        raise UserError("--config goes with --experiment")
    return _algorithm(algorithm, problems, epsilons or (1.0,), seeds, settings, accounting, delta, relation, pool, out)


def _algorithm(name, problems, epsilons, seeds, settings, accounting, delta, relation, pool, out):
    from dpbench import algorithms, datasets
    from dpbench.experiments.tuned import lookup
    from dpbench.jobs import check_epsilon, make_job
    from dpbench.problems import catalogue
    from dpbench.results import Store

    if seeds < 1:
        raise UserError(f"--seeds must be at least 1, got {seeds}")
    method, _ = algorithms.resolve(name)
    problems = problems or _home_problems(method)
    for problem in problems:
        dataset = catalogue.dataset_of(problem)
        if not datasets.available(dataset):
            raise NotAtHand(f"data set {dataset} is not at hand; run: dpbench fetch {dataset}")
    given = parse_settings(settings)
    cells = list(itertools.product(problems, map(check_epsilon, epsilons)))
    tuned = {(problem, epsilon): lookup(name, method.home, problem, epsilon) for problem, epsilon in cells}
    used = {at: one for at, one in tuned.items() if one is not None and set(one.settings) - set(given)}
    if used:
        at = ", ".join(sorted({f"{one.epsilon:g}" for one in used.values()}))
        click.echo(f"settings not given: tuned (not privately) in {method.home} at ε = {at}; timed alone", err=True)
    jobs = [
        make_job(
            problem=problem,
            algorithm=name,
            epsilon=epsilon,
            seed=seed,
            settings=(used[problem, epsilon].settings if (problem, epsilon) in used else {}) | given,
            accounting=accounting,
            delta=delta,
            relation=relation,
            timed=int(bool(used)),
        )
        for problem, epsilon in cells
        for seed in range(seeds)
    ]
    store = Store(out, "adhoc", method.name)
    summary = _run(jobs, store, pool)
    rows = store.runs().set_index("key")
    rows = rows.loc[[key for key in summary.keys if key in rows.index]]
    (_summarise_tuned if used else _summarise)(rows)
    return _verdict(summary, store)


def _home_problems(method) -> list[str]:
    from dpbench import datasets, experiments
    from dpbench.problems import catalogue

    home = experiments.get(method.home) if method.home in experiments.NAMES else None
    if home is None:
        return ["synthetic"]
    at_hand = [p for p in home.problems() if datasets.available(catalogue.dataset_of(p))]
    missing = [p for p in home.problems() if p not in at_hand]
    if missing:
        click.echo(f"not at hand: {', '.join(missing)} (dpbench fetch gets them)", err=True)
    return at_hand


def parse_settings(pairs) -> dict[str, str]:
    """["T=100", "step=4"] → {"T": "100", "step": "4"}; UserError for anything else."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise UserError(f"--set takes KEY=VALUE, got {pair!r}")
        if key in settings:
            raise UserError(f"--set {key} is given twice")
        settings[key] = value
    return settings


def _experiment(reference, profile, config, pool, out):
    from dpbench import experiments
    from dpbench.experiments.base import plan
    from dpbench.results import Store

    name, _, artefact = reference.partition("/")
    if name == "all":
        codes = [_experiment(one, profile, config, pool, out) for one in experiments.NAMES]
        return max(codes)
    one = experiments.get(name)
    blocks = one.blocks(profile, artefact or None, config)
    store = Store(out, profile, name)
    first = plan([block for block in blocks if not block.waits], store)
    click.echo(f"{name}: {one.title} ({profile})", err=True)
    for problem, dataset in first.missing_data.items():
        click.echo(f"data not at hand: {problem} (dpbench fetch {dataset}); its panels will show the gap", err=True)
    summary = _run(first.runnable, store, pool)
    later = [block for block in blocks if block.waits]
    if later:
        second = plan(later, store)
        for what in second.waiting:
            click.echo(f"rows to decide on are missing: {what}", err=True)
        rest = _run(second.runnable, store, pool)
        summary.found += rest.found
        summary.statuses += rest.statuses
        summary.failures += rest.failures
    return _verdict(summary, store)


def _run(jobs, store, pool):
    from dpbench import runner

    with progress() as report:
        return runner.run(jobs, store, **pool, report=report)


def _summarise(rows):
    from dpbench.experiments.tuning import summarise

    table = summarise(rows)
    spent = rows.groupby(["problem", "algorithm", "epsilon", "settings"], sort=False).agg(
        spent=("epsilon_spent", "max"), objective=("objective", "mean"), checked=("checked_by", "first")
    )
    table = table.join(spent, on=["problem", "algorithm", "epsilon", "settings"])
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
            "ε spent",
            "checked by",
        ],
        [
            [
                row.problem,
                row.algorithm,
                f"{row.epsilon:g}",
                number(row.T, 6),
                str(row.seeds),
                number(row.objective, 5),
                number(row.mean),
                number(row.se, 2),
                number(row.spent, 4),
                row.checked or "–",
            ]
            for row in table.itertuples()
        ],
        right={2, 3, 4, 5, 6, 7, 8},
    )


def _summarise_tuned(rows):
    """One line per (problem, ε): what was reached, beside the settings that differ between problems."""
    import numpy as np

    lines = []
    for (problem, epsilon), runs in rows[rows["status"].ne("failed")].groupby(["problem", "epsilon"], sort=False):
        excess = runs["excess"].where(runs["status"].ne("diverged"), np.inf)
        relative = excess / (runs["objective"] - runs["excess"]).median()
        support = [runs[name].mean() for name in ("support_correct", "support_wrong")]
        settings = json.loads(runs["settings"].iloc[0])
        with np.errstate(invalid="ignore"):
            gap = f"{number(relative.mean())} ± {number(relative.sem(), 2)}"
        lines.append(
            [
                problem,
                f"{epsilon:g}",
                ", ".join(f"{k} {v:g}" for k, v in settings.items() if isinstance(v, float)),
                str(len(runs)),
                gap,
                "–" if support[0] != support[0] else "{:.1f} right, {:.1f} wrong".format(*support),
                number(runs["seconds"].median()),
                number(runs["epsilon_spent"].max(), 4),
            ]
        )
    print_table(
        ["problem", "ε", "settings", "seeds", "(F - F*)/F*", "support found", "seconds", "ε spent"],
        lines,
        right={1, 3, 4, 6, 7},
    )


def _verdict(summary, store) -> int:
    counts = ", ".join(f"{count} {status}" for status, count in sorted(summary.statuses.items())) or "nothing to do"
    click.echo(f"{counts}; {summary.found} found finished; rows in {store.folder}", err=True)
    for error, example in {row["error"]: row for row in summary.failures}.items():
        click.echo(f"failed: {example['algorithm']} on {example['problem']}: {error}", err=True)
    return 1 if summary.failed else 0
