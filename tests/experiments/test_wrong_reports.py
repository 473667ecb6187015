"""A report that is wrong as a whole keeps at most a quarter of what the right one calls reproduced."""

import functools

import pytest

from dpbench import experiments
from dpbench.study import value_verdict
from dpbench.study.printed import Number
from dpbench.study.value_verdict import DECIDING, HALF_AS_LONG, HONEST, OTHER_DATA, Place, PublishedValue
from tests import wrong_reports
from tests.wrong_reports import Left, reports_of

as_judged = functools.cache(reports_of)


@pytest.mark.parametrize(("name", "data", "fewest"), [
    ("accelerated", HALF_AS_LONG, 50),
    pytest.param("second_order", OTHER_DATA, 3, marks=pytest.mark.thorough),
    pytest.param("nonconvex", OTHER_DATA, 50, marks=pytest.mark.thorough),
])  # fmt: skip
def test_a_report_of_the_committed_rows_under_wrong_runs_keeps_at_most_a_quarter(name, data, fewest):
    """In every paper that has matches: under the wrong noise and on other data all of them are tested."""
    reports = {one.recipe: one for one in as_judged(name)}
    assert len({reports[recipe].tested for recipe in (*DECIDING, data)}) == 1
    assert reports[data].tested >= fewest
    assert [one for one in reports.values() if not one.fine] == []


@pytest.mark.thorough
def test_no_other_paper_has_a_value_that_is_reproduced():
    papers = [name for name in experiments.names() if experiments.get(name).published_values]
    assert [name for name in papers if as_judged(name)] == ["second_order", "accelerated", "nonconvex"]


@pytest.mark.thorough
def test_a_judge_that_does_not_ask_for_power_would_keep_too_much(monkeypatch):
    """Without the rule the transients of the curves are matches, and a report without noise keeps them."""
    right = sum(one.tested for one in as_judged("accelerated"))
    monkeypatch.setattr(value_verdict.Judged, "word", property(lambda judged: judged.outcome.word))
    reports = reports_of("accelerated")
    assert sum(one.tested for one in reports) > right
    assert any(not one.fine for one in reports)


def test_the_command_fails_where_a_wrong_report_keeps_more(monkeypatch, capsys):
    monkeypatch.setattr(wrong_reports, "reports_of", lambda name: [Left("no noise", 6, 20), Left("X / 6", 2, 20)])
    assert wrong_reports.main(["nonconvex"]) == 1
    assert capsys.readouterr().out.count("TOO MANY") == 1
    monkeypatch.setattr(wrong_reports, "reports_of", lambda name: [Left("no noise", 5, 20), Left("m = n // 50", 9, 20)])
    assert wrong_reports.main(["nonconvex"]) == 0


def test_each_value_is_judged_by_its_own_number_and_too_few_wrong_runs_notice_nothing():
    """Without noise several settings are one run: it once counted as kept wherever it was another value's, too."""
    values = []
    for text, mean, few in (("0.100", 0.1, 20), ("0.200", 0.2, 5)):
        own, half, twice = ({"y": [0.99 * one, 1.01 * one] * 10} for one in (mean, mean / 2, mean * 2))
        planted = {0.5: half, 2.0: twice, 0.0: {"y": [0.049, 0.051] * 10}, OTHER_DATA: {"y": own["y"][:few]}}
        values.append(
            PublishedValue(Place("Table 1", text), "table1", (Number("y", text, k=3),), {HONEST: own}, planted=planted)
        )
    left = {one.recipe: (one.kept, one.tested) for one in wrong_reports.wrong_reports(values)}
    assert left == {"half the noise": (0, 2), "twice the noise": (0, 2), "no noise": (0, 2), OTHER_DATA: (1, 1)}
