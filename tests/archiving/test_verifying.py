"""An experiment's archive: what was altered is found, what cannot be checked is named, code runs if asked for."""

import hashlib
import io
import json
import shutil
import zipfile

import msgspec
import pytest

import dpbench
from dpbench import experiments
from dpbench.archiving import bundle, verifying
from dpbench.errors import UserError
from dpbench.run.jobs import Keys
from dpbench.run.results import Store
from dpbench.submitting import harness, sandbox, zipped
from tests.packages import install, installed

NAME = "archived_paper"
EXPERIMENT = """
import sys
from dpbench.study.declare import artefact
from dpbench.study.experiment import Experiment
from dpbench.study.output import Table

@artefact("table1", "Table 1")
def table1(context):
    return Table(context.rows("table1")[["seed"]].astype(str), "Seeds.")

EXPERIMENT = Experiment(name="archived_paper", title="An archived paper", citation="Nobody 2026",
                        package="archived_paper", modules=(sys.modules[__name__],))
"""
METHOD = """
import os, pathlib
from dpbench.algorithms.gd import DPGradientDescent

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
    for name, text in {"__init__.py": EXPERIMENT, "method.py": METHOD, "grid.toml": GRID}.items():
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


def here(folder, limits):
    """The harness in this process, with the archive's code on the path."""
    pipe = io.BytesIO()
    with installed(folder / "code", NAME):
        harness.serve(folder, pipe)
    pipe.seek(0)
    while size := int.from_bytes(pipe.read(4), "big"):
        yield msgspec.msgpack.decode(pipe.read(size), type=sandbox.Frame)


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
    manifest["rows"] = len(found["rows.jsonl"].splitlines())
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
    assert (archived.rows, archived.planned, archived.left_out) == (6, 6, [])
    with zipfile.ZipFile(archived.path) as archive:
        names = set(archive.namelist())
    assert {"manifest.json", "rows.jsonl", "lock.txt", f"code/{NAME}/grid.toml", f"code/{NAME}/method.py"} <= names
    assert "code/archived_paper-1.0.dist-info/entry_points.txt" in names
    found = bundle.read(archived.path)
    assert found.manifest.distribution == "archived-paper 1.0"
    assert found.digest == archived.digest
    assert found.manifest.data["synthetic"][0] == found.rows[0][1].data_sha256
    with installed(site, NAME):
        again = dpbench.archive(NAME, "small", results=results, out=results / "again.zip")
        with pytest.raises(UserError, match=r"no rows in .*; run: dpbench run --experiment"):
            dpbench.archive(NAME, "small", results=results / "nothing")
    assert again.path.read_bytes() == archived.path.read_bytes()


def test_whole_numbers_of_a_frame_with_gaps_are_whole_in_the_archive():
    told = bundle._plain({"key": "0" * 32, "T": 5.0, "iterations": float("nan"), "values": [1.0, float("inf")]})
    assert told == {"key": "0" * 32, "T": 5, "values": [1.0, None]}
    assert isinstance(told["T"], int)


def test_a_sound_archive_is_run_again_by_what_is_installed(site, archived):
    with installed(site, NAME):
        found = dpbench.verify(archived.path, sample=6)
    assert (found.problems, found.unchecked, found.again) == ([], [], 6)
    assert any("is that which is installed here" in line for line in found.checked)


def test_without_the_package_its_code_is_not_run_unless_asked_for(archived, monkeypatch, tmp_path):
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    found = dpbench.verify(archived.path, sample=6)
    assert (found.problems, found.again) == ([], 3)  # those of dp-gd
    assert any("3 runs: its method is not installed here; --run-code" in line for line in found.unchecked)
    assert not (tmp_path / "ran").exists()
    found = verifying.verified(archived.path, sample=6, run_code=True, run=here)
    assert (found.problems, found.again) == ([], 6)
    assert (tmp_path / "ran").exists()
    assert NAME not in experiments.names()


