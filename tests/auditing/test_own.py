"""dpbench's own estimators and `fit` as others would audit them, from what they return."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpbench
from dpbench.auditing import functions
from dpbench.auditing.functions import OTHERS, SIZES, audit_callable, of_estimator
from dpbench.errors import UserError
from dpbench.own import spec
from dpbench.own import window as windows
from dpbench.privacy.exact_release import ExactReleases
from dpbench.problems.persons import OfPersons, Persons
from tests.own.test_persons import SETTINGS, TAKEN

FILE = Path(__file__).resolve().parent.parent.parent / "examples" / "audit_dpbench.py"


@pytest.fixture(scope="module")
def targets():
    where = importlib.util.spec_from_file_location("own_targets", FILE)
    found = importlib.util.module_from_spec(where)
    where.loader.exec_module(found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier", "regressor", "few", "windowed", "fit", "coordinates"])
def test_what_is_shipped_passes_with_classes_missing_values_and_outliers(targets, name):
    done = audit_callable(getattr(targets, name), 1.0, runs=200)
    assert done.passed, done


@pytest.mark.slow
def test_a_window_whose_mean_has_a_tenth_of_its_noise_is_found(targets, monkeypatch):
    split = windows.split
    monkeypatch.setattr(windows, "split", lambda *given: (way := split(*given))._replace(mean=way.mean / 10))
    monkeypatch.setattr(spec, "compose", lambda *given: 1.0)
    monkeypatch.setattr(windows, "guarantee", lambda *given: SimpleNamespace(error=""))
    assert not audit_callable(targets.windowed, 1.0, runs=200).passed


@pytest.mark.thorough
def test_few_rows_whose_model_gets_ten_times_its_epsilon_are_found(targets, monkeypatch):
    split = windows.split
    monkeypatch.setattr(windows, "split", lambda *given: split(*given)._replace(epsilon=10.0))
    monkeypatch.setattr(spec, "compose", lambda *given: 1.0)
    assert not audit_callable(targets.few, 1.0, runs=60).passed


def test_what_is_audited_in_a_window_has_one(targets):
    for target, labels in (
        ("few", {windows.WINDOW, windows.LABEL}),
        ("windowed", {*windows.LABELS} - {windows.MEDIAN}),
    ):
        X, y = getattr(targets, target).pairs[0].first
        model = dpbench.PrivateRegressor(bounds=(0, 10), target_bounds=(0, 2)).fit(X, y)
        assert {entry.label for entry in model.releases_} == labels | {"gradient"}


TOML = """unit = "person"
[target]
name = "y"
bounds = [0, 1]
[columns.a]
bounds = [0, 100]
[columns.b]
categories = ["no", "yes"]
"""


def estimators(tmp_path):
    (tmp_path / "s.toml").write_text(TOML)
    of_arrays = dpbench.PrivateClassifier(classes=["no", "yes"], bounds=(-1, 1), unit=True)
    return {"arrays": of_arrays, "schema": dpbench.PrivateRegressor(schema=tmp_path / "s.toml")}


@pytest.mark.parametrize("kind", ["arrays", "schema"])
def test_the_default_for_an_estimator_of_persons_is_all_rows_of_one(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(functions, "PILOTS", ((16, 1),))
    target = of_estimator(estimators(tmp_path)[kind])
    sizes = [(len(pair.first[1]), len(pair.second[1])) for pair in target.pairs]
    assert sizes == [(m + OTHERS, k + OTHERS) for m, k in SIZES]
    for pair in target.pairs:
        worlds = [target.function(*world, 1.0, np.random.default_rng(0)) for world in pair[:2]]
        assert np.isfinite(worlds).all()
        assert (worlds[0] != worlds[1]).any()  # of equal noise: what differs are the rows


@pytest.mark.thorough
def test_an_audit_of_an_estimator_of_persons_is_of_all_rows_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(functions, "PILOTS", ((16, 1),))
    (done,) = dpbench.audit(estimators(tmp_path)["arrays"], 1.0, runs=40)
    assert done.passed
    assert "all rows of one" in done.pair


CLASSES, NUMBERS = dpbench.PrivateClassifier, dpbench.PrivateRegressor
OF = {
    "logistic": (CLASSES, {"classes": [0, 1]}), "softmax-3": (CLASSES, {"classes": [0, 1, 2]}),
    "squared": (NUMBERS, {"target_bounds": (-1, 1)}),
}  # fmt: skip
CANARIES = [
    (OF[loss][0], {**OF[loss][1], "algorithm": name, "settings": SETTINGS.get(name)})
    for loss, names in TAKEN.items()
    for name in names
] + [(NUMBERS, {**OF["squared"][1], **given}) for given in ({}, {"row_bound": "private"}, {"intervals": True})]
CANARIES.append((CLASSES, {**OF["logistic"][1], "intervals": True}))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "given"), CANARIES)
def test_no_method_that_takes_a_unit_shows_all_rows_of_a_person_beyond_epsilon(monkeypatch, kind, given):
    monkeypatch.setattr(functions, "PILOTS", ((8, 1),))
    (done,) = dpbench.audit(kind(**given, bounds=(-1, 1), unit=True), 1.0, runs=120)
    assert done.passed, done
    assert "all rows of one" in done.pair


@pytest.mark.thorough
def test_rows_of_a_person_that_weigh_1_each_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(functions, "PILOTS", ((20, 1),))
    monkeypatch.setattr(
        Persons, "weighted", lambda self, X, y: OfPersons(np.full(len(y), 1 << 12), 12, self.count, self.codes)
    )
    (done,) = dpbench.audit(estimators(tmp_path)["arrays"], 1.0, runs=100)
    assert not done.passed


def test_an_estimator_of_rows_has_one_row_that_differs():
    target = of_estimator(dpbench.PrivateClassifier(classes=[0, 1], bounds=([0, 0, 0], [1, 2, 3])))
    assert [pair.words.partition(",")[0] for pair in target.pairs] == ["one row"]
    assert len(target.function(*target.pairs[0].first, 1.0, np.random.default_rng(0))) == 4
    for wrong in (dpbench.PrivateClassifier(classes=[0, 1]), dpbench.PrivateClassifier(bounds=(0, 1))):
        with pytest.raises(UserError, match="an audit of an estimator takes"):
            of_estimator(wrong)


def test_the_arithmetic_that_is_audited_is_that_of_a_release(monkeypatch):
    """Without noise there, two seeds give one model: else noise came from elsewhere, and no release was audited."""
    target = of_estimator(dpbench.PrivateClassifier(classes=[0, 1], bounds=(-1, 1), algorithm="dp-gd-average"))
    monkeypatch.setattr(ExactReleases, "_rounded", lambda self, noise, scale, shape: np.zeros(shape, np.int64))
    one, other = (target.function(*target.pairs[0].first, 1.0, np.random.default_rng(i)).tolist() for i in range(2))
    assert one == other


@pytest.mark.slow
def test_classes_that_are_read_off_the_data_fail(targets):
    assert not audit_callable(targets.classes_of_data, 1.0, runs=200).passed


def test_one_person_is_at_the_upper_ends_and_the_others_in_the_middle_of_what_is_public(tmp_path):
    (tmp_path / "s.toml").write_text(TOML.replace("[0, 100]", "[20, 100]"))
    schema = functions.load(tmp_path / "s.toml")
    assert [row.tolist() for row in functions._ends_of_schema(schema)] == [[60.0, None], [100.0, "yes"]]
    for bounds, ends in (((-1, 3), [[1, 1], [3, 3]]), (([0, 0], [1, 2]), [[0.5, 1], [1, 2]]),
                         (([0, 0, 4], [1, 2, 4]), [[0.5, 1, 4], [1, 2, 4]])):  # fmt: skip
        assert [row.tolist() for row in functions._ends_of_array(SimpleNamespace(bounds=bounds))] == ends
    first, second, words = functions._pair(3, 1, "person")
    others = [[1, 0], [2, 0], [3, 0]]
    assert (first[0].tolist(), first[1].tolist()) == ([[0, 1]] * 3 + others, [1, 1, 1, 0, 1, 0])
    assert (second[0].tolist(), second[1].tolist()) == ([[0, 1], *others], [0, 0, 1, 0])
    assert words.startswith("all rows of one person, 3 or 1, at the upper ends with the last label, or with the first")
