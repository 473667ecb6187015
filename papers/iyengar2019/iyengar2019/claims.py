"""The paper's conclusions, tested on test accuracies.

The paper shows accuracies as curves alone, and prints no number that our rows could be compared with: there are no
printed cells. What "negligible" and "competitive" mean is not said there; the thresholds below are ours.
"""

import math

from dpbench.study.context import Context
from dpbench.study.declare import claim
from dpbench.study.verdict import Verdict

from iyengar2019.study import AMP, HF, HIGH, LABELS, LOW, at, baseline, epsilons

NEGLIGIBLE = 1.0  # percentage points below the baseline
COMPETITIVE = 1.0  # percentage points below the tuned variant
ERRORS = 2.0  # standard errors by which another method has to be better


@claim("cost", "With enough rows the accuracy lost to privacy is negligible.", place="abstract", shows="accuracy")
def cost(context: Context) -> Verdict:
    """H-F AMP on Adult at ε = 1, against training without noise."""
    lost = baseline(context, "Adult") - at(context, "Adult", HF, 1.0)["mean"]
    return Verdict.of(
        lost <= NEGLIGIBLE, f"{lost:.2f} percentage points on Adult (n = 36,176) at ε = 1; at most 1 asked"
    )


def beaten(context: Context, names: tuple[str, ...], mine: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    """Where some of the others are better than the best of mine by more than their errors."""
    found = []
    for data in names:
        for epsilon in epsilons(context):
            best = max((at(context, data, method, epsilon) for method in mine), key=lambda one: one["mean"])
            for other in (at(context, data, method, epsilon) for method in others):
                error = math.hypot(best["se"], other["se"])
                if other["mean"] > best["mean"] + ERRORS * error:
                    gap = other["mean"] - best["mean"]
                    found.append(f"{other['method']} on {data} at ε = {epsilon:g} by {gap:.2f}")
    return found


@claim("low", "AMP has the best accuracy on low-dimensional data, at every ε.", place="Experiment 1", shows="accuracy")
def best_of_low(context: Context) -> Verdict:
    """AMP, in the better of its variants, against the other methods of the paper."""
    found = beaten(context, LOW, (AMP, HF), tuple(LABELS.values()))
    return Verdict.of(not found, "beaten by: " + "; ".join(found) if found else "no other method is better anywhere")


@claim("high", "Private Frank-Wolfe is the best on Synthetic-H, where ten columns matter.", place="Experiment 2",
       shows="accuracy")  # fmt: skip
def best_of_high(context: Context) -> Verdict:
    """Frank-Wolfe against the other methods of the paper."""
    wolfe = LABELS["dp-frank-wolfe"]
    others = (HF, *(name for name in LABELS.values() if name != wolfe))
    found = beaten(context, HIGH, (wolfe,), others)
    return Verdict.of(not found, "beaten by: " + "; ".join(found) if found else "no other method is better anywhere")


@claim("tuning", "AMP can be run without tuning: H-F AMP is competitive with the tuned AMP.", place="abstract",
       shows="accuracy")  # fmt: skip
def untuned(context: Context) -> Verdict:
    """The largest gap between the two, over low-dimensional data sets and ε."""
    gaps = {
        (data, epsilon): at(context, data, AMP, epsilon)["mean"] - at(context, data, HF, epsilon)["mean"]
        for data in LOW
        for epsilon in epsilons(context)
    }
    (data, epsilon), gap = max(gaps.items(), key=lambda pair: pair[1])
    told = f"at most {gap:.2f} percentage points behind, on {data} at ε = {epsilon:g}"
    return Verdict.of(gap <= COMPETITIVE, told)
