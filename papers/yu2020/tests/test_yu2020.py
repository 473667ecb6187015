"""The split is the released code's; the paper runs, is drawn and has a verdict per published value."""

import dpbench
import numpy as np
import pytest
from dpbench import datasets, experiments
from dpbench.problems import build
from dpbench.study.context import contexts

from yu2020.data import SEED


def _there():
    return datasets.available("yu-adult")


def test_the_test_rows_are_the_last_fifth_of_the_published_shuffle():
    if not _there():
        pytest.skip("Adult is not fetched")
    whole, problem = datasets.load("iyengar-adult"), build("yu-adult:logistic,apart=5")
    order = np.arange(len(whole.y))
    np.random.RandomState(SEED).shuffle(order)  # noqa: NPY002
    X, y = problem.held_out
    assert (len(y), problem.n) == (9044, 36176)
    np.testing.assert_array_equal(y, whole.y[order[36176:]])
    np.testing.assert_array_equal(X[::500], whole.X[order[36176:]][::500])


def test_every_published_value_has_a_verdict(tmp_path):
    if not _there():
        pytest.skip("Adult is not fetched")
    one = experiments.get("yu2020")
    (tmp_path / "few.toml").write_text(
        """
[[quick]]
artefacts = ["table2"]
problems = ["yu-adult:logistic,l2=1e-4,apart=5"]
algorithms = ["dp-gd"]
epsilon = [0.1]
seeds = 20
accounting = "tight"
relation = "replace-one"
settings = { T = 50, step = 5.0 }
"""
    )
    dpbench.run_experiment("yu2020", profile="quick", config=tmp_path / "few.toml", results=tmp_path, jobs=1)
    (context,) = contexts(one, "quick", tmp_path)
    assert one.artefacts[0].render(context).frame["ours (%)"].tolist()[:3] == ["–", "–", "–"]
    judged = dpbench.scorecard("yu2020", profile="quick", results=tmp_path).verdicts.set_index("name")["verdict"]
    assert judged["gradient"] == "not enough data"
    assert judged["Table 2, AMP, Adult"] == "no data"
    assert judged["Table 2, DP-GD, Adult"] in ("match", "differs")
