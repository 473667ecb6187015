"""The claims of accelerated, each tested on the mean final errors of the rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from dpbench.experiments.accelerated.errors import ALGORITHMS, final_errors
from dpbench.experiments.base import Claim, Verdict

BATCHES = FULL, SMALL = "m = n", "m = 1,000"
TS = (100, 200, 500, 1000)
OPTIMISED = {"dp-nag-opt": "dp-nag", "dp-masg-opt": "dp-masg"}
ABOUT_EQUAL = 1.5  # ratio of two errors that a reader of log-scale curves calls about equal


class Missing(Exception):
    """A row that a claim needs is not there."""


class Error(NamedTuple):
    """A mean final error, its standard error, the T asked for and the T run."""

    mean: float
    se: float
    T_asked: int
    T: int

    def __str__(self) -> str:
        return f"{self.mean:.3g} ± {self.se:.1g}"


class Errors:
    """Final errors by batch ("m = n" or "m = 1,000"), algorithm, c and T."""

    def __init__(self, context):
        self._at, self._run = {}, defaultdict(list)
        for batch, artefact in ((FULL, "fig3"), (SMALL, "fig4")):
            for row in final_errors(context, artefact).itertuples():
                self._at[batch, row.algorithm, row.c, row.T_asked] = error_of(row)
            for row in final_errors(context, artefact, pooled=True).itertuples():
                self._run[batch, row.algorithm, row.c].append(error_of(row))

    def at(self, batch: str, algorithm: str, c: float, T: int) -> Error:
        """At the T asked for."""
        try:
            return self._at[batch, algorithm, c, T]
        except KeyError:
            raise Missing(f"no rows of {algorithm} at {batch}, c = {c:g}, T = {T}") from None

    def best(self, batch: str, algorithm: str, c: float) -> Error:
        """Over the T that were run; all of the paper's must be there."""
        for T in TS:
            self.at(batch, algorithm, c, T)
        return min(self._run[batch, algorithm, c])


def error_of(row) -> Error:
    return Error(row.mean, row.se, int(row.T_asked), int(row.T))


def on_errors(check: Callable[[Errors], Verdict]) -> Callable[[object], Verdict]:
    """A check on `Errors` as one on a report's context; a missing row is "not enough data", with its name."""

    def checked(context) -> Verdict:
        try:
            return check(Errors(context))
        except Missing as missing:
            return Verdict(None, str(missing))

    checked.__doc__ = check.__doc__
    return checked


@on_errors
def acceleration_at_small_steps(errors: Errors) -> Verdict:
    """Claim 1."""
    ratios = {
        (name, batch, T): errors.at(batch, name, 0.1, T).mean / errors.at(batch, "dp-gd-laplace", 0.1, T).mean
        for name in ("dp-hb", "dp-nag", "dp-nag-opt", "dp-masg-opt", "dp-masg")
        for batch in BATCHES
        for T in TS
    }
    claimed = {case: ratio for case, ratio in ratios.items() if case[0] != "dp-masg"}
    worst = max(claimed, key=claimed.get)
    multistage = max(ratio for case, ratio in ratios.items() if case[0] == "dp-masg")
    best = "; ".join(f"{name} {errors.best(FULL, name, 0.1)}" for name in ALGORITHMS)
    return Verdict(
        max(claimed.values()) < 1,
        f"error over dp-gd-laplace's at most {claimed[worst]:.2f} ({worst[0]}, {worst[1]}, T = {worst[2]}); dp-masg, "
        f"which the claim leaves out, at most {multistage:.2f}. Best over T at m = n: {best}",
    )


@on_errors
def optimised_are_best(errors: Errors) -> Verdict:
    """Claim 2."""
    rest = [name for name in ALGORITHMS if name not in OPTIMISED]
    cases = [(batch, T) for batch in BATCHES for T in TS]
    nag = {case: errors.at(case[0], "dp-nag-opt", 1.0, case[1]) for case in cases}
    masg = {case: errors.at(case[0], "dp-masg-opt", 1.0, case[1]) for case in cases}
    others = {case: min(errors.at(case[0], name, 1.0, case[1]).mean for name in rest) for case in cases}
    behind = max(max(nag[case].mean, masg[case].mean) / others[case] for case in cases)
    best = {batch: [errors.best(batch, name, 1.0) for name in OPTIMISED] for batch in BATCHES}
    apart = max(max(pair).mean / min(pair).mean for pair in best.values())
    shorter = all(one.T_asked > one.T for table in (nag, masg) for one in table.values() if one.T_asked >= 500)
    return Verdict(
        behind < 1 and apart <= ABOUT_EQUAL and shorter,
        f"the worse of the two has at most {behind:.2f} of the error of the best other method at the same T; at their "
        f"best T they differ by a factor of at most {apart:.2f} (held up to {ABOUT_EQUAL:g}): "
        f"{'; '.join(f'{batch}: {pair[0]} and {pair[1]}' for batch, pair in best.items())}; at T = 1,000 they run "
        f"{nag[FULL, 1000].T} and {masg[FULL, 1000].T} iterations",
    )


