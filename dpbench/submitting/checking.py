"""Checking a submission without running what is in it.

Found without the code: an archive or schema that is not as it should be, hashes, rows whose keys are not those of
their settings, seeds left out, ε above what was asked, ledgers that do not compose to the ε of their rows,
losses that are not F(w) - F*, an audit that failed. A loss that was made up, consistently, is found by running the code
alone: `replaying`. The check stops at the first thing that is wrong, and runs within bounds on time and memory.
"""

from __future__ import annotations

import ast
import hashlib
import math
import os
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from dpbench import algorithms, datasets
from dpbench.algorithms import rules
from dpbench.archive import content
from dpbench.archive.bounded import OutOfBounds, bounded
from dpbench.archive.content import Submission, composition_of
from dpbench.errors import NotAtHand, PrivacyError, UserError, silent
from dpbench.leaderboard import tracks
from dpbench.leaderboard.places import AUTO, DEFAULT
from dpbench.privacy.check import at_most
from dpbench.privacy.ledger import Relation
from dpbench.privacy.verify import spent
from dpbench.problems import build, catalogue
from dpbench.run import outcomes
from dpbench.run.job import Keys, delta_value
from dpbench.study.style import look
from dpbench.submitting import replaying
from dpbench.submitting.replaying import SUBMITTED, ReceiverRuns

SAME = 2e-3  # relative, of two computations of one ε: their grids
MOST_LEDGERS = 200  # of one archive; the board has fewer cells
SHOWN = 12  # lines of what is wrong
SECONDS, EACH = 5, 2  # of the processor: for the checks of one archive, and for each of its ledgers beside
AUDITED = 1.0  # the ε at which `dpbench submit` audits a method
EXACT = 1e-7  # relative, of two computations of one objective
MEMORY = 1 << 30  # bytes, beyond what the process has


@dataclass
class Report:
    """What a check found.

    problems: one line each, of the first check that found any, empty for a sound submission. checked: what was looked
    at. unchecked: what could not be, and why. replay: the receiver's own runs, None where none were asked for.
    """

    submission: Submission
    problems: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    replay: ReceiverRuns | None = None

    @property
    def placed(self) -> bool:
        """Whether the board gives it a place: sound, all of it run again here, and nothing to flag."""
        return self.sound and self.replay is not None and self.replay.done and not self.replay.flags

    @property
    def sound(self) -> bool:
        return not self.problems

    @property
    def shown(self) -> list[str]:
        """The first of the problems, for a terminal."""
        return lines(self.problems)


def check(path: str | os.PathLike[str], *, rerun: Callable[[Submission], ReceiverRuns] | None = None) -> Report:
    """Check an archive; UserError where it cannot even be read.

    rerun: runs what passed the check again.
    """
    submission = content.read_submission(path)
    # No more than so many ledgers are paid for, else a long archive would buy itself time.
    seconds = SECONDS + EACH * min(len(submission.ledgers), MOST_LEDGERS)
    try:
        problems, checked, unchecked = bounded(lambda: _examined(submission), seconds, MEMORY)
    except OutOfBounds as error:
        return Report(submission, [f"the check was stopped: {error}"])
    report = Report(submission, problems, checked, unchecked)
    # Only a sound archive's code is worth running: what failed without running it cannot be placed.
    if rerun is not None and report.sound:
        report.replay = rerun(submission)
        report.problems += report.replay.problems
        if report.replay.done:
            report.checked.append(f"run again here, under new seeds and on private copies; {report.replay.served}")
        elif report.replay.why:
            report.unchecked.append(report.replay.why)
    return report


def _examined(submission: Submission) -> tuple[list[str], list[str], list[str]]:
    """(problems, checked, unchecked), up to the first check that finds something."""
    checked: list[str] = []
    unchecked: list[str] = []
    for name, test in CHECKS.items():
        try:
            problems = list(islice(test(submission, unchecked.append), SHOWN + 1))
        except Exception as error:  # whatever a stranger's archive makes of a check is one line
            problems = [f"{name}: cannot be checked ({type(error).__name__})"]
        checked.append(name)
        if problems:
            return problems, checked, unchecked
    return [], checked, unchecked


Tell = Callable[[str], None]


