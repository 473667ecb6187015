"""What the tests of all papers share."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch):
    """A saved figure is drawn in one format; that it is saved in all of them is tests/study/test_output.py's."""
    draw = Figure.savefig

    def savefig(self, path, **options):
        if path.suffix == ".svg":
            draw(self, path, **options)
        else:
            path.write_bytes(b"drawn elsewhere")

    monkeypatch.setattr(Figure, "savefig", savefig)
