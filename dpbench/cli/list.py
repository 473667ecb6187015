"""dpbench list [algorithms|datasets|experiments]"""

from __future__ import annotations

import click

from dpbench.cli.tables import print_table


@click.command("list")
@click.argument("what", type=click.Choice(["algorithms", "datasets", "experiments"]), required=False)
def command(what):
    """Show algorithms, data sets and experiments: all three, or one."""
    sections = {"algorithms": _algorithms, "datasets": _datasets, "experiments": _experiments}
    for i, name in enumerate([what] if what else sections):
        if i:
            click.echo()
        sections[name]()


def _algorithms():
    from dpbench import algorithms

    rows = []
    for name in algorithms.names():
        method, fixed = algorithms.resolve(name)
        settings = [s for s in method.Settings.__struct_fields__ if s not in fixed]
        first = (method.__doc__ or "").strip().splitlines()[0:1]
        rows.append([name, "yes" if method.private else "no", method.relation.value, ", ".join(settings), *first])
    print_table(["algorithm", "private", "relation", "settings", "what it does"], rows)


def _datasets():
    from dpbench import datasets

    rows = []
    for name in datasets.names():
        spec = datasets.describe(name)
        state = "generated" if spec.synthetic else "at hand" if datasets.available(name) else "not fetched"
        rows.append([name, f"{spec.rows:,}", f"{spec.columns:,}", state, spec.title])
    print_table(["data set", "rows", "columns", "state", "title"], rows, right={1, 2})


def _experiments():
    from dpbench import experiments

    rows = []
    for name in experiments.NAMES:
        one = experiments.get(name)
        rows.append([name, ", ".join(a.name for a in one.artefacts), one.citation])
    print_table(["experiment", "artefacts", "paper"], rows)
