"""What an algorithm is: a name, a neighbouring relation, declared needs, settings, and `run`.

A solver declares what it needs of the problem (losses, a bound on the rows, no regulariser) and that is
checked before it runs; it sees data only through the problem and releases only through `mechanisms`.
The methods import this module as `dp`; what they override of `Algorithm` has the types that are declared here.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias, get_origin

import msgspec
import numpy as np

from dpbench.errors import UserError, nearest
from dpbench.privacy import accounting as accountings
from dpbench.privacy.disclosure import Disclosure
from dpbench.privacy.ledger import Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems import Declaration, Problem
from dpbench.problems import losses as loss_functions
from dpbench.problems.losses import Loss

__all__ = [
    "Algorithm",
    "Array",
    "AuditCase",
    "BaseSettings",
    "Count",
    "Declaration",
    "Diagnostic",
    "Disclosure",
    "Generators",
    "Mechanisms",
    "Needs",
    "Positive",
    "Problem",
    "Relation",
    "RunResult",
    "Share",
    "Trace",
    "at_default_clip",
    "at_default_step",
    "batch_settings",
    "make_settings",
    "no_trace",
]  # fmt: skip

Array: TypeAlias = np.ndarray  # of float64
Generators: TypeAlias = "Sequence[np.random.Generator]"  # one per replicate; as text: numpy.random takes 6 ms to load
Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Trace(Protocol):
    """What listens to a run, see `dpbench.run.bind`. next: the iteration it waits for, -1 for none."""

    next: int

    def __call__(self, iteration: int, W: Array, passes: float | Array, *, final: bool | Array = False) -> None: ...


class NoTrace:
    """Nobody listens."""

    next = -1

    def __call__(self, iteration: int, W: Array, passes: float | Array, *, final: bool | Array = False) -> None:
        pass


no_trace = NoTrace()


class BaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of an algorithm's settings; fields are typed and bounded with `msgspec.Meta`.

    Fields left at their defaults are left out of a job's key, so a new setting with a default leaves the
    keys of finished runs alone. Changing a default, or what a setting means, needs a new `version`.
    """


