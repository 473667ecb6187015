"""The experiments by name, each loaded when it is asked for: the benchmark's own, and those of installed packages.

A package lists its `Experiment` under the entry points ``dpbench.experiments``. Those of `BUILTIN` are loaded by
the same kind of entry; a package's is checked before it is let in.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import warnings
from functools import cache
from importlib.metadata import EntryPoint

from dpbench.errors import UserError, nearest
from dpbench.study.experiment import Experiment
from dpbench.version import DISTRIBUTION, __version__

ENTRY_POINTS = "dpbench.experiments"
BUILTIN = ("second_order", "accelerated", "zeroth_order", "greedy_coordinate", "nonconvex", "leaderboard")
TAKEN = ("all", "adhoc", "profiles", "submissions")  # words of the command line, and folders of the results


@cache
def _points() -> dict[str, EntryPoint]:
    """name → where it is; a built-in name is never another package's."""
    points = {name: EntryPoint(name, f"dpbench.experiments.{name}:EXPERIMENT", ENTRY_POINTS) for name in BUILTIN}
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if point.name in points and points[point.name].value != point.value:
            warnings.warn(f"experiment {point.name} ({point.value}) is left out: the name is taken", stacklevel=2)
        points.setdefault(point.name, point)
    return points


@cache
def names() -> tuple[str, ...]:
    """The built-in ones in their order, then those of installed packages; one that cannot be loaded is warned of."""
    kept = list(BUILTIN)
    for name in sorted(_points().keys() - set(BUILTIN)):
        try:
            get(name)
        except UserError as error:  # one broken package must not take the others along
            warnings.warn(f"{error}; it is left out", stacklevel=2)
        else:
            kept.append(name)
    return tuple(kept)


@cache
def get(name: str) -> Experiment:
    """The experiment called `name`; UserError for an unknown one, and for a package that does not load."""
    if name not in _points():
        raise UserError(f"unknown experiment {name!r}: {nearest(name, _points())}")
    point = _points()[name]
    if name in BUILTIN:
        ours: Experiment = importlib.import_module(point.module).EXPERIMENT
        return ours
    try:
        loaded = point.load()
    except Exception as error:  # a package of others may fail in any way; the line says which
        raise UserError(f"experiment {name} ({point.value}): {type(error).__name__}: {error}") from error
    return _checked(loaded, name, point.value)


def distribution_of(name: str) -> importlib.metadata.Distribution | None:
    """The distribution whose package has the experiment `name`; None for dpbench's own."""
    return None if name in BUILTIN else _points()[name].dist


def distribution(name: str) -> str:
    """Its name and version, as "my-paper 0.1.0"."""
    package = distribution_of(name)
    return f"{DISTRIBUTION} {__version__}" if package is None else f"{package.metadata['Name']} {package.version}"


def _checked(loaded: object, name: str, where: str) -> Experiment:
    """`found` as it may be entered; UserError where its rows or pages would get into another's folder."""
    if not isinstance(loaded, Experiment):
        raise UserError(f"experiment {name} ({where}): it must be a dpbench.study.experiment.Experiment")
    if loaded.name != name:
        raise UserError(f"experiment {name} ({where}): its name is {loaded.name!r}; call both alike")
    if name in TAKEN or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"experiment {name!r} ({where}): a name has small letters, digits and _, and is none of: "
                        f"{', '.join(TAKEN)}")  # fmt: skip
    return loaded
