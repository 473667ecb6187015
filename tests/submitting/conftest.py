"""One sound submission for all tests here."""

from pathlib import Path

import pytest

from dpbench import algorithms
from tests.submitting import archives

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "my_algorithm.py"


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The example's submission; its file leaves a mark wherever it is executed with RAN in the environment."""
    folder = tmp_path_factory.mktemp("stranger")
    mark = "\nimport os, pathlib\nif 'RAN' in os.environ:\n    pathlib.Path(os.environ['RAN']).write_text('ran')\n"
    (folder / "mine.py").write_text(EXAMPLE.read_text() + mark)
    for name in algorithms.names(plugins=False):  # else the fork of every check imports them anew
        algorithms.resolve(name)
    said = []
    path = archives.made(
        f"{folder / 'mine.py'}:MyAlgorithm", folder / "mine.zip", folder / "results", notify=said.append
    )
    assert any("left out: diabetes-ridge" in line for line in said)
    return path