@dataclass(frozen=True)
class Needs:
    """What an algorithm's privacy proof asks of the problem: constants that a loss declares, a bound on the rows.

    convex, quadratic: that the loss is so, see `losses.Loss`.
    outputs: whether a row may have several predictions, as with softmax loss.
    lipschitz, smooth, hessian_lipschitz: that ℓ', ℓ'', ℓ''' exist and are bounded, by whatever number.
    gradient, hessian: the most that one row may add to the sum of gradients and of Hessians, L₀R and L₁R²: how long
        rows may be follows from the loss.
    losses: names, of a solver that has its loss in its own code; None where the constants decide.
    row_norm: ("l2", 1.0) for ‖x‖₂ ≤ 1; None for an algorithm that clips.
    row_norm_of: {loss: bound} in the same norm, where a paper has another than follows.
    regularisers: which of "l1", "l2", "w2" may be non-zero (they use no data, but not every method has them).
    """

    convex: bool = False
    quadratic: bool = False
    outputs: bool = False
    lipschitz: bool = False
    smooth: bool = False
    hessian_lipschitz: bool = False
    gradient: float = math.inf
    hessian: float = math.inf
    losses: tuple[str, ...] | None = None
    row_norm: tuple[str, float] | None = ("l2", 1.0)
    row_norm_of: dict[str, float] = field(default_factory=dict)
    regularisers: tuple[str, ...] = ()

    def missing_for(self, loss: Loss) -> str:
        """What the proof asks for and the loss has not, in words; "" for a loss that is covered."""
        requirements = (
            (self.losses is not None, loss.name in (self.losses or ()), "the code is not written for it"),
            (self.convex, loss.convex, "it is not convex"),
            (self.quadratic, loss.quadratic, "it is not a square"),
            (not self.outputs, loss.outputs == 1, "it has several predictions a row"),
            (self.lipschitz or self.gradient < math.inf, loss.lipschitz < math.inf, "its slope ℓ' has no bound"),
            (self.smooth or self.hessian < math.inf, loss.smooth, "it has no second derivative"),
            (self.smooth or self.hessian < math.inf, loss.smoothness < math.inf, "its curvature ℓ'' has no bound"),
            (self.hessian_lipschitz, loss.hessian_lipschitz < math.inf, "its third derivative has no bound"),
        )
        return next((why for needed, there, why in requirements if needed and not there), "")

    @property
    def covered(self) -> list[str]:
        """The losses that it covers: built-in ones, then those of installed packages."""
        return [name for name in loss_functions.names() if not self.missing_for(loss_functions.get(name))]

    def row_bound(self, loss: Loss) -> tuple[str, float] | None:
        """The norm and the largest bound on the rows with this loss."""
        if self.row_norm is None:
            return None
        kind, most = self.row_norm
        # L₀R and L₁R² may not be above what the proof takes; a loss without curvature has no second bound.
        follows = min(most, self.gradient / loss.lipschitz, math.sqrt(self.hessian / (loss.smoothness or 1e-300)))
        return kind, self.row_norm_of.get(loss.name, follows)

    def check(self, problem: Declaration, algorithm: str, *, rows: bool = True) -> None:
        """Raise UserError, in one line, for a problem the algorithm's guarantee does not cover.

        rows: whether there is a guarantee, and so a bound that the rows must obey.
        """
        if why := self.missing_for(problem.loss):
            raise UserError(
                f"{algorithm}: loss {problem.loss.name} is not covered by its privacy proof: {why}; "
                f"use one of: {', '.join(self.covered)}"
            )
        present = {"l1": problem.l1, "l2": problem.l2, "w2": problem.w2}
        for name, weight in present.items():
            if weight and name not in self.regularisers:
                able = f"it takes only {', '.join(self.regularisers)}" if self.regularisers else "it takes none"
                raise UserError(f"{algorithm}: regulariser {name} = {weight:g} is not supported; {able}")
        if rows and (bounded := self.row_bound(problem.loss)):
            kind, bound = bounded
            # A declared bound suffices: measuring the rows would look at all of them again.
            if problem.row_bound_norm == kind and problem.row_bound <= bound * (1 + 1e-12):
                return  # declared, and checked where the rows are
            norm = problem.row_norm if kind == "l2" else problem.row_norm_l1
            if norm > bound * (1 + 1e-12):
                raise UserError(
                    f"{algorithm}: needs rows with ‖x‖{'₂' if kind == 'l2' else '₁'} <= {bound:g}, "
                    f'the largest is {norm:.4g}; rescale the rows (dpbench.fit does it with bound="rescale")'
                )


