"""The audits that a user asks for: of a method or learner, of every kind of release."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dpbench.auditing import releases
from dpbench.auditing import runs as audits
from dpbench.auditing.foreign import Target, audit_callable, of_solver
from dpbench.auditing.one_run import audit_in_one_run
from dpbench.auditing.releases import Row as ReleaseAudit
from dpbench.auditing.runs import Audit
from dpbench.errors import UserError, at_least, positive, several


def audit(
    algorithm: str | Target | Callable[..., Any] = "all",
    epsilon: float | Iterable[float] = 1.0,
    *,
    runs: int | None = None,
    seed: int = 0,
    one_run: bool = False,
    loss: str = "",
) -> list[Audit]:
    """Compute empirical lower bounds on an algorithm's ε and compare them with its ledger's claims; a pass proves
    nothing.

    Args:
        algorithm: a name, "file.py:Class", or "all" private ones; or somebody else's learner, (X, y, epsilon, rng) →
            vector or a `dpbench.auditing.foreign.Target`, itself or as "file.py:name".
        epsilon: the ε > 0 that is claimed: one or several.
        runs: half of them on either of two neighbours, at least 40; None takes enough for bounds near the claim, for
            "all" enough to notice halved noise.
        seed: of all random numbers, >= 0.
        one_run: a bound on ε from one run with many canaries (`dpbench.auditing.one_run.audit_in_one_run`), which is
            quick, and low.
        loss: on which one algorithm is audited, one of an installed package too; "" for that of its own case.

    Returns:
        An `Audit` per ε, of "all" per algorithm and ε.

    Raises:
        UserError: for an algorithm that is not known or not private, and for any argument out of its range.
    """
    at_least("seed", seed, 0)
    epsilons = [positive("epsilon", each) for each in several(epsilon)]
    learner = algorithm if not isinstance(algorithm, str) else audits.learner(algorithm) or of_solver(algorithm)
    if loss and (one_run or algorithm == "all" or learner is not None):
        raise UserError("loss: goes with one algorithm of dpbench's own kind, and not with one run")
    if one_run:
        if runs is not None or algorithm == "all":
            raise UserError(f"one run: takes one algorithm, and no {'runs' if runs is not None else 'list of all'}")
        return [audit_in_one_run(learner or algorithm, each, seed=seed) for each in epsilons]
    if learner is not None:
        return [audit_callable(learner, each, runs=runs, seed=seed) for each in epsilons]
    assert isinstance(algorithm, str)
    names, near = (audits.auditable(), False) if algorithm == "all" else ([algorithm], True)
    return [audits.audit(name, each, runs=runs, seed=seed, near=near, loss=loss) for name in names for each in epsilons]


def audit_releases(*, runs: int | None = None, seed: int = 0) -> list[ReleaseAudit]:
    """Audit every kind of release alone, against its ledger entry, and weakened: noise halved, sample doubled.

    runs: of each, at least 400; None takes 20,000. seed: as of `audit`. Raises UserError for too few runs.
    """
    return releases.table(seed=seed) if runs is None else releases.table(runs=runs, seed=seed)
