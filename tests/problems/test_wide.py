"""Newton's steps in n unknowns where d > n: the same minimisers as by the whole Hessian, and a certificate in bytes."""

import numpy as np
import pytest
import scipy

from dpbench.algorithms import aop, perturbed_minimum
from dpbench.problems import Problem, wide
from dpbench.problems.exact import ExactProblem
from tests.algorithms.conftest import run


def wide_problem(n=30, d=80, *, sparse=False, kind=Problem, loss="logistic", **regularisers):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d)) * (generator.random((n, d)) < 0.3)
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-15)
    y = np.sign(generator.standard_normal(n))
    return kind(scipy.sparse.csr_array(X) if sparse else X, y, loss=loss, row_bound=1.0, **regularisers)


def terms(problem, k=2):
    return 0.02 * np.random.default_rng(1).standard_normal((k, problem.d))


@pytest.mark.parametrize("l1", [0.0, 0.003, 0.03])
@pytest.mark.parametrize("loss", ["logistic", "pseudo-huber"])
@pytest.mark.parametrize(("sparse", "ridge", "l2"), [(False, 1e-4, 0.0), (True, 0.01, 1e-3)])
def test_the_minimiser_is_that_of_the_whole_hessian(monkeypatch, sparse, ridge, l2, loss, l1):
    problem = wide_problem(sparse=sparse, loss=loss, l1=l1, l2=l2)
    start, b = np.zeros((2, problem.d)), terms(problem)
    found = perturbed_minimum.minimise(problem, start, b, ridge, 1e-11)
    monkeypatch.setattr(problem, "hessian", None)
    np.testing.assert_array_equal(perturbed_minimum.minimise(problem, start, b, ridge, 1e-11)[0], found[0])
    monkeypatch.undo()
    monkeypatch.setattr(wide, "fits", lambda *_: False)
    direct = perturbed_minimum.minimise(problem, start, b, ridge, 1e-11)
    for norms in (found[1], direct[1]):
        assert (norms <= 1e-11).all()
    np.testing.assert_allclose(found[0], direct[0], rtol=0, atol=2e-11 / (ridge + l2))
    if l1:
        assert 0 < np.count_nonzero(found[0]) < found[0].size
        np.testing.assert_array_equal(found[0] == 0, direct[0] == 0)


def test_a_quadratic_s_minimiser_satisfies_its_conditions():
    """From a start that is far off, with rows of weight 0, where A has no full rank."""
    generator = np.random.default_rng(2)
    A = generator.standard_normal((20, 90))
    A[:5] = 0
    g, v, m, l1 = generator.standard_normal(90), 10 * generator.standard_normal(90), 0.01, 0.5
    x = wide.quadratic(A, m, g, v, l1)
    slope = g + A.T @ (A @ (x - v)) + m * (x - v)
    assert 0 < np.count_nonzero(x) < 90
    np.testing.assert_allclose(slope[x != 0], -l1 * np.sign(x[x != 0]), atol=1e-9)
    assert np.abs(slope[x == 0]).max() <= l1 + 1e-9


def test_it_is_taken_where_rows_are_fewer_and_the_curvature_has_a_bound_from_below():
    assert wide.fits(wide_problem(), 0.1)
    assert wide.fits(wide_problem(l2=0.1), 0.0)
    assert not wide.fits(wide_problem(), 0.0)
    assert not wide.fits(wide_problem(w2=0.1), 0.1)
    assert not wide.fits(wide_problem(n=81), 0.1)
    assert not wide.fits(wide_problem(loss="sigmoid"), 0.1)


@pytest.mark.parametrize("steady", [False, True])
def test_steps_are_those_of_the_whole_hessian(monkeypatch, steady):
    problem = wide_problem()
    arguments = problem, np.zeros((2, problem.d)), terms(problem), 0.01, 1e-11
    found = aop.minimise(*arguments, steady=steady)
    monkeypatch.setattr(wide, "fits", lambda *_: False)
    direct = aop.minimise(*arguments, steady=steady)
    np.testing.assert_allclose(found[0], direct[0], atol=1e-12)
    np.testing.assert_array_equal(found[2], direct[2])


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_the_certificate_on_the_grid_does_not_rest_on_the_solver(l1):
    """What `nearly` promises of the released point holds by the gradient in whole d, whichever the steps."""
    problem = wide_problem(kind=ExactProblem, l1=l1)
    gamma, b = 30.0**-3, terms(problem, 1)
    near, norms, _ = problem.nearly(perturbed_minimum.minimise, np.zeros((1, problem.d)), b, 0.05, gamma)
    assert norms[0] <= gamma
    w = near.integers * near.unit
    g = problem.real.gradient(w)[0] + 0.05 * w[0] + b[0]
    assert np.linalg.norm(perturbed_minimum.least_subgradient(g, w[0] * (np.abs(w[0]) > near.unit), l1)) <= gamma + 1e-6
    poor = problem.nearly(lambda real, W, *_: (W, np.zeros(1), np.zeros(1)), np.zeros((1, problem.d)), b, 0.05, gamma)
    assert poor[1][0] == np.inf


@pytest.mark.parametrize("name", ["objpert", "objpert-pure", "output-perturbation"])
def test_a_hundred_thousand_columns_take_no_hessian(name):
    X = scipy.sparse.random_array((40, 100_000), density=1e-3, rng=np.random.default_rng(3), format="csr")
    X /= scipy.sparse.linalg.norm(X, axis=1)[:, None] * (1 + 1e-12)
    problem = Problem(X.tocsr(), np.sign(np.arange(40) - 19.5), l1=1e-3, row_bound=1.0)
    accounting = "pure" if name == "objpert-pure" else "tight"
    assert np.isfinite(run(name, problem, accounting=accounting, delta=0.0 if accounting == "pure" else None).W).all()
