"""Columns that only identify rows are found in parts, and nothing that measures is taken for one."""

import numpy as np
import pytest

from dpbench.row_numbers import RowNumbers

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
