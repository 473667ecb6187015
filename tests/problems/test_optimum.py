"""Optima against SciPy and scikit-learn, their certificates, separable data, and the cache.

Newton's steps in n unknowns where d > n: the same minimisers as by the whole Hessian, and a certificate in bytes.
"""

import math

import numpy as np
import pytest
import scipy
from scipy import sparse
from scipy.optimize import minimize

from dpbench import datasets
from dpbench.algorithms import aop, objective_perturbation
from dpbench.errors import NotAtHand, UserError
from dpbench.problems import Problem, build, losses, optimum
from dpbench.problems import optimum as optima
from dpbench.problems.exact import ExactProblem
from dpbench.problems.solvers import PrimalDualPoint, _gap, _on_support, duality_gap, solve_sparse
from tests.algorithms.conftest import run


def noisy(n=300, d=8, seed=0, loss="logistic"):
    """Data with a true signal that no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    y = X @ w + 2 * rng.standard_normal(n)
    return X, np.sign(y) if loss == "logistic" else y


@pytest.mark.parametrize("l2", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("loss", ["logistic", "squared", "pseudo-huber"])
def test_smooth_optimum(loss, l2):
    p = Problem(*noisy(loss=loss), loss=loss, l2=l2)
    found = p.optimum()
    assert found.kind == "gradient norm"
    assert found.certificate == np.linalg.norm(p.gradient(found.w[None])) <= 1e-9
    assert found.value == p.value(found.w[None])[0]
    reference = minimize(
        lambda w: p.value(w[None])[0], np.zeros(p.d), jac=lambda w: p.gradient(w[None])[0], method="BFGS", tol=1e-8
    )
    np.testing.assert_allclose(found.w, reference.x, atol=1e-6)
    assert found.value <= reference.fun + 1e-14


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_more_columns_than_rows(loss, make):
    X, y = noisy(n=30, d=80, loss=loss)
    p = Problem(make(X), y, loss=loss, l2=0.05)
    found = p.optimum()
    assert found.certificate <= 1e-9
    np.testing.assert_allclose(
        found.w, Problem(np.vstack([X] * 3), np.tile(y, 3), loss=loss, l2=0.05).optimum().w, atol=1e-8
    )


def test_collinear_columns():
    X, y = noisy()
    p = Problem(np.hstack([X, X[:, :3], np.zeros((300, 1))]), y)
    assert p.optimum().value == pytest.approx(Problem(X, y).optimum().value, abs=1e-12)
    assert p.optimum().certificate <= 1e-9


def test_against_scikit_learn():
    from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

    X, y = noisy()
    p = Problem(X, y, l2=0.01)
    ours = LogisticRegression(C=1 / (p.n * 0.01), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(p.optimum().w, ours.coef_[0], atol=1e-6)
    X, y = noisy(d=40, loss="squared")
    for l2, other in (
        (0.0, Lasso(alpha=0.3, fit_intercept=False, tol=1e-12, max_iter=100_000)),
        (0.2, ElasticNet(alpha=0.5, l1_ratio=0.6, fit_intercept=False, tol=1e-12, max_iter=100_000)),
    ):
        p = Problem(X, y, loss="squared", l1=0.3, l2=l2)
        np.testing.assert_allclose(p.optimum().w, other.fit(X, y).coef_, atol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(300, 40), (60, 400)])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_l1_optimum(loss, shape, make, l2):
    """Gap ≤ 1e-10, the optimality conditions hold coordinate by coordinate, and the gap bounds the error."""
    X, y = noisy(*shape, loss=loss)
    l1 = 0.2 * np.abs(X.T @ y).max() / len(y)
    p = Problem(make(X), y, loss=loss, l1=l1, l2=l2)
    found = p.optimum()
    assert found.kind == "duality gap"
    assert found.certificate <= 1e-10
    assert 0 < np.count_nonzero(found.w) < p.d
    slope = p.gradient(found.w[None])[0]
    on = found.w != 0
    np.testing.assert_allclose(slope[on], -l1 * np.sign(found.w[on]), atol=1e-7)
    assert np.abs(slope[~on]).max() <= l1 + 1e-7
    rng = np.random.default_rng(1)
    for size in (1e-4, 1e-2, 1.0):
        w = found.w + size * rng.standard_normal(p.d)
        assert duality_gap(p, w) >= p.value(w[None])[0] - found.value - 1e-12


@pytest.mark.parametrize("seed", [1, 2])
def test_a_step_whose_gain_is_below_rounding_is_taken_for_the_last_digits_of_the_gap(seed):
    X, y = noisy(60, 20, seed)
    problem = Problem(X, y, l1=0.3 * np.abs(X.T @ y).max() / len(y))
    assert solve_sparse(problem, 1e-15)[1] < 1e-14


def test_l1_beyond_the_largest_weight_gives_zero():
    X, y = noisy()
    l1 = np.abs(X.T @ y).max() / (2 * len(y))  # ‖∇(mean loss)‖_∞ at zero
    assert not Problem(X, y, l1=l1 * 1.001).optimum().w.any()
    assert Problem(X, y, l1=l1 * 0.999).optimum().w.any()


def test_l1_path_with_warm_starts():
    X, y = noisy(d=40)
    w = None
    for l1 in (0.2, 0.1, 0.05, 0.02):
        p = Problem(X, y, l1=l1)
        w = optima.minimise(p, start=w).w
        np.testing.assert_allclose(w, p.optimum().w, atol=1e-6)


def test_duplicate_columns_with_l1():
    X, y = noisy()
    single, double = Problem(X, y, l1=0.05).optimum(), Problem(np.hstack([X, X]), y, l1=0.05).optimum()
    assert double.value == pytest.approx(single.value, abs=1e-10)


@pytest.mark.parametrize(("g", "fits"), [
    ([-0.6, -2.0, 0.3], True), ([-0.5, -2.0, 0.3], True), ([-0.4, -2.0, 0.3], False), ([-0.6, -2.0, 0.5], True),
    ([-0.6, -2.0, -0.5], True), ([-0.6, -2.0, 0.51], False), ([-0.6, 2.0, 0.3], False),
])  # fmt: skip
def test_signs_are_those_of_the_minimiser_up_to_zero(g, fits):
    """Of g·x + ‖x‖²/2 + ‖x‖₁/2 at the signs (+, +, 0): the soft threshold of -g, which may be 0 where a sign is."""
    found = _on_support(np.eye(3), np.array(g), np.zeros(3), np.array([1e-9, 1.0, 0.0]), 0.5)
    soft = -np.sign(g) * np.maximum(np.abs(g) - 0.5, 0)
    assert (found is not None) == fits == (soft[0] >= 0 and soft[1] >= 0 and soft[2] == 0 and g[0] <= -0.5)
    if fits:
        np.testing.assert_allclose(found, soft, atol=1e-15)


def test_the_gap_of_a_primal_and_a_dual_point_by_hand():
    """Σ ln(1 + e^{-m}) + wᵀRw/2, less Σ H(a) - wᵀRw/2, and ‖infeasibility‖·(1 + ‖w‖), over the rows."""
    w, ridge, margins, a = np.array([3.0, -4.0]), np.diag([0.1, 0.2]), np.array([0.0, 2.0, -1.0]), [0.5, 0.2, 1.0]
    quadratic = 0.1 * 9 + 0.2 * 16
    primal = math.log(2) + math.log(1 + math.exp(-2)) + math.log(1 + math.e) + quadratic / 2
    entropy = math.log(2) - 0.2 * math.log(0.2) - 0.8 * math.log(0.8) + 0  # 1·ln 1 and 0·ln 0
    for off, slack in (((0.0, 0.0), 0.0), ((0.6, 0.8), 1 + 5.0), ((-6.0, 8.0), 10 * (1 + 5.0))):
        point = PrimalDualPoint(w, np.array(a), 1 - np.array(a), np.ones(3), np.ones(3))
        exact = (primal - (entropy - quadratic / 2) + slack) / 3
        assert _gap(point, margins, np.array(off), ridge) == pytest.approx(exact, rel=1e-12)
    # Where an infeasible dual is above the primal, that distance counts too.
    above = PrimalDualPoint(w * 0, np.full(3, 0.5), np.full(3, 0.5), np.ones(3), np.ones(3))
    assert _gap(above, np.full(3, 20.0), np.zeros(2), ridge) == pytest.approx(math.log(2) - math.log1p(math.exp(-20)))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_separable_data_are_said_to_be(make):
    X, _ = noisy()
    p = Problem(make(X), np.where(X[:, 0] + 0.1 * X[:, 1] > 0, 1.0, -1.0), name="sorted")
    with pytest.raises(optima.NoOptimum, match=r"sorted.*separable.*l2"):
        p.optimum()
    assert Problem(p.X, p.y, l2=1e-4).optimum().certificate <= 1e-9


def test_rows_that_can_be_separated_from_the_rest():
    """A feature of one label only: F has no minimiser, its infimum is that over the other rows."""
    X, y = noisy()
    rare = np.zeros(300)
    rare[:5], y[:5] = 1.0, 1.0
    found = Problem(np.column_stack([X, rare]), y).optimum()
    rest = Problem(X[5:], y[5:]).optimum()
    assert found.value == pytest.approx(rest.value * 295 / 300, abs=1e-11)
    assert found.gap <= 1e-9
    assert found.w[-1] > 10


def test_far_optimum():
    """Columns of very different size, so that ‖w*‖ is a million: F* is that of the columns rescaled."""
    X, y = noisy()
    scale = np.logspace(0, -6, 8)
    assert Problem(X * scale, y).optimum().value == pytest.approx(Problem(X, y).optimum().value, abs=1e-10)


def test_newton_comes_back_from_steps_that_go_too_far():
    """Far from a label the loss is all but linear: Newton's step from there leads as far beyond it."""
    problem = Problem(np.ones((2, 1)), np.array([1e3, 1e3]), loss="pseudo-huber", row_bound=1.0)
    tried = []
    value = optima.evaluate

    def spied(of, w):
        tried.append(float(w[0]))
        return value(of, w)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optima, "evaluate", spied)
        assert optima.solve_newton(problem, 1e-11) == pytest.approx([1e3])
    assert max(tried) > 1e3 + 10  # so some were not taken
    assert len(tried) < 100


