"""The query predicts as the model does, on every kind of cell, in a database that is no part of dpbench."""

import sqlite3

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import schema as schemas
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


def of_duckdb(sql, table, name="my table"):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as base:
        base.register("given", table)
        base.sql(f'CREATE TABLE "{name}" AS SELECT * FROM given')
        return base.sql(sql).df()


@pytest.mark.parametrize(
    ("base", "more"),
    [
        (answer, {"row_bound": None}),
        (answer, {"row_bound": "private"}),
        (answer, {"own": 0.9}),
        (of_duckdb, {"row_bound": "private"}),
    ],
)
@pytest.mark.parametrize("kind", TARGETS)
def test_the_query_predicts_as_the_model_does(kind, more, base, tmp_path):
    target = TARGETS[kind]
    schema = Schema(target=target, columns=COLUMNS, row_bound=more.get("own"))
    estimator = dpbench.PrivateRegressor if kind == "number" else dpbench.PrivateClassifier
    given = {name: value for name, value in more.items() if name != "own"}
    model = estimator(3.0, schema=schema, **given).fit(messy(target))
    model.save(tmp_path / "m.json")
    rows = messy(target, seed=1).drop(columns="y")
    if base is of_duckdb:
        rows = rows.astype(dict.fromkeys(["fee", "age", "code"], "Float64"))  # whose missing cells are NULL
    found = base(dpbench.export(tmp_path / "m.json", table="my table"), rows)
    expected = model.predict(rows)
    if more != {"row_bound": None}:
        whole = schemas.encode(msgspec.structs.replace(model._encoder, row_bound=None), rows, predicting=True)
        lengths = np.linalg.norm(whole.X * whole.unit, axis=1) / model._unit
        assert found["row_length"].to_numpy() == pytest.approx(lengths)
        assert 0 < (lengths > 1).mean() <= 1
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
    ],
)
def test_what_sql_cannot_say_is_refused(schema, said, tmp_path):
    table = pd.DataFrame({"born": ["2001-02-03"] * 60, "a": 0.5, "y": ["yes", "it's no"] * 30})
    model = dpbench.PrivateClassifier(1.0, schema=schema).fit(table[[*schema.columns, "y"]])
    model.save(tmp_path / "m.json")
    with pytest.raises(UserError, match=said):
        dpbench.export(tmp_path / "m.json")


@pytest.mark.thorough
def test_columns_of_the_query_s_own_names_do_not_disturb_it(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("score", "Score", "score_1", "prediction"):
        schema = Schema(target=TARGETS["three"], columns={name: Column(bounds=(0, 10)), "b": Column(bounds=(0, 1))})
        table = pd.DataFrame({name: rng.uniform(0, 10, 300), "b": rng.random(300)})
        target = np.array(["a", "b", "c"])[(table[name].to_numpy() / 4).astype(int)]
        for labels in (target, np.where(target == "a", "yes", "it's no")):
            kind = TARGETS["three"] if labels is target else TARGETS["two"]
            model = dpbench.PrivateClassifier(50.0, schema=Schema(target=kind, columns=schema.columns))
            model.fit(table.assign(y=labels)).save(tmp_path / "m.json")
            found = answer(dpbench.export(tmp_path / "m.json"), table, "rows")
            added = "prediction_" if name == "prediction" else "prediction"
            assert len(set(found[added])) > 1
            assert (found[added].to_numpy() == model.predict(table)).all()


def test_a_column_that_the_model_does_not_know_does_not_disturb_it_either(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 2))
    model = dpbench.PrivateClassifier(5.0, bounds=(0, 10), classes=[0, 1]).fit(X, (X[:, 0] > 5).astype(int))
    model.save(tmp_path / "m.json")
    table = pd.DataFrame(X, columns=["x0", "x1"]).assign(score=-1.0)
    found = answer(dpbench.export(tmp_path / "m.json"), table, "rows")
    assert (found["prediction"].to_numpy() == model.predict(X)).all()


