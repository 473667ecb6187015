"""A saved model predicts as it did, says what its release was, and is not believed where that does not hold."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.cli import main
from dpbench.errors import PrivacyError, UserError
from dpbench.schema import Column, Schema, Target

SCHEMA = Schema(
    target=Target(name="y", classes=("no", "yes")),
    columns={"a": Column(bounds=(0, 1), missing="indicator"), "b": Column(categories=("u", "v"))},
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a = rng.random(500)
    return pd.DataFrame({"a": a, "b": rng.choice(["u", "v"], 500), "y": np.where(a > 0.5, "yes", "no")})


@pytest.fixture(scope="module")
def saved(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.json"
    model = dpbench.PrivateClassifier(2.0, schema=SCHEMA, algorithm="dp-gd").fit(table)
    model.save(path)
    np.save(path.with_suffix(".npy"), model.decision_function(table))
    return path


def forged(saved, path, change):
    """The file with `change` made to its content, and a digest that fits."""
    content = json.loads(saved.read_text())
    content.pop("sha256")
    change(content)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    path.write_text(json.dumps(content | {"sha256": digest}))
    return path


def test_a_classifier_of_a_table_predicts_as_it_did(saved, table):
    model = dpbench.load_model(saved)
    np.testing.assert_array_equal(model.decision_function(table), np.load(saved.with_suffix(".npy")))
    assert set(model.predict(table)) <= {"no", "yes"}
    assert (model.epsilon, model.delta_, model.algorithm_) == (2.0, 500**-2.0, "dp-gd")
    assert "counts as public: n, the schema" in model.guarantee_
    assert 1.9 < model.epsilon_ <= 2 * (1 + 1e-6)
    assert "rows" not in json.loads(saved.read_text())["model"]


@pytest.mark.filterwarnings("ignore::dpbench.estimators.PrivacyWarning")
def test_arrays_more_classes_and_regression_go_there_and_back(tmp_path):
    rng = np.random.default_rng(1)
    X, label = rng.uniform(-1, 1, (400, 3)), rng.integers(0, 3, 400)
    three = dpbench.PrivateClassifier(3.0, bounds=(-1, 1)).fit(X, label)
    number = dpbench.PrivateRegressor(3.0, bounds=(-1, 1), target_bounds=(-2, 5)).fit(X, X[:, 0] * 3)
    for model in (three, number):
        model.save(tmp_path / "m.json")
        other = dpbench.load_model(tmp_path / "m.json")
        np.testing.assert_array_equal(model.predict(X), other.predict(X))
        np.testing.assert_array_equal(model.coef_, other.coef_)
        assert other.intercept_ == pytest.approx(model.intercept_)
    assert other.predict(X).dtype == float
    assert three.classes_.dtype.kind == "i"


def test_the_command_shows_and_checks_the_statement(saved, capsys):
    with pytest.raises(SystemExit) as end:
        main(["statement", str(saved)])
    said = capsys.readouterr().out
    assert not end.value.code
    for line in ("by dp-gd", "neighbours: one row replaced by any other", "Counts as public: n, the schema",
                 "checked: its releases compose to ε = ", "checked: its digest is that of its content"):  # fmt: skip
        assert line in said


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c["statement"].update(epsilon=0.5), "compose to ε = .* more than the 0.5 stated"),
        (lambda c: c["statement"].update(releases=[]), "lists no release"),
        (lambda c: c["statement"].update(relation="none"), "its relation 'none'"),
        (lambda c: c["statement"].update(epsilon=float("inf")), "are no guarantee|not a model"),
        (lambda c: c["statement"]["releases"][0].update(count=400), "more than the 2 stated"),
        (lambda c: c["statement"]["releases"][0].update(count=-16), "count -16 is no whole number from 1 on"),
        (lambda c: c["statement"]["releases"][0].update(count=0.5), "count 0.5 is no whole number from 1 on"),
        (lambda c: c["statement"]["releases"][0]["release"].update(kind="Magic"), "not a release"),
        (lambda c: c["statement"].pop("mechanism"), "not a model that dpbench saved"),
        (lambda c: c["model"].update(kind="os.system"), "not a model that dpbench saved"),
        (lambda c: c["model"].update(W="x"), "not a model that dpbench saved"),
        (lambda c: c.update(format=99), "not a model of this version"),
    ],
)
def test_a_statement_that_does_not_hold_is_refused(saved, tmp_path, change, line):
    with pytest.raises((UserError, PrivacyError), match=line):
        dpbench.load_model(forged(saved, tmp_path / "f.json", change))


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "[" * 100_000])
def test_a_file_that_is_none_is_one_line(tmp_path, content):
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(UserError, match="not a model"):
        dpbench.load_model(tmp_path / "f.json")
    with pytest.raises(UserError, match="No such file"):
        dpbench.load_model(tmp_path / "none.json")


def test_the_command_ends_in_one_line_where_the_statement_does_not_hold(saved, tmp_path, capsys):
    wrong = forged(saved, tmp_path / "f.json", lambda c: c["statement"].update(epsilon=0.5))
    with pytest.raises(SystemExit) as end:
        main(["statement", str(wrong)])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_changed_weight_is_found_by_the_digest(saved, tmp_path):
    (tmp_path / "f.json").write_text(saved.read_text().replace('"unit": 1', '"unit": 2'))
    with pytest.raises(UserError, match="digest does not match"):
        dpbench.load_model(tmp_path / "f.json")


def test_what_is_no_release_is_not_saved(table, tmp_path):
    model = dpbench.PrivateClassifier(2.0, schema=SCHEMA, random_state=0).fit(table)
    with pytest.raises(UserError, match="random_state: a fit with one is no release"):
        model.save(tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
