"""The tables of second_order."""

from __future__ import annotations

from dpbench import datasets
from dpbench.experiments.base import select
from dpbench.experiments.tuning import best
from dpbench.report.output import Table
from dpbench.report.style import look, problem_title

MIB = 2**20
MARK = {"": "", "smallest": "↓", "largest": "↑"}


def table1(context) -> Table:
    """Seconds of DP-GD at its best T over those of DP-Newton (hess, clip) at its best T, beside the paper's."""
    return run_time_ratios(context, "table1")


def table4(context) -> Table:
    """Table 1 on the appendix's data sets."""
    return run_time_ratios(context, "table4")


def run_time_ratios(context, artefact: str) -> Table:
    """Tables 1 and 4: medians of runs timed alone; brackets: lowest and highest ratio of any two runs."""
    import pandas as pd

    published = context.experiment.published()["table1"]
    epsilons = published["epsilon"]
    blocks = context.blocks(artefact)
    problems = list(dict.fromkeys(p for block in blocks for p in block.problems))
    asked = {e for block in blocks if block.timed for e in block.epsilon}
    timed = context.rows(artefact)
    timed = timed[timed["timed"] > 0]
    rows, data, gaps = [], [], []
    for problem in problems:
        cells, ranges, tuned, newton_seconds = [], [], [], []
        for epsilon in epsilons:
            gd = select(timed, problem=problem, epsilon=epsilon, algorithm="dp-gd")
            newton = select(timed, problem=problem, epsilon=epsilon, algorithm="dp-newton-hess-clip")
            if gd.empty or newton.empty:
                cells.append("–")
                ranges.append("–")
                tuned.append("–")
                if epsilon in asked:
                    gaps.append(f"{problem} at ε = {epsilon:g}: {context.command(artefact)}")
                continue
            ratio = gd["seconds"].median() / newton["seconds"].median()
            low = gd["seconds"].min() / newton["seconds"].max()
            high = gd["seconds"].max() / newton["seconds"].min()
            newton_seconds.append(newton["seconds"].median())
            cells.append(f"{ratio:.2f}×")
            ranges.append(f"[{low:.2f}, {high:.2f}]")
            tuned.append(f"{gd['T'].iloc[0]:.0f} / {newton['T'].iloc[0]:.0f}")
            data.append({"problem": problem, "epsilon": epsilon, "ratio": ratio, "low": low, "high": high,
                         "dp_gd_T": gd["T"].iloc[0], "dp_newton_T": newton["T"].iloc[0],
                         "dp_gd_seconds": gd["seconds"].median(), "dp_newton_seconds": newton["seconds"].median(),
                         "runs": len(newton)})  # fmt: skip
        span = [f"{min(newton_seconds):.3g}", f"{max(newton_seconds):.3g}"] if newton_seconds else ["–", "–"]
        rows.append([problem_title(problem), "ratio, ours", *cells, *span])
        rows.append(["", "lowest, highest", *ranges, "", ""])
        rows.append(["", "T of DP-GD / DP-Newton", *tuned, "", ""])
        paper = published["ratio"].get(problem)
        seconds = published["seconds"].get(problem, ["–", "–"])
        if paper:
            rows.append(["", "ratio, paper", *[f"{v:.2f}×" for v in paper], *[f"{v:g}" for v in seconds]])
    header = ["data set", "", *[f"ε = {e:g}" for e in epsilons], "min s", "max s"]
    repeats = max((block.timed for block in blocks), default=0)
    medians = f"the median of {repeats} runs" if repeats > 1 else "one run"
    caption = (
        "Run time of DP-GD at its best T over that of DP-Newton (hess, clip) at its best T (T tuned non-privately, as "
        f"in the paper); min and max s: DP-Newton's seconds over ε. Each is {medians} of one "
        "replicate, timed alone, on one core with one BLAS thread, warm; brackets: the lowest and highest ratio of "
        "any two runs. The paper's seconds are from its authors' machine."
    )
    return Table(pd.DataFrame(rows, columns=header), caption, pd.DataFrame(data), gaps)


def best_T(context) -> Table:
    """The T behind every point of Figs. 2 and 6; an arrow marks a T at an end of its grid."""
    import pandas as pd

    table = best(context.rows("best_T", timed=0))
    cells = [(p, a) for block in context.blocks("best_T") for p in block.problems for a in block.algorithms]
    order = {"problem": list(dict.fromkeys(p for p, _ in cells)), "algorithm": list(dict.fromkeys(a for _, a in cells))}
    table = table.sort_values(list(order), key=lambda column: column.map(order[column.name].index), kind="stable")
    epsilons = sorted(table["epsilon"].unique())
    rows = []
    for (problem, algorithm), group in table.groupby(["problem", "algorithm"], sort=False):
        cells = {row.epsilon: f"{row.T:.0f}{MARK[row.at_end]}" for row in group.itertuples()}
        rows.append([problem_title(problem), look(algorithm).legend, *[cells.get(e, "–") for e in epsilons]])
    caption = (
        "T with the lowest mean excess loss over seeds (non-private tuning, as in the paper). ↑ or ↓: the best T is "
        "the largest or smallest of its grid, so a wider grid might do better."
    )
    header = ["data set", "algorithm", *[f"ε = {e:g}" for e in epsilons]]
    return Table(pd.DataFrame(rows, columns=header), caption, table.drop(columns=["settings"]))


