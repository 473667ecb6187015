"""Losses of installed packages: found by name, held against what they declare, taken wherever a proof covers them."""

import math
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType

import numpy as np
import pytest

import dpbench
from dpbench import algorithms
from dpbench.auditing.neighbours import probes
from dpbench.errors import DataError, UserError
from dpbench.problems import Problem, losses
from dpbench.problems.optimum import NoOptimum
from dpbench.run import job
from dpbench.run.job import make_job
from tests.algorithms.test_needs import LogCosh


class Named(LogCosh):
    """What a package has under another name than its entry point."""

    name = "another"


class Liar(LogCosh):
    """It declares half of its slope."""

    name, lipschitz = "liar", 0.5


class Huber(losses.Loss):
    """Of slope up to 100, of which it declares 55."""

    name, convex, binary, smooth = "huber", True, False, False
    lipschitz, smoothness, hessian_lipschitz = 55.0, 1.0, math.inf

    def value(self, z, y, out):
        r = np.abs(z - y)
        return np.where(r <= 100, r * r / 2, 100 * r - 5000)

    def derivative(self, z, y, out):
        return np.clip(z - y, -100, 100)


class Weighed(LogCosh):
    """Its slope is as large as its label, of which a table may have any."""

    name, binary = "weighed", False
    lipschitz = smoothness = hessian_lipschitz = 3.0

    def value(self, z, y, out):
        return y * super().value(z, 0 * y, out)

    def derivative(self, z, y, out):
        return y * super().derivative(z, 0 * y, out)

    def second_derivative(self, z, y, out):
        return y * super().second_derivative(z, 0 * y, out)


class Kinked(losses.Loss):
    """|z - y|, without a second derivative or a conjugate."""

    name, convex, binary, smooth = "absolute", True, False, False
    lipschitz, smoothness, hessian_lipschitz = 1.0, math.inf, math.inf

    def value(self, z, y, out):
        return np.abs(np.subtract(z, y, out=out), out=out)

    def derivative(self, z, y, out):
        return np.sign(np.subtract(z, y, out=out), out=out)


class Counts(LogCosh):
    """Of labels that are counts."""

    name = "counts"

    def check_labels(self, y):
        if not np.all(y >= 0):
            raise DataError("y: counts are at least 0")


@pytest.fixture
def installed(monkeypatch):
    """A function that installs losses, name → object."""

    def clear():
        for one in (losses.names, losses._installed, losses._plugin):
            one.cache_clear()

    def install(**found):
        module = ModuleType("somebodys_losses")
        for name, each in found.items():
            setattr(module, name, each)
        monkeypatch.setitem(sys.modules, "somebodys_losses", module)
        points = [EntryPoint(name.replace("_", "-"), f"somebodys_losses:{name}", losses.ENTRY_POINTS) for name in found]
        monkeypatch.setattr(losses, "entry_points", lambda *, group: points if group == losses.ENTRY_POINTS else [])
        # Another process does not find what is installed in this one alone.
        monkeypatch.setattr("dpbench.auditing.runs.told_apart", lambda *case: "")
        clear()

    yield install
    monkeypatch.undo()
    clear()


def test_it_is_listed_run_and_refused_by_the_methods_whose_proof_does_not_cover_it(installed, tmp_path):
    installed(log_cosh=LogCosh)
    listed = dpbench.listing("losses").set_index("loss")
    assert listed.index.tolist() == [*losses.LOSSES, "log-cosh"]
    assert listed.loc["log-cosh", "methods"] > 20
    call = {"epsilon": 1.0, "seeds": 2, "jobs": 1, "results": tmp_path}
    rows = dpbench.run_algorithm("dp-gd", "synthetic:log-cosh", settings={"T": 5}, **call).rows()
    assert (rows["status"] == "done").all()
    assert rows["epsilon_planned"].max() <= 1 + 1e-6
    assert (rows["excess"] > 0).all()  # above its own optimum
    with pytest.raises(UserError, match="loss log-cosh is not covered by its privacy proof: it is not a square"):
        dpbench.run_algorithm("adassp", "synthetic:log-cosh,l2=0.1", **call)


