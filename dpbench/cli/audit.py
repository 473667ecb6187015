"""dpbench audit --algo NAME --eps 1"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import dpbench
from dpbench.cli.options import ALGORITHMS, EPS, SEED, flag, option
from dpbench.cli.output import number, print_table, tell

if TYPE_CHECKING:
    from dpbench.auditing.claims import AuditVerdict


@click.command("audit")
@option(
    "--algo",
    "algorithm",
    required=True,
    metavar="NAME",
    shell_complete=ALGORITHMS,
    help="Algorithm, alias, path/to/file.py:Class, path/to/file.py:function or :estimator, or all (every private one).",
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
@flag("--in-process", help="Run a method of your own beside the rows, and audit it like a built-in one.")
@flag("--thorough", help="Inspect at all 27 sizes up to 500 rows, 100 columns and 100 steps, not at nine of them.")
def audit(algorithm: str, epsilon: tuple[float, ...], **given: Any) -> int:
    """Look for more privacy loss than a method claims.

    dpbench audit --algo dp-gd --eps 4

    A built-in method runs many times on two data sets that differ in one row. The audit guesses from all that is
    released which of the two it was: how well it guesses bounds ε from below. It prints FAIL, with exit code 1, if a
    bound is above the claim (at 99 % confidence), if a release moves further than its sensitivity, if noise has the
    wrong law, or if anything differs that was not released. A pass proves nothing.

    A method of your own (path/to/file.py:Class, or of an installed package) runs in a process without rows: its ε is
    kept by construction. The check shows whether it can be served and repeated. --in-process audits it as above.
    """
    audits = dpbench.audit(algorithm, epsilon, **given)
    # What failed and what was too weak to tell is repeated below the table, which may have a hundred lines.
    lines: list[str] = []
    failed: list[str] = []
    rows: list[list[str]] = []
    sizes: list[list[str]] = []
    for done in audits:
        which = [done.algorithm, f"{done.epsilon:g}"]
        name = " at ε = ".join(which)
        sizes += [[*which, size, told] for size, told in done.served.items() if done.runs]
        for what in dict.fromkeys([*done.verdicts, *done.moved]):
            verdict, moved = done.verdicts.get(what), done.moved.get(what)
            moves = "" if moved is None else number(moved)
            rows.append([*which, what, *(_verdict(done.runs, moves, verdict) if verdict else ["", moves, *[""] * 4])])
        if done.public and not done.defect:
            lines.append(f"{name}: not audited, as it counts as public: {done.public}")
        if done.pair:
            lines.append(f"{name}: neighbours that were searched: {done.pair}")
        if done.least:
            lines.append(f"{name}: {done.runs} runs cannot reach the claim; --runs {done.least} could")
        if not done.passed:
            beside = "; --in-process audits it beside the rows" if done.served and not done.runs else ""
            failed.append(f"FAIL: {name}: {done.defect or 'a bound is above its claim'}{beside}")
    if sizes:
        print_table(["algorithm", "ε", "served at", "what it did"], sizes, right={1})
    if rows:
        header = ["algorithm", "ε", "test", "runs", "moves", "bound", "claim", "share", "verdict"]
        print_table(header, rows, right={1, 3, 4, 5, 6, 7})
    if any(done.moved for done in audits):
        tell("moves: how far a neighbour moves a release, over the sensitivity in the ledger; at most 1 if sound")
        tell("bound, claim: of the privacy loss, μ of Gaussian DP or ε; share: one over the other")
    click.echo()
    for line in [*lines, *failed]:
        tell(line)
    if failed:
        return 1
    if code := next((done.code for done in audits if done.served), ""):
        # Without a sandbox its code may read files and the memory of the process that holds the rows.
        unless = "" if code == "served" else ", if it does not reach beyond its own: install bubblewrap to be sure"
        tell(f"pass: {code}: it keeps its ε, as the rows are in another process{unless}")
    else:
        tell("pass: no bound is above its claim (at 99 %); a pass proves nothing")
    return 0


def _verdict(runs: int, moves: str, verdict: AuditVerdict) -> list[str]:
    word, share = "pass" if verdict.passed else "FAIL", number(verdict.bound / verdict.claim)
    return [str(runs), moves, f"{verdict.unit} ≥ {number(verdict.bound)}", number(verdict.claim), share, word]
