"""Large tables, read in batches into arrays on disk: the same rows as when they are read at once."""

import numpy as np
import pandas as pd
import pytest

from dpbench import datasets
from dpbench.datasets import batches, tables
from dpbench.errors import DataError, UserError
from dpbench.problems import build

N = 3000


@pytest.fixture
def frame():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"age": generator.integers(20, 80, N), "job": generator.choice(["a", "b", "ä"], N)})
    frame["wage"] = np.where(np.arange(N) < 2000, 1.0, 0) + generator.lognormal(0, 1, N)
    frame["late"] = np.where(np.arange(N) < 2500, 1, 1.5)  # whole numbers in the first batches only
    return frame.assign(label=np.where(generator.random(N) < 0.4, "yes", "no"))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Everything is large, and batches are small."""
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "cache"))

    def on():
        monkeypatch.setattr(batches, "LARGE", 1)
        monkeypatch.setattr(batches, "ROWS", 128)
        monkeypatch.setattr(batches, "BYTES", 4096)

    return on


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["parquet", "csv", "csv, semicolon", "tsv", "csv.gz", "csv.bz2"])
@pytest.mark.parametrize("target", ["label", "wage"])
def test_batches_give_the_rows_that_reading_at_once_does(frame, tmp_path, small, kind, target):
    path = tmp_path / f"my.{kind.split(',')[0]}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        odd = {"sep": ";", "decimal": ","} if "semicolon" in kind else {"sep": "\t" if kind == "tsv" else ","}
        frame.to_csv(path, index=False, **odd)
    how = {"holdout": 0.2, "bounds": {"age": (0, 100)}}
    once = tables.read(path, target, **how)
    small()
    told = []
    table = tables.read(path, target, **how, progress=lambda what, share: told.append((what, share)))
    assert isinstance(table.X, np.memmap)
    assert (table.columns, table.task, table.classes) == (once.columns, once.task, once.classes)
    assert table.warnings == once.warnings
    assert table.unit == pytest.approx(once.unit)
    for one, other in ((table.X, once.X), (table.y, once.y), *zip(table.held_out, once.held_out, strict=True)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert "read in batches" in table.notes[0]
    assert len(told) > 10
    assert {what for what, _ in told} == {"first pass", "second pass"}
    assert told[-1][1] == pytest.approx(1, abs=0.2)


def test_float32_rows_stay_within_the_bound_and_make_a_problem(frame, tmp_path, small):
    frame.to_parquet(tmp_path / "my.parquet")
    wide = tables.read(tmp_path / "my.parquet", "label", holdout=0.2)
    for large in (False, True):
        if large:
            small()
        table = tables.read(tmp_path / "my.parquet", "label", holdout=0.2, precision="float32")
        assert table.X.dtype == table.held_out[0].dtype == np.float32
        assert np.linalg.norm(np.asarray(table.X, float), axis=1).max() <= 1
        np.testing.assert_allclose(table.X, wide.X, atol=5e-7)
        name = datasets.keep(table.X, table.y, "my", table.recipe, held_out=table.held_out)
        problem = build(name)
        assert problem.X.dtype == np.float32
        assert problem.row_bound == 1
        assert problem.optimum().value == pytest.approx(build_of(wide).optimum().value, abs=1e-6)


def build_of(table):
    return build(datasets.keep(table.X, table.y, "wide", table.recipe))


MISTAKES = [
    ({}, {"standardise": False}, "give row_bound, or bounds for every column"),
    ({"wage": np.nan}, {}, r"values in wage \(3,000\)"),
    ({"label": "yes"}, {}, "label has the one value yes"),
    ({}, {"target": "lable"}, "did you mean label?"),
    ({}, {"precision": "float16"}, "precision must be float64 or float32"),
]


@pytest.mark.parametrize(("change", "arguments", "message"), MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(frame, tmp_path, small, change, arguments, message):
    frame.assign(**change).to_parquet(tmp_path / "my.parquet")
    small()
    with pytest.raises(UserError, match=message) as caught:
        tables.read(tmp_path / "my.parquet", **({"target": "label"} | arguments))
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "cache").rglob("*")) if (tmp_path / "cache").exists() else True


def test_a_broken_file_is_one_line(tmp_path, small):
    (tmp_path / "my.csv").write_text("a,label\n1,2\n" + "3,4,5\n" * 2000)
    small()
    with pytest.raises(DataError, match="cannot be read as csv") as caught:
        tables.read(tmp_path / "my.csv", "label")
    assert "\n" not in str(caught.value)


def test_arrays_on_disk_leave_no_file_and_a_full_disk_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path))
    array = batches.on_disk(10, 3, np.float32)
    array[3] = 7
    assert array.sum() == 21
    assert not list(tmp_path.iterdir())
    assert batches.on_disk(0, 3, np.float64).shape == (0, 3)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(batches.os, "posix_fallocate", full)
    with pytest.raises(UserError, match="No space left on device"):
        batches.on_disk(10, 3, np.float32)


def test_cells_of_bytes_are_text_and_lists_are_refused(tmp_path, small):
    frame = pd.DataFrame({"job": [b"a", b"\xff"] * 60, "age": [7, 5, 6] * 40, "label": [b"no", b"yes"] * 60})
    frame.to_parquet(tmp_path / "b.parquet")
    frame.assign(job=[[1, 2]] * 120).to_parquet(tmp_path / "l.parquet")
    once = tables.read(tmp_path / "b.parquet", "label")
    assert (once.columns, once.classes) == (["intercept", "job=a", "job=\ufffd", "age"], ("no", "yes"))
    small()
    assert tables.read(tmp_path / "b.parquet", "label").columns == once.columns
    with pytest.raises(DataError, match="column job holds lists"):
        tables.read(tmp_path / "l.parquet", "label")


@pytest.mark.parametrize("index", [1_000_001, 2**31 - 1, 2**31])
def test_an_index_beyond_all_columns_is_one_line(tmp_path, index):
    (tmp_path / "wide.svm").write_text(f"1 1:0.5 {index}:1\n-1 2:0.3\n")
    with pytest.raises(DataError, match="beyond 1,000,000; number the columns from 1"):
        tables.read(tmp_path / "wide.svm")
