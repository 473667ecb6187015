"""What all fits on one data set may cost together: one SQLite file, charged before a fit looks at the data.

Every fit on the same rows is a release, also those that cross-validation, bagging or a plain loop make, and their ε may
be chosen by looking at earlier ones. So the total has to hold for adaptively chosen ε. Two filters do:

- *Sums*: ε and δ of all fits add up (Rogers, Roth, Ullman and Vadhan 2016).
- *One Gaussian*: the sum of squared multipliers (Smith and Thakurta 2022, fully adaptive Gaussian differential
  privacy). An exponential mechanism beside Gaussians, and a fit of δ = 0, count as the Gaussian that is no better
  (`gaussian_for`). What comes before the first Gaussians adds up, and what it leaves of ε and δ is what the Gaussian
  has. A later fit of another kind with a δ has no place.

A fit is admitted where either holds, and which one may hang on what was seen, so each has half of δ: outputs that one
admits or the other are a union, and over a union the two δ add up. (With all of δ for the better of the two an analyst
gets many times δ: she waits for a large loss of Gaussians, and spends the rest on one pure fit.) A single fit costs its
own ε: nothing was seen before it, and where a second is admitted, a filter holds of both.

SQLite gives the lock between threads and processes, and charges that survive a crash. Each charge has a *mark*, the
SHA-256 of the mark before it and of what it says; the first mark is that of the budget itself. Whoever remembers a mark
refuses a file that lacks it, and so notices a file that was rolled back or made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import sqlite3
import tempfile
import uuid
import weakref
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dpbench.errors import PrivacyError, UserError, names_arguments, positive
from dpbench.privacy import ledger
from dpbench.privacy.accounting.gaussian import gaussian_for
from dpbench.privacy.check import at_most
from dpbench.privacy.ledger import BoundedRange, Composition, CountedRelease, Gaussian, Relation, Release
from dpbench.privacy.verify import spent

TABLES = (
    "CREATE TABLE budget (id TEXT, epsilon REAL, delta REAL, relation TEXT, place TEXT)",
    "CREATE TABLE charges (number INTEGER PRIMARY KEY, body TEXT NOT NULL, mark TEXT NOT NULL)",
)
OF = " of "  # between the relation and the unit
PATIENCE = 60.0  # seconds to wait for another process's charge
HOW = "DataBudget.create(file, epsilon=…, delta=…) makes a budget once; DataBudget(file) goes on with it"
GAUSSIANS = ({Gaussian}, {Gaussian, BoundedRange})  # what one Gaussian stands for
GONE = "restore it: without it nobody knows what is spent"


class BudgetSpent(UserError, PrivacyError):
    """A fit that the budget of its data set does not admit."""


class Charge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fit: what it asked for, and what it planned to release; nothing where it says that only while it runs."""

    when: str
    what: str
    epsilon: float
    delta: float
    releases: list[dict[str, Any]]

    def __post_init__(self) -> None:
        if not (0 <= self.epsilon < math.inf and 0 <= self.delta < 1):
            raise UserError(
                f"budget: a fit costs ε >= 0 and δ in [0, 1), both finite; this one asks for ε = {self.epsilon:g}, "
                f"δ = {self.delta:g}"
            )

    @property
    def composition(self) -> Composition:
        """The releases it planned; errors as of `ledger.composition_of`."""
        return ledger.composition_of(self.releases)


class _Held(NamedTuple):
    """What the file holds, once its chain of marks was found whole."""

    epsilon: float
    delta: float
    relation: Relation
    unit: str
    charges: list[Charge]
    marks: list[str]


