"""Sums over the rows as integers: no rounding, no order, no longer row, and a sensitivity that is an exact integer."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dpbench.algorithms.aop import minimise
from dpbench.errors import PrivacyError
from dpbench.privacy.exact_sums import Sum
from dpbench.privacy.ledger import Relation
from dpbench.problems import Problem, grid
from dpbench.problems import exact as exact_problems
from dpbench.problems.exact import ExactProblem, in_order, weighted_sum
from dpbench.problems.grid import GridRows, ReplacedRows, ShortenedRows, on_grid, short_rows, square_bound
from dpbench.problems.losses import Logistic
from dpbench.problems.persons import OfPersons, PersonsProblem
from dpbench.problems.risk import Diverged
from dpbench.problems.rows import BLOCK, Rows

STEP = 2.0**-16


def made(n=3000, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, np.sign(rng.standard_normal(n)), rng.standard_normal((1, d)) * 3


def exact(X, y, **declared):
    return ExactProblem(X, y, **({"row_bound": 1.0} | declared))


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, "sparse"])
def test_rows_on_the_grid_are_within_the_bound_in_integers_and_no_row_gets_longer(norm, kind):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 6)) * np.exp(rng.uniform(-3, 3, (1500, 1)))
    X[0], X[1], X[2, 3] = 0.0, [1e300, -1e300, 1, 0, 0, 0] if kind == np.float64 else 1e30, np.nan
    X[3] = np.eye(6)[0] * (1 + 1e-13)
    given = sparse.csr_array(X) if kind == "sparse" else X.astype(kind)
    made_of = on_grid(given, 1.0, norm)
    found = made_of.toarray() if kind == "sparse" else made_of
    assert found.dtype == (np.float64 if kind == "sparse" else kind)
    whole = found.astype(float) / STEP
    assert (whole == np.trunc(whole)).all()
    for row in whole.astype(object).tolist():
        size = sum(int(v) ** 2 for v in row) if norm == "l2" else sum(abs(int(v)) for v in row)
        assert size <= (square_bound(1.0) if norm == "l2" else 2**16)
    plain = np.asarray(given.todense() if kind == "sparse" else given, dtype=float)
    plain[~np.isfinite(plain)] = 0
    assert (np.abs(found) <= np.abs(plain)).all()
    short = np.abs(plain).sum(axis=1) < 1
    assert np.abs(found - plain)[short].max() < STEP
    assert np.linalg.norm(found, 2 if norm == "l2" else 1, axis=1)[~short].max() > 1 - 1e-4


@pytest.mark.parametrize("bound", [0.01, 1.0, 100.0])
def test_float32_puts_the_same_rows_on_the_grid_as_float64(bound):
    """Rows next to the bound, on either side, or far beyond it: float32 leaves to integers what it cannot tell."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4000, 9))
    X *= (
        bound
        * (1 + rng.choice([0, 1e-7, 1e-5, 1e-3, 1e30], (4000, 1)) * rng.choice([-1, 1], (4000, 1)))
        / (np.linalg.norm(X, axis=1, keepdims=True))
    )
    X[5, 2], X[6, 3] = np.nan, np.inf
    X = X.astype(np.float32)
    found = on_grid(X, bound)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, on_grid(X.astype(np.float64), bound))
    assert on_grid(X, bound, owned=True) is X  # in place: a long row is read before it is overwritten
    np.testing.assert_array_equal(X, found)


