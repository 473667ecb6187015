"""diffprivlib's linear models (Holohan et al. 2019), as they are: data and ε in, coefficients out."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dpbench.algorithms.base import Algorithm, BaseSettings, Mechanisms, Needs, Outcome, Positive, Problem, Relation
from dpbench.errors import UserError
from dpbench.privacy.disclosure import Disclosure
from dpbench.privacy.ledger import PureDP

STATED = "ε as diffprivlib's documentation states it: drawn inside the library, not checked against its noise"


class _Diffprivlib(Algorithm):
    """One fit per replicate, on a random state from the replicate's own stream."""

    home = "tracks"
    relation = Relation.REPLACE_ONE
    paper_accounting = "pure"
    accountings: ClassVar = ("pure",)
    delta = 0.0
    discloses = (
        Disclosure(
            "model", "the model", mechanism="objective perturbation", count="1", add_remove="inside the library",
            replace_one="inside the library", why="ε-DP as its documentation states it",
        ),
    )  # fmt: skip

    def model(self, models: Any, problem: Problem, epsilon: float, settings: Any, state: int) -> Any:
        """The library's estimator."""
        raise NotImplementedError

    def run(self, problem: Problem, W, mechanisms: Mechanisms, settings: Any, trace: Callable[..., None]) -> Outcome:
        models = _models()
        X = problem.X.toarray() if hasattr(problem.X, "toarray") else np.asarray(problem.X)
        epsilon = mechanisms.budget.epsilon
        found = np.empty_like(W)
        for i, coins in enumerate(mechanisms.coins):
            model = self.model(models, problem, epsilon, settings, int(coins.integers(2**31)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of solvers that stop early: the row's loss tells
                model.fit(X, problem.y)
            found[i] = np.ravel(model.coef_)
        mechanisms.ledger.record(PureDP(epsilon), "model", mechanisms.releases.members)
        return Outcome(found, columns={"notes": [STATED] * len(W)})


def _models() -> Any:
    try:
        from diffprivlib import models
    except ImportError as error:
        raise UserError(f"diffprivlib is not here ({error}); in the source folder: make rivals") from None
    return models


class DiffprivlibLogistic(_Diffprivlib):
    """diffprivlib-logistic: LogisticRegression by objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011).

    Its objective is mean loss + ‖w‖²/(2nC): C = 1/(n·l2), and its default C = 1 without a ridge. ‖x‖₂ ≤ 1 is declared.
    """

    name = "diffprivlib-logistic"
    title = "diffprivlib, logistic"
    needs = Needs(losses=("logistic",), regularisers=("l2",))

    class Settings(BaseSettings, frozen=True):
        max_iter: int = 1000

    def model(self, models, problem, epsilon, settings, state):
        C = 1 / (problem.n * problem.l2) if problem.l2 else 1.0
        return models.LogisticRegression(
            epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=False, max_iter=settings.max_iter, random_state=state
        )


class DiffprivlibLinear(_Diffprivlib):
    """diffprivlib-linear: LinearRegression by the functional mechanism (Zhang et al. 2012); it has no ridge.

    bound: of |x_ij| and |y|, public; 1 holds for rows of ‖x‖₂ ≤ 1.
    """

    name = "diffprivlib-linear"
    title = "diffprivlib, linear"
    needs = Needs(losses=("squared",), regularisers=("l2",))

    class Settings(BaseSettings, frozen=True):
        bound: Positive = 1.0

    def model(self, models, problem, epsilon, settings, state):
        limits = (-settings.bound, settings.bound)
        return models.LinearRegression(
            epsilon=epsilon, bounds_X=limits, bounds_y=limits, fit_intercept=False, random_state=state
        )