@pytest.mark.thorough
def test_it_is_audited_by_its_own_constants(installed):
    installed(log_cosh=LogCosh(), steep=type("Steep", (LogCosh,), {"name": "steep"}))
    (found,) = dpbench.audit("dp-gd", 1.0, runs=400, loss="log-cosh")
    assert found.passed
    with pytest.raises(UserError, match="adassp: loss log-cosh is not covered"):
        dpbench.audit("adassp", loss="log-cosh")
    with pytest.raises(UserError, match="loss: goes with one algorithm"):
        dpbench.audit("all", loss="log-cosh")


@pytest.mark.thorough
def test_a_loss_with_kinks_runs_and_audits_at_a_step_and_has_no_optimum(installed, tmp_path):
    installed(absolute=Kinked)
    settings = {"T": 5, "step": 0.1}
    call = {"seeds": 1, "settings": settings, "results": tmp_path}
    rows = dpbench.run_algorithm("dp-gd", "synthetic:absolute", 1.0, **call).rows()
    assert rows["status"].tolist() == ["done"]
    assert rows["excess"].isna().all()
    assert dpbench.audit("dp-gd", 1.0, runs=400, loss="absolute")[0].passed
    X, y = np.eye(3), np.ones(3)
    with pytest.raises(NoOptimum, match="kinks"):
        Problem(X, y, loss="absolute").optimum()
    with pytest.raises(NoOptimum, match="no conjugate"):
        Problem(X, y, loss=LogCosh(), l1=0.1).optimum()


def test_labels_of_an_audit_are_labels_of_the_loss(installed):
    installed(counts=Counts)
    method = algorithms.get("dp-gd")
    pairs = probes(method, method.inspection_case(), method.relation)
    assert set(np.abs(pairs[0].first.y)) == {1.0}
    pairs = probes(method, replace(method.inspection_case(), loss="counts"), method.relation)
    assert all(set(one.y) <= {1.0, 3.0} for pair in pairs for one in pair[:2])


def test_its_version_is_part_of_the_key_and_those_of_finished_runs_stay(installed):
    call = {"problem": "synthetic:log-cosh", "algorithm": "dp-gd", "epsilon": 1.0, "seed": 0}
    installed(log_cosh=LogCosh)
    first = make_job(**call).key
    installed(log_cosh=type("Newer", (LogCosh,), {"version": 2}))
    job._keys_like.cache_clear()
    assert make_job(**call).key != first


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"log_cosh": Named}, "its name is 'another'; call both alike"),
        ({"liar": Liar}, r"not what it declares: \|ℓ'\| exceeds lipschitz = 0.5"),
        ({"huber": Huber}, r"\|ℓ'\| exceeds lipschitz = 55 where \|z\| or a label is large"),
        ({"weighed": Weighed}, r"\|ℓ'\| exceeds lipschitz = 3 where \|z\| or a label is large"),
        ({"log_cosh": int}, "must be a dpbench.problems.losses.Loss"),
        ({"softmaxes": losses.Softmax(3)}, "its name is 'softmax-3'"),
        ({"broken": type("Broken", (LogCosh,), {"name": "broken", "value": None})}, "cannot be called"),
    ],
)
def test_one_that_is_not_what_it_says_is_named_and_left_out(installed, found, message):
    installed(**found)
    with pytest.warns(UserWarning, match=message):
        assert losses.names() == tuple(losses.LOSSES)
    (name,) = found
    with pytest.raises(UserError, match=message):
        losses.get(name.replace("_", "-"))


def test_no_package_takes_the_name_of_a_built_in_one(installed):
    installed(logistic=LogCosh)
    with pytest.warns(UserWarning, match="loss logistic .* the name is taken"):
        assert losses.names() == tuple(losses.LOSSES)
    assert type(losses.get("logistic")) is losses.Logistic
