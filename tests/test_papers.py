"""The papers in packages of their own, in `papers/`: each is found, short, and passes its own tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpbench import experiments
from dpbench.run.store import Store
from dpbench.study.plan import plan
from tests.own.test_size import lines_of_code
from tests.packages import install, installed

ROOT = Path(__file__).resolve().parent.parent
PAPERS = sorted(path.parent for path in (ROOT / "papers").glob("*/pyproject.toml"))
MOST = 450  # lines of code of a paper


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where all of them are installed: one may build on another."""
    folder = tmp_path_factory.mktemp("site") / "site-packages"
    folder.mkdir()  # of this name: a served method's process sees no other folder of the path
    for paper in PAPERS:
        install(paper, folder)
    return folder


@pytest.mark.thorough_for("wang2018", "lev2026")  # seconds to plan
@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_a_paper_is_found_and_its_rows_are_of_its_grid(paper, site):
    with installed(site, *(each.name for each in PAPERS)):
        assert paper.name in experiments.names()
        one = experiments.get(paper.name)
        store = Store(paper / "results", "full", one.name)
        rows = store.runs()
        assert set(rows["key"]) <= plan(one.blocks("full"), store).keys
        assert rows["status"].isin(["done", "refused"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_a_paper_passes_its_own_tests(paper, site, tmp_path):
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    own = ["-c", paper / "pyproject.toml", paper / "tests"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *own]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_a_paper_is_short(paper):
    modules = (paper / paper.name).glob("*.py")
    assert sum(lines_of_code(path.read_text(encoding="utf-8")) for path in modules) <= MOST
