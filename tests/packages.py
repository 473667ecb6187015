"""Packages installed for a test: a wheel, built and laid out as pip does it, and found by their entry points."""

import importlib
import os
import sys
import zipfile
from contextlib import contextmanager

from hatchling import build

from dpbench import experiments
from dpbench.algorithms import registry as algorithms
from dpbench.datasets import loading as datasets
from dpbench.problems import losses
from dpbench.reporting import errata_pages
from dpbench.run import execute

CACHED = (
    experiments.get, experiments.names, experiments._points, errata_pages.computed, algorithms._registered,
    algorithms._plugins, datasets._known, losses.names, losses._installed, losses._plugin,
)  # fmt: skip


def forget():
    """What is installed is looked up anew."""
    importlib.invalidate_caches()
    for one in CACHED:
        one.cache_clear()


def install(package, site):
    """Lay the files of the package's wheel out in the folder `site`."""
    there = os.getcwd()
    os.chdir(package)
    try:
        wheel = build.build_wheel(str(site))
    finally:
        os.chdir(there)
    with zipfile.ZipFile(site / wheel) as files:
        files.extractall(site)
    (site / wheel).unlink()


@contextmanager
def installed(site, *modules):
    """`site` on the path, also of the processes of a run; at the end it is taken away, and its `modules` forgotten."""
    sys.path.insert(0, str(site))
    path, execute.PATH = execute.PATH, os.pathsep.join([str(site), execute.PATH])
    execute.THEIRS.end()
    forget()
    try:
        yield
    finally:
        execute.PATH = path
        execute.THEIRS.end()
        sys.path.remove(str(site))
        for name in [name for name in sys.modules if name.partition(".")[0] in modules]:
            del sys.modules[name]
        forget()
