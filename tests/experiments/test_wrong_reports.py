"""A report that is wrong as a whole keeps at most a quarter of what the right one calls reproduced."""

import functools

import pytest

from dpbench.study import value_verdict
from tests import wrong_reports
from tests.wrong_reports import Left, reports_of

as_judged = functools.cache(reports_of)


@pytest.mark.parametrize("name", ["accelerated", pytest.param("nonconvex", marks=pytest.mark.thorough)])
def test_a_report_of_the_committed_rows_under_wrong_runs_keeps_at_most_a_quarter(name):
    reports = {one.recipe: one for one in as_judged(name)}
    assert {"half the noise", "twice the noise"} <= reports.keys()
    assert (wrong_reports.OTHER_DATA in reports) == (name == "nonconvex")
    deciding = {"half the noise", "twice the noise", wrong_reports.OTHER_DATA} & reports.keys()
    assert min(reports[one].tested for one in deciding) >= 20
    assert [one for one in reports.values() if not one.fine] == []


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
