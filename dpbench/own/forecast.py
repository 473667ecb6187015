"""What each method releases and scores on tables that a schema allows, and the ε or n that a target needs.

What is released follows from n, d, ε and δ: it is the plan that a fit would be checked by, made by the same code. What
it scores depends on the data, so it is simulated: models are fitted to worlds (`own.worlds`) by the plan of an
estimator, and an interval is what one more world would lie in with probability 0.9.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pandas as pd

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import PrivacyError, UserError
from dpbench.leaderboard import entrants
from dpbench.own import worlds
from dpbench.own.engine import execute
from dpbench.own.model import probabilities
from dpbench.own.row_bound import RowBound
from dpbench.own.spec import FitPlan, Spec, of_encoding, plan
from dpbench.own.worlds import Like, World
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.problems.persons import Persons
from dpbench.run.executors import pooled
from dpbench.run.job import check_delta, delta_value
from dpbench.schema import Schema
from dpbench.schema.encoding import Encoding, encoding_of

LARGEST = 10_000  # rows of a world; of more, the noise is made as small beside so many
ROWS_ALLOWED = (50, 10**12)  # n; beyond, the accountants' δ = n⁻² is lost in rounding
OUTSIDE = 0.05  # the share of tables that may lie below an interval over worlds, and above it
OTHERS = {
    "logistic": ("objpert", "dp-gd-average", "dp-gd", "dp-sgd"),
    "squared": ("boosted-ssp", "adassp", "dp-gd-average"),
    "softmax": ("dp-gd-average", "dp-gd", "dp-sgd"),
}
AS_ASKED = ("settings", "l2", "class_weights")  # what an estimator was given beside the defaults
SCORES = {"classes": ("AUC", "accuracy", "log loss", "kept"), "numbers": ("R²", "RMSE", "kept")}
LOSS = {"classes": "log loss", "numbers": "RMSE"}
TARGETS = {"auc": "AUC", "accuracy": "accuracy", "r2": "R²", "kept": "kept"}  # what can be asked for, by its name
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # that a needed ε is sought in
ROWS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # and a needed n, in units of the n given


@dataclass(frozen=True)
class Forecast:
    """One method at one ε.

    settings: those that differ from the method's defaults. releases: what would be released, with what noise; empty
    where the method says it only while it runs. epsilon_planned: what they compose to by the second accountant.
    scores: name → (worlds,). beats: share of the worlds in which it has a lower log loss, or RMSE, than the default at
    this ε; NaN of the default.
    """

    method: str
    epsilon: float
    delta: float
    settings: dict[str, Any]
    releases: list[str]
    epsilon_planned: float
    scores: dict[str, np.ndarray]
    beats: float

    def interval(self, score: str) -> tuple[float, float, float]:
        """See `quantiles`."""
        return quantiles(self.scores[score])


class Needed(NamedTuple):
    """What a target needs: of "ε" at n rows, or of "n" at that ε: (median, low, high), infinite beyond what was sought.

    at: the ε at which an n is needed, or the n at which an ε is. sought: the largest value that was tried.
    """

    what: str
    at: float
    median: float
    low: float
    high: float
    sought: float


@dataclass(frozen=True)
class Forecasts:
    """What `dpbench.plan` returns.

    forecasts: by ε, then method, the default first. references: what a model can be set against: name → score →
    (worlds,). left_out: method → reason. needed: by the default method. columns: of the encoded rows. simulated: rows
    of a world, fewer than `rows` where the noise was scaled. notes: what else there is to say.
    """

    task: str
    rows: int
    columns: int
    simulated: int
    worlds: int
    forecasts: list[Forecast]
    references: dict[str, dict[str, np.ndarray]]
    left_out: dict[str, str]
    needed: list[Needed]
    notes: list[str]

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of the scores."""
        return SCORES[self.task]

    def reference(self, label: str, score: str) -> tuple[float, float, float]:
        """(median, low, high) over the worlds of a score of one of the `references`."""
        return quantiles(self.references[label][score])

    def table(self) -> pd.DataFrame:
        """A row per method, ε and score: median and interval."""
        return pd.DataFrame(
            [
                {"epsilon": one.epsilon, "method": one.method, "score": score}
                | dict(zip(("median", "low", "high"), one.interval(score), strict=True))
                for one in self.forecasts
                for score in self.scores
            ]
        )


