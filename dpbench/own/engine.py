"""A plan carried out: the only code that hands rows of one's own to an algorithm; scores calibrated by its releases."""

from __future__ import annotations

import math
import secrets
import traceback
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from dpbench import datasets
from dpbench.algorithms.base import BaseSettings
from dpbench.algorithms.gradient_descent import TailGradient
from dpbench.algorithms.newton_step import ReleasedStep
from dpbench.errors import Defect, PrivacyError, UserError
from dpbench.own import inputs
from dpbench.own import row_bound as row_bounds
from dpbench.own import window as windows
from dpbench.own.spec import FitPlan
from dpbench.privacy.check import Guarantee, compose
from dpbench.privacy.ledger import Composition
from dpbench.privacy.noise import stream
from dpbench.problems import catalogue
from dpbench.problems.persons import OfPersons, Persons
from dpbench.problems.risk import Diverged
from dpbench.run.bind import BatchRun, BoundRun, bind
from dpbench.run.execute import one_thread
from dpbench.schema import Target
from dpbench.schema.encoding import Encoding, target_values

GUESS, SPREAD = math.log(2.0), 1.0  # of ln s before anything is released
SLOPE, BIAS, RISE = 0.15, 0.15, 0.02  # relative errors of <g, W̄>, of what is added to it, and of D
FACTORS = np.geomspace(0.2, 12.0, 60)
DRAWS = 1000
UNFINISHED = "did not end as its proof asks for, so nothing is released"  # by how much would depend on the data


@dataclass(frozen=True)
class Fitted:
    """What a plan made of the rows.

    Attributes:
        plan: what was carried out.
        W: (models, d), one a row; of a loss of several outputs (outputs, d), see `calibration_factor` for their length.
        bound: on the length of the rows, where it was found; None elsewhere.
        window: around the target and the middles of the columns; None where there is none.
        releases: as planned, or as said while it ran; of methods without a guarantee too.
        epsilon, checked_by: what they compose to by the second accountant.
        ledger: one row per model and kind of release, the noise that was drawn with it.
        settings: of the method, completed; they may look at the data where the method counts that as public.
        diagnostics: objective, seconds, status, the realised ε and the method's own, of each model: read off the data
            without noise, so no guarantee covers them.
        step: what was released for intervals, where they were asked for.
    """

    plan: FitPlan
    W: np.ndarray
    bound: float | None
    window: windows.Window | None
    releases: Composition
    epsilon: float
    checked_by: str
    ledger: list[dict[str, Any]]
    settings: dict[str, Any]
    diagnostics: list[dict[str, Any]] = field(repr=False)
    step: ReleasedStep | None = None

    def scores(self, X: np.ndarray, unit: float) -> np.ndarray:
        """(n, outputs): of encoded rows X = z/unit, <x, w>; with a window predictions in [-1, 1] of the bounds."""
        if self.window is not None:
            X = self.window.rows(X, unit, self.plan.spec.lengths.numbers)
        elif self.bound is not None:
            X = row_bounds.shortened(X.astype(float), unit / self.bound)
        scores = X @ self.W.T
        return scores if self.window is None else self.window.predictions(scores)


