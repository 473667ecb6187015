"""What `dpbench audit` runs an algorithm on: a tiny problem on which neighbours are as far apart as they can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class AuditCase:
    """The worst case of one algorithm; every field has a default that suits most.

    settings: beside those its name fixes. T = 2 is added where the algorithm has a T, so that composition is at stake.
    accounting: as `--accounting`; choose the one whose noise is not larger by design than the releases need.
    loss: by name; "" takes the first that `needs` covers, or squared loss for an algorithm that clips.
    n, d, l2: rows, columns and the weight of ‖w‖²/2.
    background: what the rows that neighbours share pull each coordinate by, as a multiple of one row's largest
        gradient: 0 leaves the row that differs alone in the data.
    start: of every coordinate.
    slope: the differing row's derivative in units of the loss's Lipschitz constant; None leaves the loss as it is
        (see `dpbench.audit.neighbours`).
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    accounting: str = "paper"
    loss: str = ""
    n: int = 4
    d: int = 2
    l2: float = 0.0
    background: float = 0.0
    start: float = 0.0
    slope: float | None = 1.0
