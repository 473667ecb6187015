"""Every registered algorithm's iteration against textbook NumPy and against the machine's roofline, on one core.

ours: seconds of one iteration of one replicate, for a batch of 1 and of `BATCH` replicates that advance together,
everything counted that a bound run does: noise, ledger, streams. textbook: the same iteration in `textbook`. The two
are timed in turns, and times and ratios are medians over the rounds. roofline: the least time that the iteration's
arithmetic (at dgemm's rate) and reading the data (at stream's) take for a replicate of the batch; it leaves out
exponentials, noise and Python, so nobody reaches 100 %. All times are processor time.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import textbook
from benchmarks.machine import Roofline, seconds
from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.registry import BUILTIN
from dpbench.privacy.budget import Budget
from dpbench.problems import Problem
from dpbench.run.bind import BoundRun
from dpbench.run.job import delta_value

ADULT = (45_222, 105)  # adult with an intercept
PHASE = (20_000, 20)
BATCH, ROUNDS = 15, 5


@dataclass(frozen=True)
class Case:
    """How to run one algorithm for about `T` iterations, and what an iteration needs at the least.

    settings: with the iterations left out if the field is called T. flops and rows are functions of (n, d): floating
    point operations of a replicate, and rows of X read by a replicate alone (own) or by the batch together (shared).
    """

    T: int
    textbook: Callable | None
    settings: dict[str, Any] = field(default_factory=dict)
    problem: str = "logistic"
    flops: Callable[[int, int], float] = lambda n, d: 4.0 * n * d
    own: Callable[[int, int], float] = lambda n, d: 0.0
    shared: Callable[[int, int], float] = lambda n, d: float(n)
    unit: str = "iteration"


def second_order(n, d):
    """Gradient, symmetric half of the Hessian, eigenvectors."""
    return 4.0 * n * d + n * d**2 + 9.0 * d**3


NEWTON = Case(4, textbook.newton, flops=second_order, shared=lambda n, d: 2.0 * n)
LAPLACE = Case(15, textbook.nesterov, problem="l1-rows")
ROWS_ONCE = Case(
    2000,
    textbook.zeroth_order,
    {"M": 4000, "T": 2000},
    "phase",
    flops=lambda n, d: 6.0 * d**2,
    own=lambda n, d: 1.0,
    shared=lambda n, d: 0.0,
)
SMALL = {"alpha": 0.005, "cap": 10}  # a tolerance that ten iterations do not reach
SADDLE = Case(10, textbook.saddle_point_escape, SMALL, "nonconvex")
SAMPLE = ADULT[0] // 50
SADDLE_SAMPLED = Case(
    10,
    functools.partial(textbook.saddle_point_escape, m=SAMPLE),
    SMALL,
    "nonconvex",
    flops=lambda n, d: 4.0 * SAMPLE * d,
    own=lambda n, d: SAMPLE,
    shared=lambda n, d: 0.0,
)

CASES = {
    **dict.fromkeys(
        ("aop", "objpert", "objpert-pure", "output-perturbation", "phased-erm"),
        Case(1, textbook.objective_perturbation, flops=lambda n, d: 5 * n * d * (4.0 + d), unit="fit"),
    ),
    "cubic-newton": Case(
        1,
        textbook.cubic_newton,
        problem="ridge",
        flops=lambda n, d: 4.0 * n * d + n * d**2 + 2000 * 2.0 * d**2,
        shared=lambda n, d: 2.0 * n,
    ),
    "boosted-ssp": Case(
        10,
        textbook.boosted_least_squares,
        problem="squared",
        shared=lambda n, d: 1.1 * n,
        flops=lambda n, d: 4.0 * n * d + 0.1 * n * d**2 + 0.9 * d**3,
    ),
    "damped-newton": Case(4, textbook.damped_newton, flops=second_order, shared=lambda n, d: 2.0 * n),
    "dp-accelerated-nesterov": Case(15, textbook.accelerated, problem="ridge"),
    "dp-cd": Case(
        300,
        textbook.coordinate_descent,
        {"passes": 300 / ADULT[1]},
        flops=lambda n, d: 4.0 * n,
        own=lambda n, d: n / d,
        shared=lambda n, d: 0.0,
    ),
    "dp-gcd": Case(10, textbook.greedy_coordinate_descent, {"passes": 10}),
    "dp-gd": Case(15, textbook.gradient_descent),
    "dp-adam": Case(15, textbook.gradient_descent),
    "dp-gd-average": Case(15, textbook.gradient_descent),
    "dp-frank-wolfe": Case(15, textbook.gradient_descent),
    "dp-gd-last": Case(15, textbook.gradient_descent, problem="ridge"),
    "dp-gd-oracle": Case(4, textbook.oracle_step, shared=lambda n, d: 2.0 * n),
    **dict.fromkeys(("dp-gd-laplace", "dp-hb", "dp-masg", "dp-masg-opt", "dp-nag", "dp-nag-opt"), LAPLACE),
    "dp-mf": Case(
        100,
        textbook.sgd,
        {"epochs": 2, "batches": 50},
        flops=lambda n, d: 0.08 * n * d,
        own=lambda n, d: 0.02 * n,
        shared=lambda n, d: 0.0,
    ),
    "dp-newton": NEWTON,
    "dp-newton-general": NEWTON,
    "dp-newton-minibatch": Case(
        6,
        textbook.newton_minibatch,
        flops=lambda n, d: 0.1 * (4.0 * n * d + n * d**2) + d**3 / 3,
        own=lambda n, d: 0.2 * n,
        shared=lambda n, d: 0.0,
    ),
    "bolt-on": Case(
        2000,
        textbook.sgd,
        {"epochs": 40, "batch": ADULT[0] // 50, "step": 0.1},
        flops=lambda n, d: 0.08 * n * d,
        own=lambda n, d: 0.02 * n,
        shared=lambda n, d: 0.0,
    ),
    "dp-sgd": Case(
        100, textbook.sgd, flops=lambda n, d: 0.08 * n * d, own=lambda n, d: 0.02 * n, shared=lambda n, d: 0.0
    ),
    "dp-sgd-1": Case(
        20_000,
        textbook.sgd_one,
        {"passes": 20_000 / ADULT[0]},
        flops=lambda n, d: 6.0 * d,
        own=lambda n, d: 1.0,
        shared=lambda n, d: 0.0,
    ),
    "o2nc": ROWS_ONCE,
    "o2nc-naive": ROWS_ONCE,
    "o2nc-tree": ROWS_ONCE,
    **dict.fromkeys(("opt", "opt-ls", "2opt", "2opt-ls", "dp-gd-2ns"), SADDLE),
    **dict.fromkeys(("opt-b", "2opt-b"), SADDLE_SAMPLED),
    "dp-tr": Case(4, textbook.trust_region, SMALL | {"cap": 4}, "nonconvex", second_order, shared=lambda n, d: 2.0 * n),
    "dp-tr-b": Case(
        10,
        functools.partial(textbook.trust_region, m=SAMPLE),
        SMALL,
        "nonconvex",
        flops=lambda n, d: second_order(SAMPLE, d),
        own=lambda n, d: 2.0 * SAMPLE,
        shared=lambda n, d: 0.0,
    ),
}


@dataclass(frozen=True)
class Line:
    """Medians: seconds per iteration and replicate, and the ratios taken round by round."""

    algorithm: str
    unit: str
    single: float
    batched: float
    textbook: float | None
    speedup_single: float | None
    speedup_batched: float | None
    roofline: float | None
    work_rates: tuple[float, float]  # flops of `Algorithm.work` per second, k = 1 and BATCH: see `cluster_simulation`

    @property
    def share(self) -> float | None:
        """How much of the roofline's speed a replicate of the batch has."""
        return None if self.roofline is None else self.roofline / self.batched


