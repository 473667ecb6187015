"""Runs of one's own, as `dpbench run --algo` leaves them, in `dpbench report`."""

import pytest

import dpbench
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.reporting import adhoc
from dpbench.run.store import Store
from dpbench.study.output import WORDS
from tests.batches import write
from tests.reporting.conftest import row
from tests.reporting.made_up_site import problems


@pytest.fixture
def own(tmp_path):
    """Three seeds of dp-gd at two ε with traces, and a method of the full profile that is better at ε = 1."""
    dpbench.run_algorithm(
        "dp-gd", "synthetic", [0.5, 1], seeds=3, settings={"T": 4}, trace=True, results=tmp_path / "results", jobs=1
    )
    better = {"algorithm": "dp-newton-hess-clip", "excess": 1e-6, "key": "n"}
    write(
        Store(tmp_path / "results", "full", "second_order"),
        [row(seed) | better | {"key": f"n{seed}"} for seed in range(2)]
        + [row(0) | better | {"key": "leaky", "algorithm": "dp-gd-oracle", "private": False, "excess": 1e-9}],
    )
    return tmp_path


@pytest.mark.thorough
def test_report_draws_own_runs_beside_the_full_profiles(own, monkeypatch, capsys):
    monkeypatch.chdir(own)
    with pytest.raises(SystemExit) as ended:
        main(["report", "--profile", "adhoc"])
    assert ended.value.code == 0
    assert "to read your own runs, open figures/adhoc/index.html" in capsys.readouterr().out
    folder = own / "figures" / "adhoc"
    assert problems(folder) == []
    page = (folder / "dp-gd" / "index.html").read_text(encoding="utf-8")
    assert "Your best runs lose" in page
    assert "times what is lost by the best other private method" in page
    assert "dpbench run --algo dp-gd --dataset synthetic --eps 0.5 --eps 1 --seeds 3 --set T=4" in page
    assert {path.stem for path in (folder / "dp-gd").glob("*.csv")} == {"runs", "excess", "curves"}
    table = (folder / "dp-gd" / "runs.md").read_text(encoding="utf-8")
    assert "full/second_order" in table
    assert "oracle" not in table  # what does not keep its ε is no yardstick


def test_captions_of_own_runs_are_short(own):
    runs = Store(own / "results", "adhoc", "dp-gd")
    rows = runs.runs()
    outputs = list(adhoc._outputs(rows, runs, adhoc.beside(own / "results", rows)))
    assert [stem for stem, _, _ in outputs] == ["runs", "excess", "curves"]
    assert all(len(output.caption.split()) <= WORDS for _, _, output in outputs)


def test_without_own_runs_the_hint_is_a_command_that_makes_some(tmp_path):
    with pytest.raises(UserError, match="dpbench run --algo dp-gd --dataset synthetic --eps 1"):
        dpbench.report(profile="adhoc", results=tmp_path)
    with pytest.raises(UserError, match="goes without --experiment"):
        dpbench.report("second_order", profile="adhoc", results=tmp_path)
