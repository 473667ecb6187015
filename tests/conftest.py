"""What all tests share: one data cache per session, apart from the developer's own."""

import atexit
import fnmatch
import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

from dpbench import datasets
from dpbench.algorithms import registry
from dpbench.cli import main
from dpbench.datasets import cache
from dpbench.run import executors

gc.set_threshold(100_000, 50, 50)  # as the command line has it: collecting tests makes many objects and few cycles


def pytest_itemcollected(item):
    """The cases that `thorough_for` names are thorough; of `thorough_but` those are that it does not name."""
    for name, fits in (("thorough_for", True), ("thorough_but", False)):
        mark = item.get_closest_marker(name)
        if mark and any(fnmatch.fnmatchcase(item.callspec.id, pattern) for pattern in mark.args) == fits:
            item.add_marker("thorough")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """What was collected stays to the end: looking for garbage among it, again and again, took a tenth of the time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """What is left when a pass finds no garbage is in use: the five in which pytest looks for more took seconds."""
    for _ in range(5):
        if not gc.collect():
            break
    gc.freeze()
    if "duckdb" in sys.modules:
        atexit.register(gc.unfreeze)  # at its end DuckDB reports what is frozen as leaked, in two hundred lines


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Examples are in the docstrings of dpbench, none in those of tests."""
    return [one for one in (yield) if not isinstance(one, DoctestModule)]


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """Ctrl-C reaches the processes that tests start, also where the shell ignores it (background jobs)."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def data_cache(tmp_path_factory):
    """A data cache for the whole session (all xdist workers): each data set is prepared at most once.

    Raw files come from DPBENCH_MIRROR, else from the developer's own cache, which is only read.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    own_raw = cache.root() / "raw"
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("DPBENCH_MIRROR") and own_raw.is_dir():
            patch.setenv("DPBENCH_MIRROR", str(own_raw))
        patch.setenv("DPBENCH_DATA", str(base / "data"))
        patch.delenv("COLUMNS", raising=False)  # xdist says 80, so tables would be another there
        yield base / "data"


@pytest.fixture(scope="session", autouse=True)
def one_core():
    """Runs that name no `jobs` are made in this process: to start workers takes seconds; tests of pools name them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executors, "cores", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def no_code_of_others():
    """What a test before this one imported changes nothing of how built-in methods run."""
    registry.FOREIGN.clear()
    os._exit = registry.EXIT


@pytest.fixture(scope="session")
def real_data(data_cache):
    """A function: name -> Dataset; skips the test if its files are not at hand."""

    def load(name):
        mirror = os.environ.get("DPBENCH_MIRROR", "")
        if mirror and not mirror.startswith("http") and not Path(mirror).is_dir():
            pytest.skip(f"DPBENCH_MIRROR: there is no folder {mirror}")
        if not datasets.available(name):
            pytest.skip(f"{name} is not fetched: set DPBENCH_MIRROR or run: dpbench fetch {name}")
        return datasets.load(name)

    return load


@pytest.fixture
def one_process(monkeypatch):
    """An audit starts no process of its own for each world, which takes five processor seconds; returns who asked."""
    asked = []
    monkeypatch.setattr("dpbench.auditing.runs.told_apart", lambda *given: (asked.append(given), "")[1])
    return asked


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run the command line in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        with pytest.raises(SystemExit) as exit_:
            main([str(a) for a in args])
        out, err = capsys.readouterr()
        return exit_.value.code or 0, out, err

    return run
