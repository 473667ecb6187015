"""Panels without rows show the gap; bands and means over seeds."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbench.study.panels import Panels, band, curve
from dpbench.study.statistics import means
from dpbench.study.style import figure_style, legend_below, look

CONTEXT = SimpleNamespace(
    gap=lambda name, what: f"{what}: dpbench run {name}", why_missing=lambda name, problem: f"no {problem}"
)


def test_means_over_seeds():
    rows = pd.DataFrame({"a": [1, 1, 1, 2], "excess": [1.0, 2.0, 6.0, math.inf], "T": [3, 4, 5, 6]})
    table = means(rows, ["a"], T=("T", "max"))
    assert table["mean"].tolist() == [3.0, math.inf]
    assert table["se"][0] == pytest.approx(np.std([1, 2, 6], ddof=1) / math.sqrt(3))
    assert table[["seeds", "T"]].to_numpy().tolist() == [[3, 5], [1, 6]]


def test_a_panel_without_rows_is_a_gap_and_the_others_are_drawn():
    line = pd.DataFrame({"x": [10, 1], "mean": [1.0, 2.0], "se": [2.0, 0.5]})
    with figure_style():
        page = Panels(CONTEXT, "fig", 3, columns=2, size=(2, 1), room=0.5)
        for axis, name in page.over(["a", "b", "c"], title=str.upper):
            if not page.empty(axis, line if name != "b" else line[:0], name, name):
                curve(axis, line, "x", look("dp-gd"))
        page.label("x", "y", scale="log")
        figure = page.figure(line)
        shown = list(page.axes.flat)
        assert figure.gaps == ["b: dpbench run fig"]
        assert [axis.get_title() for axis in shown] == ["A", "B", "C", ""]
        assert [axis.get_visible() for axis in shown] == [True, True, True, False]
        assert shown[1].texts[0].get_text() == "no b"
        assert [axis.get_yscale() for axis in shown[:3]] == ["log", "linear", "log"]
        assert list(figure.figure.get_size_inches()) == [4, 2.5]
        assert shown[0].lines[0].get_xdata().tolist() == [1, 10]  # sorted


def test_a_band_is_one_standard_error_and_stays_above_zero_or_the_range_given():
    line = pd.DataFrame({"x": [1, 2], "mean": [1.0, 2.0], "se": [2.0, 0.5]})
    with figure_style() as plt:
        _, axis = plt.subplots()
        for drawn, low, high in (
            (line, [0.05, 1.5], [3.0, 2.5]),
            (line.assign(low=[0.5, 1], high=9), [0.5, 1], [9, 9]),
        ):
            band(axis, drawn, "x", "red")
            y = axis.collections[-1].get_paths()[0].vertices[:, 1]
            assert axis.collections[-1].get_alpha() == 0.18
            assert (y.min(), y.max()) == (min(low), max(high))


def test_a_panel_that_is_left_out_is_a_gap_and_named_with_the_legend():
    line = pd.DataFrame({"x": [1, 2], "mean": [1.0, 2.0], "se": [0.1, 0.5]})
    with figure_style():
        page = Panels(CONTEXT, "fig", 1, columns=1, size=(4, 2), room=0.5)
        for axis, _ in page.over(["a"]):
            curve(axis, line, "x", look("dp-gd"))
        page.note("b at ε = 1", panel=True)
        figure = page.figure(line)
    assert figure.gaps == ["b at ε = 1: dpbench run fig"]
    (legend,) = figure.figure.legends
    assert legend.get_title().get_text() == "not drawn, as rows are missing: b at ε = 1"


def test_a_page_has_no_room_and_a_legend_three_columns_unless_told():
    with figure_style() as plt:
        page = Panels(None, "", 4, columns=3, size=(4, 2))
        for axis, name in page.over("abcd"):
            axis.plot([1], label=name)
        figure = page.figure(pd.DataFrame())
        assert list(figure.figure.get_size_inches()) == [12, 4]
        assert [axis.get_visible() for axis in page.axes.flat] == [True] * 4 + [False] * 2
        assert figure.figure.legends[0]._ncols == 2  # of four: two lines of two
        assert figure.figure.legends[0].get_title().get_text() == ""
        other, axis = plt.subplots(figsize=(12, 3))
        for name in "abcd":
            axis.plot([1], label=name)
        legend_below(other, [axis])
        assert other.legends[0]._ncols == 2


def test_groups_of_means_stay_in_the_order_of_the_rows():
    rows = pd.DataFrame({"a": [2, 1, 2, None], "excess": [1.0, 2.0, 3.0, 4.0]})
    assert means(rows, ["a"])["mean"].tolist() == [2.0, 2.0, 4.0]
    assert means(rows, ["a"])["a"].tolist()[:2] == [2, 1]
    assert means(rows, ["a"], sort=True)["a"].tolist()[:2] == [1, 2]


def test_a_legend_has_no_more_columns_than_its_rows_need():
    with figure_style() as plt:
        figure, axis = plt.subplots(figsize=(12, 3), layout="constrained")
        for i in range(5):
            axis.plot([i], label=f"{i}")
        legend_below(figure, [axis], columns=4)
        assert figure.legends[0]._ncols == 3  # 2, 2 and 1, not 2, 1, 1 and 1


def test_a_legend_takes_fewer_columns_where_it_would_leave_the_figure():
    with figure_style() as plt:
        for width, columns in ((12, 4), (4, 1)):
            figure, axis = plt.subplots(figsize=(width, 3), layout="constrained")
            for i in range(4):
                axis.plot([i], label=f"a name of some length, number {i}")
            legend_below(figure, [axis], columns=4)
            (legend,) = figure.legends
            assert legend._ncols == columns
            assert legend.get_window_extent().width <= figure.bbox.width
