"""The claims of zeroth_order on what runs reach: bound, rates, tree against naive noise, first order, d, ρ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.zeroth_order.study import (
    CARRY,
    GAP,
    OTHERWISE,
    RADIUS,
    Fraction,
    Method,
    dimension_of,
    exponent,
    failures,
    first_term,
    needed,
    over_seeds,
    sphere_rows,
    whole_bound,
)
from dpbench.study.context import Context, select
from dpbench.study.declare import claim, each
from dpbench.study.statistics import Mean, plus_minus
from dpbench.study.verdict import HELD, NOT_HELD, NOT_TESTABLE, OPEN, NotEnough, Verdict

FREE = 2.0  # standard errors within which two means count as equal
ORDER = 10.0  # the theorem's Õ hides constants and logarithms: its threshold is tested to an order of magnitude


@claim(
    "bound",
    "Theorem 4.9: stationarity is below the theorem's bound, with the constants that its proof prints",
    place="Theorem 4.9",
    shows="fractions",
)
def below_the_bound(context: Context) -> Iterator[Verdict]:
    """At the largest M, by ρ: a bound above what runs have that hardly move cannot be broken."""
    panel = long_runs(context)
    start, last = start_level(panel), panel[panel["set.M"].eq(panel["set.M"].max())]
    for (_, rho), rows in frames.groups(select(last, algorithm=["o2nc", "o2nc-tree"]), Method, sort=True):
        reached, least, whole = rows["measured"].mean(), first_term(rows).iloc[0], whole_bound(rows).iloc[0]
        text = (
            f"M = {rows['set.M'].iloc[0]:,.0f}: measured {_measured(rows)}, the bound "
            f"{whole:.3g} (its first term alone {least:.3g}), runs that hardly move {start:.3f}"
        )
        testable = whole < start
        radius = rows["set.radius"].fillna(RADIUS).iloc[0]
        why = (
            f"It could not have come out otherwise: no run is that far from stationary; with d = 5 and δ = {radius:g} "
            f"the bound gets there at M = {enough(rows, start):.1g}"
        )
        text += ". " + (f"{OTHERWISE}a run that stays is above the bound" if testable else why)
        case = "no noise" if math.isinf(rho) else f"tree, ρ = {rho:g}"
        yield Verdict.of(bool(reached <= whole), text, case) if testable else Verdict(NOT_TESTABLE, text, case)


@claim(
    "bound_sphere",
    "Theorem 4.9 where it can fail, on the sphere family: stationarity is below the theorem's bound",
    place="Theorem 4.9",
    shows="sphere",
)
def below_the_bound_on_the_sphere(context: Context) -> Iterator[Verdict]:
    """By ρ and M: the mean over all epochs against the bound, which a run that stays is above where it can fail."""
    panel = sphere_rows(context)
    if panel.empty:
        raise NotEnough("no rows", "sphere")
    for _, rows in panel.groupby(["rho", "set.M"]):
        rho, M = rows["rho"].iloc[0], rows["set.M"].iloc[0]
        reached, start, whole = rows["measured"].mean(), rows["start"].mean(), whole_bound(rows).iloc[0]
        case = f"{'no noise' if math.isinf(rho) else f'tree, ρ = {rho:g}'}, M = {M:,.0f}"
        text = (
            f"measured {_measured(rows)} over all epochs of {len(rows)} runs, the first "
            f"{rows['first'].mean():.3f}; the bound {whole:.3g}, the start {start:.3f}; F from "
            f"{rows['F_start'].mean():.3f} to {rows['F'].mean():.4f}"
        )
        if whole < start:
            yield Verdict.of(bool(reached <= whole), f"{text}. {OTHERWISE}a run that stays is above the bound", case)
        else:
            why = f"No run is that far from stationary; the bound gets below the start at M = {enough(rows, start):.1g}"
            yield Verdict(NOT_TESTABLE, f"{text}. {why}", case)


def _measured(rows: pd.DataFrame) -> str:
    """Mean ± standard error of the measure."""
    measured = rows["measured"]
    return plus_minus(measured.mean(), measured.std() / measured.count() ** 0.5)


def enough(rows: pd.DataFrame, start: float) -> float:
    """The M (a power of 10^(1/4)) from which `whole_bound` is below the start, T chosen as Theorem 4.9 says."""
    one = rows.iloc[[0]]
    d, rho = dimension_of(one["problem"].iloc[0]), float(one["rho"].iloc[0])
    radius, gap = float(one["set.radius"].fillna(RADIUS).iloc[0]), float(one["set.gap"].fillna(GAP).iloc[0])
    for M in 10.0 ** np.arange(3, 16, 0.25):
        scale = radius * M / (gap + radius)
        T = max((math.sqrt(d) * scale) ** (2 / 3), (d**1.5 * scale / rho) ** 0.5)
        if whole_bound(one.assign(**{"set.M": M, "T": round(T)})).iloc[0] < start:
            return float(M)
    return math.inf


def long_runs(context: Context) -> pd.DataFrame:
    """Phase retrieval in five dimensions, the problem that goes to the largest M."""
    rows = needed(context, "stationarity")
    panel = rows[rows["problem"].isin(["phase-5-long", "phase-5"])]
    if panel.empty:
        raise NotEnough("no rows of phase retrieval", "stationarity")
    return panel


def start_level(panel: pd.DataFrame) -> float:
    """The stationarity that runs begin with: the largest mean among methods and ρ at the smallest M."""
    first = panel[panel["set.M"].eq(panel["set.M"].min())]
    return float(over_seeds(first, ["algorithm", "rho"])["mean"].max())


@each(
    claim(
        name,
        f"After {source}: as M grows, the share of failed runs of {whose} falls at least as fast as M^(-1/3)",
        place=f"ours, after {source}",
        shows="fractions",
        **which,
    )
    for name, source, whose, which in (
        ("rate", "Theorem 4.9", "O2NC (no noise)", {"algorithm": "o2nc"}),
        ("rate_tree_10", "Theorem 4.9", "the tree at ρ = 10", {"algorithm": "o2nc-tree", "rho": 10.0}),
        ("rate_tree_1", "Theorem 4.9", "the tree at ρ = 1", {"algorithm": "o2nc-tree", "rho": 1.0}),
        ("rate_tree_0.1", "Theorem 4.9", "the tree at ρ = 0.1", {"algorithm": "o2nc-tree", "rho": 0.1}),
        ("rate_naive_1", "Appendix E", "naive noise at ρ = 1", {"algorithm": "o2nc-naive", "rho": 1.0}),
    )
)  # fmt: skip
def rate(context: Context, algorithm: str, rho: float = math.inf) -> Verdict:
    """Failure rates a decade of M apart; the theorem bounds levels, so its exponent is a claim of ours."""
    panel = long_runs(context)
    ours = panel[panel["algorithm"].eq(algorithm) & panel["rho"].eq(rho)]
    floor = panel[panel["algorithm"].eq("o2nc")]
    most = ours["set.M"].max() if len(ours) else math.nan
    decade = ours[ours["set.M"].between(0.99 * most / 10, 1.01 * most / 10)]
    last, without = ours[ours["set.M"].eq(most)], floor[floor["set.M"].eq(most)]
    if decade.empty or without.empty:
        raise NotEnough(f"no two M a decade apart for {algorithm} at ρ = {rho:g}", "stationarity")
    theory = exponent(algorithm, last["T"].iloc[0], without["T"].iloc[0])
    at = f"M = {most / 10:,.0f} and {most:,.0f}"
    return compared(decade, last, 10**theory, f"not stationary at {at}: {{}}; theorem {10**theory:.2f} times")


def compared(first: pd.DataFrame, second: pd.DataFrame, bound: float, text: str) -> Verdict:
    """Whether the second failure rate is at most `bound` times the first; not testable where few runs carry it.

    The ratio lies between the ends of the two intervals: 90 % or more, whatever the two shares are.
    """
    before, after = failures(first), failures(second)
    if before is None or after is None:
        raise NotEnough("no measured runs")
    text = text.format(f"{before}, then {after}")
    if min(before.failed, after.failed) < CARRY:
        return Verdict(NOT_TESTABLE, f"{text}. Fewer than {CARRY} failed runs at one end: a rate would rest on them")
    if after.failed == after.runs:
        return Verdict(NOT_TESTABLE, f"{text}. No run has left the start: that says nothing of a rate")
    lower, upper = after.lower / before.upper, after.upper / before.lower
    text += f"; the ratio is between {lower:.2f} and {upper:.2f}"
    if upper <= bound:
        return Verdict(HELD, f"{text}. {OTHERWISE}an equal share at both ends would not hold")
    if lower > bound:
        return Verdict(NOT_HELD, f"{text}. {OTHERWISE}a steeper fall would hold")
    return Verdict(OPEN, f"{text}. The interval holds the theorem's factor: it may be either")


def mean_of(table: pd.DataFrame, algorithm: str) -> Mean:
    """The algorithm's only row of a table."""
    (found,) = frames.records(select(table, algorithm=algorithm), Mean)
    return found


