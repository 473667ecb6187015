"""What an algorithm is: a name, a neighbouring relation, declared needs, settings, and `run`.

A solver declares what it needs of the problem (losses, a bound on the rows, no regulariser) and that is
checked before it runs; it sees data only through the problem and releases only through `mechanisms`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.errors import UserError, nearest
from dpbench.privacy.relation import Relation

Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of an algorithm's settings; fields are typed and bounded with `msgspec.Meta`.

    Fields left at their defaults are left out of a job's key, so a new setting with a default leaves the
    keys of finished runs alone. Changing a default, or what a setting means, needs a new `version`.
    """


@dataclass(frozen=True)
class Needs:
    """What an algorithm's privacy proof asks of the problem.

    losses: names of the losses it covers; None when any will do.
    row_norm: ("l2", 1.0) for ‖x‖₂ ≤ 1; None for an algorithm that clips.
    regularisers: which of "l1", "l2", "w2" may be non-zero (they use no data, but not every method has them).
    """

    losses: tuple[str, ...] | None = None
    row_norm: tuple[str, float] | None = ("l2", 1.0)
    regularisers: tuple[str, ...] = ()

    def check(self, problem, algorithm: str) -> None:
        """Raise UserError, in one line, for a problem the algorithm's guarantee does not cover."""
        if self.losses is not None and problem.loss.name not in self.losses:
            raise UserError(
                f"{algorithm}: loss {problem.loss.name} is not covered by its privacy proof; "
                f"use one of: {', '.join(self.losses)}"
            )
        present = {"l1": problem.l1, "l2": problem.l2, "w2": problem.w2}
        for name, weight in present.items():
            if weight and name not in self.regularisers:
                able = f"it takes only {', '.join(self.regularisers)}" if self.regularisers else "it takes none"
                raise UserError(f"{algorithm}: regulariser {name} = {weight:g} is not supported; {able}")
        if self.row_norm is not None:
            kind, bound = self.row_norm
            norm = problem.row_norm if kind == "l2" else problem.row_norm_l1
            if norm > bound * (1 + 1e-12):
                raise UserError(
                    f"{algorithm}: needs rows with ‖x‖{'₂' if kind == 'l2' else '₁'} <= {bound:g}, "
                    f'the largest is {norm:.4g}; rescale the rows (dpbench.fit does it with bound="rescale")'
                )


@dataclass
class Outcome:
    """What `run` hands back: final iterates `W` (k, d) and, where they mean something, columns per replicate.

    status: per-replicate status words; None means "done" (or "diverged", which the runner detects).
    columns: further columns of the runs table, each of length k (iterations, gradient_evaluations, …).
    evidence: what `Algorithm.measure` needs to know of the run besides W; not stored.
    """

    W: np.ndarray
    status: list[str] | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    evidence: Any = None


