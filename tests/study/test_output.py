import re
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

from dpbench.algorithms import registry
from dpbench.algorithms.base import Algorithm
from dpbench.errors import UserError
from dpbench.study.output import Figure, Table, escaped, latex, markdown
from dpbench.study.style import LOOKS, figure_style, gap, look, tick_alike


def test_markdown_columns_line_up():
    text = markdown(pd.DataFrame({"a|b": ["x", "longer"], "n": [1, 22]}))
    lines = text.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert re.fullmatch(r"\|[-|]+\|", lines[1])
    assert "a\\|b" in lines[0]


def test_latex_escapes_what_pdflatex_would_choke_on():
    text = latex(pd.DataFrame({"ε": ["5 % of a_b & c"]}), "δ ≤ n⁻²")
    assert r"$\varepsilon$" in text
    assert r"5 \% of a\_b \& c \\" in text
    assert text.isascii()


def test_no_text_reaches_latex_as_a_command_and_every_letter_is_kept_or_one():
    text = latex(pd.DataFrame({"a": [r"\input{/etc/passwd} $x$ { łódź 漢"]}), r"\input{/etc/passwd}")
    assert text.count(r"\textbackslash{}input\{/etc/passwd\}") == 2
    assert r"\input{" not in text
    assert "łódź" in text
    assert "漢" not in text
    for letter in map(chr, range(32, 127)):
        told = escaped(letter)
        assert told == letter or told.startswith(("\\", "$", "''")), told


@pytest.fixture
def drawn(tmp_path):
    def draw(name):
        with figure_style() as plt:
            figure, axis = plt.subplots(layout="constrained")
            axis.plot([1, 2], [3, 4], label="ε")
            Figure(figure, pd.DataFrame({"x": [1.5]}), ["a1a: run it"], "Caption.").save(tmp_path / name, "Title")
            assert figure.get_layout_engine() is None  # one layout for all formats
        return {path.suffix: path for path in tmp_path.glob(f"{name}.*")}

    return draw


def test_a_figure_comes_in_every_format_with_its_data_and_gaps(drawn):
    files = drawn("f")
    assert files.keys() == {".pdf", ".png", ".svg", ".csv", ".md"}
    assert "gap: a1a: run it" in files[".md"].read_text()
    assert files[".csv"].read_text() == "x\n1.5\n"


def test_a_panel_without_rows_breaks_its_command_before_each_option():
    axis = MagicMock()
    gap(axis, "run it: dpbench run --experiment a --profile full")
    assert axis.text.call_args.args[2] == "run it: dpbench run\n--experiment a\n--profile full"


def test_the_same_rows_give_the_same_bytes(drawn):
    first, second = drawn("one"), drawn("two")
    for suffix in (".pdf", ".png", ".svg", ".csv"):
        assert first[suffix].read_bytes() == second[suffix].read_bytes()


def test_a_cell_of_lines_is_one_cell():
    frame = pd.DataFrame({"a": ["DP-GD\nscore 1_0"]})
    assert "| DP-GD<br>score 1_0 |" in markdown(frame)
    assert r"\shortstack[l]{DP-GD\\score 1\_0}" in latex(frame, "c")


def test_a_table_comes_in_every_format(tmp_path):
    Table(pd.DataFrame({"a": ["1"]}), pd.DataFrame({"b": [np.pi]})).save(tmp_path / "t", "Title")
    assert (tmp_path / "t.csv").read_text() == "b\n3.1415927\n"
    assert (tmp_path / "t.md").read_text().startswith("# Title\n\n| a")
    assert "\\toprule" in (tmp_path / "t.tex").read_text()


@pytest.mark.parametrize(
    ("raised", "cause", "told"),
    [
        (OSError(28, "No space left on device"), None, "cannot write to {folder}: No space left on device"),
        (RuntimeError("png"), OSError(13, "Permission denied"), "cannot write to {folder}: Permission denied"),
        (ZeroDivisionError("odd"), None, None),
    ],
)
def test_a_folder_that_cannot_be_written_is_a_line_and_any_other_error_stays(tmp_path, raised, cause, told):
    class Odd(Table):
        def _write(self, stem, title):
            raise raised from cause

    with pytest.raises(UserError if told else type(raised)) as error:
        Odd(pd.DataFrame()).save(tmp_path / "t", "Title")
    assert str(error.value) == (told.format(folder=tmp_path) if told else "odd")
    assert not list(tmp_path.iterdir())


