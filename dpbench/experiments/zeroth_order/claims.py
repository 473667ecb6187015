"""The claims of zeroth_order's theorems, each tested on the rows of the study."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpbench.experiments.base import Claim, Verdict
from dpbench.experiments.zeroth_order.study import exponent, means, rho_of, slope, studied
from dpbench.privacy.tree import node

CHANCE = 2.5  # ‖mean - ∇F̂‖ over its expected root mean square: an unbiased estimator hardly ever exceeds it
FREE = 2.0  # standard errors within which two means count as equal
ORDER = 10.0  # the theorem's Õ hides constants and logarithms: its threshold is tested to an order of magnitude
LONG = 64  # T from which the T² reduction is asked for; below, the logarithms are larger


def needs_rows(artefact: str) -> Callable:
    """Give the check the artefact's rows; without any, or without one it looks for, the verdict is open."""

    def decorate(check):
        def checked(context) -> Verdict:
            rows = studied(context, artefact)
            if rows.empty:
                return Verdict(None, f"no rows; run: {context.command(artefact)}")
            return check(rows)

        checked.__doc__ = check.__doc__
        return checked

    return decorate


def variance_bound(estimator: str) -> Callable:
    """Lemma 3.1 or 3.2: the measured variance is below 16dL²/b or 16dL²‖x-y‖²/(bδ²)."""

    @needs_rows("estimators")
    def check(rows) -> Verdict:
        part = rows[rows["set.estimator"].eq(estimator) & rows["set.quantity"].eq("variance")]
        if part.empty:
            return Verdict(None, f"no variance rows of {estimator}")
        ratio = part["measured"] / part["bound"]
        x = "set.b" if estimator == "grad" else "set.distance"
        what = "b" if estimator == "grad" else "‖x - y‖"
        power = "an unknown power of " + what
        if part[x].nunique() > 1:
            power = f"{what}^{np.polyfit(np.log(part[x]), np.log(part['measured']), 1)[0]:.2f}"
        return Verdict(
            bool((part["measured"] <= part["bound"]).all()),
            f"variance over bound {ratio.min():.2g} to {ratio.max():.2g} in {len(part)} probes; it goes as {power}",
        )

    return check


@needs_rows("estimators")
def unbiased(rows) -> Verdict:
    """Lemmas 3.1 and 3.2: the means differ from ∇F̂ by no more than chance."""
    part = rows[rows["set.quantity"].eq("bias")]
    if part.empty:
        return Verdict(None, "no bias rows")
    ratio = part["measured"] / part["measured_error"]
    return Verdict(
        bool(ratio.max() < CHANCE),
        f"‖mean - ∇F̂‖ over what chance gives: median {ratio.median():.2f}, largest {ratio.max():.2f} "
        f"of {len(part)} probes (held below {CHANCE:g})",
    )


@needs_rows("tree_noise")
def tree_noise_bound(rows) -> Verdict:
    """Corollary 4.5: E‖TREE(t)‖² = |NODE(t)| dσ², at most (⌊log₂ t⌋ + 1) dσ²."""
    tree = rows[rows["set.mechanism"].eq("tree")]
    if tree.empty:
        return Verdict(None, "no rows of the tree")
    per_node = tree["bound"] / np.floor(np.log2(tree["set.t"]) + 1)
    exact = per_node * [len(node(int(t))) for t in tree["set.t"]]
    z = (tree["measured"] - exact) / tree["measured_error"]
    return Verdict(
        bool((tree["measured"] <= tree["bound"] + 4 * tree["measured_error"]).all() and z.abs().max() < 4),
        f"measured over |NODE(t)|dσ² between {(tree['measured'] / exact).min():.3f} and "
        f"{(tree['measured'] / exact).max():.3f}; largest deviation {z.abs().max():.1f} standard errors of {len(z)}",
    )


@needs_rows("tree_noise")
def tree_below_naive(rows) -> Verdict:
    """Section 4.1: the tree's noise is below naive noise at the same M, K, T, by a factor that grows like T²."""
    table = rows.pivot_table(index=["set.T", "set.t"], columns="set.mechanism", values="measured").dropna()
    if table.empty or not {"tree", "naive"} <= set(table):
        return Verdict(None, "rows of one of the two mechanisms are missing")
    factor = (table["naive"] / table["tree"]).groupby("set.T").min()
    long = factor[factor.index >= LONG]
    if len(long) < 2:
        return Verdict(None, f"fewer than two T >= {LONG}")
    power = np.polyfit(np.log(long.index), np.log(long), 1)[0]
    below = ", ".join(f"T = {T:.0f}: {f:.3g}" for T, f in factor.items())
    return Verdict(
        bool((long > 1).all() and power > 1.5),
        f"naive over tree noise in the noisiest round: {below}; for T >= {LONG} it goes as T^{power:.2f} "
        "(T² up to ln² T; held above T^1.5)",
    )


def rate(algorithm: str, rho: float) -> Callable:
    """Theorem 4.9: stationarity falls with M, no more slowly than its exponent (phase retrieval, d = 5)."""

    @needs_rows("stationarity")
    def check(rows) -> Verdict:
        panel = rows[rows["problem"].eq("phase-5")]
        ours = panel[panel["algorithm"].eq(algorithm) & panel["rho"].eq(rho)]
        floor = panel[panel["algorithm"].eq("o2nc")]
        fitted = slope(ours)
        if fitted is None or floor.empty:
            return Verdict(None, f"fewer than two M for {algorithm} at ρ = {rho:g}")
        T, T0 = (part.loc[part["set.M"].eq(fitted.high), "T"].iloc[0] for part in (ours, floor))
        theory = exponent(algorithm, T, T0)
        text = f"exponent {fitted} over M = {fitted.low:,.0f} to {fitted.high:,.0f}; theorem {theory:.2f}"
        if fitted.upper > 0 and fitted.lower <= theory:
            return Verdict(None, f"{text}; the interval holds 0 and the theorem's exponent: more seeds are needed")
        return Verdict(bool(fitted.upper < 0 and fitted.lower <= theory), text)

    return check


