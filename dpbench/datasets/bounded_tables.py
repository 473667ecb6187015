"""Real tables in human bounds: `tables.toml` says what each column measures, in which unit, between which bounds.

A number becomes 2(v - low)/(high - low) - 1, shortened to [-1, 1]; a category a column per code; a missing number 0,
and 1 in a column of its own where `missing` lists it. With the intercept no row is longer than
√(1 + numbers + categories), by which all are divided: ‖x‖₂ ≤ 1 whatever the rows hold, so no statistic of them is used.
With a `unit` rows of one person are known by it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile
from dpbench.errors import DataError
from dpbench.files import read_toml


def _numbers(one: dict[str, Any]) -> dict[str, list[Any]]:
    """Column → [unit, low, high], of numbers and of flags."""
    return {**one.get("numbers", {}), **{name: ["flag", 0, 1] for name in one.get("flags", ())}}


def _read(one: dict[str, Any], raw: Raw) -> Any:
    """The table as words."""
    import pandas as pd
    import sklearn.datasets

    if "bundled" in one:
        return getattr(sklearn.datasets, one["bundled"])(as_frame=True).frame.astype(str)
    (path,) = (raw[name] for name in one["files"])
    header: dict[str, Any] = {"names": one["header"]} if "header" in one else {}
    return pd.read_csv(path, sep=one.get("separator", ","), dtype=str, **header)


def _scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.clip(2 * (values - low) / (high - low) - 1, -1.0, 1.0)


def prepare(one: dict[str, Any], raw: Raw) -> Arrays:
    """(X, y) of an entry of tables.toml, and whose the rows are where it has a unit; without a target none is kept."""
    import pandas as pd

    ((name, rule),), unit = one["y"].items(), [one["unit"]] if "unit" in one else []
    table = _read(one, raw)
    absent = {column for column in (name, *_numbers(one), *one.get("categories", ()), *unit) if column not in table}
    if absent:
        raise DataError(f"no column {', '.join(sorted(absent))} found")
    table = table[table[name].notna()]
    numbers = table[[*_numbers(one)]].apply(pd.to_numeric, errors="coerce")
    columns = [np.ones(len(table))]
    for column, (_, low, high) in _numbers(one).items():
        columns.append(np.nan_to_num(_scaled(numbers[column].to_numpy(np.float64), low, high)))
    columns += [numbers[column].isna().to_numpy(np.float64) for column in one.get("missing", ())]
    for column, codes in one.get("categories", {}).items():
        columns += [table[column].eq(code).to_numpy(np.float64) for code in codes]
    longest = np.sqrt(1 + len(_numbers(one)) + len(one.get("categories", {})))
    X = np.column_stack(columns) / longest
    if isinstance(rule, list):
        y = _scaled(table[name].astype(float).to_numpy(), *rule[1:])
    elif "above" in rule:
        y = np.where(table[name].astype(float) > rule["above"], 1.0, -1.0)
    else:
        y = np.where(table[name].isin(rule["positive"]), 1.0, -1.0)
    return X, y, *(np.unique(table[column], return_inverse=True)[1] for column in unit)


def _specs() -> Iterator[DatasetSpec]:
    told = read_toml(Path(__file__).with_name("tables.toml"))
    publishers = told.pop("publishers")
    for name, one in told.items():
        place = publishers.get(one.get("publisher"), {"licence": "as distributed with scikit-learn (BSD-3-Clause)"})
        folder = {"folder": one.get("folder", name)}
        yield DatasetSpec(
            name=name,
            title=one["title"],
            prepare=functools.partial(prepare, one),
            rows=one["rows"],
            persons=one.get("persons"),
            columns=1
            + len(_numbers(one))
            + len(one.get("missing", ()))
            + sum(map(len, one.get("categories", {}).values())),
            task="regression" if isinstance(next(iter(one["y"].values())), list) else "binary",
            files=tuple(
                RawFile(
                    file, place["folder"].format(**folder), (place["source"].format(file=file, **folder),), (digest,)
                )
                for file, digest in one.get("files", {}).items()
            ),
            recipe="columns by the bounds in tables.toml, missing numbers 0, an intercept; rows within ‖x‖₂ ≤ 1",
            licence=place["licence"],
            citation=one["citation"],
        )


SPECS = [*_specs()]
