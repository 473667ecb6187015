"""What is public of a table: files that are refused, rows that no cell can make longer, drafts that nobody may use."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench import schema as schemas
from dpbench.errors import DataError, UserError
from dpbench.schema import Column, Schema, Target
from dpbench.schema.cells import date_part
from dpbench.schema.encoding import encoding_of, target_values

CLASSES = Target(name="y", classes=("no", "yes"))


class Encoded(NamedTuple):
    X: np.ndarray
    columns: list
    unit: float


def encode(schema, frame, *, intercept=True, predicting=False):
    encoding = encoding_of(schema, intercept=intercept)
    return Encoded(encoding.rows(frame, fitting=not predicting), encoding.names, encoding.unit)


def made(**columns):
    return Schema(target=CLASSES, columns={name: Column(**given) for name, given in columns.items()})


EVERY_KIND = made(
    age={"bounds": (0, 100), "missing": "indicator"},
    sex={"categories": ("f", "m")},
    size={"categories": ("s", "m", "l"), "missing": "indicator"},
    when={"date": ("year", "month", "weekday"), "years": (2000, 2020), "missing": "indicator"},
    income={"bounds": (-1e5, 1e5), "missing": "drop"},
    name={"drop": True},
)


def test_numbers_go_from_their_bounds_to_one_and_categories_stay_zero_and_one():
    frame = pd.DataFrame({"age": [0, 50, 250], "sex": ["f", "m", "x"]})
    schema = made(age={"bounds": (0, 100)}, sex={"categories": ("f", "m")})
    X, columns, unit = encode(schema, frame)
    assert columns == ["intercept", "age", "sex=f", "sex=m"]
    assert unit == pytest.approx(3**0.5)
    np.testing.assert_allclose(X * unit, [[1, -1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 0]], atol=1e-15)
    assert encode(schema, frame, intercept=False).unit == pytest.approx(2**0.5)


def test_categories_dates_and_missing_cells():
    frame = pd.DataFrame(
        {
            "age": [None, "old"],
            "sex": [None, "f"],
            "size": ["s", None],
            "when": ["2010-07-01", "soon"],
            "income": ["1", "2"],
            "name": ["Ann", "Bo"],
        }
    )
    X, columns, unit = encode(EVERY_KIND, frame)
    row = dict(zip(columns, X.T * unit, strict=True))
    assert (row["age"].tolist(), row["age missing"].tolist()) == ([0, 0], [1, 1])
    assert (row["size=s"].tolist(), row["size missing"].tolist()) == ([1, 0], [0, 1])
    assert row["when (year)"].tolist() == [0, 0]  # 2010 is the middle of 2000 to 2020; "soon" is no date
    assert row["when missing"].tolist() == [0, 1]
    assert not any("name" in column for column in columns)


def test_a_row_that_is_dropped_is_zeros_and_is_kept_to_predict():
    frame = pd.DataFrame({"a": [1.0, None], "b": [1.0, 1.0]})
    schema = made(a={"bounds": (0, 2), "missing": "drop"}, b={"bounds": (0, 2)})
    assert encode(schema, frame).X[1].tolist() == [0, 0, 0]
    assert encode(schema, frame, predicting=True).X[1, 0] > 0


CELLS = st.one_of(
    st.floats(), st.integers(-(10**20), 10**20), st.text(max_size=8), st.none(), st.booleans(), st.binary(max_size=4),
    st.datetimes(), st.sampled_from(["f", "m", "s", "2010-01-01", "1e400", "nan", "inf"]),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(*[CELLS] * 6), min_size=1, max_size=6), bound=st.sampled_from([None, 0.5, 1.5]))
def test_no_cell_makes_a_row_longer_than_one_or_stops_it(rows, bound):
    frame = pd.DataFrame([dict(zip(EVERY_KIND.columns, row, strict=True)) for row in rows], dtype=object)
    schema = Schema(target=CLASSES, columns=EVERY_KIND.columns, row_bound=bound)
    for intercept in (True, False):
        X = encode(schema, frame, intercept=intercept).X
        assert np.isfinite(X).all()
        assert (np.linalg.norm(X, axis=1) <= 1 + 1e-12).all()


def test_the_bound_on_a_row_is_reached():
    """A unit smaller than the number of groups would be wrong: this row has length 1."""
    frame = pd.DataFrame({"a": [0.0, 9.0], "b": ["x", "y"]})
    schema = made(a={"bounds": (0, 9), "missing": "indicator"}, b={"categories": ("x", "y")})
    np.testing.assert_allclose(np.linalg.norm(encode(schema, frame).X, axis=1), 1)
    dated = made(when={"date": ("year", "month", "weekday"), "years": (2000, 2017), "missing": "indicator"})
    last = pd.DataFrame({"when": ["2017-12-31"]})  # a Sunday: every part is at its end
    for intercept in (True, False):
        np.testing.assert_allclose(np.linalg.norm(encode(dated, last, intercept=intercept).X), 1)


def test_a_row_is_encoded_by_itself():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["x", "y", "z"], 50)})
    schema = made(a={"bounds": (-1, 1)}, b={"categories": ("x", "y")})
    whole = encode(schema, frame).X
    for i in (0, 17, 49):
        np.testing.assert_array_equal(encode(schema, frame.iloc[[i]]).X[0], whole[i])


class Untold:
    """A cell that raises when it is to be text."""

    def __str__(self):
        raise RuntimeError("a cell")


def test_a_cell_of_any_kind_changes_no_other_row_and_stops_nothing():
    columns = {"a": Column(bounds=(0, 10)), "b": Column(categories=("x",)), "c": Column(date=("year",))}
    schema = Schema(target=Target(name="y", classes=("0", "1")), columns=columns)
    usual = pd.DataFrame({"a": ["1_000", "x", 3, 2**63], "b": "x", "c": "2020-01-01"}, dtype=object)
    expected = encode(schema, usual).X
    for cell in (1 + 0j, 10**400, -(10**5000), "\ud800", Untold(), b"\xff", None):
        table = pd.concat([usual, pd.DataFrame({name: pd.Series([cell], dtype=object) for name in usual})])
        found = encode(schema, table).X
        np.testing.assert_array_equal(found[:4], expected)
        assert np.isfinite(found[4]).all()
        assert not target_values(schema.target, table["a"])[1].any()


def test_a_date_in_nanoseconds_leaves_the_years_of_other_rows():
    dates = ["9999-12-31", "1500-01-01", "2020-01-01T10:00:00.5", "now", None]
    alone = [date_part([cell], "year")[0] for cell in dates]
    for cell in ("2020-01-01T00:00:00.123456789", pd.Timestamp("2020-01-01 00:00:00.123456789"), "9999", "\ud800", 5):
        found = date_part(pd.Series([*dates, cell], dtype=object), "year")
        np.testing.assert_array_equal(found[:-1], alone)
    assert alone[:3] == [9999, 1500, 2020]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[columns.a]\nbounds = [0, 1]", "toml: missing required field `target`"),
        ("[target]\nname='y'\n[columns.a]\nbounds=[0,1]", "target: give classes or bounds, one of the two"),
        ("[target]\nname='y'\nclasses=['a']\n[columns.a]\nbounds=[0,1]", "target: give two classes or more, all of th"),
        ("[target]\nname='y'\nclasses=['a','b']\n[columns.a]\nbounds=[1,0]", "columns.a: bounds must be low < high"),
        ("[target]\nname='y'\nclasses=['a','b']\n[columns.a]\nbounds=[0,inf]", "columns.a: bounds must be low < high"),
        ("[target]\nname='y'\nclasses=['a','b']\n[columns.a]\ndrop=true", "every column is dropped"),
        ("[target]\nname='y'\nclasses=['a','b']\n[columns.a]\nbounds=[0,1]\ncategories=['x']", ": give one of bounds"),
        ("[target]\nname='y'\nclasses=['a','b']\n[columns.a]\nbound=[0,1]", "unknown field `bound`"),
        ("[target]\nname='y'\nclasses=['a','b']\n[columns.a]\ndate=['yeer']", 'did you mean year'),
        ("[target]\nname='y'\nclasses=['a','b']\n[columns.y]\nbounds=[0,1]", "columns.y is the target"),
        ("row_bound=-1\n[target]\nname='y'\nclasses=['a','b']\n[columns.a]\nbounds=[0,1]", "row_bound must be"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_one_line(tmp_path, text, line):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(UserError) as error:
        schemas.load(tmp_path / "s.toml")
    assert line in str(error.value)
    assert "\n" not in str(error.value)
    assert "`float`" not in str(error.value)


def test_columns_that_are_not_those_of_the_schema_are_refused():
    schema = made(age={"bounds": (0, 100)})
    with pytest.raises(UserError, match=r"there is no column 'age', which the schema has; did you mean Age"):
        encode(schema, pd.DataFrame({"Age": [1]}))
    with pytest.raises(UserError, match=r"does not have the column 'Unnamed: 0': give bounds, categories or date"):
        encode(schema, pd.DataFrame({"Unnamed: 0": [0], "age": [1]}))
    with pytest.raises(UserError, match="two columns are called age"):
        encode(schema, pd.DataFrame([[1, 2]], columns=["age", "age"]))


MESSY = pd.DataFrame(
    {
        "Unnamed: 0": range(60),
        "age": [20 + i % 50 for i in range(58)] + [None, None],
        "town": ["Ulm", "Bonn", None] * 20,
        "born": ["1990-05-01", "1970-01-31"] * 30,
        "id": [f"c{i}" for i in range(60)],
        "flag": [True, False] * 30,
        "y": [0, 1, 1, 0, 1, 1] * 10,
    }
)


def test_a_draft_marks_all_that_it_took_from_the_data_and_survives_its_file(tmp_path):
    schema, remarks = schemas.draft(MESSY, "y")
    assert schema.columns["Unnamed: 0"].drop
    assert schema.columns["id"].drop
    assert schema.columns["age"] == Column(bounds=(20, 69), missing="indicator", decide=("bounds", "missing"))
    assert schema.columns["town"].categories == ("Bonn", "Ulm")
    assert schema.columns["born"].years == (1970, 1990)
    assert schema.columns["flag"].categories == (False, True)
    assert schema.target == Target(name="y", classes=(0, 1), decide=("classes",))
    assert {line.split(":")[0] for line in remarks} >= {"Unnamed", "id", "born"}
    (tmp_path / "s.toml").write_text(schema.toml())
    assert schemas.load(tmp_path / "s.toml") == schema
    assert schema.toml().count("# decide: found in the data") == sum(
        len(one.decide) for one in (*schema.columns.values(), schema.target)
    )
    with pytest.raises(UserError, match=r"columns.Unnamed: 0: drop; columns.age: bounds, missing; .* and \d more"):
        schema.require_decided()


def test_a_row_number_written_by_to_csv_is_dropped_in_a_draft(tmp_path):
    frame = MESSY[["age", "y"]].fillna(0)
    frame.to_csv(tmp_path / "t.csv")
    schema, _ = schemas.draft(pd.read_csv(tmp_path / "t.csv"), "y")
    assert schema.columns["Unnamed: 0"].drop
    frame.insert(0, "row", range(1, 61))
    assert schemas.draft(frame, "y")[0].columns["row"].drop


def test_a_table_that_no_model_can_be_made_of():
    with pytest.raises(UserError, match="there is no column 'z'"):
        schemas.draft(MESSY, "z")
    with pytest.raises(DataError, match="no column besides the target can be used"):
        schemas.draft(MESSY[["id", "y"]], "y")
    with pytest.raises(DataError, match="fewer than two different values"):
        schemas.draft(pd.DataFrame({"a": [1.0, 2.5], "y": ["x", "x"]}), "y")


def test_what_a_fit_would_replace_is_listed_for_the_owner():
    schema = made(age={"bounds": (0, 60), "missing": "indicator"}, town={"categories": ("Ulm",)})
    frame = MESSY[["age", "town"]].assign(y=["yes"] * 59 + ["maybe"])
    lines = schemas.inspect(schema, frame)
    assert "age: 2 of 60 cells are missing" in lines
    assert any("values lie beyond 0 to 60" in line for line in lines)
    assert "town: 20 of 60 cells are missing" in lines
    assert "town: 20 of 60 cells are no category of the schema" in lines
    assert "y: 1 rows have no usable label; they become rows of zeros" in lines
    assert "y: no row has the class no" in lines
    numbered = made(row={"bounds": (0, 60)})
    assert "row number" in schemas.inspect(numbered, pd.DataFrame({"row": range(60)}))[0]
    assert schemas.inspect(made(a={"bounds": (0, 1)}), pd.DataFrame({"a": [0.1, 0.7, 0.2]})) == []


def test_dates_of_parquet_are_dates():
    """Arrow's days come as `datetime.date`, which were taken for unreadable cells."""
    import datetime

    schema = Schema(
        target=Target(name="y", classes=("a", "b")), columns={"d": Column(date=("year", "day"), years=(2000, 2020))}
    )
    as_text = pd.DataFrame({"d": ["2004-05-06", "2019-12-31", None], "y": "a"})
    as_days = as_text.assign(d=[datetime.date(2004, 5, 6), datetime.date(2019, 12, 31), None])
    assert np.array_equal(encode(schema, as_days).X, encode(schema, as_text).X)
    assert encode(schema, as_days).X[:2, 1:].all()


def test_a_column_named_by_a_number_is_one_line():
    with pytest.raises(ValueError, match=r"columns: the name 0 is no text; X\.columns\.astype"):
        Schema(target=Target(name="y", bounds=(0, 1)), columns={0: Column(bounds=(0, 1))})


@pytest.mark.parametrize("years", [(2020, 2020), (2021, 2020), (2000.0, math.inf)])
def test_years_are_a_range(years):
    with pytest.raises(ValueError, match="must be low < high"):
        Column(date=("year",), years=years)
