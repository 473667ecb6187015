"""A small experiment with a figure, a table, claims, published means and gaps, and its pages."""

import shutil
import sys

import pandas as pd
import pytest

from dpbench import experiments
from dpbench.errors import NotAtHand
from dpbench.reporting import build as report
from dpbench.reporting import errata_pages
from dpbench.run.store import Store
from dpbench.study.claims import NOT_HELD, Case, NotEnough, Verdict, Why
from dpbench.study.experiment import Experiment
from dpbench.study.output import Figure, Table
from dpbench.study.printed import Number
from dpbench.study.value_verdict import HONEST, Place, PublishedValue
from tests.batches import write
from tests.declared import artefact, claim, erratum


@artefact("drawn", "Fig. 1: x < y")
def drawn(context):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    axis.plot([1, 2, 3], [3, 1, 2], label="<ours> & theirs")
    axis.legend()
    return Figure(figure, pd.DataFrame({"x": [1, 2, 3], "y": [3, 1, 2]}), ["a1a"], "Mean of 3 seeds. δ < n⁻² & more.")


@artefact("tabled", "Table 1: wide")
def tabled(context):
    wide = {f"a column of number {i}": ["0.123 ± 0.004 (T = 1000)", "–"] for i in range(12)}
    return Table(pd.DataFrame({"name": ["<b>", "R&D"], **wide}), caption="Twelve columns.")


@claim("1", "x < y at ε = 1")
def held(context):
    return Verdict.of(True, "2 > 1")


@claim("2", "y < x", place="Section 2, Fig. 1", shows="drawn", why=[Why(NOT_HELD, "y is smaller there", "tabled")])
def not_held(context):
    return Verdict.of(False, "1 < 2; the longest of all sentences " * 8)


@claim("3", "neither")
def without_rows(context):
    raise NotEnough(artefact="drawn")


@erratum("Half of the noise", ran="Half of it.", misses="The other half.", bounds="Closed form.")
def half_of_it():
    yield Case("T = 1", 1.0, 2.0, 2.0)


class Small(Experiment):
    links = (("doi:10.1/small", "https://doi.org/10.1/small"),)

    def grid(self, config=None):
        return {"quick": []}

    def published(self):
        return {"pages": {"Fig. 1": 3, "Table 1": 7}}

    def published_text(self):
        return "# of the paper\n[tabled]\nx = 1 # < 2\n"


SMALL = Small(
    name="small",
    title="A small & made-up experiment",
    citation="Nobody, Nowhere 2000",
    package="dpbench.experiments.small",
    modules=(sys.modules[__name__],),
    published_values=lambda context: [
        PublishedValue(
            Place("Table 1", "y", "mean"),
            "tabled",
            (Number("y", "1.0", k=3),),
            {HONEST: {"y": [1.0, 1.01] * 20}},
            planted={0.5: {"y": [0.3, 0.31] * 10}, 2.0: {"y": [3.0, 3.1] * 10}},
        ),
        PublishedValue(Place("Table 1", "y", "seconds"), "tabled", (Number("seconds", "2.5"),), run_time=True),
    ],
    short="Small",
)


def row(seed, problem="synthetic"):
    return {"key": f"{problem}{seed}", "problem": problem, "algorithm": "dp-gd", "seed": seed, "status": "done",
            "settings": '{"T":5}', "epsilon": 1.0, "epsilon_accounted": 1.0, "epsilon_planned": 0.9, "delta": 1e-8,
            "accounting": "bs16", "private": True, "timed": 0, "excess": 0.1 + seed, "objective": 0.5 + seed,
            "code_version": "0.1", "data_sha256": "ab" * 32, "relation": "add-remove",
            "environment": "Python 3 & more", "checked_by": "dp_accounting"}  # fmt: skip


def absent(name):
    raise NotAtHand(f"data set {name} is not fetched; run: dpbench fetch {name}")


@pytest.fixture(autouse=True)
def no_reading_of_raw_files(monkeypatch):
    """The errata read a large raw file once per data cache: a test that needs it asks for it.

    They are computed once per process, so each test starts and ends without any, in whatever order tests run.
    """
    monkeypatch.setattr("dpbench.datasets.loading.unclipped_row_norms", absent)
    errata_pages.computed.cache_clear()
    yield
    errata_pages.computed.cache_clear()


def register(monkeypatch, folder):
    """The experiment beside one that has no rows, with results under folder / "results"."""
    monkeypatch.setattr(experiments, "names", lambda: ("small", "absent"))
    monkeypatch.setattr(experiments, "get", lambda name: SMALL if name == "small" else Small(
        "absent", "Absent", "Nobody", "dpbench.experiments.absent"))  # fmt: skip
    write(Store(folder / "results", "quick", "small"), [row(0), row(1, "a1a")], [])


@pytest.fixture
def small(monkeypatch, tmp_path):
    register(monkeypatch, tmp_path)
    return SMALL


@pytest.fixture(scope="session")
def built_site(tmp_path_factory):
    """figures/quick with the pages of `small`, all built by `dpbench report`: a test that writes takes `site`."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        register(patch, folder)
        patch.setattr("dpbench.datasets.loading.unclipped_row_norms", absent)
        errata_pages.computed.cache_clear()
        lines = list(report.build(results=folder / "results", figures=folder / "figures"))
        errata_pages.computed.cache_clear()
    assert lines[-1] == f"to read all of it, open {folder / 'figures' / 'quick' / 'index.html'}"
    return folder / "figures" / "quick"


@pytest.fixture
def site(built_site, small, tmp_path):
    """A copy of the site that a test may change, beside the rows it is of."""
    return shutil.copytree(built_site, tmp_path / "figures" / "quick")
