"""Options and helpers that several verbs share. An option has the name of its argument in the API."""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from typing import Any

import click

from dpbench.errors import UserError


class Epsilon(click.ParamType):  # type: ignore[type-arg]  # generic in the newest clicks only
    """An ε > 0; a list is refused with how to give several."""

    name = "ε"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """`value` as a positive finite float; UserError for any other."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            parts = str(value).replace(",", " ").split()
            repeated = " ".join(f"--eps {each}" for each in parts)
            several = f"; for several, repeat it: {repeated}" if len(parts) > 1 else ""
            raise UserError(f"--eps must be a positive number, got {str(value)!r}{several}")
        return number


EPSILON = Epsilon()
EPS = click.option(
    "--eps",
    "epsilon",
    type=EPSILON,
    multiple=True,
    default=[1.0],
    metavar="ε",
    help="ε of the guarantee, 1 by default; may be repeated.",
)
RESULTS = click.option(
    "--out", "--results", "results", default="results", show_default=True, metavar="DIR", help="Folder of the results."
)
RESULTS_ONLY = click.option("--results", default="results", show_default=True, metavar="DIR", help="Where rows lie.")
JOBS = click.option("--jobs", type=int, metavar="N", help="Worker processes; all cores by default.")
SEEDS = click.option("--seeds", type=int, metavar="N", default=5, show_default=True, help="How many seeds.")


class _Later(types.ModuleType):
    """Stands for a module until a name of it is asked for; importlib's own LazyLoader loads at a second `import`."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        vars(self).update(vars(importlib.import_module(self.__name__)))
        return object.__getattribute__(self, name)


def lazily(name: str) -> None:
    """Let `import name` load the module at the first use of one of its names: a verb that uses none does not wait."""
    if name not in sys.modules:
        later = _Later(name)
        later.__spec__ = importlib.util.find_spec(name)
        sys.modules[name] = later


def say(line: str) -> None:
    """What is no result goes to stderr."""
    click.echo(line, err=True)


def parse_shares(pairs: tuple[str, ...]) -> dict[str, float]:
    """["yes=0.03"] → {"yes": 0.03}; UserError for anything else."""
    shares: dict[str, float] = {}
    for pair in pairs:
        name, equals, value = pair.rpartition("=")
        try:
            if not (name and equals):
                raise ValueError
            shares[name] = float(value)
        except ValueError:
            raise UserError(f"--share takes CLASS=SHARE, as in yes=0.03, got {pair!r}") from None
    return shares
