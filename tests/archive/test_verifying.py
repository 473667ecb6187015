"""An experiment's archive: what was altered is found, what cannot be checked is named, its code never runs."""

import hashlib
import json
import math
import re
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import dpbench
from dpbench import datasets, experiments
from dpbench.archive import compared, content, verifying
from dpbench.cli.board import verify as command
from dpbench.datasets.cache import Pin
from dpbench.errors import UserError
from dpbench.run.job import Keys
from dpbench.run.row import RUNS, Row
from dpbench.run.store import Store
from tests.packages import install, installed

NAME = "archived_paper"
EXPERIMENT = """
import sys
from dpbench.study.experiment import Experiment
from dpbench.study.output import Table
from dpbench.study.paper import Paper

@Paper(__name__).artefact("table1")
def table1(context):
    return Table(context.rows("table1")[["seed"]].astype(str)), {}

EXPERIMENT = Experiment(name="archived_paper", title="An archived paper", citation="Nobody 2026",
                        package="archived_paper", modules=(sys.modules[__name__],))
"""
METHOD = """
import os, pathlib
from dpbench.algorithms.gradient_descent import DPGradientDescent

if "RAN" in os.environ:
    pathlib.Path(os.environ["RAN"]).write_text("ran")

class Own(DPGradientDescent):
    name, title = "archived-gd", "Archived GD"
"""
GRID = """
[[small]]
artefacts = ["table1"]
problems = ["synthetic"]
algorithms = ["dp-gd", "archived-gd"]
epsilon = [1]
seeds = 3
trace = true
settings.T = 5

[[small]]
artefacts = ["table1"]
problems = ["synthetic"]
algorithms = ["dp-gd"]
epsilon = [2]
seeds = 2
timed = 1
settings.T = 5
"""
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "archived-paper"
version = "1.0"
[project.entry-points."dpbench.experiments"]
archived_paper = "archived_paper:EXPERIMENT"
[project.entry-points."dpbench.algorithms"]
archived-gd = "archived_paper.method:Own"
[tool.hatch.build.targets.wheel]
packages = ["archived_paper"]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the package is installed."""
    home, site = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("site")
    package = home / NAME
    package.mkdir()
    for name, text in {
        "__init__.py": EXPERIMENT,
        "method.py": METHOD,
        "grid.toml": GRID,
        "words.md": "## table1: Table 1\nSeeds.\n",
    }.items():
        (package / name).write_text(text)
    (home / "pyproject.toml").write_text(PROJECT)
    install(home, site)
    return site


@pytest.fixture(scope="module")
def results(site, tmp_path_factory):
    """Its rows."""
    folder = tmp_path_factory.mktemp("results")
    with installed(site, NAME):
        dpbench.run_experiment(NAME, profile="small", results=folder, jobs=1)
    return folder


@pytest.fixture(scope="module")
def archived(site, results):
    """Its archive."""
    with installed(site, NAME):
        return dpbench.archive(NAME, "small", results=results, out=results / "paper.zip")


def altered(path, out, **members):
    """The archive with some members put through functions, and the manifest's digests made to fit."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    for name, change in members.items():
        name = name.replace("__", ".")
        found[name] = change(found[name])
    manifest = json.loads(found["manifest.json"])
    manifest["sha256"] = {
        name: hashlib.sha256(each).hexdigest() for name, each in found.items() if name != "manifest.json"
    }
    found["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(out, "w") as archive:
        for name, each in found.items():
            archive.writestr(name, each)
    return out


def each_row(change):
    """A function of rows.jsonl that puts every row through `change`; None leaves a row out."""

    def changed(text):
        rows = [change(json.loads(line)) for line in text.splitlines()]
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows if row is not None)

    return changed


@pytest.mark.thorough
def test_an_archive_has_rows_code_environment_and_no_data_and_the_same_bytes_again(site, results, archived):
    assert (archived.rows, archived.planned, archived.left_out) == (8, 8, [])
    with zipfile.ZipFile(archived.path) as archive:
        names = set(archive.namelist())
    assert {"manifest.json", "rows.jsonl", "lock.txt", f"code/{NAME}/grid.toml", f"code/{NAME}/method.py"} <= names
    assert "code/archived_paper-1.0.dist-info/entry_points.txt" in names
    found = content.read_paper(archived.path)
    assert found.manifest.distribution == "archived-paper 1.0"
    assert found.digest == archived.digest
    assert {len(row.data_sha256) for _, row in found.rows} == {64}
    with installed(site, NAME):
        again = dpbench.archive(NAME, "small", results=results, out=results / "again.zip")
        with pytest.raises(UserError, match=r"no rows in .*; run: dpbench run --experiment"):
            dpbench.archive(NAME, "small", results=results / "nothing")
    assert again.path.read_bytes() == archived.path.read_bytes()