@dataclass(frozen=True)
class AuditCase:
    """One pair of neighbours, and settings under which a release distinguishes them; the defaults suit most.

    settings: beside those its name fixes. T = 4 is added where the algorithm has a T, so that composition is at stake.
    accounting: as `--accounting`; choose the one whose noise is not larger by design than the releases need.
    loss: by name; "" takes the first that `needs` covers.
    n, d, l1, l2: rows, columns and the weights of ‖w‖₁ and ‖w‖²/2.
    background: what the rows that both data sets share pull each coordinate by, in units of the pull of the row that
        differs in the first of them; one number or one per coordinate. 0: nothing but that row pulls.
    steepest: the row that differs has the largest gradient that the constants allow at every w; False takes the loss
        as it is, at w = 0.
    bend: with `steepest`, the second derivative at every w in units of the largest that the constants allow.
    across: with `steepest` and `bend`, the second world's row is orthogonal to the first's and bends alike.
    drawn: with `steepest` False, all rows are drawn and one label differs, for releases that need rows to differ.
    best_coins: all runs have one draw of the randomness that is public (an algorithm's coins, the order of a single
        pass): of a thousand, that with which this pair moves most. False draws it afresh in every run.
    near_runs: the most runs that are made for a bound near the claim; fewer where one is long.
    label: of the releases that this pair is the canary of; "" for all of them.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    accounting: str = "paper"
    loss: str = ""
    n: int = 4
    d: int = 2
    l1: float = 0.0
    l2: float = 0.0
    background: float | tuple[float, ...] = 0.0
    steepest: bool = True
    bend: float = 0.0
    across: bool = False
    drawn: bool = False
    best_coins: bool = False
    near_runs: int = 30_000
    label: str = ""


SEARCHED = AuditCase()  # of a method that names none: an audit looks for a better one


@dataclass(frozen=True)
class Diagnostic:
    """A column of the runs table that an algorithm fills itself; a run that returns any other has failed.

    name: none of those that the runner fills (`dpbench.run.row.FILLED`).
    meaning: in words, with the unit.
    of_data: whether it depends on more of the data than was released, like the objective: then no guarantee covers it.
    """

    name: str
    meaning: str
    of_data: bool = False


ITERATIONS = Diagnostic("iterations", "iterations made")
GRADIENTS = Diagnostic("gradient_evaluations", "gradients released")
HESSIANS = Diagnostic("hessian_evaluations", "Hessians released")
NOTES = Diagnostic("notes", "what else the method says of its run, in words or JSON")
MEASURED = (
    Diagnostic("measured", "what the method's `measure` finds", of_data=True),
    Diagnostic("measured_error", "the standard error of `measured`", of_data=True),
)


@dataclass
class RunResult:
    """What `run` hands back: final iterates `W` (k, d) and, where they mean something, further facts per replicate.

    columns: what its algorithm declares as `diagnostics`, each of length k.
    T: the iterations that each replicate planned, where `Algorithm.iterations` does not know them before.
    withheld: why a replicate's iterates are not fit to be released, "" where they are; such a run is refused.
    evidence: what `Algorithm.measure` needs to know of the run besides W; not stored.
    """

    W: Array
    columns: dict[str, Any] = field(default_factory=dict)
    T: Sequence[int] | None = None
    refusals: Sequence[str] | None = None
    evidence: Any = None


class Algorithm:
    """Base class of every optimiser. Subclasses are stateless; one instance may run many batches.

    Class attributes:
        name: the name on the command line and in result rows.
        title: how legends and tables call it.
        version: part of every job's key; raise it when the meaning of a result changes.
        revisions: the same for the runs of one accounting: {accounting: version}, where that is above 1.
        gone: settings that it had before, each with the value at which it did what it does now.
        home: the experiment whose problems `dpbench run --algo NAME` uses.
        relation: the neighbouring relation its guarantee is for.
        either: whether it hands over the sensitivities of the run's own relation, and so runs under add/remove as well.
        private: False for baselines that look at the data without paying.
        exact: what all its releases are, of what `privacy.exact_release` takes without a rounding: "sums" over the
            rows, or a "minimiser" with a certificate. Then the guarantee of a fit holds for the bytes released, which
            the seam enforces. "" where it is proved for real numbers alone; in_reals: why.
        persons: whether its proof, its steps and its T hold as they are where a record is a person's weighted mean of
            rows: all it takes of the data are sums over all of them (`problems.persons`).
        paper_accounting: what `--accounting paper` means for it.
        accountings: the accounting modes it can be calibrated with, besides "paper".
        delta: the δ used when none is given, "n^-2", "n^-1" or a number.
        needs: what it asks of the problem.
        per_replicate: settings that may differ between the replicates of one batch; `run` sees them as
            arrays of shape (k,). All others are shared by the batch and seen as plain values. With "epsilon" among
            them ε may differ too, and `mechanisms.budget.rho` is then an array of shape (k,).
        tuning: settings and the values that `compare` tries for them; left empty, a few T where there is a T.
        counts_public: what it takes from the data and counts as public, in words; "" for nothing (see `public`).
        discloses: every kind of release it may make; a private run that releases under another label has failed.
        stops_early: whether it may stop before it has released all it planned: see `plan`.
        unpaid: of a method that is not private, what it takes from the data without paying, in words.
        diagnostics: the columns of the runs table that it fills, by its `RunResult` or by `measure`.
        audit_case: what `dpbench audit` runs it on, where the default hides too much of what it releases.
        canaries: further cases, each for the releases of one `label` that the case above gives too small a share.
        common_random: settings that do not enter the seed of a job's streams: jobs that differ in these alone draw
            the same random numbers, and a batch holds jobs of one stream (see `Mechanisms.streams`).
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    version: ClassVar[int] = 1
    revisions: ClassVar[Mapping[str, int]] = {}
    gone: ClassVar[Mapping[str, Any]] = {}
    home: ClassVar[str] = "second_order"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    either: ClassVar[bool] = False
    private: ClassVar[bool] = True
    exact: ClassVar[Literal["", "sums", "minimiser"]] = ""
    in_reals: ClassVar[str] = "it releases more than sums over the rows and minimisers"
    persons: ClassVar[bool] = False
    paper_accounting: ClassVar[str] = "bs16"
    accountings: ClassVar[tuple[str, ...]] = ("tight", "text", "bs16", "cks20", "standard")
    delta: ClassVar[str | float] = "n^-2"
    needs: ClassVar[Needs] = Needs()
    per_replicate: ClassVar[frozenset[str]] = frozenset()
    common_random: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[dict[str, list[Any]]] = {}
    counts_public: ClassVar[str] = ""
    discloses: ClassVar[tuple[Disclosure, ...]] = ()
    stops_early: ClassVar[bool] = False
    unpaid: ClassVar[str] = ""
    diagnostics: ClassVar[tuple[Diagnostic, ...]] = ()
    audit_case: ClassVar[AuditCase] = SEARCHED
    canaries: ClassVar[tuple[AuditCase, ...]] = ()
    fixed: Mapping[str, Any] = MappingProxyType({})  # the settings that a served name fixes
    Settings: ClassVar[type[BaseSettings]] = BaseSettings

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        """Say by `mechanisms.plan` all that one replicate may release: what `run` then calibrates its noise by.

        It sees n, d, the loss and the bounds, and no data. The second accountant checks the plan before the data are
        touched; a run that releases more than it, or at other noise, has failed. A method that says nothing is checked
        by what it released; one that may stop early has to say.
        """

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Any, trace: Trace) -> Array | RunResult:
        """Optimise from `W` (k, d) and return the final iterates (k, d), or an `RunResult`.

        `settings`: of the class `Settings`, the fields `per_replicate` as arrays (k,). `mechanisms.budget` holds ε, δ
        and ρ; every use of the data must pass through `mechanisms`.
        Call `trace(t, W, passes=…)` after iteration t (0 is the start): it costs nothing when nobody listens.
        """
        raise NotImplementedError

    def complete(self, problem: Declaration, settings: Any) -> Any:
        """Settings with every default that depends on the problem filled in; raise UserError if they clash."""
        return settings

    def iterations(self, problem: Declaration, settings: Any) -> int | None:
        """The number of iterations a run will make, None where that is not known before."""
        return getattr(settings, "T", None)

    def batch_size(self, n: int, d: int) -> int:
        """How many replicates may advance together; by default 200 MB of their (d, d) matrices, and at most 128."""
        return int(max(1, min(128, 200e6 / (8 * d**2))))

    def measure(self, problem: Problem, outcome: RunResult, settings: Any, generators: Generators) -> dict[str, Any]:
        """More of the declared `diagnostics`, each of length k: what costs more than `run` should, or needs the data.

        Called after the run, outside its clock; like the objective, what it finds is not released privately.
        `generators` are for a measure that samples.
        """
        return {}

    def public_settings(self, n: int, d: int, epsilon: float) -> dict[str, Any]:
        """Settings to run at where nothing may look at the data (the default track of the leaderboard).

        From the number of rows and columns and ε alone, for δ = n⁻², replace-one neighbours and rows of ‖x‖₂ ≤ 1. What
        is left out stays at its default. The built-in methods' rules stand together in `algorithms.rules`.
        """
        return {}

    def public(self, settings: Any) -> str:
        """What a run with these settings takes from the data and counts as public, beyond n; "" for nothing."""
        return self.counts_public

    @property
    def labels(self) -> frozenset[str]:
        """The labels that `discloses` declares."""
        return frozenset(one.label for one in self.discloses)

    @property
    def gaussian(self) -> bool:
        """Whether all it releases is Gaussian noise on all rows: then budgets add up as μ² does (Gaussian DP)."""
        return bool(self.discloses) and {one.mechanism for one in self.discloses} <= {"Gaussian", "Gaussian, symmetric"}

    def inspection_case(self) -> AuditCase:
        """A run of at least four iterations on the loss as it is, of which all that comes out is compared."""
        case = self.audit_case
        settings = {name: value for name, value in case.settings.items() if name != "T"}
        return replace(case, settings=settings, n=8, d=3, steepest=False, background=0.0)

    def work(self, n: int, d: int, settings: Any) -> float:
        """Rough cost of one replicate in flops: orders the jobs and scales the progress bar, nothing else."""
        return 4.0 * n * d * getattr(settings, "T", 1)

    def flaw(self, settings: Any, accounting: str = "") -> str:
        """Why these settings, under a resolved accounting, do not give the stated guarantee; "" where they do.

        For published calibrations that are kept for comparison: of the accounting itself, unless a method has its own.
        """
        return accountings.get(accounting).flaw if accounting else ""

    def row_bound(self, loss: Loss, settings: Any) -> tuple[str, float] | None:
        """The norm and the largest bound on the rows that its noise, steps and proof rest on; None where none is used.

        A fit declares it, and looks at no row to know it.
        """
        return self.needs.row_bound(loss)

    def inexact(self, loss: Loss, relation: Relation, settings: Any = None) -> str:
        """Why a guarantee with this loss is for real numbers and not for the bytes released; "" where it is for them.

        settings: the method's; None for its defaults.
        Of a loss that is not dpbench's own nobody knows how far off its functions are in float64, which a minimiser's
        certificate asks for, nor whether a row's part changes in the last digit with the row's place in a block. Under
        add/remove neighbours rows change places.
        """
        if not self.exact:
            return self.in_reals
        if loss_functions.built_in(loss):
            return ""
        if self.exact == "minimiser":
            return "how far off a loss of your own is in float64 is not known"
        if relation is Relation.ADD_REMOVE:
            return 'a loss of your own is covered under relation="replace-one" alone'
        return ""

    def sound(self, settings: Any) -> list[str]:
        """The accountings, "paper" among them, under which a run with these settings keeps its ε."""
        modes = dict.fromkeys(("paper", *self.accountings)) if self.private else {}
        return [mode for mode in modes if not self.flaw(settings, self.accounting(mode))]

    def under(self, relation: Relation | str) -> Relation:
        """The relation of a run that asks for `relation`; UserError where the algorithm has no guarantee for it.

        An add/remove algorithm runs under replace-one at twice its sensitivities (see `dpbench.privacy.mechanisms`).
        Override this to refuse where its proof does not carry over.
        """
        try:
            relation = Relation(relation)
        except ValueError:
            raise UserError(
                f"relation: there is no {relation!r}; {nearest(str(relation), [r.value for r in Relation])}"
            ) from None
        # Twice an add/remove sensitivity covers replace-one; nothing follows the other way.
        if relation not in (self.relation, Relation.REPLACE_ONE) and not self.either:
            raise UserError(f"relation: {self.name} is {self.relation} only, {relation} asks for another proof")
        return relation

    def declared(self, relation: Relation) -> Relation:
        """The relation of the sensitivities that it hands to `mechanisms` in a run under `relation`."""
        return relation if self.either else self.relation

    def accounting(self, mode: str) -> str:
        """Resolve "paper" and reject modes this algorithm cannot be calibrated with."""
        if mode == "paper":
            return self.paper_accounting
        like = accountings.get(mode).like if mode in accountings.names() else ""
        if not {mode, like} & set(self.accountings):
            raise UserError(
                f"accounting: {mode!r} does not apply to {self.name}; {nearest(mode, ('paper', *self.accountings))}"
            )
        return mode


