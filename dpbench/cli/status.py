"""dpbench status: what is done, missing or failed."""

from __future__ import annotations

import click

from dpbench.cli.run import RESULTS
from dpbench.cli.tables import print_table
from dpbench.errors import UserError


@click.command("status")
@click.option("--experiment", metavar="NAME", help="One experiment; all by default.")
@click.option("--profile", metavar="quick|full", help="One profile; both by default.")
@RESULTS
def command(experiment, profile, out):
    """Show, for every artefact, how many of its runs are done, missing and failed."""
    from dpbench import experiments
    from dpbench.experiments.base import plan
    from dpbench.results import Store

    names = [experiment] if experiment else experiments.NAMES
    rows = []
    for name in names:
        one = experiments.get(name)
        profiles = [profile] if profile else list(one.grid())
        for each in profiles:
            store = Store(out, each, name)
            statuses = store.statuses()
            for artefact in one.artefacts:
                planned = plan(one.blocks(each, artefact.name), store)
                if not (planned.jobs or planned.missing_data or planned.waiting):
                    continue
                found = [statuses.get(job.key) for job in planned.jobs]
                failed, missing = found.count("failed"), found.count(None)
                rows.append(
                    [
                        f"{name}/{artefact.name}",
                        each,
                        str(len(found) - failed - missing),
                        str(missing),
                        str(failed),
                        _notes(planned, {job.problem for job in planned.jobs if job.key not in statuses}),
                    ]
                )
    if not rows:
        raise UserError("nothing is planned for this selection")
    print_table(["artefact", "profile", "done", "missing", "failed", "notes"], rows, right={2, 3, 4})


def _notes(planned, unfinished: set[str]) -> str:
    notes = []
    absent = sorted({dataset for problem, dataset in planned.missing_data.items() if problem in unfinished})
    if absent:
        notes.append(f"data not at hand: {', '.join(absent)}")
    if planned.waiting:
        notes.append(f"{len(planned.waiting)} cells wait for other runs")
    return "; ".join(notes)
