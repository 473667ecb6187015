"""A draft and a check read a file in parts, and say what they say of the whole table."""

import gzip

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import schema as schemas
from dpbench.errors import DataError, UserError
from dpbench.schema import tables
from tests.schema.test_schema import EVERY_KIND, MESSY


@pytest.fixture
def few(monkeypatch):
    """Parts of a few rows."""
    monkeypatch.setattr(tables, "ROWS", 7)


def table():
    rng = np.random.default_rng(0)
    frame = pd.concat([MESSY.drop(columns="Unnamed: 0")] * 3, ignore_index=True)
    frame["amount"] = rng.normal(0, 100, len(frame)).round(2)
    frame.loc[rng.random(len(frame)) < 0.1, ["amount", "born"]] = None
    frame.loc[150:, "town"] = "Kiel"  # which the first parts do not have
    frame["count"] = range(1, len(frame) + 1)
    frame.loc[[3, 170], "age"] = [-5, 300]
    return frame


@pytest.mark.thorough_but("t.csv")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.csv.zip", "t.csv.bz2"])
def test_a_file_in_parts_is_drafted_and_checked_as_a_whole(name, tmp_path, few):
    file, frame = tmp_path / name, table()
    if name.endswith("parquet"):
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False, sep="\t" if "tsv" in name else ",")
    assert len(list(tables.parts(file, None))) > 10
    assert dpbench.draft_schema(file, "y") == schemas.draft(frame, "y")
    schema = schemas.draft(frame.iloc[:100], "y")[0]
    assert dpbench.check_data(file, schema) == schemas.inspect(schema, frame)
    assert any("Kiel" not in line and "category" in line for line in schemas.inspect(schema, frame))


def test_every_kind_of_column_is_counted_alike_in_parts():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(-50, 200, 300),
            "sex": rng.choice(["f", "m", "x"], 300),
            "size": rng.choice(["s", "m", "?"], 300),
            "when": rng.choice(["2001-02-03", "no date"], 300),
            "income": rng.choice(["1e9", "12", "", "abc"], 300),
            "y": rng.choice(["yes", "maybe"], 300),
        }
    )
    whole = schemas.inspect(EVERY_KIND, frame)
    bounded = schemas.Schema(target=EVERY_KIND.target, columns=EVERY_KIND.columns, row_bound=1.5)
    parts = [frame.iloc[i : i + 17] for i in range(0, 300, 17)]
    assert schemas.inspect(EVERY_KIND, iter(parts)) == whole
    assert len(whole) >= 7
    assert schemas.inspect(bounded, iter(parts)) == schemas.inspect(bounded, frame)
    assert "rows are shortened" in schemas.inspect(bounded, frame)[-1]


def test_row_numbers_go_on_over_parts_and_a_repeated_start_is_none():
    frame = pd.DataFrame({"n": [*range(40), *range(40)], "a": [0.5, 1.5] * 40, "y": ["u", "v"] * 40})
    parts = [frame.iloc[:40], frame.iloc[40:]]
    assert not schemas.draft(iter(parts), "y")[0].columns["n"].drop
    whole = frame.assign(n=range(80))
    assert schemas.draft(iter([whole.iloc[:3], whole.iloc[3:]]), "y")[0].columns["n"].drop


def test_a_byte_far_down_the_file_that_is_not_utf_8(tmp_path):
    lines = ["town,y", *["Ulm,u", "Bonn,v"] * 120_000, "Köln,u"]
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode("latin-1")))
    schema, _ = dpbench.draft_schema(tmp_path / "t.csv.gz", "y")
    assert schema.columns["town"].categories == ("Bonn", "Köln", "Ulm")


def test_what_cannot_be_read_is_one_line(tmp_path, few):
    (tmp_path / "none.csv").write_text("a,y\n")
    (tmp_path / "more.csv").write_text("a,y\n" + "1,u\n" * 60 + "1,2,u\n")
    (tmp_path / "fields.csv").write_text("a,y\n1,2,u\n3,4,v\n")
    (tmp_path / "broken.csv.gz").write_bytes(gzip.compress(b"a,y\n1,u\n" * 9)[:-9])
    for name in ("none", "more", "fields"):
        with pytest.raises(DataError) as caught:
            dpbench.draft_schema(tmp_path / f"{name}.csv", "y")
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"broken\.csv\.gz: cannot be read"):
        dpbench.draft_schema(tmp_path / "broken.csv.gz", "y")
    with pytest.raises(UserError, match="there is no such file"):
        dpbench.check_data(tmp_path / "gone.csv", EVERY_KIND)
    (tmp_path / "twice.csv").write_text("a,a,y\n" + "1,2,u\n3,4,v\n" * 9)
    with pytest.raises(UserError, match="two columns are called a"):
        dpbench.draft_schema(tmp_path / "twice.csv", "y")


def test_different_texts_are_counted_up_to_a_number():
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(10_500)], "a": [0.5, 1.5] * 5250, "y": ["u", "v"] * 5250})
    _, remarks = schemas.draft(frame, "y")
    assert "name: more than 10,000 different texts, group them first to keep them; dropped" in remarks
    _, remarks = schemas.draft(frame.iloc[:600], "y")
    assert "name: 600 different texts, group them first to keep them; dropped" in remarks
