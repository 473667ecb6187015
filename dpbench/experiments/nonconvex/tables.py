"""The tables of nonconvex: Tables 1 to 12 beside the published values, what differs, and variants."""

from __future__ import annotations

import math
from importlib import resources

from dpbench import toml
from dpbench.experiments.nonconvex.study import (
    APART,
    QUANTITIES,
    TARGETS,
    Target,
    cells,
    compared,
    finished,
    most_iterations,
    place,
    problem_name,
    setting,
)
from dpbench.report.output import Table
from dpbench.report.style import look

APART_RULE = (
    "apart: ours minus the published mean in standard errors of that difference, the published rounding included"
)
FAR = 99  # further apart than this is all the same


def loss(target: Target, context) -> Table:
    """Final loss and run time of a target's runs, beside the published table."""
    import pandas as pd

    table = compared(context, target)
    rows = [
        [
            *names,
            mean_std(row.loss, row.loss_std),
            mean_std(row.paper_mean, row.paper_std),
            in_errors(row.apart),
            run_time(row),
            paper_run_time(row),
            mean_std(row.iterations, row.iterations_std, 1),
            whole(row.T),
            mean_std(row.hessian_evaluations, row.hessian_evaluations_std, 1),
        ]
        for names, row in named(table)
    ]
    caption = (
        f"{place(target)}: final loss on all rows, mean ± standard deviation (ddof = 1) over {seeds(table)} seeds. "
        f"{setting(target)}. {status_rule(context, target)}. Seconds: runs timed alone on one core, one replicate at a "
        "time (the paper's: 8 cores), – where they are still to be timed. iterations: those run, of the T that the "
        f"noise is set for (both phases). {APART_RULE}. The loss is a diagnostic, not released."
    )
    header = ["method", "ε", "loss", "paper", "apart", "seconds", "paper s", "iterations", "T", "Hessians"]
    return Table(pd.DataFrame(rows, columns=header), caption, table, gaps(context, target, table))


def hessians(target: Target, context) -> Table:
    """Hessian evaluations of a target's runs, beside the published table."""
    import pandas as pd

    table = compared(context, target, "hessian_evaluations")
    rows = [
        [
            *names,
            mean_std(row.hessian_evaluations, row.hessian_evaluations_std, 1),
            mean_std(row.paper_mean, row.paper_std, 1),
            in_errors(row.apart),
            run_time(row),
            paper_run_time(row),
            mean_std(row.iterations, row.iterations_std, 1),
        ]
        for names, row in named(table)
    ]
    caption = (
        f"{place(target)}: noisy Hessians evaluated in the runs of Table {target.table}, mean ± standard deviation "
        f"(ddof = 1) over {seeds(table)} seeds. {setting(target)}. {status_rule(context, target)}. {APART_RULE}."
    )
    header = ["method", "ε", "Hessians", "paper", "apart", "seconds", "paper s", "iterations"]
    return Table(pd.DataFrame(rows, columns=header), caption, table, gaps(context, target, table))


def differences(context) -> Table:
    """Every cell whose mean is more than two standard errors from the published one, or that ended otherwise."""
    import pandas as pd

    reasons = toml.read(resources.files(__package__) / "reasons.toml")
    rows, data, counts = [], [], []
    for target in TARGETS:
        for quantity in QUANTITIES if target.hessians else QUANTITIES[:1]:
            table = compared(context, target, quantity)
            known = table[table["apart"].notna()]
            different = known[known["apart"].abs().gt(APART) | known["same_end"].eq(False)]
            number = target.table if quantity == "loss" else target.hessians
            counts.append((number, len(known), len(different)))
            for row in different.itertuples():
                key = reason_of(reasons, number, row)
                digits = 3 if quantity == "loss" else 1
                rows.append([
                    f"{number}", look(row.algorithm).label, f"{row.epsilon:g}",
                    mean_std(getattr(row, quantity), getattr(row, f"{quantity}_std"), digits),
                    mean_std(row.paper_mean, row.paper_std, digits), in_errors(row.apart),
                    ended(row.all_ended), ended(row.paper_terminated), key,
                ])  # fmt: skip
                data.append([number, row.algorithm, row.epsilon, row.apart, row.all_ended, row.paper_terminated, key])
    order = sorted(range(len(rows)), key=lambda i: int(rows[i][0]))
    used = {row[-1] for row in rows}
    texts = "; ".join(f"{key}: {text}" for key, text in reasons["text"].items() if key in used)
    counted = ", ".join(f"Table {number}: {few} of {many}" for number, many, few in sorted(counts))
    caption = (
        f"Cells whose mean is more than {APART:g} standard errors from the published one, or that terminated on all "
        f"seeds here and not there or the other way round ({counted}). With five seeds on either side about one cell "
        f"in twelve would be there by chance. {APART_RULE}. Reasons. {texts}."
    )
    header = ["table", "method", "ε", "ours", "paper", "apart", "ended", "paper ended", "reason"]
    names = ["table", "algorithm", "epsilon", "apart", "all_ended", "paper_terminated", "reason"]
    frame = pd.DataFrame([rows[i] for i in order], columns=header)
    return Table(frame, caption, pd.DataFrame([data[i] for i in order], columns=names))