def rows_of(plan: FitPlan, encoding: Encoding, target: Target, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """(rows (n, d), labels (n,) as the loss takes them) of a table or an array that a plan's fit is to.

    Rows on a grid of 2⁻¹⁶ have 17 bits, so float32 holds them whole, in half of the memory.
    """
    single = plan.exact or plan.spec.precision == "float32"
    rows = encoding.rows(X, fitting=True, dtype=np.float32 if single else np.float64)
    values, known = target_values(target, y)
    rows[~known] = 0.0  # an unknown label moves no model
    return rows, np.where(values == 1, 1.0, -1.0) if len(target.classes or ()) == 2 else values.astype(float)


def execute(
    plan: FitPlan,
    X: Any,
    y: Any,
    *,
    unit: float = 1.0,
    seed: int | None = None,
    start: str = "zero",
    check: bool = False,
    owned: bool = True,
    persons: Persons | None = None,
) -> Fitted:
    """Fit the models of a plan.

    Args:
        plan: of as many rows and columns.
        X: (n, d) rows of ‖x‖₂ ≤ 1, which were divided by `unit`; an array, or sparse.
        y: (n,) labels as the loss takes them, or numbers of classes, from 0.
        seed: None draws from the system's entropy. start: see `dpbench.fit`.
        owned: whether X may be written to: rows are shortened and rounded in place.
        check: refuse data that do not fit, which tells of them, instead of repairing them row by row.
        persons: whose the rows are, of a plan with a unit.

    Raises:
        PrivacyError: what was released does not keep the ε. Defect: it is not what was planned.
    """
    spec, whole, of_persons = plan.spec, plan.whole, None
    if (persons is None) != (not spec.unit) or (persons and persons.count != spec.n):
        raise Defect(f"{plan.name}: its rows are not of the persons that were planned for")
    if persons is not None:
        if not owned:
            X, y = datasets.as_arrays(X, y, single=spec.precision == "float32")
        # Once, from the rows as they were given: all releases give a person's rows the same weights.
        of_persons = persons.weighted(X, y)
    # All that follows takes what is released first for public, as adaptive composition allows.
    X, y, bound, window, lines = _before_the_models(plan, X, y, unit, seed, of_persons)
    ledgers = [{"model": "all", **line} for line in lines]
    if isinstance(plan.bound, windows.WindowSplit) and plan.bound.alone:
        nothing = {"objective": math.nan, "seconds": 0.0, "status": "done", "columns": {}}
        return Fitted(plan, np.zeros((1, spec.d)), bound, window, plan.releases, plan.epsilon, "basic composition",
                      ledgers, msgspec.structs.asdict(plan.settings),
                      [{**nothing, "epsilon_realised": plan.epsilon}])  # fmt: skip
    runs = [_model(plan, i, X, y, seed=seed, start=start, check=check, owned=owned, of_persons=of_persons)
            for i in range(plan.models)]  # fmt: skip
    ledgers += [{"model": i, **line} for i, (run, *_) in enumerate(runs) for line in run.mechanisms.ledger.summary()]
    parts = [*(plan.bound.parts if plan.bound else []),
             *((run.mechanisms.ledger.planned(0), said.planned, plan.each.delta) for run, said, _ in runs)]  # fmt: skip
    # What ran is held against what was shown, so a method cannot release more than its plan says.
    releases = tuple(entry for composition, _, _ in parts for entry in composition)
    if plan.releases and not plan.flaw and releases != plan.releases:
        raise Defect(f"{plan.name}: it ran by another plan than the one that was shown")
    epsilon = parts[0][1] if len(parts) == 1 else compose(parts, whole)
    W = np.stack([run.W[0] for run, *_ in runs]).reshape(plan.models * plan.problem.loss.outputs, -1)
    if window is not None and not window.intercept:
        W[:, 0] = 0.0  # of the intercept, which m̃ has: what was released there is noise
    (first, said, settings), *_ = runs
    tails = first.evidence
    if spec.classes > 2 and plan.problem.loss.family == "softmax" and tails:
        W *= calibration_factor(W, tails[0])
    seen = [{"objective": float(run.objective[0]), "seconds": run.seconds, "status": run.status[0],
             "epsilon_realised": said.realised, "columns": {name: value[0] for name, value in run.columns.items()}}
            for run, said, _ in runs]  # fmt: skip
    # What a plug-in says of its settings is shown, so it gets no data to say it of.
    shown = msgspec.structs.asdict(plan.settings if plan.foreign else settings)
    return Fitted(plan, W, bound, window, releases, epsilon, said.checked_by, ledgers, shown, seen,
                  tails[0] if spec.intervals else None)  # fmt: skip


def _before_the_models(
    plan: FitPlan, X: Any, y: Any, unit: float, seed: int | None, of_persons: OfPersons | None
) -> tuple[Any, Any, float | None, windows.Window | None, list[dict[str, Any]]]:
    """(rows and labels as the models take them, the bound and the window found first, the ledger's lines of these)."""
    spec, window, ledger = plan.spec, None, list[dict[str, Any]]()
    how = row_bounds.Releasing(plan.whole, seed, spec.arithmetic, of_persons)
    if plan.bound is None:
        return X, y, None, None, []
    if isinstance(plan.bound, windows.WindowSplit):
        window, ledger = windows.release(X, y, spec.lengths, unit, plan.bound, how)
        if not plan.bound.alone:
            X, y = window.rows(X, unit, spec.lengths.numbers), window.residuals(X, y)
        return X, y, window.bound, window, ledger
    if plan.bound.choice:
        window, ledger = windows.choose(y, plan.bound.choice, spec.d, how, X[:, 0] != 0)
        y = window.within(y)
    found = row_bounds.release(X, spec.lengths, unit, plan.bound, how)
    window = window and msgspec.structs.replace(window, bound=found.bound)
    return row_bounds.shortened(X, unit / found.bound), y, found.bound, window, [*ledger, *found.ledger]


def _model(
    plan: FitPlan, i: int, X: Any, y: Any, *, seed: int | None, start: str, check: bool, owned: bool,
    of_persons: OfPersons | None,
) -> tuple[BatchRun, Guarantee, BaseSettings]:  # fmt: skip
    """(run of the i-th model, or of class i against the rest; what both routes say of it; its settings, completed)."""
    labels = y if plan.models == 1 else np.where(y == i, 1.0, -1.0)
    problem = inputs.problem_of(
        X, labels, declared=plan.problem, method=plan.method.name, check=check, release=seed is None and not plan.flaw,
        exact=plan.exact, precision="float32" if owned and X.dtype == np.float32 else plan.spec.precision,
        steady=plan.spec.timing is not None or (plan.served and isinstance(X, np.ndarray)), owned=owned,
        of_persons=of_persons,
    )  # fmt: skip
    named = str(plan.settings).replace(", intervals=False", "")  # a seed draws what it drew before there were any
    key = secrets.token_hex(32) if seed is None else f"fit/{plan.method.name}/{plan.each}/{named}/{seed}"
    if i:
        key += f"/{i}"  # models of one seed share no noise
    run, bound = _run(plan, problem, catalogue.draw(start, problem.d, stream(key, "init"))[None], key, seed)
    said = bound.guarantee(run)
    if plan.method.private and not plan.flaw and said.error:
        raise PrivacyError(f"{plan.method.name}: {said.error}")
    return run, said, bound.settings[0]


def _run(plan: FitPlan, problem: Any, W: np.ndarray, key: str, seed: int | None) -> tuple[BatchRun, BoundRun]:
    """One model's run; of a method that is not ours no text of an error, which may hold data."""
    release, withheld = seed is None and not plan.flaw, ""
    kind = row_bounds.mechanisms_of(plan.exact, seed)
    # A sum's last digit depends on how threads split it, and a seeded fit is to be the same on any machine.
    with one_thread():
        try:
            bound = bind(plan.method, problem, [plan.asked], [plan.each], W, [key])
            run = bound.run(mechanisms_class=kind)
        except Diverged as error:
            raise UserError(f"{plan.method.name}: {error}") from None
        except Exception as error:
            if plan.foreign is None or not release or _raised_here(error):
                raise
            withheld = type(error).__name__
    if withheld:  # outside the handler, so that the error is not kept as this one's context
        raise UserError(
            f"{plan.foreign}: it raised {withheld}, whose text is withheld, as it may hold data; to read it, run the "
            "method with a seed, which is no release"
        )
    if run.errors[0]:
        raise UserError(f"{plan.method.name}: {UNFINISHED if release else run.errors[0]}")
    return run, bound


def _raised_here(error: BaseException) -> bool:
    """Whether the line that raised is dpbench's own, whose messages tell nothing of a release's data."""
    last = list(traceback.walk_tb(error.__traceback__))[-1][0]
    return str(last.f_globals.get("__name__", "")).startswith("dpbench.")


def calibration_factor(W: np.ndarray, tail: TailGradient) -> float:
    """The s > 0 by which the scores of several classes are multiplied, so that their probabilities mean what they say.

    Descent that stops early, as private descent does, leaves scores too small: the class with most of them is right
    more often than its probability says. What was released tells by how much, at no cost in ε. At the mean W̄ of the
    last m iterates the loss L(sW̄) falls in s at the rate -<g, W̄>, g the mean of the gradients released there. Their
    noise is in W̄ too, as each iterate is a sum of them times -η; so <g, W̄> is low by ησ²kd(m + 1)/(2m) on flat
    directions, which is added. L'(s) = D(s) - C, where C does not depend on s, and D(s) = E Σ_j p_j(sz) z_j is what it
    would be for scores z = W̄x of a row x in any direction: normal, of variance ‖W̄‖²/(kd). The calibrated s has
    L'(s) = 0.

    Where rows are few, noise is all there is, so s is weighed against a public guess by the noise's variance (the
    largest posterior density): ln s normal about ln 2 with deviation 1. W̄, g, σ, η, m are released or public, and so
    is s. The order of the classes stays, and so does every prediction. `benchmarks.calibration` measures it.

    Args:
        W: (k, d), the mean of the last iterates.
        tail: what was released along them.
    """
    size = float((W * W).sum())
    if not size > 0:  # nothing was learnt
        return 1.0
    fall, own = tail_slope(W, tail)
    # The same draws for every model: they stand for the integral of D, and hide nothing.
    z = np.random.default_rng(0).standard_normal((DRAWS, len(W))) * math.sqrt(size / W.size)
    start = _mean_score(1.0, z)
    rise = np.array([_mean_score(s, z) for s in FACTORS]) - start
    variance = tail.std**2 * size / tail.steps + (BIAS * own) ** 2 + (SLOPE * fall) ** 2 + (RISE * start) ** 2
    cost = (rise + fall) ** 2 / variance + ((np.log(FACTORS) - GUESS) / SPREAD) ** 2
    return float(FACTORS[np.argmin(cost)])


def tail_slope(W: np.ndarray, tail: TailGradient) -> tuple[float, float]:
    """(L'(1), what was added to <g, W> for the noise that is in both)."""
    own = tail.step * tail.std**2 * W.size * (tail.steps + 1) / (2 * tail.steps)
    return float(tail.mean @ W.ravel()) + own, own


def _mean_score(s: float, z: np.ndarray) -> float:
    """D(s) of scores z (b, k), whose mean is 0."""
    p = np.exp(s * (z - z.max(axis=1, keepdims=True)))
    return float(((p / p.sum(axis=1, keepdims=True) - 1 / z.shape[1]) * z).sum(axis=1).mean())
