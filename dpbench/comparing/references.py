"""What private models are set against: answering the same every time, starting, and knowing no privacy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpbench.datasets import Dataset
from dpbench.problems import Problem
from dpbench.problems.optimum import NoOptimum
from dpbench.problems.scores import constant, held_out_scores, rare_scores


@dataclass(frozen=True)
class Reference:
    """A line of the table that is no private method: scores on the rows held out, NaN where they have no meaning.

    mean: loss. The others as of `ranking.board`.
    """

    name: str
    mean: float
    accuracy: float = np.nan
    auc: float = np.nan
    balanced: float = np.nan
    precision: float = np.nan
    calibration: float = np.nan
    gain: float = 0.0
    spread: float = np.nan
    gain_spread: float = np.nan


def references(problem: Problem, data: Dataset, classes: tuple[str, str] | None) -> list[Reference]:
    """The constant answer (majority class, or the mean), w = 0, and the optimum without privacy where there is one."""
    assert data.held_out is not None
    optimum, name = _optimum(problem)
    X, y = data.held_out
    W = np.stack([np.zeros(problem.d), *([] if optimum is None else [optimum])])
    found = held_out_scores(problem.loss, X, y, W, W[-1], problem.mean_label)
    lines = [_constant(problem, y, classes)]
    for i, called in enumerate(["w = 0", *([name] if optimum is not None else [])]):
        scores = {key.removeprefix("held_"): float(values[i]) for key, values in found.items()}
        line = Reference(called, scores["loss"], gain=scores["gain"])
        if problem.loss.binary:
            line = replace(
                line,
                accuracy=scores["accuracy"] if i else np.nan,  # w = 0 ties everywhere
                balanced=scores["balanced"] if i else np.nan,
                gain=scores["gain"] if i else np.nan,
                auc=scores["auc"],
                precision=scores["precision"],
                calibration=scores["calibration"],
            )
        lines.append(line)
    return lines


def _constant(problem: Problem, y: np.ndarray, classes: tuple[str, str] | None) -> Reference:
    """The prediction z, the same for every row, that fits the rows in use best."""
    z, name = constant(problem.loss, problem.mean_label), "the mean"
    if problem.loss.binary:
        name = f"always {classes[int(problem.mean_label >= 0)]}" if classes else "the majority class"
    loss = problem.loss.value(np.full((1, len(y)), z), y, np.empty((1, len(y)))).mean()
    if not problem.loss.binary:
        return Reference(name, float(loss))
    rare = rare_scores(problem.loss, np.full(len(y), z), y)
    found = {key.removeprefix("held_"): value for key, value in rare.items()}
    return Reference(name, float(loss), accuracy=float(np.mean(y * np.sign(z or 1.0) > 0)), auc=0.5, **found)


def _optimum(problem: Problem) -> tuple[np.ndarray | None, str]:
    """w* and how to call it; with the estimators' ridge of 1/(nd) where the loss alone has no minimum."""
    try:
        return problem.optimum().w, "not private"
    except NoOptimum:
        if not problem.convex or problem.l1:
            return None, ""
    # Classes that a line separates have no minimum, and the smallest ridge gives them one.
    if problem.weighted:
        return None, ""
    try:
        l2 = problem.l2 + 1 / (problem.n * problem.d)
        ridge = Problem(problem.X, problem.y, loss=problem.loss, l2=l2, row_bound=problem.row_bound)
        return ridge.optimum().w, "not private, ridge 1/(nd)"
    except NoOptimum:
        return None, ""