def test_a_line_has_whole_numbers_and_finite_numbers():
    line = {"key": "0" * 32, "T": 5.0, "iterations": float("nan"), "excess": math.inf, "values": [1.0, math.inf]}
    told = json.loads(content.line({}, line))
    assert told == {"identity": {}, "key": "0" * 32, "T": 5, "values": [1.0, None]}
    assert isinstance(told["T"], int)


def test_a_sound_archive_is_run_again_by_what_is_installed(site, archived):
    with installed(site, NAME):
        found = dpbench.verify(archived.path, sample=8, accept=["seconds"])
    assert (found.outcome, found.problems, found.unchecked, found.again) == ("holds", [], [], 8)
    members = len(found.manifest.sha256)
    for line in (f"digests of {members} members", "keys and seeds of 8 rows", "is that which is installed here"):
        assert any(line in each for each in found.checked), found.checked
    assert [line.partition(":")[0] for line in found.accepted] == ["seconds of 2 timed runs"]


def test_what_no_second_run_confirms_is_not_checked_until_the_reader_accepts_it(site, archived):
    with installed(site, NAME):
        found = dpbench.verify(archived.path, sample=8)
        assert found.outcome == "not checked"
        assert [line.partition(":")[0] for line in found.unchecked] == ["seconds of 2 timed runs"]
        with pytest.raises(UserError, match="accept: 'objective' is compared; what can be accepted: seconds"):
            dpbench.verify(archived.path, accept=["objective"])
        assert dpbench.verify(archived.path, sample=0, accept=["seconds"]).unchecked == ["no run was made again"]


def test_without_the_package_its_code_is_not_run(archived, monkeypatch, tmp_path):
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    found = dpbench.verify(archived.path, sample=8)
    assert (found.outcome, found.problems, found.again) == ("not checked", [], 5)  # those of dp-gd
    assert any("3 runs: its method is not installed here" in line for line in found.unchecked)
    assert not (tmp_path / "ran").exists()
    assert NAME not in experiments.names()


FORGED = {
    "objective": lambda row: {**row, "objective": row["objective"] - 0.01},
    "excess": lambda row: {**row, "excess": row["excess"] / 2},
    "held_accuracy": lambda row: {**row, "held_accuracy": 1.0},
    "gradient_norm": lambda row: {**row, "gradient_norm": 1e-9},
    "epsilon_planned": lambda row: {**row, "epsilon_planned": 0.5},
    "delta": lambda row: {**row, "delta": 1e-12},
    "private": lambda row: {**row, "private": False},
    "ending": lambda row: {**row, "ending": "met its tolerance"},
    "iterations": lambda row: {**row, "iterations": 1},
    "hessian_evaluations": lambda row: {**row, "hessian_evaluations": 0},
    "diagnostics": lambda row: {**row, "diagnostics": '{"curvature": 1}'},
    "data_sha256": lambda row: {**row, "data_sha256": "0" * 64},
    "checked_by": lambda row: {**row, "checked_by": "Lean proof"},
    "notes": lambda row: {**row, "notes": "it converged"},
    "values": lambda row: {**row, "values": [0.0]},
    "status = 'diverged'": lambda row: {**row, "status": "diverged"},
    "status = 'refused'": lambda row: {**row, "status": "refused", "error": "no"},
}


@pytest.mark.thorough
@pytest.mark.parametrize(("told", "change"), FORGED.items())
def test_a_forged_column_is_found_by_running_its_run_again(site, archived, tmp_path, told, change):
    forged = altered(archived.path, tmp_path / "forged.zip", rows__jsonl=each_row(change))
    assert not dpbench.verify(forged, sample=0).problems  # digests and keys are those of the forged rows
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=8)
    assert found.outcome == "wrong"
    assert len(found.problems) == 8
    assert all(told in line for line in found.problems)


def one_row(change):
    """A function of rows.jsonl that puts one row of dp-gd through `change`: a sample would miss it."""
    done = []

    def changed(row):
        if done or row["identity"]["algorithm"] != "dp-gd" or row.get("timed"):
            return row
        done.append(row)
        return change(row)

    return each_row(changed)


MISSTATED = {  # of a row that no sample holds
    "algorithm": lambda row: {**row, "algorithm": "dp-sgd"},
    "relation": lambda row: {**row, "relation": "replace-one"},
    "accounting": lambda row: {**row, "accounting": "tight"},
    "planted": lambda row: {**row, "planted": 0.5},
    "sweep": lambda row: {**row, "sweep": '{"T":[1,2]}'},
    "counts_public": lambda row: {**row, "counts_public": "the rows"},
}