def quantiles(values: np.ndarray) -> tuple[float, float, float]:
    """(median, low, high) of a number per world, those that are not known left out.

    From 19 worlds on, one more lies between the last two with probability 0.9 at least: of m + 1 tables each is as
    likely to be the j-th smallest (split conformal prediction: Vovk, Gammerman and Shafer 2005).

    >>> quantiles(np.arange(1.0, 41.0))
    (20.5, 2.0, 39.0)
    """
    if not len(values := np.sort(values[~np.isnan(values)])):
        return np.nan, np.nan, np.nan
    beyond = max(int(OUTSIDE * (len(values) + 1) + 1e-9), 1)
    return float(np.median(values)), float(values[beyond - 1]), float(values[-beyond])


class Simulation(NamedTuple):
    """What all worlds of a forecast have in common.

    like: public rows, or None. row_bound: how a bound is found. asked: of a saved model, whose intercept all rows have,
    and whose settings, ridge and class weights its own method has; None: the defaults.
    """

    schema: Schema
    rows: int
    delta: float | str | None
    shares: Mapping[str, float]
    signal: float | None
    like: Like | None
    seed: int
    row_bound: RowBound | None = None
    asked: Spec | None = None

    @property
    def classes(self) -> int:
        """How many; 0 for numbers."""
        return len(self.schema.target.classes or ())

    def delta_at(self, rows: int) -> float:
        """δ of a fit on so many rows."""
        return delta_value(check_delta("n^-2" if self.delta is None else self.delta), rows)

    @property
    def encoding(self) -> Encoding:
        """What makes rows."""
        return encoding_of(self.schema, intercept=self.asked is None or self.asked.intercept)

    def plan(
        self, algorithm: str, epsilon: float, rows: int, *, delta: float | str | None, seeded: bool = False
    ) -> FitPlan:
        """What a fit would be; the same that an estimator's is. seeded: a world's, which is no release."""
        own = self.asked if self.asked is not None and self.asked.algorithm == algorithm else None
        return plan(Spec(
            **{name: getattr(own, name) for name in AS_ASKED if own is not None},
            **of_encoding(self.encoding, rows, self.classes), loss="logistic" if self.classes else "squared",
            epsilon=epsilon, delta=delta, algorithm=algorithm, reproducible=seeded,
            row_bound=self.row_bound, unit=self.schema.unit or "",
        ))  # fmt: skip

    def world(self, number: int, rows: int) -> World:
        """The world of that number, the same at every call."""
        rng = np.random.default_rng([self.seed, number])
        if self.like is not None:
            return worlds.from_rows(self.like, rows, rng)
        return worlds.simulated(self.schema, rows, rng, shares=self.shares, signal=self.signal, encoding=self.encoding)


def matched(epsilon: float, delta: float, share: float) -> float:
    """The ε at which a `share` of the rows has as much noise beside it as all rows have at `epsilon`.

    A Gaussian release of a mean over n rows has noise of Δ/(nμ), so μ/share; at δ = 0, ε/share. Exact for full-batch
    sums; for samples and objective perturbation close to it.

    >>> matched(0.5, 0.0, 0.1), round(matched(1.0, 1e-9, 0.1), 2)
    (5.0, 12.13)
    """
    if share == 1:
        return epsilon
    return epsilon / share if delta == 0 else gaussian_epsilon(gaussian_mu(epsilon, delta) / share, delta)


