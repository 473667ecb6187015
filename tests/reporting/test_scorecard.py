import sys

import pytest

from dpbench import experiments
from dpbench.cli import main
from dpbench.reporting import build as report
from dpbench.reporting.scorecard import scorecard
from dpbench.run.store import Store
from dpbench.study.claims import OPEN, NotEnough, Verdict
from dpbench.study.context import Context
from dpbench.study.experiment import Experiment
from tests.batches import write
from tests.declared import claim


@claim("1", "more is better")
def more(context):
    yield Verdict.of(True, "2 > 1", "as published")
    yield Verdict(OPEN, "2 ≈ 1", "at a proven ε")


@claim("2", "less is better")
def less(context):
    return Verdict.of(False, "1 < 2 " + "and so on " * 30)


@claim("3", "none is best")
def none(context):
    raise NotEnough("no rows", "fig1")


@pytest.fixture
def experiment(monkeypatch):
    class Fake(Experiment):
        def grid(self, config=None):
            return {"quick": []}

    one = Fake("fake", "Fake", "nobody", "dpbench.experiments.fake", (sys.modules[__name__],))
    monkeypatch.setattr(experiments, "names", lambda: ("fake",))
    monkeypatch.setattr(experiments, "get", lambda name: one)
    return one


def test_verdicts_are_counted_and_told_apart(experiment, tmp_path):
    table = scorecard(Context(experiment, "quick", Store(tmp_path, "quick", "fake")))
    assert table.frame["verdict"].tolist() == ["held", "open", "not held", "not enough data"]
    assert table.frame["claim"].tolist() == ["1", "1", "2", "3"]
    assert table.frame["text"].tolist()[:2] == ["more is better (as published)", "more is better (at a proven ε)"]
    assert table.frame["numbers"].tolist()[-1] == "no rows; run: dpbench run --experiment fake/fig1 --profile quick"
    assert table.caption.startswith("Verdicts on the paper's claims: 1 held, 1 open, 1 not held, 1 not enough data")


def test_check_prints_claim_by_claim_and_exits_0_whatever_the_verdicts(experiment, tmp_path, capsys):
    write(Store(tmp_path, "quick", "fake"), [{"key": "a", "status": "done"}], [])
    with pytest.raises(SystemExit) as exit_:
        main(["report", "--check", "--results", str(tmp_path)])
    out = capsys.readouterr().out
    assert exit_.value.code in (0, None)
    assert "not held         2: less is better\n" in out
    assert "1 < 2" in out
    assert max(map(len, out.splitlines())) <= 132
    assert list(report.check(results=tmp_path))


def test_check_without_results_exits_2(experiment, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["report", "--check", "--results", str(tmp_path)])
    assert exit_.value.code == 2
    assert "no results to judge" in capsys.readouterr().err
