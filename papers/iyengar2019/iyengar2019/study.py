"""What figures and claims are made from: test accuracies at the best of the settings tried."""

from dpbench.study.context import Context, kept, select
from dpbench.study.statistics import means
from dpbench.study.verdict import NotEnough

SETS = {"iyengar-adult": "Adult", "iyengar-synthetic-l": "Synthetic-L", "iyengar-synthetic-h": "Synthetic-H"}
HF, AMP, OURS = "H-F AMP", "AMP", "AOP, tight accounting (not in the paper)"
LABELS = {"dp-sgd": "Private SGD", "psgd": "Private PSGD", "dp-frank-wolfe": "Private Frank-Wolfe"}
BASELINE = "Without noise"
METHODS = (AMP, HF, *LABELS.values(), OURS)
LOW, HIGH = ("Adult", "Synthetic-L"), ("Synthetic-H",)


def method_of(row) -> str:
    """The paper's name of a run: aop is its AMP, tuned over the share of ε unless that follows its rule."""
    if row.epsilon > 1e5:
        return BASELINE
    if row.algorithm != "aop":
        return LABELS[row.algorithm]
    if row.accounting == "tight":
        return OURS
    return HF if '"fraction":null' in row.settings.replace(" ", "") else AMP


@kept
def accuracies(context: Context):
    """Rows (data, loss, method, epsilon, mean, se, sd, seeds) in percent; the best setting by that very mean."""
    rows = context.rows("accuracy")
    rows = rows[rows["status"].eq("done") & rows["held_accuracy"].notna()]
    if rows.empty:
        return rows.assign(data=[], loss=[], method=[], mean=[], se=[], sd=[], seeds=[])
    rows = rows.assign(
        data=rows["problem"].map(lambda name: SETS[name.partition(":")[0]]),
        loss=rows["problem"].map(lambda name: name.partition(":")[2].partition(",")[0]),
        method=[method_of(row) for row in rows.itertuples()],
        percent=100 * rows["held_accuracy"],
    )
    by = ["data", "loss", "method", "epsilon"]
    table = means(rows, [*by, "settings"], "percent")
    return table.loc[table.groupby(by, sort=False)["mean"].idxmax()].reset_index(drop=True)


def at(context: Context, data: str, method: str, epsilon: float, loss: str = "logistic"):
    """One line of `accuracies`; NotEnough without it."""
    found = select(accuracies(context), data=data, method=method, epsilon=epsilon, loss=loss)
    if found.empty:
        raise NotEnough(f"no rows of {method} on {data} at ε = {epsilon:g}", "accuracy")
    return found.iloc[0]


def baseline(context: Context, data: str, loss: str = "logistic") -> float:
    """Accuracy without noise, in percent."""
    found = select(accuracies(context), data=data, method=BASELINE, loss=loss)
    if found.empty:
        raise NotEnough(f"no rows without noise on {data}", "accuracy")
    return float(found["mean"].iloc[0])


def epsilons(context: Context) -> list[float]:
    """The ε of the private runs, rising."""
    return [epsilon for epsilon in context.epsilons("accuracy") if epsilon < 1e5]
