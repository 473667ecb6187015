"""A row of a results table: what is known of one job, or of one recorded iteration, with its settings parsed.

The structs are the schema: a column is a field here, of one of the `KINDS`, and nowhere else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_type_hints

import msgspec

from dpbench import algorithms
from dpbench.errors import UserError
from dpbench.run.outcomes import StatusName

if TYPE_CHECKING:
    import pandas

Values: TypeAlias = Mapping[str, Any]
LEFT = ("traceback",)  # fields that are not kept
BUILT_IN = "built in"  # in the column `code`


class Row(msgspec.Struct, kw_only=True):
    """One job. What is None is not known, or does not apply; only the runner's check fills the privacy fields."""

    experiment: str | None = None
    problem: str | None = None
    algorithm: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    seed: int | None = None
    settings: Values | None = None  # completed, with the values of a sweep's axes
    T: int | None = None
    sweep: str | None = None  # the settings of a sweep and their values, None for a single run
    objective: float | None = None
    excess: float | None = None
    gradient_norm: float | None = None
    accuracy: float | None = None
    seconds: float | None = None
    status: StatusName | None = None
    ending: str | None = None
    error: str | None = None
    epsilon_planned: float | None = None  # of all that the run could have released: the guarantee
    epsilon_realised: float | None = None  # of what it did release: less where it stopped early, a diagnostic
    epsilon_accounted: float | None = None
    checked_by: str | None = None
    relation: str | None = None
    accounting: str | None = None
    private: bool | None = None
    planted: float | None = None  # what the noise was multiplied by on purpose, None for 1
    counts_public: str | None = None  # what the run took from the data beside n, "" for nothing
    code: str | None = (
        None  # "built in", "served", "served, not isolated" or "foreign code, trusted"; None before it was kept
    )
    timed: int | None = None
    iterations: int | None = None
    gradient_evaluations: int | None = None
    hessian_evaluations: int | None = None
    lambda_min: float | None = None
    support_correct: int | None = None  # non-zeros of w that w* has too, and that it has not (l1 problems)
    support_wrong: int | None = None
    measured: float | None = None  # what the algorithm's `measure` says, its error, and the bound of its theorem
    measured_error: float | None = None
    bound: float | None = None
    held_loss: float | None = None  # on rows kept apart, see problems.scores
    held_loss_se: float | None = None
    held_accuracy: float | None = None
    held_auc: float | None = None
    held_gain: float | None = None
    held_gain_se: float | None = None
    held_loss_gain: float | None = None  # below the loss of the best constant answer
    held_loss_gain_se: float | None = None
    held_balanced: float | None = None
    held_precision: float | None = None
    held_calibration: float | None = None
    notes: str | None = None
    values: list[float] | None = None  # a sweep's excess losses; what else a run or a probe measures as a vector
    diagnostics: Values | None = None  # an algorithm's own columns that have none here
    key: str
    code_version: str | None = None
    data_sha256: str | None = None
    environment: str | None = None
    traceback: str = ""  # for the user of this run

    @classmethod
    def read(cls, record: Values) -> Row:
        """The row of a record: of a part file, or of a line of a frame, where NaN stands for nothing."""
        known = {name: value for name, value in record.items() if not _nothing(value)}
        texts = {name: dict(settings_of(known[name])) for name in PARSED if isinstance(known.get(name), str)}
        return cls(**known | texts)

    def record(self) -> dict[str, Any]:
        """Column → value, as it is stored."""
        found = {name: getattr(self, name) for name in RUNS}
        return found | {name: _text(found[name]) for name in PARSED if found[name] is not None}


class Point(msgspec.Struct, kw_only=True):
    """One recorded iteration of a job."""

    key: str
    iteration: int
    passes: float | None = None
    seconds: float | None = None
    excess: float | None = None


KINDS: Mapping[object, str] = {
    str: "string",
    StatusName: "string",
    Values: "string",  # as JSON
    float: "double",
    int: "int64",
    bool: "bool",
    list[float]: "list",
}


def _columns(kind: type[Row | Point]) -> dict[str, str]:
    hints = get_type_hints(kind)
    # The type X of fields that are X | None: a column may be empty in every row.
    known = {name: hint if hint in KINDS else get_args(hint)[0] for name, hint in hints.items()}
    return {name: KINDS[known[name]] for name in kind.__struct_fields__ if name not in LEFT}


RUNS, TRACES = _columns(Row), _columns(Point)
PARSED = ("settings", "diagnostics")
# The columns that algorithms may fill, by declaring a `Diagnostic` of that name; the others are the runner's alone.
DIAGNOSTICS = frozenset({"ending", "iterations", "gradient_evaluations", "hessian_evaluations", "lambda_min",
                         "measured", "measured_error", "bound", "notes", "values"})  # fmt: skip
FILLED = RUNS.keys() - DIAGNOSTICS


@functools.lru_cache(maxsize=100_000)
def settings_of(text: str) -> Values:
    """The settings in a cell of the column `settings` or `sweep`; none of an empty one."""
    return MappingProxyType(msgspec.json.decode(text or "{}"))


@functools.lru_cache(maxsize=100_000)
def completed(algorithm: str, text: str) -> str:
    """The column `settings` with what `algorithm` has got since the row was written, at its default, as the key has it.

    And without what is `gone`. Otherwise a setting's rows of before and after would count as two settings.
    """
    try:
        method, _ = algorithms.resolve(algorithm)
    except UserError:
        return text
    given = settings_of(text)
    own = _optional(method.Settings)
    added = {name: own[name] for name in own.keys() - given.keys()}
    values = {
        name: one.default if one.default_factory is msgspec.NODEFAULT else one.default_factory()
        for name, one in added.items()
    }
    kept = {name: value for name, value in given.items() if name not in method.gone or value != method.gone[name]}
    return _text({**values, **kept}) if values or len(kept) < len(given) else text


@functools.cache
def _optional(settings: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Name → field of the settings that have a default: reading them off the annotations takes half a millisecond."""
    return {field.name: field for field in msgspec.structs.fields(settings) if not field.required}


def setting(runs: pandas.DataFrame, name: str, default: Any = None) -> pandas.Series:
    """One setting of each run; `default` where it has none of that name."""
    return runs["settings"].map(lambda text: settings_of(text).get(name, default))


def _text(values: Values) -> str:
    return msgspec.json.encode(dict(values), order="deterministic").decode()


def _nothing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
