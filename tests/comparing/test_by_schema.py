"""A large table and its schema: the same rows in batches as at once, with nothing of the data in them."""

import numpy as np
import pandas as pd
import pytest

from dpbench.comparing import by_schema
from dpbench.datasets import batches
from dpbench.errors import DataError, UserError
from dpbench.schema import Column, Schema, Target, tables

COLUMNS = {
    "Unnamed: 0": Column(drop=True),
    "age": Column(bounds=(0, 80), missing="indicator"),
    "town": Column(categories=("Bonn", "Ulm")),
    "rooms": Column(categories=("1", "2", "3")),
    "born": Column(date=("year", "month"), years=(1950, 2010)),
}
TARGETS = {"binary": Target(name="rich", classes=("no", "yes")), "regression": Target(name="wage", bounds=(0, 50))}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "cache"))
    rng, n = np.random.default_rng(0), 1500
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-5, 100, n).round(1)),
            "town": rng.choice(["Bonn", "Ulm", "Kiel"], n),
            "rooms": rng.integers(1, 5, n),
            "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "D"),
            "rich": rng.choice(["no", "yes", "who knows"], n),
            "wage": rng.uniform(-5, 60, n),
        }
    )
    frame.loc[rng.random(n) < 0.05, "rich"] = None
    return frame


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_batches_give_the_rows_that_reading_at_once_does(table, tmp_path, monkeypatch, kind, task, precision):
    target = TARGETS[task]
    path = tmp_path / f"t.{kind}"
    frame = table[[*(name for name in COLUMNS if name in table), target.name]]
    if kind == "parquet":
        frame.reset_index(names="Unnamed: 0").to_parquet(path)
    else:
        frame.to_csv(path)  # with its row numbers
    schema = Schema(target=target, columns=COLUMNS)
    how = {"holdout": 0.2, "precision": precision, "reading": {}}
    once = by_schema.read(path, schema, **how)
    monkeypatch.setattr(batches, "LARGE", 1)
    monkeypatch.setattr(tables, "ROWS", 128)
    told = []
    found = by_schema.read(path, schema, **how, progress=lambda what, share: told.append(what))
    assert {"first pass", "second pass"} == set(told)
    assert len(told) > 6
    assert isinstance(found.X, np.memmap)
    assert found.X.dtype == once.X.dtype == precision
    for one, other in ((found.X, once.X), (found.y, once.y), *zip(found.held_out, once.held_out, strict=True)):
        np.testing.assert_array_equal(one, other)
    assert (found.task, found.columns, found.unit, found.classes) == (once.task, once.columns, once.unit, once.classes)
    assert "read in batches" in found.notes[0]
    assert found.notes[1:] == once.notes
    assert np.linalg.norm(found.X.astype(float), axis=1).max() <= 1


def test_mistakes_are_one_line_in_batches_too(table, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "LARGE", 1)
    path = tmp_path / "t.csv"
    table.drop(columns=["rich", "wage"]).to_csv(path)
    schema = Schema(target=TARGETS["binary"], columns=COLUMNS)
    how = {"holdout": 0.2, "precision": "float64", "reading": {}}
    with pytest.raises(DataError, match="there is no column 'rich'"):
        by_schema.read(path, schema, **how)
    table.drop(columns="wage").assign(extra=1).to_csv(path)
    with pytest.raises(UserError, match="the schema does not have the column 'extra'"):
        by_schema.read(path, schema, **how)
    three = Schema(target=Target(name="rich", classes=("a", "b", "c")), columns=COLUMNS)
    with pytest.raises(UserError, match="compare takes two"):
        by_schema.read(path, three, **how)
