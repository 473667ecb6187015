"""The driver: answers are right, replicates advance in step and leave when they end."""

import numpy as np

from dpbench.algorithms.base import no_trace
from dpbench.algorithms.nonconvex.driver import Gradient, Hessian, Iterate, Value, drive
from dpbench.problems import Problem
from tests.algorithms.conftest import small_problem


class Spy:
    """A problem that notes the sizes of the batches it is asked about."""

    def __init__(self, problem):
        self.n, self._problem = problem.n, problem
        self.gradients, self.values, self.hessians = [], [], []

    def gradient(self, W, rows=None):
        self.gradients.append(len(W))
        return self._problem.gradient(W, rows)

    def hessian(self, W, rows=None):
        self.hessians.append(len(W))
        return self._problem.hessian(W, rows=rows)

    def value(self, W):
        self.values.append(len(W))
        return self._problem.value(W)


def test_answers_are_those_of_the_problem():
    problem, rows, seen = small_problem(w2=0.01), np.array([1, 5, 7]), []

    def method(w):
        yield Iterate(w)
        for request in (Gradient(w), Gradient(w, rows), Hessian(w), Hessian(w, rows), Value(w)):
            seen.append((yield request))
        return w + 1, "terminated"

    w = np.full(5, 0.3)
    run = drive(problem, [method(w)], w[None], no_trace)

    few = Problem(problem.X[rows], problem.y[rows], w2=0.01)
    expected = [problem.gradient(w[None]), few.gradient(w[None]), problem.hessian(w[None]), few.hessian(w[None])]
    for mine, theirs in zip(seen, [*expected, problem.value(w[None])], strict=True):
        np.testing.assert_allclose(mine, theirs[0], rtol=1e-12)
    np.testing.assert_array_equal(run.W[0], w + 1)
    assert (run.gradients[0], run.hessians[0], run.endings[0]) == (2, 2, "terminated")
    np.testing.assert_allclose(run.passes, 3 + 6 / problem.n)


def test_replicates_share_products_and_leave_when_they_end():
    spy = Spy(small_problem())

    def method(w, iterations, curious):
        for t in range(iterations):
            yield Iterate(w)
            g = yield Gradient(w)
            if curious and t == 0:  # asks for more than the others: they wait, and go on together
                yield Hessian(w)
                yield Value(w)
            w = w - g
        return w, "not terminated"

    W = np.zeros((3, 5))
    points = []
    run = drive(
        spy,
        [method(w, t, curious) for w, t, curious in zip(W, (2, 4, 3), (True, False, True), strict=True)],
        W,
        lambda t, W, passes, final: points.append((t, passes.copy(), final.tolist())),
    )
    assert spy.gradients == [3, 3, 2, 1]
    assert spy.hessians == spy.values == [2]
    assert run.gradients.tolist() == [2, 4, 3]
    assert run.hessians.tolist() == [1, 0, 1]
    assert [p[0] for p in points] == [0, 1, 2, 3, 4]
    assert [p[2] for p in points] == [
        [False] * 3, [False] * 3, [True, False, False], [False, False, True], [False, True, False],
    ]  # fmt: skip
    np.testing.assert_array_equal(points[2][1], [4, 2, 4])
    np.testing.assert_array_equal(points[4][1], [np.nan, 4, np.nan])


def test_the_iterates_traced_are_the_current_ones():
    problem, traced = small_problem(), []

    def method(w):
        for _ in range(3):
            yield Iterate(w)
            w = w - (yield Gradient(w))
        return w, "not terminated"

    drive(problem, [method(np.zeros(5))], np.zeros((1, 5)), lambda t, W, passes, final: traced.append(W[0].copy()))
    w = np.zeros(5)
    for seen in traced:
        np.testing.assert_allclose(seen, w, atol=1e-15)
        w = w - problem.gradient(w[None])[0]
    assert len(traced) == 4
