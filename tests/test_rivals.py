"""The plug-ins of other libraries: importable without these, with one line on what is missing."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.errors import UserError
from dpbench.files import read_toml
from dpbench.run.execute import execute
from dpbench.run.jobs import make_job

ROOT = Path(__file__).resolve().parent.parent / "rivals"
POINTS = read_toml(ROOT / "pyproject.toml")["project"]["entry-points"]["dpbench.algorithms"]


@pytest.mark.parametrize("name", POINTS)
def test_an_entry_point_is_an_algorithm_of_that_name(name):
    module, _, cls = POINTS[name].partition(":")
    method = algorithms.get(f"{ROOT / module.replace('.', '/')}.py:{cls}")
    assert (method.name, method.private, method.delta) == (name, True, 0.0)


def test_without_the_library_the_row_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    rows, _ = execute([_job("DiffprivlibLogistic", "breast-cancer-ridge")])
    assert (rows[0]["status"], "make rivals" in rows[0]["error"]) == ("failed", True)


def test_a_model_in_its_place_is_wrapped(monkeypatch):
    """ε, C and the random state reach the library; its coefficients are the row's model, ε as stated."""
    seen = {}

    class Model:
        def __init__(self, **given):
            seen.update(given)

        def fit(self, X, y):
            self.coef_ = np.zeros((1, X.shape[1]))

    module, models = type(sys)("diffprivlib"), type(sys)("diffprivlib.models")
    models.LogisticRegression = Model
    module.models = models
    monkeypatch.setitem(sys.modules, "diffprivlib", module)
    rows, _ = execute([_job("DiffprivlibLogistic", "breast-cancer-ridge")])
    assert rows[0]["status"] == "done"
    assert (seen["epsilon"], seen["C"], seen["data_norm"]) == (2.0, pytest.approx(1 / (569 * 1e-2)), 1.0)
    assert "not checked against its noise" in rows[0]["notes"]


def _job(cls, problem):
    return make_job(problem=problem, algorithm=f"{ROOT}/dpbench_rivals/diffprivlib.py:{cls}", epsilon=2.0, seed=0,
                    accounting="pure", delta=0.0)  # fmt: skip


def test_the_library_is_no_dependency_of_dpbench():
    project = read_toml(ROOT.parent / "pyproject.toml")["project"]
    assert not any("diffprivlib" in one for one in project["dependencies"])
    assert [name for name, needs in project["optional-dependencies"].items() if "diffprivlib" in str(needs)] == [
        "rivals"
    ]
    assert importlib.util.find_spec("dpbench") is not None
    with pytest.raises(UserError):
        algorithms.get("diffprivlib-none")