@pytest.mark.parametrize(("told", "change"), MISSTATED.items())
def test_what_one_row_says_of_its_run_is_compared_in_all_rows_without_a_run(site, archived, tmp_path, told, change):
    forged = altered(archived.path, tmp_path / "f.zip", rows__jsonl=one_row(change), traces__jsonl=lambda text: b"")
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=0)
    assert (found.outcome, len(found.problems)) == ("wrong", 1)
    assert f"it says another {told} than its key stands for" in found.problems[0]


def test_a_default_setting_and_the_claim_of_privacy_are_those_of_the_key():
    before = Row(key="k", private=False, settings={"clip": 1.0, "step": None})
    same = {"key": "k", "private": False, "settings": {"clip": 1.0, "step": 0.3}}  # the problem gave the step
    assert not [*verifying._unlike(Row(**same), before)]
    assert [*verifying._unlike(Row(**same | {"private": True}), before)] == ["private"]
    assert [*verifying._unlike(Row(**same | {"settings": {"clip": 7.0, "step": 0.3}}), before)] == ["clip"]
    assert not [*verifying._unlike(Row(key="k", private=False), Row(key="k", private=True))]  # a failed check


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_of_few_traces_one_is_made_again(site, archived, tmp_path, seed):
    """The last of the traces is kept and made up: a sample of two would miss it in most draws."""
    forged = altered(
        archived.path, tmp_path / "f.zip", traces__jsonl=lambda text: scaled(text.splitlines(keepends=True)[-1])
    )
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=2, seed=seed, accept=["seconds"])
    assert any("excess of its trace is not that of the run" in line for line in found.problems)


def test_every_column_is_compared_but_a_closed_list():
    """A column that comes tomorrow is compared from its first day."""

    class Tomorrow(Row, kw_only=True):
        new: float | None = None

    assert compared.NOT_COMPARED.keys() == {"key", "experiment", "seconds", "code_version", "environment", "traceback"}
    values = {"string": "x", "double": 0.5, "int64": 3, "bool": True, "list": [0.5]}
    for name, kind in {**RUNS, "new": "double"}.items():
        value = {"settings": {"T": 3}, "diagnostics": {"a": 1.0}, "status": "done"}.get(name, values[kind])
        other = {"settings": {"T": 4}, "diagnostics": {"a": 2.0}, "status": "diverged", "bool": False}.get(
            name, {"string": "y", "double": 0.6, "int64": 4, "bool": False, "list": [0.6]}[kind]
        )
        made = Tomorrow(**{"key": "k", name: value})
        assert not [*compared.row_differences(made, made)]
        stated = Tomorrow(**{"key": "k", name: other})
        found = {column for column, problem in compared.row_differences(stated, made) if problem}
        assert (name in found) == (name not in compared.NOT_COMPARED), name
        older = [*compared.row_differences(Tomorrow(key="k"), made)]
        assert older == ([] if name in compared.NOT_COMPARED else [(name, "")])
        made = Tomorrow(**{"key": "k", name: compared.LATER.get(name)})
        assert not [*compared.row_differences(Tomorrow(key="k"), made)]


def test_a_run_that_diverged_does_not_agree_with_every_number():
    made = Row(key="k", status="diverged", objective=math.inf, gradient_norm=1e9)
    assert not [*compared.row_differences(made, made)]
    stated = Row(key="k", status="diverged", gradient_norm=1.0)  # an archive has no infinity
    assert [column for column, told in compared.row_differences(stated, made) if told] == ["gradient_norm"]


def test_notes_in_json_agree_up_to_rounding():
    made = Row(key="k", status="done", notes='{"F": 0.0374966228354312, "failed": 3}')
    close = Row(key="k", status="done", notes='{"F": 0.0374966228354311, "failed": 3}')
    assert not [*compared.row_differences(close, made)]
    for other in ('{"F": 0.0374967, "failed": 3}', '{"F": 0.0374966228354312, "failed": 4}', "F"):
        assert [*compared.row_differences(Row(key="k", status="done", notes=other), made)]


def test_a_row_is_chaotic_only_where_the_run_moves_as_far_itself():
    """The measure is what a start moved by rounding does to a run; a run that stays as it is denies every other row."""

    def row(objective, values=None):
        return Row(key="k", status="done", objective=objective, values=values, ending="met")

    assert compared.as_far(row(0.51), row(0.50), row(0.505), "objective")
    assert not compared.as_far(row(0.51), row(0.50), row(0.50), "objective")
    assert not compared.as_far(row(5.0), row(0.50), row(0.501), "objective")
    assert compared.as_far(row(0, [1.0, 2.0]), row(0, [1.1, 2.0]), row(0, [1.0, 2.1]), "values")
    assert not compared.as_far(row(0, [1.0]), row(0, [1.1, 2.0]), row(0, [1.0, 2.1]), "values")
    assert not compared.as_far(row(0.51), row(0.50), row(0.505), "ending")  # words


