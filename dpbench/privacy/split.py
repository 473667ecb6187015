"""One budget for several runs on the same rows; `check.together` is what they cost."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu


def share(epsilon: float, delta: float, runs: int, *, gaussian: bool) -> tuple[float, float]:
    """(ε', δ') of each of `runs` runs that are (ε, δ)-DP together.

    Basic composition: (ε/k, δ/k), for any runs. gaussian: every run releases Gaussians on all rows alone, calibrated
    exactly: k runs of μ' are √k·μ'-Gaussian DP (Dong, Roth and Su 2022, Corollary 3.3), so each gets μ/√k, at δ.

    >>> share(1.0, 1e-6, 4, gaussian=False)
    (0.25, 2.5e-07)
    """
    if runs == 1:
        return epsilon, delta
    if not gaussian or delta == 0:
        return epsilon / runs, delta / runs
    return gaussian_epsilon(gaussian_mu(epsilon, delta) / math.sqrt(runs), delta), delta
