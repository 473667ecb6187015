"""What lets a submission in, each decision on made-up rows."""

import math
import re
from types import SimpleNamespace

import pytest

from dpbench.algorithms import rules
from dpbench.run.job import delta_value
from dpbench.submitting import checking
from dpbench.submitting.replaying import ReceiverRuns


def row(**columns):
    given = {"problem": "synthetic", "epsilon": 1.0, "seed": 0, "status": "done", "objective": 1.0, "excess": 0.4,
             "private": True, "epsilon_planned": 1.0, "relation": rules.RELATION.value, "settings": "{}",
             "delta": delta_value(rules.DELTA, checking.tracks.size("synthetic")[0])}  # fmt: skip
    return SimpleNamespace(**given | columns)


def told(check, *rows, **more):
    """The lines of one check, of a submission with these rows."""
    return list(check(SimpleNamespace(rows=list(rows), **more), lambda line: None))


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({}, ""),
        ({"objective": 0.6, "excess": 0.0}, ""),
        ({"objective": 0.6 - 1e-9, "excess": -1e-9}, ""),  # two searches of one optimum
        ({"objective": 0.5, "excess": -0.1}, "below that of the optimum"),
        ({"excess": 0.3}, r"excess 0.3 is not F\(w\) - F\*"),
        ({"excess": math.nan}, r"is not F\(w\) - F\*"),
        ({"excess": None}, "no loss"),
        ({"excess": None, "status": "diverged"}, ""),
    ],
)
def test_a_loss_is_above_the_optimum_and_consistent(columns, found):
    lines = list(checking._below_the_optimum("p", [row(**columns)], 0.6))
    assert bool(lines) == bool(found)
    assert all(re.search(found, line) for line in lines[:1])


def test_a_loss_below_the_optimum_is_found_without_the_data():
    assert not list(checking._below_the_optimum("p", [row()], None))
    assert list(checking._below_the_optimum("p", [row(objective=0.5, excess=-0.1)], None))


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({}, ""),
        ({"epsilon_planned": 0.5}, ""),
        ({"delta": 0.0}, ""),
        ({"epsilon_planned": 1.01}, "spends ε = 1.01"),
        ({"epsilon_planned": math.nan}, "spends ε = nan"),
        ({"delta": 1e-3}, "δ = 0.001"),
        ({"delta": 1e-30}, "δ = 1e-30"),
        ({"private": False}, "private: False"),
        ({"status": "refused"}, "refused"),
    ],
)
def test_a_row_spends_what_was_asked_for(columns, found):
    lines = told(checking._guarantees, row(**columns))
    assert len(lines) == bool(found)
    assert all(found in line for line in lines)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([row(seed=i) for i in range(3)], ""),
        ([row(seed=i) for i in (0, 1, 7)], "has not all of the seeds 0 to 2, each once"),
        ([row(seed=i) for i in (0, 1, 1)], "has not all of the seeds 0 to 2, each once"),
        ([row(seed=i, settings=f'{{"T":{i}}}') for i in range(3)], "several settings"),
        ([row(seed=i, problem="another") for i in range(3)], "is no cell"),
        ([], "no rows, and no reason"),
    ],
)
def test_a_cell_has_each_seed_once_at_one_setting(monkeypatch, rows, found):
    asked = [SimpleNamespace(problems=["synthetic"], epsilon=[1.0], seeds=3)]
    monkeypatch.setattr(checking.tracks, "cells", lambda profile, grid: asked)
    lines = told(checking._cells, *rows, manifest=SimpleNamespace(profile="quick", left_out={}))
    assert bool(lines) == bool(found)
    assert not lines or found in lines[0]


@pytest.mark.parametrize(
    ("bounds", "found"), [([0.4], ""), ([0.3, 0.5], "failed"), ([], "has no test"), (None, "is empty")]
)
def test_an_audit_above_its_claim_failed(bounds, found):
    tests = [SimpleNamespace(bound=bound, claim=0.4) for bound in bounds or ()]
    one = SimpleNamespace(epsilon=1.0, passed=True, defect="", tests=tests)
    lines = told(checking._audit, audit=[] if bounds is None else [one])
    assert len(lines) == bool(found)
    assert all(found in line for line in lines)


@pytest.mark.parametrize(
    ("problems", "replay", "placed"),
    [
        ([], ReceiverRuns(done=True), True),
        ([], None, False),
        ([], ReceiverRuns(done=False), False),
        ([], ReceiverRuns(done=True, flags=["faster than it was here"]), False),
        (["a line"], ReceiverRuns(done=True), False),
    ],
)
def test_a_place_is_for_what_was_run_again(problems, replay, placed):
    assert checking.Report(SimpleNamespace(), problems, replay=replay).placed is placed
