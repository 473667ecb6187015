"""The claims of zeroth_order, each tested on the rows of the study, and its erratum.

Every verdict answers in its words whether it could have come out otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.zeroth_order.formulas import (
    RADIUS,
    dimension_of,
    enough,
    exponent,
    first_term,
    rho_of,
    whole_bound,
)
from dpbench.experiments.zeroth_order.rows import (
    CARRY,
    PAPER,
    Fraction,
    Method,
    failures,
    needed,
    over_seeds,
    sphere_rows,
)
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.correlated import node
from dpbench.study.context import Context, select
from dpbench.study.declare import Case
from dpbench.study.paper import End, Ends
from dpbench.study.statistics import plus_minus
from dpbench.study.verdict import HELD, NOT_HELD, NOT_TESTABLE, OPEN, NotEnough

CHANCE = 2.5  # ‖mean - ∇F̂‖ over its expected root mean square: an unbiased estimator hardly ever exceeds it
GROWS = 0.25  # exponent of d from which a variance counts as growing
NEAR = 0.1  # a measured exponent of b or ‖x - y‖ this far from the lemma's is another
CELL = ["set.b", "set.distance"]
LONG = 64  # T from which the T² reduction is asked for; below, the logarithms are larger
FREE = 2.0  # standard errors within which two means count as equal
ORDER = 10.0  # the theorem's Õ hides constants and logarithms: its threshold is tested to an order of magnitude
WithWords = tuple[bool | str | None, dict[str, Any]]  # whether it holds, or the verdict's word; the values of its words
TREE, NAIVE = "o2nc-tree", "o2nc-naive"


# Estimators, noise and guarantee


def variances(context: Context, estimator: str, *, one_direction: bool = False) -> pd.DataFrame:
    """The variance rows of GRAD or DIFF with the paper's d directions to a row, or with one."""
    rows = needed(context, "estimators")
    part = rows[rows["set.estimator"].eq(estimator) & rows["set.quantity"].eq("variance")]
    ones = part["set.directions"].notna() if "set.directions" in part else part["measured"].isna()
    return part[ones if one_direction else ~ones]


@PAPER.claim("grad_variance", section="variance", name="GRAD", lemma="Lemma 3.1", bound="16dL²/b", what="b")
@PAPER.claim("diff_variance", section="variance", name="DIFF", lemma="Lemma 3.2", bound="16dL²‖x-y‖²/(bδ²)",
             what="‖x - y‖")  # fmt: skip
def variance_bound(context: Context, name: str, **words: str) -> WithWords:
    """The measured variance is below the lemma's bound, and goes with the same power."""
    part = variances(context, name.lower())
    if part.empty:
        raise NotEnough(f"no variance rows of {name.lower()}")
    ratio = part["measured"] / part["bound"]
    x, lemma = ("set.b", -1) if name == "GRAD" else ("set.distance", 2)
    if part[x].nunique() < 2:
        raise NotEnough(f"fewer than two values of {words['what']}")
    power = np.polyfit(np.log(part[x]), np.log(part["measured"]), 1)[0]
    return bool((ratio <= 1).all() and abs(power - lemma) <= NEAR), {
        "least": ratio.min(), "most": ratio.max(), "probes": len(part), "power": power, "exponent": lemma,
        "near": NEAR, "room": 1 / ratio.max(),
    }  # fmt: skip


@PAPER.claim("grad_variance_in_d", section="variance_in_d", name="GRAD", lemma="Lemma 3.1")
@PAPER.claim("diff_variance_in_d", section="variance_in_d", name="DIFF", lemma="Lemma 3.2")
def variance_in_d(context: Context, name: str, **words: str) -> WithWords:
    """The exponent of d at equal b and ‖x - y‖: 1 in the lemmas; d directions to a point cancel it."""

    def exponents(part: pd.DataFrame) -> list[float]:
        table = over_seeds(part.assign(d=part["problem"].map(dimension_of)), ["d", *CELL])
        cells = [cell for _, cell in table.groupby(CELL) if cell["d"].nunique() > 1]
        return [float(np.polyfit(np.log(cell["d"]), np.log(cell["mean"]), 1)[0]) for cell in cells]

    powers, ones = (exponents(variances(context, name.lower(), one_direction=one)) for one in (False, True))
    if not powers:
        raise NotEnough("fewer than two d")
    return max(powers) < GROWS, {
        "least": min(powers), "most": max(powers), "count": len(powers), "grows": GROWS,
        "alone": ", ".join(f"{power:+.2f}" for power in ones) or "not measured",
    }  # fmt: skip


