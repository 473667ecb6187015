"""A loss of somebody else's runs with every method whose proof covers it, and is refused by the others in one line."""

import math

import numpy as np
import pytest

import dpbench
from dpbench.algorithms import get, names, resolve
from dpbench.algorithms.base import Algorithm, Disclosure, Needs, make_settings
from dpbench.errors import UserError
from dpbench.privacy.check import guarantee
from dpbench.problems import Declaration, Problem, losses
from tests.algorithms.conftest import run

FEW = {"T": 2, "passes": 1.0, "cap": 3, "D": 5.0, "inner": 2, "lambda0": 0.5, "alpha": 0.5, "M": 64, "B": 4}


class LogCosh(losses.Loss):
    """ln cosh(z - y): |ℓ'| = |tanh| ≤ 1, ℓ'' = 1 - tanh² ≤ 1, |ℓ'''| = 2 tanh (1 - tanh²) ≤ 4/(3√3)."""

    name, convex, binary = "log-cosh", True, False
    lipschitz, smoothness, hessian_lipschitz = 1.0, 1.0, 4 / (3 * math.sqrt(3))

    def value(self, z, y, out):
        out[...] = np.logaddexp(z - y, y - z) - math.log(2)
        return out

    def derivative(self, z, y, out):
        out[...] = np.tanh(z - y)
        return out

    def second_derivative(self, z, y, out):
        out[...] = 1 - np.tanh(z - y) ** 2
        return out


class Welsch(LogCosh):
    """1 - exp(-(z - y)²/2): bounded, so not convex; |ℓ'| ≤ e^{-1/2}, |ℓ''| ≤ 1."""

    name, convex = "welsch", False
    lipschitz, hessian_lipschitz = math.exp(-0.5), 1.381

    def value(self, z, y, out):
        out[...] = -np.expm1(-((z - y) ** 2) / 2)
        return out

    def derivative(self, z, y, out):
        out[...] = (z - y) * np.exp(-((z - y) ** 2) / 2)
        return out

    def second_derivative(self, z, y, out):
        out[...] = (1 - (z - y) ** 2) * np.exp(-((z - y) ** 2) / 2)
        return out


