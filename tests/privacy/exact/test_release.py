"""The seam of a release: noise of the size that the accounting asks for, on integers, and no way past it.

Correlated noise on integers: its law, and that it is what the accounting asks for.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.errors import PrivacyError
from dpbench.privacy import exact_sums
from dpbench.privacy.budget import Budget
from dpbench.privacy.correlated import coefficients, sensitivity
from dpbench.privacy.exact_release import ExactMechanisms, SeededMechanisms
from dpbench.privacy.exact_sums import CertifiedMinimiser, Coordinates, Objective, RowSensitivity, Sum
from dpbench.privacy.ledger import LogisticPerturbation, RadialPerturbation, Relation
from dpbench.privacy.mechanisms import Score


def mechanisms(key="key", relation=Relation.REPLACE_ONE, declared=Relation.ADD_REMOVE, accounting="tight", delta=1e-6):
    budget = Budget(1.0, delta, relation, accounting)
    return SeededMechanisms([key], budget, declared=declared)


def total(integers, unit=2.0**-32):
    return Sum(np.array([integers], dtype=np.int64), unit, exact_sums.weighted(2**32, 2**32, 2**32))


def near(d, unit, radius, convexity, pull, term=None, curvature=0.1):
    """A minimiser of logistic loss whose solver had `term`, none by default."""
    term = np.zeros((1, d)) if term is None else term
    return CertifiedMinimiser(
        np.zeros((1, d), dtype=np.int64), unit, radius, Objective(term, convexity, pull, curvature, True)
    )


def test_gaussian_noise_has_the_standard_deviation_of_the_accounting_and_no_less():
    d = 20_000
    found = mechanisms().gaussian(total(np.zeros(d)) / 100, sensitivity=0.01, noise_multiplier=5.0, label="g")
    std = 2 * 0.01 * 5.0  # replace-one
    assert found.shape == (1, d)
    assert found.std() / std == pytest.approx(1, abs=5 / math.sqrt(2 * d))
    assert stats.kstest(found[0] / std, "norm").pvalue > 1e-4
    line = mechanisms()
    line.gaussian(total(np.zeros(3)), sensitivity=1.0, noise_multiplier=5.0, label="g")
    drawn = line.ledger.summary()[0]
    assert float(drawn["noise"]) >= 10.0
    assert float(drawn["noise"]) == pytest.approx(10.0, rel=1e-5)
    assert drawn["release"] == "Gaussian, noise multiplier 5"


def test_laplace_noise_too():
    d = 20_000
    found = mechanisms(accounting="pure", delta=0.0).laplace(
        total(np.zeros(d)), sensitivity=1.0, epsilon=0.5, label="l"
    )
    assert stats.kstest(found[0] / 4.0, "laplace").pvalue > 1e-4  # twice the sensitivity, over ε


@pytest.mark.parametrize("sharp", [False, True])
def test_a_symmetric_matrix_stays_one_with_less_noise_off_its_diagonal_where_that_is_enough(sharp):
    d = 60
    value = Sum(np.zeros((1, d, d), dtype=np.int64), 2.0**-32, exact_sums.outer(2**32, 1))
    seam = mechanisms(accounting="tight" if sharp else "bs16")
    found = seam.gaussian(
        value, sensitivity=1.0, noise_multiplier=3.0, label="H", symmetric=True, replaced=math.sqrt(2)
    )[0]
    np.testing.assert_array_equal(found, found.T)
    std = 3 * math.sqrt(2)
    off = found[np.triu_indices(d, 1)]
    assert np.diag(found).std() / std == pytest.approx(1, abs=5 / math.sqrt(2 * d))
    assert off.std() / std == pytest.approx(math.sqrt(0.5) if sharp else 1.0, rel=5 / math.sqrt(2 * len(off)))


def test_the_value_is_kept_to_the_grid_and_a_public_offset_is_added_behind_the_noise():
    given = np.arange(4) * 2**40
    budget = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")
    seam = ExactMechanisms(["key"], budget, declared=Relation.ADD_REMOVE, noiseless=True)
    found = seam.gaussian(total(given) / 7 + np.full((1, 4), 1e9), sensitivity=1 / 7, noise_multiplier=1.0, label="g")
    np.testing.assert_allclose(found[0], given * 2.0**-32 / 7 + 1e9, rtol=0, atol=2e-6)


def test_a_sensitivity_that_is_too_small_is_an_error_not_a_release():
    with pytest.raises(PrivacyError, match=r"g: sensitivity 1.98 is declared, it moves by up to 2"):
        mechanisms().gaussian(total([0, 0]), sensitivity=0.99, noise_multiplier=1.0, label="g")
    with pytest.raises(PrivacyError, match="is declared"):
        mechanisms().gaussian(total([0, 0]), sensitivity=1.0, replaced=1.9, noise_multiplier=1.0, label="g")


def test_what_is_no_sum_is_refused_and_so_is_noise_apart_from_a_value():
    seam = mechanisms()
    value = total([1, 2])
    correlated = seam.correlated(8, separation=2, bands=2, sensitivity=1.0, rho=1.0, label="c")
    for release in (
        lambda: seam.gaussian(np.zeros((1, 2)), sensitivity=1.0, noise_multiplier=1.0, label="g"),
        lambda: seam.noisy_argmax(np.zeros((1, 2)), sensitivity=1.0, epsilon=1.0, label="a"),
        lambda: seam.exponential(np.zeros((1, 2)), sensitivity=1.0, epsilon=1.0, label="a"),
        lambda: seam.above_threshold(sensitivity=1.0, epsilon=1.0, label="t"),
        lambda: seam.tree(4, sensitivity=1.0, rho=1.0, label="t").release(value),
        lambda: correlated.release(np.zeros((1, 2))),
        lambda: seam.last_iterate(2, 3, sensitivity=1.0, contraction=0.5, rho=1.0, label="l")(value),
    ):
        with pytest.raises(PrivacyError):
            release()
    with pytest.raises(PrivacyError, match="no bound on the ℓ₁"):
        seam.laplace(Sum(value.integers, 1.0, RowSensitivity(1, 4)), sensitivity=1.0, epsilon=1.0, label="l")
    with pytest.raises(PrivacyError, match="one replicate"):
        ExactMechanisms(["a", "b"], seam.budget)


def test_what_is_near_an_ideal_release_gets_noise_for_both_radii():
    d = 20_000
    found = mechanisms(declared=Relation.REPLACE_ONE).gaussian(
        near(d, 2.0**-30, 0.001, 0.1, 0.0),
        sensitivity=0.001,
        noise_multiplier=4.0,
        label="output",
    )
    assert found.std() == pytest.approx(4 * 0.002, rel=0.05)


def test_a_neighbour_cannot_be_told_by_the_bits_of_what_is_released():
    """At sums a whole sensitivity apart, every residue of the released integers is as likely as another."""
    for value in (0, 2 * 2**32):
        seam = mechanisms(str(value))
        found = seam.gaussian(total(np.full(40_000, value)), sensitivity=1.0, noise_multiplier=1.0, label="g")[0]
        step = np.gcd.reduce((found * 2.0**40).astype(np.int64)) * 2.0**-40
        residues = np.bincount((found / step).astype(np.int64) % 16, minlength=16)
        assert ((residues - 2500) ** 2 / 2500).sum() < stats.chi2.isf(1e-6, 15)


def test_a_linear_term_is_a_rounded_gaussian_whose_rounding_the_minimisers_noise_covers():
    d = 20_000
    seam = mechanisms(declared=Relation.REPLACE_ONE)
    event = LogisticPerturbation(2.0, 0.1)
    term = seam.linear_term(d, sensitivity=0.5, event=event, label="objective")
    assert stats.kstest(term[0], "norm").pvalue > 1e-4
    point = near(d, 2.0**-40, 1e-9, 1e-3, 0.0, term)
    found = seam.gaussian(point, sensitivity=1e-9, noise_multiplier=1.0, label="output")
    rounding = 2.0**-33 * math.sqrt(d) / 1e-3  # half a step of 2**-33 in each entry, on both sides
    assert found.std() == pytest.approx(2 * 1e-9 + rounding, rel=0.05)


def test_a_radial_term_has_its_law_and_what_it_is_off_by_is_covered_too():
    seam = mechanisms(declared=Relation.REPLACE_ONE, accounting="pure", delta=0.0)
    event = RadialPerturbation(2.0, 0.1, Relation.REPLACE_ONE)
    d, scale = 16, 0.5 * 2.0
    found = np.array([seam.linear_term(d, sensitivity=0.5, event=event, label="objective")[0] for _ in range(200)])
    lengths = np.linalg.norm(found, axis=1) / scale
    assert stats.kstest(lengths, "gamma", (d,)).pvalue > 1e-4
    assert np.abs((found.T / lengths / scale).mean(axis=1)).max() < 5 / math.sqrt(d * 200)
    one = mechanisms(declared=Relation.REPLACE_ONE, accounting="pure", delta=0.0)
    term = one.linear_term(d, sensitivity=0.5, event=event, label="objective")
    one.radial(near(d, 2.0**-50, 1e-12, 1e-3, 0.25, term), sensitivity=2e-12, epsilon=0.5, label="output")
    drawn = float(one.ledger.summary()[-1]["noise"])  # what rows pull is charged for by the term
    assert drawn == pytest.approx((2 * 1e-12 + 2 * scale * d * 2.0**-34 / 1e-3) / 0.5, rel=1e-3)


def test_minimisers_without_a_term_are_as_far_apart_as_a_row_can_pull_them():
    """Output perturbation: 2·pull/m under replace-one, beside the distance from either exact minimiser."""
    for relation, rows in ((Relation.REPLACE_ONE, 2), (Relation.ADD_REMOVE, 1)):
        seam = mechanisms(relation=relation, declared=relation)
        point = near(4, 2.0**-40, 1e-6, 0.1, 0.02)
        with pytest.raises(PrivacyError, match="is declared"):
            seam.gaussian(point, sensitivity=0.99 * rows * 0.2, noise_multiplier=1.0, label="output")
        seam.gaussian(point, sensitivity=rows * 0.2, noise_multiplier=3.0, label="output")
        drawn = float(seam.ledger.summary()[0]["noise"])
        assert drawn == pytest.approx(3 * (rows * 0.2 + 2e-6), rel=1e-4)


def test_what_is_released_stays_within_its_integers_however_far_the_noise_goes(monkeypatch):
    """T + k and T' + k are cut at one place, so that nobody sees where noise was cut."""
    monkeypatch.setattr("dpbench.privacy.exact_sampling.normal", lambda *_: np.array([2**62, -(2**62), 0]))
    first, second = (
        mechanisms().gaussian(total([s, s, s]), sensitivity=1.0, noise_multiplier=1.0, label="g")[0]
        for s in (2**32, -(2**32))
    )
    np.testing.assert_array_equal(first[:2], second[:2])
    assert first[2] == 1.0