def test_a_forged_row_of_a_run_that_is_not_chaotic_stays_wrong(site, archived, tmp_path):
    change = each_row(lambda row: {**row, "objective": row["objective"] * (1 + 1e-5), "gradient_norm": 1e-9})
    forged = altered(archived.path, tmp_path / "forged.zip", rows__jsonl=change)
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=2, seed=0)
    assert found.outcome == "wrong"
    assert len(found.problems) == 2  # of each run the first that is wrong


def test_arrays_that_are_pinned_are_those_of_another_processor(monkeypatch):
    """A drawn data set has other last digits there; any other digest is of other data."""
    here = datasets.load("synthetic").sha256
    monkeypatch.setattr(verifying, "pinned", lambda: {datasets.describe("synthetic").versioned: Pin("1" * 64, {})})
    made = Row(key="k", problem="synthetic", data_sha256=f"{here} in units 2")
    assert verifying._as_pinned(Row(key="k", problem="synthetic", data_sha256=f"{'1' * 64} in units 2"), made)
    for other in (f"{'2' * 64} in units 2", f"{'1' * 64} in units 3", "1" * 64):
        assert not verifying._as_pinned(Row(key="k", problem="synthetic", data_sha256=other), made)


@pytest.mark.parametrize(
    ("there", "here", "same"),
    [
        (1.0, 1.0 + 1e-9, True), (1.0, 1.001, False), (1, 2, False), (0, None, False), (False, None, False),
        ("", None, True), (1e-12, 2e-12, False), (math.inf, None, True), (math.inf, 1.0, False), (1, True, False),
        ([1.0, 2.0], [1.0], False), ({"T": 1}, {"T": 1.0}, True), ({"T": 1}, {"T": 1, "c": 2}, False), (3, 3.0, True),
    ],
)  # fmt: skip
def test_values_agree_up_to_rounding_alone(there, here, same):
    assert compared.same(there, here) == same
    assert compared.same(here, there) == same


def exchanged(text):
    """The results of the seeds of each setting, rotated by one."""
    rows = [json.loads(line) for line in text.splitlines()]
    own = ("key", "seed", "identity")
    found = []
    for row in rows:
        like = [other for other in rows if other["identity"] == row["identity"]]
        other = like[(like.index(row) + 1) % len(like)]
        found.append({**other, **{name: row[name] for name in own}})
    return b"".join(json.dumps(row).encode() + b"\n" for row in found)


def scaled(text):
    """Every recorded loss made a hundredth."""
    traces = [json.loads(line) for line in text.splitlines()]
    for one in traces:
        one["excess"] = [each / 100 for each in one["excess"]]
    return b"".join(json.dumps(one).encode() + b"\n" for one in traces)


def with_identity(row):
    """The row of a version of the data that nobody has, with a key that fits it, and a tenth of its loss."""
    told = {**row["identity"], "data_version": 99}
    key = Keys(told)(row["seed"], row.get("timed", 0))
    return {**row, "identity": told, "key": key, "excess": row["excess"] / 10, "objective": row["objective"] / 2}


def renumbered(text):
    """The two best seeds of each setting as its first two, under keys of their new seeds."""
    rows = [json.loads(line) for line in text.splitlines()]
    found = []
    for like in {json.dumps(row["identity"]): row["identity"] for row in rows}.values():
        own = sorted((row for row in rows if row["identity"] == like), key=lambda row: row["objective"])
        for seed, row in enumerate(own[:2]):
            found.append({**row, "seed": seed, "key": Keys(like)(seed, row.get("timed", 0))})
    return b"".join(json.dumps(row).encode() + b"\n" for row in found)


def without_noise(row):
    """The row of a run without noise, under a key that says so, which calls itself private."""
    told = {**row["identity"], "planted": 0.0}
    return {**row, "identity": told, "key": Keys(told)(row["seed"], row.get("timed", 0))}


def cut_short(text):
    """Of every trace its last point."""
    traces = [json.loads(line) for line in text.splitlines()]
    cut = [{name: value if name == "key" else value[-1:] for name, value in one.items()} for one in traces]
    return b"".join(json.dumps(row).encode() + b"\n" for row in cut)


