"""How long the rows of nonconvex's data sets are as its authors scale them, before anything is clipped."""

from __future__ import annotations

from dataclasses import dataclass

from dpbench.datasets.loading import load
from dpbench.datasets.recipes import row_norms


@dataclass(frozen=True)
class RowNorms:
    """The largest ‖x_i‖₂ and how many of the `rows` are longer than 1."""

    largest: float
    beyond_1: int
    rows: int


def unclipped_row_norms(name: str) -> RowNorms:
    """Of the data set `name`, "covertype12-unclipped" or "ijcnn-unclipped".

    Raises NotAtHand if the data set is not prepared; never uses the network.
    """
    norms = row_norms(load(name).X)
    return RowNorms(float(norms.max()), int((norms > 1).sum()), len(norms))
