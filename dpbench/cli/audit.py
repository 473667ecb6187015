"""dpbench audit --algo NAME --eps 1"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import dpbench
from dpbench.cli.options import ALGORITHMS, EPS, SEED, flag, option
from dpbench.cli.output import number, print_table

if TYPE_CHECKING:
    from dpbench.auditing.claims import AuditVerdict


@click.command("audit")
@option(
    "--algo",
    "algorithm",
    required=True,
    metavar="NAME",
    shell_complete=ALGORITHMS,
    help="Algorithm, alias, path/to/file.py:Class, path/to/file.py:estimator, or all (every private one).",
)
@EPS
@option(
    "--runs",
    metavar="N",
    help="Number of runs, half on each data set. [default: enough for a bound near the claim; with --algo all, enough "
    "to catch halved noise]",
)
@SEED
@option("--loss", default="", metavar="NAME", help="Audit on this loss; one of an installed package, too.")
@flag("--in-process", help="Run a method of your own beside the rows, as trusted code, and look for leaks.")
@flag("--thorough", help="Inspect at all 27 sizes up to 500 rows, 100 columns and 100 steps, not at nine of them.")
def audit(algorithm: str, epsilon: tuple[float, ...], **given: Any) -> int:
    """Compute empirical lower bounds on an algorithm's ε.

    dpbench audit --algo dp-gd --eps 4

    The audit runs the algorithm many times on two neighbouring data sets and tries to guess from the output which of
    the two was used. It prints FAIL, with exit code 1, if the guesses are better than ε allows (at 99 % confidence), if
    a release differs between the two by more than its ledger says, if the noise has the wrong size, or if something
    differs that is not released. It looks at several sizes, and at files, standard error and modules after a run in a
    process of its own. A pass proves nothing.

    A method that is not built in (path/to/file.py:Class, or of an installed package) runs in a process without the rows
    instead: its privacy is the server's, by construction. The check shows whether it can be served, within its ε, and
    whether a second run on the same replies does the same.
    """
    audits = dpbench.audit(algorithm, epsilon, **given)
    # What failed and what was too weak to tell is repeated below the table, which may have a hundred lines.
    failed: list[str] = []
    weak: list[str] = []
    pairs: list[str] = []
    rows: list[list[str]] = []
    for done in audits:
        which = [done.algorithm, f"{done.epsilon:g}"]
        if not done.passed:
            failed.append(" at ε = ".join(which))
        # A run that broke what it declares has no bound: its line says what it did in the place of one.
        if done.defect:
            rows.append([*which, done.defect, "", "", "", "", "", "", "FAIL"])
        for size, told in done.served.items():
            rows.append([*which, f"served: {size}", "1", "", "", "", "", "", told])
        if done.pair:
            pairs.append(f"{' at ε = '.join(which)}: neighbours that were searched: {done.pair}")
        if done.least:
            weak.append(f"{' at ε = '.join(which)}: {done.runs} runs cannot reach the claim; --runs {done.least} could")
        for what, verdict in done.verdicts.items():
            moves = number(done.moved[what]) if what in done.moved else ""
            rows.append([*which, what, str(done.runs), moves, *_verdict(verdict)])
    header = ["algorithm", "ε", "test", "runs", "moves", "", "bound", "claim", "share", "verdict"]
    print_table(header, rows, right={1, 3, 4, 6, 7, 8})
    click.echo(
        "moves: how far a neighbour moves the release, over the sensitivity in the ledger; share: bound over claim"
    )
    click.echo()
    for line in [*pairs, *weak]:
        click.echo(line)
    if not failed:
        if code := next((done.code for done in audits if done.served), ""):
            # Without a sandbox its code may read files and the memory of the process that holds the rows.
            unless = "" if code == "served" else ", if it does not reach beyond its own: install bubblewrap to be sure"
            click.echo(f"pass: {code}: it keeps its ε, as the rows are in another process{unless}")
        else:
            click.echo("pass: no bound is above its claim (at 99 %); a pass proves nothing")
        return 0
    click.echo(f"FAIL: {', '.join(failed)}")
    return 1


def _verdict(verdict: AuditVerdict) -> list[str]:
    word = "pass" if verdict.passed else "FAIL"
    return [verdict.unit, number(verdict.bound), number(verdict.claim), number(verdict.bound / verdict.claim), word]