@pytest.mark.parametrize("change", [{"loss": "sigmoid"}, {"w2": 0.1}])
def test_nonconvex_problems_have_none(change):
    with pytest.raises(UserError, match="not convex"):
        Problem(*noisy(), **change).optimum()


@pytest.fixture
def counted(monkeypatch):
    """Counts how often an optimum is solved for."""
    calls = []
    solve = optima.minimise
    monkeypatch.setattr(optima, "minimise", lambda p, **more: calls.append(p) or solve(p, **more))
    return calls


@pytest.mark.parametrize("weights", [{}, {"l1": 0.05}])
def test_cache(tmp_path, counted, weights):
    first = Problem(*noisy(), folder=tmp_path, **weights).optimum()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("optimum-")
    assert path.suffix == ".npz"
    again = Problem(*noisy(), folder=tmp_path, **weights).optimum()
    assert len(counted) == 1
    assert again.value == first.value
    np.testing.assert_array_equal(again.w, first.w)
    Problem(*noisy(), folder=tmp_path, l2=0.1, **weights).optimum()
    Problem(*noisy(seed=1), folder=tmp_path, **weights).optimum()
    assert len(counted) == 3
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("weights", [{}, {"l1": 0.05}])
def test_a_damaged_cache_is_solved_anew(tmp_path, counted, weights):
    def problem():
        return Problem(*noisy(), folder=tmp_path, **weights)

    first = problem().optimum()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    wrong_point = {"w": first.w + 1e-3, "value": first.value, "gap": 0.0}
    uncertified = {**wrong_point, "value": problem().value(wrong_point["w"][None])[0]}
    for content in (
        b"",
        b"nonsense",
        whole[: len(whole) // 2],
        wrong_point,
        uncertified,
        {"w": first.w[:3], "value": 1, "gap": 0},
        {"w": first.w},
        {**wrong_point, "w": first.w * np.nan},
        {"w": first.w, "value": 0.1, "gap": 0.0},
    ):
        if isinstance(content, dict):
            np.savez(path, **content)
        else:
            path.write_bytes(content)
        before = len(counted)
        assert problem().optimum().value == pytest.approx(first.value, rel=1e-12)
        assert len(counted) == before + 1
        problem().optimum()
        assert len(counted) == before + 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_to(tmp_path):
    assert Problem(*noisy(), folder=tmp_path / "missing").optimum().certificate <= 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "value", "gap"),
    [
        ("a1a", 0.325618, 1e-10),
        ("adult", 0.388803, 1e-10),
        ("covertype", 0.492980, 1e-10),
        pytest.param("fmnist", 0.086440, 1e-7, marks=pytest.mark.slow),  # ‖w*‖ = 2e9: rounding decides on the steps
    ],
)
def test_published_optima(name, value, gap):
    try:
        datasets.load(name)
    except NotAtHand as reason:
        pytest.skip(str(reason))
    found = build(name).optimum()
    assert found.value == pytest.approx(value, abs=6e-7)
    assert found.gap <= gap


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "start", "nonzeros"),
    [
        ("california", 0.0963, 3),
        ("square", 0.757, 7),
        ("dorothea", 0.783, 72),
        ("madelon-l1", 0.01157, 3),
        ("madelon", 0.05124, 501),
        ("log1", 0.640, 100),
        ("log2", 0.575, 100),
    ],
)
def test_starts_and_non_zeros_of_greedy_coordinates_problems(name, start, nonzeros):
    """Published: 3, 7, 72 and 3 non-zeros; starts near 0.096, 0.75, 0.78, 0.012, 0.0512, 0.63 and 0.59."""
    try:
        problem = build(name)
    except NotAtHand as reason:
        pytest.skip(str(reason))
    found = problem.optimum()
    assert np.count_nonzero(found.w) == nonzeros
    assert problem.value(np.zeros((1, problem.d)))[0] / found.value - 1 == pytest.approx(start, rel=1e-3)
    assert found.certificate <= (1e-10 if problem.l1 else 1e-9)