def scores_of(frame: Simulation, world: World, predicted: np.ndarray) -> dict[str, float]:
    """Scores of predictions for the rows that a world is scored on: probabilities, or numbers in [-1, 1]."""
    if not frame.classes:
        low, high = frame.schema.target.bounds  # type: ignore[misc]  # of a number it has them
        error = float(((world.yt - np.clip(predicted, -1, 1)) ** 2).mean())
        return {"R²": 1 - error / max(float(world.yt.var()), 1e-300), "RMSE": error**0.5 * (high - low) / 2}
    p = np.clip(predicted, 1e-12, 1)
    told = p[np.arange(len(p)), world.yt] / p.sum(axis=1)
    return {
        "AUC": worlds.mean_auc(world.yt, predicted),
        "accuracy": float((predicted.argmax(axis=1) == world.yt).mean()),
        "log loss": float(-np.log(told).mean()),
    }


def fitted(frame: Simulation, world: World, algorithm: str, epsilon: float, rows: int, seed: int) -> dict[str, float]:
    """Scores of one fit on `rows` rows, of which the world has some."""
    delta = frame.plan(algorithm, epsilon, rows, delta=frame.delta).whole.delta
    # A world has fewer rows than the table: its noise is made as small beside them.
    own = matched(epsilon, delta, min(1.0, len(world.y) / rows))
    made = frame.plan(algorithm, own, len(world.y), delta=frame.delta_at(rows), seeded=True)
    y = np.where(world.y == 1, 1.0, -1.0) if frame.classes == 2 else world.y.astype(float)
    unit, draw = frame.encoding.unit, int(np.random.RandomState(seed).randint(2**31 - 1))  # as an estimator's
    persons = Persons(np.arange(len(y)), len(y)) if made.spec.unit else None  # of one row each
    fit = execute(made, world.X.copy(), y, unit=unit, seed=draw, persons=persons)
    scores = fit.scores(world.Xt, unit)
    if not frame.classes:
        return scores_of(frame, world, np.clip(scores[:, 0], -1, 1))
    return scores_of(frame, world, probabilities(scores, together=made.problem.loss.outputs > 1))


def best_of(frame: Simulation, world: World) -> np.ndarray:
    """Predictions of whoever knows the law of a world; of rows from a file, of a model without privacy."""
    if world.best is not None:
        return world.best
    from sklearn import linear_model

    if not frame.classes:
        ridge = linear_model.Ridge(1e-3, fit_intercept=False).fit(world.X, world.y)
        return np.asarray(ridge.predict(world.Xt))
    model = linear_model.LogisticRegression(C=1000.0, fit_intercept=False, max_iter=1000).fit(world.X, world.y)
    probabilities = np.zeros((len(world.Xt), frame.classes))
    probabilities[:, model.classes_] = model.predict_proba(world.Xt)
    return probabilities


def guess_of(frame: Simulation, world: World) -> np.ndarray:
    """Predictions that are the same for every row, of those that move a model."""
    # Rows of zeros have no label that a fit would see.
    y = world.y[world.X.any(axis=1)]
    if not frame.classes:
        return np.full(len(world.Xt), y.mean() if len(y) else 0.0)
    shares = (np.bincount(y, minlength=frame.classes) + 1e-9) / (len(y) + 1e-9 * frame.classes)
    return np.tile(shares, (len(world.Xt), 1))


Task = tuple[str, float, int]  # (method, ε, rows)


def one_world(number: int, frame: Simulation, tasks: Sequence[Task], rows: int) -> list[dict[str, float]]:
    """Scores of the best and of the constant answer, then of each task; those of a fit that ended badly are NaN.

    rows: how many the world has, if they are not more than LARGEST; a task takes the first of them.
    """
    world = frame.world(number, min(LARGEST, rows))
    measured = [scores_of(frame, world, best_of(frame, world)), scores_of(frame, world, guess_of(frame, world))]
    for algorithm, epsilon, n in tasks:
        # The same rows for every method and n, so that differences are of the methods.
        few = world._replace(X=world.X[:n], y=world.y[:n])
        seed = zlib.crc32(repr((number, algorithm, epsilon, n)).encode())  # whatever else is fitted there
        try:
            measured.append(fitted(frame, few, algorithm, epsilon, n, seed=seed))
        except UserError:  # as a run that diverged
            measured.append(dict.fromkeys(measured[0], math.nan))
    name, nothing = ("AUC", 0.5) if frame.classes else ("R²", 0.0)
    # "kept" is the share of what the best model gains over one answer for all.
    room = max(measured[0][name] - nothing, 1e-9)
    return [scores | {"kept": (scores[name] - nothing) / room} for scores in measured]


