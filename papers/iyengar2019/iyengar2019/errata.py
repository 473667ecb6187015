"""What the released code draws, and the guarantee that it states."""

import math
from collections.abc import Iterator

from dpbench.study.declare import Case, erratum

SEEDS = 256


@erratum(
    "Noise of the released code comes from 256 seeds",
    ran="np.random.seed(ord(os.urandom(1))) before the noise of a run, in every algorithm of the released code",
    misses="the Gaussian mechanism: all noise of a run of AMP is one of 256 draws, which anyone can list",
    bounds="AMP starts from 0 and draws nothing else, so it has 256 outputs on a data set. Those on a neighbour are "
    "others, and an output tells the two apart: no ε holds at the stated δ. On paper AMP is as stated",
)
def seeds() -> Iterator[Case]:
    """One case for all: the number of seeds does not depend on ε."""
    yield Case(f"AMP and H-F AMP, at every published ε ({SEEDS} outputs)", 10.0, math.inf, math.inf)
