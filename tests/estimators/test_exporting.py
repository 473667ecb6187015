"""The graph and the pipeline predict as the model does, on every kind of cell, without dpbench."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

import dpbench
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.schema import Column, Schema, Target
from tests.estimators.test_sql import COLUMNS, TARGETS, messy

DATED = COLUMNS | {
    "born": Column(date=("year", "month", "weekday"), years=(1950, 2010), missing="indicator"),
    "met": Column(date=("hour",), missing="drop"),
}
TRUTH = {"yes": Column(categories=("True", "False"), missing="indicator")}


def rows_of(target, seed=0):
    table = messy(target, seed=seed)
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("1940-01-01") + pd.to_timedelta(rng.integers(0, 90 * 365 * 24, len(table)), unit="h")
    table["born"] = np.where(rng.random(len(table)) < 0.8, days.strftime("%Y-%m-%d"), "no date")
    table["met"] = days
    table["yes"] = rng.choice(np.array([True, False, None], dtype=object), len(table))
    return table


def saved(folder, kind, columns, **given):
    target = TARGETS[kind]
    schema = Schema(target=target, columns=columns, row_bound=given.pop("row_bound", None))
    made = dpbench.PrivateRegressor if kind == "number" else dpbench.PrivateClassifier
    model = made(20.0, schema=schema, **given).fit(rows_of(target)[[*columns, "y"]])
    model.save(folder / "m.json")
    return model, rows_of(target, seed=1)[[*columns]]


KINDS = [
    ("two", {}),
    ("three", {}),
    ("three", {"algorithm": "dp-gd"}),
    ("number", {}),
    ("two", {"fit_intercept": False, "row_bound": 1.5}),
    ("number", {"row_bound": 0.7}),
]


def loaded(file):
    found = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), found)  # what an import does
    return found["pipeline"]


@pytest.mark.thorough_for("two-given4")
@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_the_pipeline_predicts_as_the_model_does(kind, given, tmp_path):
    model, rows = saved(tmp_path, kind, DATED | TRUTH, **given)
    dpbench.export(tmp_path / "m.json", to="sklearn", out=tmp_path / "m.py")
    pipeline = loaded(tmp_path / "m.py")
    assert isinstance(pipeline, Pipeline)
    if kind == "number":
        assert pipeline.predict(rows) == pytest.approx(model.predict(rows), rel=1e-12)
        return
    assert (pipeline.predict(rows) == model.predict(rows)).all()
    assert len(set(model.predict(rows))) > 1
    np.testing.assert_allclose(pipeline.predict_proba(rows), model.predict_proba(rows), atol=1e-12)


@pytest.mark.thorough
def test_the_pipeline_needs_no_dpbench_and_says_what_was_released(tmp_path):
    model, rows = saved(tmp_path, "two", DATED)
    rows.to_pickle(tmp_path / "rows.pkl")
    with pytest.raises(SystemExit) as end:
        main(["export", str(tmp_path / "m.json"), "--to", "sklearn", "--out", str(tmp_path / "m.py")])
    assert not end.value.code
    text = (tmp_path / "m.py").read_text(encoding="utf-8")
    assert f"# Guarantee: {model.guarantee_}" in text.splitlines()
    code = (
        "import sys; sys.modules['dpbench'] = None\nimport pandas as pd\nfrom m import pipeline\n"
        "print(*pipeline.predict(pd.read_pickle('rows.pkl')), sep='|')"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.strip().split("|") == list(model.predict(rows)), run.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("odd", ["'''\nimport os", '"; import os #', "@COMMENT@", "@MODEL@", "\\"])
def test_no_text_of_a_model_becomes_code(odd, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({odd: rng.uniform(0, 1, 200), "b": rng.choice([odd, "v"], 200)})
    columns = {odd: Column(bounds=(0, 1)), "b": Column(categories=(odd, "v"))}
    schema = Schema(target=Target(name="y", classes=(odd, "no")), columns=columns)
    y = np.where(table[odd] > 0.5, odd, "no")
    model = dpbench.PrivateClassifier(20.0, schema=schema).fit(table, y)
    file = tmp_path / f"{odd.replace('/', '')} m.json"
    model.save(file)
    dpbench.export(file, to="sklearn", out=tmp_path / "m.py")
    assert (loaded(tmp_path / "m.py").predict(table) == model.predict(table)).all()


def test_models_of_arrays_become_pipelines_and_a_loaded_model_is_an_estimator(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 12, (300, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = dpbench.PrivateClassifier(5.0, bounds=(0, 10), classes=[3, 5, 7]).fit(X, rng.choice([3, 5, 7], 300))
    model.save(tmp_path / "m.json")
    dpbench.export(tmp_path / "m.json", to="sklearn", out=tmp_path / "m.py")
    assert (loaded(tmp_path / "m.py").predict(X) == model.predict(X)).all()
    whole = Pipeline([("model", dpbench.load_model(tmp_path / "m.json"))])
    assert (whole.predict(X) == model.predict(X)).all()
    assert (pickle.loads(pickle.dumps(whole)).predict(X) == model.predict(X)).all()


def run_graph(file, feeds):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, feeds), strict=True))


def feeds_of(rows, columns):
    """What a caller makes of a table: doubles, and text with missing cells empty."""
    found = {}
    for name in rows.columns:
        if columns[name].bounds is not None:
            found[name] = rows[name].to_numpy(dtype=float)[:, None]
        elif not columns[name].drop:
            found[name] = np.array([["" if pd.isna(cell) else str(cell)] for cell in rows[name]], dtype=object)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_the_graph_predicts_as_the_model_does(kind, given, tmp_path):
    pytest.importorskip("onnx")
    columns = COLUMNS | TRUTH
    model, rows = saved(tmp_path, kind, columns, **given)
    dpbench.export(tmp_path / "m.json", to="onnx", out=tmp_path / "m.onnx")
    found = run_graph(tmp_path / "m.onnx", feeds_of(rows, columns))
    if kind == "number":
        np.testing.assert_allclose(found["prediction"], model.predict(rows), rtol=1e-9)
        return
    assert (found["label"] == model.predict(rows)).all()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-9)
    np.testing.assert_allclose(found["scores"].squeeze(), model.decision_function(rows), atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("classes", [[3, 5], [0.5, 1.5, 2.5], [False, True], ["no", "yes"]])
def test_the_graph_of_a_model_of_arrays_has_one_input_and_its_guarantee(classes, tmp_path):
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 12, (300, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.array(classes)[np.clip(np.nan_to_num(X[:, 0], nan=0.0) / 10 * len(classes), 0, len(classes) - 1).astype(int)]
    model = dpbench.PrivateClassifier(20.0, bounds=(0, 10), classes=classes).fit(X, y)
    model.save(tmp_path / "m.json")
    graph = onnx.load_from_string(dpbench.export(tmp_path / "m.json", to="onnx", out=tmp_path / "m.onnx"))
    assert graph.doc_string == model.guarantee_
    found = run_graph(tmp_path / "m.onnx", {"X": X})
    assert (found["label"] == model.predict(X)).all()
    assert len(set(found["label"])) > 1
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-9)


@pytest.mark.thorough
def test_what_a_form_cannot_say_is_one_line(tmp_path, monkeypatch, capsys):
    saved(tmp_path, "two", {"born": DATED["born"], "age": COLUMNS["age"]})
    with pytest.raises(UserError, match=r"to: unknown form 'pickle'; known: onnx, sklearn, sql"):
        dpbench.export(tmp_path / "m.json", to="pickle")
    with pytest.raises(SystemExit) as end:
        main(["export", str(tmp_path / "m.json"), "--to", "onnx"])
    assert end.value.code == 2
    assert "--out: an ONNX graph is no text" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs the package onnx; run: pip install 'onnx>=1\.16'"):
        dpbench.export(tmp_path / "m.json", to="onnx")
    monkeypatch.undo()
    pytest.importorskip("onnx")
    with pytest.raises(UserError, match=r"columns\.born: ONNX knows no dates"):
        dpbench.export(tmp_path / "m.json", to="onnx", out=tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_a_pipeline_reads_cells_by_the_same_functions(tmp_path):
    """Each cell by itself there too: one date in nanoseconds, or one complex number, changes no other row."""
    schema = Schema(
        target=Target(name="y", classes=("no", "yes")),
        columns={"born": Column(date=("year",), years=(1900, 9999)), "a": Column(bounds=(0, 9))},
    )
    frame = pd.DataFrame({"born": ["1990-01-01", "9999-12-31"] * 100, "a": [1, "x"] * 100, "y": ["no", "yes"] * 100})
    dpbench.PrivateClassifier(1.0, schema=schema).fit(frame).save(tmp_path / "m.json")
    model = dpbench.load_model(tmp_path / "m.json")
    dpbench.export(tmp_path / "m.json", to="sklearn", out=tmp_path / "m.py")
    pipeline = loaded(tmp_path / "m.py")
    rows = pd.DataFrame({"born": ["1990-01-01T00:00:00.123456789", "9999-12-31", "x"], "a": [1 + 2j, "x", 3]})
    assert pipeline.predict_proba(rows) == pytest.approx(model.predict_proba(rows), abs=1e-12)
    alone = pipeline.predict_proba(rows.iloc[1:2])
    assert pipeline.predict_proba(rows)[1:2] == pytest.approx(alone, abs=1e-12)
