"""The query predicts as the model does, on every kind of cell, in a database that is no part of dpbench."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.schema import Column, Schema, Target

COLUMNS = {
    "age": Column(bounds=(0, 100), missing="indicator"),
    'the "town"': Column(categories=("Bonn", "Ulm", "l'Aquila"), missing="indicator"),
    "level": Column(categories=("low", "middle", "high"), ordered=True),
    "code": Column(categories=("1", "2", "-3")),
    "fee": Column(bounds=(-1.5, 2.5), missing="drop"),
    "id": Column(drop=True),
}
TARGETS = {
    "two": Target(name="y", classes=("it's no", "yes")),
    "three": Target(name="y", classes=("a", "b", "c")),
    "number": Target(name="y", bounds=(-5, 15)),
}


def messy(target, rows=400, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(-50, 150, rows),
            'the "town"': rng.choice(["Bonn", "Ulm", "l'Aquila", " Ulm ", "Kiel"], rows),
            "level": rng.choice(["low", "middle", "high", "other"], rows),
            "code": rng.choice([1.0, 2.0, -3.0, 4.0], rows),
            "fee": rng.uniform(-3, 4, rows),
            "id": np.arange(rows),
        }
    ).astype({'the "town"': object, "level": object})
    for name in ("age", 'the "town"', "level", "code", "fee"):
        table.loc[rng.random(rows) < 0.1, name] = None
    signal = np.nan_to_num(table["age"].to_numpy(float), nan=50) / 20
    if target.classes is None:
        return table.assign(y=signal)
    return table.assign(y=np.array(target.classes)[np.clip(signal.astype(int) % 3, 0, len(target.classes) - 1)])


def answer(sql, table, name="my table"):
    with sqlite3.connect(":memory:") as base:
        table.to_sql(name, base, index=False)
        return pd.read_sql(sql, base)


@pytest.mark.parametrize("kind", TARGETS)
def test_the_query_predicts_as_the_model_does(kind, tmp_path):
    target = TARGETS[kind]
    schema = Schema(target=target, columns=COLUMNS)
    estimator = dpbench.PrivateRegressor if kind == "number" else dpbench.PrivateClassifier
    model = estimator(3.0, schema=schema).fit(messy(target))
    model.save(tmp_path / "m.json")
    rows = messy(target, seed=1).drop(columns="y")
    found = answer(dpbench.export(tmp_path / "m.json", table="my table"), rows)
    expected = model.predict(rows)
    if kind == "number":
        assert found["prediction"].to_numpy() == pytest.approx(expected, rel=1e-9)
        return
    assert (found["prediction"].to_numpy() == expected).all()
    scores = model.decision_function(rows)
    names = ["score"] if kind == "two" else ["score_0", "score_1", "score_2"]
    assert found[names].to_numpy() == pytest.approx(scores.reshape(len(rows), -1), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("given", [{}, {"fit_intercept": False}])
def test_a_model_of_arrays(given, tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 2))
    model = dpbench.PrivateClassifier(2.0, bounds=(0, 10), classes=[0, 1], **given).fit(X, (X[:, 0] > 5).astype(int))
    model.save(tmp_path / "m.json")
    with pytest.raises(SystemExit) as end:
        main(["export", str(tmp_path / "m.json"), "--out", str(tmp_path / "m.sql")])
    assert not end.value.code
    sql = (tmp_path / "m.sql").read_text()
    assert "-DP under replace-one neighbours" in sql.splitlines()[0]
    table = pd.DataFrame(rng.uniform(-5, 15, (200, 2)), columns=["x0", "x1"])
    assert (answer(sql, table, "rows")["prediction"].to_numpy() == model.predict(table.to_numpy())).all()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (Schema(target=TARGETS["two"], columns={"born": Column(date=("year",))}), "columns.born: SQL dialects differ"),
        (Schema(target=TARGETS["two"], columns={"a": Column(bounds=(0, 1))}, row_bound=1.0), "row_bound: it shortens"),
    ],
)
def test_what_sql_cannot_say_is_refused(schema, said, tmp_path):
    table = pd.DataFrame({"born": ["2001-02-03"] * 60, "a": 0.5, "y": ["yes", "it's no"] * 30})
    model = dpbench.PrivateClassifier(1.0, schema=schema).fit(table[[*schema.columns, "y"]])
    model.save(tmp_path / "m.json")
    with pytest.raises(UserError, match=said):
        dpbench.export(tmp_path / "m.json")
