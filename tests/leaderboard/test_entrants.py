"""Who enters, and at which candidates."""

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.leaderboard import entrants
from dpbench.privacy.ledger import Relation
from dpbench.study.grid import BEST, GridEntry
from dpbench.study.plan import plan


def test_every_private_method_enters_once_and_no_other():
    names = entrants.entrants()
    behind = {algorithms.resolve(name)[0].name for name in names}
    private = {n for n in algorithms.names() if algorithms.resolve(n)[0].private}
    assert behind == {algorithms.resolve(n)[0].name for n in private}
    assert "dp-newton" not in names  # every variant of it has an alias
    assert {"dp-newton-hess-clip", "dp-gd", "o2nc-tree"} <= set(names)
    assert not {"dp-gd-oracle", "damped-newton", "o2nc"} & set(names)


def test_tuning_names_methods_and_settings_that_exist():
    for profile in ("full", "quick"):
        for name in entrants.entrants():
            method, fixed = algorithms.resolve(name)
            grid = entrants.candidates(name, profile)
            assert set(grid) <= set(method.Settings.__struct_fields__) - set(fixed), name
            assert len(grid) <= 2
            assert np.prod([len(values) for values in grid.values()]) <= (12 if profile == "full" else 4)
        known = {*algorithms.names(), "default"}
        assert set(entrants._tuning()[profile]) <= known
    assert set(entrants.excluded()) <= set(algorithms.names())


@pytest.mark.parametrize(
    ("problem", "name", "why"),
    [
        ("synthetic", "dp-gd", ""),
        ("synthetic", "dp-nag", "strong convexity"),
        ("log1-unit", "dp-nag", ""),
        ("log1-unit", "dp-newton-hess-clip", "regulariser l2"),
        ("square-unit", "dp-gd", "loss squared is not covered"),
        ("synthetic", "dp-gd-oracle", "not private"),
        ("synthetic", "dp-gcd-gs-q", "l1 alone"),
    ],
)
def test_who_fits_is_decided_by_what_the_method_declares(problem, name, why):
    found = entrants.reason(problem, name)
    assert (why in found) if why else found == ""


def test_blocks_have_one_relation_and_admissible_candidates_only():
    block = GridEntry(artefacts=[], problems=["log1-unit"], algorithms=["every"], epsilon=[1.0], seeds=2)
    blocks = entrants.expand(block, "full")
    assert {b.relation for b in blocks} == {"replace-one"}
    assert {b.delta for b in blocks} == {"n^-2", 0.0}
    jobs = plan(blocks, None).jobs
    assert {job.neighbours for job in jobs} == {Relation.REPLACE_ONE}
    # a thousand rows: o2nc's M = 2,000 is not one of the candidates
    assert all("M" not in b.settings for b in blocks if b.algorithms == ["o2nc-tree"])
    timed = GridEntry(artefacts=[], problems=["log1-unit"], algorithms=["dp-gd"], epsilon=[1.0], seeds=1, timed=1)
    assert entrants.expand(timed, "full")[0].settings == {"T": BEST}
