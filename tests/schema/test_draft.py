"""A draft of a real file: units, separators, truth values, codes and many columns, each as a line to be decided."""

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import schema as schemas
from dpbench.errors import UserError
from dpbench.schema import Column, Target, read_table
from dpbench.schema.encoding import encoding_of, target_values

N = 120
REAL = {
    "price": [f"${80_000 + 1_237 * (7 * i % 40):,}" for i in range(N)],
    "amount": [f"{12_345.67 + i % 40:,.2f}" for i in range(N)],
    "share": [f"{14.7 + i % 40:.1f} %" for i in range(N)],
    "since": [f"{24 + i % 30} years" for i in range(N)],
    "born": [f"{1 + i % 28}/{1 + i % 12}/{1950 + i % 40}" for i in range(N)],
    "zip": [f"0{1234 + i % 7}" for i in range(N)],
    "account": [str(10**17 + 7919 * (7 * i % N)) for i in range(N)],
    "constant": ["x"] * N,
    "empty": [""] * N,
    "size": [str(i % 9 + 0.5) for i in range(N)],
    "copy": [str(i % 9 + 0.5) for i in range(N)],
    "member": [("TRUE", "FALSE")[i % 2] for i in range(N)],
    "sold": [("FALSE", "TRUE")[i % 3 == 0] for i in range(N)],
}


@pytest.fixture
def real(tmp_path):
    pd.DataFrame(REAL).to_csv(tmp_path / "real.csv", index=False)
    return tmp_path / "real.csv"


def test_units_separators_and_truth_values_are_steps_of_the_draft(real):
    schema, remarks = dpbench.draft_schema(real, "sold")
    columns = schema.columns
    assert schema.target == Target(name="sold", classes=(False, True), decide=("classes",))
    assert columns["member"].categories == (False, True)
    assert (columns["price"].prefix, columns["price"].thousands, columns["price"].bounds) == (
        "$",
        ",",
        (80_000, 128_243),
    )
    assert (columns["amount"].thousands, columns["amount"].bounds[0]) == (",", 12_345.67)
    assert (columns["share"].suffix, columns["share"].bounds) == ("%", (14.7, 53.7))
    assert (columns["since"].suffix, columns["since"].bounds) == ("years", (24, 53))
    assert columns["born"] == Column(date=("year", "month"), years=(1950, 1989), order="dmy", decide=("years", "order"))
    assert columns["zip"].categories[0] == "01234"
    for name, why in {
        "account": "different codes", "constant": "the same in all rows", "empty": "empty", "copy": "the same as size",
    }.items():  # fmt: skip
        assert columns[name].drop
        assert any(line.startswith(f"{name}: ") and why in line for line in remarks), name
    assert {"prefix", "thousands"} <= set(columns["price"].decide)
    assert 'price: numbers written with prefix = "$", thousands = ","' in remarks


def test_a_draft_survives_its_file_reads_its_table_and_finds_nothing_to_replace(real, tmp_path):
    schema, _ = dpbench.draft_schema(real, "sold", out=tmp_path / "real.toml")
    loaded = schemas.load(tmp_path / "real.toml")
    assert loaded == schema
    assert {line.split(":")[0] for line in dpbench.check_data(real, loaded)} == {"schema"}  # all that is left to decide
    table = read_table(real, loaded)
    X = encoding_of(loaded, intercept=True).rows(table)
    assert np.isfinite(X).all()
    assert (np.ptp(X, axis=0) > 0).sum() == X.shape[1] - 1  # all but the intercept tell rows apart
    assert target_values(loaded.target, table["sold"])[0].tolist() == [int(i % 3 == 0) for i in range(N)]


@pytest.mark.parametrize(
    ("texts", "written"),
    [
        (["1.234,5", "12,25", "7"], {"thousands": ".", "decimal": ","}),
        (["1,5", "12,25", "7"], {"decimal": ","}),
        (["1 234,5", "12,25", "7"], {"thousands": " ", "decimal": ","}),
        (["1'234.5", "12.25", "7"], {"thousands": "'"}),
        (["€ 1.234.567", "€ 7", "€ 8"], {"prefix": "€", "thousands": ".", "decimal": ","}),
        (["7 €", "8 €", "9,5 €"], {"suffix": "€", "decimal": ","}),
        (["-1", "1e5", ".5"], {}),
    ],
)
def test_how_numbers_are_written(texts, written):
    frame = pd.DataFrame({"a": texts * 5, "y": ["u", "v", "w"] * 5})
    column = schemas.draft(frame, "y")[0].columns["a"]
    assert column.bounds is not None
    assert column == Column(bounds=column.bounds, decide=("bounds", *written), **written)


def test_the_order_of_dates_that_both_fit_is_named_to_be_decided():
    both = pd.DataFrame({"d": ["1/2/2020", "3/4/2021", "5/6/2020"] * 5, "y": ["u", "v", "w"] * 5})
    schema, remarks = schemas.draft(both, "y")
    assert schema.columns["d"].order == "dmy"
    assert any('order = "dmy" or "mdy"' in line for line in remarks)
    american = both.assign(d=["1/22/2020", "3/4/2021", "5/6/2020"] * 5)
    assert schemas.draft(american, "y")[0].columns["d"].order == "mdy"
    days = [*(f"{day}/2/2020" for day in range(1, 30)), "unknown"]
    assert schemas.draft(pd.DataFrame({"d": days, "y": ["u", "v"] * 15}), "y")[0].columns["d"].order == "dmy"
    named = both.assign(d=["22-Jan-2020", "04-mar-2021", "6 May 2020"] * 5)
    assert schemas.draft(named, "y")[0].columns["d"].order == "dmy"
    assert (
        schemas.draft(both.assign(d=["Jan 22, 2020", "March 4, 2021", "May 6, 2020"] * 5), "y")[0].columns["d"].order
        == "mdy"
    )
    iso = both.assign(d=["2020-01-22", "2021-03-04", "2020-05-06"] * 5)
    assert schemas.draft(iso, "y")[0].columns["d"].order is None


