"""`dpbench.fit`: one private model of rows that are scaled already, or of a table and its schema, with any loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy

from dpbench import schema as schemas
from dpbench.algorithms import rules
from dpbench.errors import UserError
from dpbench.own import row_bound as row_bounds
from dpbench.own import window as windows
from dpbench.own.engine import Fitted, execute, rows_of
from dpbench.own.inputs import cell_by_cell, labels_beside, one_for_each, persons_of
from dpbench.own.spec import FitPlan, Spec, of_encoding, plan
from dpbench.own.statement import number_of, sentence
from dpbench.privacy.check import profile, trade_off
from dpbench.privacy.ledger import Composition, Relation
from dpbench.problems import losses
from dpbench.problems.persons import Persons
from dpbench.schema import Target
from dpbench.schema.encoding import Encoding, encoding_of

REPRODUCIBLE = "reproducible: not a release"
CHECKED = "that X and y passed the checks"


@dataclass(frozen=True)
class Released:
    """What the guarantee of a fit is about.

    Attributes:
        w: (d,), the model; (classes, d) of one model for each class.
        epsilon, delta, relation: the budget, which the plan of releases meets and is checked against.
        epsilon_planned: what the plan composes to, by the independent accountant `checked_by`; at most `epsilon`.
        checked_by: the accountant that composed the plan, and by which theorem.
        ledger: one row per model and kind of release: what was released, how often, how often at most, and the noise
            that was drawn: shape of the value, its sensitivity and the noise per entry.
        arithmetic: "bytes" where the guarantee holds for the bytes of `w`, "real" where it is proved for real numbers,
            which float64 rounds.
        noise: who drew it: "exact" (`privacy.exact_release`) or "numpy".
        counts_public: what the method took from the data and counts as public, beyond their number of rows.
        composition: the plan as the accountants take it, to compose with that of other fits on the same rows.
        row_bound: what rows of a schema were divided by, where `row_bound` found it; None elsewhere.
        window: around the target, where one was found: `Fit.predict` takes it; None elsewhere.
    """

    w: np.ndarray
    epsilon: float
    delta: float
    relation: str
    epsilon_planned: float
    checked_by: str
    ledger: list[dict[str, Any]]
    arithmetic: str
    noise: str
    counts_public: str
    composition: Composition
    row_bound: float | None = None
    window: windows.Window | None = None


@dataclass(frozen=True)
class Diagnostics:
    """What was read off the data without noise: no guarantee covers it, so it must not leave with the model.

    Attributes:
        objective: F(w) on the data, before the scores of several classes are calibrated (`own.engine`).
        seconds: wall time. status: how the run ended, "done" or "diverged".
        columns: what the method itself says about the run, by name: see `Algorithm.diagnostics`.
        epsilon_realised: what the releases made compose to; below `Released.epsilon_planned` where the run stopped
            early, which depends on the data: no guarantee.

    Of one model for each class: those of the first.
    """

    objective: float
    seconds: float
    status: str
    columns: dict[str, Any]
    epsilon_realised: float


@dataclass(frozen=True)
class Fit:
    """What `fit` returns. guarantee: in words, or why there is none. settings: of the method, defaults filled in.

    plan: what it was to release. Its repr leaves `diagnostics` out, which are not private: a notebook would show them.
    """

    released: Released
    diagnostics: Diagnostics = field(repr=False)
    guarantee: str
    settings: dict[str, Any]
    plan: FitPlan = field(repr=False)
    _of_table: tuple[Fitted, Encoding, Target] | None = field(default=None, repr=False)

    @property
    def w(self) -> np.ndarray:
        """(d,), the model: `released.w`."""
        return self.released.w

    def predict(self, X: Any) -> np.ndarray:
        """(n,) what a fit by a schema says of a number, for rows of a table, within its bounds.

        With a window around the target, which is released first, this is more than <x, w>.
        """
        if self._of_table is None:
            raise UserError("predict: it is for fits of a number by a schema; elsewhere scores are X @ w")
        fitted, encoding, target = self._of_table
        low, high = target.bounds  # type: ignore[misc]  # of a number it has them
        scores = np.clip(fitted.scores(encoding.rows(X), encoding.unit)[:, 0], -1, 1)
        return np.asarray(low / 2 + high / 2 + (high / 2 - low / 2) * scores)

    def profile(self, deltas: Sequence[float]) -> np.ndarray:
        """ε at each of `deltas`, of all that the fit could have released: see `dpbench.privacy.check`."""
        return profile(self.released.composition, Relation(self.released.relation), deltas)

    def trade_off(self, alphas: Sequence[float]) -> np.ndarray:
        """f(α) at each of `alphas`: the least rate of false negatives of a test between neighbours at rate α."""
        return trade_off(self.released.composition, Relation(self.released.relation), alphas)


def fit(
    X: Any,
    y: Any = None,
    *,
    algorithm: str,
    epsilon: float,
    schema: Any = None,
    row_bound: row_bounds.RowBound | None = "auto",
    delta: float | str | None = None,
    loss: str | losses.Loss | None = None,
    l1: float = 0.0,
    l2: float | None = 0.0,
    w2: float = 0.0,
    seed: int | None = None,
    accounting: str | None = None,
    relation: str | None = rules.RELATION.value,
    bound: Literal["check", "rescale"] | None = None,
    start: str = "zero",
    arithmetic: Literal["bytes", "real"] | None = None,
    precision: Literal["float64", "float32"] = "float64",
    timing: Literal["constant"] | None = None,
    rule: bool = False,
    trusted: bool = False,
    groups: Any = None,
    **settings: Any,
) -> Fit:
    """Fit one model to (X, y) by a private optimiser, and check what it spent.

    Args:
        X: (n, d) array or scipy.sparse matrix of finite numbers, which may be a memory map of more than fits
            into memory: no copy of it is made, unless rows are beyond the bound in arithmetic "real". n is public.
        y: (n,) labels -1/+1 for logistic, sigmoid and ramp loss, numbers for squared loss, numbers >= 0 for phase loss.
        algorithm: a name from `dpbench list algorithms`, or "path/to/file.py:Class".
        epsilon: the budget ε > 0.
        schema: what is public of a table (`dpbench.schema`), or its TOML file. X is then a pandas DataFrame, and y may
            be left out where X has the target's column. Rows and labels are made as by the estimators, an intercept
            first; w is on `schema.encoding_of(schema, intercept=True).names`. The schema then counts as public.
        row_bound: with a schema that has none, how the bound on the length of rows is found, by which they are divided:
            "private" releases it within ε, "rule" is a public one, None is what no row exceeds. "auto": "private"
            wherever there are columns of numbers, and "rule" where the method cannot say its releases before it runs
            (`dpbench.own.row_bound`); before it, of many rows, a window around a target whose quantile or pseudo-Huber
            loss `objpert` fits, and "window" of squared loss with `rule` (`dpbench.own.window`).
        delta: δ in [0, 1), "n^-2" or "n^-1"; None takes the algorithm's own rule (n⁻², or 0 for pure DP).
        loss: "logistic", "sigmoid", "squared", "pseudo-huber", "ramp" or "phase", "quantile-0.9" for the 90 %
            quantile of numbers (or another), or a `dpbench.problems.losses.Loss` of your own, whose constants are held
            against its values. None: "logistic"; with a schema by its target, of more than two classes softmax loss, or
            a model of each class against the rest where the method has none.
        l1, l2, w2: weights of ‖w‖₁, ‖w‖²/2 and Σ w²/(1+w²). l2 None: that of the estimators.
        seed: None draws from the operating system's entropy. With a number the noise can be computed again by whoever
            guesses it, and taken off: for tests and examples; `guarantee` then says so.
        accounting: None takes the algorithm's best ("tight" where it has it, as the estimators do); or "paper", its
            published rule, "tight", or a zCDP conversion ("text", "bs16", "cks20", "standard").
        relation: "replace-one", as of the estimators, or "add-remove". An add/remove algorithm runs under replace-one
            at twice its sensitivities, one for replace-one under nothing else.
        bound: what happens to data that do not fit. "rescale" scales rows beyond the bound of the algorithm's proof
            down to it, one by one; values that are no numbers become 0, and labels -1 or +1 by their sign.
            "check" raises DataError instead; that the data pass then counts as public. None: "rescale" for a release
            and with groups, else "check" with a seed. `dpbench.check_rows` shows beforehand what does not fit.
        start: "zero", "unit" (a random unit vector) or "normal".
        arithmetic: "bytes": the guarantee holds for the bytes of the model. Rows are rounded towards zero to multiples
            of 2⁻¹⁶, sums over them are exact, and noise is rounded from exact Gaussian or Laplace variables, drawn from
            the operating system's cryptographic generator. UserError for a method without a proof of that. "real": in
            float64, with a guarantee for real numbers. None: "bytes" where the method has it and no seed is given.
        precision: "float64" or "float32", in which rows are kept and multiplied; sums are float64 in both. Rows that
            rounding to float32 would take beyond the bound are kept within it.
        timing: "constant": every step is made, and made as often, whatever the data of this shape are. For arithmetic
            "bytes" and rows in an array; what remains is measured in the guide "Time". None: as fast as it goes.
        trusted: whether a method that is not dpbench's own (a file's, or of an installed package) runs where the rows
            are. By default it is served: it runs in a process without them, and is sent noised sums alone.
        groups: (n,) texts or whole numbers that tell whose a row is, where a person may have several: then all rows of
            one person are protected together, each counts 1/m of his m rows, and the number of persons is public
            instead of n (`dpbench.problems.persons`). Rows of an empty id move no model. With a schema its `unit`, a
            column of X, says it instead. For methods whose releases are sums over all rows; others are refused.
        rule: whether settings that are not given are those of the method's public rule, as of the estimators; else
            they are as published.
        **settings: the algorithm's settings, e.g. T=100.

    Raises:
        UserError: for any argument that does not fit, in one line that names it.
        DataError: for NaN, wrong shapes or labels, rows beyond the bound.
        PrivacyError: for an algorithm whose releases compose to more than ε.

    What remains between this and a release of sensitive data: the guide "From benchmark to release".
    """
    if "seeds" in settings:
        raise UserError("seeds: fit returns one model; several seeds are a benchmark's: dpbench run --seeds, or seed=")
    if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
        raise UserError(f"seed must be a whole number >= 0 or None, got {seed!r}")
    if bound not in ("check", "rescale", None):
        raise UserError(f'bound must be "check" or "rescale", got {bound!r}')
    if timing and scipy.sparse.issparse(X):
        raise UserError("timing: the time of sparse rows depends on the data; give an array")
    if isinstance(loss, losses.Loss):  # the noise rests on its constants
        losses.check(loss)
    fields: dict[str, Any] = {
        "epsilon": epsilon, "delta": delta, "algorithm": algorithm, "settings": settings, "rule": rule, "l1": l1,
        "l2": l2, "w2": w2, "accounting": accounting, "relation": relation, "arithmetic": arithmetic,
        "precision": precision, "timing": timing, "reproducible": seed is not None, "trusted": trusted,
    }  # fmt: skip
    if schema is not None:
        schema = schemas.load(schema)
        y, encoding, spec, persons = _by_schema(schema, X, y, loss, row_bound, groups, fields)
    else:
        if row_bound not in ("auto", None):
            raise UserError("row_bound: it goes with a schema, which says which columns are numbers")
        if y is None:
            raise UserError("y: give the labels; with a schema they may be a column of X")
        given = X, y
        X, y = map(cell_by_cell, given)
        if len(X.shape) != 2 or not X.shape[1]:
            raise UserError("X: give two dimensions, rows × columns, with at least one column")
        unit, persons = persons_of(X, groups, None, asked=groups is not None)
        if persons:
            one_for_each("y", "label", y, X)
        n = persons.count if persons else int(X.shape[0])
        encoding, spec = None, Spec(n=n, d=int(X.shape[1]), loss=loss or "logistic", unit=unit, **fields)
    made = plan(spec)  # refuses what cannot be before a cell is read
    # A refusal tells of the data, so a release repairs rows; a seeded run may refuse, but of persons it would tell N.
    check = bound == "check" or (bound is None and not persons and (seed is not None or bool(made.flaw)))
    if check and persons:
        raise UserError('bound: "check" tells how many rows there are, which with groups or a unit is not public')
    if encoding is not None:
        X, y = rows_of(made, encoding, schema.target, X, y)
    elif check:
        X, y = given  # whose refusals say more
    fitted = execute(made, X, y, unit=encoding.unit if encoding else 1.0, seed=seed, start=start, check=check,
                     owned=encoding is not None, persons=persons)  # fmt: skip
    public = (
        ["the schema", "the column types"] * (schema is not None)
        + made.public
        + [CHECKED] * (check and seed is None and not made.flaw)
    )
    of_number = encoding is not None and schema.target.bounds is not None
    return _as_fit(fitted, public, seed, (fitted, encoding, schema.target) if of_number else None)


def _by_schema(
    schema: schemas.Schema, X: Any, y: Any, loss: Any, row_bound: Any, groups: Any, fields: dict[str, Any]
) -> tuple[Any, Encoding, Spec, Persons | None]:
    """(labels as they were given, how rows are made, spec, whose the rows are) of a table."""
    schema.require_decided()
    row_bound = row_bounds.parse_mode(row_bound, schema.row_bound)
    y, k = labels_beside(X, y, schema.target.name), len(schema.target.classes or ())
    loss, encoding = _loss_of(loss, k), encoding_of(schema, intercept=True)
    unit, persons = persons_of(X, groups, schema.unit, asked=groups is not None)
    of_rows = of_encoding(encoding, persons.count if persons else len(X), k)
    return y, encoding, Spec(loss=loss, row_bound=row_bound, unit=unit, **of_rows, **fields), persons


def _loss_of(loss: Any, k: int) -> Any:
    """The loss of a target of k classes, 0 of a number; UserError for one that does not take it."""
    if loss is None:
        return "logistic" if k else "squared"
    kind = losses.get(loss)
    if k != (2 if kind.binary else kind.outputs if kind.outputs > 1 else 0):
        what = f"has {k} classes" if k else "is a number"
        raise UserError(f"loss: {kind.name} does not fit the schema's target, which {what}; leave loss out")
    return loss


def _as_fit(fitted: Fitted, public: list[str], seed: int | None, of_table: Any) -> Fit:
    """What a caller sees of a fit."""
    plan, first = fitted.plan, fitted.diagnostics[0]
    whole = plan.whole
    w = fitted.W if plan.models > 1 else fitted.W.ravel()
    released = Released(
        w=w, epsilon=whole.epsilon, delta=whole.delta, relation=whole.relation.value, epsilon_planned=fitted.epsilon,
        checked_by=fitted.checked_by, ledger=fitted.ledger, arithmetic=plan.arithmetic,
        noise="exact" if plan.exact else "numpy", counts_public=", ".join(public), composition=fitted.releases,
        row_bound=fitted.bound, window=fitted.window,
    )  # fmt: skip
    of = whole.epsilon, whole.delta, whole.relation.value, plan.arithmetic
    guarantee = f"none: {plan.flaw}" if plan.flaw else REPRODUCIBLE
    if not plan.flaw and seed is None:
        guarantee = sentence(*of, [number_of(plan.spec.unit), *public], word_of=plan.foreign, unit=plan.spec.unit)
    return Fit(released, Diagnostics(**first), guarantee, fitted.settings, plan, of_table)
