"""The steps of a schema: what stands in a step, and each cell read by itself."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.schema import Column, Schema, Target
from dpbench.schema.cells import codes, date_part, numbers
from dpbench.schema.encoding import FRAME, Numbers, encoding_of, target_values
from tests.schema.test_schema import CLASSES, Untold, made

NUMBER = Target(name="y", bounds=(0, 10))


def test_numbers_that_stand_together_are_one_step_and_an_indicator_is_of_one():
    schema = made(a={"bounds": (0, 1)}, b={"bounds": (0, 1)}, c={"bounds": (0, 1), "missing": "indicator"},
                  d={"bounds": (0, 1)})  # fmt: skip
    steps = encoding_of(schema, intercept=True).steps
    assert [step.columns for step in steps if isinstance(step, Numbers)] == [("a", "b"), ("c",), ("d",)]


def test_an_array_has_the_columns_of_the_schema_by_their_places():
    schema = made(a={"bounds": (0, 1)}, b={"drop": True}, c={"bounds": (0, 4), "missing": "drop"})
    X = np.array([[0.5, 9, 1.0], [1, 9, np.nan]])
    encoding = encoding_of(schema, intercept=False, positional=True)
    by_name = encoding_of(schema, intercept=False).rows(pd.DataFrame(X, columns=list("abc")), fitting=True)
    np.testing.assert_array_equal(encoding.rows(X, fitting=True), by_name)
    assert by_name[1].tolist() == [0, 0]


def test_a_table_of_several_blocks_has_the_rows_of_one():
    n = FRAME // 3 + 5  # two columns and the intercept: the last block has a few rows
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y"], n)})
    schema = Schema(target=CLASSES, columns={"a": Column(bounds=(-1, 1)), "b": Column(categories=("x",))})
    whole = encoding_of(schema, intercept=True).rows(frame)
    for i in (0, FRAME // 3 - 1, FRAME // 3, n - 1):
        np.testing.assert_array_equal(encoding_of(schema, intercept=True).rows(frame.iloc[[i]])[0], whole[i])
    np.testing.assert_array_equal(encoding_of(schema, intercept=True).rows(frame, dtype=np.float32), np.float32(whole))


ODD = ["1", " 1", "1.0", 1, 1.0, True, "True", "TRUE", np.True_, "1e0", "01", "1_0", "x", "", None, pd.NA, np.nan, b"1",
       Decimal("1"), Decimal("sNaN"), 1 + 0j, 10**400, "12345678901234567", 12345678901234567, "2020-01-01",
       datetime.date(2020, 1, 1), pd.Timestamp("2020-01-01"), Untold(), "١", "1\u00a0", "\v1",
       np.float32(0.1)]  # fmt: skip


def test_each_cell_is_read_by_itself():
    """In a column of all kinds of cells each one is read as alone, in whatever order they stand."""
    labels = ("1", "x", "True")
    read = {
        "number": numbers,
        "class": lambda cells: codes(cells, labels),
        "year": lambda cells: date_part(cells, "year"),
    }
    for name, of in read.items():
        alone = np.array([of([cell])[0] for cell in ODD], float)
        np.testing.assert_array_equal(of(ODD), alone, err_msg=name)
        np.testing.assert_array_equal(of(pd.Series(ODD[::-1], dtype=object))[::-1], alone, err_msg=name)
        for one in ODD:
            for other in ODD[::3]:
                np.testing.assert_array_equal(of([one, other]), [of([one])[0], of([other])[0]], err_msg=name)


def test_only_ascii_blanks_are_cut_off():
    """What `\\s` means to the patterns of an ONNX graph."""
    cells = [f"{blank}x{blank}" for blank in "\t\n\f\r "] + [f"x{blank}" for blank in "\v\x1c\x85\xa0\u2003\u3000"]
    assert codes(cells, ("x",)).tolist() == [0] * 5 + [-1] * 6


def test_a_label_that_is_not_known_is_told_apart():
    values, known = target_values(CLASSES, ["yes", "no", None, "maybe", " yes "])
    assert (values.tolist(), known.tolist()) == ([1, 0, 0, 0, 1], [True, True, False, False, True])
    values, known = target_values(NUMBER, [5, 20, None, "x"])
    assert (values.tolist(), known.tolist()) == ([0, 1, 0, 0], [True, True, False, False])
    whole = Target(name="y", classes=("0", "1"))
    for strange in ("x", None, [1]):  # the last one makes text or objects of all others, where NumPy may choose
        assert target_values(whole, [1, 0, 1.0, strange])[0].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("classes", [(0, 1), ("0", "1"), (False, True)])
def test_truth_values_are_the_classes_0_and_1(classes):
    """y > 0 beside classes=[0, 1] is usual; a fit could not say that it knows none of the labels."""
    target, cells = Target(name="y", classes=classes), [False, True, np.True_, 1, 0.0, "1", "true", "FALSE"]
    values, known = target_values(target, cells)
    assert known.all()
    assert values.tolist() == [0, 1, 1, 1, 0, 1, 1, 0]
    assert target_values(target, np.array([False, True]))[0].tolist() == [0, 1]
    assert not target_values(Target(name="y", classes=(1, 2)), cells[:3])[1].any()  # there True would be half of it


def test_columns_that_are_not_those_of_the_schema_are_refused_before_a_row_is_read():
    encoding = encoding_of(made(age={"bounds": (0, 100)}, name={"drop": True}), intercept=True)
    for frame, line in [
        (pd.DataFrame({"Age": [1]}), "there is no column 'age', which the schema has; did you mean Age"),
        (pd.DataFrame({"Unnamed: 0": [0], "age": [1]}), "does not have the column 'Unnamed: 0': give bounds"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "two columns are called age"),
        (pd.DataFrame({"age": pd.to_datetime(["2020-01-01"])}), "columns.age: dates have no bounds"),
        (np.ones((1, 1)), "give a pandas DataFrame"),
    ]:
        with pytest.raises(UserError, match=line):
            encoding.rows(frame)
    assert encoding.rows(pd.DataFrame({"age": [1], "y": ["no"]})).shape == (1, 2)
    encoding, frame = encoding_of(made(**{"0": {"bounds": (0, 100)}}), intercept=True), pd.DataFrame([[1]])
    with pytest.raises(UserError, match=r"the name of column 0 in X is no text.*: X\.columns = X\.columns\.astype"):
        encoding.rows(frame)
    frame.columns = frame.columns.astype(str)
    assert encoding.rows(frame).shape == (1, 2)


@pytest.mark.parametrize("cell", ["2020-03-01", " 2020-03-01", "2020-03-01\t", "\n 2020-03-01 ", "2020-03-01 \r\n"])
def test_blanks_around_a_date_are_no_part_of_it(cell):
    assert [date_part(pd.Series([cell]), part)[0] for part in ("year", "month")] == [2020, 3]


def test_a_month_may_be_an_english_word():
    cells = pd.Series(
        ["14-Mar-2020", "14 march 2020", "14/SEP/2020 10:00", "14-Foo-2020", "14-Marc-2020", "31-Feb-2020"]
    )
    np.testing.assert_array_equal(date_part(cells, "month", "dmy"), [3, 3, 9, np.nan, np.nan, np.nan])
    assert np.isnan(date_part(cells, "month")).all()  # without an order dates are ISO's
