"""Noise of a release by OpenDP's samplers: the right distribution on the finest grid, and nothing past it."""

import sys

import numpy as np
import pytest

import dpbench
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.relation import Relation

N = 1500


def budget():
    return Budget(epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE, accounting="bs16")


@pytest.fixture
def mechanisms():
    pytest.importorskip("opendp", reason="the extra release is not installed")
    from dpbench.privacy.opendp import OpenDPMechanisms

    return OpenDPMechanisms(["key"], budget())


def test_its_noise_has_the_scale_of_the_mechanism(mechanisms):
    value = np.zeros((1, N)) + 7.0
    gaussian = mechanisms.gaussian(value, sensitivity=0.5, noise_multiplier=4.0, label="g") - 7.0
    laplace = mechanisms.laplace(value, sensitivity=0.5, epsilon=0.25, label="l") - 7.0
    for noise, variance, kurtosis in ((gaussian, 4.0, 3.0), (laplace, 2 * 4.0, 6.0)):
        spread = np.sqrt((kurtosis - 1) / N)  # relative standard error of a variance
        assert noise.shape == (1, N)
        assert abs(noise.mean()) < 5 * np.sqrt(variance / N)
        assert abs(noise.var() / variance - 1) < 5 * spread
    excess = [np.mean(x**4) / np.mean(x**2) ** 2 for x in (gaussian, laplace)]
    assert excess[0] < 3.9 < excess[1]  # standard errors: 0.13 about 3; the Laplace one is above 3.9 with 6 ± 1
    assert [row["release"] for row in mechanisms.ledger.summary()] == [
        "Gaussian, noise multiplier 4",
        "Laplace, noise multiplier 4",
    ]


def test_a_matrix_keeps_its_symmetry_and_one_draw_an_entry(mechanisms):
    d = 30
    H = np.arange(float(d * d)).reshape(1, d, d)
    H += H.transpose(0, 2, 1)
    noise = mechanisms.gaussian(H, sensitivity=1.0, noise_multiplier=2.0, label="H", symmetric=True)[0] - H[0]
    np.testing.assert_array_equal(noise, noise.T)
    upper = noise[np.triu_indices(d)]
    assert len(np.unique(upper)) == len(upper)
    assert upper.var() == pytest.approx(4.0, rel=5 * np.sqrt(2 / len(upper)))


def test_under_tight_a_matrix_has_less_noise_off_its_diagonal_and_is_symmetric():
    pytest.importorskip("opendp", reason="the extra release is not installed")
    from dpbench.privacy.opendp import OpenDPMechanisms

    d = 40
    budget = Budget(epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE, accounting="tight")
    seam = OpenDPMechanisms(["key"], budget)
    noise = seam.gaussian(np.zeros((1, d, d)), sensitivity=1.0, noise_multiplier=2.0, label="H", symmetric=True)[0]
    np.testing.assert_array_equal(noise, noise.T)
    off = noise[np.triu_indices(d, 1)]
    assert off.var() == pytest.approx(2.0, rel=5 * np.sqrt(2 / len(off)))
    assert np.diag(noise).var() == pytest.approx(4.0, rel=5 * np.sqrt(2 / d))


def test_a_run_that_diverged_stays_so(mechanisms):
    assert np.isnan(
        mechanisms.gaussian(np.array([[np.inf, 1.0]]), sensitivity=1.0, noise_multiplier=1.0, label="g")
    ).all()


def test_what_takes_noise_past_it_is_refused(mechanisms):
    with pytest.raises(UserError, match="the tree mechanism takes noise"):
        mechanisms.tree(8, sensitivity=1.0, rho=1.0, label="t").release(np.zeros((1, 3)))
    noise = mechanisms.correlated(8, separation=2, bands=2, sensitivity=1.0, rho=1.0, label="c")
    with pytest.raises(UserError, match="correlated noise takes noise"):
        noise.release(np.zeros((1, 3)))
    with pytest.raises(UserError, match="objective perturbation takes noise"):
        mechanisms.linear_term(3, sensitivity=1.0, noise_multiplier=1.0, jacobian=1.0, delta=1e-7, label="b")


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("dp-gd", {"T": 3}),
        ("dp-newton-hess-clip", {"T": 2}),
        ("dp-gcd", {"passes": 1}),
        ("dp-sgd", {"T": 3}),
        ("2opt", {}),
        ("dp-sgd-1", {"passes": 1}),
        ("aop", {}),
    ],
)
def test_a_fit_by_it_is_a_release(algorithm, more, mechanisms):
    generator = np.random.default_rng(0)
    X = generator.uniform(-0.5, 0.5, (300, 3))
    y = np.where(X @ [3.0, -2.0, 1.0] > 0, 1.0, -1.0)
    call = {"algorithm": algorithm, "epsilon": 5.0, "release_noise": "opendp", **more}
    if algorithm in ("dp-sgd-1", "aop"):
        with pytest.raises(UserError, match="takes noise that is not made for the value"):
            dpbench.fit(X, y, **call)
        return
    fit = dpbench.fit(X, y, **call)
    assert fit.released.noise == "opendp"
    assert fit.released.epsilon_planned <= 5.0
    assert fit.guarantee.startswith("(ε = 5")


def test_a_seed_does_not_go_with_it_and_a_missing_library_is_one_line(monkeypatch):
    X, y = np.eye(4) / 2, np.array([1.0, -1.0, 1.0, -1.0])
    with pytest.raises(UserError, match="seed: release_noise='opendp' draws from the system's entropy alone"):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, T=1, release_noise="opendp", seed=1)
    with pytest.raises(UserError, match='release_noise must be "numpy" or "opendp"'):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, T=1, release_noise="dice")
    from dpbench.privacy import opendp

    opendp.library.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(UserError, match=r"needs opendp; run: pip install 'opendp>=0\.13,<1'"):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, T=1, release_noise="opendp")
