"""What the published runs did otherwise: nine switches, each a setting of its own, none of them a default.

With all of them a run repeats the published one. Three keep its ε: where the loss is read, the bound of the search, and
the second √d. A run with any other is marked as not private, see `FLAWS`.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, Literal, NamedTuple

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.nonconvex.oracle import Iterate, Method, Minibatch, Request, RunLost, Value
from dpbench.errors import UserError
from dpbench.privacy.torch_cpu import TorchCPU

Rows = Literal["clipped", "as scaled"]  # the latter for problems whose rows nobody clipped
Stop = Literal["released", "true loss"]  # what may end a run early
LossRead = Literal["after", "before"]  # the last step
BatchNoise = Literal["m", "n"]  # the rows of the mean that the noise is for
BatchDraw = Literal["without replacement", "with replacement"]  # the latter: one batch for gradient and Hessian
Search = Literal["none", "rho <= 1"]  # the bound of the scripts' search for σ = √(T/ρ)
Overflow = Literal["stable", "lost"]  # a run whose loss a float32 cannot hold
HessianRoot = Literal["once", "twice"]  # the √d in dp-tr's Hessian noise
Stream = Literal["keyed", "published"]

FLAWS = {
    ("rows", "as scaled"): "rows may be longer than the bound that its noise is for",
    ("stop", "true loss"): "it ends where the true loss rises, which is not released",
    ("batch_noise", "n"): "means over m rows get the noise of a mean over all n, n/m times too little",
    ("batch_draw", "with replacement"): (
        "one batch, drawn with replacement, serves gradient and Hessian; its ε is counted as without replacement with "
        "a batch for each, which is less than the truth"
    ),
    ("overflow", "lost"): "whether a run is lost depends on the margins, which are not released",
    ("stream", "published"): "its noise is that of a published seed, which anyone can subtract",
}
SEEDS = (2023, 999, 67, 33, 128)  # of the published runs of Tables 1 to 4; a job's seed is an index into them

LOOK_EVERY = 10  # iterations
RISES = {"logistic": 1, "sigmoid": 3}  # looks in a row at which the true loss has risen
AT_FIRST = 100.0  # what the first look is compared with
LARGEST_RHO = 1.0  # of the scripts' search: they add no less noise than √T, at any ε


def flaws(settings: Any) -> list[str]:
    """Why a run with these settings does not keep its ε: a reason for each switch that breaks it."""
    return [why for (name, value), why in FLAWS.items() if getattr(settings, name, None) == value]


class LossWatch:
    """The published runs' stop: has f itself risen since the last look, often enough in a row?

    It looks at every tenth iteration of a run, whichever phase that is in.
    """

    def __init__(self, problem: dp.Problem, on: bool, iterations: int = 0) -> None:
        """iterations: those made before the first that it may look at."""
        if on and problem.loss.name not in RISES:
            raise UserError(f"stop: true loss is of the losses {', '.join(RISES)}, not of {problem.loss.name}")
        self._on, self._rises = on, RISES[problem.loss.name] if on else 0
        self._last, self._risen, self._t = AT_FIRST, 0, iterations

    def look(self, w: dp.Array) -> Generator[Request, Any, bool]:
        """Generator that returns whether the step from w is the last."""
        t, self._t = self._t, self._t + 1
        if not self._on or t % LOOK_EVERY:
            return False
        value = yield Value(w)
        self._risen = self._risen + 1 if value > self._last else 0
        self._last = value
        return self._risen >= self._rises


def recorded(method: Method, settings: Any) -> Method:
    """`method`, with the iterate whose loss the published scripts print, and with runs that are lost."""
    before, last, answer = getattr(settings, "loss_read", "after") == "before", None, None
    while True:
        try:
            request = method.send(answer)
        except RunLost:
            # The scripts write no row for a lost run; ours ends where it was, with its ending in the row.
            assert last is not None
            return last, "crashed"
        except StopIteration as end:
            w, ending = end.value
            return (last if before and last is not None else w), ending
        if isinstance(request, Iterate):
            last = request.w
        answer = yield request


class PublishedSwitches(NamedTuple):
    """The generators of one published run: one for its start and all its noise, one for the rows of its batches."""

    noise: TorchCPU
    rows: np.random.Generator


def published_streams(mechanisms: dp.Mechanisms) -> list[PublishedSwitches]:
    """Those of a batch's replicates: their jobs' seeds 0 to 4 stand for the five published ones.

    Raises:
        UserError: for any other seed, and for runs that are no jobs.
    """
    seeds = mechanisms.seeds
    if len(seeds) != mechanisms.k or not all(0 <= seed < len(SEEDS) for seed in seeds):
        raise UserError(
            f"stream: the published stream has seeds 0 to {len(SEEDS) - 1} (of torch: "
            f"{', '.join(map(str, SEEDS))}), not {', '.join(map(str, seeds)) or 'a run without a seed'}; "
            f"run it with --seeds {len(SEEDS)}"
        )
    return [PublishedSwitches(TorchCPU(SEEDS[i]), np.random.default_rng(SEEDS[i])) for i in seeds]


class SharedMinibatch(Minibatch):
    """g̃ and H̃ on the same m rows, drawn with replacement at the start of the iteration.

    Multipliers are recorded relative to the sensitivities on m rows, Δ_g = 2B_g/m and Δ_H = 2B_H√d/m.
    """

    def _samplers(self, mechanisms, n, m):
        one = mechanisms.with_replacement(n, m, label="batch")
        return one, one

    def _gradient_rows(self):
        # The gradient comes first in every iteration; the Hessian then takes the same batch.
        self._rows = super()._gradient_rows()
        return self._rows

    def _hessian_rows(self):
        return self._rows


def searched(multiplier: float, T: int, settings: Any) -> float:
    """`multiplier`, which ε asks for, or what the published search makes of it for T iterations."""
    return max(multiplier, math.sqrt(T / LARGEST_RHO)) if settings.search == "rho <= 1" else multiplier