FORGERIES = {  # the page `design/papers.md` names them: what somebody might alter in an archive, digests made to fit
    "invented columns": {"rows__jsonl": each_row(lambda row: {**row, "ending": "converged", "hessian_evaluations": 1})},
    "exchanged seeds": {"rows__jsonl": exchanged},
    "left-out seeds": {"rows__jsonl": each_row(lambda row: None if row["seed"] == 2 else row)},
    "false accounting": {"rows__jsonl": each_row(lambda row: {**row, "accounting": "tight"})},
    "invented traces": {"traces__jsonl": scaled},
    "timed rows alone": {"rows__jsonl": each_row(lambda row: {**row, "seconds": 1e-6} if row.get("timed") else None),
                         "traces__jsonl": lambda text: b""},
    "invented times": {"rows__jsonl": each_row(lambda row: {**row, **({"seconds": 1e-6} if row.get("timed") else {})})},
    "invented supports": {"rows__jsonl": each_row(lambda row: {**row, "support_correct": 5, "support_wrong": 0})},
    "other identities": {"rows__jsonl": each_row(with_identity), "traces__jsonl": lambda text: b""},
    "traces without rows": {"traces__jsonl": lambda text: text + json.dumps(
        json.loads(text.splitlines()[0]) | {"key": "f" * 32}).encode() + b"\n"},
    "no traces": {"traces__jsonl": lambda text: b""},
    "the best seeds renumbered": {"rows__jsonl": renumbered, "traces__jsonl": lambda text: b""},
    "runs without noise": {"rows__jsonl": each_row(without_noise), "traces__jsonl": lambda text: b""},
    "traces cut short": {"traces__jsonl": cut_short},
    "a smaller grid": {f"code/{NAME}/grid__toml": lambda text: text.replace(b"seeds = 3", b"seeds = 2"),
                       "rows__jsonl": each_row(lambda row: None if row["seed"] == 2 else row),
                       "traces__jsonl": lambda text: b""},
    "times left out": {"rows__jsonl": each_row(lambda row: {k: v for k, v in row.items() if k != "seconds"})},
    "a column left out": {"rows__jsonl": each_row(lambda row: row.pop("epsilon_accounted") and row)},
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("accept", [(), ("seconds",)])
def test_no_forgery_holds(site, archived, tmp_path, name, accept):
    forged = altered(archived.path, tmp_path / "forged.zip", **FORGERIES[name])
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=2, seed=1, accept=accept)
    if name == "invented times" and accept:  # what is taken on trust is said
        assert found.accepted
    else:
        assert found.outcome != "holds", found.checked
    sure = {"exchanged seeds", "invented traces", "invented columns", "false accounting", "invented supports"}
    sure |= {"left-out seeds", "traces without rows"}  # the traces of the rows that were left out stay
    sure |= {"runs without noise", "traces cut short", "times left out"}
    assert (found.outcome == "wrong") == (name in sure), found


@pytest.mark.thorough
@pytest.mark.parametrize("name", experiments.BUILTIN)
def test_the_committed_rows_of_a_paper_hold_where_its_data_are(tmp_path, name):
    """What is not checked is what is not there: rows, traces, data, or an hour."""
    made = dpbench.archive(name, out=tmp_path / "paper.zip", results=Path(__file__).parents[2] / "results")
    found = dpbench.verify(made.path, sample=1, seed=1, accept=["seconds"])
    assert found.problems == []
    # Runs of o2nc without noise follow the kinks of the loss: which of them the sample draws is chance.
    lacking = re.compile("are not fetched$|chaotic|without a (row|trace) in it$|for want of rows|more than 20 minutes$")
    assert [line for line in found.unchecked if not lacking.search(line)] == []
    assert any(line.endswith("without a row in it") for line in found.unchecked) == (made.rows < made.planned)


def test_the_exit_code_says_what_became_of_it(site, archived, tmp_path):
    forged = altered(archived.path, tmp_path / "forged.zip", **FORGERIES["false accounting"])
    with installed(site, NAME):
        for path, more, code, word in (
            (archived.path, ["--accept", "seconds"], 0, "HOLDS"),
            (archived.path, [], 3, "NOT CHECKED"),
            (forged, ["--accept", "seconds"], 1, "WRONG"),
            (tmp_path / "none.zip", [], 2, "error"),
        ):
            done = CliRunner().invoke(command, [str(path), "--sample", "8", *more], standalone_mode=False)
            told = 2 if isinstance(done.exception, UserError) else done.return_value
            assert told == code, done.output
            assert code == 2 or word in done.output.splitlines()[0]


def test_of_a_run_whose_process_died_nothing_is_known(site, archived, tmp_path):
    forged = altered(
        archived.path, tmp_path / "forged.zip", rows__jsonl=each_row(lambda row: {**row, "status": "died"})
    )
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=8, accept=["seconds"])
    died = "8 runs: its process died, which another machine need not do"
    assert (found.again, found.unchecked) == (0, [died, "no run was made again"])


