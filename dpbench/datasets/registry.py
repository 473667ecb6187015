"""The data sets by name: those of the benchmark, those of installed packages, those registered by hand."""

from __future__ import annotations

import importlib.metadata
import warnings
from functools import cache

from dpbench.datasets.own import OWN, stored_spec
from dpbench.datasets.spec import DatasetSpec
from dpbench.errors import UserError, nearest

ENTRY_POINTS = "dpbench.datasets"
MODULES = ("bounded_tables", "drawn", "real")  # those of the benchmark


@cache
def _known() -> dict[str, DatasetSpec]:
    modules = (importlib.import_module(f"dpbench.datasets.{name}") for name in MODULES)
    known = {spec.name: spec for module in modules for spec in module.SPECS}
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            _add(known, point.load())
        except Exception as error:  # one broken package must not take the others along
            warnings.warn(f"data set {point.name} ({point.value}) is left out: {error}", stacklevel=2)
    return known


def _add(known: dict[str, DatasetSpec], spec: DatasetSpec) -> None:
    if not isinstance(spec, DatasetSpec):
        raise UserError(f"data set: {spec!r} is not a DatasetSpec")
    if known.get(spec.name, spec) is not spec:
        raise UserError(f"data set: the name {spec.name} is taken; choose another")
    known[spec.name] = spec


def register(spec: DatasetSpec) -> DatasetSpec:
    """Make a data set known to this process; packages use the entry points ``dpbench.datasets``."""
    _add(_known(), spec)
    return spec


def names() -> list[str]:
    """The names of all data sets, sorted."""
    return sorted(_known())


def is_own(name: str) -> bool:
    """Is it a data set of the user's, kept by `own.keep`?"""
    return name.startswith(OWN)


def describe(name: str) -> DatasetSpec:
    """The data set called `name`. Raises UserError with the nearest name if there is none."""
    if is_own(name) and name not in _known():
        return stored_spec(name)
    try:
        return _known()[name]
    except KeyError:
        raise UserError(f"data set: there is no {name}; {nearest(name, _known())}") from None
