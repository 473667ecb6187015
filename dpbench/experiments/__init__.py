"""The experiments by name; each is loaded when it is asked for."""

from __future__ import annotations

import functools
import importlib

from dpbench.errors import UserError, nearest
from dpbench.study.experiment import Experiment

NAMES = ("second_order", "accelerated", "zeroth_order", "greedy_coordinate", "nonconvex", "leaderboard")


@functools.cache
def get(name: str) -> Experiment:
    """The experiment called `name`; UserError for an unknown one."""
    if name not in NAMES:
        raise UserError(f"unknown experiment {name!r}: {nearest(name, NAMES)}")
    return importlib.import_module(f"dpbench.experiments.{name}").EXPERIMENT
