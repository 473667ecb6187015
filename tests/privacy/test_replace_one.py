"""Add/remove algorithms asked for replace-one: twice the sensitivity, samples of a fixed size, the ledger to match."""

import numpy as np
import pytest

from dpbench.algorithms import names, resolve
from dpbench.algorithms.base import batch_settings, make_settings, no_trace
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Gaussian, ObjectivePerturbation, PureDP, Relation, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import LAPLACE, Releases
from dpbench.privacy.sampling import WithoutReplacementSampler
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from dpbench.run.job import make_job
from tests.algorithms.conftest import small_problem
from tests.batches import run_batch

K = 4000
REPLACED = Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight")
OWN = Budget(1.0, 1e-5, Relation.ADD_REMOVE, "tight")
CONVERTED = [n for n in names() if resolve(n)[0].relation is Relation.ADD_REMOVE and resolve(n)[0].private]


def mechanisms(doubled=True, k=5):
    return Mechanisms([str(i) for i in range(k)], REPLACED if doubled else OWN, declared=Relation.ADD_REMOVE)


RELEASES = {
    "gaussian": lambda m: m.gaussian(np.zeros(m.k), sensitivity=0.3, noise_multiplier=1.5, label="r"),
    "laplace by epsilon": lambda m: m.laplace(np.zeros(m.k), sensitivity=0.3, epsilon=0.7, label="r"),
    "laplace by scale": lambda m: m.laplace(np.zeros(m.k), sensitivity=0.3, scale=0.4, label="r"),
    "tree": lambda m: m.tree(5, sensitivity=0.3, rho=0.2, label="r").release(np.zeros((m.k, 1)))[:, 0],
    "symmetric": lambda m: m.gaussian(
        np.zeros((m.k, 2, 2)), sensitivity=0.3, noise_multiplier=1.5, label="r", symmetric=True
    )[:, 0, 1],
}


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_the_variance_of_the_noise_quadruples_and_the_ledger_stays(release):
    """The same seeds: the ratio is exact. Its size is tested against the law below."""
    own, doubled = mechanisms(False), mechanisms()
    np.testing.assert_allclose(release(doubled), 2 * release(own), rtol=1e-12)
    assert own.ledger.of(0) == doubled.ledger.of(0)


def test_gaussian_noise_has_the_standard_deviation_of_twice_the_sensitivity():
    noise = RELEASES["gaussian"](mechanisms(k=K))
    z = (np.var(noise) / (2 * 0.3 * 1.5) ** 2 - 1) / np.sqrt(2 / K)
    assert abs(z) < 4


def test_a_declared_replace_one_sensitivity_is_taken_as_it_is():
    given = {"value": np.zeros(5), "sensitivity": 0.3, "noise_multiplier": 1.5, "label": "r"}
    own = mechanisms(False).gaussian(**given, replaced=0.4)
    np.testing.assert_allclose(mechanisms().gaussian(**given, replaced=0.4), own * 0.4 / 0.3, rtol=1e-12)
    np.testing.assert_array_equal(own, mechanisms(False).gaussian(**given))


def test_a_member_of_the_batch_doubles_too():
    one = mechanisms(k=1).member(0).gaussian(np.zeros(1), sensitivity=1.0, noise_multiplier=1.0, label="r")
    np.testing.assert_allclose(one, 2 * RELEASES["gaussian"](mechanisms(False, k=1)) / 0.45, rtol=1e-12)


def test_noisy_argmax_draws_at_twice_its_scale():
    """Both steps of a replacement are ε/2-DP at that scale (Dwork and Roth 2014, Claim 3.9), together ε-DP."""
    seam = Recorded()
    m = Mechanisms(["a"], REPLACED, declared=Relation.ADD_REMOVE, releases=seam)
    m.noisy_argmax(np.zeros((1, 3)), sensitivity=0.3, epsilon=0.7, label="r")
    assert seam.scales == [pytest.approx(2 * 0.3 * 2 / 0.7)]
    assert m.ledger.of(0)[0].release == PureDP(0.7)


@pytest.mark.parametrize(("mode", "how"), [("rdp", {}), ("tight", {"replaced": True})])
def test_a_poisson_sample_becomes_one_of_fixed_size(mode, how):
    budget = Budget(1.0, 1e-5, Relation.REPLACE_ONE, mode)
    m = Mechanisms(["0", "1", "2"], budget, declared=Relation.ADD_REMOVE)
    sampler = m.poisson(100, 0.07, "r", **how)
    assert isinstance(sampler, WithoutReplacementSampler)
    assert (sampler.n, sampler.m, sampler.size) == (100, 7, 7)
    assert all(len(rows) == 7 for rows in sampler.draw())
    z = sampler.noise_multiplier(10)
    assert z == budget.noise_scale(((WithoutReplacement(100, 7, Gaussian(1.0)), 10),))
    sampler.gaussian(np.zeros((3, 1)), sensitivity=1.0, noise_multiplier=z)
    assert m.ledger.of(0)[0].release == WithoutReplacement(100, 7, Gaussian(z))


def test_objective_perturbation_and_the_other_direction_are_refused():
    with pytest.raises(PrivacyError, match="Jacobian"):
        mechanisms(k=1).linear_term(2, sensitivity=1, event=ObjectivePerturbation(1, 0.1, 1e-6), label="b")
    with pytest.raises(PrivacyError, match="say nothing"):
        Mechanisms(["a"], OWN, declared=Relation.REPLACE_ONE)
    with pytest.raises(UserError, match="dp-mf is replace-one only"):
        resolve("dp-mf")[0].under("add-remove")
    with pytest.raises(UserError, match="did you mean replace-one"):
        resolve("dp-gd")[0].under("replace-on")


