"""Which differences of means are larger than their error."""

from __future__ import annotations

import numpy as np
import pandas as pd

TIE = 2.0  # standard errors of a difference


def beaten_by(cell: pd.DataFrame) -> pd.Series:
    """How many of the cell's methods are better by more than two standard errors of the difference, each."""
    mean, se = cell["mean"].to_numpy(), cell["se"].fillna(0).to_numpy()
    with np.errstate(invalid="ignore"):
        gap = mean[:, None] - mean[None, :]
        clear = gap > TIE * np.hypot(se[:, None], se[None, :])
    clear |= np.isinf(mean)[:, None] & np.isfinite(mean)[None, :]
    return pd.Series(clear.sum(axis=1), index=cell.index)
