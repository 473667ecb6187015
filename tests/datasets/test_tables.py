from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from dpbench import datasets
from dpbench.datasets import tables
from dpbench.datasets.encoding import Told
from dpbench.errors import DataError, NotAtHand, UserError
from dpbench.problems import build, catalogue

N = 60


@pytest.fixture
def frame():
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": generator.uniform(20, 80, N),
            "job": generator.choice(["a", "b", "c"], N),
            "member": generator.random(N) < 0.5,
            "wage": generator.lognormal(10, 1, N),
            "label": np.where(generator.random(N) < 0.4, "yes", "no"),
        }
    )


@pytest.fixture
def csv(frame, tmp_path):
    frame.to_csv(tmp_path / "my.csv", index=False)
    return tmp_path / "my.csv"


def test_columns_are_coded_and_rows_bounded_by_a_public_number(csv, frame):
    table = tables.read(csv, "label")
    assert table.columns == ["intercept", "age", "job=a", "job=b", "job=c", "member=False", "member=True", "wage"]
    assert table.task == "binary"
    np.testing.assert_array_equal(table.y == 1, frame["label"] == "yes")
    assert np.linalg.norm(table.X, axis=1).max() <= 1 + 1e-12
    unscaled = np.column_stack([np.ones(N), (frame["age"] - frame["age"].mean()) / frame["age"].std(ddof=0)])
    short = np.linalg.norm(table.X, axis=1) < 1 - 1e-9
    np.testing.assert_allclose(table.X[short, :2], unscaled[short] / np.sqrt(5))
    assert any("age, wage" in line for line in table.warnings)
    assert any("categories" in line for line in table.warnings)


def test_bounds_given_use_no_data(csv, frame):
    table = tables.read(csv, "label", bounds={"age": (0, 100), "wage": (0, 1e5)}, drop=["job", "member"])
    assert table.warnings == []
    np.testing.assert_allclose(table.X[:, 1], (frame["age"] / 50 - 1) / np.sqrt(3))
    changed = frame.copy()
    changed.loc[0, "wage"] = 9e4
    changed.to_csv(csv, index=False)
    other = tables.read(csv, "label", bounds={"age": (0, 100), "wage": (0, 1e5)}, drop=["job", "member"])
    np.testing.assert_array_equal(table.X[1:], other.X[1:])


def test_a_row_bound_given_is_used_and_one_derived_is_a_warning(csv):
    given = tables.read(csv, "label", standardise=False, row_bound=100.0, drop=["wage", "job", "member"])
    assert not given.warnings
    assert given.X[:, 0] == pytest.approx(0.01)
    derived = tables.read(csv, "label", standardise=False, drop=["wage", "job", "member"])
    assert "largest norm in the data" in derived.warnings[0]
    assert np.linalg.norm(derived.X, axis=1).max() == pytest.approx(1)


def test_a_numeric_target_is_a_regression(csv, frame):
    table = tables.read(csv, "age", drop=["label"])
    assert table.task == "regression"
    assert (table.y.mean(), table.y.std()) == (pytest.approx(0), pytest.approx(1))
    assert any("deviation of age" in line for line in table.warnings)
    bounded = tables.read(csv, "age", drop=["label"], bounds={"age": (0, 100)})
    np.testing.assert_allclose(bounded.y, frame["age"] / 50 - 1)


