"""A file of rows: two files that differ in one row are read alike in all others, whatever stands in that one."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpbench.errors import DataError, UserError
from dpbench.schema import Column, Schema, Target, read_table, tables
from dpbench.schema.cells import Notation, numbers
from dpbench.schema.encoding import encoding_of, target_values

KINDS = {
    "number": Column(bounds=(0, 1e18)),
    "indicated": Column(bounds=(0, 100), missing="indicator"),
    "dropped": Column(bounds=(-10, 100), missing="drop"),
    "money": Column(bounds=(0, 1e6), prefix="$", thousands=","),
    "share": Column(bounds=(0, 100), suffix="%", missing="indicator"),
    "code": Column(categories=("01", "1", "1e3", "1.50", "TRUE", "12345678901234567", "x")),
    "truth": Column(categories=(True, False)),
    "place": Column(categories=(1, 2, 3), missing="indicator"),
    "born": Column(date=("year", "month"), missing="indicator"),
    "seen": Column(date=("day",), order="dmy"),
}
# What stands in the other rows: each has a text that pandas reads in two ways, as the rest of the column has it.
CELLS = {
    "number": ["1", "0.1234567890123456789", "12345678901234567", "True", "", "1e3", " 7", "1", "False", "007"],
    "indicated": ["True", "False", "TRUE", "true", "True", "False", "True", "False", "True", "True"],
    "dropped": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "010"],
    "money": ["$81,216", "12,345.67", "1000", "-$5", "$ 7", "1,5", "", "9", "8", "$1,000,000"],
    "share": ["14.7 %", "14.7%", "14", "", "1e1 %", "%", "100", "1", "2", "3"],
    "code": ["01", "1", "1e3", "1.50", "TRUE", "12345678901234567", "01", "01", "1", "01"],
    "truth": ["True", "FALSE", "1", "0", "true", "t", "True", "True", "False", "False"],
    "place": ["1", "2", "3", "1.0", "2", "3", "1", "1", "2", "03"],
    "born": ["2020-01-01", "9999-12-31", "20200101", "1500-01-01", "2020", "", "2020-02-03T10:00:00.5", "x", "1", "2"],
    "seen": ["31/12/2020", "1.2.1999", "2020-12-30", "13-01-2020", "", "01/13/2020", "2020", "1", "5/5/2005 1:00", "x"],
}  # fmt: skip
NASTY = ["", "x", "1.5", "1", "0", "True", "NA", "nan", "-inf", "1e400", "99999999999999999999", "0x1A", "1_000", ";",
         "2020-01-01", "2020-01-01T00:00:00.123456789", "31/12/2020", "9999", "$1", "1,5", '"', 'a"b', "\n", "\r", "\t",
         " ", "\u00e9", "\u0661", "\x00", "#"]  # fmt: skip
CLASSES, NUMBER = Target(name="y", classes=(0, 1)), Target(name="y", bounds=(0, 5))


def quoted(cell):
    """A cell as any writer of csv puts it into a file."""
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set('",\n\r') else cell


def read(path, schema):
    """Rows and labels of a file, as a fit gets them."""
    table = read_table(path, schema)
    X = encoding_of(schema, intercept=True).rows(table, fitting=True)
    return np.column_stack([X, *target_values(schema.target, table["y"])])


def write(path, kind, cells, labels):
    lines = [f"{quoted(cell)},{label}" for cell, label in zip(cells, labels, strict=True)]
    path.write_bytes("\n".join([f"{kind},y", *lines, ""]).encode())


@pytest.mark.thorough_for("indicated", "dropped", "money", "share", "truth", "place")  # one of a kind stays
@pytest.mark.parametrize(("kind", "target"), [*((kind, CLASSES) for kind in KINDS), ("number", NUMBER)],
                         ids=[*KINDS, "number-number"])  # fmt: skip
def test_one_row_changes_no_other_of_any_kind(kind, target, tmp_path, monkeypatch):
    """Replace one row by anything, and no other row is read in another way: what no ε would cover."""
    schema = Schema(target=target, columns={kind: KINDS[kind]})
    labels = ["0", "1", "1.0", "0", "1", "0", "1", "0", "1", "2"]
    path, cells = tmp_path / "t.csv", CELLS[kind]
    write(path, kind, cells, labels)
    usual = read(path, schema)
    assert 0 < usual[:, -1].sum() <= 10
    assert usual[:, 1:-2].any()
    for cell in NASTY:
        # In the middle of the only part, in the first of many and alone in the last.
        for rows_of_a_part, at in ((tables.ROWS, 4), (3, 0), (3, 9)):
            monkeypatch.setattr(tables, "ROWS", rows_of_a_part)
            write(path, kind, [*cells[:at], cell, *cells[at + 1 :]], [*labels[:at], quoted(cell), *labels[at + 1 :]])
            found = read(path, schema)
            np.testing.assert_array_equal(np.delete(found, at, 0), np.delete(usual, at, 0), err_msg=repr((cell, at)))


LINES = ['"', 'a"', 'a"b"', 'a"b,"', 'a"b,"0', '"u"x,"', '"a', '"a,0', '"a"b,0', '""",0', '",",0', ',"', "1,2,3", ",,,",
         "", "0", '"x\ny",1', '"x","', "\x00"]  # fmt: skip