def test_of_the_archives_own_method_the_delta_is_that_of_the_key(archived, tmp_path):
    forged = altered(archived.path, tmp_path / "forged.zip", rows__jsonl=each_row(lambda row: {**row, "delta": 0.5}))
    found = verifying.verified(forged, sample=6, run_code=True, run=here)
    assert sum("its row says delta = 0.5, its key stands for" in line for line in found.problems) == 3


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bwrap"), reason="no bubblewrap")
def test_its_code_runs_in_the_sandbox(archived):
    found = dpbench.verify(archived.path, sample=6, run_code=True)
    assert (found.problems, found.again) == ([], 6)


FORGED = {
    "its row says objective": lambda row: {**row, "objective": row["objective"] - 0.01},
    "its row says excess": lambda row: {**row, "excess": row["excess"] / 2},
    "its row says held_accuracy": lambda row: {**row, "held_accuracy": 1.0},
    "its row says gradient_norm": lambda row: {**row, "gradient_norm": 1e-9},
    "its row plans ε": lambda row: {**row, "epsilon_planned": 0.5},
    "its row says delta": lambda row: {**row, "delta": 1e-12},
    "its row says counts_public": lambda row: {**row, "counts_public": "nothing"},
    "its row says relation": lambda row: {**row, "relation": "replace-one"},
    "its row says diverged": lambda row: {**row, "status": "diverged"},
    "its row says refused, run again it is done": lambda row: {**row, "status": "refused", "error": "no"},
    "its key stands for a run of": lambda row: {**row, "algorithm": "dp-sgd"},
}


@pytest.mark.thorough
@pytest.mark.parametrize(("told", "change"), FORGED.items())
def test_a_forged_row_is_found_by_running_it_again(site, archived, tmp_path, told, change):
    forged = altered(archived.path, tmp_path / "forged.zip", rows__jsonl=each_row(change))
    assert dpbench.verify(forged, sample=0).sound  # digests and keys are those of the forged rows
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=6)
    assert len(found.problems) == 6
    assert all(told in line for line in found.problems)


def test_of_a_run_whose_process_died_nothing_is_known(site, archived, tmp_path):
    forged = altered(
        archived.path, tmp_path / "forged.zip", rows__jsonl=each_row(lambda row: {**row, "status": "died"})
    )
    with installed(site, NAME):
        found = dpbench.verify(forged, sample=6)
    assert (found.again, found.unchecked) == (0, ["6 runs: its process died, which another machine need not do"])


def test_an_error_of_a_method_that_is_not_installed_is_not_judged(archived, tmp_path):
    forged = altered(
        archived.path, tmp_path / "forged.zip", rows__jsonl=each_row(lambda row: {**row, "status": "refused"})
    )
    found = verifying.verified(forged, sample=6, run_code=True, run=here)
    assert f"3 runs: {verifying.UNJUDGED}" in found.unchecked


def test_a_forged_row_of_the_archives_own_method_is_found_in_the_sandbox(archived, tmp_path):
    forged = altered(
        archived.path,
        tmp_path / "forged.zip",
        rows__jsonl=each_row(lambda row: {**row, "objective": 0.1} if row["algorithm"] == "archived-gd" else row),
    )
    found = verifying.verified(forged, sample=6, run_code=True, run=here)
    assert len(found.problems) == 3
    assert all("its code run again gives" in line for line in found.problems)


def test_one_forged_row_of_many_is_found_when_it_is_in_the_sample(site, archived, tmp_path):
    rows = iter(range(6))
    forged = altered(
        archived.path,
        tmp_path / "forged.zip",
        rows__jsonl=each_row(lambda row: {**row, "objective": 0.1, "excess": None} if next(rows) == 2 else row),
    )
    with installed(site, NAME):
        found = [dpbench.verify(forged, sample=1, seed=seed).sound for seed in range(12)]
        assert dpbench.verify(forged, sample=1, seed=3).sound == found[3]  # a seed repeats the choice
    assert {*found} == {True, False}


DOCTORED = {
    "its key is not that of its settings": lambda row: {**row, "key": "0" * 32},
    "it says another epsilon": lambda row: {**row, "epsilon": 0.1},
    "it says another T": lambda row: {**row, "settings": json.dumps({**json.loads(row["settings"]), "T": 4})},
    "without the first of their seeds": lambda row: None if row["seed"] == 1 else row,
    "its identity is none": lambda row: {**row, "identity": {}},
}