def table2(context) -> Table:
    """DP-Newton's hyperparameters: the paper's, and those of the rows under this profile."""
    import json

    import pandas as pd

    published = context.experiment.published()["table2"]
    runs = context.rows("table2")
    newton = runs[runs["algorithm"].str.startswith("dp-newton-")]
    used = [json.loads(text) for text in newton["settings"].drop_duplicates()]

    def values(name):
        return ", ".join(f"{v:g}" for v in sorted({one[name] for one in used})) or "–"

    rows = [
        ["θ", "share of ρ for the direction (trace included)", f"{published['theta']:g}", values("theta")],
        ["γ", "share of that for the trace", f"{published['gamma']:g}", values("gamma")],
        ["β", "coefficient of λ₀", ", ".join(f"{b:g}" for b in published["beta"]), values("beta")],
        ["", "independent runs", f"{published['runs']}", f"{newton['seed'].nunique() or '–'}"],
        ["T", "iterations", "tuned", values("T")],
    ]
    caption = (
        "Hyperparameters of DP-Newton (Algorithm 5): the paper's, and those behind the rows of this report. β stands "
        "outside the cube root, as Algorithm 5 has it."
    )
    return Table(pd.DataFrame(rows, columns=["parameter", "meaning", "paper", "here"]), caption)


def table3(context) -> Table:
    """The data sets: rows and columns as published and as prepared."""
    import pandas as pd

    rows, gaps = [], []
    for problem, (n, d) in context.experiment.published()["table3"].items():
        spec = datasets.describe(problem)
        at_hand = datasets.available(problem)
        ours = f"{spec.rows:,} × {spec.columns:,}"
        rows.append([problem_title(problem), f"{n:,} × {d:,}", ours, "yes" if at_hand else "no"])
        if not at_hand:
            gaps.append(f"{problem}: dpbench fetch {problem}")
    caption = (
        "Rows × columns, as the paper prints them and as the recipes here make them, ones column included. The paper's "
        "134 columns of a1a are a misprint (123 features and a column of ones); its 45,220 rows of adult lose two to "
        "header parsing; its 74 columns of protein leave the ones column out."
    )
    header = ["data set", "paper", "here", "data at hand"]
    return Table(pd.DataFrame(rows, columns=header), caption, gaps=gaps)


def c7(context) -> Table:
    """App. C.7: measured peak memory of the eigenvalue modification."""
    import pandas as pd

    published = context.experiment.published()["memory"]
    problems = list(dict.fromkeys(p for block in context.blocks("c7") for p in block.problems))
    runs = context.rows("c7")
    rows, data, gaps = [], [], []
    for problem in problems:
        for algorithm in ("dp-newton-hess-clip", "dp-newton-hess-add"):
            measured = select(runs, problem=problem, algorithm=algorithm).dropna(subset=["measured"])
            modification = algorithm.rpartition("-")[2]
            paper = f"{published[problem]:g} MiB" if modification == "clip" else ""
            d = datasets.describe(problem).columns
            if measured.empty:
                rows.append([problem_title(problem), f"{d}", modification, "–", "–", paper])
                gaps.append(f"{problem}: {context.command('c7')}")
                continue
            extra = measured["measured"] / MIB
            process = measured["notes"].str.extract(r"(\d+)", expand=False).astype(float).dropna() / MIB
            rows.append([problem_title(problem), f"{d}", modification, _median_and_range(extra),
                         _median_and_range(process), paper])  # fmt: skip
            data.append({"problem": problem, "d": d, "modification": modification, "extra_mib": extra.median(),
                         "process_mib": process.median(), "runs": len(measured)})  # fmt: skip
    caption = (
        "Peak resident memory while the eigenvalues of the curvature are modified and the direction is solved for: on "
        f"top of what was resident before, and of the whole process (interpreter and libraries included). Median of "
        f"{max((row['runs'] for row in data), default=0)} measurements, each in a fresh process on one core (lowest to "
        "highest in brackets). clip: eigendecomposition; add: Cholesky factorisation. The paper, which uses an "
        "eigendecomposition, does not say which of the two it counts."
    )
    header = ["data set", "d", "modification", "on top", "whole process", "paper"]
    return Table(pd.DataFrame(rows, columns=header), caption, pd.DataFrame(data), gaps)


def _median_and_range(values) -> str:
    if values.empty:
        return "–"
    return f"{values.median():.1f} MiB [{values.min():.1f}, {values.max():.1f}]"
