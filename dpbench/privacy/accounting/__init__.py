"""The accountings by name, a class and a file each: built in, or from the entry points `dpbench.accountings`.

None of this room imports `dpbench.privacy.verify`, or is imported by it: what sets the noise and what checks it are two
routes (a test draws the graph).
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from dpbench.errors import UserError, nearest
from dpbench.privacy.accounting.advanced import Advanced
from dpbench.privacy.accounting.as_released import AsReleasedCode
from dpbench.privacy.accounting.base import Accounting
from dpbench.privacy.accounting.basic import Basic
from dpbench.privacy.accounting.bs16 import BunSteinke
from dpbench.privacy.accounting.cks20 import CanonneKamathSteinke
from dpbench.privacy.accounting.poisson import PoissonSample
from dpbench.privacy.accounting.pure import Pure
from dpbench.privacy.accounting.rdp import Renyi
from dpbench.privacy.accounting.standard import Standard
from dpbench.privacy.accounting.text import Text
from dpbench.privacy.accounting.tight import Tight

__all__ = ["Accounting", "get", "names"]

_MODES = (
    Text, BunSteinke, CanonneKamathSteinke, Standard, Tight, Renyi, PoissonSample, Advanced, Basic, Pure,
    AsReleasedCode,
)  # fmt: skip
_BUILT_IN: dict[str, Accounting] = {mode.name: mode() for mode in _MODES}


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
