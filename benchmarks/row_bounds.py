"""What a bound on the rows is worth: none, by a public rule, or released, under the default method.

`python -m benchmarks.row_bounds` fits every data set of `default_methods.SETS` with each `row_bound` at every ε of
`EPSILONS`, ten seeds of a split and of the noise, and writes results/row_bounds.csv and .md.
"""

from __future__ import annotations

import csv

import numpy as np

from benchmarks.default_methods import RESULTS, SEEDS, SETS, scores

EPSILONS = (0.3, 1.0, 3.0, 100.0)
WAYS = (None, "rule", "private")


def main() -> None:
    """Fit all of them, and write the table."""
    found: dict[tuple[str, str | None, float], list[float]] = {}
    path = RESULTS / "row_bounds.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("data", "row_bound", "epsilon", "scores"))
        for name in SETS:
            for way in WAYS:
                for epsilon in EPSILONS:
                    made = scores(name, epsilon, "auto", range(SEEDS), row_bound=way)
                    found[name, way, epsilon] = made
                    writer.writerow((name, way or "", f"{epsilon:g}", " ".join(f"{one:.6g}" for one in made)))
                    print(name, way, epsilon, f"{np.mean(made):.3f}", flush=True)
    text = ["| mean | row_bound | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"]
    text.append("|---" * (len(EPSILONS) + 2) + "|")
    for kind, words in (("class", "accuracy"), ("number", "R²")):
        names = [name for name, (one, _) in SETS.items() if one == kind]
        for way in WAYS:
            told = " | ".join(f"{np.mean([np.mean(found[name, way, e]) for name in names]):.3f}" for e in EPSILONS)
            text.append(f"| {words}, {len(names)} sets | {way} | {told} |")
    text += ["", "| data | row_bound | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"]
    text.append("|---" * (len(EPSILONS) + 2) + "|")
    for name in SETS:
        for way in WAYS:
            each = [found[name, way, e] for e in EPSILONS]
            told = " | ".join(f"{np.mean(one):.3f} ± {np.std(one, ddof=1) / SEEDS**0.5:.3f}" for one in each)
            text.append(f"| {name} | {way} | {told} |")
    (RESULTS / "row_bounds.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
