"""dpbench audit --algo NAME --eps 1"""

from __future__ import annotations

import click

from dpbench.cli.tables import number, print_table
from dpbench.errors import UserError


@click.command("audit")
@click.option("--algo", "name", help='An algorithm, path/to/file.py:Class, or "all" private ones.')
@click.option("--eps", "epsilons", type=float, multiple=True, help="Repeat for several. [default: 1]")
@click.option("--runs", type=int, help="Runs, half on either data set. [default: enough to notice halved noise]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all random numbers.")
@click.option("--mechanisms", is_flag=True, help="Audit every kind of release alone, and weakened: a table of bounds.")
def command(name, epsilons, runs, seed, mechanisms):
    """Lower bounds on the privacy loss of what is implemented.

    Runs an algorithm many times on two neighbouring data sets and tells them apart by all it releases. The bounds hold
    at 99 %. One that is above what the ledger claims is a FAIL, and the exit code is 1. A pass is no proof.
    """
    if (name is None) == (not mechanisms):
        raise UserError("give either --algo NAME or --mechanisms")
    if seed < 0:
        raise UserError(f"--seed must be at least 0, got {seed}")
    if mechanisms:
        if epsilons:
            raise UserError("--eps goes with --algo")
        return _mechanisms(runs, seed)
    return _algorithms(name, epsilons or (1.0,), runs, seed)


def _algorithms(name, epsilons, runs, seed) -> int:
    from dpbench.audit.runs import audit, auditable
    from dpbench.jobs import check_epsilon

    failed, rows = [], []
    for each in auditable() if name == "all" else [name]:
        for epsilon in map(check_epsilon, epsilons):
            done = audit(each, epsilon, runs=runs, seed=seed)
            if not done.passed:
                failed.append(f"{each} at ε = {epsilon:g}")
            if done.defect:
                rows.append([each, f"{epsilon:g}", done.defect, "", "", "", "", "FAIL"])
            for what, verdict in done.verdicts.items():
                rows.append([each, f"{epsilon:g}", what, str(done.runs), *_verdict(done.units[what], verdict)])
    print_table(["algorithm", "ε", "test", "runs", "", "bound", "claim", "verdict"], rows, right={1, 3, 5, 6})
    click.echo()
    if not failed:
        click.echo("pass: no bound is above its claim (at 99 %; a pass is no proof)")
        return 0
    click.echo(f"FAIL: {', '.join(failed)}")
    return 1


def _verdict(unit, verdict) -> list[str]:
    return [unit, number(verdict.bound), number(verdict.claim), "pass" if verdict.passed else "FAIL"]


def _mechanisms(runs, seed) -> int:
    from dpbench.audit import releases

    rows = releases.table(seed=seed, **({} if runs is None else {"runs": runs}))
    cells = [
        [
            row.release,
            row.unit,
            *(text for each in row[2:] for text in ((number(each.bound), number(each.claim)) if each else ("", ""))),
            "pass" if row.sound else "FAIL",
        ]
        for row in rows
    ]
    header = ["release", "", "bound", "claim", "noise halved", "claim", "sample doubled", "claim", "verdict"]
    print_table(header, cells, right={2, 3, 4, 5, 6, 7})
    wrong = [row.release for row in rows if not row.sound]
    click.echo()
    click.echo(
        f"FAIL: {', '.join(wrong)}" if wrong else "pass: every bound is at most its claim, every weakened one above it"
    )
    return 1 if wrong else 0
