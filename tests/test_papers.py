"""The papers in packages of their own, in `papers/`: each is found, short, and passes its own tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpbench import experiments
from tests.packages import install, installed

ROOT = Path(__file__).resolve().parent.parent
PAPERS = sorted(path.parent for path in (ROOT / "papers").glob("*/pyproject.toml"))
MOST = 400  # lines of Python of a paper


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_a_paper_is_found_and_passes_its_own_tests(paper, tmp_path, data_cache):
    site = tmp_path / "site"
    site.mkdir()
    for each in PAPERS:  # one may build on another
        install(each, site)
    with installed(site, *(each.name for each in PAPERS)):
        assert paper.name in experiments.names()
        assert experiments.get(paper.name).blocks("full")
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        paper / "pyproject.toml",
        paper / "tests",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_a_paper_is_short(paper):
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (paper / paper.name).glob("*.py"))
    assert lines <= MOST
