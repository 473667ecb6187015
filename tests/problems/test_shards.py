"""Rows in shards: every sum, and every leaderboard method on them, against the same rows in one place."""

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.problems import NoOptimum, Problem, followed, losses
from dpbench.problems import shards as sharded_module
from dpbench.problems.rows import Rows
from dpbench.problems.shards import NeedsAllRows, ShardedProblem, Shards
from tests.batches import ask_local, run_batch

SIZES, ROWS = [40, 1, 1100, 259], 1400


def data(d=5, n=ROWS, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1).max()
    return X, np.where(X[:, 0] + 0.3 * generator.standard_normal(n) > 0, 1.0, -1.0)


def sharded(X, y, sizes=SIZES, **declared):
    cuts = np.cumsum(sizes)[:-1]
    rows = [Rows(np.ascontiguousarray(A), b) for A, b in zip(np.split(X, cuts), np.split(y, cuts), strict=True)]
    shards = Shards(ask_local(rows), sizes, X.shape[1], single=X.dtype == np.float32)
    return ShardedProblem(shards, row_bound=1.0, **declared)


def both(loss="logistic", **weights):
    X, y = data()
    y = y if loss != "squared" else X @ np.arange(5.0) + 0.1 * y
    return Problem(X, y, loss=loss, row_bound=1.0, **weights), sharded(X, y, loss=loss, **weights)


@pytest.mark.parametrize("loss", ["logistic", "squared", "sigmoid"])
def test_every_sum_is_that_of_the_rows_in_one_place(loss):
    here, there = both(loss, l2=0.01)
    generator = np.random.default_rng(1)
    W, clip = generator.standard_normal((3, 5)), np.array([1e-3, 0.1, 10.0])
    chosen = generator.integers(here.n, size=50)
    sums = {
        "value": lambda p: p.value(W),
        "gradient": lambda p: p.gradient(W),
        "gradient of rows": lambda p: p.gradient_sum(W, chosen),
        "gradient of no rows": lambda p: p.gradient_sum(W, chosen[:0]),
        "both": lambda p: np.column_stack(p.value_and_gradient(W)),
        "hessian": lambda p: p.hessian(W),
        "hessian of rows": lambda p: p.hessian_sum(W[0], chosen),
        "second moment": lambda p: p.second_moment(),
        "constants": lambda p: p.coordinate_constants,
        "clipped": lambda p: p.clipped_gradient(W, clip),
        "clipped value": lambda p: p.clipped_value(W, 0.5),
        "moments": lambda p: p.label_moments(0.7),
        "accuracy": lambda p: p.accuracy(W),
        "numbers": lambda p: [p.row_norm, p.row_norm_l1, p.row_bound, p.top_eigenvalue, p.mean_label, p.n, p.d],
        "rows": lambda p: np.append(*(part.ravel() for part in p.take(chosen.reshape(5, 10)))),
    }
    for name, of in sums.items():
        np.testing.assert_allclose(of(there), of(here), rtol=1e-9, atol=1e-12, err_msg=name)


def test_sums_of_float32_shards_are_float64():
    X, y = data()
    narrow = (X * 0.9).astype(np.float32)
    W = np.ones((1, 5))
    found = sharded(narrow, y).value(W)
    np.testing.assert_allclose(found, Problem(narrow, y).value(W), rtol=1e-9)
    assert found.dtype == np.float64


METHODS = ["adassp", "aop", "damped-newton", "dp-cd", "dp-gcd", "dp-gd", "dp-gd-oracle", "dp-mf", "dp-newton-hess-clip",
           "dp-newton-minibatch", "dp-sgd", "dp-sgd-1"]  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_run_on_shards_unchanged(name):
    method, fixed = algorithms.resolve(name)
    loss = method.needs.covered[0]
    here, there = both(loss, **{kind: 0.01 for kind in method.needs.regularisers if kind == "l2"})
    chosen = fixed | public_settings(name, here.n, here.d, 1.0)
    if "T" in method.Settings.__struct_fields__ and "T" not in fixed:
        chosen["T"] = 3
    budget = Budget(epsilon=1.0, delta=1e-6, relation=method.relation, accounting=method.paper_accounting)
    if method.paper_accounting == "pure":
        budget = Budget(epsilon=1.0, delta=0.0, relation=method.relation, accounting="pure")
    ends = []
    for problem in (here, there):
        settings = method.complete(problem, make_settings(method, chosen))
        ends.append(run_batch(problem, method, [settings], np.zeros((1, 5)), budget, ["key"]))
    assert np.abs(ends[0].W).max() > 0
    np.testing.assert_allclose(ends[1].W, ends[0].W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ends[1].objective, ends[0].objective, rtol=1e-9)
    assert ends[1].mechanisms.ledger.planned(0) == ends[0].mechanisms.ledger.planned(0)