def chosen(
    frame: Simulation, names: Sequence[str], epsilons: Sequence[float]
) -> tuple[dict[str, list[FitPlan]], dict[str, str]]:
    """(method → its plan at each ε, the default first; method → why it is left out)."""
    default = frame.plan("auto", epsilons[0], frame.rows, delta=frame.delta)
    if "all" in names:
        names = entrants.entrants()
    plans: dict[str, list[FitPlan]] = {}
    left_out: dict[str, str] = {}
    names = [name for name in names or OTHERS[default.problem.loss.family] if name != "auto"]
    for name in dict.fromkeys([default.name, *names]):
        algorithms.resolve(name)  # a name that is none is a mistake, and no method to leave out
        try:
            plans[name] = [frame.plan(name, epsilon, frame.rows, delta=frame.delta) for epsilon in epsilons]
        except (UserError, PrivacyError) as error:  # the latter of a plan that the second accountant refuses
            if name == default.name:
                raise UserError(f"{name}: {error}") from None
            left_out[name] = str(error).removeprefix(f"{name}: ")
    return plans, left_out


def sought(score_at: Callable[[float], float], places: Sequence[float], target: float) -> float:
    """Where a score first is at the target, between `places` on a log scale; infinite where not even at the last.

    By bisection, as if the score never fell: with noise it may, and then one of the places where it passes is found.
    """
    scores = {len(places) - 1: score_at(places[-1])}
    if not scores[len(places) - 1] >= target:
        return math.inf
    # The last place is known to pass; -1 stands for a place that fails.
    low, high = -1, len(places) - 1
    while high - low > 1:
        middle = (low + high) // 2
        scores[middle] = score_at(places[middle])
        low, high = (low, middle) if scores[middle] >= target else (middle, high)
    if low < 0:
        return places[0]
    below = scores[low]
    # Between the two places on a log scale, as a score rises about linearly in ln ε and ln n.
    part = (target - below) / (scores[high] - below) if math.isfinite(below) else 1.0
    return float(places[low] * (places[high] / places[low]) ** part)


