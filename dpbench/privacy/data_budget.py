"""What all fits on one data set may cost together: charged before each, refused when it is spent, kept in a file.

Every fit on the same rows is a release, also those that cross-validation, bagging or a plain loop make, and their ε may
be chosen by looking at earlier ones. So the total has to hold for adaptively chosen ε. Gaussian releases do: the sum of
their squared multipliers is a filter (Smith and Thakurta 2022, fully adaptive Gaussian differential privacy), so all of
them together are one Gaussian. What is not Gaussian alone adds its own (ε, δ), and plain sums are a filter too (Rogers,
Roth, Ullman and Vadhan 2016). The two parts may be interleaved, as mechanisms run concurrently compose like others
(Lyu 2022; Vadhan and Wang 2021).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from dpbench import files
from dpbench.errors import PrivacyError, UserError, positive
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.check import within
from dpbench.privacy.ledger import Composition, Entry, Gaussian
from dpbench.privacy.plain import plain, release_of
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent

FORMAT = 1


Settle: TypeAlias = Callable[[Composition], None]


class BudgetSpent(UserError, PrivacyError):
    """A fit that the budget of its data set does not admit."""


class Charge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fit: what it asked for, and what it planned to release once that is known (None before, or after a crash)."""

    when: str
    what: str
    epsilon: float
    delta: float
    gaussian: bool
    releases: list[dict[str, Any]] | None = None

    @property
    def composition(self) -> Composition:
        """Of the releases; of one Gaussian of the same (ε, δ) where they are not known."""
        if self.releases is None:
            mu = gaussian_mu(self.epsilon, self.delta)
            return (Entry(Gaussian(1 / mu), 1, self.what),)
        return tuple(Entry(release_of(one["release"]), int(one["count"]), one["label"]) for one in self.releases)


class State(msgspec.Struct, forbid_unknown_fields=True):
    """What the file holds."""

    format: int
    epsilon: float
    delta: float
    relation: str
    charges: list[Charge]