def long_rows(n=5000, d=6):
    """Float32 rows, some of which are beyond 1, are at it, or are no numbers, and their labels."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d))
    X *= rng.choice([0.5, 1.0, 1 - 1e-5], (n, 1), p=[0.98, 0.01, 0.01]) / np.linalg.norm(X, axis=1, keepdims=True)
    X[::97] *= 1e4
    X[5, 2], X[17, 3], X[4999] = np.nan, np.inf, 1e38
    return X.astype(np.float32), rng.choice([-1.0, 1.0], n).astype(np.float32)


def test_rows_put_on_the_grid_as_they_are_read_are_those_of_the_copy():
    X, y = long_rows()
    short = short_rows(X, 1.0, "l2")
    assert short is not None
    assert set(range(0, len(X), 97)) <= set(short.rows)
    lazy, eager = GridRows(X, y, short), Rows(on_grid(X, 1.0), y)
    some = np.random.default_rng(4).integers(0, len(X), 1500)
    some[:3] = 5, 97, 4999
    for a, b in ((lazy, eager), (lazy.in_float64, eager.in_float64), (lazy.in_float64.in_float32, eager)):
        for rows in (None, some):
            for (A, u), (B, v) in zip(a.blocks(rows, 700), b.blocks(rows, 700), strict=True):
                assert A.dtype == B.dtype
                np.testing.assert_array_equal(A, B)
                np.testing.assert_array_equal(u, v)
    np.testing.assert_array_equal(lazy.take(some)[0], eager.take(some)[0])
    np.testing.assert_array_equal(lazy.X, eager.X)
    assert short_rows(X[::97], 1.0, "l2") is None
    assert short_rows(X.astype(float), 1.0, "l2") is None


@pytest.mark.parametrize("copied", [False, True])
def test_who_reads_all_rows_many_times_gets_a_copy_unless_they_are_too_many(copied, monkeypatch):
    X, y = long_rows()
    monkeypatch.setattr(grid, "COPIED", X.nbytes - (not copied))
    rows = GridRows(X, y, short_rows(X, 1.0, "l2"))
    made = []
    read = GridRows._made
    monkeypatch.setattr(GridRows, "_made", lambda self, *a: made.append(1) or read(self, *a))
    expected = on_grid(X, 1.0)
    for turn in range(grid.PASSES + 5):
        made.clear()
        one = rows if turn % 2 else rows.in_float64
        for start, (A, _) in enumerate(one.blocks(None, 2500)):
            np.testing.assert_array_equal(A, expected[2500 * start : 2500 * (start + 1)])
        assert bool(made) == (turn <= grid.PASSES or not copied)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_that_others_stand_for_are_those_in_every_sum(kind):
    X, y = long_rows()
    copied, y = on_grid(X, 1.0).astype(kind), y.astype(kind)
    which = np.array([0, 5, 17, 2498, 2499, 4999])
    X = copied.copy()
    X[which], values = np.nan, copied[which]
    loss, W = Logistic(), np.random.default_rng(6).standard_normal((2, 6))
    ours, plain = ReplacedRows(X, y, ShortenedRows(which, values)), Rows(copied, y)
    plain.__dict__.update(common=None, _entries=None)
    some = np.array([5, 4999, 1, 5, 3000])
    for a, b in ((ours, plain), (ours.in_float64, plain.in_float64)):
        for rows in (None, some):
            np.testing.assert_array_equal(
                a.weighted_sum(loss.derivative, W, rows), b.weighted_sum(loss.derivative, W, rows)
            )
            np.testing.assert_array_equal(
                a.gram(loss.second_derivative, W, rows), b.gram(loss.second_derivative, W, rows)
            )
        np.testing.assert_array_equal(a.sum(loss.value, W), b.sum(loss.value, W))
    np.testing.assert_array_equal(ours.take(some)[0], copied[some])
    assert "X" not in ours._kept
    np.testing.assert_array_equal(ours.X, copied)


def test_a_problem_shows_no_row_that_is_not_on_the_grid(monkeypatch):
    X, y = long_rows()
    eager = exact(X, y, l2=0.1)
    monkeypatch.setattr(exact_problems, "LARGE", 1)
    lazy = exact(X, y, l2=0.1)
    W, chosen = np.random.default_rng(0).standard_normal((1, 6)), np.array([5, 97, 4999, 5])
    for call in ("gradient_sum", "hessian_sum"):
        for rows in (None, chosen):
            np.testing.assert_array_equal(getattr(lazy, call)(W, rows).integers, getattr(eager, call)(W, rows).integers)
    found, expected = (p.approximate_minimiser(minimise, np.zeros((1, 6)), 1e-3 * W, 0.1, 1e-9) for p in (lazy, eager))
    np.testing.assert_allclose(found[0].integers * found[0].unit, expected[0].integers * expected[0].unit, atol=1e-9)
    assert "X" not in vars(lazy) | lazy._rows._kept  # no copy so far
    np.testing.assert_array_equal(lazy.take(chosen)[0], eager.X[chosen])
    again = pickle.loads(pickle.dumps(lazy))
    np.testing.assert_array_equal(again.gradient_sum(W).integers, eager.gradient_sum(W).integers)
    for one in (lazy, again, lazy.real):
        np.testing.assert_array_equal(one.X, eager.X)
    clip = np.array([0.5])
    np.testing.assert_array_equal(lazy.clipped_gradient(W, clip).integers, eager.clipped_gradient(W, clip).integers)


def test_of_float32_rows_a_certificate_is_the_gradient_that_the_solver_stopped_at(monkeypatch):
    X, y, w = made()
    problem = exact(X.astype(np.float32), y.astype(np.float32), l2=0.1)
    taken = []
    monkeypatch.setattr(exact_problems, "in_order", lambda *a: taken.append(a[2].copy()) or in_order(*a))
    near, norms, _ = problem.approximate_minimiser(minimise, np.zeros_like(w), 1e-3 * w, 0.1, 1e-9)
    assert norms[0] <= 1e-9
    assert len({one.tobytes() for one in taken}) == len(taken)
    real = Problem(problem.X.astype(float), problem.y.astype(float), l2=0.1)
    point = near.integers * near.unit
    assert np.linalg.norm(real.gradient(point) + 0.1 * point + 1e-3 * w) <= 1e-8


def by_hand(problem, w, bound=None):
    """Σ c_i x_i in rational numbers, from the rows and weights that `ExactProblem` says it takes."""
    (w,) = problem.margins(w)
    total = [Fraction(0)] * problem.d
    for x, y in zip(problem.X.astype(float), problem.y, strict=True):
        z = float(sum(Fraction(a) * Fraction(b) for a, b in zip(x, w, strict=True)))
        c = problem.loss.derivative(np.array([[z]]), np.array([y]), np.empty((1, 1)))[0, 0]
        most = Fraction(problem.loss.lipschitz if bound is None else bound)
        c = max(-most, min(most, Fraction(round(c / STEP)) * Fraction(STEP)))
        total = [t + c * Fraction(a) for t, a in zip(total, x, strict=True)]
    return [t / Fraction(STEP) ** 2 for t in total]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "sigmoid", "pseudo-huber"])
def test_a_sum_is_what_rational_arithmetic_says(loss, single):
    X, y, w = made(200)
    problem = exact(X.astype(np.float32) if single else X, y, loss=loss)
    found = problem.gradient_sum(w)
    assert found.integers.tolist() == [by_hand(problem, w)]
    plain = Problem(X, y, loss=loss, row_bound=1.0).gradient_sum(w)
    np.testing.assert_allclose(found.integers * found.unit, plain, atol=200 * 4 * STEP)


def test_squared_loss_is_clipped_after_rounding_and_moments_too():
    X, y, w = made(150)
    problem = exact(X, y * 5, loss="squared")
    assert (problem.bounded_gradient(w, 0.3) * 150).integers.tolist() == [by_hand_clipped(problem, w, 0.3)]
    moments = problem.label_moments(2.0)
    np.testing.assert_array_equal(
        moments.integers[0] * moments.unit, (problem.X * np.clip(y * 5, -2, 2)[:, None]).sum(0)
    )
    with pytest.raises(PrivacyError, match="no bound on its derivative"):
        problem.gradient(w)


def by_hand_clipped(problem, w, bound):
    return by_hand(problem, w, math.floor(Fraction(bound) / Fraction(STEP)) * Fraction(STEP))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_hessian_in_integers_is_that_of_real_numbers_but_for_steps_of_each_curvature(make):
    X, y, w = made(400, 5)
    found, real = exact(make(X), y).hessian_sum(w), Problem(make(X), y).hessian_sum(w)
    step = Logistic().smoothness * 2.0**-8
    assert np.abs(found.integers * found.unit - real).max() < 400 * step
    assert np.abs(X.T @ X / 4 - real).max() > 2000 * step  # what it would be at w = 0


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_permutations_give_the_same_bits(make):
    X, y, w = made(20_000, 13)
    whole = exact(make(X), y, l2=0.1)
    grams = whole.second_moment().integers, whole.data_hessian(w).integers
    sums = whole.gradient(w).integers
    rng = np.random.default_rng(5)
    for _ in range(3):
        order = rng.permutation(len(y))
        other = exact(make(X[order]), y[order], l2=0.1)
        np.testing.assert_array_equal(other.gradient(w).integers, sums)
        np.testing.assert_array_equal(other.second_moment().integers, grams[0])
        np.testing.assert_array_equal(other.data_hessian(w).integers, grams[1])
    assert not whole.gradient_sum(w, order[:0]).integers.any()


def test_a_rows_weight_does_not_depend_on_its_place():
    """The elementwise functions of every loss, at every offset of a block: none has a remainder loop of its own."""
    rng = np.random.default_rng(2)
    z, y = rng.normal(0, 4, 67), np.sign(rng.normal(size=67))
    X = np.array([[1.0]])
    losses = [exact(X, np.ones(1), loss=name).loss for name in ("logistic", "sigmoid", "pseudo-huber", "squared")]
    for function in [each for loss in losses for each in (loss.derivative, loss.value)]:
        alone = [function(np.array([[a]]), np.array([b]), np.empty((1, 1)))[0, 0] for a, b in zip(z, y, strict=True)]
        for first in range(9):
            part = z[None, first:].copy()
            np.testing.assert_array_equal(function(part, y[first:], part)[0], alone[first:])


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_clipped_values_are_what_integers_say_and_a_row_moves_them_by_the_clip(loss):
    X, y, w = made(300)
    problem = exact(X, y, loss=loss)
    total = problem.clipped_value(w, 0.75) * problem.n
    z = np.asarray(problem.margins(w) @ np.asarray(problem.X).T)
    by_hand = sum(round(min(float(v), 0.75) * 2**16) for v in problem.loss.value(z, y, z.copy())[0])
    assert total.integers.tolist() == [by_hand]
    assert (total.unit, total.moved.two) == (2.0**-16, (0.75 * 2**16) ** 2)
    # Neighbours at both ends: a loss of 0 beside one far beyond the clip.
    far, near = (exact(np.array([[s], [0.5]]), np.ones(2), loss="logistic") for s in (-1.0, 1.0))
    apart = [(p.clipped_value(np.array([[1e6]]), 0.75) * 2).integers[0] for p in (far, near)]
    assert apart[0] - apart[1] == 0.75 * 2**16
    with pytest.raises(PrivacyError, match="one replicate"):
        problem.clipped_value(np.vstack([w, w]), 0.75)
    with pytest.raises(PrivacyError, match="must be positive"):
        problem.clipped_value(w, -1.0)


@pytest.mark.parametrize("loss", ["logistic", "pseudo-huber"])
def test_neighbours_move_sums_by_no_more_than_the_integers_that_are_claimed(loss):
    """Never passed, and attained where both signs of a derivative are there at one margin (pseudo-Huber)."""
    rng = np.random.default_rng(4)
    X, y, _ = made(30, 3)
    X[0] = [1.0, 0.0, 0.0]
    most = 0
    for sign in (1, -1):
        for x in [*rng.standard_normal((40, 3)) * 3, [sign, 0.0, 0.0], [-sign, 0.0, 0.0]]:
            other, labels = X.copy(), y.copy()
            other[0], labels[0] = x, -y[0] if loss == "logistic" else 1e9
            W = np.array([[1e6 * sign, 0.0, 0.0]])
            pairs = [exact(X, y, loss=loss), exact(other, labels, loss=loss)]
            for found in (
                [p.gradient_sum(W) for p in pairs],
                [p.second_moment() for p in pairs],
                [p.data_hessian(W) for p in pairs],
            ):
                moved = (found[0].integers - found[1].integers).astype(object).ravel()
                assert sum(int(v) ** 2 for v in moved) <= found[0].moved.two
            first = [p.gradient_sum(W) for p in pairs]
            most = max(most, sum(int(v) ** 2 for v in (first[0].integers - first[1].integers).astype(object).ravel()))
    assert first[0].moved.two == 4 * 2**64
    assert (most == 4 * 2**64) == (loss == "pseudo-huber")


def test_what_would_not_fit_is_refused():
    X, y, w = made(5)
    for bound in (0.99 * 2.0**-8, 1.01 * 2.0**8):
        with pytest.raises(PrivacyError, match=f"rows of norm {bound:g} do not fit the grid; rescale them to about 1"):
            exact(X, y, row_bound=bound)
    for bound in (2.0**-8, 2.0**8):
        assert exact(X, y, row_bound=bound).row_bound == bound
    problem = exact(X, y, loss="squared")
    with pytest.raises(PrivacyError, match="does not fit float64"):
        problem.bounded_gradient(w, 1e8)
    problem.n = 2**31
    with pytest.raises(PrivacyError, match="do not fit 64 bits"):
        problem.bounded_gradient(w, 1.0)
    problem.n = 2**31 - 2**20
    assert problem.bounded_gradient(w, 1.0).shape == (1, 7)
    problem.n = 2**12 - 1  # times 2⁵¹ it is the largest sum there may be
    state = problem.coordinate_state(np.atleast_2d(w))
    state.derivative(0, np.array([2.0**19]))
    with pytest.raises(PrivacyError, match="do not fit 64 bits"):
        state.derivative(0, np.array([2.0**19 + 1]))


def test_an_iterate_that_left_float64_stops_the_run_whatever_the_data():
    X, y, _ = made(5, 2)
    for far in (1e101, np.inf, np.nan):
        with pytest.raises(Diverged, match="choose a smaller step"):
            exact(X, y).gradient(np.array([[far, 0.0]]))
    assert np.isfinite(exact(X, y).gradient(np.array([[1e99, -1e99]])).integers).all()


def test_a_sum_cannot_be_read_before_noise():
    X, y, w = made(9)
    found = exact(X, y).gradient(w)
    for use in (
        lambda: np.asarray(found),
        lambda: found + found,
        lambda: found * np.ones(2),
        lambda: found * -1.0,
        lambda: found[0],
        lambda: np.linalg.norm(found),
        lambda: np.tile(found, (2, 1)),
        lambda: np.exp(found),
        lambda: float(found),
        lambda: found > 0,
    ):
        with pytest.raises((PrivacyError, TypeError)):
            use()
    assert isinstance(np.ones(7) + (2 * found / 3), Sum)
    assert np.stack([found]) is found
    assert found.moved.l2(Relation.REPLACE_ONE) == pytest.approx(2 * found.moved.l2(Relation.ADD_REMOVE))


def ideal(problem, theta, ridge):
    """The linear term at which `theta` is the exact minimiser, in extended precision."""
    X, y, theta = (np.asarray(v, dtype=np.longdouble) for v in (problem.X, problem.y, theta))
    z = X @ theta
    weights = -y / (1 + np.exp(y * z)) if problem.loss.name == "logistic" else (z - y) / np.hypot(z - y, 1)
    return -(X.T @ weights / problem.n + (ridge + problem.l2) * theta)


@pytest.mark.parametrize("loss", ["logistic", "pseudo-huber"])
def test_a_perturbed_minimiser_is_as_near_the_ideal_one_as_its_certificate_says(loss):
    """Tables that agree on the ideal release have points within twice the radius, its term's rounding included."""
    rng = np.random.default_rng(8)
    X, y, _ = made(60, 3)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = -X[0], -y[0]
    ridge, gamma, step = 0.02, 1e-6, 2.0**-24
    for _ in range(10):
        theta, points = rng.normal(0, 2, 3), []
        for A, b in ((X, y), (other, labels)):
            problem = exact(A, b, loss=loss, l2=0.01)
            term = np.rint(np.asarray(ideal(problem, theta, ridge) / step, dtype=float)) * step
            near, norms, _ = problem.approximate_minimiser(minimise, np.zeros((1, 3)), term[None], ridge, gamma)
            assert norms[0] <= gamma
            assert near.objective.convexity == pytest.approx(0.03)
            radius = near.radius + step * math.sqrt(3) / 2 / near.objective.convexity
            points.append(near.integers[0] * near.unit)
            assert np.linalg.norm(points[-1] - theta) <= radius
        assert radius < 1.2 * gamma / 0.03 + step * math.sqrt(3) / 2 / 0.03
        assert np.linalg.norm(points[0] - points[1]) <= 2 * radius