class DataBudget:
    """The (ε, δ) that one data set may cost over all fits, in a file that every process and clone shares.

    Args:
        file: of the budget, on a local disk; `create` makes it.
        seen: a mark that the file must hold, such as `mark` of an earlier day; a file without it was rolled back.
        adopt: True once for a file that was copied, restored or moved to another disk, and is the only one from now on.
            A copy is refused until then, as it would admit what the first file admits beside it: delete that first.

    Raises:
        UserError: there is no such file, it was changed, or it is a copy.

    Examples:
        >>> budget = DataBudget.create(None, epsilon=3, delta=1e-6)
        >>> mark = budget.charge("a fit", (), 1.0, 1e-8)  # then the fit
        >>> budget.epsilon_spent
        1.0
    """

    def __init__(
        self, file: str | os.PathLike[str], *others: Any, seen: str = "", adopt: bool = False, **named: Any
    ) -> None:
        if others or named or not isinstance(file, str | os.PathLike):
            raise UserError(f"budget: {HOW}")
        self.file = os.path.realpath(file)  # once: neither chdir nor a link that is moved leads elsewhere
        self._seen = seen
        with self._open(anywhere=adopt) as (db, held):
            self.epsilon, self.delta, self.relation, self.unit = held.epsilon, held.delta, held.relation, held.unit
            if adopt:
                db.execute("UPDATE budget SET place = ?", (_place(os.stat(self.file)),))

    @classmethod
    @names_arguments
    def create(
        cls,
        file: str | os.PathLike[str] | None,
        *,
        epsilon: float,
        delta: float,
        relation: str = Relation.REPLACE_ONE.value,
        unit: str = "",
    ) -> DataBudget:
        """A new budget in a new file.

        Args:
            file: where charges are kept. None: a temporary file, which goes with this object.
            epsilon: ε > 0 of everything together.
            delta: δ in (0, 1) of everything together; at least twice that of all fits, unless there is one alone.
            relation: which neighbours all fits are private under.
            unit: what all fits protect all rows of: the `unit` of their schema, or "groups" of arrays. "": single rows.

        Raises:
            UserError: the file exists or cannot be made, or a number does not fit.
        """
        epsilon = positive("epsilon", epsilon)
        if not 0 < positive("delta", delta) < 1:
            raise UserError(f"delta must be in (0, 1), got {delta:g}")
        if relation not in [one.value for one in Relation]:
            raise UserError(f"relation must be {' or '.join(one.value for one in Relation)}, got {relation!r}")
        if not isinstance(unit, str):
            raise UserError(f'unit must be the unit of the schema, "groups" or "", got {unit!r}')
        folder = tempfile.mkdtemp(prefix="dpbench-budget-") if file is None else None
        path = os.path.realpath(file) if file is not None else os.path.join(str(folder), "budget")
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            place = _place(os.fstat(handle))
            os.close(handle)
        except FileExistsError:
            raise UserError(f"budget: {path} exists; DataBudget(file) goes on with it") from None
        except OSError as error:
            raise UserError(f"budget: {path}: {error.strerror}") from None
        with contextlib.closing(_connected(path)) as db:
            # One transaction: a process that is killed here leaves an empty file, which is refused.
            db.execute("BEGIN IMMEDIATE")
            for table in TABLES:
                db.execute(table)
            row = (uuid.uuid4().hex, epsilon, float(delta), relation + (OF + unit) * bool(unit), place)
            db.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?)", row)
            db.execute("COMMIT")
        made = cls(path)
        if folder is not None:
            weakref.finalize(made, _removed, folder, os.getpid())
        return made

    def __repr__(self) -> str:
        return f"DataBudget({self.file!r})"

    def __deepcopy__(self, memo: Any) -> DataBudget:
        return self  # scikit-learn clones parameters; all clones spend this one

    def __reduce__(self) -> Any:
        return _reopened, (self.file, self._seen)

    @property
    def charges(self) -> list[Charge]:
        """Every fit so far, the oldest first."""
        with self._open() as (_, held):
            return held.charges

    @property
    def mark(self) -> str:
        """The last charge's mark (that of the budget before any): note it, and give it as `seen` later."""
        with self._open() as (_, held):
            return held.marks[-1]

    @property
    def epsilon_spent(self) -> float:
        """ε at the budget's δ of everything charged so far; infinite where the δ of the charges leave none."""
        return self._total(self.charges)

    def charge(
        self,
        what: str,
        releases: Composition,
        epsilon: float,
        delta: float,
        *,
        relation: str | None = None,
        unit: str = "",
    ) -> str:
        """Charge one fit, before it looks at the data; the mark of the charge.

        Args:
            what: a few words for the file.
            releases: all that it plans to release. Gaussians, with exponential mechanisms beside them or without, cost
                √k for k fits rather than k, where no fit of another kind follows. Nothing where a method says its
                releases only while it runs: then it is charged (ε, δ).
            epsilon, delta: what the fit may cost, at least the cost of its releases; both finite and not negative.
            relation: the neighbours that it is private under, None for the budget's own.
            unit: what it protects all rows of, as of `create`.

        Raises:
            BudgetSpent: it would take the total beyond ε; nothing is charged.
            UserError: its relation or unit is not the budget's, a number does not fit, or the file cannot be used.
            PrivacyError: its releases cost more than ε at δ; nothing is charged.
        """
        if relation is not None and relation != self.relation.value:
            raise UserError(
                f"budget: the fit is private under {relation} neighbours, the budget under {self.relation.value}"
            )
        # An ε for single rows says nothing of a person who has many.
        if unit != self.unit:
            kinds = [f"all rows of one {one}" if one else "one row" for one in (unit, self.unit)]
            raise UserError(
                f"budget: the fit protects {kinds[0]}, the budget {kinds[1]}; make one with "
                f"DataBudget.create(file, unit={unit!r}, …)"
            )
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        charge = Charge(now, str(what), float(epsilon), float(delta), ledger.listed(releases))
        if releases and not at_most(cost := spent(tuple(releases), charge.delta, self.relation).epsilon, epsilon):
            raise PrivacyError(f"budget: {what} plans to release ε = {cost:.6g}, and asks for {epsilon:g}")
        body = json.dumps(msgspec.to_builtins(charge), sort_keys=True, ensure_ascii=False)
        # Under the file's lock: of two fits that start together, each must see the other's charge.
        with self._open() as (db, held):
            total = self._total([*held.charges, charge])
            if not at_most(total, self.epsilon):
                raise self._refusal(charge, len(held.charges), total)
            # Chained to all charges before it, so that a damaged or hand-edited file shows when it is read.
            mark = _mark(held.marks[-1], body)
            db.execute("INSERT INTO charges VALUES (?, ?, ?)", (len(held.charges) + 1, body, mark))
        self._seen = mark
        return mark

    def _refusal(self, charge: Charge, before: int, total: float) -> BudgetSpent:
        cost = f"ε = {charge.epsilon:g}, δ = {charge.delta:.3g}"
        if math.isinf(total):
            return BudgetSpent(
                f"budget: the δ of this fit ({cost}) and of the {before} before it leave nothing of the budget's "
                f"δ = {self.delta:.3g}; ask for a smaller δ"
            )
        return BudgetSpent(
            f"budget: with this fit ({cost}) and the {before} before it the data would cost ε = {total:.4g} at "
            f"δ = {self.delta:.3g}, more than {self.epsilon:g}; ask for a smaller ε or δ"
        )

    def _total(self, charges: list[Charge]) -> float:
        """ε at the budget's δ: by plain sums, or by one Gaussian after sums, at half of δ each."""
        begun = next((i for i, one in enumerate(charges) if _kinds(one) in GAUSSIANS), len(charges))
        first, after = _sums(charges[:begun]), charges[begun:]
        epsilon, delta = _sums(charges)
        least = epsilon if delta <= self.delta / 2 * (1 + 1e-12) else math.inf
        if all(_kinds(one) in GAUSSIANS or one.delta == 0 for one in after) and (left := self.delta / 2 - first[1]) > 0:
            together: Counter[Release] = Counter()
            for charge in after:
                pure = [CountedRelease(BoundedRange(2 * charge.epsilon), 1, "")] if charge.epsilon else []  # within ±ε
                for entry in charge.composition if _kinds(charge) in GAUSSIANS else pure:
                    together[gaussian_for(entry.release)] += entry.count
            entries = tuple(CountedRelease(release, count, "") for release, count in together.items())
            least = min(least, first[0] + (spent(entries, left, self.relation).epsilon if entries else 0.0))
        return min(least, epsilon) if len(charges) == 1 and delta <= self.delta else least

    @contextlib.contextmanager
    def _open(self, *, anywhere: bool = False) -> Iterator[tuple[sqlite3.Connection, _Held]]:
        """(connection, content) with the file locked; what was changed is on the disk at the end, or nothing of it.

        Each access has a connection of its own: SQLite's may not be used after a fork, nor by two threads. The file is
        never opened by other means, which would drop the locks that this process has on it.
        """
        try:
            stat = os.stat(self.file)
            if stat.st_nlink > 1:  # SQLite would keep a journal for each name, and undo one's charges by the other's
                raise UserError(f"budget: {self.file} has a second name (a hard link); keep one of them")
            if stat.st_size == 0:
                raise UserError(f"budget: {self.file} is empty; {GONE}. If making it was interrupted, delete it")
            with contextlib.closing(_connected(self.file)) as db:
                mode = db.execute("PRAGMA journal_mode").fetchone()[0]
                if mode != "delete":  # charges may be in a second file, which a copy of this one lacks
                    raise UserError(
                        f"budget: {self.file} was put into journal_mode {mode} by another program; with its -{mode} "
                        "file beside it, run: PRAGMA journal_mode=DELETE"
                    )
                db.execute("BEGIN IMMEDIATE")
                held = self._read(db, None if anywhere else _place(stat))
                yield db, held
                db.execute("COMMIT")
        except FileNotFoundError:
            raise UserError(f"budget: {self.file} is gone; {GONE}. {HOW}") from None
        except sqlite3.Error as error:
            raise UserError(f"budget: {self.file}: {error}; it is no budget, or damaged. {HOW}") from None
        except OSError as error:
            raise UserError(f"budget: {self.file}: {error.strerror}") from None

    def _read(self, db: sqlite3.Connection, place: str | None) -> _Held:
        """What the file holds; UserError where it is changed, rolled back, or not at the `place` it was made at."""
        damaged = UserError(f"budget: {self.file} was changed or is damaged; {GONE}")
        rows = db.execute("SELECT id, epsilon, delta, relation, place FROM budget").fetchall()
        if len(rows) != 1 or [type(one) for one in rows[0]] != [str, float, float, str, str]:
            raise damaged
        name, epsilon, delta, neighbours, made = rows[0]
        relation, _, unit = neighbours.partition(OF)
        marks, charges = [_mark("", f"{name} {epsilon!r} {delta!r} {neighbours}")], []
        for number, body, stated in db.execute("SELECT number, body, mark FROM charges ORDER BY number"):
            marks.append(_mark(marks[-1], body))
            if marks[-1] != stated or number != len(marks) - 1:
                raise damaged
            try:
                charge = msgspec.json.decode(body, type=Charge)
                charge.composition  # noqa: B018  # refuses what is no release
            except (msgspec.DecodeError, UserError, KeyError, TypeError, ValueError):
                raise damaged from None
            charges.append(charge)
        if self._seen and self._seen not in marks:
            raise UserError(f"budget: {self.file} lacks what was charged to it before: it is older, or another; {GONE}")
        if place is not None and place != made:
            raise UserError(
                f"budget: {self.file} is a copy, or was moved to another disk. If the first file is no longer used, "
                "run DataBudget(file, adopt=True) once"
            )
        self._seen = marks[-1]
        return _Held(epsilon, delta, Relation(relation), unit, charges, marks)


def _kinds(charge: Charge) -> set[type]:
    """What a fit planned to release."""
    return {type(entry.release) for entry in charge.composition}


def _sums(charges: list[Charge]) -> tuple[float, float]:
    """(ε, δ) of fits that add up."""
    return math.fsum(one.epsilon for one in charges), math.fsum(one.delta for one in charges)


def _connected(path: str) -> sqlite3.Connection:
    """A connection to a file that exists, whose commits survive a power cut."""
    db = sqlite3.connect(f"{Path(path).as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)
    db.execute("PRAGMA synchronous=EXTRA")
    return db


def _removed(folder: str, owner: int) -> None:
    """Remove the folder, in the process that made it alone: a fork that ends may not take the file with it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _reopened(file: str, seen: str) -> DataBudget:
    return DataBudget(file, seen=seen)


def _place(stat: os.stat_result) -> str:
    """Device and inode: they stay when a file is renamed, and no copy has them."""
    return f"{stat.st_dev}:{stat.st_ino}"


def _mark(before: str, body: str) -> str:
    return hashlib.sha256((before + body).encode()).hexdigest()