DIALECTS = {
    "semicolon": ({"sep": ";"}, "utf-8", "separator semicolon"),
    "semicolon, decimal comma": ({"sep": ";", "decimal": ","}, "utf-8", "separator semicolon, decimal comma"),
    "tab": ({"sep": "\t", "decimal": ","}, "utf-8", "separator tab, decimal comma"),
    "bar": ({"sep": "|"}, "utf-8", "separator bar"),
    "byte-order mark": ({}, "utf-8-sig", ""),
    "Latin-1": ({}, "latin-1", "latin-1"),
    "UTF-16": ({}, "utf-16", "utf-16"),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_the_dialect_of_a_text_table_is_found_and_named(csv, frame, name):
    options, encoding, told = DIALECTS[name]
    frame = frame.replace({"job": {"a": "Bäcker"}})
    frame.to_csv(csv, index=False)
    plain = tables.read(csv, "label")
    frame.to_csv(csv, index=False, encoding=encoding, **options)
    table = tables.read(csv, "label")
    assert table.columns == plain.columns
    np.testing.assert_allclose(table.X, plain.X)
    assert table.notes == ([f"{csv}: read with {told}"] if told else [])


def test_latin_1_far_down_the_file_is_read_too(csv, frame, monkeypatch):
    from dpbench.datasets import delimited

    monkeypatch.setattr(delimited, "SAMPLE", 200)
    frame.loc[N - 1, "job"] = "é"
    frame.to_csv(csv, index=False, encoding="latin-1")
    table = tables.read(csv, "label")
    assert "job=é" in table.columns
    assert "latin-1" in table.notes[0]


def test_one_column_where_several_were_meant_is_explained(tmp_path):
    (tmp_path / "a.csv").write_text("age label\n1 2\n3 4\n")
    with pytest.raises(UserError, match="separators known are"):
        tables.read(tmp_path / "a.csv", "label")


@pytest.mark.parametrize("suffix", ["tsv", "parquet", "csv.gz"])
def test_every_kind_of_file_gives_the_same_rows(csv, frame, tmp_path, suffix):
    path = tmp_path / f"other.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    one, other = tables.read(csv, "label"), tables.read(path, "label")
    np.testing.assert_allclose(one.X, other.X)
    np.testing.assert_array_equal(one.y, other.y)


@pytest.mark.parametrize("dense", [True, False])
def test_svmlight(tmp_path, monkeypatch, dense):
    X = np.random.default_rng(0).random((20, 3))
    dump_svmlight_file(X, np.repeat([0, 1], 10), str(tmp_path / "a.svm"), zero_based=False)
    monkeypatch.setattr(tables, "DENSE", 1e9 if dense else 0)
    table = tables.read(tmp_path / "a.svm", row_bound=2.0)
    assert isinstance(table.X, np.ndarray) is dense
    np.testing.assert_allclose(table.X[:, 1:] if dense else table.X.toarray()[:, 1:], X / 2, rtol=1e-6)
    assert set(table.y) == {-1.0, 1.0}


MISTAKES = [
    ({"target": "lable"}, "did you mean label?"),
    ({"target": None}, "name the column to predict"),
    ({"bounds": {"agee": (0, 1)}}, "did you mean age?"),
    ({"bounds": {"age": (3, 1)}}, "bounds of age"),
    ({"row_bound": -1}, "row_bound must be"),
    ({"drop": ["x"]}, "no column 'x'"),
    ({"target": "job"}, "job has 3 classes"),
    ({"task": "binary", "target": "age"}, "a binary target has two"),
    ({"task": "ranking"}, "task must be"),
]


@pytest.mark.parametrize(("change", "message"), MISTAKES)
def test_each_mistake_is_one_line(csv, change, message):
    with pytest.raises(UserError, match=message) as caught:
        tables.read(csv, **({"target": "label"} | change))
    assert "\n" not in str(caught.value)


def test_bad_files_are_one_line(csv, frame, tmp_path):
    for change, message in (
        (
            {"age": [np.nan] + [1.0] * (N - 1)},
            r"missing or infinite \(.*\) values in age \(1\); a schema says what they count as",
        ),
        ({"age": [1e300] + [1.0] * (N - 1)}, r"beyond 1e\+150\) values in age \(1\)"),
        ({"wage": [np.inf] * 2 + [1.0] * (N - 2)}, r"wage \(2\)"),
        ({"job": [None] + ["a"] * (N - 1)}, r"job \(1\)"),
        ({"label": ["yes"] * N}, "nothing to predict"),
    ):
        frame.assign(**change).to_csv(csv, index=False)
        with pytest.raises(DataError, match=message):
            tables.read(csv, "label")
    many = pd.concat([frame.assign(job=[f"id {i} {k}" for i in range(N)]) for k in range(2)])
    many.to_csv(csv, index=False)
    with pytest.raises(DataError, match=r"job has 120 categories; drop it"):
        tables.read(csv, "label")
    for text, message in (
        ("a,label,label\n" + "1,0,0\n2,1,1\n" * 60, "two columns are called label; rename"),
        ("a,label\n" + "1,0,7\n2,1,7\n" * 60, "more fields than its first line has names"),
        ("a,label\n" + "".join(f"{i},{i % 2},7\n" for i in range(60)), "more fields than its first line has names"),
        ("1,0\n2,1\n" * 60, "put a line of names before it"),
    ):
        csv.write_text(text)
        with pytest.raises(UserError, match=message):
            tables.read(csv, "label")
    with pytest.raises(UserError, match="is a folder"):
        tables.read(tmp_path, "label")
    with pytest.raises(UserError, match="unknown kind of file"):
        tables.read(csv.rename(tmp_path / "my.xls"), "label")
    with pytest.raises(UserError, match="no such file"):
        tables.read(csv, "label")


def test_kept_data_are_found_by_name_and_their_problem_starts_at_zero(csv, tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "cache"))
    table = tables.read(csv, "label")
    name = datasets.keep(table.X, table.y, "my", table.recipe)
    assert name == datasets.keep(table.X, table.y, "my", table.recipe)
    assert name.startswith("own-my-")
    assert datasets.describe(name).rows == N
    problem = build(name)
    np.testing.assert_array_equal(problem.X, table.X)
    assert (problem.row_bound, problem.loss.name, catalogue.recipe_of(name).start) == (1.0, "logistic", "zero")
    ridge = catalogue.recipe_of(f"{name}:logistic,l2=0.1")
    assert (ridge.weights, ridge.start) == ({"l2": 0.1}, "zero")
    with pytest.raises(NotAtHand, match="run dpbench compare"):
        datasets.describe("own-other-12345678")
    with pytest.raises(UserError, match="is not NAME=WEIGHT"):
        catalogue.recipe_of(f"{name}:logistic,l2")


