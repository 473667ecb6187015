"""The tables of greedy_coordinate."""

from __future__ import annotations

from dpbench.experiments.base import GridEntry, select
from dpbench.experiments.greedy_coordinate.study import (
    ALGORITHMS,
    COVERED,
    L1,
    PRIVACY,
    PUBLISHED,
    TITLES,
    TUNING,
    facts,
    finals,
    gaps,
    label,
    problems,
    published_method,
    published_name,
    seeds_in_words,
    tuned_runs,
)
from dpbench.report.output import Table
from dpbench.report.style import look


def table1(context) -> Table:
    """Sizes, λ, M_j and quasi-sparsity."""
    import pandas as pd

    sizes = context.experiment.published()["sizes"]
    known = facts(context, "table1")
    rows, data = [], []
    names = problems(pd.DataFrame({"problem": list(known)}))
    for problem in names:
        n, d = sizes[published_name(problem)]
        if problem not in known:
            rows.append([TITLES[problem], f"{n:,} × {d:,}", *["–"] * 7])
            continue
        fact = known[problem]
        ((kind, weight),) = fact.weights.items()
        mean, least, largest = fact.M
        alpha = fact.quasi_sparsity()
        rows.append([TITLES[problem], f"{n:,} × {d:,}", f"{fact.n:,} × {fact.d:,}", f"{weight:.4g} ({kind.upper()})",
                     f"{mean:.4g} [{least:.4g}, {largest:.4g}]", f"{len(fact.nonzero):,}", f"{alpha:.3g}",
                     f"{fact.optimum:.5g}", f"{fact.start:.3g}"])  # fmt: skip
        data.append({"problem": problem, "n": fact.n, "d": fact.d, kind: weight, "M_mean": mean, "M_min": least,
                     "M_max": largest, "nonzero": len(fact.nonzero), "alpha5": alpha, "optimum": fact.optimum,
                     "start": fact.start})  # fmt: skip
    caption = (
        "Rows × columns as published and here; λ, which the paper does not print: for L1 the largest whose optimum has "
        "the published number of non-zeros, to 4 digits, for L2 the mean M_j without λ over n; the coordinate "
        "constants M_j (L2's λ included), mean [least, largest]; non-zeros of the exact optimum w*; α such that w* is "
        "(α, 5)-quasi-sparse; f*; and the relative error (f(0) − f*)/f* of the start. λ, M_j and the standardisation "
        "come from the data and count as public."
    )
    header = ["problem", "paper", "here", "λ", "M", "‖w*‖₀", "α", "f*", "start"]
    missing = [f"{p}: {context.command('table1')}" for p in names if p not in known]
    if "mtp" not in names:
        missing.append("mtp: mtp-qsar stands in, a near substitute from the same study; dpbench fetch mtp")
    return Table(pd.DataFrame(rows, columns=header), caption, pd.DataFrame(data), missing)


def table2(context) -> Table:
    """The grid: published, and run here."""
    import pandas as pd

    published = context.experiment.published()["grid"]
    done = set(context.runs["key"])
    rows = []
    for algorithm in ALGORITHMS:
        sweeps = [block for block in context.blocks("table2") if algorithm in block.algorithms and block.sweep]
        thin = [block for block in sweeps if block.problems == ["dorothea"]]
        whole = [block for block in sweeps if block not in thin]
        for name, title in (("passes", "passes"), ("step", "step sizes"), ("clip", "clipping thresholds")):
            row = [look(algorithm).label, title, _in_words(published[algorithm][name])]
            rows.append([*row, _values(whole, name), _values(thin, name)])
    jobs = [job for job in context.jobs("table2") if job.sweep]
    found = sum(job.count for job in jobs if job.key in done)
    caption = (
        f"Hyperparameter grids, as published and as in the {context.profile} profile, over "
        f"{context.blocks('table2')[0].seeds} seeds. {found:,} of {sum(job.count for job in jobs):,} runs of this grid "
        "are behind the choices of this report. logspace values are rounded to 4 digits. The steps and thresholds of "
        "one (passes, seed) share their random numbers."
    )
    header = ["algorithm", "parameter", "paper", "here", "here, dorothea"]
    return Table(pd.DataFrame(rows, columns=header), caption)


