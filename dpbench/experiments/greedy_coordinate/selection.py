"""What the noise of DP-GCD's selection and its accounting cost: tables that are not in the paper."""

from __future__ import annotations

from dpbench.experiments.base import select
from dpbench.experiments.greedy_coordinate.study import (
    PUBLISHED,
    TITLES,
    TUNING,
    finals,
    gaps,
    problems,
    seeds_in_words,
    tuned_runs,
)
from dpbench.experiments.greedy_coordinate.tables import plain
from dpbench.report.output import Table

TIGHT_N = (1_000, 20_640)  # rows of log1 and square, and of california


def selection_error(context) -> Table:
    """What the published noise of the selection buys in error, and costs in ε."""
    import pandas as pd

    runs = tuned_runs(context, "selection_error")
    table = finals(runs)
    rows = []
    for problem in problems(runs):
        cells = []
        for algorithm in ("dp-gcd", PUBLISHED):
            found = select(table, problem=problem, algorithm=algorithm)
            if found.empty:
                cells += ["–"] * 3
                continue
            one = found.iloc[0]
            spread = f" ± {one['se']:.1g}" if one["seeds"] > 1 else ""
            support = "" if one["support_correct"] != one["support_correct"] else (
                f"{one['support_correct']:.1f} / {one['support_wrong']:.1f}")  # fmt: skip
            cells += [f"{one['mean']:.3g}{spread} (T = {one['T']:.0f})", support,
                      f"{one['epsilon_spent']:.3g}"]  # fmt: skip
        rows.append([TITLES[problem], *cells])
    caption = (
        "Not in the paper. DP-GCD (GS-r) at its tuned settings with the selection noise that eq. (2) needs, 4C_j/(nε') "
        "as Laplace scale (with L1 on the score), and with the published one, 2C_j/(nε') on the gradient: relative "
        f"error, mean ± standard error over {seeds_in_words(table)} seeds, correct / incorrect non-zeros, and the ε "
        "that an independent accountant finds (replace-one, δ = 1/n²; with L1 the published noise is proved for no "
        f"less than d·ε' a selection, whatever the rule). {TUNING[0].upper()}{TUNING[1:]}."
    )
    header = ["problem", "error, proven", "support", "ε spent", "error, published", "support ", "ε spent "]
    return Table(pd.DataFrame(rows, columns=header), caption, plain(table),
                 gaps(context, "selection_error", runs, algorithms=("dp-gcd", PUBLISHED)))  # fmt: skip


def published_selection(context) -> Table:
    """The ε that the published noise of the selection really has."""
    import pandas as pd

    rows = context.rows("published_selection")
    rows = rows[rows["status"].eq("done")]
    rows = rows.assign(published=rows["settings"].str.contains('"selection":"published"'))
    table = rows.pivot_table(index=["problem", "delta", "T"], columns="published", values="epsilon_spent").reset_index()
    lines = [
        [TITLES[row["problem"]], f"{row['delta']:.3g}", f"{row['T']:.0f}", f"{row[False]:.3f}", f"{row[True]:.3f}"]
        for _, row in table.iterrows()
        if {False, True} <= set(table)
    ]
    caption = (
        "Not in the paper. ε that T iterations of DP-GCD spend when eq. (2) calibrates them for ε = 1, composed by an "
        "independent accountant at δ = 1/n²: the selection taken as the worst ε'-DP mechanism, the step as the Laplace "
        "mechanism. proven: selection noise 4C_j/(nε'). published: 2C_j/(nε'), which under replace-one neighbours is "
        "2ε'-DP; with L1 (california) it sits on the gradient, not on the score, and no less than d·ε' is proved. "
        "Below 1 the slack of eq. (2) covers the error. These numbers depend on T, n and, with L1, d only."
    )
    gaps_ = [] if lines else [f"published selection: {context.command('published_selection')}"]
    header = ["rows at n of", "δ", "T", "ε spent, proven", "ε spent, published"]
    return Table(pd.DataFrame(lines, columns=header), caption, table.rename(columns=str), gaps_)


def tight_noise(context) -> Table:
    """The noise that `accounting = tight` saves over eq. (2)."""
    import pandas as pd

    from dpbench.privacy.budget import Budget
    from dpbench.privacy.relation import Relation

    lines, data = [], []
    for n in TIGHT_N:
        shared = {"epsilon": 1.0, "delta": float(n) ** -2, "relation": Relation.REPLACE_ONE}
        for T in context.experiment.published()["grid"]["dp-gcd"]["passes"]:
            paper, ours = (Budget(**shared, accounting=mode).laplace_epsilon(T) for mode in ("advanced", "tight"))
            lines.append([f"{n:,}", f"{T}", f"{paper:.4f}", f"{ours:.4f}", f"{paper / ours:.3f}"])
            data.append({"n": n, "T": T, "advanced": paper, "tight": ours, "noise_ratio": paper / ours})
    caption = (
        "Not in the paper; a computation, no rows. ε' of each of the 2T releases of DP-GCD at ε = 1, δ = 1/n², "
        "replace-one neighbours: by eq. (2), advanced composition, and by `--accounting tight`, privacy-loss "
        "distributions with the selections taken as randomised response (the worst ε'-DP mechanism). noise: the "
        "scale of every Laplace noise under tight over that of eq. (2)."
    )
    header = ["n", "T", "ε', eq. (2)", "ε', tight", "noise, tight / eq. (2)"]
    return Table(pd.DataFrame(lines, columns=header), caption, pd.DataFrame(data))
