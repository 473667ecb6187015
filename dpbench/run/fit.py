"""One private model from arrays: what it released and what is known of it, apart."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms, datasets
from dpbench.algorithms.base import Algorithm, make_settings
from dpbench.datasets.recipes import row_norms
from dpbench.datasets.tables import PRECISIONS, WITHIN
from dpbench.errors import DataError, PrivacyError, UserError, positive
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee
from dpbench.privacy.ledger import Composition
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.profile import profile, trade_off
from dpbench.privacy.relation import Relation
from dpbench.privacy.streams import stream
from dpbench.problems import Problem, losses, starts
from dpbench.problems.kernels import Rows
from dpbench.run import shards
from dpbench.run.execute import run_batch
from dpbench.run.jobs import check_delta, delta_value

REPRODUCIBLE = "reproducible: not a release"


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
        noise: the library that drew it, "numpy" or "opendp".
        counts_public: what the method took from the data and counts as public, beyond their number of rows.
        composition: the plan as the accountants take it, to compose with that of other fits on the same rows.
    """

    w: np.ndarray
    epsilon: float
    delta: float
    relation: str
    epsilon_planned: float
    checked_by: str
    ledger: list[dict[str, Any]]
    noise: str
    counts_public: str
    composition: Composition


@dataclass(frozen=True)
class Diagnostics:
    """What was read off the data without noise: no guarantee covers it, so it must not leave with the model.

    Attributes:
        objective: F(w) on the data.
        seconds: wall time.
        status: how the run ended, "done" or "diverged".
        columns: what the method itself tells of the run, by name: see `Algorithm.diagnostics`.
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
    """What `fit` returns. guarantee: in words, or why there is none. settings: of the method, defaults filled in."""

    released: Released
    diagnostics: Diagnostics
    guarantee: str
    settings: dict[str, Any]

    @property
    def w(self) -> np.ndarray:
        """(d,), the model: `released.w`."""
        return self.released.w

    def profile(self, deltas: Sequence[float]) -> np.ndarray:
        """ε at each of `deltas`, of all that the fit could have released: see `dpbench.privacy.profile`."""
        return profile(self.released.composition, Relation(self.released.relation), deltas)

    def trade_off(self, alphas: Sequence[float]) -> np.ndarray:
        """f(α) at each of `alphas`: the least rate of false negatives of a test between neighbours at rate α."""
        return trade_off(self.released.composition, Relation(self.released.relation), alphas)


def fit(
    X: Any,
    y: Any,
    *,
    algorithm: str,
    epsilon: float,
    delta: float | str | None = None,
    loss: str = "logistic",
    l1: float = 0.0,
    l2: float = 0.0,
    w2: float = 0.0,
    seed: int | None = None,
    accounting: str = "paper",
    relation: str | None = None,
    bound: Literal["check", "rescale"] = "check",
    start: str = "zero",
    release_noise: Literal["numpy", "opendp"] = "numpy",
    precision: Literal["float64", "float32"] = "float64",
    **settings: Any,
) -> Fit:
    """Fit one model to (X, y) by a private optimiser, and check what it spent.

    Args:
        X: (n, d) array or scipy.sparse matrix of finite numbers, or a dask array, whose blocks of rows stay with the
            workers of the active `distributed.Client`: sums over them are taken there. n counts as public.
        y: (n,) labels -1/+1 for logistic, sigmoid and ramp loss, numbers for squared loss, numbers >= 0 for phase loss.
        algorithm: a name from `dpbench list algorithms`, or "path/to/file.py:Class".
        epsilon: the budget ε > 0.
        delta: δ in [0, 1), "n^-2" or "n^-1"; None takes the algorithm's own rule (n⁻², or 0 for pure DP).
        loss: "logistic", "sigmoid", "squared", "pseudo-huber", "ramp" or "phase".
        l1, l2, w2: weights of ‖w‖₁, ‖w‖²/2 and Σ w²/(1+w²).
        seed: None draws from the operating system's entropy. With a number the noise can be computed again by whoever
            guesses it, and taken off: for tests and examples; `guarantee` then says so.
        accounting: "paper", "tight", or a zCDP conversion ("text", "bs16", "cks20", "standard").
        relation: "add-remove" or "replace-one"; None takes the algorithm's own. An add/remove algorithm runs under
            replace-one at twice its sensitivities, one for replace-one under nothing else.
        bound: rows beyond the bound the algorithm's proof needs are an error ("check"), or are scaled down to it
            one by one ("rescale").
        start: "zero", "unit" (a random unit vector) or "normal".
        release_noise: "numpy" adds float64 noise; "opendp" (extra `release`) draws it exactly, by the samplers of a
            library made for releases, about 1000 times as slowly.
        precision: "float64" or "float32", in which rows are kept and multiplied; sums are float64 in both. Rows that
            rounding to float32 would take beyond the bound are kept within it.
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
    if bound not in ("check", "rescale"):
        raise UserError(f'bound must be "check" or "rescale", got {bound!r}')
    if precision not in PRECISIONS:
        raise UserError(f"precision must be {' or '.join(PRECISIONS)}, got {precision!r}")
    if release_noise not in ("numpy", "opendp"):
        raise UserError(f'release_noise must be "numpy" or "opendp", got {release_noise!r}')
    if seed is not None and release_noise != "numpy":
        raise UserError(f"seed: release_noise={release_noise!r} draws from the system's entropy alone; leave seed out")
    method, fixed = algorithms.resolve(algorithm)
    needed = method.needs.row_bound(losses.get(loss).name)
    declared: dict[str, Any] = {"loss": loss, "l1": l1, "l2": l2, "w2": w2, "name": "own data"}
    if needed is not None:  # noise is scaled by the declared bound, never by the rows at hand
        declared |= dict(zip(("row_bound_norm", "row_bound"), needed, strict=True))
    checked = functools.partial(_checked, method.name, needed, bound, precision)
    problem: Problem
    if shards.is_lazy(X):
        problem = shards.of_arrays(X, y, functools.partial(_shard, checked, losses.get(loss)), **declared)
        if problem.loss.binary and abs(problem.mean_label) == 1:
            raise DataError(f"y: the only label is {problem.mean_label:g}; give both -1 and +1")
    else:
        labels: Literal["binary", "real"] = "binary" if losses.get(loss).binary else "real"
        problem = Problem(*checked(X, y, labels), **declared)
    method.needs.check(problem, method.name)
    parsed = method.complete(problem, make_settings(method, {**fixed, **settings}))
    budget = Budget(
        epsilon=positive("epsilon", epsilon),
        delta=delta_value(check_delta(method.delta if delta is None else delta), problem.n),
        relation=method.relation if relation is None else method.under(relation),
        accounting=method.accounting(accounting),
    )
    key = secrets.token_hex(32) if seed is None else f"fit/{method.name}/{budget}/{parsed}/{seed}"
    W = starts.draw(start, problem.d, stream(key, "init"))[None]
    mechanisms: type[Mechanisms] = Mechanisms
    if release_noise == "opendp":
        from dpbench.privacy.opendp import OpenDPMechanisms as mechanisms
    with threadpool_limits(1):
        run = run_batch(problem, method, [parsed], W, budget, [key], mechanisms_class=mechanisms)
    if run.errors[0]:
        raise UserError(f"{method.name}: {run.errors[0]}")
    flaw = method.flaw(parsed, budget.accounting)
    found = guarantee(run.mechanisms.ledger, 0, budget, method.labels)
    if method.private and not flaw and found.error:
        raise PrivacyError(f"{method.name}: {found.error}")
    released = Released(
        w=run.W[0],
        epsilon=budget.epsilon,
        delta=budget.delta,
        relation=budget.relation.value,
        epsilon_planned=found.planned,
        checked_by=found.checked_by,
        ledger=run.mechanisms.ledger.summary(),
        noise=release_noise,
        counts_public=method.public(parsed),
        composition=run.mechanisms.ledger.planned(0),
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
        guarantee=_guarantee(released, method, flaw, seed),
        settings=msgspec.structs.asdict(parsed),
    )


