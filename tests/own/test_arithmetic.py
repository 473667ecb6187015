"""Which fits hold for the bytes released, and which in exact arithmetic: every method, every loss, the default."""

import warnings

import numpy as np
import pytest
import scipy

import dpbench
from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.errors import DataError, UserError
from dpbench.privacy.ledger import Relation
from dpbench.problems import Declaration, losses
from tests.algorithms.test_needs import LogCosh

FEW = {"T": 3, "passes": 1.0, "cap": 3, "step": 0.1, "alpha": 0.5, "D": 5.0, "scales": "bound"}
EVERY = (*losses.LOSSES, "softmax-3")


def methods(exact):
    found = [algorithms.resolve(name)[0] for name in algorithms.names(plugins=False, wrappers=True)]
    kept = {one.name: one for one in found if one.private and bool(one.exact) == exact}
    return [one for one in kept.values() if type(one).__name__ != "LibrarySolver"]


def table(loss, n=120):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (n, 4))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    return X, {"phase": abs(y), "softmax-3": np.arange(n) % 3.0}.get(loss, y)


def few(method):
    return {name: value for name, value in FEW.items() if name in method.Settings.__struct_fields__}


def covered(method):
    return [loss for loss in EVERY if not method.needs.missing_for(losses.get(loss))]


@pytest.mark.thorough_for("aop", "objpert")
@pytest.mark.parametrize("method", methods(True), ids=lambda method: method.name)
def test_what_says_so_holds_for_the_bytes_by_default_with_every_loss_and_penalty(method):
    strongly = getattr(method, "momentum", False)  # it rests on l2 > 0
    for loss in covered(method):
        for penalty in ({}, {"l2": 0.05}, {"l1": 0.01}, {"l1": 0.01, "l2": 0.05}):
            if penalty.keys() <= {*method.needs.regularisers} and ("l2" in penalty or not strongly):
                call = {"algorithm": method.name, "epsilon": 2.0, "loss": loss, **penalty, **few(method)}
                fit = dpbench.fit(*table(loss), **call)
                assert (fit.released.arithmetic, fit.released.noise) == ("bytes", "exact")
                assert "holds for the bytes released" in fit.guarantee
                assert np.isfinite(fit.w).all()


@pytest.mark.thorough
@pytest.mark.parametrize("method", methods(False), ids=lambda method: method.name)
def test_every_other_method_says_exact_arithmetic_and_is_refused_as_bytes(method):
    """Its guarantee, and that nothing but a guarantee for real numbers may be had by asking."""
    loss = covered(method)[0]
    ridge = {"l2": 0.05} if "l2" in method.needs.regularisers else {}  # which some proofs rest on
    call = {"algorithm": method.name, "epsilon": 2.0, "loss": loss, **ridge, **few(method)}
    rows = 30_000 if method.name == "tukey-em" else 120
    with pytest.raises(UserError, match=r"arithmetic: .* has no guarantee for bytes: .*; for 'bytes' use one of: "):
        dpbench.fit(*table(loss, rows), arithmetic="bytes", **call)
    why = method.flaw(make_settings(method, few(method)), method.accounting(rules.accounting(method)))
    fit = dpbench.fit(*table(loss, rows), **call)
    assert fit.released.arithmetic == "real"
    assert ("none: " if why else "in exact arithmetic") in fit.guarantee
    assert "bytes" not in fit.guarantee


def test_coordinate_methods_are_covered_where_their_scales_come_from_a_bound_on_the_rows():
    for name in ("dp-cd", "dp-gcd"):
        with pytest.raises(UserError, match="has no guarantee for bytes: scales=data takes rows of any length"):
            dpbench.fit(*table("own"), algorithm=name, epsilon=1.0, arithmetic="bytes")
        fit = dpbench.fit(*table("own"), algorithm=name, epsilon=1.0, passes=1.0)
        assert "in exact arithmetic; counts as public: n, the mean square" in fit.guarantee
    call = {"algorithm": "dp-gcd-published", "epsilon": 1.0, "scales": "bound", "l1": 0.01}
    assert "in exact arithmetic" in dpbench.fit(*table("own"), **call).guarantee
    with pytest.raises(UserError, match="for bytes: selection=published computes on with its noise"):
        dpbench.fit(*table("own"), arithmetic="bytes", **call)