@needs_rows("stationarity")
def tree_reaches_further(rows) -> Verdict:
    """Section 4.1: at the largest M the tree's F is below the naive method's, where the noise matters (ρ = 1)."""
    panel = rows[rows["problem"].eq("phase-5") & rows["rho"].eq(1.0)]
    panel = panel[panel["set.M"].eq(panel["set.M"].max())]
    if set(panel["algorithm"]) < {"o2nc-tree", "o2nc-naive"}:
        return Verdict(None, "rows of one of the two methods are missing at ρ = 1")
    words, gaps = [], []
    for value in ("measured", "objective"):
        table = means(panel, ["algorithm"], value).set_index("algorithm")
        tree, naive = table.loc["o2nc-tree"], table.loc["o2nc-naive"]
        gaps.append((naive["mean"] - tree["mean"]) / math.hypot(tree["se"], naive["se"]))
        name = {"measured": "stationarity", "objective": "F"}[value]
        words.append(f"{name} {tree['mean']:.3g} ± {tree['se']:.1g} against {naive['mean']:.3g} ± {naive['se']:.1g}")
    return Verdict(
        None if abs(min(gaps)) <= FREE else min(gaps) > 0,
        f"tree against naive at M = {panel['set.M'].iloc[0]:,.0f}, ρ = 1: {'; '.join(words)} "
        f"({gaps[0]:.1f} and {gaps[1]:.1f} standard errors apart; held above {FREE:g})",
    )


@needs_rows("privacy_for_free")
def free_privacy(rows) -> Verdict:
    """Theorem 4.9: no cost of privacy for ρ above about √d times the stationarity reached."""
    table = means(rows, ["algorithm", "rho"])
    floor = table[table["algorithm"].eq("o2nc")]
    tree = table[table["algorithm"].eq("o2nc-tree")].sort_values("rho")
    if floor.empty or len(tree) < 3:
        return Verdict(None, "too few values of ρ, or no run without noise")
    mean, se = floor["mean"].iloc[0], floor["se"].iloc[0]
    worse = tree["mean"].to_numpy() > mean + FREE * np.hypot(tree["se"].to_numpy(), se)
    if not worse.any():
        return Verdict(None, f"no ρ from {tree['rho'].min():g} on is measurably worse than {mean:.3g} ± {se:.1g}")
    costly, threshold = tree["rho"][worse].max(), math.sqrt(5) * mean
    free = tree["rho"][~worse & (tree["rho"] > costly)]
    if free.empty:
        return Verdict(False, f"still worse than without noise at the largest ρ = {costly:g}")
    return Verdict(
        bool(free.min() <= ORDER * threshold),
        f"without noise {mean:.3g} ± {se:.1g}; the tree is worse by more than {FREE:g} standard errors up to ρ = "
        f"{costly:g}, free from ρ = {free.min():g}; √d·ε = {threshold:.2g}, tested within a factor {ORDER:g} "
        "(its Õ hides constants and logarithms)",
    )


@needs_rows("guarantee")
def guarantee_checked(rows) -> Verdict:
    """Corollary 4.4: every run's ledger composes to at most the ε of its ρ."""
    private = rows[rows["private"]]
    ratio = private["epsilon_spent"] / private["epsilon"]
    rhos = sorted({round(rho_of(e), 2) for e in private["epsilon"]})
    return Verdict(
        bool((ratio <= 1).all()),
        f"ε spent over ε asked at most {ratio.max():.3f} (least {ratio.min():.3f}: the paper's conversion is loose) in "
        f"{len(private)} runs, ρ = {', '.join(f'{r:g}' for r in rhos)}",
    )


CLAIMS = (
    Claim("grad_variance", "Lemma 3.1: the variance of GRAD is at most 16dL²/b", variance_bound("grad")),
    Claim("diff_variance", "Lemma 3.2: the variance of DIFF is at most 16dL²‖x-y‖²/(bδ²)", variance_bound("diff")),
    Claim("unbiased", "Lemmas 3.1 and 3.2: GRAD and DIFF are unbiased", unbiased),
    Claim("tree_noise", "Corollary 4.5: E‖TREE(t)‖² grows with log₂ t only", tree_noise_bound),
    Claim("tree_below_naive", "The tree's noise is below naive noise at the same M, K, T, by T² up to logarithms",
          tree_below_naive),
    Claim("rate", "Theorem 4.9: without noise, stationarity falls like M^(-1/3) or faster", rate("o2nc", math.inf)),
    Claim("rate_tree_10", "Theorem 4.9: so does the tree at ρ = 10", rate("o2nc-tree", 10.0)),
    Claim("rate_tree_1", "Theorem 4.9: so does the tree at ρ = 1", rate("o2nc-tree", 1.0)),
    Claim("rate_tree_0.1", "Theorem 4.9: the tree at ρ = 0.1 falls like M^(-1/2) or faster", rate("o2nc-tree", 0.1)),
    Claim("tree_reaches_further", "The tree reaches further than naive noise at the same M and ρ = 1",
          tree_reaches_further),
    Claim("privacy_for_free", "Privacy is free until ρ falls to about √d times the stationarity reached", free_privacy),
    Claim("guarantee", "Corollary 4.4: every run keeps the guarantee of its ρ", guarantee_checked),
)  # fmt: skip