class DataBudget:
    """The (ε, δ) that one data set may cost over all fits.

    Args:
        epsilon: ε > 0 of everything together.
        delta: δ in (0, 1) of everything together; larger than that of any one fit.
        file: where charges are kept. An existing file goes on, under the same ε and δ. None keeps them in this process,
            and such a budget cannot go to another one (scikit-learn's n_jobs).
        relation: which neighbours all fits are private under.

    Examples:
        >>> budget = DataBudget(epsilon=3, delta=1e-6)
        >>> with budget.charge(1.0, 1e-8, what="a fit", gaussian=True):
        ...     pass  # the fit
        >>> round(budget.epsilon_spent, 3) < 1
        True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        file: str | os.PathLike[str] | None = None,
        relation: str = Relation.REPLACE_ONE.value,
    ) -> None:
        if not 0 < delta < 1:
            raise UserError(f"delta must be in (0, 1), got {delta:g}")
        if relation not in [one.value for one in Relation]:
            raise UserError(f"relation must be {' or '.join(one.value for one in Relation)}, got {relation!r}")
        self.epsilon, self.delta, self.relation = positive("epsilon", epsilon), float(delta), Relation(relation)
        self.file = None if file is None else Path(file)
        self._state = State(FORMAT, self.epsilon, self.delta, relation, [])
        with self._locked():
            pass  # refuses, or makes, the file now rather than at the first fit

    def __repr__(self) -> str:
        where = "" if self.file is None else f", file={os.fspath(self.file)!r}"
        return f"DataBudget(epsilon={self.epsilon:g}, delta={self.delta:g}{where})"

    def __deepcopy__(self, memo: Any) -> DataBudget:
        return self  # scikit-learn clones parameters; all clones spend this one

    def __reduce__(self) -> Any:
        if self.file is None:
            raise UserError(
                "budget: give it a file before it goes to other processes, which would each spend all of it"
            )
        return DataBudget._reopened, (self.epsilon, self.delta, os.fspath(self.file.resolve()), self.relation.value)

    @staticmethod
    def _reopened(epsilon: float, delta: float, file: str, relation: str) -> DataBudget:
        return DataBudget(epsilon, delta, file=file, relation=relation)

    @property
    def charges(self) -> list[Charge]:
        """Every fit so far, the oldest first."""
        with self._locked() as state:
            return list(state.charges)

    @property
    def epsilon_spent(self) -> float:
        """ε at the budget's δ of everything charged so far; infinite where the δ of the charges leave none."""
        return self._total(self.charges)

    @contextlib.contextmanager
    def charge(
        self, epsilon: float, delta: float, *, what: str, gaussian: bool, relation: str | None = None
    ) -> Iterator[Settle]:
        """Charge one fit before it looks at the data; what it really planned replaces the charge in the end.

        Args:
            epsilon, delta: what the fit may cost.
            what: a few words for the file.
            gaussian: it releases Gaussians on all rows alone, so that all such fits cost √k rather than k.
            relation: the neighbours that it is private under, None for the budget's own.

        Yields:
            A function to call with what the fit planned to release. A fit that raises stays charged in full: it may
            have released something.

        Raises:
            BudgetSpent: it would take the total beyond ε; nothing is charged.
            UserError: its relation is not the budget's, or the file cannot be used.
        """
        if relation is not None and relation != self.relation.value:
            raise UserError(
                f"budget: the fit is private under {relation} neighbours, the budget under {self.relation.value}"
            )
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        charge = Charge(now, what, float(epsilon), float(delta), bool(gaussian and delta > 0))
        with self._locked() as state:
            total = self._total([*state.charges, charge])
            if not within(total, self.epsilon):
                asked, before = f"ε = {epsilon:g}, δ = {delta:.3g}", len(state.charges)
                if math.isinf(total):
                    raise BudgetSpent(
                        f"budget: the δ of this fit ({asked}) and of the {before} before it leave nothing of the "
                        f"budget's δ = {self.delta:.3g}; ask for a smaller δ"
                    )
                raise BudgetSpent(
                    f"budget: with this fit ({asked}) and the {before} before it the data would cost ε = {total:.4g} "
                    f"at δ = {self.delta:.3g}, more than {self.epsilon:g}; ask for a smaller ε or δ"
                )
            state.charges.append(charge)
            place = len(state.charges) - 1

        def settle(composition: Composition) -> None:
            cost = spent(composition, charge.delta, self.relation).epsilon
            if charge.gaussian and not all(isinstance(entry.release, Gaussian) for entry in composition):
                raise PrivacyError(f"budget: {what} released more than the Gaussians it was charged for")
            if not within(cost, charge.epsilon):
                raise PrivacyError(f"budget: {what} planned ε = {cost:.6g}, and was charged {charge.epsilon:g}")
            known = [{"release": plain(r), "count": count, "label": label} for r, count, label in composition]
            with self._locked() as state:
                state.charges[place] = msgspec.structs.replace(state.charges[place], releases=known)

        yield settle

    def _total(self, charges: list[Charge]) -> float:
        """ε at the budget's δ: the Gaussian ones as one release, the others by their sums."""
        others = [one for one in charges if not one.gaussian]
        gaussians = [one for one in charges if one.gaussian]
        epsilon, left = math.fsum(one.epsilon for one in others), self.delta - math.fsum(one.delta for one in others)
        if left < -1e-12 * self.delta or (gaussians and left <= 0):
            return math.inf
        if gaussians:
            together = tuple(entry for one in gaussians for entry in one.composition)
            epsilon += spent(together, left, self.relation).epsilon
        return epsilon

    @contextlib.contextmanager
    def _locked(self) -> Iterator[State]:
        """The state, written back at the end if it changed; no other process has it meanwhile."""
        if self.file is None:
            yield self._state
            return
        import fcntl

        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.file.with_name(f".{self.file.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise UserError(f"budget: {self.file}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self._read()
            before = list(state.charges)
            yield state
            if state.charges != before or not self.file.exists():
                self._write(state)
        finally:
            os.close(lock)

    def _write(self, state: State) -> None:
        assert self.file is not None
        text = json.dumps(msgspec.to_builtins(state), indent=1, ensure_ascii=False) + "\n"
        try:
            with files.replacing(self.file) as staged:
                staged.write_text(text, encoding="utf-8")
                files.synchronise(staged)
            files.synchronise(self.file.parent)
        except OSError as error:
            raise UserError(f"budget: {self.file}: {error.strerror}") from None

    def _read(self) -> State:
        """Of the file; a new one where there is none. A damaged file is refused: starting anew would spend it twice."""
        assert self.file is not None
        if not self.file.exists():
            return State(FORMAT, self.epsilon, self.delta, self.relation.value, [])
        try:
            state = msgspec.json.decode(self.file.read_bytes(), type=State)
            for one in state.charges:
                one.composition  # noqa: B018  # refuses what is no release
        except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError, UserError, PrivacyError) as error:
            raise UserError(
                f"budget: {self.file} cannot be read ({error}); restore it: without it nobody knows what is spent"
            ) from None
        asked = (FORMAT, self.epsilon, self.delta, self.relation.value)
        if (state.format, state.epsilon, state.delta, state.relation) != asked:
            held = f"ε = {state.epsilon:g}, δ = {state.delta:g} under {state.relation} neighbours"
            raise UserError(f"budget: {self.file} holds {held}; give the same, or another file for other data")
        return state