# Choices

ROWS, MOST = 100, 2**32


def scores(found):
    """Means of 100 rows, of which one moves an entry by 1/100 or less."""
    integers = np.rint(np.array([found]) * ROWS * MOST).astype(np.int64)
    return Coordinates(integers, 2.0**-32, np.full(len(found), MOST), ROWS) / ROWS


def chosen(found, kind, times=4000, key="choice", epsilon=1.0, **more):
    one = mechanisms(key, declared=Relation.REPLACE_ONE)
    call = {"sensitivity": 2 / ROWS, "epsilon": epsilon, "label": "s", **more}
    return np.bincount([int(getattr(one, kind)(scores(found), **call)[0]) for _ in range(times)], minlength=len(found))


def test_noisy_max_has_the_law_of_its_scale_also_by_sizes():
    lead, scale = 0.06, 2 * 2 / ROWS  # of Laplace noise on either
    wins = int(chosen([0.0, lead], "noisy_argmax")[0])
    expected = 0.5 * math.exp(-lead / scale) * (1 + lead / (2 * scale))
    assert stats.binomtest(wins, 4000, expected).pvalue > 1e-4
    half = 0.5 * math.exp(-2 * lead / scale) * (1 + lead / scale)
    assert stats.binomtest(wins, 4000, half).pvalue < 1e-4
    found = chosen([0.1, -0.5], "noisy_argmax", magnitude=True, epsilon=20.0, times=300)
    assert found[1] > 290


