"""The check of a method that is not dpbench's own: it runs where no rows are, at several sizes, and is run again.

Privacy is the server's, by construction (`dpbench.serving.server`), so no test of neighbours says more of the method.
What a check shows is whether it can be served at all, within its plan and its ε, and whether what it returns follows
from what was released to it: where a clock, a file or randomness of its own enter, the second run differs.
"""

from __future__ import annotations

import numpy as np

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import AuditCase, make_settings
from dpbench.auditing.cases import COLUMNS, ITERATIONS, ROWS
from dpbench.auditing.neighbours import probes
from dpbench.auditing.runs import Audit
from dpbench.errors import PrivacyError, UserError
from dpbench.problems import Problem
from dpbench.run.bind import bind, budget_of
from dpbench.run.execute import one_thread
from dpbench.serving import process
from dpbench.serving.method import ServedMethod

SIZES = tuple(zip(ROWS, COLUMNS, ITERATIONS, strict=True))  # fewer than of methods in process: each is run twice


def audit_served(name: str, epsilon: float, *, seed: int = 0, loss: str = "") -> Audit:
    """Serve the method `name` on drawn rows at each of `SIZES`, and repeat each run without rows.

    A size that the method itself refuses is listed; one at least has to be run. Raises UserError for what is no method.
    """
    method, fixed = algorithms.resolve(algorithms.SERVED + name)
    assert isinstance(method, ServedMethod)
    done = Audit(name, epsilon, 0.0, 0, {}, code=process.isolation())
    lines, why, steps = dict[str, str](), "", "T" in method.Settings.__struct_fields__
    for n, d, T in SIZES:
        size = f"n = {n}, d = {d}" + (f", T = {T}" if steps else "")
        try:
            settings = fixed | ({"T": T} if steps else {})
            delta, lines[size] = _served(method, _drawn(method, loss, n, d), settings, epsilon, seed)
            done = done._replace(delta=delta, runs=done.runs + 1)
        except PrivacyError as error:
            return done._replace(defect=f"{size}: {error}", served=lines)
        except UserError as error:
            why = lines[size] = str(error)
    return done._replace(defect="" if done.runs else why, served=lines)


def _served(
    method: ServedMethod, problem: Problem, settings: dict[str, object], epsilon: float, seed: int
) -> tuple[float, str]:
    """(δ, the result of one run in words); PrivacyError where it does not keep its ε, or its word."""
    accounting = rules.accounting(method)
    budget = budget_of(method, problem.n, epsilon, None, method.under(rules.RELATION), accounting)
    given = make_settings(method, settings)
    bound = bind(method, problem, [given], [budget], np.zeros((1, problem.d)), [f"audit/{seed}"])
    with one_thread():
        run = bound.run()
    if error := bound.guarantee(run).error:
        raise PrivacyError(error)
    if differs := process.repeat(method.code, run.evidence):
        raise PrivacyError(f"it {differs}: a clock, a file, or randomness that is not mechanisms.coins")
    return budget.delta, f"{len(run.evidence.transcript)} requests, ε = {bound.guarantee(run).planned:.4g}, repeated"


def _drawn(method: ServedMethod, loss: str, n: int, d: int) -> Problem:
    """Rows of all lengths within the bound."""
    weight = 0.01 * ("l2" in method.needs.regularisers)
    return probes(method, AuditCase(loss=loss, n=n, d=d, l2=weight), rules.RELATION)[0].first