def test_one_forged_row_of_many_is_found_when_it_is_in_the_sample(site, archived, tmp_path):
    rows = iter(range(8))
    forged = altered(
        archived.path,
        tmp_path / "forged.zip",
        rows__jsonl=each_row(lambda row: {**row, "objective": 0.1, "excess": None} if next(rows) == 2 else row),
    )
    with installed(site, NAME):
        found = [not dpbench.verify(forged, sample=1, seed=seed).problems for seed in range(20)]
        assert (not dpbench.verify(forged, sample=1, seed=3).problems) == found[3]  # a seed repeats the choice
    assert {*found} == {True, False}


DOCTORED = {
    "its key is not that of its settings": lambda row: {**row, "key": "0" * 32},
    "it says another epsilon": lambda row: {**row, "epsilon": 0.1},
    "it says another T": lambda row: {**row, "settings": json.dumps({**json.loads(row["settings"]), "T": 4})},
    "without the first of their seeds": lambda row: None if row["seed"] == 1 else row,
    "its identity is none": lambda row: {**row, "identity": {}},
    "it has seconds, of a run that was not timed": lambda row: {**row, "seconds": 0.1},
    "it is of the experiment 'another'": lambda row: {**row, "experiment": "another"},
}


@pytest.mark.parametrize(("told", "change"), DOCTORED.items())
def test_what_does_not_fit_its_key_is_found_without_a_run(archived, tmp_path, told, change):
    doctored = altered(archived.path, tmp_path / "doctored.zip", rows__jsonl=each_row(change))
    found = dpbench.verify(doctored, sample=0)
    assert any(told in line for line in found.problems), found.problems


def test_the_row_of_a_sweep_may_say_other_settings_than_its_key_but_no_other_problem(archived):
    told, row = content.read_paper(archived.path).rows[0]
    told = {**told, "sweep": ["T"], "settings": {**told["settings"], "T": [4, 5]}}
    row.key = Keys(told)(row.seed, row.timed or 0)
    assert not [*verifying._of_its_key(verifying.Stated(told, row), NAME)]
    row.epsilon = 0.1
    assert [*verifying._of_its_key(verifying.Stated(told, row), NAME)] == [
        "it says another epsilon than its key stands for"
    ]


def test_a_run_has_one_row(archived, tmp_path):
    doctored = altered(archived.path, tmp_path / "d.zip", rows__jsonl=lambda text: text + text.splitlines()[0] + b"\n")
    assert "1 row of a run that has another row" in dpbench.verify(doctored, sample=0).problems


SPOILT = {
    "its method is in a file": lambda told: told.update(algorithm="/tmp/somebodys.py:Method"),
    "of data of somebody's own": lambda told: told.update(problem="own-salaries-0123abcd"),
    "it would take more than": lambda told: told["settings"].update(T=10**9),
    "it is no run that can be made here": lambda told: told["settings"].update(T="many"),
}


@pytest.mark.parametrize(("told", "change"), SPOILT.items())
def test_a_row_cannot_make_the_reader_run_what_he_did_not_choose(site, archived, tmp_path, told, change):
    """The keys fit: whoever writes an archive can hash as well."""

    def spoil(row):
        identity = row["identity"]
        if identity["algorithm"] != "dp-gd":
            return None  # else two rows might be of one run
        if row.get("timed"):
            return None
        change(identity)
        row["key"] = Keys(identity)(row["seed"], 0)
        row |= {"problem": identity["problem"], "settings": json.dumps(identity["settings"])}
        return row

    spoilt = altered(archived.path, tmp_path / "s.zip", rows__jsonl=each_row(spoil), traces__jsonl=lambda text: b"")
    with installed(site, NAME):
        found = dpbench.verify(spoilt, sample=8)
    assert found.again == 0
    assert any(told in line for line in found.unchecked), (found.unchecked, found.problems)


