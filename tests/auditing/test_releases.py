"""Every release alone: sound as it is; caught with its noise halved, or on a sample other than what was accounted."""

import pytest

from tests.auditing import releases

RUNS = 8000

LITTLE_POWER = ("sparse vector",)  # its worst case is rare, and needs more queries


@pytest.mark.thorough
@pytest.mark.parametrize("alone", releases.MECHANISMS, ids=lambda alone: alone.name)
def test_a_release_is_sound_and_noticed_where_it_is_weakened(alone):
    row = releases.judged(alone, RUNS)
    assert row.correct.passed
    assert not row.defect
    assert row.moved == pytest.approx(1.0)
    assert (row.mistaken is not None) == alone.sampled
    if alone.name not in LITTLE_POWER:  # what passes does not pass for lack of power
        assert row.sound
        assert row.correct.bound > (0.25 if row.unit == "ε" else 0.6) * row.correct.claim


@pytest.mark.slow
def test_every_release_is_sound_and_every_weakened_one_is_noticed_with_the_runs_of_the_table():
    assert all(row.sound for row in releases.table(within=()))


def near_the_claim(names):
    rows = releases.table(mechanisms=False, within=names)
    for row in rows:
        assert row.sound, row
        assert row.correct.bound >= 0.8 * row.correct.claim, row
    return [row.release for row in rows]


@pytest.mark.thorough  # that half of its noise is noticed: tests.auditing.test_runs
def test_a_gradient_is_told_apart_nearly_as_well_as_claimed():
    assert near_the_claim(["dp-gd"]) == ["gradient of dp-gd"]


@pytest.mark.slow
def test_every_kind_of_gaussian_release_is_told_apart_nearly_as_well_as_claimed():
    assert len(near_the_claim(releases.WITHIN)) >= 17
