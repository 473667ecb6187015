"""Adult in the order, and with the test rows, of the released benchmark code that the paper takes its data from."""

from dataclasses import replace

import numpy as np
from dpbench.problems.catalogue import SPLIT
from iyengar2019.data import ADULT as ITS

SEED, TEST = 10000019, 5  # of the released datasets/preprocess/adult.py; one row in five is a test row


def prepare(raw):
    """The rows shuffled as there, its last fifth at the positions that `apart=5` keeps for scores."""
    X, y = ITS.prepare(raw)
    order = np.arange(len(y))[:, None]  # two-dimensional, as their table: the draws are the same for either
    np.random.RandomState(SEED).shuffle(order)  # noqa: NPY002 (the legacy stream is the one that was published)
    order = order[:, 0]
    away = np.random.Generator(np.random.PCG64DXSM(SPLIT)).permutation(len(y))[: len(y) // TEST]
    placed = np.empty_like(order)
    rest = np.setdiff1d(np.arange(len(y)), away)
    placed[rest], placed[np.sort(away)] = order[: len(rest)], order[len(rest) :]
    return X[placed], y[placed]


ADULT = replace(
    ITS,
    name="yu-adult",
    title="UCI Adult with the split of the benchmark code of Iyengar et al. (2019)",
    prepare=prepare,
    recipe=f"{ITS.recipe}; in an order in which apart=5 keeps the released code's test rows",
)