def _values(blocks: list[GridEntry], name: str) -> str:
    return next((_in_words(block.settings[name]) for block in blocks), "")


def _in_words(values) -> str:
    if isinstance(values, dict):
        low, high, count = values["logspace"]
        return f"logspace({low:g}, {high:g}, {count})"
    return ", ".join(f"{v:g}" for v in values)


def table3(context) -> Table:
    """Support recovery on the L1 problems, beside the published."""
    import pandas as pd

    paper = context.experiment.published()
    runs = tuned_runs(context, "table3")
    table = finals(runs)
    rows = []
    algorithms = ("dp-cd", "dp-sgd-1", COVERED, "dp-gcd", PUBLISHED)
    for algorithm in algorithms:
        for problem in L1:
            correct, wrong, relative = paper["support"][problem][published_method(algorithm)]
            published = f"{correct} / {wrong} ({relative:g})"
            found = select(table, problem=problem, algorithm=algorithm)
            if found.empty:
                rows.append([label(algorithm), TITLES[problem], paper["nonzeros"][problem], published, *["–"] * 3])
                continue
            one = found.iloc[0]
            rows.append([label(algorithm), TITLES[problem], paper["nonzeros"][problem], published,
                         f"{one['support_correct']:.1f} / {one['support_wrong']:.1f} ({one['mean']:.2g})",
                         f"{one['mean']:.3g} ± {one['se']:.1g}", f"{one['T']:.0f}"])  # fmt: skip
    caption = (
        "Coordinates correctly / incorrectly identified as non-zero, and relative error (f − f*)/f* in brackets: "
        f"published (5 runs) and here, means over {seeds_in_words(table)} seeds (the counts are means too, hence not "
        f"whole numbers); the error again with its standard error, and the iterations made. {PRIVACY}; DP-SGD † "
        "keeps its ε under the paper's accounting only; the published selection is that of the paper's text "
        f"(see published_selection). {TUNING[0].upper()}{TUNING[1:]}."
    )
    header = ["algorithm", "problem", "‖w*‖₀", "paper", "here", "relative error", "iterations"]
    missing = gaps(context, "table3", runs, L1, algorithms)
    return Table(pd.DataFrame(rows, columns=header), caption, plain(table), missing)


def table4(context) -> Table:
    """The chosen hyperparameters, beside the published."""
    import pandas as pd

    chosen = context.experiment.published()["chosen"]
    runs = tuned_runs(context, "table4")
    table = finals(runs)
    rows = []
    algorithms = (*ALGORITHMS, COVERED)
    for algorithm in algorithms:
        for problem in problems(runs):
            passes, clip, step = chosen[published_name(problem)][published_method(algorithm)]
            row = [label(algorithm), TITLES[problem], f"{passes:g}", f"{clip:.3g}", f"{step:.3g}"]
            found = select(table, problem=problem, algorithm=algorithm)
            if found.empty:
                rows.append([*row, *["–"] * 4])
                continue
            one = found.iloc[0]
            rows.append([*row, f"{one['set.passes']:g}", f"{one['set.clip']:.3g}", f"{one['set.step']:.3g}",
                         f"{one['mean']:.3g} ± {one['se']:.1g}"])  # fmt: skip
    caption = (
        "Hyperparameters with the lowest mean relative error over "
        f"{seeds_in_words(table)} seeds, beside those of the paper, and that error ± its standard error. {PRIVACY}. "
        f"{TUNING[0].upper()}{TUNING[1:]}. Where two settings are alike in error the choice between them is chance; "
        "λ and the synthetic data differ from the paper's, which prints neither."
    )
    header = ["algorithm", "problem", "passes, paper", "clip, paper", "step, paper", "passes", "clip", "step",
              "relative error"]  # fmt: skip
    return Table(
        pd.DataFrame(rows, columns=header), caption, plain(table), gaps(context, "table4", runs, algorithms=algorithms)
    )


def plain(table):
    """The table behind the strings, settings by their own names."""
    return table.drop(columns=["private"], errors="ignore").rename(columns=lambda name: name.removeprefix("set."))