def test_columns_between_that_are_not_alike_leave_one_decision_and_a_file_that_is_read_back(tmp_path):
    """A constant, a copy, a percentage: each cut the pattern in two entries of one key, which no TOML file may have."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 60)), columns=[f"gene_{i}" for i in range(60)]).astype(object)
    frame["gene_20"], frame["gene_30"] = 1.5, frame["gene_3"]
    frame["gene_40"] = [f"{value:.1f} %" for value in range(40)]
    frame = frame.assign(**{f"flag{i}": rng.choice(["f", "t", "u"], 40) for i in range(20)}, y=["a", "b"] * 20)
    frame["flag9"] = frame["flag1"]
    frame.to_csv(tmp_path / "g.csv", index=False)
    schema, _ = dpbench.draft_schema(tmp_path / "g.csv", "y", out=tmp_path / "g.toml")
    decided = ["gene_*", "gene_20", "gene_30", "gene_40", "flag*", "flag9"]
    assert [name for name, _, _ in schema.groups()] == decided
    assert set(schema.columns) == set(frame.columns) - {"y"}
    assert schemas.load(tmp_path / "g.toml") == schema


def test_two_entries_of_one_pattern_keep_the_order_of_the_columns_in_a_file(tmp_path):
    wide, narrow = Column(categories=(False, True)), Column(categories=(0, 1))  # which Python calls equal
    columns = {f"q{i}": narrow if 10 <= i < 20 else wide for i in range(30)} | {"q**": wide}
    schema = schemas.Schema(target=Target(name="y", classes=("a", "b")), columns=columns)
    assert [name for name, _, _ in schema.groups()] == ["q*", "q***", "q****", "q**"]
    (tmp_path / "q.toml").write_text(schema.toml())
    again = schemas.load(tmp_path / "q.toml")
    assert repr(again) == repr(schema)  # the order too


def test_many_columns_alike_are_one_decision(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 60)), columns=[f"gene_{i}" for i in range(60)])
    frame.insert(0, "age", rng.uniform(20, 80, 30))
    frame["y"] = ["a", "b"] * 15
    frame.to_csv(tmp_path / "g.csv", index=False)
    schema, remarks = dpbench.draft_schema(tmp_path / "g.csv", "y", out=tmp_path / "g.toml")
    assert schema.undecided == ["columns.age: bounds", "columns.gene_*: bounds", "target: classes"]
    assert any("60 columns under one pattern" in line for line in remarks)
    genes = frame.filter(like="gene_").to_numpy()
    assert schema.columns["gene_17"].bounds == pytest.approx((genes.min(), genes.max()))
    text = (tmp_path / "g.toml").read_text()
    assert text.count("\n[") == 3
    assert '[columns."gene_*"]' in text
    assert schemas.load(tmp_path / "g.toml") == schema
    for wrong, line in [
        (text.replace('"gene_3"', '"gen_3"'), "columns.gene_*: gen_3 is none of this pattern"),
        (text + '\n[columns.gene_3]\nbounds = [0, 1]\n', "columns.gene_3 has two entries"),
        (text.replace('"gene_*"', '"gene"'), 'names are for a pattern, as [columns."gene_*"]'),
        (text.replace('names = [', 'names = [1, '), "names must be a list of text"),
    ]:  # fmt: skip
        (tmp_path / "w.toml").write_text(wrong)
        with pytest.raises(UserError) as caught:
            schemas.load(tmp_path / "w.toml")
        assert line in str(caught.value)


@pytest.mark.parametrize("sign", [";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_the_separator_and_the_encoding_are_proposed(sign, encoding, tmp_path):
    rows = [sign.join([f"{i},5", ("Köln", "Ulm")[i % 2], str(i % 2)]) for i in range(30)]
    (tmp_path / "t.csv").write_bytes("\n".join([sign.join(["a", "town", "y"]), *rows, ""]).encode(encoding))
    schema, _ = dpbench.draft_schema(tmp_path / "t.csv", "y", out=tmp_path / "t.toml")
    assert (schema.separator, schema.encoding) == (sign, encoding)
    assert schema.decide == (("separator",) if encoding == "utf-8" else ("separator", "encoding"))
    assert schema.columns["a"].decimal == ","
    assert schema.columns["town"].categories == ("Köln", "Ulm")
    assert schema.target.classes == (0, 1)
    assert schemas.load(tmp_path / "t.toml") == schema
    table = read_table(tmp_path / "t.csv", schema)
    assert (encoding_of(schema, intercept=False).rows(table)[:, 1:] > 0).any(axis=0).all()


def test_labels_keep_their_type_there_and_back(tmp_path):
    for classes in ((0, 1), (False, True), ("no", "yes"), (1.5, 2.5), (1, 2, 3)):
        schema = schemas.Schema(
            target=Target(name="y", classes=classes),
            columns={"a": Column(categories=classes), "b": Column(bounds=(0, 1))},
        )
        (tmp_path / "s.toml").write_text(schema.toml())
        loaded = schemas.load(tmp_path / "s.toml")
        assert loaded == schema
        assert [*map(type, loaded.target.classes)] == [*map(type, classes)]
        assert [*map(type, loaded.columns["a"].categories)] == [*map(type, classes)]
    for twice in ((1, "1"), (True, "True"), ("a", " a ")):
        with pytest.raises(ValueError, match="must be different"):
            Target(name="y", classes=twice)