def _guarantee(released: Released, method: Algorithm, flaw: str, seed: int | None) -> str:
    if flaw or not method.private:
        return f"none: {flaw or f'{method.name} looks at the data without paying'}"
    if seed is not None:
        return REPRODUCIBLE
    public = ", ".join(["n", *([released.counts_public] if released.counts_public else [])])
    return (
        f"(ε = {released.epsilon:g}, δ = {released.delta:.3g})-DP under {released.relation} neighbours; "
        f"counts as public: {public}"
    )


def _shard(checked: Callable[..., tuple[Any, np.ndarray]], loss: losses.Loss, X: Any, y: Any) -> Rows:
    X, y = checked(X, y, "real")
    loss.check_labels(y)
    return Rows(X, y)


def _checked(
    method: str,
    needed: tuple[str, float] | None,
    bound: str,
    precision: str,
    X: Any,
    y: Any,
    labels: Literal["binary", "real"],
) -> tuple[Any, np.ndarray]:
    """(X, y) as the solvers take them: finite, of this precision, within the bound."""
    X, y = datasets.check_arrays(X, y, labels=labels, single=precision == "float32")
    X = _bounded_rows(X, method, needed, bound)
    if precision == "float32":
        if hasattr(X, "tocsr"):
            raise UserError("precision: sparse rows are kept as float64; leave precision out")
        X = X.astype(np.float32, copy=False)
        if needed is not None:
            norms = row_norms(X, 2 if needed[0] == "l2" else 1)
            beyond = norms > needed[1]
            if beyond.any():
                X = X * np.where(beyond, needed[1] * WITHIN / np.maximum(norms, needed[1]), 1)[:, None].astype(X.dtype)
    return X, y


def _bounded_rows(X: Any, method: str, needed: tuple[str, float] | None, bound: str) -> Any:
    """X, or X with the rows beyond what the algorithm needs scaled down to it; DataError if they must not be."""
    if needed is None:
        return X
    kind, limit = needed
    order = 2 if kind == "l2" else 1
    norms = row_norms(X, order)
    slack = 1e-12 if X.dtype == np.float64 else 1e-6  # a row divided by its norm has norm 1 up to rounding
    if norms.max(initial=0) <= limit * (1 + slack):
        return X
    if bound == "check":
        mark = "₂" if order == 2 else "₁"
        raise DataError(
            f"X: {np.sum(norms > limit):,} of {len(norms):,} rows have ‖x‖{mark} > {limit:g} (largest "
            f"{norms.max():.4g}), beyond what {method}'s proof covers; scale the columns by public constants, or "
            'pass bound="rescale" to divide each such row by its norm'
        )
    factors = limit / np.maximum(norms, limit)
    return X.multiply(factors[:, None]).tocsr() if hasattr(X, "tocsr") else X * factors[:, None].astype(X.dtype)
