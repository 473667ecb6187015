"""`poisson`: one row drawn at a time, accounted as if it were a Poisson sample."""

from __future__ import annotations

from dpbench.privacy.accounting.rdp import Renyi
from dpbench.privacy.ledger import Counts, Gaussian, Poisson, Release, WithoutReplacement


class PoissonSample(Renyi):
    """As `rdp`, with one row of n without replacement taken for a Poisson sample of rate 1/n under add/remove.

    Its noise counts relative to the clipping threshold C instead of the replace-one sensitivity 2C, as it is often
    implemented; exactly one row is drawn, so that guarantee is not for what runs.
    """

    name = "poisson"

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        return super().epsilon_of(_as_poisson(releases), delta)

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        return super().noise_scale(_as_poisson(plan), _as_poisson(after), epsilon, delta)


def _as_poisson(releases: Counts) -> Counts:
    def one(release: Release) -> Release:
        match release:
            case WithoutReplacement(n, 1, Gaussian(z)):
                return Poisson(1 / n, Gaussian(2 * z))
        return release

    return tuple((one(release), count) for release, count in releases)