def test_another_convex_loss():
    """A loss without a solver of its own: log cosh(y - z)."""

    class LogCosh(losses.Squared):
        name = "log-cosh"

        def value(self, z, y, out):
            out[...] = np.log(np.cosh(z - y))
            return out

        def derivative(self, z, y, out):
            out[...] = np.tanh(z - y)
            return out

        def second_derivative(self, z, y, out):
            out[...] = 1 / np.cosh(z - y) ** 2
            return out

    p = Problem(*noisy(loss="squared"), loss=LogCosh())
    found = p.optimum()
    assert found.certificate <= 1e-9
    reference = minimize(lambda w: p.value(w[None])[0], np.zeros(p.d), jac=lambda w: p.gradient(w[None])[0], tol=1e-8)
    np.testing.assert_allclose(found.w, reference.x, atol=1e-6)


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
    found = objective_perturbation.minimise(problem, start, b, ridge, 1e-11)
    monkeypatch.setattr(problem, "hessian", None)
    np.testing.assert_array_equal(objective_perturbation.minimise(problem, start, b, ridge, 1e-11)[0], found[0])
    monkeypatch.undo()
    monkeypatch.setattr(optimum, "fits", lambda *_: False)
    direct = objective_perturbation.minimise(problem, start, b, ridge, 1e-11)
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
    x = optimum.quadratic(A, m, g, v, l1)
    slope = g + A.T @ (A @ (x - v)) + m * (x - v)
    assert 0 < np.count_nonzero(x) < 90
    np.testing.assert_allclose(slope[x != 0], -l1 * np.sign(x[x != 0]), atol=1e-9)
    assert np.abs(slope[x == 0]).max() <= l1 + 1e-9


