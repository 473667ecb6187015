"""Runs of completed settings, put together by hand."""

from dpbench.privacy.budget import Budgets
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.run.bound import Bound


def run_batch(problem, algorithm, settings, start, budget, keys, *, traced=False, noiseless=False, kind=Mechanisms):
    """A `BatchRun` of settings that are already completed, at one budget or at `Budgets`."""
    budgets = [budget[i] for i in range(len(keys))] if isinstance(budget, Budgets) else [budget] * len(keys)
    bound = Bound(algorithm, problem, list(settings), budgets, start, list(keys))
    return bound.run(traced=traced, noiseless=noiseless, mechanisms_class=kind)