def test_the_key_knows_the_relation_only_where_it_is_not_the_algorithms_own():
    common = {"problem": "synthetic", "epsilon": 1.0, "seed": 0}
    own, same = (make_job(algorithm="dp-gd", **common, relation=r) for r in (None, "add-remove"))
    replaced = make_job(algorithm="dp-gd", **common, relation="replace-one")
    assert own == same
    assert own.key != replaced.key
    assert own.stream_key != replaced.stream_key
    assert own.group != replaced.group
    assert replaced.neighbours is Relation.REPLACE_ONE
    assert make_job(algorithm="dp-nag", **common, relation="replace-one") == make_job(algorithm="dp-nag", **common)


def setting_of(name):
    algorithm, fixed = resolve(name)
    least = {"T": 3, "inner": 20}  # of iterations, and of the releases within each: all are declared alike
    few = {key: n for key, n in least.items() if key in algorithm.Settings.__struct_fields__ and key not in fixed}
    regularisers = {"l2": 0.02} if "l2" in algorithm.needs.regularisers else {}
    losses = algorithm.needs.covered
    problem = small_problem(loss=losses[0], bound=algorithm.needs.row_norm, **regularisers)
    mode = "tight" if "tight" in algorithm.accountings else "paper"
    return algorithm, problem, algorithm.complete(problem, make_settings(algorithm, {**fixed, **few})), mode


@pytest.mark.parametrize("name", CONVERTED)
def test_the_ledger_of_a_converted_run_is_within_the_budget_and_spends_it(name):
    algorithm, problem, settings, mode = setting_of(name)
    budget = Budget(1.0, problem.n**-2.0, algorithm.under("replace-one"), algorithm.accounting(mode))
    run = run_batch(problem, algorithm, [settings] * 2, np.zeros((2, problem.d)), budget, ["a", "b"])
    assert np.isfinite(run.W).all()
    epsilon = spent(run.mechanisms.ledger.of(0), budget.delta, Relation.REPLACE_ONE).epsilon
    assert epsilon <= 1 + 1e-6
    own = Budget(1.0, problem.n**-2.0, algorithm.relation, algorithm.accounting(mode))
    before = run_batch(problem, algorithm, [settings] * 2, np.zeros((2, problem.d)), own, ["a", "b"])
    looser = spent(before.mechanisms.ledger.of(0), own.delta, own.relation).epsilon  # shares that add up, say
    assert epsilon >= 0.95 * min(1.0, looser)


class Recorded(Releases):
    """Adds no noise, keeps what each release moved and may move; given `replay`, answers with those values instead."""

    def __init__(self, *, replay=None):
        super().__init__(["a"], factor=2.0)
        self.seen, self.scales, self.replay = [], [], replay

    def scaled_sensitivity(self, sensitivity, replaced=None):
        self.bound = np.asarray(super().scaled_sensitivity(sensitivity, replaced))
        return self.bound

    def noisy(self, value, scale, noise):
        self.scales.append(float(np.max(scale)))
        self.seen.append((np.array(value, dtype=float), self.bound, 1 if noise is LAPLACE else 2))
        return self.seen[-1][0].copy() if self.replay is None else self.replay[len(self.seen) - 1][0].copy()


def releases(algorithm, problem, settings, mode, W, replay=None):
    """What one replicate released without noise and the bounds declared; given `replay`, after the same answers."""
    budget = Budget(1.0, problem.n**-2.0, Relation.REPLACE_ONE, algorithm.accounting(mode))
    seam = Recorded(replay=replay)
    m = Mechanisms(["a"], budget, declared=algorithm.relation, releases=seam)
    with np.errstate(all="ignore"):
        algorithm.run(problem, W, m, batch_settings([settings], algorithm.per_replicate), no_trace)
    return seam.seen


def replaced(problem, i, x, y):
    X, labels = np.array(problem.X), problem.y.copy()
    X[i], labels[i] = x, y
    return Problem(X, labels, loss=problem.loss, l2=problem.l2, row_bound=problem.row_bound)


def shares_of_bound(first, second):
    return [
        np.linalg.norm((value - before).ravel(), ord=order) / bound.max()
        for (value, bound, order), (before, _, _) in zip(second, first, strict=True)
    ]


@pytest.mark.parametrize("name", CONVERTED)
def test_no_replaced_row_moves_a_release_further_than_declared(name):
    """Given the same earlier releases; random replacements, and opposite rows on the bound."""
    algorithm, problem, settings, mode = setting_of(name)
    generator = np.random.default_rng(0)
    W = np.full((1, problem.d), 0.3)
    first = releases(algorithm, problem, settings, mode, W)
    assert first
    for i in range(6):
        x = -problem.X[i] if i % 2 else generator.standard_normal(problem.d)
        changed = replaced(problem, i, x / np.linalg.norm(x) * (1 - 1e-15), generator.choice([-1.0, 1.0]))
        second = releases(algorithm, changed, settings, mode, W, replay=first)
        assert max(shares_of_bound(first, second)) <= 1 + 1e-9


def test_twice_the_sensitivity_is_needed():
    """Far along an axis, two rows a little to its other side have gradients of length 1 in opposite directions."""
    algorithm, problem, settings, mode = setting_of("dp-gd")
    W = 1e4 * np.eye(1, problem.d)
    pair = [np.array([-0.05, side * np.sqrt(1 - 0.06**2), *np.zeros(problem.d - 2)]) for side in (1, -1)]
    first = releases(algorithm, replaced(problem, 0, pair[0], 1.0), settings, mode, W)
    second = releases(algorithm, replaced(problem, 0, pair[1], 1.0), settings, mode, W, replay=first)
    assert 0.99 < shares_of_bound(first, second)[0] <= 1
