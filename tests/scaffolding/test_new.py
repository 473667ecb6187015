"""A package that `dpbench new` begins passes its own tests, ruff and the audit, and every verb takes it."""

import ast
import importlib.util
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import dpbench
from dpbench import experiments, scaffolding
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.reporting import errata_pages
from tests.packages import install, installed

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = {"paper": "tiny_paper", "algorithm": "heavy-descent", "dataset": "tiny-data", "loss": "tiny-loss"}


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """(folder of the packages, where they are installed)."""
    folder, site = tmp_path_factory.mktemp("begun"), tmp_path_factory.mktemp("site") / "site-packages"
    site.mkdir()  # of this name: a served method's process sees no other folder of the path
    for kind, name in NAMES.items():
        dpbench.new(kind, name, out=folder)
        install(folder / name, site)
    return folder, site


def test_each_passes_ruff_whatever_its_name(begun, tmp_path):
    for kind, name in product(NAMES, ("a", "long-" * 7 + "names")):
        (tmp_path / kind).mkdir(exist_ok=True)
        scaffolding.new(kind, name, out=tmp_path / kind)
    for what in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *what, "--no-cache", *map(str, begun[0].iterdir()), str(tmp_path)]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_each_takes_of_dpbench_what_is_there(begun):
    """A rename in dpbench reaches the templates, which are text to every other check of `make test`."""
    taken = [
        (node.module, alias.name)
        for file in begun[0].rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpbench")
        for alias in node.names
    ]
    assert {module for module, _ in taken} >= {"dpbench.study.value_verdict", "dpbench.algorithms.base"}
    for module, name in taken:
        there = importlib.import_module(module)
        assert hasattr(there, name) or importlib.util.find_spec(f"{module}.{name}"), (module, name)


@pytest.mark.thorough
def test_each_passes_its_own_tests(begun):
    folder, site = begun
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, folder.iterdir())]
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout


def test_a_paper_has_at_most_sixty_lines_of_python(begun):
    assert len((begun[0] / "tiny_paper" / "tiny_paper" / "__init__.py").read_text().splitlines()) <= 60


@pytest.mark.thorough
def test_every_verb_takes_the_paper_until_it_is_removed(begun, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(errata_pages, "computed", tuple)  # those of the built-in papers take seconds

    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main([*words])
        assert ended.value.code == 0, capsys.readouterr()
        return capsys.readouterr().out

    of = ("--experiment", "tiny_paper", "--profile", "quick")
    with installed(begun[1], "tiny_paper", "heavy_descent", "tiny_data", "tiny_loss"):
        assert experiments.names() == (*experiments.BUILTIN, "tiny_paper")
        call("run", *of, "--jobs", "1")
        assert [path.name for path in (tmp_path / "results" / "quick").iterdir()] == ["tiny_paper"]
        assert "120" in call("status", *of)
        call("report", *of)
        figures = tmp_path / "figures" / "quick"
        assert "Tiny paper" in (figures / "tiny_paper" / "index.html").read_text(encoding="utf-8")
        assert (figures / "tiny_paper" / "published_values.md").is_file()
        assert any(figures.glob("*errata*"))
        assert "held" in call("report", *of, "--check")
        assert "0 moved" in call("diff", "results/quick", "results/quick")
        assert "Tiny paper" in call("list", "--cite", "tiny_paper")
        assert "digest: " in call("archive", "tiny_paper", "--profile", "quick", "--out", "paper.zip")
        assert "2 runs of 120 made again" in call("verify", "paper.zip", "--sample", "2")
        assert all(name in call("list") for name in NAMES.values())
    assert experiments.names() == experiments.BUILTIN
    with pytest.raises(UserError, match="unknown experiment 'tiny_paper'"):
        dpbench.status("tiny_paper")
    assert len(dpbench.results("tiny_paper", "quick")) == 120


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("papers", "mine", "no template of 'papers'"),
        ("paper", "Mine", "is no name"),
        ("paper", "../mine", "is no name"),
        ("paper", "1st", "is no name"),
        ("paper", "a" * 41, "is no name"),
        ("paper", "class", "Python has a module class"),
        ("paper", "numpy", "Python has a module numpy"),
        ("paper", "second-order", "the name second_order is taken by a paper"),
        ("paper", "adhoc", "the name adhoc is taken"),
        ("algorithm", "dp-gd", "the name dp-gd is taken by a private optimiser"),
        ("dataset", "log1", "the name log1 is taken by a data set"),
        ("loss", "pseudo-huber", "the name pseudo-huber is taken by a loss"),
        ("loss", "softmax-3", "the name softmax-3 is taken by a loss"),
    ],
)
def test_a_name_that_will_not_do_is_one_line_and_nothing_is_written(tmp_path, kind, name, message):
    with pytest.raises(UserError, match=message):
        scaffolding.new(kind, name, out=tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="mine is there already"):
        scaffolding.new("paper", "mine", out=tmp_path)
    assert not [*(tmp_path / "mine").iterdir()]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scaffolding.os, "rename", full)
    with pytest.raises(UserError, match="mine cannot be written: No space left"):
        scaffolding.new("paper", "mine", out=tmp_path)
    assert not [*tmp_path.iterdir()]
