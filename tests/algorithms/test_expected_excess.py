"""The excess loss of methods on data sets that come with scikit-learn, against what a prototype of another code had."""

import numpy as np
import pytest

from benchmarks.expected_excess import cells, measured

QUICK = [cell for cell in cells() if cell["problem"] in ("diabetes-ridge", "breast-cancer-ridge")]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "cell", QUICK, ids=lambda cell: "-".join(cell[name] for name in ("method", "problem", "epsilon"))
)
def test_it_is_what_was_expected(cell):
    """Within three standard errors of the difference: half the noise, or √2 of it, would be beyond."""
    mean, se, _ = measured(cell)
    assert abs(mean - float(cell["mean"])) <= 3 * np.hypot(se, float(cell["se"]))