def make(
    frame: Simulation,
    epsilons: Sequence[float],
    names: Sequence[str],
    count: int,
    target: tuple[str, float] | None,
    jobs: int | None,
    progress: Callable[[str, float], None],
) -> Forecasts:
    """The forecasts; see `dpbench.plan`. target: a score, and the value that it is to reach."""
    task = "classes" if frame.classes else "numbers"
    field, left_out = chosen(frame, names, epsilons)
    default = next(iter(field))
    asked: list[Task] = [(name, epsilon, frame.rows) for epsilon in epsilons for name in field]
    each = partial(_each, count, jobs, progress)
    results = each("simulating", one_world, frame, asked, frame.rows)
    # (worlds, 2 + tasks) of each score: the best, the constant answer, then the tasks.
    scores = {score: np.array([[one[score] for one in world] for world in results]) for score in SCORES[task]}
    columns = [{score: values[:, i] for score, values in scores.items()} for i in range(len(asked) + 2)]
    forecasts, losses = [], scores[LOSS[task]]
    for i, (name, epsilon, _) in enumerate(asked):
        made, of_default = field[name][i // len(field)], i - i % len(field)
        beats = math.nan if i == of_default else float((losses[:, i + 2] < losses[:, of_default + 2]).mean())
        told = made.whole.delta, _set(made), made.lines(), made.epsilon
        forecasts.append(Forecast(name, epsilon, *told, columns[i + 2], beats))
    needed = [] if target is None else _needed(frame, default, epsilons, target, each)
    references = {"at best": columns[0], "one answer for all": columns[1]}
    size = frame.rows, len(frame.encoding.names), min(frame.rows, LARGEST)
    return Forecasts(task, *size, count, forecasts, references, left_out, needed, _notes(frame))


def _set(made: FitPlan) -> dict[str, Any]:
    """The settings of a plan that differ from the method's defaults."""
    usual, now = (msgspec.structs.asdict(one) for one in (make_settings(made.method, {}), made.asked))
    return {name: value for name, value in now.items() if value != usual[name]}


T = TypeVar("T")


def _each(
    count: int, jobs: int | None, progress: Callable[[str, float], None], what: str, make: Callable[..., T], *of: Any
) -> list[T]:
    """What `make` has of every world and of `of`, in as many processes as there are jobs."""
    results = []
    for one in pooled(make, ((number, *of) for number in range(count)), jobs, ordered=True):
        results.append(one)
        progress(what, len(results) / count)
    return results


def _needed(
    frame: Simulation, method: str, epsilons: Sequence[float], target: tuple[str, float], each: Callable[..., list[Any]]
) -> list[Needed]:
    """The ε that the target needs at n rows, and the n at each ε."""
    results = each(f"seeking {target[0]} {target[1]:g}", seek, frame, method, tuple(epsilons), target)
    places = [("ε", float(frame.rows), EPSILONS[-1]), *(("n", one, rows_of(frame)[-1]) for one in epsilons)]
    return [
        Needed(what, at, *quantiles(np.array([world[i] for world in results])), sought=float(last))
        for i, (what, at, last) in enumerate(places)
    ]


def seek(
    number: int, frame: Simulation, method: str, epsilons: Sequence[float], target: tuple[str, float]
) -> tuple[float, ...]:
    """In one world: the ε that the target needs at the rows given, then the n that it needs at each ε."""
    score, value = target
    rows = rows_of(frame)

    def at(task: Task) -> float:
        value_at = one_world(number, frame, [task], rows[-1])[2][score]
        return -math.inf if math.isnan(value_at) else value_at

    found = [sought(lambda epsilon: at((method, epsilon, frame.rows)), EPSILONS, value)]
    for epsilon in epsilons:
        found.append(sought(lambda n, epsilon=epsilon: at((method, epsilon, round(n))), rows, value))  # type: ignore[misc]  # a default is how a lambda keeps its own
    return tuple(found)


def rows_of(frame: Simulation) -> list[int]:
    """The n that a needed one is sought in."""
    return sorted({max(50, round(frame.rows * factor)) for factor in ROWS})


def _notes(frame: Simulation) -> list[str]:
    notes = []
    if left := frame.schema.undecided:
        entries = "entry is" if len(left) == 1 else "entries are"
        notes.append(f"{len(left)} {entries} undecided in the schema; the plan takes them as they stand")
    if frame.schema.unit:
        notes.append(f"n counts persons, the values of {frame.schema.unit}; the tables have one row of each")
    name, (low, high) = ("AUC", worlds.AUC) if frame.classes else ("R²", worlds.R2)
    if frame.like is None:
        notes += [why] if (why := worlds.outside(frame.schema)) else []
        who = "persons" if frame.schema.unit else "rows"
        notes.append(f"{who} without a label count in n, as in a fit; the tables have a label in every row")
    else:
        notes.append(f"the tables are drawn from {len(frame.like.y):,} public or older rows")
    if frame.signal is not None:
        notes.append(f"guessed: {name} of {frame.signal:g} without privacy, right to {worlds.GUESSED:g}")
    if frame.shares:
        notes.append(f"guessed: {', '.join(f'{share:g} of {one}' for one, share in frame.shares.items())}")
    if frame.like is None and frame.signal is None:
        notes.append(f"the tables differ in what can be learned: {name} of {low:g} to {high:g}; --signal narrows that")
    if frame.like is None and frame.classes and not frame.shares:
        notes.append("the tables differ in the shares of the classes; --share narrows that")
    if frame.rows > LARGEST:
        notes.append(f"the tables have {LARGEST:,} rows, with as much noise beside them as {frame.rows:,} have")
    return notes
