"""The accountings by name, a class and a file each: found in this folder, or by the entry points `dpbench.accountings`.

None of this room imports `dpbench.privacy.verify`, or is imported by it: what sets the noise and what checks it are two
routes (a test draws the graph).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules

from dpbench.errors import UserError, nearest
from dpbench.privacy.accounting.base import Accounting

__all__ = ["Accounting", "get", "names"]


def _of_this_folder() -> dict[str, Accounting]:
    """Those of this folder, by name: every file in it may have some."""
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    classes = {one for module in modules for one in vars(module).values() if isinstance(one, type)}
    modes = [one for one in classes if issubclass(one, Accounting) and "name" in vars(one)]
    return {mode.name: mode() for mode in sorted(modes, key=lambda mode: mode.name)}


_BUILT_IN = _of_this_folder()


@cache
def names() -> tuple[str, ...]:
    """The built-in ones first."""
    return (*_BUILT_IN, *(name for name in _installed() if name not in _BUILT_IN))


@cache
def get(name: str) -> Accounting:
    """The accounting `name`; UserError with the nearest name where there is none."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if name not in _installed():
        raise UserError(f"unknown accounting {name!r}; {nearest(name, names())}")
    mode = _installed()[name].load()
    if not (isinstance(mode, type) and issubclass(mode, Accounting) and mode.name == name):
        raise UserError(f"accounting {name!r}: its entry point must be a subclass of Accounting with that name")
    return mode()


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="dpbench.accountings")}