def apart(table: pd.DataFrame, first: str, second: str) -> float:
    """(mean of `second` - mean of `first`) in standard errors: above 0 where `first` is lower. By algorithm."""
    one, other = mean_of(table, first), mean_of(table, second)
    return (other.mean - one.mean) / math.hypot(one.se, other.se)


class Shares(NamedTuple):
    """Two failure rates side by side. sign: 1 where the first's whole interval lies below the second's, -1 where it
    lies above, else 0."""

    first: Fraction
    second: Fraction

    @property
    def sign(self) -> int:
        return int(self.first.upper < self.second.lower) - int(self.first.lower > self.second.upper)


def shares(rows: pd.DataFrame, first: str, second: str) -> Shares:
    """The failure rates of two methods among these rows."""
    one, other = (failures(rows[rows["algorithm"].eq(name)]) for name in (first, second))
    if one is None or other is None:
        raise NotEnough("no measured runs")
    return Shares(one, other)


@claim(
    "tree_reaches_further",
    "At the same M and ρ = 1, the tree fails less often and reaches a lower F than naive noise",
    place="Section 4.1",
    shows="stationarity",
)
def tree_reaches_further(context: Context) -> Verdict:
    """Section 4.1, at the largest M, where the noise matters (ρ = 1): by F and by stationarity."""
    panel = long_runs(context)
    panel = panel[panel["rho"].eq(1.0) & panel["set.M"].eq(panel["set.M"].max())]
    if not {"o2nc-tree", "o2nc-naive"} <= set(panel["algorithm"]):
        raise NotEnough("rows of one of the two methods are missing at ρ = 1")
    table = over_seeds(panel, ["algorithm"], "objective")
    failed, gap = shares(panel, "o2nc-tree", "o2nc-naive"), apart(table, "o2nc-tree", "o2nc-naive")
    signs = {failed.sign, 0 if abs(gap) <= FREE else int(math.copysign(1, gap))}
    tree, naive = mean_of(table, "o2nc-tree"), mean_of(table, "o2nc-naive")
    return Verdict.of(
        False if -1 in signs else True if signs == {1} else None,
        f"tree against naive at M = {panel['set.M'].iloc[0]:,.0f}, ρ = 1: not stationary {failed.first} against "
        f"{failed.second} (95 %); F {plus_minus(tree.mean, tree.se)} against "
        f"{plus_minus(naive.mean, naive.se)}, {gap:.1f} standard errors apart (held where the intervals are "
        f"disjoint and F is {FREE:g} apart). {OTHERWISE}see crossover, where the same two change places",
    )


