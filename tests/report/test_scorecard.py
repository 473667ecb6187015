import pytest

from dpbench import experiments, report
from dpbench.cli import main
from dpbench.experiments.base import Claim, Experiment, Verdict
from dpbench.report import Context
from dpbench.report.scorecard import scorecard
from dpbench.results import Store

CLAIMS = (
    Claim("1", "more is better", lambda context: Verdict(True, "2 > 1")),
    Claim("2", "less is better", lambda context: Verdict(False, "1 < 2")),
    Claim("3", "none is best", lambda context: Verdict(None, "no rows")),
)


@pytest.fixture
def experiment(monkeypatch):
    class Fake(Experiment):
        def grid(self, config=None):
            return {"quick": []}

    one = Fake("fake", "Fake", "nobody", "dpbench.experiments.fake", (), CLAIMS)
    monkeypatch.setattr(experiments, "NAMES", ("fake",))
    monkeypatch.setattr(experiments, "get", lambda name: one)
    return one


def test_verdicts_are_counted_and_told_apart(experiment, tmp_path):
    table = scorecard(Context(experiment, "quick", Store(tmp_path, "quick", "fake")))
    assert table.frame["verdict"].tolist() == ["held", "not held", "not enough data"]
    assert table.caption.startswith("1 held, 1 not held, 1 not enough data")


def test_check_prints_claim_by_claim_and_exits_0_whatever_the_verdicts(experiment, tmp_path, capsys):
    Store(tmp_path, "quick", "fake").write([{"key": "a", "status": "done"}], [])
    with pytest.raises(SystemExit) as exit_:
        main(["report", "--check", "--results", str(tmp_path)])
    out = capsys.readouterr().out
    assert exit_.value.code in (0, None)
    assert "not held         2: less is better\n" in out
    assert "1 < 2" in out
    assert list(report.check(results=tmp_path))


def test_check_without_results_exits_2(experiment, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["report", "--check", "--results", str(tmp_path)])
    assert exit_.value.code == 2
    assert "no results to judge" in capsys.readouterr().err
