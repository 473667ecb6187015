"""The claims of nonconvex, covertype and ijcnn each on its own, judged on the rows of its tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pandas as pd

from dpbench import frames
from dpbench.experiments.nonconvex.study import EPSILONS, TARGETS, TERMINATED, Ours, cells, finished
from dpbench.experiments.nonconvex.switches import PAPER, PUBLISHED
from dpbench.study import laws
from dpbench.study.context import Context, memoised, select
from dpbench.study.declare import Why, each
from dpbench.study.statistics import listed, plus_minus
from dpbench.study.verdict import NOT_HELD, NOT_TESTABLE, OPEN, NotEnough, Verdict

FAR_LESS = 3.0  # "far less", "several times faster": by this factor or more
CLEAR = laws.ERRORS  # standard errors of the seeds' paired differences
TABLES = {target.table: target for target in TARGETS}
CASES = {"": "at a proven ε", PUBLISHED: "as published, not private"}
BATCHES = 100  # a minibatch is a hundredth of the rows
MET_AT_THE_START = (5, 9)  # the tables of loss B at the loose target
DATA = {"covertype": (1, 2, 5, 7), "ijcnn": (3, 4, 9, 11)}


def rows_of(context: Context, table: int, algorithm: str, epsilon: float, variant: str = "") -> pd.DataFrame:
    """The finished rows of a cell; NotEnough if there are none."""
    target = TABLES[table]
    rows = finished(context, target.artefact, algorithm=algorithm, epsilon=epsilon)
    rows = select(rows.assign(problem=target.problem), variant=variant)
    if rows.empty:
        raise NotEnough(f"no {variant or 'honest'} rows of {algorithm} at ε = {epsilon:g}", target.artefact)
    return rows


def cell(context: Context, table: int, algorithm: str, epsilon: float, variant: str = "") -> Ours:
    """Our cell of a published table, see `study.cells`; NotEnough if it has no rows."""
    stated = cells_of(context, table, variant).get((algorithm, epsilon))
    return stated or frames.records(cells(rows_of(context, table, algorithm, epsilon, variant)), Ours)[0]


@memoised
def cells_of(context: Context, table: int, variant: str) -> dict[tuple[str, float], Ours]:
    """All of our cells of a published table with rows, by method and ε."""
    rows = finished(context, f"table{table}").assign(problem=TABLES[table].problem)
    rows = select(rows, variant=variant)
    return {(one.algorithm, one.epsilon): one for one in reversed(frames.records(cells(rows), Ours))}


def under_both(judge: Callable[[str], Verdict]) -> Iterator[Verdict]:
    """A claim's verdicts at a proven ε and under the published setting: `judge` is given the variant of the runs.

    Where the rows of one setting are missing, that verdict says so, and the other stands.
    """
    missing: dict[str, NotEnough] = {}
    for variant, case in CASES.items():
        try:
            yield replace(judge(variant), case=case)
        except NotEnough as error:
            missing[case] = error
    if len(missing) == len(CASES):
        raise next(iter(missing.values()))
    for case, why in missing.items():
        yield Verdict.lacking(why, case)


def terminates(one: Ours) -> bool:
    """Whether every seed of a row terminated."""
    return one.terminated == one.seeds


def decided(parts: list[bool | None]) -> bool | None:
    """All of several verdicts: not held (False) beats open (None), open beats held."""
    return False if False in parts else None if None in parts else True


def faster(
    context: Context, table: int, fast: str, slow: str, epsilon: float, variant: str = ""
) -> tuple[dict[str, float], str]:
    """(`slow` over `fast` in gradients, Hessians and seconds, what to print); ∞ where `slow` is ×, 0 where `fast` is.

    No seconds where either is not timed.
    """
    quick, other = (cell(context, table, name, epsilon, variant) for name in (fast, slow))
    where = f"Table {table}, ε = {epsilon:g}"
    if not terminates(quick) or not terminates(other):
        ratio = math.inf if terminates(quick) else 0.0
        return {"gradients": ratio}, f"{where}: {slow if ratio else fast} ×"
    both = {
        name: getattr(other, column) / getattr(quick, column)
        for name, column in (("gradients", "iterations"), ("Hessians", "hessian_evaluations"), ("seconds", "seconds"))
    }
    both = {name: ratio for name, ratio in both.items() if not math.isnan(ratio)}
    return both, f"{where}: {slow} over {fast} " + listed(both, "×") + ("" if "seconds" in both else ", not timed")


@each(
    PAPER.claim(
        "minibatch" if data == "covertype" else f"minibatch_{data}",
        why=[Why(NOT_HELD, PAPER.phrases["why minibatch"], "differences", "at a proven ε")],
        data=data,
    )
    for data in DATA
)
def minibatch(context: Context, data: str) -> Iterator[Verdict]:
    """By cell of the tables: better where only -b terminates, or both do and -b reads fewer rows; else worse, or open.

    Rows read: those of every gradient and Hessian. A cell where neither terminates decides nothing.
    """

    def judge(variant: str) -> Verdict:
        better, worse, undecided, seen, missing = [], [], 0, 0, []
        for table in DATA[data]:
            for epsilon in context.epsilons(f"table{table}"):
                for full in ("opt", "2opt"):
                    try:
                        one, other = (cell(context, table, name, epsilon, variant) for name in (full, f"{full}-b"))
                    except NotEnough as error:
                        missing.append((table, error))
                        continue
                    seen += 1
                    passes = [c.iterations + c.hessian_evaluations for c in (one, other)]
                    if not (terminates(one) or terminates(other)):
                        undecided += 1
                    elif terminates(other) and (not terminates(one) or passes[1] / BATCHES < passes[0]):
                        better.append(f"{table}")
                    else:
                        worse.append(f"Table {table}, {full}-b at ε = {epsilon:g}")
        if not seen:
            raise missing[0][1]
        counts = f"{len(better)} of {seen} cells better with minibatches, {len(worse)} worse, {undecided} × either way"
        told = f" (worse: {', '.join(worse)})" if worse else ""
        lacking = sorted({table for table, _ in missing})
        told += f"; no rows: Table {', '.join(map(str, lacking))}" if lacking else ""
        lead, gap = len(better) - len(worse), len(missing)
        if abs(lead) <= gap or not (better or worse):  # missing cells are put both ways
            open_ = f"open: {gap} of {seen + gap} cells missing; " if gap else ""
            return Verdict(OPEN, open_ + counts + told)
        return Verdict.of(lead > 0, counts + told)

    return under_both(judge)


@PAPER.claim("opt_faster_than_tr", why=[Why(NOT_HELD, PAPER.phrases["why faster"], "table1")])
def opt_faster_than_tr(context: Context) -> Iterator[Verdict]:
    """Claim 1a: Table 1, ε = 0.6 and 1: at least 3 times fewer gradients and Hessians, and seconds where timed."""

    def judge(variant: str) -> Verdict:
        comparisons = [faster(context, 1, "opt", "dp-tr", epsilon, variant) for epsilon in EPSILONS[1:]]
        held: list[bool | None] = [ratio >= FAR_LESS for ratios, _ in comparisons for ratio in ratios.values()]
        return Verdict.of(decided(held), "; ".join(text for _, text in comparisons))

    return under_both(judge)


@PAPER.claim("opt_lower_than_tr")
def opt_lower_than_tr(context: Context) -> Iterator[Verdict]:
    """Claim 1b: Table 1, ε = 0.6 and 1: the paired difference of final losses, seed by seed, is clear and negative."""

    def judge(variant: str) -> Verdict:
        held: list[bool | None] = []
        words = []
        for epsilon in EPSILONS[1:]:
            pair = [rows_of(context, 1, name, epsilon, variant) for name in ("opt", "dp-tr")]
            opt, tr = (select(rows, timed=0).set_index("seed")["objective"] for rows in pair)
            difference = (opt - tr).dropna()  # same seed, same start
            mean, error = difference.mean(), difference.std() / len(difference) ** 0.5
            held.append(bool(mean < 0) if len(difference) > 1 and abs(mean) > CLEAR * error else None)
            words.append(
                f"ε = {epsilon:g}: {opt.mean():.3f} and {tr.mean():.3f}, paired "
                f"{plus_minus(mean, error, '+.4f', '.4f')}"
            )
        return Verdict.of(decided(held), "; ".join(words))

    return under_both(judge)


@PAPER.claim("consistent", tables=(1, 2))
@PAPER.claim("consistent_ijcnn", tables=(3, 4))
def consistent(context: Context, tables: tuple[int, ...]) -> Iterator[Verdict]:
    """Claim 2: by gradients released, and by seconds where they are timed. A run that is lost did not terminate."""

    def judge(variant: str) -> Verdict:
        held: list[bool | None] = []
        words = []
        for table in tables:
            for epsilon in EPSILONS:
                ratios, text = faster(context, table, "2opt-ls", "dp-tr", epsilon, variant)
                held += [ratios[name] >= FAR_LESS for name in ("gradients", "seconds") if name in ratios]
                lost = cell(context, table, "2opt-ls", epsilon, variant).crashed
                words.append(text + (f", {lost:.0f} of its runs lost" if lost else ""))
        return Verdict.of(decided(held), "; ".join(words))

    return under_both(judge)


@PAPER.claim("one_hessian", data="covertype")
@PAPER.claim("one_hessian_ijcnn", data="ijcnn")
def one_hessian(context: Context, data: str) -> Iterator[Verdict]:
    """Claim 3: over the runs of the data set's tables, but for loss B's loose target, which every start meets."""

    def judge(variant: str) -> Verdict:
        tables = [table for table in DATA[data] if table not in MET_AT_THE_START]
        rows = pd.concat([finished(context, f"table{table}", timed=0) for table in tables])
        rows = select(rows, variant=variant)
        opt, tr = select(rows, algorithm="opt"), select(rows, algorithm="dp-tr")
        good = opt["ending"].eq(TERMINATED)
        if opt.empty or tr.empty:
            raise NotEnough(artefact="")
        if not good.any():
            return Verdict(NOT_TESTABLE, f"none of {len(opt)} runs of opt terminates: there is nothing to count")
        needed, wasted = opt.loc[good, "hessian_evaluations"], opt.loc[~good, "hessian_evaluations"]
        one_each = tr["hessian_evaluations"].eq(tr["iterations"])
        words = (
            f"opt, {len(needed)} terminated runs: {needed.mean():.2f} Hessians on average, {(needed == 1).sum()} of "
            f"them need exactly 1, the most is {needed.max():.0f}"
            + (f"; {len(wasted)} others: {wasted.min():.0f} to {wasted.max():.0f}" if len(wasted) else "")
            + f"; dp-tr: one per iteration, which is its rule, in {one_each.sum()} of {len(tr)} runs, "
            f"{tr['hessian_evaluations'].mean():.1f} on average; loss B's loose target is not testable: every start "
            "meets it"
        )
        return Verdict.of(bool((needed == 1).all() and one_each.all()), words)

    return under_both(judge)


@PAPER.claim("two_phases", turned=((1, 0.2), (2, 0.2), (5, 0.2)), not_turned=())
@PAPER.claim("two_phases_ijcnn", turned=((9, 0.6), (9, 1.0), (11, 1.0)), not_turned=((9, 0.2), (11, 0.2), (11, 0.6)))
def two_phases(
    context: Context, turned: tuple[tuple[int, float], ...], not_turned: tuple[tuple[int, float], ...]
) -> Iterator[Verdict]:
    """Claim 4: opt-ls × and 2opt-ls not, on the cells `turned`; both × on the others."""

    def judge(variant: str) -> Verdict:
        held: list[bool | None] = []
        words = []
        for table, epsilon in turned + not_turned:
            one, two = (cell(context, table, name, epsilon, variant) for name in ("opt-ls", "2opt-ls"))
            held.append(not terminates(one) and terminates(two) == ((table, epsilon) in turned))
            counts = [f"{name} {c.terminated:.0f} of {c.seeds:.0f}" for name, c in (("opt-ls", one), ("2opt-ls", two))]
            words.append(f"Table {table}, ε = {epsilon:g}: {', '.join(counts)}")
        if not not_turned:
            plain = [cell(context, 2, name, 1.0, variant) for name in ("opt", "2opt")]
            counts = [f"{c.terminated:.0f} of {c.seeds:.0f}" for c in plain]
            words.append(f"plain 2opt can lose (Table 2, ε = 1): opt {counts[0]}, 2opt {counts[1]}")
        return Verdict.of(decided(held), f"seeds that terminate: {'; '.join(words)}")

    return under_both(judge)