def case_of(name: str) -> Case:
    """The case of an algorithm; without one here, what its settings suggest."""
    if name in CASES:
        return CASES[name]
    fields = algorithms.get(name).Settings.__struct_fields__
    return Case(10, None, {} if "T" in fields else {"passes": 1.0} if "passes" in fields else {})


def lines(machine: Roofline, names: list[str] | None = None) -> Iterator[Line | str]:
    """A `Line` for every registered algorithm, or one line on why it could not be measured."""
    with threadpool_limits(1):
        for name in names or sorted(BUILTIN):
            case = case_of(name)
            try:
                yield measure(name, case, machine)
            except Exception as error:  # one algorithm's defect must not cost the numbers of all others
                yield f"{name}: not measured: {type(error).__name__}: {error}"


def measure(name: str, case: Case, machine: Roofline) -> Line:
    """Time ours at k = 1 and k = BATCH and the textbook's in turns."""
    problem = PROBLEMS[case.problem]()
    runs = {"single": functools.partial(ours, name, case, problem, 1)}
    runs["batched"] = functools.partial(ours, name, case, problem, BATCH)
    done = {what: run() for what, run in runs.items()}  # warm: calibrations are cached, data paged in
    counts = {what: iterations for what, (iterations, _) in done.items()}
    counts["batched"] *= BATCH
    if case.textbook is not None:
        rng = np.random.default_rng(0)
        plain = max(1, min(case.T, 2000 if case.unit == "iteration" else 1))
        runs["textbook"] = functools.partial(case.textbook, np.asarray(problem.X), problem.y, plain, rng)
        counts["textbook"] = plain
    rounds = [{what: seconds(run) / counts[what] for what, run in runs.items()} for _ in range(ROUNDS)]
    median = {what: statistics.median(one[what] for one in rounds) for what in runs}
    n, d = problem.n, problem.d
    bytes_read = 8 * d * (case.own(n, d) + case.shared(n, d) / BATCH)
    return Line(
        name,
        case.unit,
        median["single"],
        median["batched"],
        median.get("textbook"),
        _ratio(rounds, "single"),
        _ratio(rounds, "batched"),
        machine.seconds(case.flops(n, d), bytes_read) if case.textbook else None,
        tuple(done[what][1] / median[what] for what in ("single", "batched")),
    )