def test_truth_values_are_categories_and_classes(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    yes = rng.random(300) < 0.5
    columns = {"yes": Column(categories=("True", "False")), "b": Column(bounds=(0, 1))}
    table = pd.DataFrame({"yes": yes, "b": rng.random(300)})
    target = Target(name="y", classes=("False", "True"))
    model = dpbench.PrivateClassifier(50.0, schema=Schema(target=target, columns=columns)).fit(table.assign(y=yes))
    model.save(tmp_path / "m.json")
    sql = dpbench.export(tmp_path / "m.json")
    assert set(model.predict(table)) == {"True", "False"}
    assert (answer(sql, table, "rows")["prediction"].to_numpy() == model.predict(table)).all()  # as 1 and 0
    rows = table  # noqa: F841  # DuckDB finds it by its name
    assert (duckdb.sql(sql).df()["prediction"].to_numpy() == model.predict(table)).all()
    text = table.assign(yes=np.where(yes, "True", "False"))
    assert (answer(sql, text, "rows")["prediction"].to_numpy() == model.predict(text)).all()
    given = {"bounds": (-1, 1), "classes": [False, True]}
    dpbench.PrivateClassifier(50.0, **given).fit(rng.uniform(-1, 1, (99, 1)), yes[:99]).save(tmp_path / "m.json")
    assert "THEN TRUE ELSE FALSE END AS prediction" in dpbench.export(tmp_path / "m.json")


def test_text_that_is_written_as_databases_write_a_category_is_one_everywhere(tmp_path):
    columns = {
        "yes": Column(categories=("True", "False"), missing="indicator"),
        "code": Column(categories=("1", "2")),
        "rank": Column(categories=("0", "1"), ordered=True),
    }
    table = pd.DataFrame(
        {
            "yes": ["true", "t", "1", "TRUE", "True", "f", "0", "false", "tRUE", None],
            "code": ["1", "1.0", "2", "2.0", "x", "1", "1", "1", "1", "1"],
            "rank": ["0.0", "1.0", "1", "0", "0", "0", "0", "0", "0", "0"],
        }
    )
    target = Target(name="y", classes=("a", "b"))
    model = dpbench.PrivateClassifier(50.0, schema=Schema(target=target, columns=columns))
    model.fit(pd.concat([table] * 30, ignore_index=True), ["a", "b"] * 150)
    model.save(tmp_path / "m.json")
    found = answer(dpbench.export(tmp_path / "m.json"), table, "rows")
    np.testing.assert_allclose(found["score"].astype(float), model.decision_function(table), rtol=1e-9, atol=1e-9)
    shown = schemas.encode(model._encoder, table, predicting=True)
    assert (shown.X[:, shown.columns.index("yes missing")] > 0).tolist() == [False] * 8 + [True] * 2
    assert schemas.inspect(model._encoder, table)[:2] == [
        "yes: 1 of 10 cells are missing",
        "yes: 1 of 10 cells are no category of the schema",
    ]
    made: dict = {}
    exec(dpbench.export(tmp_path / "m.json", to="sklearn"), made)
    np.testing.assert_allclose(made["pipeline"].decision_function(table), model.decision_function(table), rtol=1e-9)


@pytest.mark.parametrize(
    "given",
    [{"classes": [0.0, float("nan")]}, {"classes": [0.0, float("inf")]}, {"categories": {"a": [float("nan"), 1]}},
     {"categories": {"a": [None, "u"]}}],
)  # fmt: skip
def test_what_is_no_number_is_no_class_and_no_category(given):
    table = pd.DataFrame({"a": [0.0, 1.0] * 20})
    model = dpbench.PrivateClassifier(1.0, **({"classes": [0, 1], "bounds": {"a": (0, 1)}} | given))
    with pytest.raises(UserError, match=r"can be no class|is a missing cell, and no category"):
        model.set_params(bounds=None if "categories" in given else model.bounds).fit(table, [0, 1] * 20)


def test_the_comment_stays_on_one_line_and_a_table_has_a_name(tmp_path):
    X = np.linspace(0, 1, 80)[:, None]
    odd = tmp_path / "m\nDROP TABLE rows; --.json"
    dpbench.PrivateClassifier(1.0, bounds=(0, 1), classes=[0, 1]).fit(X, X[:, 0] > 0.5).save(odd)
    first, second, *_ = dpbench.export(odd).splitlines()
    assert first.startswith("-- m DROP TABLE rows; --.json: (ε = 1")
    assert second.startswith("SELECT scored.*")
    for empty in ("", "  "):
        with pytest.raises(UserError, match="table: give the name of the table"):
            dpbench.export(odd, table=empty)
