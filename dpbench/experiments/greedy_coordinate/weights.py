"""The regularisation weights of greedy_coordinate, which the paper does not print: how the frozen numbers were found.

`python -m dpbench.experiments.greedy_coordinate.weights` prints them anew, beside those in `problems.catalogue`. They
come from the data and count as public.
"""

from __future__ import annotations

import numpy as np

from dpbench import datasets
from dpbench.problems import catalogue, sparse_optimum
from dpbench.problems.problem import Problem

# Published Table 3, ‖w*‖₀ of the L1 problems.
NONZEROS = {"square": 7, "california": 3, "dorothea": 72, "madelon-l1": 3}
L2 = ("log1", "log2", "mtp", "mtp-qsar", "madelon")
PATH = 0.995  # ratio of neighbouring weights on the path: counts are not monotone, so it must be fine
DIGITS = 4
GAP = 5e-11  # relative, as in problems.optimum


def l2_weight(problem: Problem) -> float:
    """λ = (mean over j of M_j without λ)/n, to 4 digits."""
    bare = problem.coordinate_constants - problem.l2
    return float(f"{bare.mean() / problem.n:.{DIGITS}g}")


def l1_weight(problem: Problem, nonzeros: int, longest: int = 1000) -> tuple[float, int]:
    """(λ, ‖w*‖₀): the largest λ, to 4 digits rounded down, whose optimum has `nonzeros` non-zeros.

    A path from the smallest λ with w* = 0 downwards, in steps of 0.5 %, until the count is met; then bisection between
    that weight and the one before. Where the path meets only other counts, the nearest of them, the first met. The path
    ends `longest` steps down, or once its count is half as large again as asked for.
    """
    top = float(np.abs(problem.data_gradient(np.zeros((1, problem.d)))).max())
    w, best = None, None
    for step in range(longest):
        weight = top * PATH**step
        w = _solution(problem, weight, w)
        count = np.count_nonzero(w)
        if best is None or abs(count - nonzeros) < abs(best[1] - nonzeros):
            best = weight, count, w
        if count == nonzeros or count > 1.5 * nonzeros + 1:
            break
    low, count, start = best
    high = min(top, low / PATH)
    while high / low > 1 + 10.0**-DIGITS / 2:
        middle = np.sqrt(low * high)
        w = _solution(problem, middle, start)
        if np.count_nonzero(w) == count:
            low, start = middle, w
        else:
            high = middle
    unit = 10.0 ** (np.floor(np.log10(low)) - DIGITS + 1)
    weight = float(f"{np.floor(low / unit) * unit:.{DIGITS}g}")
    return weight, np.count_nonzero(_solution(problem, weight, start))


def _solution(problem: Problem, weight: float, start: np.ndarray | None) -> np.ndarray:
    """w* (d,) of the problem's data and loss with l1 = weight."""
    return sparse_optimum.solve(Problem(problem.X, problem.y, loss=problem.loss, l1=weight), GAP, start)[0]


def _bare(name: str) -> Problem:
    """The problem without its regulariser."""
    recipe = catalogue.recipe_of(name)
    data = datasets.load(recipe.dataset)
    return Problem(data.X, data.y, loss=recipe.loss, name=name)


def find(name: str) -> tuple[float, int | None]:
    """(weight, ‖w*‖₀ or None for L2) of one of the paper's problems, from its data."""
    if name in NONZEROS:
        return l1_weight(_bare(name), NONZEROS[name])
    return l2_weight(_bare(name)), None


def main() -> None:
    for name in (*L2, *NONZEROS):
        recipe = catalogue.recipe_of(name)
        if not datasets.available(recipe.dataset):
            print(f"{name}: data not at hand (dpbench fetch {recipe.dataset}); frozen {recipe.weights}")
            continue
        weight, count = find(name)
        print(
            f"{name}: {weight:g}" + ("" if count is None else f" with {count} non-zeros") + f"; frozen {recipe.weights}"
        )


if __name__ == "__main__":
    main()