@PAPER.claim("unbiased")
def unbiased(context: Context) -> WithWords:
    """The means differ from ∇F̂ by no more than chance."""
    rows = needed(context, "estimators")
    part = rows[rows["set.quantity"].eq("bias")]
    if part.empty:
        raise NotEnough("no bias rows")
    ratio = part["measured"] / part["measured_error"]
    grad = part[part["set.estimator"].eq("grad")]
    size = grad["gradient_norm"] / grad["measured_error"]
    return bool(ratio.max() < CHANCE), {
        "median": ratio.median(), "largest": ratio.max(), "probes": len(part), "chance": CHANCE, "least": size.min(),
        "most": size.max(),
    }  # fmt: skip


@PAPER.claim("tree_noise")
def tree_noise_bound(context: Context) -> WithWords:
    """E‖TREE(t)‖² = |NODE(t)| dσ², at most (⌊log₂ t⌋ + 1) dσ²."""
    rows = needed(context, "tree_noise")
    tree = rows[rows["set.mechanism"].eq("tree")]
    if tree.empty:
        raise NotEnough("no rows of the tree")
    per_node = tree["bound"] / np.floor(np.log2(tree["set.t"]) + 1)
    exact = per_node * [len(node(int(t))) for t in tree["set.t"]]
    # The lemma counts the most nodes that a t of this length can have; this t has NODE(t), which is the sharper test.
    z, ratio = (tree["measured"] - exact) / tree["measured_error"], tree["measured"] / exact
    below = (tree["measured"] <= tree["bound"] + 4 * tree["measured_error"]).all()
    return bool(below and z.abs().max() < 4), {
        "least": ratio.min(), "most": ratio.max(), "deviation": z.abs().max(), "count": len(z),
        "off": (0.75 * exact / tree["measured_error"]).min(),
    }  # fmt: skip


@PAPER.claim("tree_below_naive")
def tree_below_naive(context: Context) -> WithWords:
    """The tree's noise is below naive noise at the same M, K, T, by a factor that grows like T²."""
    rows = needed(context, "tree_noise")
    table = rows.pivot_table(index=["set.T", "set.t"], columns="set.mechanism", values="measured").dropna()
    if table.empty or not {"tree", "naive"} <= set(table):
        raise NotEnough("rows of one of the two mechanisms are missing")
    factor = (table["naive"] / table["tree"]).groupby("set.T").min()
    long = factor[factor.index >= LONG]
    if len(long) < 2:
        raise NotEnough(f"fewer than two T >= {LONG}")
    power = np.polyfit(np.log(long.index), np.log(long), 1)[0]
    return bool((long > 1).all() and power > 1.5), {
        "factors": ", ".join(f"T = {T:.0f}: {f:.3g}" for T, f in factor.items()), "long": LONG, "power": power,
        "T": factor.index[0], "which": "smaller" if factor.iloc[0] < 1 else "larger",
    }  # fmt: skip


@PAPER.claim("guarantee")
def guarantee_checked(context: Context) -> WithWords:
    """Every run's ledger composes to at most the ε of its ρ."""
    rows = needed(context, "guarantee")
    private = rows[rows["private"]]
    ratio = private["epsilon_planned"] / private["epsilon"]
    rhos = sorted({round(rho_of(e), 2) for e in private["epsilon"]})
    return bool((ratio <= 1).all()), {
        "most": ratio.max(), "least": ratio.min(), "runs": len(private), "rhos": ", ".join(f"{r:g}" for r in rhos),
    }  # fmt: skip


# The bound of Theorem 4.9


@PAPER.claim("bound")
def below_the_bound(context: Context) -> Iterator[WithWords]:
    """At the largest M, by ρ: a bound above what runs have that hardly move cannot be broken."""
    panel = long_runs(context)
    start, last = start_level(panel), panel[panel["set.M"].eq(panel["set.M"].max())]
    for (_, rho), rows in frames.groups(select(last, algorithm=["o2nc", TREE]), Method, sort=True):
        bound = whole_bound(rows).iloc[0]
        testable = bound < start
        radius = rows["set.radius"].fillna(RADIUS).iloc[0]
        yield bool(rows["measured"].mean() <= bound) if testable else NOT_TESTABLE, {
            "case": _noise(rho), "M": rows["set.M"].iloc[0], "measured": _measured(rows), "bound": bound,
            "first": first_term(rows).iloc[0], "start": start,
            "could": _words("stays") if testable else _words("never", radius=radius, M=enough(rows, start)),
        }  # fmt: skip


