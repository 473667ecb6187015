"""Which device sums over rows are taken on: that of `dpbench run --device`, or of DPBENCH_DEVICE, in every process.

A worker of dask has its own: `DPBENCH_DEVICE=gpu CUDA_VISIBLE_DEVICES=1 dask worker …` is a worker for the second GPU.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpbench.errors import UserError, how_to_install
from dpbench.problems import Problem, catalogue
from dpbench.problems.kernels import Rows

VARIABLE = "DPBENCH_DEVICE"


def chosen() -> str | None:
    """The device of this process; None for NumPy."""
    return os.environ.get(VARIABLE) or None


def check(device: str | None) -> None:
    """UserError where JAX is not installed or has no such device."""
    rows(np.zeros((1, 1)), np.ones(1), device)


@contextmanager
def using(device: str | None) -> Iterator[None]:
    """Take `device` meanwhile, here and in the processes that are started; None leaves what is chosen.

    Raises UserError where JAX is not installed or has no such device.
    """
    before = os.environ.get(VARIABLE)
    check(device)
    if device is not None:
        os.environ[VARIABLE] = device
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def rows(X: Any, y: np.ndarray, device: str | None) -> Rows:
    """Rows on `device`; sparse ones, and all where it is None, in memory."""
    if device is None or hasattr(X, "tocsr"):
        return Rows(X, y)
    found: Rows = _jax().DeviceRows(X, y, device)
    return found


def _jax() -> Any:
    """The module of rows on a device; UserError without JAX."""
    try:
        from dpbench.problems import device
    except ImportError:
        raise UserError(f"device: rows on a device need JAX; {how_to_install('jax')}") from None
    return device


def place(problem: Problem, device: str | None) -> Problem:
    """The problem, its sums taken on `device` from now on. UserError for a loss that is written for NumPy alone."""
    if device is not None and not problem.is_sparse:
        _jax().check(problem.loss)
        problem.__dict__["_rows"] = rows(problem.X, problem.y, device)
    return problem


def build(name: str) -> Problem:
    """The problem of the catalogue, on the device of this process."""
    device = chosen()
    return catalogue.build(name) if device is None else _placed(name, device)


@functools.lru_cache(maxsize=2)
def _placed(name: str, device: str) -> Problem:
    return place(copy.copy(catalogue.build(name)), device)
