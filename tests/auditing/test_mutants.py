"""Every mutant of the list fails the audit, or the list says why it cannot."""

import pytest

from dpbench.auditing.runs import audit
from dpbench.errors import PrivacyError
from tests.auditing import releases
from tests.auditing.mutants import MUTANTS, mutate
from tests.auditing.test_releases import RUNS

ALONE = {alone.name: alone for alone in releases.MECHANISMS}


def caught(by: str) -> str:
    """How the audit of `by` fails, "" where it passes."""
    if by.startswith("release: "):
        row = releases.judged(ALONE[by.removeprefix("release: ")], RUNS)
        return row.defect or ("" if row.correct.passed else "bound above the claim")
    try:
        inspected = audit(by, 4.0, tests=False)
        done = inspected if inspected.defect else audit(by, 4.0, near=False)
    except PrivacyError as error:
        return str(error)
    return done.defect or ("" if done.passed else "bound above the claim")


def name(mutant) -> str:
    return f"{mutant.by}-{mutant.breaks}"


SLOW = ("aop", "opt", "dp-gcd", "release: sparse vector")  # seconds each
CASES = [pytest.param(one, marks=[pytest.mark.slow] * (one.by in SLOW), id=name(one)) for one in MUTANTS]


@pytest.mark.thorough_but(
    "dp-gd-half of all noise",
    "release: Laplace-all sensitivities halved",
    "release: noisy max-the largest*",
    "release: tree-a row is counted in one node of the tree",
)
@pytest.mark.parametrize("mutant", CASES)
def test_the_audit_notices(mutant, monkeypatch):
    mutate(mutant, monkeypatch)
    assert bool(caught(mutant.by)) != bool(mutant.unseen), mutant


def test_every_mistake_of_the_list_can_be_made():
    for mutant in MUTANTS:
        with pytest.MonkeyPatch.context() as patched:
            mutate(mutant, patched)


def test_the_list_is_long_and_says_what_each_breaks():
    assert len(MUTANTS) - sum(bool(m.unseen) for m in MUTANTS) >= 40
    assert len({m[:3] for m in MUTANTS}) == len(MUTANTS)
    assert all(m.breaks and m.by for m in MUTANTS)


def test_what_releases_they_are_put_into_pass_the_audit_elsewhere():
    """In `test_releases`, which judges every one of `ALONE` by as many runs."""
    assert {m.by.removeprefix("release: ") for m in MUTANTS if m.by.startswith("release")} <= ALONE.keys()