def test_bytes_that_changed_since_are_an_error_that_names_the_member(archived, tmp_path):
    with zipfile.ZipFile(archived.path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    for name, wrong, told in (
        ("lock.txt", b"other", "lock.txt is not what the manifest was made for"),
        ("code/x.py", b"new", "code/x.py: the manifest and the members are not of each other"),
        ("code/../../x", b"new", "points out of the archive"),
        ("code//tmp/x", b"new", "has no place in it"),  # which a folder joined with it would be /tmp/x
        (f"code/{NAME}", b"new", "is a file, and a folder of another member"),
        ("data.csv", b"new", "has no place in it"),
    ):
        path = tmp_path / "changed.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for each, content in {**found, name: wrong}.items():
                archive.writestr(each, content)
        with pytest.raises(UserError, match=told):
            dpbench.verify(path)
    (tmp_path / "no.zip").write_text("nothing")
    with pytest.raises(UserError, match="not a sound zip file"):
        dpbench.verify(tmp_path / "no.zip")


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({f"code/{i}.py": b"" for i in range(20_000)}, "a directory of .* bytes; at most 1,048,576"),
        ({f"code/{i}.py": bytes(1 << 20) for i in range(9)}, "its members have .* bytes together"),
        ({"rows.jsonl": b"\n" * 5_000_000}, "5,?000,?000 lines; at most 1,000,000"),
        ({"rows.jsonl": b"[" + b"0," * 1_000_000 + b"0]\n\n\n"}, "line 1: more than 1,048,576 bytes"),
    ],
)
def test_a_small_file_of_much_is_refused_before_it_is_made_anything_of(tmp_path, monkeypatch, members, told):
    monkeypatch.setattr(content, "UNPACKED", 8 << 20)
    manifest = {"format": 3, "kind": "paper", "experiment": "x", "title": "x", "profile": "full"}
    manifest |= {"distribution": "x", "code_version": "x"}
    found = {"rows.jsonl": b"{}\n" * 3, "lock.txt": b"", **members}
    manifest["sha256"] = {name: hashlib.sha256(each).hexdigest() for name, each in found.items()}
    with zipfile.ZipFile(tmp_path / "much.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in {**found, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, each)
    with pytest.raises(UserError, match=told):
        content.read_paper(tmp_path / "much.zip")


@pytest.mark.parametrize("tail", [b"a comment", b"PK\x06\x07" + bytes(16)])
def test_a_directory_whose_size_is_not_where_it_is_looked_for_is_not_read(archived, tmp_path, tail):
    whole = archived.path.read_bytes()
    other = tmp_path / "other.zip"
    other.write_bytes(whole + tail if tail[:2] != b"PK" else whole[:-22] + tail + whole[-22:])
    with pytest.raises(UserError, match="not a sound zip file"):
        content.read_paper(other)


def test_rows_that_were_not_run_are_counted(site, archived, tmp_path, results):
    shutil.copytree(results / "small", tmp_path / "small")
    store = Store(tmp_path, "small", NAME)
    store.compact(drop=set(store.runs().query("seed == 2")["key"]))
    with installed(site, NAME):
        made = dpbench.archive(NAME, "small", results=tmp_path, out=tmp_path / "part.zip")
        assert (made.rows, made.planned) == (6, 8)
        found = dpbench.verify(made.path, sample=6, accept=["seconds"])
    assert (found.outcome, found.unchecked) == ("not checked", ["2 runs of its grid without a row in it"])


def test_other_code_than_that_which_is_installed_is_named(site, archived, tmp_path):
    other = altered(
        archived.path, tmp_path / "other.zip", **{f"code/{NAME}/grid__toml": lambda text: text + b"# changed"}
    )
    with installed(site, NAME):
        found = dpbench.verify(other, sample=0)
    assert any("archived_paper/grid.toml differ" in line for line in found.unchecked)


OTHERWISE = {
    "": {},
    "it says another problem than its key stands for": {"row": {"problem": "log1"}},
    "it says another clip than its key stands for": {"row": {"settings": {"clip": 2.0, "more": 1}}},
    "it says another delta than its key stands for": {"row": {"delta": 2e-6}},
    "it says another relation than its key stands for": {"row": {"relation": "replace-one"}},
    "it is of the experiment 'an\\u2028other'": {"row": {"experiment": "an\u2028other"}},
    "it has seconds, of a run that was not timed": {"row": {"seconds": 1.0}},
    "it has no seconds, of a run that was timed": {"timed": 1},
}


@pytest.mark.parametrize("said", OTHERWISE)
def test_a_row_is_of_what_its_key_hashes(said):
    told = {"problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "delta": 1e-6, "relation": "add-remove",
            "settings": {"clip": 1.0}}  # fmt: skip
    row = {"problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "delta": 1e-6, "relation": "add-remove",
           "settings": {"clip": 1.0}, "experiment": "mine", "status": "done", "seed": 3}  # fmt: skip
    given = OTHERWISE[said]
    row |= given.get("row", {}) | {"timed": given.get("timed", 0)}
    one = Row(key=Keys(told)(3, row["timed"]), **row)
    assert [*verifying._of_its_key(verifying.Stated(told, one), "mine")] == [said] * bool(said)


def test_seconds_of_a_trace_are_of_a_timed_run_as_well():
    told = {"problem": "synthetic", "epsilon": 1.0, "delta": "n^-2", "settings": {}}
    row = Row(key=Keys(told)(0, 0), problem="synthetic", epsilon=1.0, delta=1e-6, experiment="mine")
    for seconds, said in (([None, None], []), ([None, 0.1], ["it has seconds, of a run that was not timed"])):
        stated = verifying.Stated(told, row, SimpleNamespace(seconds=seconds))
        assert [*verifying._of_its_key(stated, "mine")] == said


def test_seeds_that_are_left_out_are_counted_over_all_settings():
    rows = [verifying.Stated({"T": T}, Row(key=f"{T}-{seed}", seed=seed))
            for T, seeds in enumerate([(0, 1), (1, 2), (0, 2), (0,)]) for seed in seeds]  # fmt: skip
    assert [*verifying._seeds(rows)] == ["2 settings without the first of their seeds: some are left out"]
    assert [*verifying._seeds([*rows[:2], *rows[:2]])] == ["2 rows of a run that has another row"]
    archive = SimpleNamespace(rows=[({}, rows[0].row)], traces={"0-0": 1, "x": 1, "y": 1})
    assert [*verifying._traces(archive)] == ["2 traces of a run that has no row"]


def test_all_that_an_archive_lacks_of_its_grid_is_a_line_each(monkeypatch):
    rows = [verifying.Stated({}, Row(key=key, status=status)) for key, status in
            (("a", "done"), ("b", "done"), ("c", "died"), ("extra", "done"))]  # fmt: skip
    asked = {key: SimpleNamespace(trace=True) for key in ("a", "b", "c", "new")}
    planned = SimpleNamespace(by_key=asked, waiting=["one", "two"])
    found = SimpleNamespace(blocks=lambda profile: profile)
    monkeypatch.setattr(verifying.experiments, "names", lambda: ["mine"])
    monkeypatch.setattr(verifying.experiments, "get", lambda name: found)
    monkeypatch.setattr(verifying.paper, "files_of", lambda _: ({f"{i}.py": b"" for i in range(5)}, None))
    monkeypatch.setattr(verifying, "plan", lambda blocks, store: planned)
    code = {"0.py": b"", "4.py": b"other", "x-1.dist-info/METADATA": b""}
    archive = SimpleNamespace(manifest=SimpleNamespace(experiment="mine", profile="full"), code=code, traces={"a": 1})

    def said():
        result = verifying.Verified(archive.manifest, "", 0, 4, [])
        verifying._compare_grid(archive, rows, result)
        return result.checked, result.unchecked

    assert said() == ([], [
        "the installed mine is another version of it: 1.py, 2.py, 3.py differ",
        "1 run of its grid without a row in it", "2 combinations of its grid, for want of rows that are not in it",
        "1 row of runs that its grid, as installed here, does not ask for", "1 run of its grid without a trace in it",
    ])  # fmt: skip
    archive.code = {f"{i}.py": b"" for i in range(5)}
    planned.waiting, planned.by_key = [], {key: SimpleNamespace(trace=False) for key in "abc"}
    del rows[3]
    assert said() == (["the code of mine is that which is installed here"], [])
    monkeypatch.setattr(verifying, "plan", lambda blocks, store: {}["none"])
    assert said()[1] == ["its grid cannot be planned here on its rows (KeyError)"]
    monkeypatch.setattr(verifying.experiments, "names", lambda: [])
    assert said() == ([], ["its experiment mine is not installed here; code in the archive is not run"])


def test_a_run_of_twenty_minutes_is_made_again_and_one_of_more_is_not(monkeypatch):
    job = SimpleNamespace(key="k", parsed=lambda: SimpleNamespace(T=7), private=True)
    one = SimpleNamespace(job=job, row=SimpleNamespace(key="k"))
    monkeypatch.setattr(verifying, "work", lambda job: 5)
    monkeypatch.setattr(verifying, "describe", lambda job, settings: Row(key=job.key))
    for seconds in (1200.0, 1200.1):
        monkeypatch.setattr(verifying, "seconds", lambda *of, took=seconds: took if of == (5, 7, 1) else 0.0)
        found = verifying._before(one)
        assert (found == "it would take more than 20 minutes") == (seconds > 1200)
    one.row.key = "another"
    assert verifying._before(one) == "another version of its method, data or problem is installed here"


def test_a_line_that_is_no_row_is_named_by_its_number():
    line = {"identity": {}, "key": "0" * 32}
    for more, said in (
        ({"settings": "{"}, "rows.jsonl, line 2: Input data was truncated"),
        ({"seed": 1.5}, "rows.jsonl, line 2: Expected `int | null`, got `float` - at `$.seed`"),
    ):
        text = "".join(json.dumps(one) + "\n" for one in (line, line | more))
        with pytest.raises(UserError) as error:
            content._paper(None, {"rows.jsonl": text.encode()})
        assert str(error.value) == said
