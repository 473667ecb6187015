"""One submission for all tests here, and a board of one small problem with two seeds."""

from pathlib import Path

import msgspec
import pytest

from dpbench.leaderboard import tracks
from dpbench.submitting import checking, making

STRANGERS = Path(__file__).parents[1] / "serving" / "strangers.py"
PROBLEM = "gen-tiny"


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The submission of an honest method."""
    return making.submit(f"{STRANGERS}:Honest", author="Ada", out=tmp_path_factory.mktemp("made") / "honest.zip")


@pytest.fixture
def small(monkeypatch):
    """The quick board, on one problem with two seeds."""
    default_blocks = tracks.default_blocks

    def few(profile, grid):
        found = default_blocks(profile, grid)
        return [msgspec.structs.replace(one, seeds=2) for one in found if one.problems == [PROBLEM]]

    monkeypatch.setattr(tracks, "default_blocks", few)


@pytest.fixture
def check(small, tmp_path):
    """Check an archive, or the class of that name among the strangers, on the small board."""

    def checked(archive, **given):
        if isinstance(archive, str):
            archive = making.submit(f"{STRANGERS}:{archive}", author="Ada", out=tmp_path / f"{archive}.zip")
        return checking.check_submission(archive, profile="quick", results=tmp_path, jobs=1, **given)

    return checked
