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
    n, d, l1, l2: rows, columns and the weights of ‖w‖₁ and ‖w‖²/2.
    background: what the rows that both data sets share pull each coordinate by, in units of the pull of the row that
        differs in the first of them; one number or one per coordinate. 0: nothing but that row pulls.
    steepest: the row that differs has the largest gradient that the constants allow, and curvature nowhere; False
        takes the loss as it is, at w = 0.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    accounting: str = "paper"
    loss: str = ""
    n: int = 4
    d: int = 2
    l1: float = 0.0
    l2: float = 0.0
    background: float | tuple[float, ...] = 0.0
    steepest: bool = True
