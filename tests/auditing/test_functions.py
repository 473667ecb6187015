"""Other people's callables: what is private passes, what is not fails, by what is returned alone."""

import re
import sys

import numpy as np
import pytest

from dpbench.auditing.claims import reach
from dpbench.auditing.functions import AuditTarget, audit_callable, pairs
from dpbench.auditing.runs import LEVEL
from dpbench.errors import UserError
from dpbench.privacy.ledger import Relation


def mean(scale):
    """The mean of n labels in [-1, 1] with Laplace noise of `scale` times its replace-one sensitivity over ε."""

    def learner(X, y, epsilon, rng):
        return y.mean() + scale * 2 / len(y) / epsilon * rng.laplace()

    return learner


@pytest.mark.thorough
def test_a_sound_one_passes_with_a_bound_near_its_claim():
    done = audit_callable(AuditTarget(mean(1.0)), 1.0, runs=16_000)
    (verdict,) = done.verdicts.values()
    assert done.passed
    assert 0.6 < verdict.bound <= 1.0
    assert "y 1" in done.pair
    assert "y -1" in done.pair


def test_half_of_the_noise_fails():
    done = audit_callable(mean(0.5), 1.0)
    assert not done.passed
    assert done.algorithm == "learner"


def test_what_is_exact_fails_at_once():
    assert audit_callable(lambda X, y, epsilon, rng: [rng.laplace(), y.mean()], 1.0).verdicts.popitem()[1].bound > 3


def test_what_never_returns_is_no_pass():
    done = audit_callable(AuditTarget(lambda X, y, epsilon, rng, seed: 0.0, sizes=(4,)), 1.0, runs=40)
    assert not done.passed
    assert re.match(r"no call returned a number \(TypeError: .*'seed'", done.defect)


def test_what_exits_or_returns_no_number_is_no_pass():
    """An exit would end the audit with its own code, 0; a forgotten return is NaN to NumPy."""
    for ends in (lambda *_: sys.exit(0), lambda *_: None, lambda *_: [np.nan, np.inf]):
        done = audit_callable(AuditTarget(ends, "ends", sizes=(4,)), 1.0, runs=40)
        assert not done.passed
        assert done.defect.startswith("no call returned a number")
    told = audit_callable(AuditTarget(lambda X, y, *_: sys.exit(0) if X[-1, 0] > 0 else 1.0, "exits", sizes=(4,)), 1.0)
    assert not told.passed


def test_what_so_many_runs_can_show_grows_with_them():
    few, some, many = (reach(runs, 0.0, LEVEL, every=2) for runs in (10, 400, 40_000))
    assert few == 0
    assert 1 < some < many


def test_what_cannot_be_called_is_one_line():
    with pytest.raises(UserError, match="numpy cannot be called"):
        audit_callable(np, 1.0)


def raises_where_a_class_is_missing(X, y, epsilon, rng):
    if len(np.unique(y)) < 2:
        raise ValueError("one class")
    return rng.laplace()


def longer_where_there_are_more_classes(X, y, epsilon, rng):
    return rng.laplace(size=len(np.unique(y)))


@pytest.mark.thorough
def test_an_exception_and_a_length_are_outputs():
    assert not audit_callable(AuditTarget(raises_where_a_class_is_missing, sizes=(1, 2)), 1.0).passed
    assert not audit_callable(AuditTarget(longer_where_there_are_more_classes, labels=(0.0, 1.0, 2.0)), 1.0).passed


def test_add_remove_neighbours_differ_in_their_number_of_rows():
    target = AuditTarget(mean(1.0), relation=Relation.ADD_REMOVE, sizes=(3,), d=2, low=0.0, high=2.0, row_norm=1.0)
    found = list(pairs(target))
    assert {(len(pair.first[1]), len(pair.second[1])) for pair in found} == {(3, 2)}
    assert max(np.linalg.norm(pair.first[0], axis=1).max() for pair in found) <= 1 + 1e-12


def test_what_too_few_runs_cannot_reach_is_said():
    done = audit_callable(mean(1.0), 8.0, runs=400)
    assert done.passed
    assert done.least > 10_000
    with pytest.raises(UserError, match="runs must be at least 40"):
        audit_callable(mean(1.0), 1.0, runs=3)