def _ratio(rounds: list[dict[str, float]], ours: str) -> float | None:
    return statistics.median(one["textbook"] / one[ours] for one in rounds) if "textbook" in rounds[0] else None


def ours(name: str, case: Case, problem: Problem, k: int) -> tuple[int, float]:
    """Run k replicates together; returns the iterations that each did, and `Algorithm.work` of one iteration."""
    method, fixed = algorithms.resolve(name)
    fields = method.Settings.__struct_fields__
    wanted = {"T": case.T} if "T" in fields and "T" not in case.settings else {}
    settings = method.complete(problem, make_settings(method, {**fixed, **wanted, **case.settings}))
    method.needs.check(problem, name)
    budget = Budget(
        epsilon=1.0,
        delta=delta_value(method.delta, problem.n),
        relation=method.relation,
        accounting=method.accounting("paper"),
    )
    # As the planner batches them: seeds, or settings on one draw of noise.
    keys = [f"bench/{0 if method.common_random else i}" for i in range(k)]
    start = np.random.default_rng(1).standard_normal((k, problem.d)) / np.sqrt(problem.d)
    run = BoundRun(method, problem, [settings] * k, [budget] * k, start, keys).run()
    work = method.work(problem.n, problem.d, settings)
    if case.unit != "iteration":
        return 1, work
    done = next((run.columns[name] for name in ("iterations", "T") if name in run.columns), case.T)
    iterations = max(1, round(float(np.mean(done))))
    return iterations, work / iterations


@functools.cache
def _unit_rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]
    return X, rng.choice([-1.0, 1.0], n)


def _logistic(**given) -> Problem:
    X, y = _unit_rows(*ADULT)
    return Problem(X, y, **{"row_bound": 1.0, **given})


def _phase() -> Problem:
    X, _ = _unit_rows(*PHASE)
    return Problem(X, (X @ np.ones(PHASE[1])) ** 2, loss="phase", row_bound=1.0)


PROBLEMS = {
    "logistic": functools.cache(_logistic),
    "squared": functools.cache(functools.partial(_logistic, loss="squared")),
    "ridge": functools.cache(functools.partial(_logistic, l2=1e-2)),
    "l1-rows": functools.cache(functools.partial(_logistic, l2=0.02, row_bound=20.0, row_bound_norm="l1")),
    "nonconvex": functools.cache(functools.partial(_logistic, w2=1e-3)),
    "phase": functools.cache(_phase),
}