def variants(context) -> Table:
    """m = n // 100 beside n // 50, the theory's trust-region radius beside the published one, and dp-gd-2ns."""
    import pandas as pd

    rows = finished(context.rows("variants"))
    for name in ("set.m", "set.radius"):
        rows = rows.assign(**{name: rows.get(name)})
    rows = rows.assign(variant=[variant(row) for row in rows[["set.m", "set.radius"]].itertuples(index=False)])
    table = cells(rows, ["problem", "alpha", "algorithm", "variant", "epsilon"])
    lines, missing = [], []
    for target in TARGETS:
        part = table[table["problem"].eq(target.problem) & table["alpha"].eq(target.alpha)]
        asked = any(
            target.problem in block.problems and target.alpha in block.values("alpha")
            for block in context.blocks("variants")
        )
        if part.empty and asked:
            missing.append(f"{place(target)}: {context.command('variants')}")
        for row in part.sort_values(["algorithm", "variant", "epsilon"]).itertuples():
            lines.append([
                problem_name(row.problem), f"{row.alpha:g}", look(row.algorithm).label, row.variant, f"{row.epsilon:g}",
                mean_std(row.loss, row.loss_std), f"{row.terminated} of {row.seeds}",
                mean_std(row.iterations, row.iterations_std, 1), whole(row.T),
                mean_std(row.hessian_evaluations, row.hessian_evaluations_std, 1),
            ])  # fmt: skip
    caption = (
        "Not in the paper. Half the minibatch (m = ⌊n/100⌋ beside ⌊n/50⌋); the trust region's theoretical radius "
        "sqrt(α/M) beside the α/M that fits the published runs; and DP-GD with the parameters of Wang, Chen and Xu "
        "(2019), for which the paper found no practical ones. Mean ± standard deviation (ddof = 1) over seeds; "
        "terminated: how many of the seeds, on released quantities only, within T and "
        f"{most_iterations(context, 'variants')} iterations. Replace-one neighbours, δ = 1/n, zCDP (minibatches: RDP "
        "of sampling without replacement)."
    )
    header = ["problem", "α", "method", "variant", "ε", "loss", "terminated", "iterations", "T", "Hessians"]
    return Table(pd.DataFrame(lines, columns=header), caption, table, missing)


def variant(row) -> str:
    """The setting that tells a variant from its siblings: "m = 9,902", "radius α/M", or nothing."""
    m, radius = row
    if m is not None and not (isinstance(m, float) and math.isnan(m)):
        return f"m = {int(m):,}"
    return {"published": "radius α/M", "theory": "radius sqrt(α/M)"}.get(radius, "–")


def reason_of(reasons: dict, number: int, row) -> str:
    """The reason class of a cell: that of the first rule that fits it, or "unexplained"."""
    cell = {
        "tables": number,
        "algorithms": row.algorithm,
        "epsilon": row.epsilon,
        "paper_terminated": row.paper_terminated,
        "all_ended": row.all_ended,
    }
    for rule in reasons["rule"]:
        if all(value in rule[name] for name, value in cell.items() if name in rule):
            return rule["reason"]
    return "unexplained"


def status_rule(context, target: Target) -> str:
    """What × means."""
    return (
        "A run terminates on released quantities only; × marks a cell where a seed did not (in brackets: how many of "
        "its seeds did), as in the paper; such a run has spent its T iterations or, marked cap, the "
        f"{most_iterations(context, target.artefact)} that a run may last here, with the noise still set for T"
    )


def named(table):
    """(method, ε) as the first cells of each row; a method's name is printed once."""
    previous = None
    for row in table.itertuples():
        yield ["" if row.algorithm == previous else look(row.algorithm).label, f"{row.epsilon:g}"], row
        previous = row.algorithm


def gaps(context, target: Target, table) -> list[str]:
    """A line per method that has cells without rows."""
    missing = table[table["seeds"].isna()]
    return [
        f"{look(algorithm).label} at ε = {', '.join(f'{e:g}' for e in part['epsilon'])}: "
        f"{context.command(target.artefact)}"
        for algorithm, part in missing.groupby("algorithm", sort=False)
    ]


def mean_std(mean: float, std: float, digits: int = 3) -> str:
    """ "0.712 ± 0.018"; without the deviation where there is only one value, "–" where there is none."""
    if math.isnan(mean):
        return "–"
    return f"{mean:,.{digits}f}" + ("" if math.isnan(std) else f" ± {std:,.{digits}f}")


def in_errors(apart: float) -> str:
    if math.isnan(apart):
        return "–"
    return f"{apart:+.1f}" if abs(apart) <= FAR else f"{'> +' if apart > 0 else '< −'}{FAR}"


def run_time(row) -> str:
    """Seconds where every seed terminated, × and how many did otherwise, as in the paper."""
    if math.isnan(row.seeds):
        return "–"
    if row.all_ended:
        return mean_std(row.seconds, row.seconds_std, 2)
    return f"× ({row.terminated:.0f} of {row.seeds:.0f}{', cap' if row.capped else ''})"


def paper_run_time(row) -> str:
    if math.isnan(row.paper_mean):
        return "not given"
    return mean_std(row.paper_seconds, row.paper_seconds_std, 1) if row.paper_terminated is True else "×"


def ended(all_seeds: bool) -> str:
    return "yes" if all_seeds else "×"


def seeds(table) -> str:
    counts = sorted({int(n) for n in table["seeds"].dropna()})
    return " or ".join(map(str, counts)) or "no"


def whole(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}"
