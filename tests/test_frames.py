"""Typed rows: checked as they are read, with what is missing as None where it is a text."""

from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pytest

from dpbench import frames


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