def test_a_solver_that_stops_early_or_says_what_is_not_so_is_not_believed():
    X, y, _ = made(60, 3)
    problem = exact(X, y, l2=0.01)
    lazy = lambda problem, W, b, ridge, gamma: (W, np.zeros(1), np.zeros(1))  # noqa: E731
    _, norms, _ = problem.approximate_minimiser(lazy, np.zeros((1, 3)), np.ones((1, 3)), 0.02, 1e-6)
    assert norms[0] == np.inf
    broken = lambda problem, W, b, ridge, gamma: (W * np.nan, np.zeros(1), np.zeros(1))  # noqa: E731
    _, norms, _ = problem.approximate_minimiser(broken, np.zeros((1, 3)), np.ones((1, 3)), 0.02, 1e-6)
    assert norms[0] == np.inf
    with pytest.raises(PrivacyError, match="not strongly convex"):
        exact(X, y).approximate_minimiser(minimise, np.zeros((1, 3)), np.ones((1, 3)), 0.0, 1e-6)


def test_the_error_that_a_certificate_allows_for_is_not_passed():
    """The gradient in float64 against the one in extended precision, at margins of every size."""
    X, y, w = made(5000, 40)
    for loss in ("logistic", "pseudo-huber"):
        problem = exact(X, y, loss=loss)
        for size in (0.0, 1.0, 30.0, 1000.0):
            V = w * size / np.linalg.norm(w)
            found = in_order(problem._rows, problem.loss.derivative, V)[0] / problem.n
            off = np.linalg.norm(np.asarray(found + ideal(problem, V[0], 0.0), dtype=float))
            assert off <= problem._off(size)


