"""Speed of the blocked kernels against textbook NumPy, one BLAS thread, random data of the papers' sizes.

Each line is the median time of the textbook version over that of ours, per replicate, the two taken in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from dpbench.problems import Problem

ADULT, COVERTYPE12 = (45_222, 105), (495_141, 54)  # adult with an intercept; covertype12
LAMBDA0 = 1e-3


def main() -> None:
    """Print `name: ratio` lines."""
    with threadpool_limits(1):
        problem = random_problem(*ADULT)
        for k in (1, 15, 105):
            compare(f"logistic gradient, {problem.n} x {problem.d}, k = {k}", problem, gradient, textbook_gradient, k)
        for k in (1, 15):
            name = f"dp-newton iteration (hess-clip, no noise), {problem.n} x {problem.d}, k = {k}"
            compare(name, problem, newton, textbook_newton, k)
            name = f"logistic Hessian and eigh, {problem.n} x {problem.d}, k = {k}"
            compare(name, problem, curvature, textbook_curvature, k)
        problem = random_problem(*COVERTYPE12)
        compare(f"logistic gradient, {problem.n} x {problem.d}, k = 1", problem, gradient, textbook_gradient, 1, 7)
        compare(
            f"logistic Hessian and eigh, {problem.n} x {problem.d}, k = 1", problem, curvature, textbook_curvature, 1, 7
        )


def random_problem(n: int, d: int) -> Problem:
    """Logistic regression on n random unit rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]
    return Problem(X, rng.choice([-1.0, 1.0], n))


def compare(name: str, problem: Problem, ours: Callable, textbook: Callable, k: int, repeats: int = 15) -> float:
    """Time `ours` on (k, d) iterates and `textbook` on one of them, in turns; print and return the ratio."""
    W = 3 * np.random.default_rng(1).standard_normal((k, problem.d))
    np.testing.assert_allclose(ours(problem, W)[0], textbook(problem.X, problem.y, W[0]), rtol=1e-8, atol=1e-12)
    times = {ours: [], textbook: []}
    for _ in range(repeats):
        for function, arguments in ((ours, (problem, W)), (textbook, (problem.X, problem.y, W[0]))):
            begin = time.perf_counter()
            function(*arguments)
            times[function].append(time.perf_counter() - begin)
    mine, theirs = np.median(times[ours]) / k, np.median(times[textbook])
    print(f"{name}: {theirs / mine:.1f}  ({1e3 * theirs:.1f} ms / {1e3 * mine:.2f} ms)", flush=True)
    return theirs / mine


def gradient(problem, W):
    return problem.data_gradient(W)


def textbook_gradient(A, y, w):
    coef = -y / (1 + np.exp(y * (A @ w)))
    return np.mean(A * coef[:, None], axis=0)


def curvature(problem, W):
    """Eigenvalues of the Hessians (k, d), vectors computed too."""
    return np.linalg.eigh(problem.data_hessian(W))[0]


def textbook_curvature(A, y, w):
    h = 1 / (2 * np.cosh(A @ w / 2)) ** 2
    return np.linalg.eigh((A.T * h) @ A / len(A))[0]


def newton(problem, W):
    values, vectors = np.linalg.eigh(problem.data_hessian(W))
    G = problem.data_gradient(W)
    coordinates = np.einsum("kde,kd->ke", vectors, G) / np.maximum(values, LAMBDA0)
    return np.einsum("kde,ke->kd", vectors, coordinates)


def textbook_newton(A, y, w):
    h = 1 / (2 * np.cosh(A @ w / 2)) ** 2
    values, vectors = np.linalg.eigh((A.T * h) @ A / len(A))
    return vectors @ ((vectors.T @ textbook_gradient(A, y, w)) / np.maximum(values, LAMBDA0))


if __name__ == "__main__":
    main()