def test_it_is_taken_where_rows_are_fewer_and_the_curvature_has_a_bound_from_below():
    assert optimum.fits(wide_problem(), 0.1)
    assert optimum.fits(wide_problem(l2=0.1), 0.0)
    assert not optimum.fits(wide_problem(), 0.0)
    assert not optimum.fits(wide_problem(w2=0.1), 0.1)
    assert not optimum.fits(wide_problem(n=81), 0.1)
    assert not optimum.fits(wide_problem(loss="sigmoid"), 0.1)


@pytest.mark.parametrize("steady", [False, True])
def test_steps_are_those_of_the_whole_hessian(monkeypatch, steady):
    problem = wide_problem()
    arguments = problem, np.zeros((2, problem.d)), terms(problem), 0.01, 1e-11
    found = aop.minimise(*arguments, steady=steady)
    monkeypatch.setattr(optimum, "fits", lambda *_: False)
    direct = aop.minimise(*arguments, steady=steady)
    np.testing.assert_allclose(found[0], direct[0], atol=1e-12)
    np.testing.assert_array_equal(found[2], direct[2])


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_the_certificate_on_the_grid_does_not_rest_on_the_solver(l1):
    """What `nearly` promises of the released point holds by the gradient in whole d, whichever the steps."""
    problem = wide_problem(kind=ExactProblem, l1=l1)
    gamma, b = 30.0**-3, terms(problem, 1)
    near, norms, _ = problem.approximate_minimiser(
        objective_perturbation.minimise, np.zeros((1, problem.d)), b, 0.05, gamma
    )
    assert norms[0] <= gamma
    w = near.integers * near.unit
    g = problem.real.gradient(w)[0] + 0.05 * w[0] + b[0]
    assert (
        np.linalg.norm(objective_perturbation.least_subgradient(g, w[0] * (np.abs(w[0]) > near.unit), l1))
        <= gamma + 1e-6
    )
    poor = problem.approximate_minimiser(
        lambda real, W, *_: (W, np.zeros(1), np.zeros(1)), np.zeros((1, problem.d)), b, 0.05, gamma
    )
    assert poor[1][0] == np.inf


@pytest.mark.parametrize("name", ["objpert", "objpert-pure", "output-perturbation"])
def test_a_hundred_thousand_columns_take_no_hessian(name):
    X = scipy.sparse.random_array((40, 100_000), density=1e-3, rng=np.random.default_rng(3), format="csr")
    X /= scipy.sparse.linalg.norm(X, axis=1)[:, None] * (1 + 1e-12)
    problem = Problem(X.tocsr(), np.sign(np.arange(40) - 19.5), l1=1e-3, row_bound=1.0)
    accounting = "pure" if name == "objpert-pure" else "tight"
    assert np.isfinite(run(name, problem, accounting=accounting, delta=0.0 if accounting == "pure" else None).W).all()


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_a_sparse_minimiser_is_as_near_as_was_asked_for_relative_to_its_value(l2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30)) / 5
    problem = Problem(X, np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0), l1=0.002, l2=l2)
    best = problem.optimum().value
    for tolerance in np.geomspace(1e-8, 0.9, 25):
        w, gap = solve_sparse(problem, tolerance)
        value = problem.value(w[None])[0]
        assert value - best <= gap * (1 + 1e-9) + 1e-12
        assert gap <= tolerance * value
