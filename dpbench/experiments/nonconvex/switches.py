"""The nine differences between an honest run and a published one, and which of them each method's published runs have.

Each is one setting of the algorithm (`dpbench.algorithms.nonconvex.published`), read in the authors' public scripts.
"""

from __future__ import annotations

import functools

from dpbench.study.paper import Paper
from dpbench.study.verdicts import Switch

PUBLISHED = "published"  # all that the published runs of a method have

SWITCHES = (
    Switch("rows as scaled", ("rows", "as scaled"), "scripts: X / 4 and X / 3, and no row is clipped to the bound"),
    Switch("true-loss stop", ("stop", "true loss"), "scripts: f itself, every ten iterations, ends opt and opt-ls"),
    Switch(
        "loss before the last step",
        ("loss_read", "before"),
        "scripts: the loss is kept at the start of an iteration",
        keeps_epsilon=True,
    ),
    Switch("batch noise for n", ("batch_noise", "n"), "scripts: sensitivities 2B/n on batches of n // 100 rows"),
    Switch(
        "batch drawn with replacement",
        ("batch_draw", "with replacement"),
        "scripts: choice(n, size=m), once for gradient and Hessian",
    ),
    Switch("search of ρ ≤ 1", ("search", "rho <= 1"), "scripts: the search for ρ is bounded by 1", keeps_epsilon=True),
    Switch("overflow loses the run", ("overflow", "lost"), "scripts: log1p(exp(-t)) in float32, errors are caught"),
    Switch(
        "second √d",
        ("hessian_root", "twice"),
        "loss B's scripts: dp-tr's Hessian noise has √d twice",
        keeps_epsilon=True,
    ),
    Switch("published stream", ("stream", "published"), "scripts and job file: seeds 2023, 999, 67, 33, 128"),
)
PAPER = Paper("dpbench.experiments.nonconvex", SWITCHES)
_NAMES = {one.setting[0]: one.name for one in SWITCHES}


@functools.cache
def published(problem: str, method: str) -> tuple[str, ...]:
    """The names of the switches that the published runs of a method have, in the order of `SWITCHES`.

    >>> published("ijcnn-logistic", "dp-tr")
    ('rows as scaled', 'loss before the last step', 'overflow loses the run', 'published stream')
    """
    loss_a = "logistic" in problem
    minibatch = method.endswith("-b")
    own = {"rows"}
    own |= {"overflow", "stream"} if loss_a else set()
    own |= {"batch_noise", "batch_draw"} if minibatch else {"loss_read"}
    own |= {"search"} if method in ("opt-b", "2opt-b") else set()
    own |= {"hessian_root"} if method.startswith("dp-tr") and not loss_a else set()
    own |= {"stop"} if method in (("opt", "opt-ls") if loss_a else ("opt", "opt-ls", "2opt", "2opt-ls")) else set()
    return tuple(name for setting, name in _NAMES.items() if setting in own)
