"""Losses, regularisers and kernels against finite differences, the naive formula and brute force.

Per-coordinate clipping against its definition, dense and sparse; and the sensitivity it is for.
"""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpbench.errors import DataError, UserError
from dpbench.problems import Problem, losses, risk
from dpbench.problems import problem as columns
from dpbench.problems import rows as kernels

REGULARISERS = [{}, {"l2": 0.3}, {"w2": 0.2}, {"l2": 0.3, "w2": 0.2}]
SMOOTH = [*(name for name, loss in losses.LOSSES.items() if loss.smooth), "quantile-0.9"]


def data(loss, n=60, d=5, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * scale
    y = rng.standard_normal(n) if loss in ("squared", "pseudo-huber", "quantile-0.9") else rng.choice([-1.0, 1.0], n)
    return X, y


def naive_value(p, w):
    z = np.asarray(p.X @ w).ravel()
    each = {
        "logistic": lambda: np.logaddexp(0, -p.y * z),
        "sigmoid": lambda: 1 / (1 + np.exp(-p.y * z)),
        "squared": lambda: (p.y - z) ** 2 / 2,
        "pseudo-huber": lambda: np.sqrt(1 + (p.y - z) ** 2) - 1,
        "quantile-0.9": lambda: 0.05 * np.logaddexp(0, (z - p.y) / 0.05) - 0.9 * (z - p.y),
    }[p.loss.name]()
    penalty = p.l1 * np.abs(w).sum() + p.l2 / 2 * (w @ w) + p.w2 * (w**2 / (1 + w**2)).sum()
    return each.mean() + penalty


# Without the quantile, which bends too fast for these steps: `losses.check` takes others.
@pytest.mark.parametrize(("loss", "weights"), list(itertools.product(SMOOTH[:-1], REGULARISERS)))
def test_finite_differences(loss, weights):
    p = Problem(*data(loss), loss=loss, **weights)
    rng = np.random.default_rng(1)
    W, D = rng.standard_normal((2, 3, p.d))
    step = 1e-5
    slope = (p.value(W + step * D) - p.value(W - step * D)) / (2 * step)
    bend = (p.gradient(W + step * D) - p.gradient(W - step * D)) / (2 * step)
    np.testing.assert_allclose(np.einsum("kd,kd->k", p.gradient(W), D), slope, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.einsum("kde,ke->kd", p.hessian(W), D), bend, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", SMOOTH)
def test_value_is_the_naive_formula(loss):
    p = Problem(*data(loss), loss=loss, l1=0.1, l2=0.3, w2=0.2)
    W = np.random.default_rng(2).standard_normal((4, p.d))
    np.testing.assert_allclose(p.value(W), [naive_value(p, w) for w in W], rtol=1e-13)


@pytest.mark.parametrize("n", [1, kernels.BLOCK - 1, kernels.BLOCK + 1, kernels.LONGEST, kernels.LONGEST + 37])
@pytest.mark.parametrize("loss", SMOOTH)
def test_blocks_dense_sparse_and_naive_agree(loss, n):
    X, y = data(loss, n=n)
    X[np.abs(X) < 0.5] = 0
    dense = Problem(X, y, loss=loss, l2=0.3)
    W = np.random.default_rng(3).standard_normal((4, dense.d))
    Z = W @ X.T
    slope = dense.loss.derivative(Z.copy(), y, np.empty_like(Z))
    bend = dense.loss.second_derivative(Z.copy(), y, np.empty_like(Z))
    gradient = slope @ X / n + 0.3 * W
    hessian = np.stack([(X.T * h) @ X for h in bend]) / n + 0.3 * np.eye(dense.d)
    for p in (
        dense,
        Problem(sparse.csr_matrix(X), y, loss=loss, l2=0.3),
        Problem(sparse.csc_matrix(X), y, loss=loss, l2=0.3),
    ):
        np.testing.assert_allclose(p.predictions(W), Z, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(p.gradient(W), gradient, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(p.hessian(W), hessian, rtol=1e-11, atol=1e-14)
        value, both = p.value_and_gradient(W)
        np.testing.assert_allclose(value, [naive_value(p, w) for w in W], rtol=1e-13)
        np.testing.assert_allclose(p.value(W), value, rtol=1e-14)
        np.testing.assert_allclose(both, gradient, rtol=1e-11, atol=1e-14)


def one_hot(rng, n, levels=(2, 5, 40), numbers=1):
    """As papers prepare tables: one-hot columns and a few numbers, standardised, a column of ones, rows of norm 1."""
    columns = [np.eye(level)[rng.integers(0, level, n)] for level in levels] + [rng.standard_normal((n, numbers))]
    X = np.column_stack([*columns, np.zeros(n)])
    X = np.column_stack([np.ones(n), (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300)])
    X[:50] = rng.standard_normal((50, X.shape[1]))  # rows with nothing usual about them
    X[50:60] *= 1e-9
    X[60] = 0.0
    return X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]


@pytest.mark.parametrize("k", [1, 2, 8, 11])
@pytest.mark.parametrize("shape", ["mostly zero", "mostly usual"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_hessians_of_data_that_are_mostly_zero_or_usual(loss, shape, k, monkeypatch):
    """Summed from the unusual entries by numba, where it is installed, as by matrix products."""
    rng = np.random.default_rng(5)
    X, y = data(loss, n=2 * kernels.BLOCK + 37)
    if shape == "mostly zero":
        X[rng.random(X.shape) < 0.8] = 0
    else:
        X = one_hot(rng, len(X))
    p = Problem(X, y, loss=loss, l2=0.3)
    assert bool(p._rows.common.entry.any()) == (shape == "mostly usual")
    W = rng.standard_normal((k, p.d))
    rows = np.random.default_rng(4).integers(0, p.n, 1700)
    found, some = p.hessian(W), p.hessian(W, rows=rows)
    np.testing.assert_array_equal(found, found.swapaxes(1, 2))
    monkeypatch.setattr(kernels, "kernels", lambda: None)
    np.testing.assert_allclose(found, p.hessian(W), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(some, p.hessian(W, rows=rows), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("make", [lambda X: X, lambda X: X * 1e100, lambda X: X * 0 + 3.0, lambda X: X * 0])
def test_other_data_have_no_usual_entries_or_right_ones(make):
    """x_i = s_i (b + r_i) whatever the data; constant columns are all usual, numbers drawn at random never."""
    X = make(data("logistic", n=1500, d=7)[0])
    usual = Problem(X, np.ones(len(X)))._rows.common
    if usual is not None:
        rest = X * usual.inverse[:, None] - usual.entry
        rest[np.abs(rest) <= usual.slack] = 0
        np.testing.assert_allclose((usual.entry + rest) / usual.inverse[:, None], X, rtol=1e-12)
    assert (usual is None) == (np.ptp(X[:, 0]) > 0)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("loss", SMOOTH)
def test_minibatch_sums(loss, make):
    X, y = data(loss, n=3000)
    p = Problem(make(X), y, loss=loss, l2=0.3)
    rng = np.random.default_rng(4)
    w = rng.standard_normal(p.d)
    rows = rng.integers(0, p.n, 2500)  # more than two blocks, with repetition
    part = Problem(X[rows], y[rows], loss=loss)
    np.testing.assert_allclose(p.gradient_sum(w, rows), 2500 * part.gradient(w[None])[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(p.hessian_sum(w, rows), 2500 * part.hessian(w[None])[0], rtol=1e-10, atol=1e-10)
    assert np.all(p.gradient_sum(w, rows[:0]) == 0)
    assert np.all(p.hessian_sum(w, rows[:0]) == 0)


@pytest.mark.parametrize("loss", SMOOTH)
def test_extreme_margins(loss):
    """Margins of ±800 and ±1e5, where exp overflows: exact limits, no warning (warnings are errors here)."""
    z = np.array([[-1e5, -800.0, 0.0, 800.0, 1e5]])
    one = losses.get(loss)
    for label in (-1.0, 1.0):
        y = np.full(5, label)
        value, slope, bend = (
            f(z.copy(), y, np.empty_like(z))[0] for f in (one.value, one.derivative, one.second_derivative)
        )
        m = label * z[0]
        if loss == "logistic":
            np.testing.assert_allclose(value, np.logaddexp(0, -m), rtol=1e-15)
            np.testing.assert_allclose(slope, -label * np.where(m < 0, 1, np.where(m > 0, 0, 0.5)), atol=1e-15)
            np.testing.assert_allclose(bend, [0, 0, 0.25, 0, 0], atol=1e-15)
        elif loss == "sigmoid":
            np.testing.assert_allclose(value, np.where(m < 0, 0, np.where(m > 0, 1, 0.5)), atol=1e-15)
            np.testing.assert_allclose(slope, label * np.array([0, 0, 0.25, 0, 0]), atol=1e-15)
            np.testing.assert_allclose(bend, 0, atol=1e-15)
        assert np.isfinite([value, slope, bend]).all()


@pytest.mark.parametrize("loss", SMOOTH)
def test_loss_constants_are_the_suprema(loss):
    """L0, L1 and L2 against the largest values on a fine grid: never exceeded, and reached."""
    one = losses.get(loss)
    z = np.linspace(-20, 20, 400_001)[None]
    y = np.ones(z.shape[1])
    slope = np.abs(one.derivative(z.copy(), y, np.empty_like(z))).max()
    bend = one.second_derivative(z.copy(), y, np.empty_like(z))
    third = np.abs(np.diff(bend) / np.diff(z)).max()
    if loss != "squared":  # of pseudo-huber it is the limit
        assert one.lipschitz * (1 - (2e-3 if loss == "pseudo-huber" else 1e-6)) < slope <= one.lipschitz
    assert one.smoothness * (1 - 1e-6) < np.abs(bend).max() <= one.smoothness * (1 + 1e-12)
    assert one.hessian_lipschitz * (1 - 1e-6) <= third <= one.hessian_lipschitz * (1 + 1e-6)


def test_quadratic_bound():
    """qu: 1/4 at zero, above ℓ'' at z, and ℓ(v) ≤ ℓ(z) + ℓ'(z)(v-z) + qu(z)(v-z)²/2 for all z, v."""
    one = losses.get("logistic")
    z = np.array([[0.0, 1e-300, -1e-9, 1e-6, 0.3, -4.0, 40.0, -800.0]])
    y = np.ones(8)
    bound = one.quadratic_bound(z.copy(), y, np.empty_like(z))
    np.testing.assert_array_equal(bound[0, :3], 0.25)
    np.testing.assert_allclose(bound[0, 4:], np.tanh(z[0, 4:] / 2) / (2 * z[0, 4:]), rtol=1e-15)
    assert np.all(bound >= one.second_derivative(z.copy(), y, np.empty_like(z)) - 1e-16)
    value = one.value(z.copy(), y, np.empty_like(z))
    slope = one.derivative(z.copy(), y, np.empty_like(z))
    for v in np.linspace(-30, 30, 601):
        upper = value + slope * (v - z) + bound * (v - z) ** 2 / 2
        assert np.all(np.logaddexp(0, -v) <= upper + 1e-12)


def test_quadratic_bound_matrix():
    p = Problem(*data("logistic"), l2=0.3)
    W = np.zeros((2, p.d))
    np.testing.assert_allclose(p.data_hessian(W, "qu")[1], p.X.T @ p.X / (4 * p.n), rtol=1e-13)
    np.testing.assert_allclose(p.hessian(W) - p.data_hessian(W), [0.3 * np.eye(p.d)] * 2, atol=1e-15)
    for loss, name in (("sigmoid", "qu"), ("squared", "qu"), ("logistic", "bfgs")):
        with pytest.raises(UserError, match="curvature"):
            Problem(*data(loss), loss=loss).data_hessian(W, name)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_constants(make):
    X, y = data("logistic", n=2100)
    p = Problem(make(X), y, l2=0.3, w2=0.1)
    assert p.row_norm == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-14)
    assert p.row_norm_l1 == pytest.approx(np.abs(X).sum(axis=1).max(), rel=1e-14)
    assert p.row_bound == p.row_norm
    assert p.lipschitz == p.row_norm
    assert p.smoothness == pytest.approx(p.row_norm**2 / 4)
    assert p.objective_smoothness == pytest.approx(p.row_norm**2 / 4 + 0.3 + 0.2)
    np.testing.assert_allclose(p.coordinate_constants, (X**2).mean(axis=0) / 4 + 0.3 + 0.2, rtol=1e-13)
    assert p.top_eigenvalue == pytest.approx(np.linalg.norm(X, 2) ** 2 / p.n, rel=1e-12)


def test_top_eigenvalue_in_high_dimension():
    X = sparse.random(40, 2500, density=0.05, random_state=np.random.default_rng(0), format="csr")
    p = Problem(X, np.ones(40), loss="squared")
    assert p.top_eigenvalue == pytest.approx(np.linalg.norm(X.toarray(), 2) ** 2 / 40, rel=1e-9)
    with pytest.raises(UserError, match="does not fit in memory"):
        Problem(sparse.csr_matrix((3, 30_000)), np.ones(3), loss="squared", row_bound=1).hessian(np.zeros((1, 30_000)))


def test_hessians_are_refused_beyond_what_memory_is_given_to_them(monkeypatch):
    p = Problem(np.eye(5), np.ones(5), loss="squared")
    monkeypatch.setattr(risk, "HESSIAN_BYTES", 2 * 5 * 5 * 8)
    assert p.hessian_sum(np.zeros((2, 5))).shape == (2, 5, 5)
    with pytest.raises(UserError, match="a Hessian at d = 5 does not fit in memory"):
        p.hessian_sum(np.zeros((3, 5)))


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
def test_declared_bounds_hold(loss):
    """No row's gradient or Hessian exceeds lipschitz and smoothness; a row of full length reaches 0.99 of both."""
    X, y = data(loss, n=500)
    X /= np.linalg.norm(X, axis=1)[:, None]
    p = Problem(X, y, loss=loss, row_bound=1.0)
    W = np.vstack([t * X[i] for i, t in itertools.product(range(3), np.linspace(-30, 30, 601))])
    Z = p.predictions(W)
    slope = np.abs(p.loss.derivative(Z.copy(), y, np.empty_like(Z)))
    bend = np.abs(p.loss.second_derivative(Z.copy(), y, np.empty_like(Z)))
    assert 0.99 * p.lipschitz < slope.max() <= p.lipschitz
    assert 0.99 * p.smoothness < bend.max() <= p.smoothness


def test_the_bound_is_checked_to_rounding():
    X = np.array([[0.6, 0.8], [0.1, 0.0]])
    assert Problem(X * (1 + 1e-15), np.ones(2), row_bound=1.0).row_bound == 1.0
    with pytest.raises(DataError, match="row_bound"):
        Problem(X * (1 + 1e-9), np.ones(2), row_bound=1.0)


def test_row_bound_by_l1():
    X = np.random.default_rng(0).random((50, 20))
    p = Problem(X, np.ones(50), row_bound=20, row_bound_norm="l1")
    assert p.row_bound == p.lipschitz == 20


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"loss": "logistc"}, UserError, "did you mean logistic"),
        ({"l2": -1.0}, UserError, "l2 must be"),
        ({"l1": np.inf}, UserError, "l1 must be"),
        ({"row_bound": 0.0}, UserError, "row_bound must be"),
        ({"row_bound": 1.0}, DataError, "divide each row by"),
        ({"row_bound": 1.0, "row_bound_norm": "l1"}, DataError, "‖x‖₁"),
        ({"row_bound_norm": "l3"}, UserError, "row_bound_norm"),
        ({"y": np.zeros(60)}, DataError, "labels -1 and"),
        ({"y": np.append(np.nan, np.zeros(59)), "loss": "squared"}, DataError, "y: contains NaN"),
        ({"y": np.ones(59)}, DataError, "one label per row"),
        ({"X": np.full((60, 5), np.nan)}, DataError, "X: contains NaN"),
        ({"X": np.full((60, 5), np.inf)}, DataError, "X: contains NaN"),
        ({"X": np.ones((0, 5))}, DataError, "non-empty"),
    ],
)
def test_bad_input_is_one_clear_line(change, error, words):
    X, y = data("logistic")
    arguments = {"X": X, "y": y, **change}
    with pytest.raises(error, match=words) as caught:
        Problem(arguments.pop("X"), arguments.pop("y"), **arguments)
    assert "\n" not in str(caught.value)


def test_memory_mapped_data_is_not_copied(tmp_path):
    X, y = data("logistic", n=2000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    p = Problem(mapped, y)
    assert p.X is mapped
    assert np.shares_memory(p._rows.X, mapped)
    W = np.ones((2, p.d))
    np.testing.assert_array_equal(p.gradient(W), Problem(X, y).gradient(W))


def test_iterates_and_data_are_not_written_to():
    X, y = data("logistic")
    X.flags.writeable = y.flags.writeable = False
    W = np.ones((2, 5))
    W.flags.writeable = False
    p = Problem(X, y, l1=0.1, l2=0.1, w2=0.1)
    for method in (p.value, p.gradient, p.hessian, p.value_and_gradient, p.predictions):
        method(W)
    with pytest.raises(ValueError, match="expected shape"):
        p.value(np.ones(5))


def test_result_does_not_depend_on_the_batch():
    """To rounding: the sums of a replicate are the same whichever others share its products."""
    p = Problem(*data("logistic", n=5000))
    W = np.random.default_rng(5).standard_normal((7, p.d))
    for method in (p.value, p.gradient, p.hessian):
        np.testing.assert_allclose(method(W)[3:4], method(W[3:4]), rtol=1e-12, atol=1e-15)


def test_accuracy_counts_correct_signs():
    X, y = data("logistic", n=2000)
    W = np.random.default_rng(6).standard_normal((3, 5))
    W[0] = 0
    expected = [(np.sign(X @ w) == y).mean() for w in W]
    np.testing.assert_allclose(Problem(X, y).accuracy(W), expected, rtol=1e-14)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_data_hash_sees_every_entry(make):
    X, y = data("logistic")
    before = Problem(make(X), y).data_hash
    assert before == Problem(make(X.copy()), y.copy()).data_hash
    X[-1, -1] += 1e-12
    assert before != Problem(make(X), y).data_hash
    assert before != Problem(make(X), -y).data_hash
    assert Problem(X, y, data_hash="given").data_hash == "given"


def test_pickled_problem_works_alike():
    p = Problem(*data("logistic"), l2=0.1)
    W = np.ones((1, 5))
    p.value(W)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(p)).value(W), p.value(W))


@pytest.mark.parametrize("d", [12, 40])  # of 40 columns a Hessian is one half, mirrored, where the loss is convex
@pytest.mark.parametrize("loss", ["logistic", "squared", "sigmoid"])
def test_float32_rows_are_summed_in_float64(loss, d):
    generator = np.random.default_rng(3)
    X = generator.standard_normal((5000, d)).astype(np.float32) / 8
    y = generator.choice([-1.0, 1.0], 5000)
    single, double = Problem(X, y, loss=loss, l2=0.01), Problem(X.astype(float), y, loss=loss, l2=0.01)
    assert single.X.dtype == np.float32
    W = generator.standard_normal((4, d)) * 50
    for name in ("value", "gradient", "hessian", "predictions", "second_moment", "coordinate_constants"):
        one, other = (getattr(p, name) for p in (single, double))
        one, other = (
            (one, other)
            if isinstance(one, np.ndarray)
            else ((one(W), other(W)) if name != "second_moment" else (one(), other()))
        )
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6 * np.abs(other).max())
    rows = np.array([3, 3, 4000])
    np.testing.assert_allclose(single.data_gradient(W, rows), double.data_gradient(W, rows), rtol=1e-4, atol=1e-6)
    many = Problem(np.tile(X, (40, 1)), np.tile(y, 40), loss=loss, l2=0.01)
    np.testing.assert_allclose(many.value(W), single.value(W), rtol=1e-7)  # no error that grows with n
    if double.convex:
        assert single.optimum().value == pytest.approx(double.optimum().value, abs=1e-9)


def test_a_logistic_derivative_in_float32_is_off_by_a_rounding_and_never_beyond_1():
    loss = losses.get("logistic")
    bits = np.arange(0, 2**32, 40_009, dtype=np.uint64).astype(np.uint32)  # of all signs and exponents
    z = bits.view(np.float32)
    z = np.concatenate([z[np.isfinite(z)], np.linspace(-30, 30, 100_001, dtype=np.float32)])
    for label in (-1.0, 1.0):
        y = np.full(len(z), label)
        found = loss.derivative(z[None].copy(), y.astype(np.float32), np.empty((1, len(z)), np.float32))[0]
        expected = loss.derivative(z[None].astype(float), y, np.empty((1, len(z))))[0]
        assert found.dtype == np.float32
        assert np.abs(found).max() <= 1
        np.testing.assert_allclose(found, expected, rtol=0, atol=1.5e-7)


@pytest.mark.parametrize("k", [7, 8, 15, 33, 70])
def test_gradients_of_many_replicates_on_mostly_zero_rows_are_those_of_one(k):
    """Where few entries are not 0, their products are made one by one: another route to the same sums."""
    generator = np.random.default_rng(1)
    X = np.where(generator.random((2500, 30)) < 0.1, generator.standard_normal((2500, 30)), 0.0)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(generator.random(2500) < 0.5, 1.0, -1.0)
    problem = Problem(X, y, loss="logistic", row_bound=1.0)
    W = 3 * generator.standard_normal((k, 30))
    expected = np.stack([-(X * (y / (1 + np.exp(y * (X @ w))))[:, None]).mean(axis=0) for w in W])
    np.testing.assert_allclose(problem.data_gradient(W), expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("loss", SMOOTH)
def test_widened_rows_of_float32_have_the_sums_of_float64(loss):
    X, y = data(loss, n=2000)
    X, y = X.astype(np.float32), y.astype(np.float32).astype(np.float64)
    W = np.random.default_rng(0).standard_normal((2, X.shape[1]))
    single, wide = kernels.Rows(X, y).in_float64, kernels.Rows(X.astype(np.float64), y)
    one = losses.get(loss)
    np.testing.assert_allclose(single.sum(one.value, W), wide.sum(one.value, W), rtol=1e-13)
    np.testing.assert_allclose(single.weighted_sum(one.derivative, W), wide.weighted_sum(one.derivative, W), atol=1e-11)
    found, expected = (rows.gram(one.second_derivative, W, convex=one.convex) for rows in (single, wide))
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert wide.in_float64 is wide


@pytest.fixture(params=["numpy", "numba"])
def loops(request, monkeypatch):
    """What sums: NumPy, or what numba compiled, where it is installed."""
    if request.param == "numba":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(columns, "kernels", lambda: None)


def columns_data(n=70, d=9, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d)) * generator.lognormal(0, 1, d) * (generator.random((n, d)) < 0.4)
    X[:, 3] = 0  # an empty column
    X[0, 3] = 1e-3
    return X, generator.choice([-1.0, 1.0], n)


def clipped(problem, w, clip):
    """The definition, one sample at a time."""
    z = problem.predictions(w[None])[0]
    r = problem.loss.derivative(z[None].copy(), problem.y, np.empty((1, problem.n)))[0]
    X = problem.X.toarray() if problem.is_sparse else problem.X
    bound = clip * np.sqrt(problem.coordinate_constants / problem.coordinate_constants.sum())
    return np.mean([np.clip(r[i] * X[i], -bound, bound) for i in range(problem.n)], axis=0)


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.usefixtures("loops")
def test_the_clipped_gradient_is_its_definition(loss, kind):
    X, y = columns_data()
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y, loss=loss, l2=0.1)
    W = np.random.default_rng(1).standard_normal((6, 9))
    clip = np.array([1e-4, 0.01, 0.3, 1.0, 5.0, 1e6])
    expected = np.array([clipped(problem, w, c) for w, c in zip(W, clip, strict=True)])
    np.testing.assert_allclose(problem.clipped_gradient(W, clip), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(expected[-1], problem.data_gradient(W)[-1], rtol=1e-12)  # clips nothing
    assert not np.allclose(expected[2], problem.data_gradient(W)[2])  # clips something


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("k", [1, 300])
@pytest.mark.usefixtures("loops")
def test_a_coordinate_state_follows_the_moves(kind, k):
    X, y = columns_data(n=200)
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y)
    generator = np.random.default_rng(2)
    W = generator.standard_normal((k, 9))
    state = problem.coordinate_state(W)
    clip = generator.lognormal(0, 2, k)
    for _ in range(20):
        j = int(generator.integers(9))
        expected = problem.clipped_gradient(W, clip)[:, j]
        threshold = clip * problem.clip_shares[j]
        np.testing.assert_allclose(state.derivative(j, threshold), expected, rtol=1e-9, atol=1e-14)
        change = generator.standard_normal(k) * (generator.random(k) < 0.5)  # some of the replicates move
        W[:, j] += change
        state.move(j, change)
        W[:, 1] += 0.1
        state.move(1, np.full(k, 0.1))  # two moves in a row


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.usefixtures("loops")
def test_a_replicate_that_diverged_leaves_the_others_alone(kind):
    X, y = columns_data()
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y, loss="squared")
    W = np.random.default_rng(1).standard_normal((3, 9))
    expected = problem.clipped_gradient(W, np.ones(3))
    W[1] = np.nan
    found = problem.clipped_gradient(W, np.ones(3))
    assert np.isnan(found[1][problem.coordinate_constants > 0]).all()
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    state = problem.coordinate_state(W)
    assert np.isnan(state.derivative(0, np.ones(3))).tolist() == [False, True, False]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["logistic", "squared"]), st.floats(-3, 3))