def test_units_are_those_of_the_recipe(monkeypatch):
    """One problem in other units: the same loss at w in the one and √d·w/target_unit in the other, but for clipping."""
    monkeypatch.setattr(catalogue, "CATALOGUE", dict(catalogue.CATALOGUE))
    unit = catalogue.recipe_of("square-unit")
    recipe = replace(unit, unit=None, target_unit=1.0, row_bound=None, weights={"l1": 41.23})
    catalogue.register("square-in-its-own-units", recipe)
    problem, scaled = build("square-in-its-own-units"), build("square-unit")
    assert scaled.row_norm <= 1 + 1e-12
    assert scaled.row_bound == 1.0
    kept = np.linalg.norm(problem.X, axis=1) < unit.unit
    assert kept.any()
    np.testing.assert_allclose(scaled.X[kept], problem.X[kept] / unit.unit)
    np.testing.assert_allclose(scaled.y, problem.y / unit.target_unit)
    w = np.random.default_rng(0).standard_normal((1, problem.d))
    penalty = recipe.weights["l1"] * np.abs(w).sum()
    in_units = w * unit.unit / unit.target_unit
    assert unit.weights["l1"] * np.abs(in_units).sum() == pytest.approx(penalty / unit.target_unit**2)
    assert scaled.data_hash != problem.data_hash


def test_the_row_bound_is_of_the_rows_in_use_alone():
    X, used = np.array([[3.0, 4.0], [0.0, 1.0], [6.0, 8.0]]), np.array([True, True, False])
    told = Told()
    np.testing.assert_allclose(tables._bounded(X, used, None, told), [[0.6, 0.8], [0.0, 0.2], [0.6, 0.8]])
    assert told.warnings[0].startswith("the bound on the rows, 5,")
    assert told.steps == ["rows divided by 5"]
    tables._bounded(X, used, 2.0, told)
    assert told.steps[-1] == "rows divided by 2, 1 of 2 shortened to 1"


def test_the_rows_held_out_are_the_others_at_the_share_asked_for(csv):
    how = {"bounds": {"age": (0, 100)}, "drop": ["job", "member", "wage"]}
    whole, parted = tables.read(csv, "label", **how), tables.read(csv, "label", **how, holdout=0.25)
    used = tables.used_rows(N, 0.25)
    for found, rows in (((parted.X, parted.y), used), (parted.held_out, ~used)):
        np.testing.assert_array_equal(found[0], whole.X[rows])
        np.testing.assert_array_equal(found[1], whole.y[rows])
    assert tables.used_rows(10_000, 0.25).mean() == pytest.approx(0.75, abs=0.02)


def test_columns_that_only_identify_rows_are_left_out_and_named(csv, frame):
    """What `to_csv` writes was a feature, and predicted whatever the file was sorted by."""
    rng = np.random.default_rng(0)
    frame.assign(id=range(1000, 1000 + N), code=rng.permutation(N) + 5).to_csv(csv)
    table = tables.read(csv, "label")
    assert not {"Unnamed: 0", "id", "code"} & set(table.columns)
    assert "Unnamed: 0, id, code only identify rows and are left out; bounds keep a column" in table.notes
    assert not any("Unnamed" in line or "id" in line.split() for line in table.warnings)
    assert "id" in tables.read(csv, "label", bounds={"id": (0, 10_000)}).columns
    frame[["label"]].to_csv(csv)
    with pytest.raises(DataError, match=r"no columns besides the target and row numbers \(Unnamed: 0\)"):
        tables.read(csv, "label")