@pytest.mark.parametrize("name", ["dp-gcd", "dp-gcd-gs-s", "dp-gcd-gs-q", "dp-frank-wolfe", "adassp"])
def test_with_next_to_no_noise_integers_give_the_model_that_float64_gives(name):
    X, y = table("logistic", 4000)
    own = {"dp-frank-wolfe": {"T": 40, "radius": 1.0}, "adassp": {"loss": "squared", "l2": 1e-3}}.get(
        name, {"scales": "bound", "passes": 8.0, "step": 2.0}
    )
    for l1 in (0.0, 1e-3) if name != "adassp" else (0.0,):
        call = {"algorithm": name, "epsilon": 1e7, "delta": 1e-5, "l1": l1, "seed": 3, **own}
        real, whole = (dpbench.fit(X, y, arithmetic=arithmetic, **call) for arithmetic in ("real", "bytes"))
        assert np.abs(real.w).max() > 0.01
        np.testing.assert_allclose(whole.w, real.w, rtol=0, atol=2e-3)


def test_with_next_to_no_noise_coordinate_descent_goes_where_float64_goes_by_other_coins():
    call = {"algorithm": "dp-cd", "epsilon": 1e7, "delta": 1e-5, "l1": 1e-3, "l2": 0.05, "scales": "bound", "seed": 3}
    fits = [
        dpbench.fit(*table("logistic", 2000), arithmetic=arithmetic, passes=100.0, **call)
        for arithmetic in ("real", "bytes")
    ]
    assert fits[0].w[0] > 0.3
    np.testing.assert_allclose(fits[1].w, fits[0].w, rtol=0, atol=2e-3)


@pytest.mark.thorough
def test_the_seam_refuses_bytes_to_methods_that_say_it_without_the_proof(monkeypatch):
    """What a method says of itself is not enough: all that it releases has to be a sum or a certified minimiser."""
    refused = []
    for method in methods(False):
        loss = covered(method)[0]
        monkeypatch.setattr(type(method), "exact", "sums")
        with pytest.raises(Exception) as error:  # noqa: PT011
            dpbench.fit(*table(loss), algorithm=method.name, epsilon=2.0, loss=loss, arithmetic="bytes", **few(method))
        refused.append((method.name, str(error.value)))
    assert len(refused) >= 15


def test_what_the_default_policy_takes_holds_for_the_bytes():
    chosen = {rule.method for rule in rules.CHOICES}
    assert all(algorithms.resolve(name)[0].exact for name in chosen), chosen
    for loss in ("logistic", "softmax-3", "squared", "pseudo-huber", "quantile-0.9"):
        for d in (4, 5000):
            for l1 in (0.0, 0.1):
                name = rules.method(Declaration(1000, d, loss=loss, l1=l1))
                method = algorithms.resolve(name)[0]
                settings = make_settings(method, public_settings(name, 1000, d, 1.0))
                assert not method.inexact(losses.get(loss), Relation.REPLACE_ONE, settings)
    assert not algorithms.resolve(rules.method(Declaration(1000, 4), 0.0))[0].inexact(
        losses.get("logistic"), Relation.REPLACE_ONE
    )


def test_a_quantile_is_released_in_bytes_and_lies_above_its_share_of_the_labels():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4000)
    X, y = np.column_stack([np.ones(4000), x]) / 2**0.5, 0.5 * x + 0.2 * rng.standard_normal(4000)
    made = dpbench.fit(X, y, algorithm="auto", epsilon=2.0, loss="quantile-0.9")
    assert (made.plan.name, made.released.arithmetic) == ("objpert", "bytes")
    assert made.released.epsilon_planned <= 2
    assert 0.85 < (y <= X @ made.w).mean() < 0.96


@pytest.mark.thorough  # an audit of another loss than the case's own: tests.problems.test_found_losses
def test_an_audit_of_a_quantile_passes(one_process):
    (audited,) = dpbench.audit("objpert", 1.0, runs=400, loss="quantile-0.9")
    assert audited.passed