def test_a_replaced_row_moves_no_coordinate_by_more_than_2C_over_n(seed, loss, log_clip):
    """Random neighbours; M_j counts as public, so both sides use the thresholds of one data set."""
    generator = np.random.default_rng(seed)
    X, y = columns_data(n=20, seed=seed)
    other_X, other_y = X.copy(), y.copy()
    other_X[5], other_y[5] = 30 * generator.standard_normal(9), -y[5]
    one, two = Problem(X, y, loss=loss), Problem(other_X, other_y, loss=loss)
    two.clip_shares = one.clip_shares
    W, clip = generator.standard_normal((3, 9)), np.full(3, 10.0**log_clip)
    moved = np.abs(one.clipped_gradient(W, clip) - two.clipped_gradient(W, clip))
    assert (moved <= 2 * clip[0] * one.clip_shares / 20 * (1 + 1e-9) + 1e-12).all()


def test_the_worst_neighbours_attain_2C_over_n_in_every_coordinate():
    """Squared loss at w = 0: a row whose every r·x_j is far above C against its negative."""
    X, y = columns_data(n=20)
    X[:, 3] = 1.0
    y = y * 1e6
    X[5] = 1.0
    other = y.copy()
    other[5] = -y[5]
    one, two = Problem(X, y, loss="squared"), Problem(X, other, loss="squared")
    W, clip = np.zeros((1, 9)), np.array([2.0])
    moved = np.abs(one.clipped_gradient(W, clip) - two.clipped_gradient(W, clip))[0]
    np.testing.assert_allclose(moved, 2 * 2.0 * one.clip_shares / 20, rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.usefixtures("loops")
def test_an_empty_column_without_l2_is_clipped_to_nothing(kind):
    X, y = columns_data()
    X[:, 3] = 0
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y)
    W = np.random.default_rng(1).standard_normal((3, 9))
    with np.errstate(all="raise"):
        G = problem.clipped_gradient(W, np.array([1e-3, 1.0, 1e6]))
    assert (G[:, 3] == 0).all()
    assert np.isfinite(G).all()


