"""The explorer's data: one point per setting, numbers as the rows have them, commands that repeat the runs."""

import json

import numpy as np
import pytest

from dpbench import algorithms, experiments
from dpbench.reporting import explorer
from dpbench.run.job import make_job
from dpbench.run.store import Store
from dpbench.study.context import Context
from tests.batches import write

ROW = {"problem": "synthetic", "algorithm": "dp-gd", "status": "done", "epsilon": 1.0, "delta": 1e-8, "private": True,
       "epsilon_accounted": 1.0, "epsilon_planned": 0.9,
       "epsilon_realised": 0.9, "accounting": "bs16", "relation": "add-remove", "timed": 0,
       "checked_by": "dp_accounting", "settings": '{"T":5}'}  # fmt: skip


def context(tmp_path, rows, traces=()):
    store = Store(tmp_path, "quick", "second_order")
    write(store, [ROW | {"key": f"k{i}", "seed": i} | row for i, row in enumerate(rows)], list(traces))
    return Context(experiments.get("second_order"), "quick", store)


def test_a_point_is_the_mean_of_its_seeds_and_what_was_not_finite_is_left_out(tmp_path):
    rows = [{"excess": x, "objective": 1 + x} for x in (0.1, 0.2, 0.6)]
    rows += [{"excess": 1.0, "settings": '{"T":7}', "seconds": 2.0, "timed": 1, "objective": np.nan}]
    data = explorer.packed([context(tmp_path, rows)])
    assert data["rows"]["n"] == [3, 1]
    assert data["rows"]["excess"] == [0.3, 1]
    assert data["rows"]["excess_se"][0] == pytest.approx(np.std([0.1, 0.2, 0.6], ddof=1) / 3**0.5, rel=1e-4)
    assert data["rows"]["objective"][1] is None
    assert data["rows"]["seconds"] == [None, 2]
    json.dumps(data, allow_nan=False)


def test_a_timed_run_adds_its_seconds_to_the_untimed_ones_and_no_point(tmp_path):
    rows = [{"excess": 0.1}, {"excess": 0.3}, {"excess": 0.1, "timed": 1, "seconds": 4.0, "seed": 0}]
    data = explorer.packed([context(tmp_path, rows)])["rows"]
    assert (data["n"], data["excess"], data["seconds"]) == ([2], [0.2], [4])


@pytest.mark.parametrize(
    ("algorithm", "given", "accounting", "relation"),
    [
        ("dp-gd", {"T": 7, "step": 2.0}, "paper", None),
        ("dp-newton-qu-add", {"T": 3, "theta": 0.4}, "tight", None),
        ("dp-gd", {"T": 7}, "tight", "replace-one"),
        ("opt-ls", {"alpha": 0.06}, "paper", None),
    ],
)
def test_the_command_of_a_point_makes_the_same_job(algorithm, given, accounting, relation):
    problem = "covertype12-logistic" if algorithm == "opt-ls" else "synthetic"
    wanted = {"problem": problem, "algorithm": algorithm, "epsilon": 1.0, "seed": 0}
    job = make_job(**wanted, settings=given, accounting=accounting, relation=relation)
    method = algorithms.get(job.algorithm)
    whole = json.dumps({name: getattr(job.parsed(), name) for name in method.Settings.__struct_fields__})
    words = explorer.flags(algorithm, whole, method.accounting(job.accounting), job.neighbours.value).split()
    flags = list(zip(words[::2], words[1::2], strict=True))
    settings = dict(value.split("=") for flag, value in flags if flag == "--set")
    others = {flag[2:]: value for flag, value in flags if flag != "--set"}
    again = make_job(**wanted, settings=settings, **({"accounting": "paper"} | others))
    assert (again.settings, again.neighbours) == (job.settings, job.neighbours)
    assert method.accounting(again.accounting) == method.accounting(job.accounting)


def test_without_the_library_a_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(explorer, "library", lambda: None)
    assert "pip install 'bokeh>=3.4'" in explorer.write_data(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
