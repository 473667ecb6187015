"""A small experiment with a figure, a table, claims, published means and gaps, and its pages."""

import pandas as pd
import pytest

from dpbench import experiments, report
from dpbench.errors import NotAtHand
from dpbench.experiments.base import Artefact, Claim, Experiment, Verdict
from dpbench.report.compare import Comparison, compare
from dpbench.report.output import Figure, Table
from dpbench.results import Store


def drawn(context):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    axis.plot([1, 2, 3], [3, 1, 2], label="<ours> & theirs")
    axis.legend()
    return Figure(figure, pd.DataFrame({"x": [1, 2, 3], "y": [3, 1, 2]}), "Mean of 3 seeds. δ < n⁻² & more.", ["a1a"])


def tabled(context):
    wide = {f"a column of number {i}": ["0.123 ± 0.004 (T = 1000)", "–"] for i in range(12)}
    return Table(pd.DataFrame({"name": ["<b>", "R&D"], **wide}), "Twelve columns.")


class Small(Experiment):
    def grid(self, config=None):
        return {"quick": []}

    def published_text(self):
        return "# of the paper\n[tabled]\nx = 1 # < 2\n"


SMALL = Small(
    name="small",
    title="A small & made-up experiment",
    citation="Nobody, Nowhere 2000",
    package="dpbench.experiments.small",
    artefacts=(Artefact("drawn", "Fig. 1: x < y", drawn), Artefact("tabled", "Table 1: wide", tabled)),
    claims=(
        Claim("1", "x < y at ε = 1", lambda context: Verdict(True, "2 > 1")),
        Claim("2", "y < x", lambda context: Verdict(False, "1 < 2; the longest of all sentences " * 8)),
        Claim("3", "neither", lambda context: Verdict(None, "rows missing: dpbench run --experiment small/drawn")),
    ),
    comparisons=lambda context: [Comparison("mean of y", compare([1.0, 1.01, 0.99], 1.0))],
)


def row(seed):
    return {"key": f"k{seed}", "problem": "synthetic", "algorithm": "dp-gd", "seed": seed, "status": "done",
            "code_version": "0.1", "data_sha256": "ab" * 32, "relation": "add-remove",
            "environment": "Python 3 & more", "checked_by": "dp_accounting"}  # fmt: skip


@pytest.fixture(autouse=True)
def no_reading_of_raw_files(monkeypatch):
    """The errata read a large raw file once per data cache: a test that needs it asks for it."""

    def absent(name):
        raise NotAtHand(f"data set {name} is not at hand; run: dpbench fetch {name}")

    monkeypatch.setattr("dpbench.datasets.unclipped.unclipped_row_norms", absent)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The experiment, registered beside one that has no rows, with results under tmp_path / "results"."""
    monkeypatch.setattr(experiments, "NAMES", ("small", "absent"))
    monkeypatch.setattr(experiments, "get", lambda name: SMALL if name == "small" else Small(
        "absent", "Absent", "Nobody", "dpbench.experiments.absent", ()))  # fmt: skip
    Store(tmp_path / "results", "quick", "small").write([row(0), row(1)], [])
    return SMALL


@pytest.fixture
def site(small, tmp_path):
    """figures/quick with the pages of `small`, all built by `dpbench report`."""
    lines = list(report.build(results=tmp_path / "results", figures=tmp_path / "figures"))
    assert lines[-1] == f"to read all of it, open {tmp_path / 'figures' / 'quick' / 'index.html'}"
    return tmp_path / "figures" / "quick"