def test_shares_square_up_to_one_and_use_the_loss_and_l2():
    X, y = columns_data()
    problem = Problem(X, y, l2=0.3)
    M = (X**2).mean(axis=0) / 4 + 0.3
    np.testing.assert_allclose(problem.coordinate_constants, M)
    np.testing.assert_allclose(problem.clip_shares, np.sqrt(M / M.sum()))
    assert (problem.clip_shares**2).sum() == pytest.approx(1)


def test_labels_keep_their_digits_beside_rows_of_fewer():
    X, y = np.ones((2, 1), dtype=np.float32), np.array([0.1, 1 / 3])
    assert Problem(X, y, loss="squared", row_bound=None).y.tolist() == y.tolist()
    assert Problem(X, y.astype(np.float32), loss="squared", row_bound=None).y.dtype == np.float32


@pytest.mark.parametrize("tau", [0.01, 0.5, 0.9])
def test_a_quantile_loss_is_what_it_declares_and_no_constant_can_be_smaller(tau):
    loss = losses.get(f"quantile-{tau}")
    losses.check(loss)
    for constant in ("lipschitz", "smoothness", "hessian_lipschitz"):
        smaller = losses.Quantile(tau)
        vars(smaller)[constant] = getattr(loss, constant) * 0.95
        with pytest.raises(UserError, match=f"exceeds {constant}"):
            losses.check(smaller)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_constant_that_minimises_a_quantile_loss_is_the_quantile_and_the_conjugate_is_tight(tau):
    y, loss = np.random.default_rng(0).standard_normal(20_000), losses.Quantile(tau)
    grid = np.linspace(-2, 2, 401)
    means = [loss.value(np.full((1, len(y)), z), y, np.empty((1, len(y)))).mean() for z in grid]
    assert abs(grid[np.argmin(means)] - np.quantile(y, tau)) < 0.03
    z, y = np.linspace(-1, 1, 50), np.linspace(0.5, -0.5, 50)  # ℓ(z) + ℓ*(ℓ'(z)) = z ℓ'(z)
    slope = loss.derivative(z[None].copy(), y, np.empty((1, 50)))[0]
    value = loss.value(z[None].copy(), y, np.empty((1, 50)))[0]
    np.testing.assert_allclose(value + loss.conjugate(slope, y), z * slope, atol=1e-12)


@pytest.mark.parametrize("tau", [0.5, 0.9, 0.1234567, 0.12345671, 1e-5, 1 - 1e-7])
def test_the_name_of_a_quantile_loss_is_that_of_no_other(tau):
    again = losses.get(losses.Quantile(tau).name)
    assert isinstance(again, losses.Quantile)
    assert again.tau == tau


@pytest.mark.parametrize("name", ["quantile-90", "quantile-1", "quantile-.0", "quantile-x", "quantile-٣", "quantile"])
def test_what_is_no_quantile_is_refused(name):
    says = "between 0 and 1 behind it, as in quantile-0.9" if name[-1] in "0123456789" else "unknown loss"
    with pytest.raises(UserError, match=says):
        losses.get(name)


@pytest.mark.parametrize("name", ["poisson", "tweedie", "gamma"])
def test_a_deviance_whose_slope_has_no_bound_is_refused_with_the_reason(name):
    with pytest.raises(UserError, match=f"the slope of a {name} deviance has no bound"):
        losses.get(name)