def test_a_method_that_takes_all_rows_in_one_place_is_refused_by_name():
    class Predicting(type(algorithms.get("dp-gd"))):
        name = "predicting"

        def run(self, problem, W, mechanisms, settings, trace):
            problem.predictions(W)

    _, there = both()
    budget = Budget(1.0, 1e-6, Predicting.relation, Predicting.paper_accounting)
    method = Predicting()
    settings = method.complete(there, make_settings(method, {"T": 2}))
    with pytest.raises(UserError, match=r"^predicting: .*the rows lie in shards.*without shards"):
        run_batch(there, method, [settings], np.zeros((1, 5)), budget, ["key"])


@pytest.mark.parametrize("loss", ["logistic", "squared", "pseudo-huber"])
@pytest.mark.parametrize("weights", [{"l2": 0.01}, {"l1": 0.02}, {"l1": 0.01, "l2": 0.01}], ids=str)
def test_the_optimum_is_that_of_the_rows_in_one_place(loss, weights):
    here, there = both(loss, **weights)
    assert there.optimum().certificate <= (1e-10 if "l1" in weights else 1e-9)
    assert there.optimum().value == pytest.approx(here.optimum().value, rel=1e-9)
    np.testing.assert_allclose(there.optimum().w, here.optimum().w, atol=1e-6)
    if loss == "logistic" and "l2" not in weights:
        assert 0 < np.count_nonzero(there.optimum().w) < 5


def test_the_optimum_of_float32_shards_is_certified_in_float64():
    X, y = data()
    narrow = (0.9 * X).astype(np.float32)
    for weights in ({"l2": 0.01}, {"l1": 0.02}):
        found, expected = sharded(narrow, y, **weights).optimum(), Problem(narrow.astype(float), y, **weights).optimum()
        assert found.value == pytest.approx(expected.value, rel=1e-9)


def test_without_a_certificate_there_is_no_optimum():
    class Bare(losses.Logistic):
        conjugate = losses.Loss.conjugate

    with pytest.raises(NoOptimum, match="no conjugate"):
        both(Bare(), l1=0.1)[1].optimum()
    with pytest.raises(NoOptimum, match="not convex"):
        both("sigmoid", l1=0.1)[1].optimum()


def test_single_coordinates_are_kept_by_the_shards_and_made_anew_where_they_were_lost():
    here, there = both(l2=0.01)
    rng = np.random.default_rng(3)
    W = rng.standard_normal((2, 5))
    a, b = here.coordinate_state(W), there.coordinate_state(W)
    made = []
    make = followed_make(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharded_module, "_CoordinateSums", make)
        for step in range(12):
            j, threshold, change = int(rng.integers(5)), rng.uniform(0.001, 0.1, 2), rng.standard_normal(2)
            np.testing.assert_allclose(b.derivative(j, threshold), a.derivative(j, threshold), rtol=1e-9, atol=1e-14)
            np.testing.assert_allclose(b.derivative(j, threshold), a.derivative(j, threshold), rtol=1e-9, atol=1e-14)
            if step == 5:
                followed._states.clear()  # as on a worker that takes over
            a.move(j, change)
            b.move(j, change)
    assert len(made) == 2 * len(SIZES)


def followed_make(made):
    class Counted(sharded_module._CoordinateSums):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    return Counted


def test_margins_of_one_row_and_lines_are_those_of_one_place():
    here, there = both()
    rng = np.random.default_rng(4)
    W, D = rng.standard_normal((3, 5)), rng.standard_normal((3, 5))
    np.testing.assert_allclose(there.smallest_margins(W), here.smallest_margins(W), rtol=1e-12)
    first, second = (problem.lines(W, D) for problem in (here, there))
    other = there.lines(D, W)  # asked for in between
    for i, step in ((0, 0.0), (2, 0.3), (1, 7.0), (0, -1.0)):
        expected = -here.data_gradient((W[i] - step * D[i])[None])[0] @ D[i] * here.n
        assert first.derivative(i, step) == pytest.approx(expected, rel=1e-9)
        other.derivative(i, step)
        assert second.derivative(i, step) == pytest.approx(expected, rel=1e-9)


def test_what_takes_all_rows_says_so():
    _, there = both()
    for name in ("X", "y", "row_norms"):
        with pytest.raises(NeedsAllRows, match="shards"):
            getattr(there, name)


def test_shards_are_of_dense_float64_rows_where_nothing_else_is_said():
    X, y = data()
    shards = Shards(ask_local([Rows(X, y)]), [ROWS], 5)
    assert not ShardedProblem(shards, row_bound=1.0).is_sparse
    assert shards.in_float64 is shards
    assert shards.in_float32 is None


def test_two_weighted_losses_of_one_name_do_not_take_each_others_columns():
    X, y = data()
    shards = Shards(ask_local([Rows(X, y)]), [ROWS], 5)
    W, clip = np.random.default_rng(1).standard_normal((2, 5)), np.array([0.05, 10.0])
    for weights in ((1.0, 1.0), (0.1, 1.0)):
        loss = losses.Weighted(losses.Logistic(), weights)
        there, here = ShardedProblem(shards, row_bound=1.0, loss=loss), Problem(X, y, row_bound=1.0, loss=loss)
        np.testing.assert_allclose(there.clipped_gradient(W, clip), here.clipped_gradient(W, clip), atol=1e-12)
