"""The plug-ins of other libraries: importable without these, with one line on what is missing, read as they draw."""

import ast
import importlib
import importlib.util
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpbench
from dpbench import algorithms
from dpbench.algorithms.base import BaseSettings, Needs
from dpbench.algorithms.library import LibrarySolver, Solved, released
from dpbench.auditing.functions import audit_callable, of_solver
from dpbench.errors import UserError
from dpbench.files import read_toml
from dpbench.privacy.ledger import Laplace
from dpbench.run.execute import execute
from dpbench.run.job import make_job

RIVALS = Path(__file__).resolve().parent.parent / "rivals"
POINTS = read_toml(RIVALS / "pyproject.toml")["project"]["entry-points"]["dpbench.algorithms"]
LIBRARIES = {"diffprivlib": "diffprivlib", "opacus": "opacus", "jax_privacy": "jax_privacy"}  # module → what it imports


def reference(name):
    module, _, cls = POINTS[name].partition(":")
    return f"{RIVALS / module.replace('.', '/')}.py:{cls}"


def row(name, problem, epsilon=2.0, **settings):
    method = algorithms.get(reference(name))
    job = make_job(
        problem=problem, algorithm=reference(name), epsilon=epsilon, seed=0, settings=settings,
        accounting=method.paper_accounting, delta=method.delta, relation="replace-one",
    )  # fmt: skip
    return execute([job])[0][0]


@pytest.mark.parametrize("name", POINTS)
def test_an_entry_point_is_a_solver_of_that_name(name):
    method = algorithms.get(reference(name))
    assert (method.name, method.private, method.relation.value) == (name, True, "replace-one")
    extras = read_toml(RIVALS / "pyproject.toml")["project"]["optional-dependencies"]
    assert any(method.library in one for one in extras[method.library])
    makefile = (RIVALS.parent / "Makefile").read_text(encoding="utf-8")
    assert method.library in makefile.partition("RIVALS := ")[2].splitlines()[0].split()


@pytest.mark.parametrize("name", POINTS)
def test_a_rule_is_of_the_settings_there_are_and_follows_n_d_and_epsilon(name):
    method = algorithms.get(reference(name))
    rule = method.public_settings(10_000, 20, 1.0)
    assert method.Settings(**rule) is not None
    if "T" in method.Settings.__struct_fields__:
        assert rule["T"] > method.public_settings(1_000, 20, 1.0)["T"]


@pytest.mark.parametrize(("module", "library"), LIBRARIES.items())
def test_without_the_library_the_row_says_what_to_do(monkeypatch, module, library):
    monkeypatch.setitem(sys.modules, library, None)
    name = next(name for name, point in POINTS.items() if point.startswith(f"dpbench_rivals.{module}:"))
    found = row(name, "breast-cancer-ridge")
    assert (found.status, "make rivals" in found.error) == ("refused", True)


def stand_in(monkeypatch, mechanism, **models):
    """A diffprivlib whose models are these functions of (what they were given, X, y) → coefficients."""

    def model(fit):
        class Model:
            def __init__(self, **given):
                self.given = given

            def fit(self, X, y):
                self.coef_ = fit(self.given, X, y)

        return Model

    library = type(sys)("diffprivlib")
    library.mechanisms, library.models = type(sys)("diffprivlib.mechanisms"), type(sys)("diffprivlib.models")
    setattr(library.mechanisms, mechanism.__name__, mechanism)
    for name, fit in models.items():
        setattr(library.models, name, model(fit))
    monkeypatch.setitem(sys.modules, "diffprivlib", library)
    for name in ("diffprivlib-logistic", "diffprivlib-ridge", "diffprivlib-linear"):
        monkeypatch.setitem(type(algorithms.get(reference(name))).solve.__globals__, "version", lambda name: "0.0")


@pytest.mark.parametrize(
    ("name", "more", "status"),
    [
        ("diffprivlib-logistic", 1.0, "done"),
        ("diffprivlib-logistic", 0.5, "defect"),
        ("diffprivlib-ridge", 1.0, "done"),
    ],
)
def test_objective_perturbation_is_accounted_from_what_was_drawn(monkeypatch, name, more, status):
    """s and the ridge as drawn: 2/s + ln(1 + ¼/Λ); with half the noise, more than ε, so a failed run.

    At ε = 2, n = 569 and d = 31 noise of the scale 1 asks for a ridge of 31·32/(8·569·0.03): more than n·l2 = 5.69.
    """
    ridge = 31 * 32 / (8 * 569 * 0.03) if name == "diffprivlib-ridge" else 569 * 1e-2

    class Vector:
        def __init__(self, alpha, epsilon, rng):
            self.alpha, self.epsilon, self.rng = alpha, epsilon, rng

        def randomise(self, value):
            delta = 0.5 / 569
            self.rng.gamma(2.0, more * 2 / (self.epsilon - 2 * math.log1p(0.25 / self.alpha)), 4)
            return lambda w: value(w) + delta

    def fit(given, X, y):
        assert (1 / given["C"], given["data_norm"], given["fit_intercept"]) == (pytest.approx(ridge), 1.0, False)
        Vector(1 / given["C"], given["epsilon"], given["random_state"]).randomise(lambda w: 0.0)
        return np.zeros((1, X.shape[1]))

    stand_in(monkeypatch, Vector, LogisticRegression=fit)
    found = row(name, "breast-cancer-ridge")
    assert found.status == status
    left = 2.0 - 2 * math.log1p(0.25 / ridge)
    assert found.epsilon_planned == pytest.approx(left / more + math.log1p(0.25 / (ridge + 0.5)), rel=1e-6)
    assert "states ε = 2; scale" in found.notes


