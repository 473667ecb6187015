"""diffprivlib's linear models (Holohan et al. 2019), as they are: data and ε in, coefficients out."""

import contextlib
import inspect
import itertools
import math
from importlib.metadata import version
from typing import Any

import numpy as np

from dpbench import algorithms
from dpbench.algorithms.base import BaseSettings, Needs, Positive
from dpbench.algorithms.library import LibrarySolver, Solved, released
from dpbench.algorithms.objective_perturbation import pure_ridge
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.ledger import Laplace, PureDP

CURVATURE = 0.25  # sup ℓ'' of the logistic loss
NORM = 1.0  # of the rows, as declared to it


class _Diffprivlib(LibrarySolver):
    """One fit, with every call of the mechanisms that draw its noise watched."""

    library = "diffprivlib"
    paper_accounting = "pure"
    accountings = ("pure",)
    delta = 0.0

    def solve(self, problem, budget, settings, rng) -> Solved:
        library = _library()
        X = problem.X.toarray() if hasattr(problem.X, "toarray") else np.asarray(problem.X)
        random_state = _Watched(int(rng.integers(2**31)))
        w, releases, told = self.fit(library, X, problem, budget.epsilon, settings, random_state)
        told = f"diffprivlib {version('diffprivlib')}: states ε = {budget.epsilon:g}; {told}"
        return Solved(w, releases, told)

    def fit(self, library: Any, X: Any, problem: Any, epsilon: float, settings: Any, random_state: Any) -> Any:
        """(coefficients, releases, how the noise was read)."""
        raise NotImplementedError


class DiffprivlibLogistic(_Diffprivlib):
    """diffprivlib-logistic: LogisticRegression by objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011).

    Its objective is mean loss + ‖w‖²/(2nC): C = 1/(n·l2), and its default C = 1 without a ridge. ‖x‖₂ ≤ 1 is declared.
    It adds <b, w>/n, the density of b proportional to exp(-‖b‖/s), and a further ridge where it finds one due. Of the
    exact minimiser, the map b ↦ w has a Jacobian whose determinants on neighbours differ by a factor of at most
    1 + ¼/Λ, Λ the ridge on sums: to replace a row takes one such matrix off, which only helps, and adds one. So the
    ledger has 2/s + ln(1 + ¼/Λ), with the s and the ridge that were drawn with; the library's proof counts ln twice.
    """

    name = "diffprivlib-logistic"
    title = "diffprivlib LogisticRegression"
    needs = Needs(losses=("logistic",), regularisers=("l2",))
    discloses = released("objective perturbation", "2·L₀", "‖∇f_i‖ ≤ L₀; scale and ridge are read as drawn")

    class Settings(BaseSettings, frozen=True):
        max_iter: int = 1000

    def fit(self, library, X, problem, epsilon, settings, random_state):
        C = 1 / self.ridge(problem, epsilon)
        model = library.models.LogisticRegression(
            epsilon=epsilon, data_norm=NORM, C=C, fit_intercept=False, max_iter=settings.max_iter,
            random_state=random_state,
        )  # fmt: skip
        with _calls(library.mechanisms.Vector) as calls:
            model.fit(X, problem.y)
        ((mechanism, function),), (scale,) = calls, random_state.scales
        ridge = mechanism.alpha + problem.n * inspect.getclosurevars(function).nonlocals["delta"]
        if abs(mechanism.alpha - 1 / C) > 1e-9 / C:
            raise PrivacyError(f"its ridge is {mechanism.alpha:g}, {1 / C:g} was asked for")
        spent = 2 * NORM / scale + math.log1p(CURVATURE * NORM**2 / ridge)
        told = f"scale {scale:.4g} of its noise and ridge {ridge:.4g} read as drawn; minimiser to a gradient of 1e-4"
        return model.coef_, [(PureDP(spent), 1)], told

    def ridge(self, problem: Any, epsilon: float) -> float:
        """On sums of losses; C = 1 is the library's default."""
        return float(problem.n * problem.l2) or 1.0


class DiffprivlibRidge(DiffprivlibLogistic):
    """diffprivlib-ridge: the same at the ridge by which `objpert-pure` runs, for noise of the scale 2/ε."""

    name = "diffprivlib-ridge"
    title = "diffprivlib LogisticRegression, our ridge"

    def ridge(self, problem: Any, epsilon: float) -> float:
        """By dpbench's rule in (n, d, ε), at least the problem's own."""
        safety = algorithms.get("objpert-pure").Settings().safety
        return pure_ridge(problem.n, problem.d, 2 / epsilon, problem.l2, NORM, safety)


class DiffprivlibLinear(_Diffprivlib):
    """diffprivlib-linear: LinearRegression by the functional mechanism (Zhang et al. 2012); it has no ridge.

    bound: of |x_ij|, which is 1 for rows of ‖x‖₂ ≤ 1, and of |y|: labels are cut off there, as without an intercept the
    library does not. Σy², Σx_j y, Σx_j² and Σx_j x_k get Laplace noise each, a replaced row moves them by bound²,
    2·bound², bound² and 2·bound² at most; their scales are read.
    """

    name = "diffprivlib-linear"
    title = "diffprivlib LinearRegression"
    needs = Needs(losses=("squared",), regularisers=("l2",))
    discloses = released("Laplace", "2·bound^2", "entries within the bound; Σy² and Σx_j² move by half", "1+d+d(d+1)/2")

    class Settings(BaseSettings, frozen=True):
        bound: Positive = 1.0

    def fit(self, library, X, problem, epsilon, settings, random_state):
        limits = (-settings.bound, settings.bound)
        model = library.models.LinearRegression(
            epsilon=epsilon, bounds_X=limits, bounds_y=limits, fit_intercept=False, random_state=random_state
        )
        with _calls(library.mechanisms.Laplace) as calls:
            model.fit(X, np.clip(problem.y, *limits))
        d = X.shape[1]
        moved = [1.0] + [2.0] * d + list(itertools.chain.from_iterable([1.0] + [2.0] * (d - 1 - i) for i in range(d)))
        if len(calls) != len(moved):
            raise PrivacyError(f"it drew noise {len(calls)} times, {len(moved)} were expected")
        counts: dict[float, int] = {}
        for (mechanism, _), units in zip(calls, moved, strict=True):
            multiplier = float(f"{mechanism.sensitivity / mechanism.epsilon / (units * settings.bound**2):.12g}")
            counts[multiplier] = counts.get(multiplier, 0) + 1
        return model.coef_, [(Laplace(z), count) for z, count in counts.items()], "scales of its noise read"


@contextlib.contextmanager
def _calls(mechanism: Any) -> Any:
    """Within: what every call of its `randomise` was of and returned."""
    calls: list[Any] = []
    original = mechanism.randomise

    def randomise(self, value):
        found = original(self, value)
        calls.append((self, found))
        return found

    mechanism.randomise = randomise
    try:
        yield calls
    finally:
        mechanism.randomise = original


class _Watched(np.random.RandomState):
    """Writes down the scales of the gamma numbers it draws."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.scales: list[float] = []

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        self.scales.append(float(scale))
        return super().gamma(shape, scale, size)


def _library() -> Any:
    try:
        import diffprivlib
        from diffprivlib import mechanisms, models  # noqa: F401
    except ImportError as error:
        raise UserError(f"diffprivlib is not here ({error}); in the source folder: make rivals") from None
    return diffprivlib
