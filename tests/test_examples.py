"""What the README tells a user to write must run as it stands."""

import re
from pathlib import Path

import pytest

from dpbench.cli import main

ROOT = Path(__file__).resolve().parent.parent


def test_the_example_algorithm_runs_from_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(["run", "--algo", f"{ROOT / 'examples' / 'my_algorithm.py'}:MyAlgorithm", "--dataset", "synthetic",
              "--eps", "1", "--seeds", "3", "--jobs", "1"])  # fmt: skip
    out, err = capsys.readouterr()
    assert exit_.value.code in (0, None), err
    assert out.splitlines()[2].split()[:2] == ["synthetic", "averaged-gd"]


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S))
def test_python_in_the_readme_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