@PAPER.claim("bound_sphere")
def below_the_bound_on_the_sphere(context: Context) -> Iterator[WithWords]:
    """By ρ and M: the mean over all epochs against the bound, which a run that stays is above where it can fail."""
    panel = sphere_rows(context)
    if panel.empty:
        raise NotEnough("no rows", "sphere")
    for _, rows in panel.groupby(["rho", "set.M"]):
        start, bound = rows["start"].mean(), whole_bound(rows).iloc[0]
        testable = bound < start
        yield bool(rows["measured"].mean() <= bound) if testable else NOT_TESTABLE, {
            "case": f"{_noise(rows['rho'].iloc[0])}, M = {rows['set.M'].iloc[0]:,.0f}", "measured": _measured(rows),
            "runs": len(rows), "first": rows["first"].mean(), "bound": bound, "start": start,
            "F_start": rows["F_start"].mean(), "F": rows["F"].mean(),
            "could": _words("stays") if testable else _words("never_sphere", M=enough(rows, start)),
        }  # fmt: skip


def _noise(rho: float) -> str:
    return "no noise" if math.isinf(rho) else f"tree, ρ = {rho:g}"


def _words(phrase: str, **values: float | str) -> str:
    return PAPER.phrases[phrase].format_map(values)


def _measured(rows: pd.DataFrame) -> str:
    """Mean ± standard error of the measure."""
    measured = rows["measured"]
    return plus_minus(measured.mean(), measured.std() / measured.count() ** 0.5)


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


# How the share of failed runs goes with M and d


@PAPER.claim("rate", source="Theorem 4.9", whose="O2NC (no noise)", algorithm="o2nc")
@PAPER.claim("rate_tree_10", section="rate", source="Theorem 4.9", whose="the tree at ρ = 10", algorithm=TREE, rho=10.0)
@PAPER.claim("rate_tree_1", section="rate", source="Theorem 4.9", whose="the tree at ρ = 1", algorithm=TREE, rho=1.0)
@PAPER.claim("rate_tree_0.1", section="rate", source="Theorem 4.9", whose="the tree at ρ = 0.1", algorithm=TREE,
             rho=0.1)  # fmt: skip
@PAPER.claim("rate_naive_1", section="rate", source="Appendix E", whose="naive noise at ρ = 1", algorithm=NAIVE,
             rho=1.0)  # fmt: skip
def rate(context: Context, algorithm: str, rho: float = math.inf, **words: str) -> WithWords:
    """Failure rates a decade of M apart; the theorem bounds levels, so its exponent is a claim of ours."""
    panel = long_runs(context)
    ours = panel[panel["algorithm"].eq(algorithm) & panel["rho"].eq(rho)]
    floor = panel[panel["algorithm"].eq("o2nc")]
    most = ours["set.M"].max() if len(ours) else math.nan
    decade = ours[ours["set.M"].between(0.99 * most / 10, 1.01 * most / 10)]
    last, without = ours[ours["set.M"].eq(most)], floor[floor["set.M"].eq(most)]
    if decade.empty or without.empty:
        raise NotEnough(f"no two M a decade apart for {algorithm} at ρ = {rho:g}", "stationarity")
    theory = 10 ** exponent(algorithm, last["T"].iloc[0], without["T"].iloc[0])
    word, values = compared(decade, last, theory)
    return word, values | {"before": most / 10, "M": most}


@PAPER.claim("dimension", whose="O2NC", algorithm="o2nc")
@PAPER.claim("dimension_tree", section="dimension", whose="the tree at ρ = 10", algorithm=TREE, rho=10.0)
def dimension(context: Context, algorithm: str, rho: float = math.inf, **words: str) -> WithWords:
    """Failure rates at the least and the largest d."""
    rows = needed(context, "dimension")
    part = rows[rows["algorithm"].eq(algorithm) & rows["rho"].eq(rho)]
    d = part["problem"].map(dimension_of)
    if d.nunique() < 2:
        raise NotEnough("fewer than two d")
    least, most = d.min(), d.max()
    word, values = compared(part[d.eq(least)], part[d.eq(most)], (most / least) ** (1 / 3))
    return word, values | {"least": least, "most": most}