def test_the_exponential_mechanism_has_its_probabilities():
    found = chosen([0.0, 0.02, -0.05], "exponential")
    p = np.exp(np.array([0.0, 0.02, -0.05]) * ROWS / 4)
    assert stats.chisquare(found, 4000 * p / p.sum()).pvalue > 1e-4


def test_choices_need_integers_and_the_sensitivity_that_rows_have():
    one = mechanisms(declared=Relation.REPLACE_ONE)
    for choose in (one.noisy_argmax, one.exponential):
        with pytest.raises(PrivacyError, match=r"s: sensitivity 0\.0198 is declared, a score moves by up to 0\.02"):
            choose(scores([0.0, 1.0]), sensitivity=0.99 * 2 / ROWS, epsilon=1.0, label="s")
        steep = Score(lambda values: 3 * values, lambda sizes: 0.0)
        with pytest.raises(PrivacyError, match="a score moves by up to"):
            choose(scores([0.0, 1.0]), sensitivity=2 / ROWS, epsilon=1.0, label="s", score=steep)
    with pytest.raises(PrivacyError, match="may not be passed to numpy"):
        np.argmax(scores([0.0, 1.0]))


def test_a_score_that_float64_may_take_further_gets_the_noise_for_it():
    def noise(off):
        one = mechanisms(declared=Relation.REPLACE_ONE)
        score = Score(lambda values: values, lambda sizes: off)
        one.noisy_argmax(scores([0.0, 1.0]), sensitivity=2 / ROWS, epsilon=1.0, label="s", score=score)
        return float(one.ledger.summary()[-1]["noise"])

    assert noise(0.0) == pytest.approx(4 / ROWS, rel=1e-4)
    assert noise(1 / ROWS) == pytest.approx(8 / ROWS, rel=1e-4)