@claim(
    "crossover",
    "Ours: below some ρ the tree ends lower than naive noise, above it higher, by F and stationarity",
    place="ours, against Section 4.1",
    shows="privacy_for_free",
)
def crossover(context: Context) -> Iterator[Verdict]:
    """By each measure at one M: the ρ up to which the tree is clearly ahead, and from which naive noise is."""
    rows = needed(context, "privacy_for_free")
    names = ("o2nc-tree", "o2nc-naive")
    both = sorted(set.intersection(*(set(rows.loc[rows["algorithm"].eq(name), "rho"]) for name in names)))
    table = over_seeds(rows, ["algorithm", "rho"], "objective")
    gaps = {rho: apart(table[table["rho"].eq(rho)], *names) for rho in both}
    words = ", ".join(f"ρ = {rho:g}: {gap:+.1f}" for rho, gap in gaps.items())
    floors = table[np.isinf(table["rho"])]
    if {"o2nc", "o2nc-two-point"} <= set(floors["algorithm"]):
        words += f"; without noise {apart(floors, 'o2nc', 'o2nc-two-point'):+.1f}"
    signs = {rho: 0 if abs(gap) <= FREE else int(math.copysign(1, gap)) for rho, gap in gaps.items()}
    yield _changes_places(signs, f"F, naive less tree in standard errors: {words}", f"{FREE:g} standard errors", "F")
    failed = {rho: shares(rows[rows["rho"].eq(rho)], *names) for rho in both}
    words = ", ".join(
        f"ρ = {rho:g}: {one.first.failed} and {one.second.failed} of {one.first.runs}" for rho, one in failed.items()
    )
    signs = {rho: one.sign for rho, one in failed.items()}
    yield _changes_places(signs, f"not stationary, tree and naive: {words}", "disjoint 95 % intervals", "failed runs")