def compared(first: pd.DataFrame, second: pd.DataFrame, bound: float) -> tuple[str, dict[str, Any]]:
    """Whether the second failure rate is at most `bound` times the first; not testable where few runs carry it.

    The ratio lies between the ends of the two intervals: 90 % or more, whatever the two shares are.
    """
    before, after = failures(first), failures(second)
    if before is None or after is None:
        raise NotEnough("no measured runs")
    values = {"shares": f"{before}, then {after}", "theory": bound, "ratio": ""}
    # A ratio of a few failures has an interval that no theory leaves: it could not have come out otherwise.
    if min(before.failed, after.failed) < CARRY:
        return NOT_TESTABLE, values | {"could": _words("few", carry=CARRY)}
    if after.failed == after.runs:
        return NOT_TESTABLE, values | {"could": _words("stuck")}
    lower, upper = after.lower / before.upper, after.upper / before.lower
    values["ratio"] = f"; the ratio is between {lower:.2f} and {upper:.2f}"
    if upper <= bound:
        return HELD, values | {"could": _words("steep")}
    if lower > bound:
        return NOT_HELD, values | {"could": _words("flat")}
    return OPEN, values | {"could": _words("either")}


# Tree against naive noise, first order, and privacy for free


def end_of(table: pd.DataFrame, algorithm: str) -> End:
    """The algorithm's only row of a table."""
    return Ends(table, "privacy_for_free", "")(algorithm=algorithm)


def lead(table: pd.DataFrame, first: str, second: str) -> float:
    """(mean of `second` - mean of `first`) in standard errors: above 0 where `first` is lower. By algorithm."""
    return end_of(table, first).lead(end_of(table, second))


def sign_of(gap: float) -> int:
    """1 or -1 where two means are more than `FREE` standard errors apart, else 0."""
    return 0 if abs(gap) <= FREE else int(math.copysign(1, gap))


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


@PAPER.claim("tree_reaches_further")
def tree_reaches_further(context: Context) -> WithWords:
    """At the largest M, where the noise matters (ρ = 1): by F and by stationarity."""
    panel = long_runs(context)
    panel = panel[panel["rho"].eq(1.0) & panel["set.M"].eq(panel["set.M"].max())]
    if not {TREE, NAIVE} <= set(panel["algorithm"]):
        raise NotEnough("rows of one of the two methods are missing at ρ = 1")
    table = over_seeds(panel, ["algorithm"], "objective")
    failed, gap = shares(panel, TREE, NAIVE), lead(table, TREE, NAIVE)
    signs = {failed.sign, sign_of(gap)}
    return False if -1 in signs else True if signs == {1} else None, {
        "M": panel["set.M"].iloc[0], "failed": failed, "tree": end_of(table, TREE), "naive": end_of(table, NAIVE),
        "gap": gap, "free": FREE,
    }  # fmt: skip


@PAPER.claim("crossover")
def crossover(context: Context) -> Iterator[WithWords]:
    """By each measure at one M: the ρ up to which the tree is clearly ahead, and from which naive noise is."""
    rows = needed(context, "privacy_for_free")
    both = sorted(set.intersection(*(set(rows.loc[rows["algorithm"].eq(name), "rho"]) for name in (TREE, NAIVE))))
    table = over_seeds(rows, ["algorithm", "rho"], "objective")
    gaps = {rho: lead(table[table["rho"].eq(rho)], TREE, NAIVE) for rho in both}
    text = ", ".join(f"ρ = {rho:g}: {gap:+.1f}" for rho, gap in gaps.items())
    floors = table[np.isinf(table["rho"])]
    if {"o2nc", "o2nc-two-point"} <= set(floors["algorithm"]):
        text += f"; without noise {lead(floors, 'o2nc', 'o2nc-two-point'):+.1f}"
    signs = {rho: sign_of(gap) for rho, gap in gaps.items()}
    yield _changes_places(signs, f"F, naive less tree in standard errors: {text}", f"{FREE:g} standard errors", "F")
    failed = {rho: shares(rows[rows["rho"].eq(rho)], TREE, NAIVE) for rho in both}
    text = ", ".join(
        f"ρ = {rho:g}: {one.first.failed} and {one.second.failed} of {one.first.runs}" for rho, one in failed.items()
    )
    signs = {rho: one.sign for rho, one in failed.items()}
    yield _changes_places(signs, f"not stationary, tree and naive: {text}", "disjoint 95 % intervals", "failed runs")


