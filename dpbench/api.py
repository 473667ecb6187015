"""The Python API: run one algorithm on arrays of your own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm, make_settings
from dpbench.errors import DataError, PrivacyError, UserError
from dpbench.execute import run_batch
from dpbench.jobs import check_delta, check_epsilon, delta_value
from dpbench.privacy.budget import Budget
from dpbench.privacy.streams import stream
from dpbench.privacy.verify import spent
from dpbench.problems import Problem, losses, starts


@dataclass(frozen=True)
class Fit:
    """What `fit` returns.

    w: (k, d) final iterates, a row per seed. objective: (k,) F(w) on the data given; both are diagnostics of a
    benchmark: the objective is not released privately.
    epsilon_spent: what the ledger composes to, by the independent accountant `checked_by`; at most `epsilon`.
    ledger: one row per kind of release: what was released, its noise multiplier, and how often.
    seconds: wall time of the whole batch of seeds. status: a word per seed, "done" or "diverged".
    """

    w: np.ndarray
    objective: np.ndarray
    epsilon: float
    delta: float
    epsilon_spent: float
    checked_by: str
    ledger: list[dict[str, Any]]
    seconds: float
    status: list[str]
    settings: dict[str, Any] = field(default_factory=dict)


def fit(
    X,
    y,
    *,
    algorithm: str,
    epsilon: float,
    delta: float | str | None = None,
    loss: str = "logistic",
    l1: float = 0.0,
    l2: float = 0.0,
    w2: float = 0.0,
    seeds: int = 1,
    accounting: str = "paper",
    relation: str | None = None,
    bound: Literal["check", "rescale"] = "check",
    start: str = "zero",
    **settings: Any,
) -> Fit:
    """Run a private optimiser on (X, y) and check what it spent.

    Args:
        X: (n, d) array or scipy.sparse matrix of finite numbers. n counts as public.
        y: (n,) labels -1/+1 for logistic, sigmoid and ramp loss, numbers for squared loss, numbers >= 0 for phase loss.
        algorithm: a name from `dpbench list algorithms`, or "path/to/file.py:Class".
        epsilon: the budget ε > 0.
        delta: δ in [0, 1), "n^-2" or "n^-1"; None takes the algorithm's own rule (n⁻², or 0 for pure DP).
        loss: "logistic", "sigmoid", "squared", "ramp" or "phase".
        l1, l2, w2: weights of ‖w‖₁, ‖w‖²/2 and Σ w²/(1+w²).
        seeds: number of independent replicates, which advance together.
        accounting: "paper", "tight", or a zCDP conversion ("text", "bs16", "cks20", "standard").
        relation: "add-remove" or "replace-one"; None takes the algorithm's own. An add/remove algorithm runs under
            replace-one at twice its sensitivities, one for replace-one under nothing else.
        bound: rows beyond the bound the algorithm's proof needs are an error ("check"), or are scaled down to it
            one by one ("rescale").
        start: "zero", "unit" (a random unit vector per seed) or "normal".
        **settings: the algorithm's settings, e.g. T=100.

    Raises:
        UserError: for any argument that does not fit, in one line that names it.
        DataError: for NaN, wrong shapes or labels, rows beyond the bound.

    This is a benchmark, not a release mechanism: noise is drawn in float64 from a seeded generator.
    """
    from dpbench.datasets import check_arrays

    if seeds < 1:
        raise UserError(f"seeds must be at least 1, got {seeds}")
    if bound not in ("check", "rescale"):
        raise UserError(f'bound must be "check" or "rescale", got {bound!r}')
    method, fixed = algorithms.resolve(algorithm)
    for name in ("l1", "l2", "w2"):
        if not 0 <= locals()[name] < np.inf:
            raise UserError(f"{name} must be a number >= 0, got {locals()[name]!r}")
    X, y = check_arrays(X, y, labels="binary" if losses.get(loss).binary else "real")
    X = _bounded_rows(X, method, bound)
    declared = {}
    if method.needs.row_norm is not None:  # noise is scaled by the declared bound, never by the rows at hand
        declared = dict(zip(("row_bound_norm", "row_bound"), method.needs.row_norm, strict=True))
    problem = Problem(X, y, loss=loss, l1=l1, l2=l2, w2=w2, name="own data", **declared)
    method.needs.check(problem, method.name)
    parsed = method.complete(problem, make_settings(method, {**fixed, **settings}))
    budget = Budget(
        epsilon=check_epsilon(epsilon),
        delta=delta_value(check_delta(method.delta if delta is None else delta), problem.n),
        relation=method.relation if relation is None else method.under(relation),
        accounting=method.accounting(accounting),
    )
    keys = [f"fit/{method.name}/{budget}/{parsed}/{seed}" for seed in range(seeds)]
    W = np.stack([starts.draw(start, problem.d, stream(key, "init")) for key in keys])
    with threadpool_limits(1):
        run = run_batch(problem, method, [parsed] * seeds, W, budget, keys)
        objective = problem.value(run.W)
    compositions = {run.mechanisms.ledger.of(i) for i in range(seeds)}
    checks = [spent(one, budget.delta, budget.relation) for one in compositions]
    worst = max(checks, key=lambda check: check.epsilon)
    if method.private and not method.flaw(parsed, budget.accounting) and not worst.within(budget):
        raise PrivacyError(f"{method.name}: the ledger composes to ε = {worst.epsilon:.6g} > {budget.epsilon:g}")
    return Fit(
        w=run.W,
        objective=objective,
        epsilon=budget.epsilon,
        delta=budget.delta,
        epsilon_spent=worst.epsilon,
        checked_by=worst.checked_by,
        ledger=run.mechanisms.ledger.summary(),
        seconds=run.seconds,
        status=run.status,
        settings={name: getattr(parsed, name) for name in parsed.__struct_fields__},
    )


def _bounded_rows(X, method: Algorithm, bound: str):
    """X, or X with the rows beyond the algorithm's bound scaled down to it; DataError if they must not be."""
    if method.needs.row_norm is None:
        return X
    kind, limit = method.needs.row_norm
    order = 2 if kind == "l2" else 1
    if hasattr(X, "tocsr"):
        norms = np.asarray(abs(X).power(order).sum(axis=1)).ravel() ** (1 / order)
    else:
        norms = np.linalg.norm(X, ord=order, axis=1)
    if norms.max(initial=0) <= limit * (1 + 1e-12):
        return X
    if bound == "check":
        mark = "₂" if order == 2 else "₁"
        raise DataError(
            f"X: {np.sum(norms > limit):,} of {len(norms):,} rows have ‖x‖{mark} > {limit:g} (largest "
            f"{norms.max():.4g}), beyond what {method.name}'s proof covers; scale the columns by public constants, or "
            'pass bound="rescale" to divide each such row by its norm'
        )
    factors = limit / np.maximum(norms, limit)
    return X.multiply(factors[:, None]).tocsr() if hasattr(X, "tocsr") else X * factors[:, None]
