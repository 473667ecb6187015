"""One private model from arrays: what it released and what is known of it, apart."""

from __future__ import annotations

import math
import secrets
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
import scipy

from dpbench import algorithms
from dpbench import schema as schemas
from dpbench.algorithms import defaults
from dpbench.algorithms.base import Algorithm, make_settings
from dpbench.datasets.tables import PRECISIONS
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.check import profile, together, trade_off
from dpbench.privacy.ledger import Composition, Relation
from dpbench.privacy.noise import stream
from dpbench.privacy.statement import sentence
from dpbench.problems import Declaration, catalogue, losses
from dpbench.problems.risk import Diverged
from dpbench.run import given, shards
from dpbench.run import row_bound as row_bounds
from dpbench.run.bind import bind, budget_of
from dpbench.run.draws import mechanisms_of
from dpbench.run.execute import one_thread

REPRODUCIBLE = "reproducible: not a release"
CHECKED = "that X and y passed the checks"
UNFINISHED = "did not end as its proof asks for, so nothing is released"  # by how much would depend on the data


@dataclass(frozen=True)
class Released:
    """What the guarantee of a fit is about.

    Attributes:
        w: (d,), the model.
        epsilon, delta, relation: the budget, which the plan of releases meets and is checked against.
        epsilon_planned: what the plan composes to, by the independent accountant `checked_by`; at most `epsilon`.
        checked_by: the accountant that composed the plan, and by which theorem.
        ledger: one row per kind of release: what was released, how often, how often at most, and the noise that was
            drawn: shape of the value, its sensitivity and the noise per entry.
        arithmetic: "bytes" where the guarantee holds for the bytes of `w`, "real" where it is proved for real numbers,
            which float64 rounds.
        noise: who drew it: "exact" (`dpbench.privacy.exact`) or "numpy".
        counts_public: what the method took from the data and counts as public, beyond their number of rows.
        composition: the plan as the accountants take it, to compose with that of other fits on the same rows.
        row_bound: what rows of a schema were divided by, where `row_bound` found it; None elsewhere.
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


@dataclass(frozen=True)
class Diagnostics:
    """What was read off the data without noise: no guarantee covers it, so it must not leave with the model.

    Attributes:
        objective: F(w) on the data.
        seconds: wall time.
        status: how the run ended, "done" or "diverged".
        columns: what the method itself says about the run, by name: see `Algorithm.diagnostics`.
        epsilon_realised: what the releases made compose to; below `Released.epsilon_planned` where the run stopped
            early, which depends on the data: no guarantee.
    """

    objective: float
    seconds: float
    status: str
    columns: dict[str, Any]
    epsilon_realised: float


@dataclass(frozen=True)
class Fit:
    """What `fit` returns. guarantee: in words, or why there is none. settings: of the method, defaults filled in.

    Its repr leaves `diagnostics` out, which are not private: a notebook would show them.
    """

    released: Released
    diagnostics: Diagnostics = field(repr=False)
    guarantee: str
    settings: dict[str, Any]

    @property
    def w(self) -> np.ndarray:
        """(d,), the model: `released.w`."""
        return self.released.w

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
    loss: str | losses.Loss = "logistic",
    l1: float = 0.0,
    l2: float = 0.0,
    w2: float = 0.0,
    seed: int | None = None,
    accounting: str | None = None,
    relation: str = defaults.RELATION.value,
    bound: Literal["check", "rescale"] | None = None,
    start: str = "zero",
    arithmetic: Literal["bytes", "real"] | None = None,
    precision: Literal["float64", "float32"] = "float64",
    timing: Literal["constant"] | None = None,
    **settings: Any,
) -> Fit:
    """Fit one model to (X, y) by a private optimiser, and check what it spent.

    Args:
        X: (n, d) array or scipy.sparse matrix of finite numbers, or a dask array, whose blocks of rows stay with the
            workers of the active `distributed.Client`: sums over them are taken there. n counts as public.
        y: (n,) labels -1/+1 for logistic, sigmoid and ramp loss, numbers for squared loss, numbers >= 0 for phase loss.
        algorithm: a name from `dpbench list algorithms`, or "path/to/file.py:Class".
        epsilon: the budget ε > 0.
        schema: what is public of a table (`dpbench.schema`), or its TOML file. X is then a pandas DataFrame, and y may
            be left out where X has the target's column. Rows and labels are made as by the estimators, an intercept
            first; w is on `schema.encoded_as(schema).columns`. The schema then counts as public.
        row_bound: with a schema that has none, how the bound on the length of rows is found, by which they are divided:
            "private" releases it within ε, "rule" is a public one, None is what no row exceeds. "auto": "private"
            wherever there are columns of numbers, and "rule" where the method cannot say its releases before it runs
            (`dpbench.run.row_bound`).
        delta: δ in [0, 1), "n^-2" or "n^-1"; None takes the algorithm's own rule (n⁻², or 0 for pure DP).
        loss: "logistic", "sigmoid", "squared", "pseudo-huber", "ramp" or "phase", or a `dpbench.problems.losses.Loss`
            of your own, whose constants are held against its values.
        l1, l2, w2: weights of ‖w‖₁, ‖w‖²/2 and Σ w²/(1+w²).
        seed: None draws from the operating system's entropy. With a number the noise can be computed again by whoever
            guesses it, and taken off: for tests and examples; `guarantee` then says so.
        accounting: None takes the algorithm's best ("tight" where it has it, as the estimators do); or "paper", its
            published rule, "tight", or a zCDP conversion ("text", "bs16", "cks20", "standard").
        relation: "replace-one", as of the estimators, or "add-remove". An add/remove algorithm runs under replace-one
            at twice its sensitivities, one for replace-one under nothing else.
        bound: what happens to data that do not fit. "rescale" scales rows beyond the bound of the algorithm's proof
            down to it, one by one; values that are no numbers become 0, and labels -1 or +1 by their sign.
            "check" raises DataError instead; that the data pass then counts as public. None: "rescale" for a release,
            "check" with a seed. `dpbench.check_rows` shows beforehand what does not fit.
        start: "zero", "unit" (a random unit vector) or "normal".
        arithmetic: "bytes": the guarantee holds for the bytes of the model. Rows are rounded towards zero to multiples
            of 2⁻¹⁶, sums over them are exact, and noise is rounded from exact Gaussian or Laplace variables, drawn from
            the operating system's cryptographic generator. UserError for a method without a proof of that. "real": in
            float64, with a guarantee for real numbers. None: "bytes" where the method has it and no seed is given.
        precision: "float64" or "float32", in which rows are kept and multiplied; sums are float64 in both. Rows that
            rounding to float32 would take beyond the bound are kept within it.
        timing: "constant": every step is made, and made as often, whatever the data of this shape are. For arithmetic
            "bytes" and rows in an array; what remains is measured in the guide "Time". None: as fast as it goes.
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
    if arithmetic not in ("bytes", "real", None):
        raise UserError(f'arithmetic must be "bytes" or "real", got {arithmetic!r}')
    if precision not in PRECISIONS:
        raise UserError(f"precision must be {' or '.join(PRECISIONS)}, got {precision!r}")
    if timing not in ("constant", None):
        raise UserError(f'timing must be "constant" or None, got {timing!r}')
    if timing and (scipy.sparse.issparse(X) or shards.is_lazy(X)):
        raise UserError("timing: the time of sparse rows, or of a cluster, depends on the data; give an array")
    if schema is None and row_bound not in ("auto", None):
        raise UserError("row_bound: it goes with a schema, which says which columns are numbers")
    if schema is not None:
        schema = schemas.load(schema)
        row_bound = row_bounds.asked(row_bound, schema.row_bound)
        X, y = given.by_schema(schema, X, y, losses.get(loss))
    elif y is None:
        raise UserError("y: give the labels; with a schema they may be a column of X")
    method, fixed = algorithms.resolve(algorithm)
    accounting = defaults.accounting(method) if accounting is None else accounting
    given_settings = make_settings(method, {**fixed, **settings})
    sound = method.private and not method.flaw(given_settings, method.accounting(accounting))
    neighbours = method.under(relation or method.relation)
    needed = method.row_bound(losses.get(loss), given_settings)
    why = method.inexact(losses.get(loss), neighbours, given_settings) if sound else "it has none at all"
    if not why and needed is None:
        why = "it declares no bound on the rows, which a grid of integers needs"
    exact = _exactly(method, losses.get(loss), neighbours, why, arithmetic, seed)
    if timing and not exact:
        raise UserError(f"timing: with these arguments {method.name} has no constant time; it takes arithmetic='bytes'")
    if timing and method.exact == "minimiser" and l1:
        raise UserError(f"timing: with l1 the solver of {method.name} takes as long as the data ask; use dp-gd-average")
    if isinstance(loss, losses.Loss):  # the noise rests on its constants
        losses.check(loss)
    declared: dict[str, Any] = {"loss": loss, "l1": l1, "l2": l2, "w2": w2, "name": "own data"}
    # Noise is scaled by a declared bound, never by the rows that exist.
    declared |= dict(zip(("row_bound_norm", "row_bound"), needed or ("l2", math.inf), strict=True))
    promised = sound and seed is None
    bounded = None
    if schema is not None and (sound or row_bound != "auto"):  # a method without noise has nothing to gain
        bounded = row_bounds.bounded(
            X,
            schemas.lengths_of(schema),
            row_bound,
            lambda some, rest: budget_of(method, len(X), some, rest, relation, accounting),
            lambda budget: row_bounds.plan_of(
                method, Declaration(len(X), X.shape[1], **declared), given_settings, budget
            ),
            (epsilon, delta),
            seed=seed,
            arithmetic=arithmetic,
        )
        X = X if bounded is None else bounded.X
    bound = bound or ("rescale" if promised else "check")
    problem = given.problem_of(
        X,
        y,
        method=method.name,
        loss=loss,
        needed=needed,
        bound=bound,
        release=promised,
        exact=exact,
        precision=precision,
        steady=timing is not None,
        declared=declared,
    )
    left = (epsilon, delta) if bounded is None else bounded.way[1:]
    budget = budget_of(method, problem.n, *left, relation, accounting)
    stranger = algorithms.not_ours(algorithm, msgspec.structs.asdict(given_settings))
    foreign = None if stranger is None else algorithms.resolve(stranger)[0].name
    # What a plug-in says of its settings is shown, so it gets no data to say it of.
    parsed = method.complete(problem if foreign is None else problem.bare, given_settings)
    key = secrets.token_hex(32) if seed is None else f"fit/{method.name}/{budget}/{parsed}/{seed}"
    W = catalogue.draw(start, problem.d, stream(key, "init"))[None]
    withheld = ""
    with one_thread():
        try:
            run_of = bind(method, problem, [given_settings], [budget], W, [key])
            run = run_of.run(mechanisms_class=mechanisms_of(exact, seed))
        except Diverged as error:
            raise UserError(f"{method.name}: {error}") from None
        except Exception as error:
            if foreign is None or not promised or _raised_here(error):
                raise
            withheld = type(error).__name__
    if withheld:  # outside the handler, so that the error is not kept as this one's context
        raise UserError(
            f"{foreign}: it raised {withheld}, whose text is withheld, as it may hold data; to read it, run the "
            "method with a seed, which is no release"
        )
    if run.errors[0]:
        raise UserError(f"{method.name}: {UNFINISHED if promised else run.errors[0]}")
    flaw, found = run_of.flaw(), run_of.guarantee(run)
    if method.private and not flaw and found.error:
        raise PrivacyError(f"{method.name}: {found.error}")
    bounding, parts = [], [(run.mechanisms.ledger.planned(0), found.planned, budget.delta)]
    if bounded is not None:
        bounding, parts = bounded.ledger, [*bounded.way.parts, *parts]
        budget = bounded.budget
    released = Released(
        w=run.W[0],
        epsilon=budget.epsilon,
        delta=budget.delta,
        relation=budget.relation.value,
        epsilon_planned=together(parts, budget.epsilon, budget.delta, budget.relation) if bounding else found.planned,
        checked_by=found.checked_by,
        ledger=bounding + run.mechanisms.ledger.summary(),
        arithmetic="bytes" if exact else "real",
        noise="exact" if exact else "numpy",
        counts_public=", ".join(
            filter(
                None,
                [
                    "the schema" * (schema is not None),
                    row_bounds.BY_RULE * (bounded is not None and not bounding),
                    method.public(parsed),
                    CHECKED if promised and bound == "check" else "",
                ],
            )
        ),
        composition=tuple(entry for composition, _, _ in parts for entry in composition),
        row_bound=None if bounded is None else bounded.bound,
    )
    return Fit(
        released=released,
        diagnostics=Diagnostics(
            objective=float(run.objective[0]),
            seconds=run.seconds,
            status=run.status[0],
            columns={name: values[0] for name, values in run.columns.items()},
            epsilon_realised=found.realised,
        ),
        guarantee=_guarantee(released, method, flaw, seed, foreign),
        settings=msgspec.structs.asdict(parsed),
    )