def _changes_places(signs: dict[float, int], text: str, clear: str, case: str) -> Verdict:
    """signs: by ρ, 1 where the tree is clearly ahead, -1 where naive noise is."""
    tree, naive = ([rho for rho, one in signs.items() if one == sign] for sign in (1, -1))
    if not tree or not naive:
        missing = " nor ".join(name for name, found in (("the tree", tree), ("naive noise", naive)) if not found)
        return Verdict(OPEN, f"{text}; no ρ where {missing} is ahead by {clear}", case)
    text += f"; by {clear} the tree is ahead up to ρ = {max(tree):g}, naive noise from {min(naive):g}"
    return Verdict.of(max(tree) < min(naive), f"{text}. {OTHERWISE}one of them could have been ahead throughout", case)


@claim(
    "first_order",
    "Ours: private gradients (first order) end lower than the tree at every ρ ≤ 10, by F",
    place="ours",
    shows="privacy_for_free",
)
def first_order(context: Context) -> Verdict:
    """What zeroth order costs: the same steps on noisy subgradients, each row used once, at the same M and ρ."""
    rows = needed(context, "privacy_for_free")
    table = over_seeds(rows, ["algorithm", "rho"], "objective")
    method = "o2nc-naive-gradient"
    if not {method, "o2nc-tree"} <= set(table["algorithm"]):
        raise NotEnough("rows of one of the two methods are missing")
    parts = {rho: select(table, rho=rho) for rho in sorted(set(table["rho"])) if rho <= 10}
    found = {rho: part for rho, part in parts.items() if {method, "o2nc-tree"} <= set(part["algorithm"])}
    gaps = {rho: apart(part, method, "o2nc-tree") for rho, part in found.items()}
    words = ", ".join(
        f"ρ = {rho:g}: {ours:.3f} against {tree:.3f} ({gaps[rho]:+.1f})"
        for rho, part in found.items()
        for ours, tree in [(mean_of(part, method).mean, mean_of(part, "o2nc-tree").mean)]
    )
    clear = [gap > FREE for gap in gaps.values()]
    held = True if all(clear) else False if any(gap < -FREE for gap in gaps.values()) else None
    return Verdict.of(
        held,
        f"F, gradients against tree (apart in standard errors): {words}; held where all are above {FREE:g}. {OTHERWISE}"
        "the noise of a gradient is that of naive noise over d, but the tree's falls with T",
    )