def rows(algorithm, loss):
    """(X, y, kind, bound): 120 rows on the bound of the method's proof for this loss."""
    kind, bound = algorithm.needs.row_bound(loss) or ("l2", 1.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    X *= bound / np.linalg.norm(X, ord=2 if kind == "l2" else 1, axis=1, keepdims=True) * (1 - 1e-12)
    return X, X @ rng.normal(size=3), kind, bound


@pytest.mark.thorough_for("2opt-b-*", "opt-b-*", "dp-tr-b-*")
@pytest.mark.parametrize("loss", [LogCosh(), Welsch()], ids=["convex", "nonconvex"])
@pytest.mark.parametrize("name", names(plugins=False))
def test_a_loss_of_ones_own_runs_where_the_proof_covers_it_and_keeps_its_epsilon(name, loss):
    algorithm, fixed = resolve(name)
    X, y, kind, bound = rows(algorithm, loss)
    ridge = {"l2": 0.1} if "l2" in algorithm.needs.regularisers else {}
    problem = Problem(X, y, loss=loss, row_bound=bound, row_bound_norm=kind, **ridge)
    if why := algorithm.needs.missing_for(loss):
        with pytest.raises(
            UserError, match=rf"loss {loss.name} is not covered by its privacy proof: {why}; use one of"
        ):
            algorithm.needs.check(problem, name)
        return
    algorithm.needs.check(problem, name)
    settings = {k: v for k, v in FEW.items() if k in algorithm.Settings.__struct_fields__ and k not in fixed}
    if "qu" in fixed.values() or "published" in fixed.values():
        return  # of the logistic loss by name, and of published code
    result = run(name, problem, **settings)
    assert np.isfinite(result.W).all()
    budget = result.mechanisms.budget
    if algorithm.private and not algorithm.flaw(make_settings(algorithm, fixed), budget.accounting):
        assert guarantee(result.mechanisms.ledger, 0, budget, algorithm.labels).error == ""


def test_who_covers_which_is_what_the_proofs_say():
    convex, nonconvex = (
        {name for name in names(plugins=False) if not resolve(name)[0].needs.missing_for(loss)}
        for loss in (LogCosh(), Welsch())
    )
    assert {"dp-gd", "dp-sgd", "dp-mf", "dp-newton", "aop", "dp-gcd", "dp-nag", "dp-tr", "o2nc-tree"} <= convex
    assert "adassp" not in convex
    assert {"dp-gd", "dp-sgd", "dp-tr", "o2nc-tree"} <= nonconvex
    assert not nonconvex & {"dp-newton", "aop", "dp-gcd", "dp-nag", "dp-gd-last", "adassp"}


@pytest.mark.parametrize(
    ("needs", "bound"),
    [
        (Needs(), 1.0),
        (Needs(gradient=0.5), 0.5),
        (Needs(hessian=0.25), 0.5),
        (Needs(gradient=0.9, hessian=0.01), 0.1),
        (Needs(row_norm=("l1", 0.2), hessian=1.0), 0.2),
    ],
)
def test_how_long_rows_may_be_follows_from_the_constants_of_the_loss(needs, bound):
    assert needs.row_bound(LogCosh())[1] == pytest.approx(bound)


def test_fit_takes_a_loss_of_ones_own_with_noise_by_its_constants():
    X, y, *_ = rows(resolve("dp-newton")[0], LogCosh())
    assert np.linalg.norm(X, axis=1).max() == pytest.approx(0.5)  # L₁R² = 1/4
    fit = dpbench.fit(X, y, algorithm="dp-newton", epsilon=1.0, loss=LogCosh(), seed=0, T=2)
    assert np.isfinite(fit.w).all()
    assert fit.released.epsilon_planned <= 1 + 1e-6
    with pytest.raises(UserError, match=r"rows have ‖x‖₂ > 0.5"):
        dpbench.fit(2 * X, y, algorithm="dp-newton", epsilon=1.0, loss=LogCosh(), seed=0, T=2)


def test_the_built_in_losses_are_what_they_declare():
    for loss in losses.LOSSES.values():
        losses.check(loss)
    losses.check(LogCosh())
    losses.check(Welsch())


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"lipschitz": 0.9}, r"\|ℓ'\| exceeds lipschitz = 0.9"),
        ({"smoothness": 0.9}, r"\|ℓ''\| exceeds smoothness = 0.9"),
        ({"smoothness": 0.9, "smooth": False}, r"\|ℓ''\| exceeds smoothness = 0.9"),
        ({"second_derivative": lambda *a: (1 + 5e-5) * LogCosh.second_derivative(*a)}, r"\|ℓ''\| exceeds smoothness"),
        ({"derivative": lambda self, z, y, out: np.tanh(z - y) + 1e-3 * z.mean()}, "of one row depends on others"),
        ({"hessian_lipschitz": 0.7}, r"\|ℓ'''\| exceeds hessian_lipschitz"),
        ({"quadratic": True}, r"it is not \(y - z\)²/2"),
        ({"logistic": True}, "its slope does not determine its curvature"),
        ({"derivative": Welsch.derivative}, "its derivative is not that of its value"),
        ({"second_derivative": Welsch.second_derivative}, "its second derivative is not"),
    ],
)
def test_a_loss_that_declares_what_it_is_not_is_refused(wrong, line):
    liar = type("Liar", (LogCosh,), wrong)()
    with pytest.raises(UserError, match=line):
        dpbench.fit(np.eye(4), np.ones(4), algorithm="dp-gd", epsilon=1.0, loss=liar)


def test_a_nonconvex_loss_cannot_call_itself_convex():
    with pytest.raises(UserError, match="it is not convex"):
        losses.check(type("Liar", (Welsch,), {"convex": True})())


class Spiked(LogCosh):
    """Steeper than it says on half of the way between any two of the public points."""

    name = "spiked"

    def derivative(self, z, y, out):
        with np.errstate(divide="ignore", invalid="ignore"):
            place = (np.log(np.abs(z) / 1e-2) / np.log(5e3) * 399) % 1
        spiked = (np.abs(z) > 1) & (np.abs(z) < 49) & (place > 0.2) & (place < 0.7)
        return np.add(super().derivative(z, y, out), np.where(spiked, 5.0, 0.0), out=out)


def test_a_spike_between_the_public_points_of_a_check_is_found_by_the_others(monkeypatch):
    with monkeypatch.context() as only_public:
        only_public.setattr(losses, "FRESH", 0)
        losses.check(Spiked())
    monkeypatch.setattr(losses, "FRESH", 40)  # one finds it with a chance of 1/2
    with pytest.raises(UserError, match="spiked is not what it declares"):
        losses.check(Spiked())


def test_a_step_has_no_default_where_the_loss_is_not_smooth():
    X = np.eye(4)
    with pytest.raises(UserError, match="ramp loss is not smooth, and has no step of its own; give one"):
        dpbench.fit(X, np.array([1.0, -1, 1, -1]), algorithm="dp-gd", epsilon=1.0, loss="ramp", seed=0)
    fit = dpbench.fit(X, np.array([1.0, -1, 1, -1]), algorithm="dp-gd", epsilon=1.0, loss="ramp", seed=0, step=0.1)
    assert np.isfinite(fit.w).all()


