"""`as-released-code`: `bs16` as second_order's released code solves for it, which is not (ε, δ)-DP at small ε."""

from __future__ import annotations

import math
from typing import Any

from dpbench.privacy.accounting.bs16 import BunSteinke

START = 1e-3  # where the released `eps_to_zcdp` starts its root finder


class AsReleasedCode(BunSteinke):
    """The root of ε(ρ) = ε that MINPACK's hybrid method finds from ρ = 0.001, converged or not.

    Its first step leaves ρ > 0 where ε is far below ε(0.001), the search stops where it started, and ρ = 0.001 is
    spent: at n = 53,121 for ε up to about 0.14. `epsilon_of` is `bs16`'s, so a row says what was spent.
    """

    name = "as-released-code"
    like = "bs16"
    flaw = "ρ as the released code finds it: not below 0.001, which costs more than a small ε"

    def _rho(self, epsilon: float, delta: float) -> float:
        import numpy as np
        from scipy.optimize import fsolve

        def gap(rho: Any) -> Any:  # (1,), as MINPACK hands it over
            return rho + np.sqrt(4 * rho * np.log(np.sqrt(math.pi * rho) / delta)) - epsilon

        with np.errstate(invalid="ignore", divide="ignore"):
            found, *_ = fsolve(gap, START, full_output=True)  # the flag of convergence is the last: not looked at
        return float(found[0])