class Algorithm:
    """Base class of every optimiser. Subclasses are stateless; one instance may run many batches.

    Class attributes:
        name: the name on the command line and in result rows.
        title: how legends and tables call it.
        version: part of every job's key; raise it when the meaning of a result changes.
        home: the experiment whose problems `dpbench run --algo NAME` uses.
        relation: the neighbouring relation its guarantee is for.
        private: False for baselines that look at the data without paying.
        paper_accounting: what `--accounting paper` means for it.
        accountings: the accounting modes it can be calibrated with, besides "paper".
        delta: the δ used when none is given, "n^-2", "n^-1" or a number.
        needs: what it asks of the problem.
        per_replicate: settings that may differ between the replicates of one batch; `run` sees them as
            arrays of shape (k,). All others are shared by the batch and seen as plain values. With "epsilon" among
            them ε may differ too, and `mechanisms.budget.rho` is then an array of shape (k,).
        tuning: settings and the values that `compare` tries for them; left empty, a few T where there is a T.
        counts_public: what it takes from the data and counts as public, in words; "" for nothing.
        common_random: settings that do not enter the seed of a job's streams: jobs that differ in these alone draw
            the same random numbers, and a batch holds jobs of one stream (see `Mechanisms.streams`).
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    version: ClassVar[int] = 1
    home: ClassVar[str] = "second_order"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    private: ClassVar[bool] = True
    paper_accounting: ClassVar[str] = "bs16"
    accountings: ClassVar[tuple[str, ...]] = ("tight", "text", "bs16", "cks20", "standard")
    delta: ClassVar[str | float] = "n^-2"
    needs: ClassVar[Needs] = Needs()
    per_replicate: ClassVar[frozenset[str]] = frozenset()
    common_random: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[dict[str, list]] = {}
    counts_public: ClassVar[str] = ""
    Settings: ClassVar[type[Settings]] = Settings

    def run(self, problem, W, mechanisms, settings, trace) -> np.ndarray | Outcome:
        """Optimise from `W` (k, d) and return the final iterates (k, d), or an `Outcome`.

        `mechanisms.budget` holds ε, δ and ρ; every use of the data must pass through `mechanisms`.
        Call `trace(t, W, passes=…)` after iteration t (0 is the start): it costs nothing when nobody listens.
        """
        raise NotImplementedError

    def complete(self, problem, settings: Settings) -> Settings:
        """Settings with every default that depends on the problem filled in; raise UserError if they clash."""
        return settings

    def iterations(self, problem, settings: Settings) -> int | None:
        """The number of iterations a run will make, None where that is not known before."""
        return getattr(settings, "T", None)

    def batch_size(self, n: int, d: int) -> int:
        """How many replicates may advance together; by default 200 MB of their (d, d) matrices, and at most 128."""
        return int(max(1, min(128, 200e6 / (8 * d**2))))

    def measure(self, problem, outcome: Outcome, settings: Settings, generators) -> dict[str, Any]:
        """Further columns, each of length k, that cost more than `run` should or need the data: a diagnostic.

        Called after the run, outside its clock; like the objective, what it finds is not released privately.
        `generators`: one per replicate, for a measure that samples.
        """
        return {}

    def audit_case(self) -> AuditCase:
        """What `dpbench audit` runs it on; override where the default hides too much of what it releases."""
        return AuditCase()

    def work(self, n: int, d: int, settings: Settings) -> float:
        """Rough cost of one replicate in flops: orders the jobs and scales the progress bar, nothing else."""
        return 4.0 * n * d * getattr(settings, "T", 1)

    def flaw(self, settings: Settings, accounting: str = "") -> str:
        """Why these settings, under a resolved accounting, do not give the stated guarantee; "" where they do.

        For published calibrations that are kept for comparison.
        """
        return ""

    def under(self, relation: Relation | str) -> Relation:
        """The relation of a run that asks for `relation`; UserError where the algorithm has no guarantee for it.

        An add/remove algorithm runs under replace-one at twice its sensitivities (see `dpbench.privacy.mechanisms`).
        Override this to refuse where its proof does not carry over.
        """
        try:
            relation = Relation(relation)
        except ValueError:
            raise UserError(f"relation: {nearest(str(relation), [r.value for r in Relation])}") from None
        if relation not in (self.relation, Relation.REPLACE_ONE):
            raise UserError(f"relation: {self.name} is {self.relation} only, {relation} asks for another proof")
        return relation

    def accounting(self, mode: str) -> str:
        """Resolve "paper" and reject modes this algorithm cannot be calibrated with."""
        if mode == "paper":
            return self.paper_accounting
        if mode not in self.accountings:
            raise UserError(
                f"accounting: {mode!r} does not apply to {self.name}; {nearest(mode, ('paper', *self.accountings))}"
            )
        return mode


def make_settings(algorithm: Algorithm | type[Algorithm], values: dict[str, Any]) -> Settings:
    """Validate `values` (strings from the command line are converted) into the algorithm's Settings."""
    known = algorithm.Settings.__struct_fields__
    for key in values:
        if key not in known:
            tail = nearest(key, known) if known else "it has no settings"
            raise UserError(f"{algorithm.name}: unknown setting {key!r}; {tail}")
    try:
        return msgspec.convert(values, algorithm.Settings, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        name = where.rstrip("`")
        given = f", got {values[name]!r}" if name in values else ""
        raise UserError(f"{algorithm.name}: setting {name}: {what[0].lower()}{what[1:]}{given}") from None


class BatchSettings:
    """The settings of a batch of replicates: shared fields as they are, per-replicate ones as (k,) arrays."""

    def __init__(self, settings: list[Settings], per_replicate: frozenset[str]):
        for name in settings[0].__struct_fields__:
            values = [getattr(one, name) for one in settings]
            if name in per_replicate:
                setattr(self, name, np.array(values, dtype=float))
            elif any(value != values[0] for value in values):
                raise ValueError(f"setting {name} differs within a batch but is not per-replicate")
            else:
                setattr(self, name, values[0])
