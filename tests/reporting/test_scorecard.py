import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dpbench import experiments
from dpbench.cli import main
from dpbench.reporting import build as report
from dpbench.reporting.scorecard import artefacts, judged, planted, published_values, scorecard
from dpbench.run.store import Store
from dpbench.study.claims import OPEN, NotEnough, Verdict
from dpbench.study.context import Context
from dpbench.study.experiment import PLANTED, Experiment
from dpbench.study.grid import GridEntry
from dpbench.study.printed import Number
from dpbench.study.value_verdict import HONEST, Place, PublishedValue
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


def values(context):
    """Five curves that come out with the right noise, and would not with half of it."""
    for i in range(5):
        right = 1 + 0.02 * np.sin(np.arange(40.0) + i)
        yield PublishedValue(
            Place("Table 1", f"row {i}", "y"), "tabled", (Number("y", "1.00", k=3),), {HONEST: {"y": right.tolist()}},
            planted={0.5: {"y": (right / 4).tolist()}, 2.0: {"y": (right + (3 if i else 0.001)).tolist()}},
        )  # fmt: skip


def of(experiment, rows=()):
    return SimpleNamespace(
        experiment=experiment, found_before={}, rows=lambda name: rows,
        gap=lambda name, what: f"{what}: dpbench run {name}",
    )  # fmt: skip


def with_values(blocks=(), **more):
    class Made(Experiment):
        def grid(self, config=None):
            return {"quick": [], "full": list(blocks)}

        def cited(self, place):
            return f"{place} (p. 7)"

    return Made("fake", "Fake", "nobody", "dpbench.experiments.fake", published_values=values, **more)


def test_what_a_report_adds_depends_on_what_the_paper_declares():
    block = GridEntry([], [], [], 1, artefacts=["table1", PLANTED])
    claims = {"modules": (sys.modules[__name__],)}
    assert [one.name for one in artefacts(with_values())] == ["published_values"]
    assert [one.name for one in artefacts(with_values([block], **claims))] == ["scorecard", "published_values", PLANTED]
    assert artefacts(with_values([block]))[-1].title == "Runs with wrong noise, made on purpose"
    assert artefacts(Experiment("fake", "Fake", "nobody", "fake")) == []


def test_a_table_of_wrong_runs_has_how_many_values_each_would_pass_and_the_pooled_ratios():
    made = planted(of(with_values(), rows=[1]))
    assert list(made.frame) == ["wrong runs", "values that they would pass"]
    ratio = "pooled ratio, "
    assert made.frame.to_numpy().tolist()[:2] == [["half the noise", "0 of 4"], ["twice the noise", "1 of 5"]]
    names = [ratio + name for name in ("published noise", "noise at a proven ε", "half the noise", "twice the noise")]
    assert made.frame["wrong runs"].tolist()[2:] == names
    assert made.frame["values that they would pass"][2].endswith("(match; 4 values in 4 curves)")
    assert made.gaps == []
    assert planted(of(with_values())).gaps == ["runs with wrong noise: dpbench run planted"]


def test_a_published_value_is_a_line_with_what_it_notices_and_where_it_stands():
    made = published_values(of(with_values()))
    assert made.frame["class"].tolist() == ["blind to noise", *["match"] * 4]
    assert made.frame["does not notice"].tolist() == ["twice the noise", *[""] * 4]
    assert made.frame["notices"].tolist() == ["half the noise", *["half the noise; twice the noise"] * 4]
    assert made.frame["at a proven ε"].tolist() == ["", *["yes"] * 4]
    assert set(made.data["table"]) == {"Table 1 (p. 7)"}
    assert made.caption.startswith("Of 5 published values, 4 are reproduced")
    assert made.caption in made.method
    none = Experiment("fake", "Fake", "nobody", "fake")
    told = "No printed value of this paper is judged here; see its claims."
    assert (published_values(of(none)).caption, judged(of(none))) == (told, [])
