"""Typed rows: checked as they are read, with what is missing as None where it is a text.

Columns that only identify rows are found in parts, and nothing that measures is taken for one.
"""

from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pytest

from dpbench import frames
from dpbench.frames import RowNumbers


class Line(NamedTuple):
    problem: str | None
    epsilon: float
    private: bool


def table(**columns):
    given = {"problem": ["a", "b"], "epsilon": [1, np.nan], "private": [True, False], "seed": [0, 1]}
    return pd.DataFrame(given | columns)


def test_a_row_has_the_columns_of_its_kind():
    first, second = frames.records(table(), Line)
    assert first == Line("a", 1.0, True)
    assert np.isnan(second.epsilon)
    assert frames.records(table()[:0], Line) == []


@pytest.mark.parametrize("dtype", [object, "string"])
def test_a_text_that_is_missing_is_none(dtype):
    found = frames.records(table(problem=pd.Series([None, "b"], dtype=dtype)), Line)
    assert [one.problem for one in found] == [None, "b"]


def test_cells_of_numpy_in_a_column_of_objects_are_numbers():
    found = frames.records(table(epsilon=pd.Series([np.float64(0.5), np.int64(2)], dtype=object)), Line)
    assert [one.epsilon for one in found] == [0.5, 2.0]


@pytest.mark.parametrize("wrong", [{"epsilon": ["1", "2"]}, {"problem": [1, 2]}, {"private": [1.0, np.nan]}])
def test_a_cell_of_another_type_is_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        frames.records(table(**wrong), Line)


def test_groups_are_the_rows_of_each_key():
    class Key(NamedTuple):
        problem: str
        epsilon: float

    rows = pd.DataFrame({"problem": ["b", "a", "b"], "epsilon": [1.0, 1.0, 1.0], "seed": [0, 1, 2]})
    as_they_stand = [(key, part["seed"].tolist()) for key, part in frames.groups(rows, Key)]
    assert as_they_stand == [(Key("b", 1.0), [0, 2]), (Key("a", 1.0), [1])]
    assert [key.problem for key, _ in frames.groups(rows, Key, sort=True)] == ["a", "b"]
    assert list(frames.groups(rows[:0], Key)) == []


def test_mappings_have_every_column():
    assert frames.mappings(table()[:1]) == [{"problem": "a", "epsilon": 1.0, "private": True, "seed": 0}]


rng = np.random.default_rng(0)
FOUND = {
    "from 0": np.arange(50),
    "from 1": np.arange(1, 51),
    "three of them": np.arange(7, 10),
    "from a million": np.arange(10**6, 10**6 + 50),
    "below 0": np.arange(-10, 30),
    "gaps": np.cumsum(rng.integers(1, 9, 50)),
    "in any order": rng.permutation(50) + 100,
    "large": rng.permutation(3000) + 2**52,
}
NONE = {
    "a measure": rng.normal(size=50),
    "years": rng.integers(1990, 2020, 50),
    "one twice": np.r_[np.arange(25), np.arange(25)],
    "one moved": np.r_[np.arange(30), 29, np.arange(31, 50)],
    "few that ascend": np.cumsum(rng.integers(2, 9, 10)),
    "one missing": np.r_[np.arange(20.0), np.nan, np.arange(21.0, 40.0)],
    "infinite": np.r_[np.arange(20.0), np.inf],
    "the same sum": np.r_[np.arange(50)[:-3], [46, 48, 50]],
    "halves": np.arange(50) / 2,
    "a constant": np.full(50, 3),
    "two": np.arange(2),
}


def column(values, part, name="a"):
    found = RowNumbers(name)
    for i in range(0, len(values), part):
        found.add(np.asarray(values[i : i + part], dtype=float))
    return found.are


@pytest.mark.parametrize("part", [1, 7, 5000])
def test_identifiers_are_found_whatever_the_parts(part):
    assert [what for what, values in FOUND.items() if not column(values, part)] == []
    assert [what for what, values in NONE.items() if column(values, part)] == []


def test_a_column_without_a_name_is_one():
    assert column(NONE["a measure"], 50, "Unnamed: 3")
    assert column([], 1, " ")