def test_a_loss_of_ones_own_is_covered_where_a_rows_place_does_not_matter():
    X, y = table("own")
    call = {"epsilon": 2.0, "loss": LogCosh(), "T": 3}
    fit = dpbench.fit(X, y, algorithm="dp-gd", **call)
    assert (fit.released.relation, fit.released.arithmetic) == ("replace-one", "bytes")
    other = dpbench.fit(X, y, algorithm="dp-gd", relation="add-remove", **call)
    assert (other.released.relation, other.released.arithmetic) == ("add-remove", "real")
    del call["T"]
    assert dpbench.fit(X, y, algorithm="objpert", **call).released.arithmetic == "real"
    with pytest.raises(UserError, match="how far off a loss of your own is"):
        dpbench.fit(X, y, algorithm="objpert", arithmetic="bytes", **call)
    with pytest.raises(UserError, match='covered under relation="replace-one" alone'):
        dpbench.fit(X, y, algorithm="dp-gd", relation="add-remove", arithmetic="bytes", **call)


class OwnLogistic(losses.Logistic):
    """The same numbers, by functions that nobody here has seen."""


def test_a_loss_of_ones_own_stays_so_with_class_weights():
    for weights in ((1.0, 1.0), (0.5, 1.0)):
        known, own = (losses.Weighted(base, weights) for base in (losses.Logistic(), OwnLogistic()))
        call = {"algorithm": "objpert", "epsilon": 2.0}
        assert dpbench.fit(*table("own"), loss=known, **call).released.arithmetic == "bytes"
        assert dpbench.fit(*table("own"), loss=own, **call).released.arithmetic == "real"


class Normed(LogCosh):
    """Of which a row's slope depends on the other rows."""

    name = "normed"

    def derivative(self, z, y, out):
        out[...] = np.tanh(z - y) * min(1.0, 50 / np.abs(z).max())
        return out


class Boasts(LogCosh):
    """Which says that its slope needs no clipping, and has one point where it is not so."""

    name, bounded_in_float = "boasts", True

    def derivative(self, z, y, out):
        out[...] = np.where(z == 0, 1000.0, np.tanh(z - y))
        return out


def test_a_loss_of_ones_own_cannot_move_a_sum_further_than_its_row_may():
    X, y = table("own")
    with pytest.raises(UserError, match="normed is not what it declares: derivative of one row depends on others"):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=2.0, loss=Normed(), T=3, relation="replace-one")
    losses.check(LogCosh())
    from dpbench.problems.exact import ExactProblem

    W = np.zeros((1, 4))
    found = ExactProblem(X[:1], y[:1], loss=Boasts(), row_bound=1.0).gradient_sum(W).integers
    assert np.abs(found).max() <= 2**32


# Rows


@pytest.mark.parametrize(
    "call",
    [
        {"algorithm": "dp-gcd", "scales": "bound", "passes": 2.0},
        {"algorithm": "dp-cd", "scales": "bound", "passes": 1.0},
        {"algorithm": "private-tuning", "method": "dp-gd", "candidates": '[{"T": 2}]'},
        {"algorithm": "private-tuning", "method": "dp-cd", "candidates": '[{"scales": "bound", "passes": 1}]'},
    ],
    ids=lambda call: f"{call['algorithm']} {call.get('method', '')}",
)
def test_the_longest_row_is_never_measured_where_noise_or_steps_rest_on_a_bound(call, monkeypatch):
    """It was: dp-gcd's steps, and the noise of what private-tuning tunes, followed the longest row of a fit."""
    from dpbench.own import inputs

    seen, made = [], inputs.problem_of
    monkeypatch.setattr(inputs, "problem_of", lambda *args, **kwargs: seen.append(made(*args, **kwargs)) or seen[-1])
    X, y = table("logistic")
    for far in (0.1, 10.0):
        A = X.copy()
        A[-1] = far
        for arithmetic in (None, "real"):
            fit = dpbench.fit(A, y, epsilon=1.0, arithmetic=arithmetic, **call)
            assert fit.guarantee.endswith("counts as public: n")
    assert [problem.row_bound for problem in seen] == [1.0] * 4
    assert all(problem.row_norm <= 1 + 1e-9 for problem in seen)