@on_errors
def robust_to_small_steps(errors: Errors) -> Verdict:
    """Claim 2b."""
    held, words = True, []
    for batch in BATCHES:
        best = {name: errors.best(batch, name, 0.1) for name in ALGORITHMS}
        held &= min(best, key=best.get) == "dp-nag-opt" and best["dp-masg-opt"] > best["dp-nag"]
        words.append(
            f"{batch}: " + ", ".join(f"{name} {best[name]}" for name in ("dp-nag-opt", "dp-nag", "dp-masg-opt"))
        )
    return Verdict(held, "best over T at c = 0.1; " + "; ".join(words))


def optimised_under_sampling(c: float) -> Callable[[object], Verdict]:
    """Claim 2c at one c."""

    @on_errors
    def check(errors: Errors) -> Verdict:
        ratios = {
            (name, T): errors.at(SMALL, name, c, T).mean / errors.at(SMALL, plain, c, T).mean
            for name, plain in OPTIMISED.items()
            for T in TS
        }
        words = [
            f"{name} over {plain}: {', '.join(f'{ratios[name, T]:.2f}' for T in TS)}"
            for name, plain in OPTIMISED.items()
        ]
        best = [f"{name} {errors.best(SMALL, name, c)}" for pair in OPTIMISED.items() for name in pair]
        return Verdict(
            max(ratios.values()) < 1,
            f"ratio of errors at T = 100, 200, 500, 1,000: {'; '.join(words)}. Best over T: {', '.join(best)}",
        )

    return check


@on_errors
def multistage_recovers(errors: Errors) -> Verdict:
    """Claim 2d."""
    ratios, words = [], []
    for batch in BATCHES:
        small, large = errors.best(batch, "dp-masg", 0.1), errors.best(batch, "dp-masg", 1.0)
        ratios.append(small.mean / large.mean)
        words.append(f"{batch}: {small} at c = 0.1, {large} at c = 1")
    return Verdict(min(ratios) >= 10, f"best over T, {'; '.join(words)} (held from a factor of 10)")


@on_errors
def best_heavy_ball_beats_descent(errors: Errors) -> Verdict:
    """Claim 3."""
    hb, gd = errors.best(FULL, "dp-hb", 1.0), errors.best(FULL, "dp-gd-laplace", 1.0)
    return Verdict(
        hb.mean < gd.mean and hb.T == 100,
        f"dp-hb {hb} at T = {hb.T}, dp-gd-laplace {gd} at T = {gd.T} (the text says T = 1000; its curves, T = 500)",
    )


@on_errors
def descent_is_steadier_at_large_T(errors: Errors) -> Verdict:
    """Claim 4."""
    gd, hb, nag = (errors.at(FULL, name, 1.0, 1000) for name in ("dp-gd-laplace", "dp-hb", "dp-nag"))
    return Verdict(gd.mean < min(hb.mean, nag.mean), f"dp-gd-laplace {gd}, dp-hb {hb}, dp-nag {nag}")


@on_errors
def full_batches_are_better(errors: Errors) -> Verdict:
    """Claim 5: on the best over T; at a single T the two may be equal within the sampling error."""
    best, words, z = {}, [], {}
    for name in ALGORITHMS[1:]:
        small, full = errors.best(SMALL, name, 1.0), errors.best(FULL, name, 1.0)
        best[name] = small.mean / full.mean
        words.append(f"{name} {best[name]:.2f} ({small} over {full})")
        for T in TS:
            small, full = errors.at(SMALL, name, 1.0, T), errors.at(FULL, name, 1.0, T)
            z[name, T] = (small.mean - full.mean) / math.hypot(small.se, full.se), small.mean / full.mean
    (name, T), (deviation, ratio) = min(z.items(), key=lambda item: item[1])
    return Verdict(
        min(best.values()) > 1 and max(best.values()) < 10 and deviation > -2,
        f"error at m = 1,000 over that at m = n, each at its best T: {', '.join(words)}. At one and the same T the "
        f"least favourable is {name} at T = {T}: ratio {ratio:.2f}, {deviation:+.1f} standard errors (held above -2)",
    )


CLAIMS = (
    Claim(
        "1",
        "At c = 0.1 the accelerated methods, dp-masg aside, beat dp-gd-laplace at every T.",
        acceleration_at_small_steps,
    ),
    Claim(
        "2",
        "At c = 1 dp-nag-opt and dp-masg-opt are the two best and about equal; for T ≥ 500 they choose T' < T.",
        optimised_are_best,
    ),
    Claim(
        "2b",
        "At c = 0.1 dp-nag-opt stays the best, and dp-masg-opt does not even beat dp-nag.",
        robust_to_small_steps,
    ),
    Claim(
        "2c",
        "With m = 1,000 and c = 1 the -opt forms improve on dp-nag and dp-masg at every T.",
        optimised_under_sampling(1.0),
    ),
    Claim("2c, small c", "With m = 1,000 they also do so at c = 0.1.", optimised_under_sampling(0.1)),
    Claim("2d", "dp-masg is prone to a small c and recovers dramatically at c = 1.", multistage_recovers),
    Claim(
        "3",
        "At c = 1, m = n the best of dp-hb over T, at T = 100, beats the best of dp-gd-laplace over T.",
        best_heavy_ball_beats_descent,
    ),
    Claim(
        "4",
        "At T = 1,000, c = 1, m = n dp-gd-laplace has a lower error than dp-nag and dp-hb.",
        descent_is_steadier_at_large_T,
    ),
    Claim(
        "5",
        "At c = 1 the accelerated methods have a lower error with m = n than with m = 1,000, by less than a factor "
        "of 10.",
        full_batches_are_better,
    ),
)