def make_settings(algorithm: Algorithm | type[Algorithm], values: Mapping[str, Any]) -> BaseSettings:
    """Validate `values` (strings from the command line are converted) into the algorithm's Settings."""
    known = algorithm.Settings.__struct_fields__
    for key in values:
        if key not in known:
            tail = nearest(key, known) if known else "it has no settings"
            raise UserError(f"{algorithm.name}: unknown setting {key!r}; {tail}")
    try:
        # msgspec reads a string as JSON would: `.1` and `1.` are no numbers there.
        declared = _types_of(algorithm.Settings)
        read = {name: _as_json(value, declared[name]) for name, value in values.items()}
        return msgspec.convert(read, algorithm.Settings, strict=False)
    except msgspec.ValidationError as error:
        # msgspec says what it expected and at which path: the path is the setting's name.
        what, _, where = str(error).partition(" - at `$.")
        name = where.rstrip("`")
        ending = f", got {values[name]!r}" if name in values else ""
        if what.startswith("Invalid enum value"):
            info: Any = msgspec.inspect.type_info(algorithm.Settings)
            (kind,) = (field.type for field in info.fields if field.name == name)
            kinds = getattr(kind, "types", [kind])  # one or several, as with None
            choices = [str(one) for each in kinds for one in getattr(each, "values", ())]
            what, ending = f"Unknown value {values[name]!r}; ", nearest(str(values[name]), choices)
        raise UserError(f"{algorithm.name}: setting {name}: {_message_of(what)}{ending}") from None


