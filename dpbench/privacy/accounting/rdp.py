"""`rdp`: Rényi DP of everything, converted once."""

from __future__ import annotations

from dpbench.privacy.accounting import renyi
from dpbench.privacy.accounting.base import Accounting
from dpbench.privacy.ledger import Counts


class Renyi(Accounting):
    """The Rényi curves add up and are converted at the best order (Mironov 2017; Canonne, Kamath and Steinke 2020).

    Gaussian releases on all rows, on Poisson samples (Mironov, Talwar and Zhang 2019) or on samples without replacement
    (Wang, Balle and Kasiviswanathan 2019), zCDP and pure-DP ones; see `renyi`.
    """

    name = "rdp"

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        return renyi.epsilon_of(releases, delta)

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        return renyi.noise_scale(plan, after, epsilon, delta)
