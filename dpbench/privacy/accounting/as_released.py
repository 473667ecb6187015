"""`bs16` as the two states of second_order's released code solve for it, which is not (ε, δ)-DP at small ε."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from dpbench.privacy.accounting.bs16 import BunSteinke


class Released(BunSteinke):
    """The root of ε(ρ) = ε that MINPACK's hybrid method finds from `start`, converged or not.

    Its first step leaves ρ > 0 where ε is far below ε(start), the search stops where it started, and ρ = start is
    spent. `epsilon_of` is `bs16`'s, so a row says what was spent. start: where `eps_to_zcdp` starts its root finder.
    """

    like = "bs16"
    start: ClassVar[float]

    def to_rho(self, epsilon: float, delta: float) -> float:
        import numpy as np
        from scipy.optimize import fsolve

        def gap(rho: Any) -> Any:  # (1,), as MINPACK hands it over
            return rho + np.sqrt(4 * rho * np.log(np.sqrt(math.pi * rho) / delta)) - epsilon

        with np.errstate(invalid="ignore", divide="ignore"):
            found, *_ = fsolve(gap, self.start, full_output=True)  # the flag of convergence is the last: not looked at
        return float(np.ravel(found)[0])


class ReleasedFebruary(Released):
    """The state of February 2023: from ρ = 0.005, which is what the published Table 1 fits.

    At n = 53,121 it spends 0.005 for every ε up to about 0.30, at n = 10,000 up to about 0.27.
    """

    name = "released-february"
    start = 5e-3
    flaw = "ρ as the code of February 2023 finds it: not below 0.005, which costs more than a small ε"


class ReleasedJuly(Released):
    """The state of July 2023: from ρ = 0.001, spent for every ε up to about 0.13."""

    name = "released-july"
    start = 1e-3
    flaw = "ρ as the released code finds it: not below 0.001, which costs more than a small ε"


class AsReleasedCode(ReleasedJuly):
    """`released-july` by its former name, which is part of the keys of finished rows."""

    name = "as-released-code"
