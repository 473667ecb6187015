"""The four claims of nonconvex, each judged on the rows of its tables."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpbench.experiments.base import Claim, Verdict
from dpbench.experiments.nonconvex.study import EPSILONS, TARGETS, TERMINATED, cells, finished

FAR_LESS = 3.0  # "far less", "several times faster": by this factor or more
CLEAR = 2.0  # standard errors of the seeds' paired differences
TABLES = {target.table: target for target in TARGETS}


class Missing(LookupError):
    """Rows that a claim needs are not there; its text is the command that makes them."""


def judged(check: Callable) -> Callable:
    """The check with its verdict open where rows are missing."""

    def checked(context) -> Verdict:
        try:
            return check(context)
        except Missing as missing:
            return Verdict(None, f"rows are missing; run: {missing}")

    checked.__doc__ = check.__doc__
    return checked


def cell(context, table: int, algorithm: str, epsilon: float):
    """Our cell of a published table, see `study.cells`."""
    found = rows_of(context, table, algorithm, epsilon)
    return next(cells(found).itertuples())


def rows_of(context, table: int, algorithm: str, epsilon: float):
    """The finished rows of a cell; Missing if there are none."""
    target = TABLES[table]
    rows = finished(context.rows(target.artefact, algorithm=algorithm, epsilon=epsilon))
    if rows.empty:
        raise Missing(context.command(target.artefact))
    return rows


def terminates(one) -> bool:
    return one.terminated == one.seeds


def times_faster(context, table: int, fast: str, slow: str, epsilon: float) -> tuple[float | None, str]:
    """(seconds of `slow` over those of `fast`, what to print); ∞ where `slow` is ×, None without timed runs."""
    quick, other = cell(context, table, fast, epsilon), cell(context, table, slow, epsilon)
    where = f"Table {table}, ε = {epsilon:g}"
    if not terminates(quick):
        return 0.0, f"{where}: {fast} ×"
    if not terminates(other):
        return math.inf, f"{where}: {slow} ×, {fast} terminates"
    ratio = other.seconds / quick.seconds
    if math.isnan(ratio):
        iterations = f"iterations {other.iterations:.0f} to {quick.iterations:.0f}"
        return None, f"{where}: not timed yet ({context.command(f'table{table}')}; {iterations})"
    return ratio, f"{where}: {slow} {other.seconds:.2f} s, {fast} {quick.seconds:.2f} s ({ratio:.1f} times)"


def opinion(parts: list[bool | None]) -> bool | None:
    """All of several verdicts: False beats open, open beats True."""
    return False if False in parts else None if None in parts else True


@judged
def opt_beats_tr(context) -> Verdict:
    """Claim 1: Table 1, ε = 0.6 and 1: opt takes far less time than dp-tr and its loss is lower."""
    held, words = [], []
    for epsilon in (0.6, 1.0):
        ratio, text = times_faster(context, 1, "opt", "dp-tr", epsilon)
        held.append(None if ratio is None else ratio >= FAR_LESS)
        pair = [rows_of(context, 1, name, epsilon) for name in ("opt", "dp-tr")]
        opt, tr = (rows[rows["timed"].eq(0)].set_index("seed")["objective"] for rows in pair)
        difference = (opt - tr).dropna()  # same seed, same start
        mean, error = difference.mean(), difference.sem()
        clear = len(difference) > 1 and abs(mean) > CLEAR * error
        held.append(bool(mean < 0) if clear else None)
        words.append(f"{text}; loss {opt.mean():.3f} to {tr.mean():.3f}, paired difference {mean:+.4f} ± {error:.4f}")
    return Verdict(opinion(held), "; ".join(words))


@judged
def consistent(context) -> Verdict:
    """Claim 2: Tables 1 and 2: 2opt-ls terminates at every ε, several times faster than dp-tr."""
    held, words = [], []
    for table in (1, 2):
        for epsilon in EPSILONS:
            ratio, text = times_faster(context, table, "2opt-ls", "dp-tr", epsilon)
            held.append(None if ratio is None else ratio >= FAR_LESS)
            words.append(text)
    exception = cell(context, 7, "2opt-ls", 0.2)
    words.append(f"Table 7, ε = 0.2, × in the paper: {exception.terminated} of {exception.seeds} seeds terminate here")
    return Verdict(opinion(held), "; ".join(words))


@judged
def one_hessian(context) -> Verdict:
    """Claim 3: a run of opt that terminates needs 1 Hessian evaluation, dp-tr one per iteration."""
    opt, tr = [], []
    for target in TARGETS:
        rows = finished(context.rows(target.artefact, timed=0))
        opt.append(rows[rows["algorithm"].eq("opt")])
        tr.append(rows[rows["algorithm"].eq("dp-tr")])
    import pandas as pd

    opt, tr = pd.concat(opt), pd.concat(tr)
    good = opt["status"].eq(TERMINATED)
    if opt[good].empty or tr.empty:
        raise Missing("dpbench run --experiment nonconvex --profile " + context.profile)
    needed, wasted = opt.loc[good, "hessian_evaluations"], opt.loc[~good, "hessian_evaluations"]
    each = tr["hessian_evaluations"].eq(tr["iterations"])
    words = (
        f"opt, {len(needed)} terminated runs: {needed.mean():.2f} Hessians on average, {(needed == 1).sum()} of them "
        f"need exactly 1, the most is {needed.max():.0f}"
        + (f"; {len(wasted)} others: {wasted.min():.0f} to {wasted.max():.0f}" if len(wasted) else "")
        + f"; dp-tr: one per iteration in {each.sum()} of {len(tr)} runs, {tr['hessian_evaluations'].mean():.1f} "
        "on average"
    )
    return Verdict(bool((needed == 1).all() and each.all()), words)


@judged
def two_phases(context) -> Verdict:
    """Claim 4: at ε = 0.2, 2opt-ls terminates where opt-ls is × in Tables 1, 2 and 5."""

    def ends(table, algorithm, epsilon):
        one = cell(context, table, algorithm, epsilon)
        return terminates(one), f"{algorithm} {one.terminated} of {one.seeds}"

    held, words = [], []
    for table in (1, 2, 5):
        (one, first), (two, second) = ends(table, "opt-ls", 0.2), ends(table, "2opt-ls", 0.2)
        held.append(two and not one)
        words.append(f"Table {table}: {first}, {second}")
    exceptions = [f"Table {table}: {ends(table, '2opt-ls', 0.2)[1]}" for table in (9, 11)]
    plain = f"{ends(2, 'opt', 1.0)[1]}, {ends(2, '2opt', 1.0)[1]}"
    return Verdict(
        bool(np.all(held)),
        f"seeds that terminate at ε = 0.2: {'; '.join(words)}. Exceptions in the paper: ijcnn loss B, "
        f"{'; '.join(exceptions)}; plain 2opt can lose (Table 2, ε = 1): {plain}",
    )


CLAIMS = (
    Claim(
        "opt_beats_tr",
        "On the loose covertype target at ε = 0.6 and 1.0, opt needs far less time than dp-tr and ends at a lower loss",
        opt_beats_tr,
    ),
    Claim(
        "consistent",
        "2opt-ls terminates on covertype with loss A at all three ε for both targets, several times faster than dp-tr",
        consistent,
    ),
    Claim(
        "one_hessian",
        "When it terminates, opt needs 1 Hessian evaluation, where dp-tr needs one per iteration",
        one_hessian,
    ),
    Claim(
        "two_phases",
        "Two phases turn opt-ls's failures at ε = 0.2 into terminations (covertype: loss A both targets, loss B loose)",
        two_phases,
    ),
)
