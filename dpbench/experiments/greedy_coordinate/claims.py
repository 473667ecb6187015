"""The claims of greedy_coordinate's Section 5 and Appendix D, judged on the runs at the tuned settings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from dpbench.experiments.base import Claim, Verdict
from dpbench.experiments.greedy_coordinate.study import (
    ALGORITHMS,
    COVERED,
    L1,
    PUBLISHED,
    RULES,
    STAND_INS,
    facts,
    finals,
    tuned_runs,
)

APART = 2.0  # standard errors of the difference beyond which two means differ
PROGRESS = 0.05  # share of the start's error that a method must take off to have made progress
PAR = 0.75  # the same for "on a par": all methods take off this much
UNCOVERED = "is the paper's, whose accounting does not cover it: not private at ε = 1"


def qualified(check: Callable) -> Callable:
    """Say with the verdict how much of the grid that chose the settings is there, where it is not all.

    And that the DP-SGD judged is the paper's.
    """

    def checked(context) -> Verdict:
        verdict = check(context)
        if "dp-sgd-1" in verdict.numbers and not verdict.numbers.startswith("no "):
            verdict = Verdict(verdict.held, f"{verdict.numbers}; dp-sgd-1 {UNCOVERED}")
        sweeps = {job.key: job.count for job in context.jobs("fig1") if job.sweep and job.problem not in STAND_INS}
        done = sum(sweeps[key] for key in sweeps.keys() & set(context.runs["key"]))
        if verdict.held is None or done == sum(sweeps.values()):
            return verdict
        note = f"provisional: tuned on {done:,} of the grid's {sum(sweeps.values()):,} runs"
        return Verdict(verdict.held, f"{verdict.numbers}; {note}")

    checked.__doc__ = check.__doc__
    return checked


def _means(context, artefact, problems, algorithms):
    """({(problem, algorithm): row of finals}, verdict when some are missing)."""
    table = finals(tuned_runs(context, artefact))
    found = {(row["problem"], row["algorithm"]): row for _, row in table.iterrows()}
    missing = [f"{a} on {p}" for p in problems for a in algorithms if (p, a) not in found]
    if missing:
        return found, Verdict(None, f"no rows: {', '.join(missing)}; run: {context.command(artefact)}")
    return found, None


def _show(one) -> str:
    return f"{one['algorithm']} {one['mean']:.3g} ± {one['se']:.1g}"


def _progress(one, start: float) -> float:
    """The share of the start's relative error that was taken off, to a hundredth of a percent."""
    return round(1 - one["mean"] / start, 4) + 0.0


def _apart(a, b) -> float:
    """(mean of b - mean of a) in standard errors of the difference; infinite where they differ without noise."""
    difference, se = b["mean"] - a["mean"], math.hypot(a["se"], b["se"])
    return 0.0 if difference == 0 else difference / se if se else math.copysign(math.inf, difference)


@qualified
def only_progress(context) -> Verdict:
    """Claim 1: on square and dorothea only dp-gcd makes several iterations and lowers the objective."""
    problems = ("square", "dorothea")
    found, missing = _means(context, "fig1", problems, ALGORITHMS)
    known = facts(context, "fig1")
    if missing or not set(problems) <= set(known):
        return missing or Verdict(None, f"no probe of the optimum; run: {context.command('fig1')}")
    held, words = True, []
    for problem in problems:
        progress = {a: _progress(found[problem, a], known[problem].start) for a in ALGORITHMS}
        steps = found[problem, "dp-gcd"]["T"]
        held &= progress["dp-gcd"] > PROGRESS and steps >= 2
        held &= all(progress[a] <= PROGRESS for a in ALGORITHMS[1:])
        shares = ", ".join(f"{a} {progress[a]:.1%} in {found[problem, a]['T']:.0f} iterations" for a in ALGORITHMS)
        words.append(f"{problem}: of the start's error {known[problem].start:.3g}, {shares} taken off")
    published, _ = _means(context, "table3", problems, (PUBLISHED,))
    words += [
        f"with the published selection (not private) {_progress(one, known[problem].start):.1%} on {problem} in "
        f"{one['T']:.0f}"
        for (problem, algorithm), one in published.items()
        if algorithm == PUBLISHED and problem in problems
    ]
    return Verdict(bool(held), f"{'; '.join(words)} (progress: above {PROGRESS:.0%} in two iterations or more)")


