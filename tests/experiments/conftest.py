"""What the tests of all papers share."""

import pytest
from matplotlib.figure import Figure

from dpbench.study import paper
from dpbench.study.claims import HELD


def first_verdict(claim, context):
    """The first verdict of a claim; what it says of wrong runs, which takes most of the time, where it may count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "words_on_wrong_runs", lambda *_: lambda verdict: ("", True))
        found = claim.judge(context)[0]
    return claim.judge(context)[0] if found.word == HELD else found  # which alone may turn out to be not testable


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch):
    """A saved figure is laid out and drawn once; that each format is written is tests/study/test_output.py's."""

    def savefig(self, path, **options):
        if path.suffix == ".svg":
            self.draw_without_rendering()
        path.write_bytes(b"drawn elsewhere")

    monkeypatch.setattr(Figure, "savefig", savefig)
