"""The claims of nonconvex, covertype and ijcnn each on its own, judged on the rows of its tables; its errata."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.nonconvex.formulas import at_least, at_most, attained_among_equal_rows
from dpbench.experiments.nonconvex.rows import (
    EPSILONS,
    PAPER,
    PUBLISHED,
    TARGETS,
    TERMINATED,
    Ours,
    aggregated,
    finished,
)
from dpbench.privacy import Budget, Relation, accounting
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import CountedRelease, Gaussian, WithoutReplacement
from dpbench.study import laws
from dpbench.study.claims import NOT_TESTABLE, Case, NotEnough, Verdict, all_of
from dpbench.study.context import Context, memoised, select
from dpbench.study.paper import WithWords
from dpbench.study.power import run_by

FAR_LESS = 3.0  # "far less", "several times faster": by this factor or more
TABLES = {target.table: target for target in TARGETS}
CASES = {"": "at a proven ε", PUBLISHED: "as published, not private"}
BATCHES = 100  # a minibatch is a hundredth of the rows
RESAMPLES = 200  # of the seeds
Array: TypeAlias = np.ndarray[Any, Any]
FULL_BATCHES = {"opt": "opt-b", "2opt": "2opt-b"}
MET_AT_THE_START = (5, 9)  # the tables of loss B at the loose target
# Loss A's tables, then loss B's.
DATA = {"covertype": (1, 2, 5, 7), "ijcnn": (3, 4, 9, 11)}


def rows_of(context: Context, table: int, algorithm: str, epsilon: float, variant: str = "") -> pd.DataFrame:
    """The finished rows of a method at one ε; NotEnough if there are none."""
    target = TABLES[table]
    rows = finished(context, target.artefact, algorithm=algorithm, epsilon=epsilon)
    rows = select(rows.assign(problem=target.problem), variant=variant)
    if rows.empty:
        raise NotEnough(f"no {variant or 'proven'} rows of {algorithm} at ε = {epsilon:g}", target.artefact)
    return rows


def ours(context: Context, table: int, algorithm: str, epsilon: float, variant: str = "") -> Ours:
    """What our runs of a published table ended with; NotEnough if it has no rows."""
    there = ours_of_table(context, table, variant).get((algorithm, epsilon))
    return there or frames.records(aggregated(rows_of(context, table, algorithm, epsilon, variant)), Ours)[0]


@memoised
def ours_of_table(context: Context, table: int, variant: str) -> dict[tuple[str, float], Ours]:
    """The same for all of a published table with rows, by method and ε."""
    rows = finished(context, f"table{table}").assign(problem=TABLES[table].problem)
    rows = select(rows, variant=variant)
    return {(one.algorithm, one.epsilon): one for one in reversed(frames.records(aggregated(rows), Ours))}


def under_both(judge: Callable[..., WithWords]) -> Callable[..., Iterator[WithWords | Verdict]]:
    """A claim's verdicts at a proven ε and under the published setting: `judge` is given the variant of the runs.

    Where the rows of one setting are missing, that verdict says so, and the other stands.
    """

    @functools.wraps(judge)
    def check(context: Context, **parameters: Any) -> Iterator[WithWords | Verdict]:
        missing: dict[str, NotEnough] = {}
        for variant, case in CASES.items():
            try:
                held, values = judge(context, variant, **parameters)
                yield held, values | {"case": case}
            except NotEnough as error:
                missing[case] = error
        if len(missing) == len(CASES):
            raise next(iter(missing.values()))
        for case, why in missing.items():
            yield Verdict.lacking(why, case)

    return check


def terminates(one: Ours) -> bool:
    """Whether every seed of a row terminated."""
    return one.terminated == one.seeds


def faster(
    context: Context, table: int, fast: str, slow: str, epsilon: float, variant: str = ""
) -> tuple[dict[str, laws.Interval], str]:
    """(`slow` over `fast` in gradients, Hessians and seconds, what to print); ∞ where `slow` is ×, 0 where `fast` is.

    No seconds where either is not timed.
    """
    quick, other = (ours(context, table, name, epsilon, variant) for name in (fast, slow))
    where = f"Table {table}, ε = {epsilon:g}"
    # A run that does not terminate has no time to its target: only who terminates can be told.
    if not terminates(quick) or not terminates(other):
        ratio = math.inf if terminates(quick) else 0.0
        return {"gradients": laws.Interval(ratio, ratio, ratio)}, f"{where}: {slow if ratio else fast} ×"
    both = dict[str, laws.Interval]()
    for name, column in (("gradients", "iterations"), ("Hessians", "hessian_evaluations"), ("seconds", "seconds")):
        ends = [(getattr(one, column), getattr(one, f"{column}_std") / math.sqrt(one.seeds)) for one in (other, quick)]
        if not any(math.isnan(mean) for mean, _ in ends):
            both[name] = laws.ratio_interval(*ends[0], *ends[1])
    told = ", ".join(f"{name} {ratio}×" for name, ratio in both.items())
    return both, f"{where}: {slow} over {fast} {told}" + ("" if "seconds" in both else ", not timed")


class MethodEpsilon(NamedTuple):
    """A place of a published table."""

    algorithm: str
    epsilon: float


class Seeds(NamedTuple):
    """Of runs, a value per seed: whether it terminated, and in how many gradients and Hessians of all rows."""

    terminated: Array
    read: Array

    def again(self, generator: np.random.Generator) -> Seeds:
        """The runs of as many seeds, drawn with replacement."""
        places = generator.integers(len(self.terminated), size=len(self.terminated))
        return Seeds(self.terminated[places], self.read[places])


@memoised
def seeds_of(context: Context, table: int, variant: str) -> dict[tuple[str, float], Seeds]:
    """The untimed runs of a published table, by method and ε."""
    rows = select(finished(context, f"table{table}", timed=0), variant=variant)
    released = (rows["iterations"] + rows["hessian_evaluations"]).astype(float)
    part = np.where(run_by(context, rows["algorithm"]).str.endswith("-b"), BATCHES, 1)
    rows = rows.assign(terminated=rows["ending"].eq(TERMINATED), read=released / part)
    return {
        (one.algorithm, one.epsilon): Seeds(part["terminated"].to_numpy(bool), part["read"].to_numpy())
        for one, part in frames.groups(rows, MethodEpsilon)
    }


def gained(full: Seeds, batch: Seeds) -> int:
    """1 where minibatches are better (alone to terminate, or fewer rows read), -1 where worse, 0 where both are ×."""
    good, batch_good = full.terminated.all(), batch.terminated.all()
    if not (good or batch_good):
        return 0
    fewer = batch.read.mean() < full.read.mean()
    return 1 if batch_good and (not good or fewer) else -1


@PAPER.claim("minibatch", exchange=FULL_BATCHES, data="covertype")
@PAPER.claim("minibatch_ijcnn", exchange=FULL_BATCHES, data="ijcnn")
@under_both
def minibatch(context: Context, variant: str, data: str) -> WithWords:
    """The lead of minibatches over the tables, with its interval: see `gained`.

    Rows read: those of every gradient and Hessian. A pair of which neither terminates decides nothing.
    """
    pairs, missing = dict[str, tuple[Seeds, Seeds]](), []
    for table in DATA[data]:
        there = seeds_of(context, table, variant)
        for epsilon, full in itertools.product(context.epsilons(f"table{table}"), ("opt", "2opt")):
            if {(full, epsilon), (f"{full}-b", epsilon)} <= there.keys():
                at = f"Table {table}, {full}-b at ε = {epsilon:g}"
                pairs[at] = there[full, epsilon], there[f"{full}-b", epsilon]
            else:
                missing.append(table)
    if not pairs:
        raise NotEnough(artefact=f"table{missing[0]}")
    outcomes = {at: gained(*pair) for at, pair in pairs.items()}

    def again(generator: np.random.Generator) -> float:
        return sum(gained(full.again(generator), batch.again(generator)) for full, batch in pairs.values())

    lead = laws.drawn_interval(sum(outcomes.values()), laws.resampled(again, RESAMPLES))
    better, worse = ([at for at, one in outcomes.items() if one == sign] for sign in (1, -1))
    told = (
        f"{len(better)} of {len(pairs)} cells better with minibatches, {len(worse)} worse, "
        f"{len(pairs) - len(better) - len(worse)} × either way"
    )
    told += f" (worse: {', '.join(worse)})" if worse else ""
    gap = len(missing)
    told += f"; no rows: Table {', '.join(map(str, sorted({*missing})))}" if gap else ""
    # Missing pairs are put both ways: were all to come out for the loser, the winner would still have to win.
    held = True if lead.low > gap else False if lead.high < -gap else None
    if held is None and gap:
        told = f"open: {gap} of {len(pairs) + gap} cells missing; {told}"
    return held, {"shown": told, "interval": lead}


@PAPER.claim("opt_faster_than_tr", exchange={"opt": "dp-tr"})
@under_both
def opt_faster_than_tr(context: Context, variant: str) -> WithWords:
    """Claim 1a: Table 1, ε = 0.6 and 1: at least 3 times fewer gradients and Hessians, and seconds where timed."""
    comparisons = [faster(context, 1, "opt", "dp-tr", epsilon, variant) for epsilon in EPSILONS[1:]]
    held = [ratio.beyond(FAR_LESS) for ratios, _ in comparisons for ratio in ratios.values()]
    return all_of(*held), {
        "shown": f"asked: {FAR_LESS:g} times",
        "interval": "; ".join(text for _, text in comparisons),
    }


@PAPER.claim("opt_lower_than_tr", exchange={"opt": "dp-tr"})
@under_both
def opt_lower_than_tr(context: Context, variant: str) -> WithWords:
    """Claim 1b: Table 1, ε = 0.6 and 1: the paired difference of final losses, seed by seed, is clear and negative."""
    held: list[bool | None] = []
    words, intervals = [], []
    for epsilon in EPSILONS[1:]:
        pair = [rows_of(context, 1, name, epsilon, variant) for name in ("opt", "dp-tr")]
        opt, tr = (select(rows, timed=0).set_index("seed")["objective"] for rows in pair)
        difference = (opt - tr).dropna()  # same seed, same start
        paired = laws.mean_interval(difference)
        held.append(paired.beyond(0, below=True))
        words.append(f"ε = {epsilon:g}: {opt.mean():.3f} and {tr.mean():.3f}")
        intervals.append(f"{paired} at ε = {epsilon:g}")
    return all_of(*held), {"shown": "; ".join(words), "interval": f"paired differences {', '.join(intervals)}"}


@PAPER.claim("consistent", exchange={"2opt-ls": "dp-tr"}, tables=(1, 2))
@PAPER.claim("consistent_ijcnn", exchange={"2opt-ls": "dp-tr"}, tables=(3, 4))
@under_both
def consistent(context: Context, variant: str, tables: tuple[int, ...]) -> WithWords:
    """Claim 2: by gradients released, and by seconds where they are timed. A run that is lost did not terminate."""
    held: list[bool | None] = []
    words = []
    for table in tables:
        for epsilon in EPSILONS:
            ratios, text = faster(context, table, "2opt-ls", "dp-tr", epsilon, variant)
            held += [ratios[name].beyond(FAR_LESS) for name in ("gradients", "seconds") if name in ratios]
            lost = ours(context, table, "2opt-ls", epsilon, variant).crashed
            words.append(text + (f", {lost:.0f} of its runs lost" if lost else ""))
    return all_of(*held), {"shown": f"asked: {FAR_LESS:g} times", "interval": "; ".join(words)}


@PAPER.claim("one_hessian", exchange={"opt": "dp-tr"}, data="covertype")
@PAPER.claim("one_hessian_ijcnn", exchange={"opt": "dp-tr"}, data="ijcnn")
@under_both
def one_hessian(context: Context, variant: str, data: str) -> WithWords:
    """Claim 3: over the runs of the data set's tables, but for loss B's loose target, which every start meets."""
    tables = [table for table in DATA[data] if table not in MET_AT_THE_START]
    rows = pd.concat([finished(context, f"table{table}", timed=0) for table in tables])
    rows = select(rows, variant=variant)
    opt, tr = select(rows, algorithm="opt"), select(rows, algorithm="dp-tr")
    good = opt["ending"].eq(TERMINATED)
    if opt.empty or tr.empty:
        raise NotEnough(artefact="")
    if not good.any():
        told = f"none of {len(opt)} runs of opt terminates: there is nothing to count"
        return NOT_TESTABLE, {"shown": told, "interval": "none, as there is no run to count"}
    needed, wasted = opt.loc[good, "hessian_evaluations"], opt.loc[~good, "hessian_evaluations"]
    # dp-tr looks at a Hessian in every iteration: were it not so in the rows, they would be of something else.
    one_each = tr["hessian_evaluations"].eq(tr["iterations"])
    # Of every ε, as one that is missing may have a run with two.
    gaps = [f"Table {table}, ε = {epsilon:g}" for table in tables for epsilon in context.epsilons(f"table{table}")
            if not {("opt", epsilon), ("dp-tr", epsilon)} <= seeds_of(context, table, variant).keys()]  # fmt: skip
    words = (
        f"opt, {len(needed)} terminated runs: {needed.mean():.2f} Hessians on average, {(needed == 1).sum()} of "
        f"them need exactly 1, the most is {needed.max():.0f}"
        + (f"; {len(wasted)} others: {wasted.min():.0f} to {wasted.max():.0f}" if len(wasted) else "")
        + f"; dp-tr: one per iteration, which is its rule, in {one_each.sum()} of {len(tr)} runs, "
        f"{tr['hessian_evaluations'].mean():.1f} on average; loss B's loose target is not testable: every start "
        "meets it"
    )
    words += f"; no rows: {', '.join(gaps)}" if gaps else ""
    share = laws.share_interval(int((needed == 1).sum()), len(needed))
    held = bool((needed == 1).all() and one_each.all())
    return None if held and gaps else held, {
        "shown": words,
        "interval": f"share that needs exactly 1 {share}",
    }


@PAPER.claim("two_phases", exchange={"opt-ls": "2opt-ls"}, turned=((1, 0.2), (2, 0.2), (5, 0.2)), not_turned=())
@PAPER.claim(
    "two_phases_ijcnn",
    exchange={"opt-ls": "2opt-ls"},
    turned=((9, 0.6), (9, 1.0), (11, 1.0)),
    not_turned=((9, 0.2), (11, 0.2), (11, 0.6)),
)
@under_both
def two_phases(
    context: Context, variant: str, turned: tuple[tuple[int, float], ...], not_turned: tuple[tuple[int, float], ...]
) -> WithWords:
    """Claim 4: opt-ls × and 2opt-ls not, at the places `turned`; both × on the others."""
    held: list[bool | None] = []
    words = []
    for table, epsilon in turned + not_turned:
        one, two = (ours(context, table, name, epsilon, variant) for name in ("opt-ls", "2opt-ls"))
        # Where the paper prints × for both, a run that terminates contradicts it as well.
        held.append(not terminates(one) and terminates(two) == ((table, epsilon) in turned))
        counts = [f"{name} {c.terminated:.0f} of {c.seeds:.0f}, {laws.share_interval(int(c.terminated), int(c.seeds))}"
                  for name, c in (("opt-ls", one), ("2opt-ls", two))]  # fmt: skip
        words.append(f"Table {table}, ε = {epsilon:g}: {', '.join(counts)}")
    told = f"as claimed in {held.count(True)} of {len(held)} cells"
    if not not_turned:
        plain = [ours(context, 2, name, 1.0, variant) for name in ("opt", "2opt")]
        counts = [f"{c.terminated:.0f} of {c.seeds:.0f}" for c in plain]
        told += f"; plain 2opt can lose (Table 2, ε = 1): opt {counts[0]}, 2opt {counts[1]} terminate"
    return all_of(*held), {"shown": told, "interval": f"seeds that terminate: {'; '.join(words)}"}


SIZES = {"covertype12": 495_141, "ijcnn": 49_990}  # rows of the data sets; δ = 1/n


@PAPER.erratum("deviation_without_constant")
def deviation_without_constant() -> Iterator[Case]:
    """dp-gd-2ns: σ = √(T ln(1/δ))/ε on T gradients and up to T Hessians, so μ² = T/σ² to 2T/σ² whatever T."""
    for name, n in SIZES.items():
        for epsilon in EPSILONS:
            mu = epsilon / math.sqrt(math.log(n))
            yield Case(
                f"{name}, ε = {epsilon:g}",
                epsilon,
                gaussian_epsilon(mu, 1 / n),
                gaussian_epsilon(math.sqrt(2) * mu, 1 / n),
            )


@PAPER.erratum("rows_beyond_the_bound")
def rows_beyond_the_bound() -> Iterator[Case]:
    """opt on loss A: T gradients of sensitivity 2R/n and up to T Hessians, noise for 2/n and 2√d/n at ρ/(2T) each.

    R is the longest row. Two Hessians of rank one and eigenvalue at most R²/4 differ by at most √2·R²/4.
    """
    from dpbench.datasets.loading import unclipped_row_norms

    for name, d in (("covertype12-unclipped", 54), ("ijcnn-unclipped", 22)):
        norms = unclipped_row_norms(name)
        R, delta = norms.largest, 1 / norms.rows
        hessian = math.sqrt(2) * R**2 / 4 / (2 * math.sqrt(d))
        for epsilon in EPSILONS:
            rho = accounting.get("standard").rho(epsilon, delta)
            yield Case(
                f"{name}, ε = {epsilon:g} (longest row {R:.3f}; {norms.beyond_1:,} of {norms.rows:,} rows beyond 1)",
                epsilon,
                gaussian_epsilon(R * math.sqrt(rho), delta),
                gaussian_epsilon(math.hypot(R, hessian) * math.sqrt(rho), delta),
            )


@PAPER.erratum("noise_of_all_rows_on_a_minibatch")
def noise_of_all_rows_on_a_minibatch() -> Iterator[Case]:
    """opt-b as its scripts run it: noise multiplier √T·m/n relative to the sensitivity on m rows, whatever ε says."""
    # The iterations that opt has for the loose target; the noise is set for these, whatever ε says.
    T, n = 421, SIZES["covertype12"]
    m, delta = n // 100, 1 / n
    z = math.sqrt(T) * m / n
    attained = at_least(z, n, m, T, delta)
    proved = at_most(z, n, m, T, delta, shared=2)
    for epsilon in EPSILONS:
        yield Case(f"covertype12, ε = {epsilon:g}", epsilon, attained, proved)


@PAPER.erratum("one_subset_for_two_releases")
def one_subset_for_two_releases() -> Iterator[Case]:
    """opt-b: noise for 2T independent subsets of m = ⌊n/100⌋ rows; run on T, the pair on each one Gaussian at σ/√2."""
    T = 421  # opt's iterations at the loose target
    for name, n in SIZES.items():
        m, delta = n // 100, 1 / n
        for epsilon in EPSILONS:
            budget = Budget(epsilon, delta, Relation.REPLACE_ONE, "rdp")
            z = budget.noise_scale(((WithoutReplacement(n, m, Gaussian(1.0)), 2 * T),)) / math.sqrt(2)
            sharp = Budget(epsilon, delta, Relation.REPLACE_ONE, "tight")
            proved = sharp.epsilon_of((CountedRelease(WithoutReplacement(n, m, Gaussian(z)), T, "pair"),))
            attained = attained_among_equal_rows(z, m / n, T, delta)
            yield Case(
                f"{name}, m = {m:,}, T = {T}, ε = {epsilon:g}",
                epsilon,
                attained,
                math.inf if proved is None else proved,
            )