@claim(
    "dimension",
    "After Theorem 4.9: at one M and one F, failed runs of O2NC grow with d no faster than d^(1/3)",
    place="ours, after Theorem 4.9",
    shows="dimension",
)
@claim(
    "dimension_tree",
    "After Theorem 4.9: at one M and one F, failed runs of the tree at ρ = 10 grow with d no faster than d^(1/3)",
    place="ours, after Theorem 4.9",
    shows="dimension",
    algorithm="o2nc-tree",
    rho=10.0,
)
def dimension(context: Context, algorithm: str = "o2nc", rho: float = math.inf) -> Verdict:
    """Failure rates at the least and the largest d."""
    rows = needed(context, "dimension")
    part = rows[rows["algorithm"].eq(algorithm) & rows["rho"].eq(rho)]
    d = part["problem"].map(dimension_of)
    if d.nunique() < 2:
        raise NotEnough("fewer than two d")
    least, most = d.min(), d.max()
    bound = (most / least) ** (1 / 3)
    text = f"not stationary at d = {least} and {most}: {{}}; the theorem's term (d/(δM))^(1/3) is {bound:.2f} times"
    return compared(part[d.eq(least)], part[d.eq(most)], bound, text)


@claim(
    "privacy_for_free",
    "Privacy costs nothing while ρ is above about √d times the stationarity reached",
    place="Theorem 4.9",
    shows="privacy_for_free",
)
def free_privacy(context: Context) -> Verdict:
    """Theorem 4.9: no cost of privacy for ρ above about √d times the stationarity reached."""
    rows = needed(context, "privacy_for_free")
    without = rows[rows["algorithm"].eq("o2nc")]
    floor, tree = failures(without), _by_rho(rows, "o2nc-tree")
    if floor is None or len(tree) < 3:
        raise NotEnough("too few values of ρ, or no run without noise")
    worse = {rho for rho, one in tree.items() if one.lower > floor.upper}
    told = f"without noise {floor} are not stationary; of the tree's " + ", ".join(
        f"{one.failed} of {one.runs} at ρ = {rho:g}" for rho, one in tree.items()
    )
    if not worse:
        return Verdict(OPEN, f"{told}: no ρ has an interval above the one without noise")
    costly, threshold = max(worse), math.sqrt(5) * float(without["measured"].mean())
    free = [rho for rho in tree if rho > costly]
    if not free:
        return Verdict.of(False, f"{told}: still more often at the largest ρ")
    naive = {rho for rho, one in _by_rho(rows, "o2nc-naive").items() if one.lower > floor.upper}
    return Verdict.of(
        bool(min(free) <= ORDER * threshold),
        f"{told}: more often (disjoint 95 % intervals) up to ρ = {costly:g}, not measurably so from {min(free):g}; "
        f"√d·ε = {threshold:.2g}, ε the mean measure without noise, tested within a factor {ORDER:g} (its Õ hides "
        f"constants and logarithms). {OTHERWISE}not held with the first such ρ above {ORDER * threshold:.2g}; naive "
        f"noise fails more often up to {f'ρ = {max(naive):g}' if naive else 'no ρ'}",
    )


def _by_rho(rows: pd.DataFrame, algorithm: str) -> dict[float, Fraction]:
    """The failure rates of a private method, by ρ."""
    own = rows[rows["algorithm"].eq(algorithm) & np.isfinite(rows["rho"])]
    found = {float(rho): failures(part) for rho, part in own.groupby("rho")}
    return {rho: one for rho, one in found.items() if one is not None}
