"""What the tests of all papers share."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch):
    """A saved figure is laid out and drawn once; that each format is written is tests/study/test_output.py's."""

    def savefig(self, path, **options):
        if path.suffix == ".svg":
            self.draw_without_rendering()
        path.write_bytes(b"drawn elsewhere")

    monkeypatch.setattr(Figure, "savefig", savefig)