@pytest.mark.parametrize(("told", "change"), DOCTORED.items())
def test_what_does_not_fit_its_key_is_found_without_a_run(archived, tmp_path, told, change):
    doctored = altered(archived.path, tmp_path / "doctored.zip", rows__jsonl=each_row(change))
    found = dpbench.verify(doctored, sample=0)
    assert any(told in line for line in found.problems), found.problems


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
        change(identity)
        row["key"] = Keys(identity)(row["seed"], 0)
        row |= {"problem": identity["problem"], "settings": json.dumps(identity["settings"])}
        return row

    spoilt = altered(archived.path, tmp_path / "spoilt.zip", rows__jsonl=each_row(spoil))
    with installed(site, NAME):
        found = dpbench.verify(spoilt, sample=6)
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
        ({"rows.jsonl": b"\n" * 5_000_000}, "5,?000,?000 rows, where the manifest says 3"),
        ({"rows.jsonl": b"[" + b"0," * 1_000_000 + b"0]\n\n\n"}, "line 1: more than 1,048,576 bytes"),
    ],
)
def test_a_small_file_of_much_is_refused_before_it_is_made_anything_of(tmp_path, monkeypatch, members, told):
    monkeypatch.setattr(zipped, "UNPACKED", 8 << 20)
    manifest = {
        **{"format": 1, "experiment": "x", "title": "x", "profile": "full", "distribution": "x", "code_version": "x"},
        **{"code_versions": [], "environments": [], "rows": 3, "planned": 3, "data": {}, "sha256": {}},
    }
    found = {"rows.jsonl": b"{}\n" * 3, "lock.txt": b"", **members}
    manifest["sha256"] = {name: hashlib.sha256(each).hexdigest() for name, each in found.items()}
    with zipfile.ZipFile(tmp_path / "much.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in {**found, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, each)
    with pytest.raises(UserError, match=told):
        bundle.read(tmp_path / "much.zip")


@pytest.mark.parametrize("tail", [b"a comment", b"PK\x06\x07" + bytes(16)])
def test_a_directory_whose_size_is_not_where_it_is_looked_for_is_not_read(archived, tmp_path, tail):
    whole = archived.path.read_bytes()
    other = tmp_path / "other.zip"
    other.write_bytes(whole + tail if tail[:2] != b"PK" else whole[:-22] + tail + whole[-22:])
    with pytest.raises(UserError, match="not a sound zip file"):
        bundle.read(other)


def test_rows_that_were_not_run_are_counted(site, archived, tmp_path, results):
    shutil.copytree(results / "small", tmp_path / "small")
    store = Store(tmp_path, "small", NAME)
    store.compact(drop=set(store.runs().query("seed == 2")["key"]))
    with installed(site, NAME):
        made = dpbench.archive(NAME, "small", results=tmp_path, out=tmp_path / "part.zip")
        assert (made.rows, made.planned) == (4, 6)
        found = dpbench.verify(made.path, sample=0)
    assert found.unchecked == ["2 runs of its grid have no row in it"]


def test_how_many_runs_its_grid_asks_for_is_not_the_archives_word(site, archived, tmp_path):
    short = altered(
        archived.path,
        tmp_path / "short.zip",
        manifest__json=lambda text: text.replace(b'"planned": 6', b'"planned": 4'),
        rows__jsonl=each_row(lambda row: None if row["seed"] == 2 else row),
    )
    assert bundle.read(short).manifest.planned == 4
    with installed(site, NAME):
        assert dpbench.verify(short, sample=0).unchecked == ["2 runs of its grid have no row in it"]


def test_other_code_than_that_which_is_installed_is_named(site, archived, tmp_path):
    other = altered(
        archived.path, tmp_path / "other.zip", **{f"code/{NAME}/grid__toml": lambda text: text + b"# changed"}
    )
    with installed(site, NAME):
        found = dpbench.verify(other, sample=0)
    assert any("archived_paper/grid.toml differ" in line for line in found.unchecked)