def _changes_places(signs: dict[float, int], measured: str, clear: str, case: str) -> WithWords:
    """signs: by ρ, 1 where the tree is clearly ahead, -1 where naive noise is."""
    tree, naive = ([rho for rho, one in signs.items() if one == sign] for sign in (1, -1))
    if not tree or not naive:
        nobody = " nor ".join(name for name, ahead in (("the tree", tree), ("naive noise", naive)) if not ahead)
        return None, {"case": case, "measured": measured, "places": f"no ρ where {nobody} is ahead by {clear}"}
    places = f"by {clear} the tree is ahead up to ρ = {max(tree):g}, naive noise from {min(naive):g}"
    return max(tree) < min(naive), {
        "case": case, "measured": measured, "places": f"{places}. {_words('throughout')}",
    }  # fmt: skip


@PAPER.claim("first_order")
def first_order(context: Context) -> WithWords:
    """What zeroth order costs: the same steps on noisy subgradients, each row used once, at the same M and ρ."""
    rows = needed(context, "privacy_for_free")
    table = over_seeds(rows, ["algorithm", "rho"], "objective")
    method = "o2nc-naive-gradient"
    if not {method, TREE} <= set(table["algorithm"]):
        raise NotEnough("rows of one of the two methods are missing")
    parts = {rho: select(table, rho=rho) for rho in sorted(set(table["rho"])) if rho <= 10}
    parts = {rho: part for rho, part in parts.items() if {method, TREE} <= set(part["algorithm"])}
    gaps = {rho: lead(part, method, TREE) for rho, part in parts.items()}
    text = ", ".join(
        f"ρ = {rho:g}: {end_of(part, method).mean:.3f} against {end_of(part, TREE).mean:.3f} ({gaps[rho]:+.1f})"
        for rho, part in parts.items()
    )
    signs = [sign_of(gap) for gap in gaps.values()]
    held = True if all(sign == 1 for sign in signs) else False if -1 in signs else None
    return held, {"gaps": text, "free": FREE}


@PAPER.claim("privacy_for_free")
def free_privacy(context: Context) -> WithWords:
    """No cost of privacy for ρ above about √d times the stationarity reached."""
    rows = needed(context, "privacy_for_free")
    without = rows[rows["algorithm"].eq("o2nc")]
    floor, tree = failures(without), _by_rho(rows, TREE)
    if floor is None or len(tree) < 3:
        raise NotEnough("too few values of ρ, or no run without noise")

    def worse(shares: Iterable[tuple[float, Fraction]]) -> list[float]:
        return [rho for rho, share in shares if share.lower > floor.upper]

    costly = worse(tree.items())
    values = {"floor": floor, "tree": ", ".join(f"{s.failed} of {s.runs} at ρ = {rho:g}" for rho, s in tree.items())}
    if not costly:
        return None, values | {"found": "no ρ has an interval above the one without noise"}
    threshold = math.sqrt(5) * float(without["measured"].mean())
    free = [rho for rho in tree if rho > max(costly)]
    if not free:
        return False, values | {"found": "still more often at the largest ρ"}
    naive = worse(_by_rho(rows, NAIVE).items())
    return bool(min(free) <= ORDER * threshold), values | {
        "found": _words("free", costly=max(costly), free=min(free), threshold=threshold, order=ORDER,
                        beyond=ORDER * threshold, naive=f"ρ = {max(naive):g}" if naive else "no ρ"),
    }  # fmt: skip


def _by_rho(rows: pd.DataFrame, algorithm: str) -> dict[float, Fraction]:
    """The failure rates of a private method, by ρ."""
    own = rows[rows["algorithm"].eq(algorithm) & np.isfinite(rows["rho"])]
    shares = {float(rho): failures(part) for rho, part in own.groupby("rho")}
    return {rho: one for rho, one in shares.items() if one is not None}


@PAPER.erratum("half_of_two_points")
def half_of_two_points() -> Iterator[Case]:
    """o2nc-naive: σ = dL/(Bρ) where the two-point estimate has sensitivity 2dL/B; every point is used once."""
    delta = 1e-6
    for rho in (0.1, 1.0):
        has = gaussian_epsilon(2 * rho, delta)
        yield Case(f"ρ = {rho:g}, δ = 1e-6", gaussian_epsilon(rho, delta), has, has)