def test_a_row_that_is_none_is_refused_in_words_that_say_nothing_of_it_or_changes_no_other(tmp_path, monkeypatch):
    schema = Schema(target=CLASSES, columns={"a": Column(categories=("u", "v,w", 'x"y'))})
    path = tmp_path / "t.csv"
    rows = ["u,0", '"v,w",1', '"x""y",0', '"u","1"', '"u"', '"v,w","0"']  # an open quote may end at '"u"', unseen

    def read_lines(lines, end):
        path.write_bytes(("\n".join(["a,y", *lines]) + end).encode())
        return read(path, schema)

    usual, said = read_lines(rows, "\n"), set()
    assert usual[:, -1].sum() == 5
    assert usual[:, 1:4].any(axis=1).all()
    for line in LINES:
        for size in (tables.ROWS, 2):
            monkeypatch.setattr(tables, "ROWS", size)
            for at in range(len(rows)):
                try:
                    found = read_lines([*rows[:at], line, *rows[at + 1 :]], "\n")
                except DataError as error:
                    said.add(str(error))
                    continue
                np.testing.assert_array_equal(
                    np.delete(found, at, 0), np.delete(usual, at, 0), err_msg=repr((line, at))
                )
    assert said == {f"{path}: {tables.BROKEN}"}
    np.testing.assert_array_equal(read_lines(rows, ""), usual)  # the last line may have no end


def test_a_quote_at_the_end_of_a_chunk_is_judged_by_what_follows(tmp_path, monkeypatch):
    """The text comes in chunks, and a quote's neighbours may be in others."""
    text = '"a",y\n' + '"x""y",0\n"u","1"\n' * 50
    whole = tables._Framed(_Text(text), ",")
    assert whole.read() == text
    for size in (1, 2, 3, 7):
        stream = tables._Framed(_Text(text), ",")
        assert "".join(chunks(stream, size)) == text
        for broken in (text + '"', text.replace('"u"', '"u"x', 1), text.replace('"u"', 'x"u"', 1)):
            stream = tables._Framed(_Text(broken), ",")
            with pytest.raises(ValueError, match="a quote"):
                list(chunks(stream, size))


def chunks(stream, size):
    return iter(lambda: stream.read(size), "")


class _Text:
    def __init__(self, text):
        self.text = text

    def read(self, size=-1):
        size = len(self.text) if size < 0 else size
        found, self.text = self.text[:size], self.text[size:]
        return found


TOKENS = ["1", "-1", "+1", "007", "1.", ".5", "1e5", "1E-5", "0.1234567890123456789", "1e400",
          "123456789012345678901234567890", "-1e400", "1e-400", "inf", "-Infinity", "INF", " 1", "1 ", "\t1", "\v1",
          "True", "FALSE", "true", "9007199254740993", "18446744073709551615", "-9223372036854775808", "5e-324",
          "2.2250738585072011e-308"]  # fmt: skip


