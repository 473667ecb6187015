"""Sweeps: many runs as one job with one row, tuned on like the runs themselves."""

import itertools
import json

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.run.execute import execute
from dpbench.run.job import make_job
from dpbench.run.runner import run, work
from dpbench.run.store import Store
from dpbench.study.grid import GridEntry
from dpbench.study.plan import plan
from dpbench.study.tuning import Tuner, columns_of, summarise

RUN = {"problem": "log1", "algorithm": "dp-cd", "epsilon": 1.0, "seed": 0}
AXES = {"step": [0.1, 1.0, 2.0], "clip": [0.5, 1.0]}
BLOCK = {"artefacts": ["t"], "problems": ["log1"], "algorithms": ["dp-cd"], "epsilon": [1.0], "seeds": 2}


def sweep(**changed):
    return make_job(**RUN | {"settings": {"passes": 0.1}, "sweep": AXES} | changed)


def test_members_are_the_jobs_one_would_make():
    members = sweep().members()
    assert sweep().run_count == len(members) == 6
    singles = [
        make_job(**RUN, settings={"passes": 0.1, "clip": clip, "step": step})
        for clip, step in itertools.product(AXES["clip"], AXES["step"])
    ]
    assert members == singles
    assert [one.key for one in members] == [one.key for one in singles]
    assert work(sweep()) == pytest.approx(6 * work(members[0]))


def test_what_is_swept_decides_the_key_and_its_order_does_not():
    keys = {sweep().key, sweep(sweep={"step": [0.1, 1.0]}).key, sweep(seed=1).key, sweep().members()[0].key}
    assert len(keys) == 4
    assert sweep(sweep=dict(reversed(AXES.items()))) == sweep()
    assert sweep().group != sweep(seed=1).group


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sweep": {"passes": [1, 2]}}, "passes cannot be swept; those that can: clip, step"),
        ({"sweep": {"step": []}}, "needs a list of values"),
        ({"sweep": {"step": 1.0}}, "needs a list of values"),
        ({"sweep": {"step": [1.0, -1.0]}}, "setting step: must be a number > 0"),
        ({"timed": 1}, "neither timed nor traced"),
    ],
)
def test_bad_sweeps_are_one_line(changed, message):
    with pytest.raises(UserError, match=message):
        sweep(**changed)


def test_a_sweeps_row_holds_what_its_members_reach_alone():
    job = sweep()
    (row,), traces = execute([job])
    assert traces == []
    assert row.status == "done"
    assert row.private
    assert json.loads(row.sweep) == AXES
    alone = [execute([member])[0][0] for member in job.members()]
    np.testing.assert_allclose(row.values, [one.excess for one in alone], rtol=1e-9)
    assert row.epsilon_planned == max(one.epsilon_planned for one in alone)


def test_a_diverged_member_counts_as_infinite():
    (row,), _ = execute([sweep(sweep={"step": [1.0, 1e200]}, settings={"passes": 1, "clip": 1e300})])
    assert np.isfinite(row.values).tolist() == [False, False] or not np.isfinite(row.values[1])
    assert row.status == "done"


def test_sweeps_resume_and_are_tuned_on_like_single_runs(tmp_path):
    swept = GridEntry(**BLOCK, settings={"passes": [0.05, 0.2], **AXES}, sweep=["step", "clip"])
    singly = GridEntry(**BLOCK, settings={"passes": [0.05, 0.2], **AXES})
    chosen = []
    for name, block, rows in (("swept", swept, 4), ("singly", singly, 24)):
        store = Store(tmp_path, "quick", name)
        jobs = plan([block], store).jobs
        assert run(jobs, store).statuses == {"done": rows}
        assert run(jobs, store).found == rows
        chosen.append(Tuner(columns_of(store)).best("log1", "dp-cd", 1.0, {}, ["passes", "step", "clip"]))
    assert chosen[0] == chosen[1]
    assert set(chosen[0]) == {"passes", "step", "clip"}
    table = summarise(store.runs())
    winner = table.loc[table["mean"].idxmin()]
    assert {k: v for k, v in json.loads(winner["settings"]).items() if k in chosen[0]} == chosen[0]


def test_logspace_values():
    block = GridEntry(**BLOCK, settings={"clip": {"logspace": [-4, 6, 50]}, "step": [1]}, sweep=["clip"])
    np.testing.assert_allclose(block.values("clip"), np.logspace(-4, 6, 50), rtol=5e-4)
    assert block.values("clip")[31] == float(f"{np.logspace(-4, 6, 50)[31]:.4g}")