@qualified
def lowest(context) -> Verdict:
    """Claim 2: on log1, log2 and madelon dp-gcd ends lowest."""
    problems = ("log1", "log2", "madelon")
    found, missing = _means(context, "fig1", problems, ALGORITHMS)
    if missing:
        return missing
    gaps = {p: min(_apart(found[p, "dp-gcd"], found[p, a]) for a in ALGORITHMS[1:]) for p in problems}
    words = [
        f"{p}: {', '.join(_show(found[p, a]) for a in (*ALGORITHMS, COVERED) if (p, a) in found)} "
        f"({gaps[p]:+.1f} standard errors to the next of the first three)"
        for p in problems
    ]
    worst = min(gaps.values())
    held = True if worst > APART else False if worst < -APART else None
    return Verdict(held, f"{'; '.join(words)}; held above {APART:g}, open within ± {APART:g}")


@qualified
def on_a_par(context) -> Verdict:
    """Claim 3: on california the three are on a par; on mtp dp-gcd is not better than the others."""
    found, missing = _means(context, "fig1", ("california",), ALGORITHMS)
    known = facts(context, "fig1")
    mtp = "mtp" if ("mtp", "dp-gcd") in found else "mtp-qsar"
    _, missing_mtp = _means(context, "fig1", (mtp,), ALGORITHMS)
    if missing or missing_mtp or "california" not in known:
        return missing or missing_mtp or Verdict(None, f"no probe of the optimum; run: {context.command('fig1')}")
    start = known["california"].start
    progress = {a: _progress(found["california", a], start) for a in ALGORITHMS}
    par = min(progress.values()) >= PAR
    best = min(ALGORITHMS[1:], key=lambda a: found[mtp, a]["mean"])
    lead = _apart(found[mtp, "dp-gcd"], found[mtp, best])
    return Verdict(
        bool(par and lead <= APART),
        f"california, of the start's error {start:.3g}: "
        + ", ".join(f"{_show(found['california', a])} ({progress[a]:.1%} taken off)" for a in ALGORITHMS)
        + f" (on a par: all at least {PAR:.0%}); {mtp}: {', '.join(_show(found[mtp, a]) for a in ALGORITHMS)}, dp-gcd "
        f"ahead of {best} by {lead:.1f} standard errors (not better: at most {APART:g})",
    )


@qualified
def no_wrong_coordinate(context) -> Verdict:
    """Claim 4: dp-gcd never makes a coordinate non-zero that is zero in w*; the others do on some problem."""
    found, missing = _means(context, "table3", L1, ALGORITHMS)
    if missing:
        return missing
    algorithms = [*ALGORITHMS, *([PUBLISHED] if all((p, PUBLISHED) in found for p in L1) else [])]
    wrong = {a: {p: found[p, a]["support_wrong"] for p in L1} for a in algorithms}
    words = [f"{a}: {', '.join(f'{p} {count:.1f}' for p, count in wrong[a].items())}" for a in algorithms]
    never, others = not any(wrong["dp-gcd"].values()), all(any(wrong[a].values()) for a in ALGORITHMS[1:])
    return Verdict(bool(never and others), f"wrong non-zeros, means over seeds: {'; '.join(words)}")


@qualified
def rules_coincide(context) -> Verdict:
    """Claim 5: the three greedy rules coincide on the high-dimensional problems and differ on california."""
    found, missing = _means(context, "fig3", L1, RULES)
    if missing:
        return missing
    apart = {p: max(abs(_apart(found[p, a], found[p, b])) for a, b in itertools.combinations(RULES, 2)) for p in L1}
    words = [
        f"{p}: GS-r, GS-s, GS-q {', '.join('{:.3g} ± {:.1g}'.format(*found[p, a][['mean', 'se']]) for a in RULES)} "
        f"(at most {apart[p]:.1f} standard errors apart)"
        for p in L1
    ]
    held = apart["california"] > APART and all(apart[p] <= APART for p in L1 if p != "california")
    return Verdict(bool(held), f"{'; '.join(words)}; coincide: within {APART:g}")


CLAIMS = (
    Claim("only_progress", "On square and dorothea (p ≥ n) DP-GCD is the only method to make several iterations and to "
          "lower the objective", only_progress),
    Claim("lowest", "On log1, log2 and madelon DP-GCD ends lowest", lowest),
    Claim("on_a_par", "On california all three are on a par; on mtp DP-GCD is not better", on_a_par),
    Claim("no_wrong_coordinate", "DP-GCD never picks a coordinate that is zero in w*; the others do on some problem",
          no_wrong_coordinate),
    Claim("rules_coincide", "GS-r, GS-s and GS-q coincide on the high-dimensional problems and differ on california",
          rules_coincide),
)  # fmt: skip