def _guarantee(released: Released, method: Algorithm, flaw: str, seed: int | None, foreign: str | None) -> str:
    if flaw or not method.private:
        return f"none: {flaw or f'{method.name} looks at the data without paying'}"
    if seed is not None:
        return REPRODUCIBLE
    public = ["n", *([released.counts_public] if released.counts_public else [])]
    of = (released.epsilon, released.delta, released.relation, released.arithmetic, public)
    return sentence(*of, word_of=foreign)


def _raised_here(error: BaseException) -> bool:
    """Whether the line that raised is dpbench's own, whose messages tell nothing of a release's data."""
    last = list(traceback.walk_tb(error.__traceback__))[-1][0]
    return str(last.f_globals.get("__name__", "")).startswith("dpbench.")


def _exactly(
    method: Algorithm,
    loss: losses.Loss,
    relation: Relation,
    why: str,
    arithmetic: str | None,
    seed: int | None,
) -> bool:
    """Whether the fit computes with integers. why: no guarantee for bytes can be had; "" where it can."""
    if arithmetic != "bytes":
        return arithmetic is None and not why and seed is None
    if why:
        others = [algorithms.resolve(name)[0] for name in algorithms.names(plugins=False)]
        able = [one.name for one in others if not one.inexact(loss, relation) and not one.needs.lacks(loss)]
        raise UserError(
            f"arithmetic: {method.name} on {loss.name} loss has no guarantee for bytes: {why}; "
            f"for 'bytes' use one of: {', '.join(dict.fromkeys(able))}"
        )
    return True
