"""Runs of completed settings, and rows, put together by hand."""

from dpbench.privacy.budget import Budgets
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.run.bind import BoundRun
from dpbench.run.row import Point, Row


def run_batch(problem, algorithm, settings, start, budget, keys, *, traced=False, noiseless=False, kind=Mechanisms):
    """A `BatchRun` of settings that are already completed, at one budget or at `Budgets`."""
    budgets = [budget[i] for i in range(len(keys))] if isinstance(budget, Budgets) else [budget] * len(keys)
    bound = BoundRun(algorithm, problem, list(settings), budgets, start, list(keys))
    return bound.run(traced=traced, noiseless=noiseless, mechanisms_class=kind)


def write(store, runs, traces=()):
    """Add made-up rows: columns by name, the settings as JSON."""
    store.write([Row.read(row) for row in runs], [Point(**point) for point in traces])
