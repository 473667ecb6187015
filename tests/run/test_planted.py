"""Runs that are wrong on purpose: the factor on their noise, its key, and who refuses it."""

import itertools

import numpy as np
import pytest

from dpbench import experiments
from dpbench.errors import PrivacyError
from dpbench.privacy.budget import Budget
from dpbench.privacy.exact_release import ExactMechanisms
from dpbench.privacy.ledger import Relation
from dpbench.run.execute import execute
from dpbench.run.job import make_job
from dpbench.study.grid import GridEntry
from dpbench.study.plan import plan

JOB = {"problem": "log1", "algorithm": "dp-gcd", "epsilon": 1.0, "seed": 0, "settings": {"passes": 2}}
# Of each paper's methods: settings and a problem on which a run takes moments.
SHORT = {
    "second_order": ("synthetic", {"T": 2}),
    "accelerated": ("accelerated", {"T": 5}),
    "greedy_coordinate": ("log1", {"passes": 0.1}),
    "zeroth_order": ("phase-5", {"T": 64}),
    "nonconvex": ("synthetic", {"cap": 5, "alpha": 0.06}),
}


def planted(value, **changed):
    (row,), _ = execute([make_job(**JOB | {"planted": value} | changed)])
    return row


def test_the_factor_is_in_the_key_unless_it_is_one():
    right = make_job(**JOB)
    assert make_job(**JOB, planted=1) == make_job(**JOB, planted=1.0) == right
    jobs = [right, *(make_job(**JOB, planted=value) for value in (0, 0.5, 2))]
    assert len({one.key for one in jobs}) == len({one.group for one in jobs}) == 4
    assert right.private
    assert not any(one.private for one in jobs[1:])


def test_a_planted_row_is_not_private_and_states_no_epsilon():
    right, wrong = planted(1), planted(0.5)
    assert right.private
    assert right.planted is None
    assert right.epsilon_planned
    assert wrong.planted == 0.5
    assert not wrong.private
    assert "0.5 times" in wrong.error
    assert (wrong.epsilon_planned, wrong.epsilon_realised, wrong.epsilon_accounted) == (None, None, None)


def test_twice_the_noise_is_twice_as_far_from_none():
    at = [planted(value, algorithm="dp-cd", settings={"passes": 0.02, "step": 1e-3}).objective for value in (0, 1, 4)]
    assert abs(at[2] - at[0]) > abs(at[1] - at[0]) > 0


def methods():
    for paper in SHORT:
        blocks = [block for block in experiments.get(paper).blocks("full") if not block.waits]
        names = dict.fromkeys(itertools.chain(*(block.algorithms for block in blocks)))
        yield from ((paper, name) for name in names if not name.startswith("probe"))


@pytest.mark.thorough_for("zeroth_order-o2nc*", "greedy_coordinate-dp-sgd-1*")  # seconds each, and of one kind
@pytest.mark.parametrize(("paper", "name"), list(methods()))
def test_every_method_of_the_papers_draws_by_the_factor(paper, name):
    problem, settings = SHORT[paper]
    if paper == "second_order" and name == "aop":
        settings = {}
    how = {"problem": problem, "algorithm": name, "settings": settings}
    objectives = []
    for value in (0, 1, 2):
        row = planted(value, **how)
        assert row.status in ("done", "diverged"), row.error
        objectives.append(row.objective)
    assert len(set(objectives)) == 3, objectives


def test_what_releases_to_the_world_refuses_the_factor():
    budget = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")
    with pytest.raises(PrivacyError, match="planted: ExactReleases"):
        ExactMechanisms(["key"], budget, planted=0.5)


def test_a_grid_plants_its_blocks_and_tunes_nothing_on_them():
    shared = {"problems": ["log1"], "algorithms": ["dp-cd"], "epsilon": [1.0], "seeds": 3}
    block = GridEntry(**shared, settings={"step": [0.1, 1]}, planted=(0.5, 2))
    assert len(plan([block], None).keys) == 12
    best = GridEntry(**shared, settings={"step": "best"})
    assert not block.tunes(best)
    assert GridEntry(**shared, settings={"step": [0.1, 1]}).tunes(best)
    with pytest.raises(ValueError, match="are not timed"):
        GridEntry(**shared, settings={"step": "best"}, planted=(2,), timed=1)


def test_noise_of_a_matrix_and_of_blocks_scales():
    from dpbench.privacy.mechanisms import Mechanisms

    budget = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")
    drawn = []
    for value in (1.0, 2.0):
        made = Mechanisms(["key"], budget, planted=value)
        drawn.append(made.gaussian(np.zeros((1, 3)), sensitivity=1.0, noise_multiplier=1.0, label="x"))
    np.testing.assert_array_equal(2 * drawn[0], drawn[1])