def test_a_sparse_row_with_a_column_twice_is_as_long_as_its_sums(monkeypatch):
    """(0.7, 0.7) in one column is 1.4; on the grid each of the two became what they are together."""
    from dpbench.own import inputs

    seen, made = [], inputs.problem_of
    monkeypatch.setattr(inputs, "problem_of", lambda *args, **kwargs: seen.append(made(*args, **kwargs)) or seen[-1])
    twice = [0.7, 0.7, 0.5], [0, 0, 1], [0, 2, 3]
    X, y = scipy.sparse.csr_array(twice, shape=(2, 2)), np.array([1.0, -1.0])
    for arithmetic in ("bytes", "real"):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, delta=1e-3, T=2, arithmetic=arithmetic)
        assert seen[-1].row_norm <= 1 + 1e-12
        assert np.linalg.norm(seen[-1].X.toarray(), axis=1).max() <= 1 + 1e-12
    with pytest.raises(DataError, match=r"largest 1\.4"):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, delta=1e-3, T=2, bound="check")
    assert X.data.tolist() == [0.7, 0.7, 0.5]


# Time


def test_constant_time_gives_the_model_that_it_gives_without():
    """The same releases by other steps: sums are equal to the bit, minimisers to the solver's tolerance."""
    X, y = table("logistic")
    X[3], X[5, 1] = 40.0, np.nan
    for name, settings, off in (("dp-gd", {"T": 3}, 0.0), ("objpert", {}, 1e-3)):
        call = {"algorithm": name, "epsilon": 2.0, "seed": 3, "arithmetic": "bytes", "bound": "rescale", **settings}
        plain, steady = (dpbench.fit(X, y, timing=timing, **call) for timing in (None, "constant"))
        np.testing.assert_allclose(steady.w, plain.w, rtol=0, atol=off)


def test_constant_time_takes_as_many_steps_whatever_the_data_are():
    """Counted where steps are taken: blocks put on the grid and rows shortened in them, sums, values, Hessians."""
    X, y = table("logistic")
    odd, far = X.copy(), X.copy()
    odd[3], odd[5, 1], far[:] = 40.0, np.nan, 1e9
    for call in ({"algorithm": "dp-gd", "T": 3}, {"algorithm": "objpert"}, {"algorithm": "aop"}):
        fits = [counted(A, b, epsilon=2.0, timing="constant", **call) for A, b in ((X, y), (odd, -y), (far, abs(y)))]
        assert fits[0] == fits[1] == fits[2]
        assert sum(fits[0].values()) > 2
    plain = [counted(A, y, algorithm="objpert", epsilon=2.0) for A in (X, far)]
    assert plain[0] != plain[1]


def counted(X, y, **call):
    from collections import Counter

    from dpbench.problems import exact, grid, problem

    calls = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (grid, "_shortened"),
            (exact, "weighted_sum"),
            (exact, "in_order"),
            (problem.Problem, "value"),
            (problem.Problem, "gradient"),
            (problem.Problem, "hessian"),
        ):
            inner = getattr(owner, name)

            def count(*args, _inner=inner, _name=name, **kwargs):
                rows = len(args[0]) if isinstance(args[0], np.ndarray) else 1
                calls[_name] += rows
                return _inner(*args, **kwargs)

            patch.setattr(owner, name, count)
        dpbench.fit(X, y, bound="rescale", **call)
    return calls


def test_what_cannot_take_constant_time_is_one_line():
    X, y = table("logistic")
    call = {"algorithm": "dp-gd", "epsilon": 1.0, "T": 2, "timing": "constant"}
    for change, message in (
        ({"timing": "fast"}, 'timing must be "constant" or None'),
        ({"arithmetic": "real"}, "has no constant time"),
        ({"seed": 1}, "has no constant time"),
        ({"algorithm": "objpert", "l1": 0.1}, "use dp-gd-average"),
    ):
        call_with = {key: value for key, value in (call | change).items() if key != "T" or "algorithm" not in change}
        with pytest.raises(UserError, match=f"timing.*{message}|{message}"):
            dpbench.fit(X, y, **call_with)
    with pytest.raises(UserError, match="sparse rows"):
        dpbench.fit(scipy.sparse.csr_matrix(X), y, **call)