def test_what_pandas_takes_for_a_number_is_read_so_as_text(tmp_path):
    """A column of numbers may be typed or text, as its other rows have it: each token is the same number in both."""
    schema, path = Schema(target=NUMBER, columns={"a": Column(bounds=(0, 1))}), tmp_path / "t.csv"
    for token in TOKENS:
        path.write_text(f"a,y\n{token},1\n")
        typed = numbers(read_table(path, schema)["a"])
        path.write_text(f"a,y\n{token},1\nword,1\n")
        np.testing.assert_array_equal(typed, numbers(read_table(path, schema)["a"])[:1], err_msg=token)
        for other in TOKENS[:: len(TOKENS) // 5]:
            path.write_text(f"a,y\n{token},1\n{other},1\n")
            found = numbers(read_table(path, schema)["a"])[:1]
            np.testing.assert_array_equal(typed, found, err_msg=f"{token} beside {other}")


def test_a_decimal_comma_is_the_schemas_word_whatever_else_the_column_holds(tmp_path):
    comma = {"bounds": (0, 3), "decimal": ","}
    schema = Schema(target=Target(name="y", **comma), columns={"a": Column(**comma)}, separator=";")
    path = tmp_path / "t.csv"
    path.write_text("a;y\n1,5;2,5\n3;0\n")
    usual = read(path, schema)
    np.testing.assert_allclose(usual[0, 1:3], [0, 2 / 3])
    beside = Schema(target=schema.target, columns=schema.columns | {"b": Column(bounds=(0, 3))}, separator=";")
    path.write_text("a;b;y\n1,5;1.5;2,5\n")
    np.testing.assert_allclose(read(path, beside)[0, 1:4], [0, 0, 2 / 3])  # one column with a comma, one with a point
    for cell in ("x", "1.5", ""):
        path.write_text(f"a;y\n1,5;2,5\n{cell};{cell}\n")
        np.testing.assert_array_equal(read(path, schema)[0], usual[0])
        assert read(path, schema)[1, -1] == 0


def test_whole_numbers_of_parquet_stay_whole_beside_a_gap(tmp_path):
    columns = {"a": Column(categories=("12345678901234567", "12345678901234568"))}
    schema, path = Schema(target=CLASSES, columns=columns), tmp_path / "t.parquet"
    for last in (12345678901234568, None):
        cells = pa.array([12345678901234567, 12345678901234568, last], pa.int64())
        pq.write_table(pa.table({"a": cells, "y": [0, 1, 1]}), path)
        assert (read(path, schema)[:2, 1:3] > 0).tolist() == [[True, False], [False, True]]
    pd.DataFrame({"a": [[1], [2]], "y": [0, 1]}).to_parquet(path)
    with pytest.raises(UserError, match="column a holds lists"):
        read_table(path, schema)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.csv.zip", "t.tsv", "t.parquet"])
def test_a_file_of_any_kind_is_one_table(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 7)
    frame = pd.DataFrame({"a": np.arange(30.0), "extra": "x", "y": [0, 1] * 15})
    path = tmp_path / name
    if name.endswith("parquet"):
        frame.set_axis(frame.index[::-1]).to_parquet(path)  # an index of its own, which is no column
    else:
        text = frame.to_csv(index=False, sep="\t" if "tsv" in name else ",").encode()
        pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}.get(name.split(".")[-1], bytes)
        if name.endswith("zip"):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("t.csv", text)
        else:
            path.write_bytes(pack(text))
    schema = Schema(target=CLASSES, columns={"a": Column(bounds=(0, 30)), "extra": Column(drop=True)})
    table = read_table(path, schema)
    assert table.columns.tolist() == ["a", "y"]
    assert table.index.tolist() == list(range(30))
    assert table["a"].tolist() == frame["a"].tolist()
    assert len(list(tables.parts(path, schema))) == 5
    assert list(next(iter(tables.parts(path, None))).columns) == ["a", "extra", "y"]


def test_what_cannot_be_read_is_one_line(tmp_path):
    schema = Schema(target=CLASSES, columns={"a": Column(bounds=(0, 30))})
    for name, content, line in [
        ("none.csv", b"a,y\n", "no rows"),
        ("empty.csv", b"", "no rows"),
        ("cut.csv.gz", gzip.compress(b"a,y\n1,0\n" * 9)[:-9], "cut.csv.gz: cannot be read: Compressed file ended"),
        ("no.parquet", b"PAR1", "no.parquet: cannot be read as parquet"),
        ("no.zip.csv", b"PKxx", "cannot be read: File is not a zip file"),
        ("semicolon.csv", b"a;y\n1;0\n", "its first line is one name: write separator"),
        ("names.csv", b"b,y\n1,0\n", "there is no column 'a', which the schema has"),
        ("more.csv", b"a,b,y\n1,1,0\n", "does not have the column 'b'"),
        ("twice.csv", b"a,a,y\n1,1,0\n", "two columns are called a"),
        ("fields.csv", b"a,y\n1,2,0\n3,4,1\n", "a row has too many fields"),
        ("t.xls", b"", "give a csv, tsv or parquet file"),
    ]:  # fmt: skip
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=line) as caught:
            read_table(tmp_path / name, schema)
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="there is no such file"):
        read_table(tmp_path / "gone.csv", schema)
    with pytest.raises(UserError, match="is a folder"):
        read_table(tmp_path, schema)


def test_the_encoding_is_the_schemas(tmp_path):
    columns = {"a": Column(categories=("Köln", "Ulm"))}
    path = tmp_path / "t.csv"
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        path.write_bytes("a,y\nKöln,0\nUlm,1\n".encode(encoding))
        schema = Schema(target=CLASSES, columns=columns, encoding=encoding.removesuffix("-sig"))
        assert (read(path, schema)[:, 1:3] > 0).tolist() == [[True, False], [False, True]]
    path.write_bytes(b"a,y\nK\xf6ln,0\nUlm,1\n")  # one byte that is no UTF-8 is in its own cell alone
    assert (read(path, Schema(target=CLASSES, columns=columns))[:, 1:3] > 0).tolist() == [[False, False], [False, True]]


def test_a_column_has_the_name_that_stands_there_whatever_it_means_elsewhere(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"NA,,null,y,NaN\n1,2,3,4,5\n")
    assert tables.names_of(path, ",", "utf-8") == ["NA", "Unnamed: 1", "null", "y", "NaN"]


@pytest.mark.parametrize(("text", "number"), [
    ("-$5", -5), ("+$5.5", 5.5), ("$-5", -5), ("-$-5", None), ("+$-5", None), ("-$-51", None), ("$5$", None),
    ("$1,234.5", 1234.5), ("5", 5), ("$", None), ("", None), ("$5e3", 5000), ("$.5", 0.5), ("$,5", None),
])  # fmt: skip
def test_a_number_has_one_sign_and_its_prefix(text, number):
    found = Notation(prefix="$", thousands=",").number(text)
    assert found == number or (number is None and np.isnan(found))