def test_a_solver_with_its_loss_in_its_code_names_it():
    class Solver(Algorithm):
        name, needs = "solver", Needs(losses=("logistic",))
        discloses = (Disclosure("w", "w"),)

    assert Solver.needs.covered == ["logistic"]
    assert Solver.needs.missing_for(LogCosh()) == "the code is not written for it"


ADD = {"modification": "add", "lambda0": 0.0125}
LIMITS = [  # method, problem beside 20 rows of 4 columns, the last settings that it takes, the first that it does not
    ("dp-mf", {}, {"batches": 20}, {"batches": 21}, "batches = 21, but the data have 20 rows; lower it"),
    ("dp-mf", {}, {"batches": 4, "bands": 4}, {"batches": 4, "bands": 5}, "bands = 5 must be at most batches = 4"),
    ("opt-b", {"loss": "sigmoid"}, {"m": 20}, {"m": 21}, "m = 21 rows in a sample, but the data have 20; lower m"),
    ("dp-nag", {"l2": 0.1}, {"m": 20}, {"m": 21}, "m = 21 rows per iteration, but the data have n = 20; lower m"),
    ("dp-nag", {"l2": 0.1}, {"c": 0.999, "L": 0.1}, {"c": 1.0, "L": 0.1},
     "needs 0 < c·l2 < L, got l2 = 0.1, c = 1, L = 0.1; its momentum rests on strong convexity: set l2 > 0"),
    ("dp-newton", {}, {"lambda0": 0.0126}, {"lambda0": 0.0125},
     "lambda0 = 0.0125 with clip must exceed 1/(4n) = 0.0125 (Theorem B.2); raise it or use modification=add"),
    ("tukey-em", {"loss": "squared"}, {"m": 5}, {"m": 6},
     "m: 6 models of d = 4 columns take 24 rows, and there are n = 20; m is at most 5"),
    ("o2nc-naive", {"loss": "ramp"}, {"M": 20}, {"M": 21}, "M = 21 rows must be in 1..20: a row is used once"),
    ("dp-gd-average", {}, {"intervals": True, "clip": 1.0}, {"intervals": True, "clip": 0.99},
     "intervals: descent has them for logistic loss whose slopes are not clipped"),
    ("aop", {}, {"smoothness": 0.25}, {"smoothness": 0.24}, "smoothness = 0.24 is below the loss's 0.25; raise it"),
    ("dp-gd-last", {"l2": 0.5}, {"step": 2.6}, {"step": 8 / 3},
     "step = 2.66667 does not contract; lower it below 2.67"),
    ("dp-newton-general", {"n": 1000}, {"lambda0": 0.125}, {"lambda0": 0.126},
     "lambda0 = 0.126 with clip must be at most L1/2 = 0.125 (Theorem B.6); lower it or use modification=add"),
    ("dp-newton-general", {}, ADD | {"lambda0": 0.0126}, ADD,
     "lambda0 = 0.0125 with add must exceed 0.0125 at n = 20 (Theorem B.6); raise it"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "problem", "last", "beyond", "line"), LIMITS)
def test_a_setting_is_taken_up_to_its_limit_and_refused_beyond_with_the_limit_in_the_line(
    name, problem, last, beyond, line
):
    kind = {"n": 20, "row_bound": 1.0} | problem
    method, declaration = get(name), Declaration(kind.pop("n"), 4, **kind)

    def complete(settings):
        return method.complete(declaration, make_settings(method, settings))

    settings = complete(last)
    assert {one: getattr(settings, one) for one in last} == last
    with pytest.raises(UserError) as refusal:
        complete(beyond)
    assert str(refusal.value).removeprefix(f"{name}: ") == line


@pytest.mark.parametrize("declared", ["l1", "l2"])
def test_rows_are_measured_in_the_norm_that_is_asked_for(declared):
    """Of (0.6, 0.6), declared to be within 5 in either norm, which says too little: 0.85 and 1.2."""
    problem = Problem(np.full((4, 2), 0.6), np.ones(4), row_bound=5.0, row_bound_norm=declared)
    Needs(row_norm=("l2", 1.0)).check(problem, "mine")
    Needs(row_norm=("l1", 1.5)).check(problem, "mine")
    for needs, line in (
        (("l1", 1.0), r"mine: needs rows with ‖x‖₁ <= 1, the largest is 1\.2;"),
        (("l2", 0.8), r"mine: needs rows with ‖x‖₂ <= 0\.8, the largest is 0\.8485;"),
    ):
        with pytest.raises(UserError, match=line):
            Needs(row_norm=needs).check(problem, "mine")
        Needs(row_norm=needs).check(problem, "mine", rows=False)