@functools.cache
def _types_of(settings: type[BaseSettings]) -> dict[str, Any]:
    """Name → type of the settings: reading them off the annotations takes ten times as long as all else."""
    return {field.name: field.type for field in msgspec.structs.fields(settings)}


def _as_json(value: Any, kind: Any) -> Any:
    """A number as JSON spells it, which is what is read: ".1" and "1." lack a digit; a list from its text."""
    if isinstance(value, str) and get_origin(kind) in (list, tuple, dict):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(value)
    if isinstance(value, str) and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", value, re.ASCII | re.IGNORECASE):
        return re.sub(r"(?<!\d)\.", "0.", re.sub(r"\.(?!\d)", "", value.removeprefix("+")))
    return value


_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word", "null": "nothing",
          "array": "a list", "object": "a table"}  # fmt: skip


def _message_of(what: str) -> str:
    """What a failed conversion says, without the names of types.

    >>> _message_of("Expected `int`, got `str`")
    'must be a whole number'
    >>> _message_of("Expected `float | null` > 0.0")
    'must be a number or nothing > 0.0'
    """
    expected = re.fullmatch(r"Expected `([^`]+)`( [<>]=? \S+)?(, got `[^`]+`)?", what)
    if expected is None:
        return what[0].lower() + what[1:]
    kinds = expected[1].split(" | ")
    if "float" in kinds and "int" in kinds:
        kinds.remove("int")
    return "must be " + " or ".join(_KINDS.get(kind, kind) for kind in kinds) + (expected[2] or "")


