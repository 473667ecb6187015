"""A draft of a real file: units, separators, truth values, codes and many columns, each as a line to be decided."""

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import schema as schemas
from dpbench.errors import UserError
from dpbench.schema import Column, Target, read_table
from dpbench.schema.encoding import encoding_of, target_values
from dpbench.schema.look import CATEGORIES, CLASSES, COUNTED

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


def test_ids_that_repeat_are_told_of_the_unit_and_ids_that_do_not_are_not():
    """A draft that only drops them makes ε that of a visit, where a patient has several."""
    rows = range(400)
    table = pd.DataFrame({
        "patient": [f"P{i // 4}" for i in rows], "pid": [7 * (i // 4) % 401 for i in rows],
        "visit": [f"V{i}" for i in rows], "town": [f"T{i % 9}" for i in rows], "age": [20 + i // 4 % 60 for i in rows],
        "ill": [("no", "yes")[i % 2] for i in rows],
    })  # fmt: skip
    told = [line for line in schemas.draft(table, "ill")[1] if "unit = " in line]
    assert [line.partition(":")[0] for line in told] == ["patient", "pid"]
    assert 'put unit = "patient" at the top' in told[0]
    columns = schemas.draft(table, "ill")[0].columns
    decided = {name: msgspec.structs.replace(columns[name], decide=()) for name in ("town", "age")}
    left = schemas.Schema(target=Target(name="ill", classes=("no", "yes")), columns=decided, unit="patient")
    assert schemas.inspect(left, table[["patient", "town", "age", "ill"]]) == []  # the note is right


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


def drafted(cells, target=("u", "v", "w")):
    """The column of a draft, and the remark on it, of a table of these cells."""
    table = pd.DataFrame(
        {"a": cells, "y": np.resize(np.array(target), len(cells)), "other": np.resize([0.5, 1.5, 9], len(cells))}
    )
    schema, remarks = schemas.draft(table, "y")
    return schema.columns["a"], [line for line in remarks if line.startswith("a: ")]


PERSONS = (
    "a: if it says which person a row is of, and persons have several rows, take its entry out and put "
    'unit = "a" at the top, so that ε protects all rows of a person'
)
BORDERS = {
    "19 of 20 are numbers": (["x", *map(str, range(3, 22))], {"bounds": (3, 21)}, ()),
    "18 of 20 are numbers": (["x", "z", *map(str, range(3, 21))], {"categories": 20}, ()),
    "one number": ([4.0, None] * 5, {"bounds": (3.5, 4.5)}, ()),
    "the last exact whole number": ([2**53 - 1, 5, 5] * 5, {"bounds": (5, 2**53 - 1)}, ()),
    "the first code": ([2**53, 5, 5] * 5, {"categories": 2}, ()),
    "the first code below zero": ([-(2**53), 5, 5] * 5, {"categories": 2}, ()),
    "zeros in front": (["007", "12", "0"] * 5, {"categories": 3}, ()),
    "dates of one year": (["2020-01-31", "2020-05-01", None] * 5, {"date": ("year", "month"), "years": (2019, 2020)},
                          ("a: dates; their year and month are taken",)),
    "months first": (["1/22/2020", "3/4/2021", "5/6/2020"] * 5,
                     {"date": ("year", "month"), "years": (2020, 2021)},
                     ("a: dates; their year and month are taken",
                      'a: read with the month first; order = "dmy" or "mdy" says which is')),
    "lists": ([[1], [2], [1]] * 4, {"drop": True},
              ("a: lists or structures, of whose parts columns can be made; dropped",)),
    "one value and gaps": (["x", None] * 6, {"categories": 1}, ()),
    "one value": (["x"] * 12, {"drop": True}, ("a: the same in all rows; dropped",)),
    "nothing": ([None] * 12, {"drop": True}, ("a: empty; dropped",)),
    "as many texts as may be": ([f"t{i}" for i in range(CATEGORIES)] * 2, {"categories": CATEGORIES}, ()),
    "one text more": ([f"t{i}" for i in range(CATEGORIES + 1)] * 2, {"drop": True},
                      (PERSONS, f"a: {CATEGORIES + 1} different texts, group them first to keep them; dropped",)),
    "too many to count": ([f"t{i}" for i in range(COUNTED + 1)], {"drop": True},  # and some may come twice
                          (PERSONS, "a: more than 10,000 different texts, group them first to keep them; dropped",)),
    "the most that are counted": ([f"t{i}" for i in range(COUNTED)], {"drop": True},
                                  ("a: 10,000 different texts, group them first to keep them; dropped",)),
}  # fmt: skip


@pytest.mark.thorough_for("too many*", "the most*")
@pytest.mark.parametrize("case", BORDERS)
def test_what_a_column_is_drafted_as_at_the_borders(case):
    cells, expected, said = BORDERS[case]
    column, remarks = drafted(cells)
    found = {name: getattr(column, name) for name in expected}
    found |= {"categories": len(column.categories)} if "categories" in expected else {}
    assert (found, remarks) == (expected, [*said])
    gaps = any(cell is None for cell in cells) and not column.drop
    assert (column.missing, "missing" in column.decide) == (("indicator", True) if gaps else ("middle", False))


@pytest.mark.parametrize(("labels", "target"), [
    (range(CLASSES), {"classes": tuple(range(CLASSES))}), (range(CLASSES + 1), {"bounds": (0, CLASSES)}),
    ([-1, 1], {"classes": (-1, 1)}), ([0.5, 1.0], {"bounds": (0.5, 1.0)}), (["01", "2"], {"classes": ("01", "2")}),
    (["1.0", "2.0"], {"classes": ("1.0", "2.0")}), (["$1", "$2"], {"bounds": (1, 2), "prefix": "$"}),
    ([0, 1], {"classes": (False, True)}), (["b", "a"], {"classes": ("a", "b")}),
])  # fmt: skip
def test_what_a_target_is_drafted_as_at_the_borders(labels, target):
    table = pd.DataFrame({"a": np.resize([0.5, 1.5, 9], 60), "y": np.resize(np.array([*labels]), 60)})
    found = schemas.draft(table, "y")[0].target
    assert {name: getattr(found, name) for name in target} == target


def test_a_file_in_utf_16_is_drafted_as_one(tmp_path):
    for order in ("utf-16", "utf-16-be"):
        text = "\ufeff" * (order != "utf-16") + "a,y\n" + "".join(f"{i % 4},{'uv'[i % 2]}\n" for i in range(9))
        (tmp_path / "t.csv").write_bytes(text.encode(order))
        schema, _ = dpbench.draft_schema(tmp_path / "t.csv", "y")
        assert (schema.encoding, schema.decide) == ("utf-16", ("encoding",)), order
        assert schema.target.classes == ("u", "v")


def test_all_that_a_fit_would_change_is_a_line_each_in_the_order_of_the_columns():
    columns = {
        "age": Column(bounds=(0, 99.5), missing="indicator"), "when": Column(date=("year",), years=(2000, 2020)),
        "town": Column(categories=("Bonn", "Ulm")), "left": Column(drop=True),
    }  # fmt: skip
    whole = {"columns": columns, "unit": "id", "row_bound": 1.4}
    schema = schemas.Schema(target=Target(name="y", bounds=(0, 10), decide=("bounds",)), **whole)
    n = 1200
    table = pd.DataFrame({
        "age": [None] * 3 + ["old"] * 2 + [99.5, 100] + [50] * (n - 7), "left": 1,
        "when": ["soon", None] + ["2010-01-01"] * (n - 2), "town": ["Kiel"] * 1100 + ["Ulm"] * 100,
        "y": [None, "x", -1, 11, 12] + [5] * (n - 5), "id": ["", "01", "1"] + [f"p{i}" for i in range(n - 3)],
    })  # fmt: skip
    assert schemas.inspect(schema, table) == [
        "schema: target: bounds came from the data: decide",
        "age: 3 of 1,200 cells are missing",
        "age: 2 of 1,200 cells are no number",
        "age: 1 of 1,200 values lie beyond 0 to 99.5",
        "when: 1 of 1,200 cells are missing",
        "when: 1 of 1,200 cells are no date",
        "town: 1,100 of 1,200 cells are no category of the schema",
        "id: 1 rows without an id; they are nobody's, and move no model",
        "id: some ids differ in Unicode form or leading zeros alone, and count as several persons; where they are one, "
        "write each id in one way",
        "y: 2 rows have no usable label; they become rows of zeros",
        "y: 3 of 1,200 values lie beyond 0 to 10",
        "row_bound: 107 of 1,200 rows are shortened",
    ]
    few = table[["age", "when", "town"]].head(0)
    assert schemas.inspect(schema, few) == ["schema: target: bounds came from the data: decide"]


@pytest.mark.parametrize(("target", "cells", "read"), [
    (Target(name="y", classes=(0, 1)), ["0", "1", "1.0"], [0, 1, 1]),
    (Target(name="y", classes=(False, True)), ["TRUE", "False", "true"], [True, False, True]),
    (Target(name="y", bounds=(0, 9), decimal=","), ["1,5", "2", "9"], [1.5, 2.0, 9.0]),
])  # fmt: skip
def test_a_table_that_is_read_has_the_target_that_models_predict(tmp_path, target, cells, read):
    """Else scikit-learn would score labels of one type against texts."""
    table = pd.DataFrame({"a": ["1", "2", "3"], "y": cells})
    table.to_csv(tmp_path / "t.csv", index=False)
    schema = schemas.Schema(target=target, columns={"a": Column(bounds=(0, 9))})
    found = read_table(tmp_path / "t.csv", schema)["y"].tolist()
    assert found == read
    assert [*map(type, found)] == [*map(type, read)]
    table[["a"]].to_csv(tmp_path / "t.csv", index=False)  # of rows to predict for
    assert list(read_table(tmp_path / "t.csv", schema)) == ["a"]
