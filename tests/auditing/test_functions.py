"""Other people's callables: what is private passes, what is not fails, by what is returned alone."""

import dataclasses
import itertools
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dpbench.algorithms.base import AuditCase
from dpbench.auditing import functions
from dpbench.auditing.claims import BEST, PureClaim, least_runs, reach
from dpbench.auditing.functions import AuditTarget, Pair, audit_callable, pairs
from dpbench.auditing.runs import LEVEL
from dpbench.errors import PrivacyError, UserError
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


def test_pairs_are_of_rows_at_the_corners_of_what_is_declared():
    """Rows of [0, 1] x [0, 3] of norm 2 at most: the corners are drawn in, and no pair has one row twice."""
    target = AuditTarget(mean(1.0), low=0.0, high=[1.0, 3.0], row_norm=2.0, d=2, sizes=(3,), labels=(-1.0, 1.0, 7.0))
    found = {pair.words: pair for pair in pairs(target)}
    corners = {"low": [0, 0], "high": np.array([1, 3]) * 2 / 10**0.5, "turns": [0, 2], "middle": [0, 0]}
    at = {f"x {name}, y {y}": (x, y) for name, x in corners.items() for y in (-1, 1)}
    apart = [(one, other) for one, other in itertools.combinations(at, 2)
             if list(at[one][0]) != list(at[other][0]) or at[one][1] != at[other][1]]  # fmt: skip
    whole = {f"3 rows at x {where}, of which one at {one} or at {other}": (where, at[one], at[other])
             for where in corners for one, other in apart}  # fmt: skip
    assert found.keys() == whole.keys() | {f"3 rows at x {name}, with and without the label 7" for name in corners}
    for words, (where, one, other) in whole.items():
        for (X, y), (x, label) in zip(found[words][:2], (one, other), strict=True):
            np.testing.assert_allclose(X, [corners[where], corners[where], x], err_msg=words)
            assert y.tolist() == [-1, 1, label]
    (X, y), (same, instead) = found["3 rows at x high, with and without the label 7"][:2]
    assert (same == X).all()
    assert X.shape == (3, 2)
    assert (y.tolist(), instead.tolist()) == ([-1, 1, 7], [-1, 1, -1])
    removed = next(iter(pairs(dataclasses.replace(target, relation=Relation.ADD_REMOVE))))
    assert [[*map(len, world)] for world in removed[:2]] == [[3, 3], [2, 2]]


def test_as_many_runs_as_the_claim_needs_are_enough():
    enough, pair = least_runs(PureClaim(1.0), LEVEL, BEST), next(pairs(AuditTarget(mean(1.0))))
    target = AuditTarget(mean(1.0), pairs=(pair,))
    assert [audit_callable(target, 1.0, runs=runs).least for runs in (enough, enough - 1)] == [0, enough]


def test_a_released_constant_claims_its_delta_too():
    """At (0.1, 0.5) half of the runs may show the row; at (0.1, 0) they may not."""

    def shows(X, y, epsilon, rng):
        return y[-1] if rng.random() < 0.4 else 0.0

    X = np.zeros((2, 1))
    pair = Pair((X, np.array([1.0, 1.0])), (X, np.array([1.0, -1.0])), "the last label")
    told = [audit_callable(AuditTarget(shows, delta=delta, pairs=(pair,)), 0.1, runs=400) for delta in (0.5, 0.0)]
    assert [done.passed for done in told] == [True, False]
    assert [(done.epsilon, done.delta) for done in told] == [(0.1, 0.5), (0.1, 0.0)]


def test_the_error_that_is_told_is_the_last(monkeypatch):
    monkeypatch.setattr(functions, "PILOTS", ())
    calls, X = itertools.count(1), np.zeros((2, 1))

    def fails(*_):
        raise ValueError(f"call {next(calls)}")

    target = AuditTarget(fails, pairs=(Pair((X, X[:, 0]), (X, X[:, 0]), "one pair"),))
    done = audit_callable(target, 1.0, runs=40)
    assert re.fullmatch(r"no call returned a number \(ValueError: call 40 \(.*\)\); nothing was audited", done.defect)
    assert (done.runs, done.pair, done.verdicts) == (0, "one pair", {})


SERVED = {  # what each size gives: (what is said of it), or the error with which it ends
    "all run": ((0.1, "8 requests"), (0.2, "9 requests"), (0.3, "10 requests")),
    "one is refused": ((0.1, "8 requests"), UserError("too few rows"), (0.3, "10 requests")),
    "all are refused": (UserError("one"), UserError("two"), UserError("three")),
    "one is no run": ((0.1, "8 requests"), PrivacyError("it returns something else"), (0.3, "10 requests")),
}


@pytest.mark.parametrize("case", SERVED)
@pytest.mark.parametrize("steps", [True, False])
def test_a_served_audit_says_of_each_size_what_came_of_it(monkeypatch, case, steps):
    method, given, asked = object.__new__(functions.ServedMethod), SERVED[case], []
    method.Settings = SimpleNamespace(__struct_fields__=("T",) if steps else ())
    monkeypatch.setattr(functions.algorithms, "resolve", lambda name: (method, {"clip": name}))
    monkeypatch.setattr(functions.process, "isolation", lambda: "in a box")
    monkeypatch.setattr(functions, "SERVED_AT", ((4, 2, 3), (5, 6, 7), (8, 9, 10)))

    def served(method, *of):
        came = given[len(asked)]
        asked.append(of)
        if isinstance(came, Exception):
            raise came
        return came

    monkeypatch.setattr(functions, "_served", served)
    done = functions.audit_served("mine", 2.0, seed=7, loss="squared")
    sizes = [f"n = {n}, d = {d}{f', T = {T}' if steps else ''}" for n, d, T in functions.SERVED_AT]
    words = [str(one) if isinstance(one, Exception) else one[1] for one in given]
    assert asked == [
        (AuditCase({"clip": "served:mine"} | ({"T": T} if steps else {}), loss="squared", n=n, d=d), 2.0, 7)
        for n, d, T in functions.SERVED_AT[: len(asked)]
    ]
    told = (done.algorithm, done.epsilon, done.delta, done.runs, done.code, done.defect, done.served)
    whole = dict(zip(sizes, words, strict=True))
    assert told == ("mine", 2.0, *{
        "all run": (0.3, 3, "in a box", "", whole), "one is refused": (0.3, 2, "in a box", "", whole),
        "all are refused": (0.0, 0, "in a box", "three", whole),
        "one is no run": (0.1, 1, "in a box", f"{sizes[1]}: it returns something else", {sizes[0]: words[0]}),
    }[case])  # fmt: skip
