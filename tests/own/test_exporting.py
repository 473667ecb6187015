"""The graph predicts as the model does, on every kind of cell, without dpbench."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

import dpbench
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.schema import Column, Schema, Target

COLUMNS = {
    "age": Column(bounds=(0, 100), missing="indicator"),
    "pay": Column(bounds=(-1e3, 1e4)),
    "town": Column(categories=("Bonn", "it's", "1"), missing="indicator"),
    "rank": Column(categories=("low", "middle", "high")),
    "yes": Column(categories=("True", "False"), missing="drop"),
    "id": Column(drop=True),
}
TARGETS = {
    "two": Target(name="y", classes=("no", "yes")),
    "three": Target(name="y", classes=(3, 5, 7)),
    "number": Target(name="y", bounds=(-5, 15)),
}
KINDS = [
    ("two", {}),
    ("three", {}),
    ("three", {"algorithm": "dp-gd"}),
    ("number", {}),
    ("two", {"fit_intercept": False, "row_bound": 1.5}),
    ("number", {"row_bound": 0.7}),
]


def rows_of(target, seed=0, rows=400):
    rng = np.random.default_rng(seed)
    age = rng.uniform(-20, 130, rows)
    age[rng.random(rows) < 0.1] = np.nan
    words = np.array(["Bonn", " it's\t", "1", "1.0", "Kiel", "", "bonn", None], dtype=object)
    table = pd.DataFrame({"age": age, "pay": rng.normal(0, 1e4, rows), "town": rng.choice(words, rows)})
    table["rank"] = rng.choice(np.array(["low", "middle ", "high", "other"], dtype=object), rows)
    table["yes"] = rng.choice(np.array(["True", "true", "f", "0", None], dtype=object), rows)
    table["id"] = range(rows)
    step = np.nan_to_num(age, nan=0.0).clip(0, 99)
    if target.classes is None:
        return table.assign(y=step / 5 - 5)
    return table.assign(y=np.array(target.classes)[(step / 100 * len(target.classes)).astype(int)])


def saved(folder, kind, columns=None, **given):
    target, columns = TARGETS[kind], columns or COLUMNS
    schema = Schema(target=target, columns=columns, row_bound=given.pop("row_bound", None))
    made = dpbench.PrivateRegressor if kind == "number" else dpbench.PrivateClassifier
    model = made(20.0, schema=schema, **given).fit(rows_of(target)[[*columns, "y"]])
    model.save(folder / "m.json")
    return model, rows_of(target, seed=1)[[*columns]]


def run_graph(file, feeds):
    session = pytest.importorskip("onnxruntime").InferenceSession(file, providers=["CPUExecutionProvider"])
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


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_the_graph_predicts_as_the_model_does(kind, given, tmp_path):
    pytest.importorskip("onnx")
    model, rows = saved(tmp_path, kind, **given)
    dpbench.export(tmp_path / "m.json", out=tmp_path / "m.onnx")
    found = run_graph(tmp_path / "m.onnx", feeds_of(rows, COLUMNS))
    if kind == "number":
        np.testing.assert_allclose(found["prediction"], model.predict(rows), rtol=1e-9)
        return
    assert (found["label"] == model.predict(rows)).all()
    assert len(set(model.predict(rows).tolist())) > 1
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-9)
    np.testing.assert_allclose(found["scores"].squeeze(), model.decision_function(rows), atol=1e-9)


def test_a_category_in_every_spelling_is_the_same_cell_in_the_graph(tmp_path):
    """ASCII blanks are cut and no others; a graph that cut a different set would differ on these."""
    pytest.importorskip("onnx")
    columns = {"town": COLUMNS["town"]}
    model, _ = saved(tmp_path, "two", columns)
    blanks = [*"\t\n\x0b\x0c\r ", *"\u00a0\u1680\u2000\u2003\u2009\u200b\u2028\u202f\u205f\u3000\ufeff\x85"]
    words = [f"{before}{word}{after}" for word in ("Bonn", "it's", "1", "1.0", "") for one in blanks
             for before, after in ((one, ""), ("", one), (one, one))]  # fmt: skip
    rows = pd.DataFrame({"town": words}, dtype=object)
    found = run_graph(dpbench.export(tmp_path / "m.json"), feeds_of(rows, columns))
    np.testing.assert_allclose(found["scores"].squeeze(), model.decision_function(rows), atol=1e-12)


@pytest.mark.parametrize("classes", [[3, 5], [0.5, 1.5, 2.5], [False, True], ["no", "yes"]])
def test_the_graph_of_a_model_of_arrays_has_one_input_and_its_guarantee(classes, tmp_path):
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 12, (300, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.array(classes)[np.clip(np.nan_to_num(X[:, 0], nan=0.0) / 10 * len(classes), 0, len(classes) - 1).astype(int)]
    model = dpbench.PrivateClassifier(20.0, bounds=(0, 10), classes=classes).fit(X, y)
    model.save(tmp_path / "m.json")
    graph = onnx.load_from_string(dpbench.export(tmp_path / "m.json", out=tmp_path / "m.onnx"))
    assert graph.doc_string == model.guarantee_
    found = run_graph(tmp_path / "m.onnx", {"X": X})
    assert (found["label"] == model.predict(X)).all()
    assert len(set(found["label"])) > 1
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("most", [5e-301, 1.0, 1 + 3e-8])
def test_a_runtime_that_tidies_the_graph_leaves_no_step_out(most, tmp_path):
    """onnxruntime drops x - c and x / c where float32 makes 0 or 1 of c: of 5e-301, of 1 + 3e-8."""
    pytest.importorskip("onnx")
    low = 0.0 if most < 1 else -most
    X = np.random.default_rng(0).uniform(low, low + 2 * most, (300, 1))
    model = dpbench.PrivateClassifier(20.0, bounds=(low, low + 2 * most), classes=[0, 1]).fit(X, X[:, 0] > low + most)
    model.save(tmp_path / "m.json")
    found = run_graph(dpbench.export(tmp_path / "m.json"), {"X": X})
    np.testing.assert_allclose(found["scores"][:, 0], model.decision_function(X), atol=1e-12)


def test_a_runtime_that_tidies_the_graph_keeps_the_unit_of_the_target(tmp_path):
    pytest.importorskip("onnx")
    most = 1 + 3e-8
    X = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    model = dpbench.PrivateRegressor(20.0, bounds=(-1, 1), target_bounds=(-most, most), row_bound=None)
    model.fit(X, X[:, 0]).save(tmp_path / "m.json")
    found = run_graph(dpbench.export(tmp_path / "m.json"), {"X": X})
    np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("column", "categories", "classes", "said"),
    [
        ("a", ("", "u"), ("no", "yes"), r"columns\.a: to ONNX an empty text is a missing cell"),
        ("", ("u", "v"), ("no", "yes"), "columns: ONNX has no input without a name"),
        ("a", ("u", "v"), (1, 2**70), f"classes: ONNX has no type that keeps 1, {2**70}"),
        ("a", ("u", "v"), ("no\0", "yes"), r"classes: ONNX has no type that keeps 'no.x00'"),
    ],
)
def test_a_schema_that_a_graph_would_read_otherwise_is_one_line(column, categories, classes, said, tmp_path):
    pytest.importorskip("onnx")
    schema = Schema(target=Target(name="y", classes=classes), columns={column: Column(categories=categories)})
    table = pd.DataFrame({column: np.resize(categories, 300), "y": np.resize(np.array(classes, dtype=object), 300)})
    dpbench.PrivateClassifier(1.0, schema=schema).fit(table).save(tmp_path / "m.json")
    with pytest.raises(UserError, match=said):
        dpbench.export(tmp_path / "m.json")


def test_a_loaded_model_is_an_estimator(tmp_path):
    X = np.random.default_rng(0).uniform(-2, 12, (300, 3))
    model = dpbench.PrivateClassifier(5.0, bounds=(0, 10), classes=[3, 5, 7]).fit(X, np.resize([3, 5, 7], 300))
    model.save(tmp_path / "m.json")
    whole = Pipeline([("model", dpbench.load_model(tmp_path / "m.json"))])
    assert (whole.predict(X) == model.predict(X)).all()
    assert (pickle.loads(pickle.dumps(whole)).predict(X) == model.predict(X)).all()


def test_what_the_graph_cannot_say_is_one_line(tmp_path, monkeypatch, capsys):
    born = Column(date=("year", "month"), years=(1950, 2010))
    table = rows_of(TARGETS["two"])[["age", "y"]].assign(born="1990-01-01")
    schema = Schema(target=TARGETS["two"], columns={"born": born, "age": COLUMNS["age"]})
    dpbench.PrivateClassifier(1.0, schema=schema).fit(table).save(tmp_path / "m.json")
    with pytest.raises(SystemExit) as end:
        main(["model", "export", str(tmp_path / "m.json")])
    assert end.value.code == 2
    assert "--out" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs the package onnx; run: pip install 'onnx>=1\.16'"):
        dpbench.export(tmp_path / "m.json")
    monkeypatch.undo()
    pytest.importorskip("onnx")
    with pytest.raises(UserError, match=r"columns\.born: ONNX knows no dates"):
        dpbench.export(tmp_path / "m.json", out=tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
