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
        rows.append([name, "yes" if method.private else "no", method.relation.value, method.home, ", ".join(settings)])
    print_table(["algorithm", "private", "relation", "home experiment", "settings"], rows)


def _datasets():
    from dpbench import datasets

    rows = []
    for name in datasets.names():
        spec = datasets.describe(name)
        state = "generated" if spec.synthetic else "at hand" if datasets.available(name) else "not fetched"
        rows.append([name, *(f"{size:,}" if size else "?" for size in (spec.rows, spec.columns)), state, spec.title])
    print_table(["data set", "rows", "columns", "state", "title"], rows, right={1, 2})


def _experiments():
    from dpbench import experiments

    rows = []
    for name in experiments.NAMES:
        one = experiments.get(name)
        rows.append([name, ", ".join(a.name for a in one.artefacts), one.citation])
    print_table(["experiment", "artefacts", "paper"], rows)