def test_several_outputs_a_row_are_vectors_within_their_bound():
    rng = np.random.default_rng(3)
    X, _, _ = made(300, 4)
    y = rng.integers(0, 3, 300).astype(float)
    W = rng.normal(0, 3, (1, 12))
    for bound in (np.sqrt(2), 0.3):
        found = exact(X, y, loss="softmax-3").bounded_gradient(W, bound)
        plain = Problem(X, y, loss="softmax-3", row_bound=1.0).bounded_gradient(W, bound)
        np.testing.assert_allclose(found.integers * found.unit, plain, atol=4 * STEP)
        assert found.moved.two == 4 * square_bound(bound) * 2**32
    order = rng.permutation(300)
    other = exact(X[order], y[order], loss="softmax-3").gradient(W)
    np.testing.assert_array_equal(other.integers, exact(X, y, loss="softmax-3").gradient(W).integers)
    for row in range(20):
        one = exact(X[row : row + 1], y[row : row + 1], loss="softmax-3").bounded_gradient(W * 100, 0.3)
        assert sum(int(v) ** 2 for v in one.integers.ravel()) <= one.moved.one


@pytest.mark.parametrize("ask", [
    lambda p, w: p.label_moments(1.0), lambda p, w: p.second_moment(), lambda p, w: p.score_moment(w, 1.0),
    lambda p, w: p.clipped_curvature(w, 1.0), lambda p, w: p.clipped_value(w, 1.0), lambda p, w: p.data_hessian(w),
    lambda p, w: p.clipped_gradient(w, np.ones(1), even=True), lambda p, w: p.coordinate_state(w),
])  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_of_several_outputs_no_sum_but_gradients_has_a_distance(ask, weighted):
    """A row's k labels are k multiples of it: their sum moves by √k times what one label's does."""
    X, y = np.ones((4, 1)), np.array([2.0, 0, 1, 0])
    one = PersonsProblem(X, y, OfPersons.once(4), loss="softmax-3", row_bound=1.0) if weighted else exact(
        X, y, loss="softmax-3")  # fmt: skip
    with pytest.raises(PrivacyError, match="softmax-3"):
        ask(one, np.zeros((1, 3)))