def _name(s: Submission, unchecked: Tell) -> Iterator[str]:
    taken = {_bare(name): name for name in algorithms.names(plugins=False)}
    if (name := taken.get(_bare(s.manifest.method))) is not None:
        yield f"method {s.manifest.method}: the name is taken by a method of this dpbench, {name}"
    # Titles as well as names: a table shows titles, so one in another's name would mislead its readers.
    titles = {_bare(look(name).label): name for name in algorithms.names(plugins=False)} | {_bare(DEFAULT): AUTO}
    if (name := titles.get(_bare(s.manifest.title))) is not None:
        yield f"title {s.manifest.title}: {name} of this dpbench is called so"
    if s.manifest.profile not in tracks.grid():
        yield f"profile {s.manifest.profile!r} is none of the leaderboard's"
    if hashlib.blake2b(s.method, digest_size=8).hexdigest() != s.manifest.source:
        yield "method.py is not the code that the rows were made with (its hash is in their keys)"
    # Parsed, not imported: nothing of a stranger's code runs in a check.
    classes = [node.name for node in ast.walk(ast.parse(s.method)) if isinstance(node, ast.ClassDef)]
    if s.manifest.class_name not in classes:
        yield f"class_name {s.manifest.class_name}: method.py has no class of that name"


def _bare(name: str) -> str:
    """What is left of a name to the eye: no case, no width, no marks between letters."""
    # NFKD first: letters of full width or in one glyph would pass for other names otherwise.
    folded = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in folded if letter.isalnum())


def _keys(s: Submission, unchecked: Tell) -> Iterator[str]:
    """A row's key is a hash of its settings: of those that it states, of this data, of the code in the archive."""
    if not s.rows:
        yield "rows.jsonl is empty"
    asked = sum(cell.seeds for cell in tracks.cells(s.manifest.profile, tracks.grid()))
    # More rows than cells and seeds would let an author choose among runs.
    if len(s.rows) > asked:
        yield f"{len(s.rows):,} rows; all cells with all seeds are {asked:,}"
    seen: set[str] = set()
    for i, row in enumerate(s.rows, 1):
        told = row.identity
        try:
            recipe = catalogue.recipe_of(row.problem or "")
            key = Keys(told)(row.seed, row.timed or 0)
        except (UserError, TypeError, AttributeError, RecursionError) as error:
            yield f"row {i}: {ascii(str(error))[1:160]}"
            continue
        if key != row.key:
            yield f"row {i}: its key is not the hash of its settings and seed"
        stated = {"problem": row.problem, "epsilon": row.epsilon, "algorithm": s.manifest.method}
        # The key must be of these data and of this code, else rows of another version would pass.
        stated |= {"data_version": recipe.spec.version, "source": s.manifest.source}
        stated |= {"relation": told.get("relation", row.relation)}
        for name, value in stated.items():
            if told.get(name, value if name == "relation" else None) != value:
                yield f"row {i}: {name} is {ascii(told.get(name))[:60]} in its key and {value!r} here"
        settings = _settings(row)
        beside = {"accounting": told.get("accounting"), "experiment": SUBMITTED + s.manifest.method}
        for name, value in beside.items():
            if getattr(row, name) not in (None, value):
                yield f"row {i}: {name} is {ascii(getattr(row, name))[:60]}, {ascii(value)[:60]} by its key"
        if row.algorithm != s.manifest.method or row.sweep:
            yield f"row {i}: of {row.algorithm}; a submission has single runs of its method alone"
        if not _settings_agree(told.get("settings"), settings):
            yield f"row {i}: settings are not those of its key"
        if row.key in seen:
            yield f"row {i}: its key is in the archive twice"
        seen.add(row.key or "")


