"""`pytest --dp-audit`: the audit of anybody's learners as tests, by the fixture `dp_audit`.

Loaded by pytest wherever dpbench is installed, so dpbench itself is imported when the fixture is first used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import dpbench

LINES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("dpbench", "lower bounds on the privacy loss of what is implemented")
    group.addoption("--dp-audit", action="store_true", help="Run the tests that use the fixture dp_audit.")
    group.addoption("--dp-audit-runs", type=int, metavar="N", help="Runs of each audit, half on either data set.")


def pytest_configure(config: pytest.Config) -> None:
    """Where the audits of this session are written down."""
    config.stash[LINES] = []


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """dp_audit(target, epsilon, runs=None, seed=0): the `Audit` of a target; the test fails where a bound is above ε.

    target: a callable (X, y, epsilon, rng) → vector, or an `dpbench.auditing.functions.AuditTarget`.
    """
    if not request.config.getoption("--dp-audit"):
        pytest.skip("an audit takes minutes: pytest --dp-audit runs it")

    def audit(target: Any, epsilon: float, *, runs: int | None = None, seed: int = 0) -> Any:
        runs, before = runs or request.config.getoption("--dp-audit-runs"), time.perf_counter()
        (done,) = dpbench.audit(target, epsilon, runs=runs, seed=seed)
        seconds = time.perf_counter() - before
        bound = max((verdict.bound for verdict in done.verdicts.values()), default=float("nan"))
        shows = done.reach if done.runs else float("nan")
        line = f"{done.algorithm}  {epsilon:g}  {done.runs}  {seconds:.0f}  {bound:.3g}  {shows:.3g}"
        request.config.stash[LINES].append(f"{line}  {'pass' if done.passed else 'FAIL'}")
        if not done.passed:
            pytest.fail(
                f"{done.algorithm}: {done.defect or f'ε ≥ {bound:.3g}, {epsilon:g} was asked for'}", pytrace=False
            )
        return done

    return audit


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the audits cost, and what they could have shown."""
    if lines := terminalreporter.config.stash[LINES]:
        terminalreporter.section("privacy audits")
        terminalreporter.write_line("target  ε  runs  seconds  bound  largest bound so many runs can have  verdict")
        for line in lines:
            terminalreporter.write_line(line)
        terminalreporter.write_line("a pass proves nothing; a FAIL holds at 99 % confidence")