def test_what_float64_might_round_goes_into_integers_before():
    """With room for three rows at a time the sum is the same to its last digit."""
    X, y, w = made(500)
    problem = exact(X, y)
    function = lambda z, y, out: np.rint(problem.loss.derivative(z, y, out) * 2**16) / 2**16  # noqa: E731
    rows = Rows(problem.X, problem.y)
    found = [weighted_sum(rows, room, function, problem.margins(w), 32) for room in (3, 2**21)]
    np.testing.assert_array_equal(found[0], found[1])


# Coordinates


@pytest.mark.parametrize("kind", [np.float64, np.float32, sparse.csr_array])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_clipped_coordinates_are_what_integers_say_and_a_rows_part_is_within_its_threshold(kind, loss):
    X, y, W = made(2500, 5)
    X[np.abs(X) < 0.2] = 0.0
    problem, clip = exact(kind(X) if kind is sparse.csr_array else X.astype(kind), y, loss=loss), 0.3
    found = problem.clipped_gradient(W, np.array([clip]), even=True)
    rows = np.asarray(problem.X.toarray() if kind is sparse.csr_array else problem.X, dtype=float)
    z = (rows @ problem.margins(W)[0])[None]
    c = np.rint(problem.loss.derivative(z, y, np.empty_like(z))[0] * 2**16).astype(int).astype(object)
    most = int(clip / math.sqrt(5) * 2**32)
    parts = np.clip(c[:, None] * np.rint(rows * 2**16).astype(int).astype(object), -most, most)
    assert (np.abs(parts) == most).any()
    np.testing.assert_array_equal(found.integers[0].astype(object), parts.sum(axis=0))
    np.testing.assert_array_equal(found.most, most)
    moving, settled = problem.coordinate_state(np.zeros_like(W)), problem.coordinate_state(W)
    for j in range(5):
        moving.move(j, W[0, j : j + 1])
    for j in range(5):
        first, second = (state.derivative(j, np.array([clip / math.sqrt(5)])) for state in (moving, settled))
        assert second.moved == (most**2, 4 * most**2, most)
        assert second.integers[0] == pytest.approx(int(found.integers[0, j]), rel=1e-3)
        assert first.integers[0] == pytest.approx(int(second.integers[0]), rel=1e-3)
        place = np.array([0]), np.array([j])
        assert found[place].moved == second.moved
    moving.move(0, np.array([1e-9]))
    exactly = [math.fsum(row * moving._on_grid) for row in rows]  # products and sums without a rounding
    np.testing.assert_array_equal(moving._margins[0][1]._z[0], exactly)