def test_what_a_table_says_is_made_of_the_data_it_saves():
    records = [{"n": 3, "failed": 1, "T": 9}, {"n": 12345, "failed": 0, "T": 9}]
    columns = {"rows": "{n:,}", "failed": "{failed} of {T}", "all": lambda one: "no" if one["failed"] else "yes"}
    table = Table.of(records, columns, ["a gap"], unsaved=["T"])
    assert table.frame.to_dict("list") == {
        "rows": ["3", "12,345"],
        "failed": ["1 of 9", "0 of 9"],
        "all": ["no", "yes"],
    }
    assert table.data.to_dict("list") == {"n": [3, 12345], "failed": [1, 0]}
    assert table.gaps == ["a gap"]
    assert list(Table.of([], columns, unsaved=["T"]).frame) == ["rows", "failed", "all"]


def test_looks_are_told_apart():
    look.cache_clear()
    assert len({(colour, marker) for colour, marker, *_ in LOOKS.values()}) == len(LOOKS)
    assert look("unknown-method").label == look("unknown-method").legend == "unknown-method"
    assert (look("dp-gd").line, look("dp-gd-oracle").line) == ("-", "--")
    assert look("dp-gd-oracle").legend == f"{look('dp-gd-oracle').label} (not private)"
    assert look("unknown-method") == look("unknown-method")


def test_a_plug_in_is_drawn_under_its_title(monkeypatch):
    class OneShot(Algorithm):
        """A method of another package."""

        name, title, private = "one-shot", "One Shot", False

    point = SimpleNamespace(load=lambda: OneShot)
    monkeypatch.setattr(registry, "_plugins", lambda: {"one-shot": point})
    assert look("one-shot").legend == "One Shot (not private)"


@pytest.mark.parametrize(
    ("high", "labels"),
    [
        (0.9, {"0.05", "0.1", "0.2", "0.5"}),
        (90.0, {"0.1", "1", "10"}),
    ],
)
def test_logarithmic_ticks_have_one_style(tmp_path, high, labels):
    with figure_style() as plt:
        figure, (axis, own) = plt.subplots(1, 2)
        for each in (axis, own):
            each.plot([1, 2], [0.03, high])
            each.set_yscale("log")
        own.set_yticks([0.3], labels=["mine"])
        Figure(figure, pd.DataFrame({"x": [1]})).save(tmp_path / "one", "One")
        shown = {tick.get_text() for tick in axis.get_yticklabels()}
        assert labels <= shown
        assert {tick.get_text() for tick in axis.get_yticklabels(minor=True)} <= {""}
        assert [tick.get_text() for tick in own.get_yticklabels()] == ["mine"]


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((1, 99), ["1", "2", "5", "10", "20", "50"]),
        ((1, 100), ["1", "10", "100"]),  # two decades
        ((0.1, 2e5), ["0.1", "1", "10", "100", "1000", "10000", "100000"]),
        ((0.1, 2.1e5), None),  # powers of ten
        ((1.1e-5, 1e-2), ["0.0001", "0.001", "0.01"]),
        ((1e-5, 1e-2), None),
    ],
)
def test_ticks_have_plain_numbers_while_these_are_short(ends, labels):
    with figure_style() as plt:
        figure, axis = plt.subplots(figsize=(4, 4))
        axis.set(xscale="log", xlim=ends)
        tick_alike(figure)
        figure.draw_without_rendering()
        low, high = ends
        shown = [tick.get_text() for tick, at in zip(axis.get_xticklabels(), axis.get_xticks(), strict=True)
                 if low <= at <= high]  # fmt: skip
        assert shown == labels if labels else {label[:1] for label in shown} == {"$"}
        assert axis.get_yscale() == "linear"


def test_a_table_that_is_crossed_has_a_line_a_key_and_names_the_cells_that_are_missing():
    table = pd.DataFrame({"method": ["a", "a", "b"], "epsilon": [1, 2, 1], "mean": [0.5, 0.25, 1.0]})
    rows = [{"method": name} for name in ("a", "b", "c")]
    how = {"lead": {"method": "{method}"}, "across": {f"ε = {e}": {"epsilon": e} for e in (1, 2)}, "cell": "{mean:.2f}"}

    def gap_of(at):
        return f"no {at['method']} at {at.get('epsilon', 'all')}" if at != {"method": "c", "epsilon": 2} else ""

    made = Table.crossed(table, rows, **how, trail={"": "of {method}"}, missing=gap_of)
    assert list(made.frame) == ["method", "ε = 1", "ε = 2", ""]
    assert made.frame.to_numpy().tolist() == [
        ["a", "0.50", "0.25", "of a"], ["b", "1.00", "–", "of b"], ["c", "–", "–", "of c"]
    ]  # fmt: skip
    assert made.gaps == ["no b at 2", "no c at 1"]
    assert Table.crossed(table, rows, **how, missing=gap_of, whole=True).gaps == ["no c at all"]
    assert Table.crossed(table, rows, **how).gaps == []
    assert Table.crossed(table[:0], rows[:1], **how).frame.to_numpy().tolist() == [["a", "–", "–"]]