def at_default_step(problem: Declaration, settings: Any) -> Any:
    """`settings` with the step that suits gradients, 1/L₁ of the objective, where they give none.

    Raises:
        UserError: for a loss that is not smooth, which has no L₁.
    """
    if settings.step is None and math.isinf(problem.objective_smoothness):
        raise UserError(f"step: {problem.loss.name} loss is not smooth, and has no step of its own; give one")
    return msgspec.structs.replace(settings, step=settings.step or 1 / problem.objective_smoothness)


def at_default_clip(problem: Declaration, settings: Any, unbounded: float) -> Any:
    """`settings` with a clip where they give none: what bounds ℓ' by itself, or `unbounded` where nothing does."""
    clip = problem.loss.lipschitz if problem.loss.lipschitz < math.inf else unbounded
    return msgspec.structs.replace(settings, clip=settings.clip or clip)


def batch_settings(settings: Sequence[BaseSettings], per_replicate: frozenset[str]) -> BaseSettings:
    """The settings of a batch of replicates: shared fields as they are, per-replicate ones as (k,) arrays."""
    first = settings[0]
    for name in first.__struct_fields__:
        # A batch that mixed them would run all at the first one's value, silently.
        if name not in per_replicate and any(getattr(one, name) != getattr(first, name) for one in settings):
            raise ValueError(f"setting {name} differs within a batch but is not per-replicate")
    varying = per_replicate & {*first.__struct_fields__}
    arrays = {name: np.array([getattr(one, name) for one in settings], dtype=float) for name in varying}
    return msgspec.structs.replace(first, **arrays)