def _settings(row: Any) -> dict[str, Any]:
    """The column `settings`; {} where it is no object of JSON."""
    try:
        return msgspec.json.decode(row.settings, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _settings_agree(identity: Any, shown: dict[str, Any]) -> bool:
    return (
        bool(shown or identity == {})
        and isinstance(identity, dict)
        and all(shown.get(name) == value for name, value in identity.items())
    )


def _cells(s: Submission, unchecked: Tell) -> Iterator[str]:
    """All seeds of every cell, of the profile's problems and ε, at one setting."""
    # Every seed of every cell: seeds left out are how a lucky mean is made.
    asked = {
        (cell.problems[0], cell.epsilon[0]): cell.seeds for cell in tracks.cells(s.manifest.profile, tracks.grid())
    }
    rows_at: dict[tuple[Any, Any], list[Any]] = defaultdict(list)
    for row in s.rows:
        rows_at[row.problem, row.epsilon].append(row)
    for at, rows in rows_at.items():
        where = f"{at[0]} at ε = {at[1]}"
        if at not in asked:
            yield f"{where} is no cell of the {s.manifest.profile} profile"
        elif sorted(row.seed for row in rows) != list(range(asked[at])):
            yield f"{where}: has not all of the seeds 0 to {asked[at] - 1}, each once"
        if len({row.settings for row in rows}) > 1:
            yield f"{where}: several settings; the default track has one"
    for problem, epsilon in asked:
        if (problem, epsilon) not in rows_at and problem not in s.manifest.left_out:
            yield f"{problem} at ε = {epsilon:g}: no rows, and no reason in the manifest"


def _guarantees(s: Submission, unchecked: Tell) -> Iterator[str]:
    for i, row in enumerate(s.rows, 1):
        if row.status not in outcomes.RESULTS or not row.private:
            yield f"row {i}: {row.status}, private: {row.private}"
        used = row.epsilon_planned
        if used is None or not at_most(used, row.epsilon):
            yield f"row {i}: spends ε = {used}, more than the {row.epsilon} asked for"
        if row.relation != rules.RELATION.value:
            yield f"row {i}: {row.relation} neighbours; the leaderboard's are {rules.RELATION.value}"
        size = tracks.size(row.problem)[0]
        # δ is a rule of the board, so that no method buys less noise by a larger one.
        if row.delta not in (0.0, delta_value(rules.DELTA, size)):
            yield f"row {i}: δ = {row.delta}; the leaderboard's is n⁻² (or 0 for pure DP)"


def _ledgers(s: Submission, unchecked: Tell) -> Iterator[str]:
    """ε composed anew, by the second route, from every ledger in the archive; one for each cell."""
    rows = {row.key: row for row in s.rows}
    for one in s.ledgers:
        row = rows.get(one.key)
        if row is None:
            yield f"ledger {one.key}: of no row"
            continue
        try:
            # By the second route of composition: an error of the first cannot vouch for itself.
            total = spent(composition_of(one.releases), row.delta, Relation(row.relation)).epsilon
        except (UserError, PrivacyError, ValueError, TypeError) as error:
            yield f"ledger of {row.problem} at ε = {row.epsilon:g}: {error}"
            continue
        if not one.releases or not at_most(total, row.epsilon):
            yield f"ledger of {row.problem} at ε = {row.epsilon:g}: its noise composes to ε = {total:.6g}"
        elif not math.isclose(total, row.epsilon_planned or 0.0, rel_tol=SAME, abs_tol=1e-4 * row.epsilon):
            told = f"its rows say ε = {row.epsilon_planned:.6g}, its ledger {total:.6g}"
            yield f"{row.problem} at ε = {row.epsilon:g}: {told}"
    # One ledger for each cell: seeds of one cell have the same plan, so one speaks for all.
    covered = {(rows[one.key].problem, rows[one.key].epsilon) for one in s.ledgers if one.key in rows}
    for problem, epsilon in sorted({(row.problem, row.epsilon) for row in s.rows} - covered):
        yield f"{problem} at ε = {epsilon:g}: no ledger"


def _losses(s: Submission, unchecked: Tell) -> Iterator[str]:
    """Where the data are fetched: the rows' data are these, and the excess loss is F(w) - F*, with F* ours."""
    away = []
    for name in sorted({row.problem for row in s.rows}):
        rows = [row for row in s.rows if row.problem == name]
        if len({row.data_sha256 for row in rows}) > 1 or rows[0].data_sha256 is None:
            yield f"{name}: not all of its rows were made on one set of data"
        try:
            problem = build(name) if datasets.available(catalogue.recipe_of(name).dataset) else None
        except NotAtHand:
            problem = None
        if problem is None:
            away.append(name)
            yield from _below_the_optimum(name, rows, None)
            continue
        if rows[0].data_sha256 != problem.data_hash:
            yield f"{name}: made on other data (sha256 {str(rows[0].data_sha256)[:12]}…)"
        yield from _below_the_optimum(name, rows, problem.optimum().value)
    if away:
        unchecked(f"data, and F(w) - F*, of {', '.join(away)}: not fetched (dpbench fetch gets them)")


def _below_the_optimum(name: str, rows: list[Any], optimum: float | None) -> Iterator[str]:
    """What is wrong with the losses of one problem; optimum: F*, None where the data are not fetched."""
    for row in rows:
        where = f"{name} at ε = {row.epsilon:g}, seed {row.seed}"
        if row.status == "diverged" and row.excess is None:
            continue
        if row.objective is None or row.excess is None:
            yield f"{where}: no loss"
            continue
        # Relative to the objective: the excess is a difference of two, whose rounding is of their size.
        slack = EXACT * max(1.0, abs(row.objective if optimum is None else optimum))
        best = row.objective - row.excess if optimum is None else optimum
        # Written as `not ≤`, so that a NaN is refused too.
        if not abs(row.objective - best - row.excess) <= slack:
            yield f"{where}: excess {row.excess:.6g} is not F(w) - F*"
        # Nothing is below F*: such a loss was made up, or is of other data.
        if not row.excess >= -slack:
            yield f"{where}: excess {row.excess:.6g} is below that of the optimum"


def _audit(s: Submission, unchecked: Tell) -> Iterator[str]:
    if not s.audit:
        yield "audit.json is empty: dpbench submit audits the method"
    for one in s.audit:
        if not one.passed or one.defect or any(test.bound > test.claim for test in one.tests):
            yield f"its audit at ε = {one.epsilon:g} failed {one.defect}".strip()
        elif one.epsilon != AUDITED:
            yield f"its audit is at ε = {one.epsilon:g}; dpbench submit audits at {AUDITED:g}"
        elif not one.tests:
            yield f"its audit at ε = {one.epsilon:g} has no test"
        else:
            yield from _bounds(one)


def _bounds(one: content.AuditRecord) -> Iterator[str]:
    for test in one.tests:
        if not 0 <= test.bound <= test.claim <= AUDITED:  # μ is below ε wherever δ < 0.1
            told = f"{test.test}: {test.bound:g} of {test.claim:g} {test.unit}"
            yield f"its audit at ε = {one.epsilon:g}: {told} is no bound and claim"


CHECKS = {
    "name, code and hashes": _name,
    "keys": _keys,
    "cells and seeds": _cells,
    "ε, δ and neighbours": _guarantees,
    "ledgers composed anew": _ledgers,
    "losses against our optimum": _losses,
    "audit": _audit,
}


def lines(problems: Iterable[str], most: int = SHOWN) -> list[str]:
    """The first of many lines."""
    lines = list(problems)
    return lines if len(lines) <= most else [*lines[:most], "and more"]


def check_submission(
    archive: str | os.PathLike[str],
    *,
    rerun: bool = False,
    trusted: bool = False,
    seed: str | os.PathLike[str] | None = None,
    notify: Callable[[str], None] = silent,
) -> Report:
    """Check an archive of `submit` without running anything in it; its `problems` are empty where it is sound.

    Args:
        archive: the file.
        rerun: also run its code on every cell under new seeds, on private copies of problems without their rows, in a
            sandbox (bubblewrap); without one that works its report's `unchecked` says "not re-run".
        trusted: with `rerun`, run it beside the rows of the copies: for another library's solver, which cannot be
            served, and whose code the receiver has read.
        seed: the file with the private copies' secret, see `board_secret`; None draws one.
        notify: gets a line on what is being run.

    Raises:
        UserError: where the archive cannot be read.
    """
    return check(archive, rerun=rerun_of(seed, notify, trusted) if rerun else None)


def rerun_of(
    seed: str | os.PathLike[str] | None, notify: Callable[[str], None], trusted: bool = False
) -> Callable[[Any], Any]:
    """What runs a submission again, on private copies by the secret of the file `seed`."""
    key = replaying.seed_of(seed)
    return lambda submission: replaying.replay(submission, key, trusted=trusted, notify=notify)