def matrix(steps, bands):
    C = np.zeros((steps, steps))
    for j, c in enumerate(np.floor(coefficients(bands) * 1024) / 1024):
        C += c * np.eye(steps, k=-j)
    return C


def correlated_total(value, d, unit=2.0**-32):
    return Sum(np.full((1, d), round(value / unit), dtype=np.int64), unit, exact_sums.weighted(2**32, 2**32))


def test_noise_times_the_cut_matrix_is_independent_and_no_less_than_rho_asks_for():
    d, steps, rho = 20_000, 6, 0.08
    seam = mechanisms(declared=Relation.REPLACE_ONE)
    noise = seam.correlated(steps, separation=3, bands=3, sensitivity=2.0, rho=rho, label="sums")
    released = np.stack([noise.release(correlated_total(float(t), d) + 7.0)[0] for t in range(steps)])
    Z = matrix(steps, 3) @ (released - 7.0 - np.arange(steps)[:, None])
    std = 2.0 * sensitivity(steps, 3, 3) / np.sqrt(2 * rho)
    np.testing.assert_allclose(np.cov(Z) / std**2, np.eye(steps), atol=0.04)
    for row in Z:
        assert stats.kstest(row / std, "norm").pvalue > 1e-4
    (line,) = seam.ledger.summary()
    assert float(line["noise"]) >= std
    assert float(line["noise"]) == pytest.approx(std, rel=1e-4)
    with pytest.raises(PrivacyError, match="paid for 6 rounds"):
        noise.release(correlated_total(0.0, d))


def test_without_noise_it_gives_the_sums_and_a_small_sensitivity_is_refused():
    from dpbench.privacy.exact_release import ExactReleases

    seam = mechanisms(declared=Relation.REPLACE_ONE)
    assert isinstance(seam.releases, ExactReleases)
    seam.releases.noiseless = True
    noise = seam.correlated(5, separation=4, bands=4, sensitivity=2.0, rho=0.1, label="sums")
    for t in range(5):
        np.testing.assert_allclose(noise.release(correlated_total(float(t), 3)), t, atol=1e-4)
    small = seam.correlated(5, separation=4, bands=4, sensitivity=1.9, rho=0.1, label="sums")
    with pytest.raises(PrivacyError, match="it moves by up to 2"):
        small.release(correlated_total(0.0, 3))
    other = seam.correlated(5, separation=4, bands=4, sensitivity=2.0, rho=0.1, label="sums")
    other.release(correlated_total(0.0, 3))
    with pytest.raises(PrivacyError, match="one unit"):
        other.release(correlated_total(0.0, 3, 3 * 2.0**-34))
    with pytest.raises(PrivacyError, match="float64"):
        other.release(np.zeros((1, 3)))