def test_coordinates_do_not_depend_on_the_order_of_rows():
    X, y, W = made(2500, 5)
    order = np.random.default_rng(3).permutation(len(y))
    first, second = exact(X, y), exact(X[order], y[order])
    clip = np.array([0.7])
    np.testing.assert_array_equal(*(one.clipped_gradient(W, clip, even=True).integers for one in (first, second)))
    np.testing.assert_array_equal(*(one.coordinate_state(W).derivative(2, clip).integers for one in (first, second)))


class NoNumber(Logistic):
    """Whose derivative is no number far out, as where somebody writes e^z/(1 + e^z)."""

    name = "no-number"

    def derivative(self, z, y, out):
        out[...] = np.where(np.abs(z) > 50, np.nan, 0.5)
        return out


def test_a_row_whose_derivative_is_no_number_moves_a_sum_no_further_than_another():
    X, y, _ = made(50, 3)
    for W in (np.zeros((1, 3)), np.full((1, 3), 1e6)):
        problem = exact(X, y, loss=NoNumber())
        assert np.abs(problem.gradient_sum(W).integers).max() <= 50 * 2**32
        assert np.abs(problem.clipped_gradient(W, np.array([0.3]), even=True).integers).max() <= 50 * 2**32


@pytest.mark.parametrize(("loss", "row_bound", "n", "d", "norm"), [
    ("logistic", 1.0, 3000, 7, 0.0), ("logistic", 1.0, 3000, 7, 1e9), ("pseudo-huber", 4.0, 200, 40, 3e7),
    ("sigmoid", 0.25, 9000, 3, 0.0),
])  # fmt: skip
def test_what_rounding_moves_a_gradient_by_is_the_sum_of_what_each_step_moves_it_by(loss, row_bound, n, d, norm):
    """In exact arithmetic: the margin, the derivative of it, and sums of at most `depth` numbers each."""
    problem = exact(*made(n, d)[:2], loss=loss, row_bound=row_bound)
    R, u, block = Fraction(row_bound), Fraction(2) ** -53, Rows.widened_size(d)
    margin = (d + 2) * u * R * Fraction(norm)
    derivative = Fraction(problem.loss.smoothness) * margin + Fraction(2) ** -49
    sums = (BLOCK + block // BLOCK + -(-n // block) + 8) * u * Fraction(problem.loss.lipschitz)
    assert R * (derivative + sums) <= Fraction(problem._off(norm)) * Fraction(101, 100)
    assert Fraction(problem._off(norm)) <= R * (derivative + sums) * Fraction(102, 100)
    depth = BLOCK + Fraction(block, BLOCK) + Fraction(n, block) + 8
    told = R * (derivative + Fraction(1.01) * depth * u * Fraction(problem.loss.lipschitz))
    assert told <= Fraction(problem._off(norm)) <= told * (1 + Fraction(2) ** -39)  # and is rounded up


# An eigenvalue


@pytest.mark.parametrize(("n", "d"), [(40, 3), (3000, 20), (5, 8)])
def test_the_least_eigenvalue_is_as_near_as_it_says_also_of_a_singular_matrix(n, d):
    X, y, _ = made(n, d)
    if n == 3000:
        X[:, 1] = X[:, 0]
    problem = exact(X, y, loss="squared")
    gram = problem.hessian_sum(np.zeros(d))
    found = problem.least_eigenvalue(gram)
    true = np.linalg.eigvalsh(gram.integers[0].astype(float))[0] * gram.unit
    assert abs(int(found.integers[0]) * found.unit - true) <= found.radius
    assert found.radius < 1e-5
    off = max(1.02 * ((d + 1) ** 2 + 2) * 2.0**-53 * n, 2.0**-20)  # a step is of the size of the error, and no larger
    assert off / 2 < found.unit / gram.unit / 2.0**40 <= off
    assert (
        found.neighbour_distance(Relation.ADD_REMOVE)
        == found.neighbour_distance(Relation.REPLACE_ONE)
        == pytest.approx(1.0, rel=1e-3)
    )
    with pytest.raises(PrivacyError, match="may not be read"):
        np.asarray(found)


@pytest.mark.parametrize(("n", "d"), [(40, 3), (3000, 7)])
def test_the_least_eigenvalue_takes_as_many_factorisations_as_the_mean_of_all_has_digits(n, d, monkeypatch):
    """Of steps up to n rows' trace over d; and as many for all data, so that time tells nothing of them."""
    shifts, factorised = [], exact_problems._positive
    monkeypatch.setattr(exact_problems, "_positive", lambda A, shift: shifts.append(shift) or factorised(A, shift))
    for scale in (1.0, 1e-3):
        X, y, _ = made(n, d)
        gram = (problem := exact(scale * X, y, loss="squared")).hessian_sum(np.zeros(d))
        found = problem.least_eigenvalue(gram)
        steps = n / d * gram.unit * 2.0**40 / found.unit
        shifts.clear()
        assert found.integers[0] <= steps
        assert len(shifts) == math.ceil(math.log2(math.floor(steps) + 2))


def test_margins_are_made_once_and_anew_where_the_model_outgrows_their_grid(monkeypatch):
    """At 0 there is room for a norm of 2, at one of 6 for 12."""
    X, y, W = made(200, 5)
    margins, at = [], exact_problems.Margins
    monkeypatch.setattr(exact_problems, "Margins", lambda columns, w: margins.append(w.copy()) or at(columns, w))
    state = exact(X, y).coordinate_state(np.zeros_like(W))
    for change, times in ((0.5, 1), (1.5, 1), (-1.0, 1), (5.0, 2), (4.0, 2), (2.0, 2), (0.5, 3)):
        state.move(0, np.array([change]))
        assert state.derivative(1, np.array([0.1])).integers.shape == (1,)
        assert len(margins) == times, change
    np.testing.assert_allclose([w[0] for w in margins], [0.0, 6.0, 12.5])


def test_cholesky_breaks_down_within_the_distance_that_is_claimed():
    """A matrix whose least eigenvalue is known, at shifts around it of the distance and of what float64 shows."""
    problem = exact(*made(100, 30)[:2], loss="squared")
    gram = problem.hessian_sum(np.zeros(30))
    A = gram.integers[0].astype(float)
    off = 1.02 * (31**2 + 2) * 2.0**-53 * problem.n * 2.0**40
    least = np.linalg.eigvalsh(A)[0]
    assert exact_problems._positive(A, least - off)
    assert not exact_problems._positive(A, least + off)


def test_a_sparse_row_with_a_column_twice_is_as_long_as_its_sums():
    twice = sparse.csr_array(([0.7, 0.7, 0.5], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    found = on_grid(twice, 1.0).toarray()
    np.testing.assert_allclose(found, np.diag([1.0, 0.5]), atol=2 * STEP)
    assert found.max() <= 1


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("bound", [1.0, 3.0, 2.0**20, 2.0**30])
def test_a_row_beyond_a_large_bound_is_within_it_in_integers_too(norm, bound):
    """Where a bound has more steps than 2⁴⁰, what rounding adds to it is more than a step."""
    X = np.random.default_rng(0).standard_normal((200, 4)) * 10 * bound
    X[0], X[1] = [2 * bound, 0, 0, 0], [bound] * 4
    for row in (on_grid(X, bound, norm) / STEP).astype(object).tolist():
        size = sum(int(v) ** 2 for v in row) if norm == "l2" else sum(abs(int(v)) for v in row)
        assert size <= (square_bound(bound) if norm == "l2" else int(bound * 2**16))