@pytest.mark.parametrize(("share", "status"), [(1.0, "done"), (1.02, "defect")])
def test_moments_are_accounted_by_what_a_row_moves(monkeypatch, share, status):
    class LaplaceNoise:
        def __init__(self, sensitivity, epsilon):
            self.sensitivity, self.epsilon = sensitivity, epsilon

        def randomise(self, value):
            return value

    LaplaceNoise.__name__ = "Laplace"

    def fit(given, X, y):
        assert given["bounds_X"] == given["bounds_y"] == (-0.5, 0.5)
        assert abs(y).max() == 0.5  # cut off: the labels go to 0.84
        d = X.shape[1]
        each = share * given["epsilon"] / (1 + d + d * (d + 1) / 2)
        units = [1, *[2] * d, *(u for i in range(d) for u in [1, *[2] * (d - 1 - i)])]
        for unit in units:
            LaplaceNoise(unit * 0.25, each).randomise(0.0)
        return np.zeros(d)

    stand_in(monkeypatch, LaplaceNoise, LinearRegression=fit)
    found = row("diffprivlib-linear", "diabetes-ridge", bound=0.5)
    assert (found.status, found.epsilon_planned) == (status, pytest.approx(2.0 * share, rel=1e-6))


@pytest.mark.parametrize("name", [name for name in POINTS if not name.startswith("diffprivlib")])
def test_dp_sgd_is_accounted_by_the_noise_of_the_library(name):
    """Where the library is: its ε is within what was asked, and seeds repeat a run."""
    module = POINTS[name].partition(":")[0].rpartition(".")[2]
    pytest.importorskip(LIBRARIES[module])
    one, again = (row(name, "breast-cancer-ridge", T=8) for _ in range(2))
    assert one.status == "done", one.error
    assert 0.4 < one.epsilon_planned / 2.0 < 1 + 1e-6
    assert (one.objective, "its accountant says ε = " in one.notes) == (again.objective, True)


class Summing(LibrarySolver):
    """Σ y_i x_i with Laplace noise, as a library would draw it; `told` of the noise is what it tells."""

    name = "summing"
    accountings = ("pure",)
    paper_accounting = "pure"
    delta = 0.0
    needs = Needs(losses=("logistic",))
    discloses = released("Laplace", "2", "‖x‖₂ ≤ 1, of one column")
    told = 1.0

    class Settings(BaseSettings, frozen=True):
        T: int = 1

    def solve(self, problem, budget, settings, rng):
        scale = 2 / budget.epsilon
        w = problem.y @ problem.X + rng.laplace(scale=scale / self.told, size=problem.d)
        return Solved(w, [(Laplace(scale / 2), 1)], "as told")


@pytest.mark.thorough_for("1.0-True")
@pytest.mark.parametrize(("told", "passed"), [(1.0, True), (3.0, False)])
def test_the_audit_sees_noise_that_is_less_than_told(monkeypatch, told, passed):
    solver = Summing()
    monkeypatch.setattr(Summing, "told", told)
    monkeypatch.setattr(algorithms, "resolve", lambda name: (solver, {}))
    assert audit_callable(of_solver("summing"), 1.0, runs=1500).passed == passed
    assert of_solver("all") is None


def test_what_stands_for_a_solver_in_the_api(monkeypatch):
    monkeypatch.setattr("dpbench.auditing.functions.of_solver", lambda name: SimpleNamespace(of=name))
    monkeypatch.setattr("dpbench.auditing.functions.audit_callable", lambda target, epsilon, **given: target.of)
    assert dpbench.audit("dp-gd") == ["dp-gd"]


def test_the_libraries_are_no_dependencies_of_dpbench():
    project = read_toml(RIVALS.parent / "pyproject.toml")["project"]
    assert not any(library in one for one in project["dependencies"] for library in LIBRARIES)
    extras = project["optional-dependencies"]
    assert [name for name, needs in extras.items() if any(one in str(needs) for one in LIBRARIES)] == ["rivals"]
    assert importlib.util.find_spec("dpbench") is not None
    with pytest.raises(UserError):
        algorithms.get("diffprivlib-none")


def test_what_kept_submissions_import_is_there():
    """Their code is hashed into the keys of their rows: the modules that it names stay."""
    methods = sorted((RIVALS.parent / "results/full/leaderboard/submissions").glob("*/method.py"))
    assert methods
    for method in methods:
        for node in ast.walk(ast.parse(method.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dpbench"):
                assert {each.name for each in node.names} <= vars(importlib.import_module(node.module)).keys(), method
