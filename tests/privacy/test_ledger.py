"""The ledger counts equal releases, per replicate, and hands equal replicates one object."""

import json

import pytest

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.ledger import (
    ZCDP,
    BestOfRuns,
    BoundedRange,
    CountedRelease,
    DrawAfterTest,
    Gaussian,
    Laplace,
    LastIterate,
    Ledger,
    LogisticPerturbation,
    ObjectivePerturbation,
    Poisson,
    PureDP,
    RadialPerturbation,
    Relation,
    Sketch,
    WithoutReplacement,
    plain,
    release_of,
    scaled,
)


def test_equal_releases_are_counted_consecutive_or_not():
    ledger = Ledger(2)
    for _ in range(30_000):
        ledger.record(Gaussian(2.0), "gradient")
        ledger.record(Gaussian(3.0), "direction")
    assert ledger.of(0) == (
        CountedRelease(Gaussian(3.0), 30_000, "direction"),
        CountedRelease(Gaussian(2.0), 30_000, "gradient"),
    )
    assert len(ledger._released.shared) == 2


def test_members_pay_for_themselves():
    ledger = Ledger(3)
    ledger.record(Gaussian(2.0), "gradient")
    ledger.record(PureDP(0.1), "line search", members=[0, 2])
    ledger.record(Gaussian(2.0), "gradient", members=[1])
    assert ledger.of(0) == (CountedRelease(Gaussian(2.0), 1, "gradient"), CountedRelease(PureDP(0.1), 1, "line search"))
    assert ledger.of(1) == (CountedRelease(Gaussian(2.0), 2, "gradient"),)
    assert ledger.of(2) is ledger.of(0)
    assert ledger.of(1) is not ledger.of(0)


def test_the_order_of_releases_does_not_matter():
    ledger = Ledger(2)
    for release, member in ((Laplace(2.0), 0), (ZCDP(1.0), 0), (ZCDP(1.0), 1), (Laplace(2.0), 1)):
        ledger.record(release, "x", members=[member])
    assert ledger.of(0) is ledger.of(1)
    assert hash(ledger.of(0)) == hash(ledger.of(1))


def test_an_empty_ledger_is_an_empty_composition():
    assert Ledger(1).of(0) == ()


def test_summary_is_a_table():
    ledger = Ledger(1)
    ledger.record(WithoutReplacement(100, 10, Laplace(2.0)), "gradient")
    assert ledger.summary() == [
        {
            "label": "gradient",
            "release": "Laplace, noise multiplier 2, on 10 of 100 rows without replacement",
            "count": 1,
            "planned": 1,
        }
    ]


@pytest.mark.parametrize(
    "release",
    [Gaussian(2.0), Laplace(2.0), PureDP(0.5), ZCDP(0.5), Poisson(0.1, Gaussian(1.0))],
)
def test_every_release_has_words_and_is_a_key(release):
    assert str(release) != repr(release)
    assert {release: 1}[release] == 1


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (Gaussian(2.0), Gaussian(6.0)),
        (LastIterate(2.0, 5, 0.5), LastIterate(6.0, 5, 0.5)),
        (PureDP(0.5), PureDP(0.5 / 3)),
        (BoundedRange(0.5), BoundedRange(0.5 / 3)),
        (ZCDP(0.9), ZCDP(0.1)),  # of ρ = Δ²/(2σ²)
        (DrawAfterTest(0.3, 0.6, 1e-6, 1e-7), DrawAfterTest(0.3 / 3, 0.6 / 3, 1e-6, 1e-7)),
        (Sketch(40, 0.3, 1e-8), Sketch(40, 0.3 / 3, 1e-8)),
        (WithoutReplacement(9, 2, Laplace(2.0)), WithoutReplacement(9, 2, Laplace(6.0))),
        (BestOfRuns(((Gaussian(1.0), 2),), "poisson", 6.0), BestOfRuns(((Gaussian(3.0), 2),), "poisson", 6.0)),
    ],
)
def test_three_times_the_noise(release, expected):
    assert scaled(release, 3.0) == expected


def test_a_release_whose_noise_is_no_one_number_is_not_scaled():
    with pytest.raises(PrivacyError, match="not one number"):
        scaled(ObjectivePerturbation(5.0, 0.1, 1e-7), 2.0)


@pytest.mark.parametrize(
    "release",
    [
        Gaussian(1.5),
        RadialPerturbation(2.0, 0.1, Relation.REPLACE_ONE, logistic=False),
        WithoutReplacement(10, 2, Laplace(3.0)),
        BestOfRuns(((Gaussian(1.0), 2), (Laplace(2.0), 1)), "poisson", 6.0),
        DrawAfterTest(0.2, 0.3, 1e-16, 1e-16),  # of many rows
        ObjectivePerturbation(2.0, 0.1, 1e-16),
    ],
)
def test_a_release_goes_to_a_file_and_back(release):
    assert release_of(json.loads(json.dumps(plain(release)))) == release


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "Gaussian"},
        {"kind": "os.system", "x": 1},
        {"kind": "Gaussian", "noise_multiplier": -1},
        {"kind": "Gaussian", "noise_multiplier": True},
        {"kind": "WithoutReplacement", "n": 1.5, "m": 1, "release": {"kind": "Gaussian", "noise_multiplier": 1}},
        {"kind": "Poisson", "rate": "1", "release": {"kind": "Gaussian", "noise_multiplier": 1}},
        {"kind": "Poisson", "rate": 0.1, "release": {"kind": "Laplace", "noise_multiplier": 1}},  # not accounted
        {"kind": "Poisson", "rate": 0.1, "release": "Gaussian"},
        {"kind": "BestOfRuns", "base": [[{"kind": "PureDP", "epsilon": 1}, 0]], "law": "poisson", "mean": 2},
        {"kind": "BestOfRuns", "base": [[{"kind": "PureDP", "epsilon": 1}, 1]], "law": "uniform", "mean": 2},
        {"kind": "LogisticPerturbation", "noise_multiplier": 1, "curvature": 1, "relation": "none"},
    ],
)
def test_what_is_no_release_is_refused(wrong):
    with pytest.raises(UserError):
        release_of(wrong)


def test_hidden_steps_are_one_or_more_and_contract():
    assert LastIterate(2.0, 1, 0.0).steps == 1
    for steps, contraction in ((0, 0.5), (1, 1.0), (1, -0.1)):
        with pytest.raises(PrivacyError, match=r"steps >= 1 and a contraction in \[0, 1\)"):
            LastIterate(2.0, steps, contraction)


def test_a_plan_of_none_is_a_plan():
    book = Ledger(1)
    book.plan(Gaussian(1.0), "a", 0)
    assert book.unplanned(0) == []
    book.record(Gaussian(1.0), "a", count=3)
    assert book.unplanned(0) == ["a"]


@pytest.mark.parametrize("field", ["relation", "curvature", "noise_multiplier"])
def test_no_field_of_a_release_in_a_file_is_taken_at_a_default(field):
    data = plain(LogisticPerturbation(1.0, 0.1))
    assert release_of(data) == LogisticPerturbation(1.0, 0.1)
    del data[field]
    with pytest.raises(UserError, match="not a release"):
        release_of(data)