@pytest.mark.thorough
def test_a_plug_in_is_served_and_where_it_is_trusted_the_guarantee_says_whose_word_it_is(tmp_path):
    """In process its ledger is checked; that it returns nothing else cannot be. Served, it has nothing else."""
    file = tmp_path / "theirs.py"
    file.write_text(
        "from dpbench.algorithms.gradient_descent import DPGradientDescent\n\n\n"
        'class Theirs(DPGradientDescent):\n    """As ours."""\n\n    name = "their-gd"\n',
        encoding="utf-8",
    )
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (50, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    for name, trusted, foreign in (
        (f"{file}:Theirs", False, False),
        (f"{file}:Theirs", True, True),
        ("dp-gd", True, False),
    ):
        told = dpbench.fit(X, y, algorithm=name, epsilon=1.0, T=2, trusted=trusted).guarantee
        assert "holds for the bytes released" in told
        assert told.endswith("is the word of their-gd alone") == foreign, told
    one, other = (dpbench.fit(X, y, algorithm=f"{file}:Theirs", epsilon=1.0, T=2, seed=3).w for _ in range(2))
    assert np.array_equal(one, other)
    with pytest.raises(UserError, match="releases bytes alone"):
        dpbench.fit(X, y, algorithm=f"{file}:Theirs", epsilon=1.0, T=2, arithmetic="real")


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, bool, np.float16])
def test_labels_of_any_type_are_signs_of_float32_rows(kind):
    from dpbench.own import inputs

    X, y = np.ones((5, 2), np.float32), np.array([1, 0, 2, 0, 1]).astype(kind)
    _, signs = inputs.repaired(X, y, "binary", loss="logistic", single=True)
    assert signs.dtype == np.float32
    np.testing.assert_array_equal(signs, [1, -1, 1, -1, 1])
    _, signs = inputs.repaired(
        X, np.array([np.nan, -np.inf, np.inf, 1e-300, -0.0]), "binary", loss="logistic", single=True
    )
    np.testing.assert_array_equal(signs, [-1, -1, 1, 1, -1])
    with pytest.raises(DataError, match="shape"):
        inputs.repaired(X, np.ones(4, kind), "binary", loss="logistic", single=True)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_rows_beyond_the_bound_are_shortened_and_the_others_are_as_given(norm, kind):
    from dpbench.own import inputs

    rng = np.random.default_rng(0)
    X = (rng.uniform(-0.1, 0.1, (20_000, 4))).astype(kind)
    X[[3, 9_000]] *= 100
    X[19_999, 1] = np.nan
    y = rng.choice([-1.0, 1.0], 20_000)
    call = {"method": "", "check": False, "release": True, "exact": False, "precision": np.dtype(kind).name,
            "steady": False, "declared": Declaration(20_000, 4, row_bound=1.0, row_bound_norm=norm)}  # fmt: skip
    given = X.copy()
    made = inputs.problem_of(X, y, **call).X
    np.testing.assert_array_equal(X, given)  # the user's array stays as it is
    assert np.linalg.norm(made, 2 if norm == "l2" else 1, axis=1).max() <= 1 + 1e-12
    within = np.delete(np.arange(20_000), [3, 9_000, 19_999])
    np.testing.assert_array_equal(made[within], X[within])
    assert np.isfinite(made).all()


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", ["tukey-em", "dp-sgd-1", "dp-cd"])
def test_no_number_however_large_stops_a_release_by_a_method_without_a_bound_on_rows(name, precision):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = X @ [1.0, 0.5]
    options = {"tukey-em": {"l2": 0.01}, "dp-sgd-1": {"passes": 0.02}}.get(name, {})
    for odd in (1e12, 1e160, 1e308, np.inf, np.nan):
        rows = X.copy()
        rows[7] = odd
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = dpbench.fit(rows, y, algorithm=name, loss="squared", epsilon=8.0, precision=precision, **options)
        assert np.isfinite(found.w).all(), odd
