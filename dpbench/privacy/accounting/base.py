"""What an accounting is: a way to turn (ε, δ) into noise, and what was released into ε."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from dpbench.errors import OutOfReach, PrivacyError, UserError, positive
from dpbench.privacy.ledger import Counts, scaled


class Accounting:
    """Base of the modes; stateless. A subclass gives `epsilon_of`, and what its theorem makes exact or fast.

    name: that of `--accounting NAME`, of job keys and of rows. pure: whether it is for δ = 0. like: the name of a mode;
    algorithms that can be calibrated by that one can be by this one. flaw: why its noise does not give the stated ε,
    of a published calibration kept for comparison. Multipliers are relative to the sensitivity in
    the run's own relation, so that the same formulas serve both. sharp: whether algorithms use the least sensitivities
    that are proved, and not those of their papers (`Mechanisms.least_sensitivities`).
    """

    name: ClassVar[str]
    pure: ClassVar[bool] = False
    like: ClassVar[str] = ""
    least_sensitivities: ClassVar[bool] = False
    flaw: ClassVar[str] = ""

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        """ε at `delta` of everything in `releases`; None where the theorem does not cover one of them."""
        raise NotImplementedError

    def rho(self, epsilon: float, delta: float) -> float:
        """The ρ that may be spent on Gaussian releases of Σ 1/(2z²) = ρ; PrivacyError where none says (ε, δ)."""
        raise PrivacyError(f"a budget with accounting {self.name} has no rho: compose its ε another way")

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        """The smallest z at which `plan` with z times its noise, and `after` as it is, are (ε, δ)-DP together.

        PrivacyError for releases that are not covered, OutOfReach for an ε that no noise gives.
        """
        return self.solve(plan, after, epsilon, delta)

    def solve(
        self, plan: Counts, after: Counts, epsilon: float, delta: float, start: float = 1.0, rtol: float = 1e-9
    ) -> float:
        """`noise_scale` by bisection on `epsilon_of`, to `rtol`."""

        def cost(z: float) -> float:
            spent = self.epsilon_of((*after, *((scaled(release, z), count) for release, count in plan)), delta)
            if spent is None:
                parts = "; ".join(str(release) for release, _ in (*plan, *after))
                raise PrivacyError(f"accounting {self.name} does not compose: {parts}")
            return spent

        return smallest_scale(cost, epsilon, start=start, rtol=rtol)


def smallest_scale(cost: Callable[[float], float], epsilon: float, *, start: float = 1.0, rtol: float = 1e-9) -> float:
    """The noise, to `rtol` and never below, at which the decreasing function `cost` reaches `epsilon`."""
    from scipy.optimize import brentq

    low = high = start
    while cost(high) > epsilon:
        low, high = high, 2 * high
        if high > 1e9:
            raise OutOfReach(
                f"epsilon: {epsilon:g} is out of reach of this accounting with any noise; raise epsilon or delta"
            )
    while cost(low) <= epsilon:
        low, high = low / 2, low
        if low < 1e-9:
            raise UserError(f"epsilon: {epsilon:g} needs no noise at this sampling rate and delta; lower epsilon")
    root = math.exp(brentq(lambda u: cost(math.exp(u)) - epsilon, math.log(low), math.log(high), xtol=rtol / 2))
    while cost(root) > epsilon:
        root *= 1 + rtol / 2
    return root


def check_range(epsilon: float, delta: float) -> None:
    """UserError unless 0 < ε < ∞ and 0 < δ < 1."""
    positive("epsilon", epsilon)
    if not 0 < delta < 1:
        raise UserError(f"delta must be in (0, 1), got {delta}")
