"""What the published runs did otherwise: each difference as it is told, and no claim of privacy."""

import math

import numpy as np
import pytest

from dpbench.algorithms import get
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.nonconvex import constants as const
from dpbench.algorithms.nonconvex.driver import Gradient, Hessian, Iterate, Value
from dpbench.algorithms.nonconvex.published import LARGEST_RHO, PUBLISHED, SharedMinibatch, until_loss_rises
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Gaussian, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem

METHODS = ("opt", "opt-ls", "2opt", "2opt-ls", "dp-tr", "dp-gd-2ns", "opt-b", "2opt-b", "dp-tr-b")
MINIBATCH = METHODS[6:]
VARIANT = {"calibration": PUBLISHED}


@pytest.mark.parametrize(
    ("losses", "rises", "iterations"),
    [([5, 4, 3, 2], 1, 40), ([5, 4, 4.5, 3], 1, 20), ([5, 6, 7, 6, 7, 8, 9, 1], 3, 60), ([5, 6, 7, 6, 7], 3, 50)],
)
def test_the_true_loss_ends_a_run_once_it_has_risen_often_enough(losses, rises, iterations):
    done = []

    def method():
        for t in range(10 * len(losses)):
            yield Iterate(np.array([t]))
            yield Gradient(np.array([t]))
            done.append(t)
        return np.array([-1]), True

    watched = until_loss_rises(method(), rises)
    request, answer = next(watched), None
    try:
        while True:
            if isinstance(request, Value):
                assert request.w[0] % 10 == 0
                answer = losses[request.w[0] // 10]
            request = watched.send(answer)
    except StopIteration as end:
        w, terminated = end.value
    assert len(done) == iterations
    assert (w[0], terminated) == ((-1, True) if iterations == 10 * len(losses) else (iterations, False))


def test_one_batch_with_replacement_and_the_noise_of_a_mean_over_all_rows():
    n, m, sigma = 200, 40, 3.0
    problem = small_problem(n=n)
    mechanisms = Mechanisms(["shared"], Budget(1.0, 1e-3, Relation.REPLACE_ONE, "rdp")).member(0)
    oracle = SharedMinibatch(problem, mechanisms, sigma, 2 * sigma, m)
    noise, batches = {"gradient": [], "hessian": []}, []
    for _ in range(300):
        for kind in noise:
            asked = getattr(oracle, kind)(np.full(5, 0.1))
            request = next(asked)
            batches.append(request.rows)
            assert isinstance(request, {"gradient": Gradient, "hessian": Hessian}[kind])
            with pytest.raises(StopIteration) as end:
                asked.send(np.zeros((5,) if kind == "gradient" else (5, 5)))
            noise[kind].append(end.value.value)
    assert all(a is b for a, b in zip(batches[::2], batches[1::2], strict=True))
    assert np.mean([len(np.unique(rows)) for rows in batches]) == pytest.approx(n * (1 - (1 - 1 / n) ** m), abs=0.5)
    assert np.std(noise["gradient"]) == pytest.approx(sigma * 2 / n, rel=0.1)
    assert np.std(noise["hessian"]) == pytest.approx(2 * sigma * 2 * math.sqrt(5) / n, rel=0.1)
    releases = {entry.label: entry.release for entry in mechanisms.ledger.of(0)}
    assert releases == {
        "gradient": WithoutReplacement(n, m, Gaussian(sigma * (m / n))),
        "hessian": WithoutReplacement(n, m, Gaussian(2 * sigma * (m / n))),
    }


@pytest.mark.parametrize("name", METHODS)
def test_it_is_told_that_the_variant_is_not_private(name):
    algorithm = get(name)
    assert algorithm.flaw(algorithm.Settings()) == ""
    assert algorithm.flaw(algorithm.Settings(noise=2.0)) == ""
    assert algorithm.flaw(algorithm.Settings(calibration=PUBLISHED))
    assert "0.5 of the noise" in algorithm.flaw(algorithm.Settings(noise=0.5))


@pytest.mark.parametrize("name", METHODS)
def test_half_the_noise_is_in_every_release(name):
    problem = small_problem(n=60)
    whole, half = (run(name, problem, alpha=0.2, cap=1, noise=noise) for noise in (1.0, 0.5))
    for one, other in zip(whole.mechanisms.ledger.of(0), half.mechanisms.ledger.of(0), strict=True):
        a, b = (e.release.release if name in MINIBATCH else e.release for e in (one, other))
        if one.label == "line search":
            assert b.epsilon == pytest.approx(2 * a.epsilon)
        else:
            assert b.noise_multiplier == pytest.approx(a.noise_multiplier / 2)


def test_the_published_noise_of_minibatches_does_not_fall_below_that_of_rho_1():
    """Hence the same at ε = 0.6 and 1; at 0.2 it is what ε asks for, on m rows, divided by n/m."""
    problem, algorithm = small_problem(n=5000, d=3), get("opt-b")
    T = const.short_step_iterations(0.06)
    settings = algorithm.complete(problem, make_settings(algorithm, VARIANT | {"alpha": 0.06}))
    sigmas = {}
    for epsilon in (0.02, 0.6, 1.0):
        budget = Budget(epsilon, 1 / 5000, algorithm.relation, "rdp")
        (phase,) = algorithm.phases(problem, budget, 0.06, settings)
        sigmas[epsilon] = phase.sigma
        asked = budget.noise_scale(((WithoutReplacement(5000, 100, Gaussian(1.0)), 2 * T),))
        assert phase.sigma == max(asked, math.sqrt(T / LARGEST_RHO))
    assert sigmas[0.6] == sigmas[1.0] < sigmas[0.02]


@pytest.mark.parametrize("loss", ["sigmoid", "logistic"])
@pytest.mark.parametrize("name", ["dp-tr", "dp-tr-b"])
def test_the_published_trust_region_has_another_root_d_in_the_sigmoids_hessians(name, loss):
    problem = small_problem(n=500, loss=loss)
    result = run(name, problem, alpha=0.02, cap=2, **VARIANT)
    gradient, hessian = (e.release for e in result.mechanisms.ledger.of(0))
    if name == "dp-tr-b":
        gradient, hessian = gradient.release, hessian.release
    factor = math.sqrt(5) if loss == "sigmoid" else 1.0
    assert hessian.noise_multiplier == pytest.approx(factor * gradient.noise_multiplier)
    full = run("dp-tr", problem, alpha=0.02, cap=2).mechanisms.ledger.of(0)[0].release
    m = 10 if name == "dp-tr-b" else 500
    assert gradient.noise_multiplier == pytest.approx(full.noise_multiplier * m / 500)


def test_only_the_sigmoid_may_have_longer_rows():
    X = np.array([[3.22, 0.0], [0.0, 1.0]])
    y = np.array([1.0, -1.0])
    needs = get("opt").needs
    needs.check(Problem(X, y, loss="sigmoid", row_bound=3.22), "opt")
    with pytest.raises(UserError, match="<= 1"):
        needs.check(Problem(X, y, row_bound=3.22), "opt")
    with pytest.raises(UserError, match=r"<= 3\.22"):
        needs.check(Problem(1.1 * X, y, loss="sigmoid"), "opt")


def test_a_method_that_has_nothing_left_to_do_ends_at_once():
    def nothing():
        return np.zeros(2), False
        yield

    with pytest.raises(StopIteration) as end:
        next(until_loss_rises(nothing(), 1))
    assert end.value.value[1] is False
