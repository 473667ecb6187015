"""The board's rows beside a wheel: what a user has who has no clone."""

import re
from pathlib import Path

import pytest

import dpbench
from dpbench import algorithms
from dpbench.errors import EXTRAS, UserError
from dpbench.files import read_toml
from dpbench.leaderboard import stored
from dpbench.reporting import build
from dpbench.run import store
from dpbench.run.row import settings_of

ROOT = Path(__file__).parents[2]
LIMIT = 8e6  # bytes that a wheel may carry of it; `verify` compares every column of a row, so none is left out


def test_the_boards_rows_are_laid_out_once_and_never_over_others(tmp_path, monkeypatch):
    source = tmp_path / "package"
    (source / "runs").mkdir(parents=True)
    (source / "runs" / "1-a.parquet").write_bytes(b"rows")
    (source / "submissions" / "theirs").mkdir(parents=True)
    (source / "submissions" / "theirs" / "method.py").write_text("theirs")
    monkeypatch.setattr(stored, "shipped", lambda: source)
    mine = tmp_path / "results" / "full" / "leaderboard"
    (mine / "submissions" / "mine").mkdir(parents=True)
    (mine / "runs").mkdir()  # as an interrupted call leaves it
    assert stored.lay_out(tmp_path / "results") == mine
    assert [path.name for path in store.list_parts(mine / "runs")] == ["1-a.parquet"]
    assert {path.name for path in (mine / "submissions").iterdir()} == {"mine", "theirs"}
    (mine / "runs" / "1-a.parquet").write_bytes(b"others")
    assert stored.lay_out(tmp_path / "results") is None
    assert (mine / "runs" / "1-a.parquet").read_bytes() == b"others"
    assert not list(mine.glob("**/*.tmp"))


@pytest.mark.parametrize(
    ("reference", "profile", "there"),
    [("leaderboard", None, True), ("leaderboard/rank", "full", True), ("leaderboard", "quick", False),
     (None, "full", False), ("second_order", None, False)],
)  # fmt: skip
def test_a_report_of_the_board_alone_lays_its_rows_out(monkeypatch, reference, profile, there):
    laid = []
    monkeypatch.setattr(build.stored, "lay_out", lambda *given: laid.append(given))
    monkeypatch.setattr(build, "build", lambda *given, **folders: [])
    build.report(reference, profile=profile)
    assert bool(laid) == there


def test_a_wheel_carries_the_board_and_no_more_than_eight_megabytes():
    carried = read_toml(ROOT / "pyproject.toml")["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert carried["results/full/leaderboard"] == "dpbench/leaderboard/shipped"
    files = [path for path in (ROOT / "results" / "full" / "leaderboard").rglob("*") if path.is_file()]
    assert files
    assert sum(path.stat().st_size for path in files) < LIMIT


def test_results_are_never_silently_empty(tmp_path):
    with pytest.raises(UserError, match="run: dpbench run --experiment second_order --profile full"):
        dpbench.results("second_order", results=tmp_path)
    with pytest.raises(UserError, match="run: dpbench run --algo dp-gd"):
        dpbench.results("dp-gd", "adhoc", results=tmp_path)
    assert len(dpbench.results("leaderboard", results=tmp_path)) > 1000
    assert not list(tmp_path.iterdir())


def test_hints_name_the_libraries_that_the_extras_bring():
    extras = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert {name: tuple(extras[name]) for name in EXTRAS} == EXTRAS
    assert all(re.match(r"[a-z]+", one) for each in EXTRAS.values() for one in each)
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "dpbench").rglob("*.py"))
    assert {*re.findall(r"how_to_install\('(\w+)'\)", code)} == EXTRAS.keys()


@pytest.mark.thorough_for("second_order")
@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "results" / "full").glob("*/runs")))
def test_the_settings_of_committed_rows_are_those_that_their_methods_have(name):
    """A setting that goes is among its method's `gone`: else pages and comparisons of these rows fail."""
    rows = store.Store(ROOT / "results", "full", name).runs()[["algorithm", "settings"]]
    methods = {one: algorithms.resolve(one)[0] for one in set(rows["algorithm"]) & {*algorithms.names()}}
    pairs = set(rows[rows["algorithm"].isin(methods)].itertuples(index=False, name=None))
    asked = {(methods[at], frozenset(settings_of(text))) for at, text in pairs}
    assert asked
    assert [(one.name, unknown) for one, had in asked if (unknown := had - {*one.Settings.__struct_fields__})] == []
