"""A rare class under privacy: public weights of classes, or another threshold on the model without weights.

`python -m benchmarks.rare_classes` fits the default classifier at ε = 1 and 3 on ten splits of three data sets with a
rare class, unweighted and with that class weighted, and writes results/rare_classes.csv, a row per fit; then, or alone
with the argument `table`, results/rare_classes.md.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections import defaultdict

import numpy as np
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score

from benchmarks import other_libraries as measured
from dpbench import PrivateClassifier

SETS = {"Default": "Yes", "diamonds, clarity I1": "I1", "Hdma": "yes"}  # and the class that is rare
EPSILONS, WEIGHTS, SEEDS = (1.0, 3.0), (1.0, 5.0, 20.0), 10
SCORES = ("balanced_half", "balanced_share", "average_precision", "auc")
FIELDS = ("data", "share", "epsilon", "weight", "seed", *SCORES)
PATH = measured.RESULTS / "rare_classes.csv"


def scores(name: str, epsilon: float, weight: float, seed: int) -> dict[str, object]:
    """One fit; balanced accuracy at a threshold of one half, and at the share of the class, to one digit."""
    rows = measured.split(name, seed)
    rare = list(rows.schema.target.classes or ()).index(SETS[name])
    weights = {SETS[name]: weight} if weight != 1 else None
    model = PrivateClassifier(epsilon, schema=rows.schema, random_state=seed, class_weight=weights).fit(rows.train)
    p, hit = model.predict_proba(rows.test)[:, rare], rows.yt == rare
    share = float(f"{(rows.y == rare).mean():.1g}")
    found = (
        balanced_accuracy_score(hit, p > 0.5),
        balanced_accuracy_score(hit, p > share),
        average_precision_score(hit, p),
        roc_auc_score(hit, p),
    )
    about = {"data": name, "share": share, "epsilon": epsilon, "weight": weight, "seed": seed}
    return about | {key: f"{value:.5g}" for key, value in zip(SCORES, found, strict=True)}


def read() -> list[dict[str, str]]:
    """results/rare_classes.csv."""
    with PATH.open(newline="") as file:
        return list(csv.DictReader(file))


def table(rows: list[dict[str, str]]) -> str:
    """results/rare_classes.md: means over seeds."""
    found = defaultdict(list)
    shares = {row["data"]: float(row["share"]) for row in rows}
    for row in rows:
        found[row["data"], float(row["epsilon"]), float(row["weight"])].append([float(row[score]) for score in SCORES])
    head = (
        "data (share of the class)",
        "ε",
        "weight",
        "balanced accuracy at ½",
        "at the share",
        "avg. precision",
        "AUC",
    )
    text = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for (name, epsilon, weight), values in found.items():
        means = " | ".join(f"{mean:.3f}" for mean in np.mean(values, axis=0))
        text.append(f"| {name} ({shares[name]:g}) | {epsilon:g} | {weight:g} | {means} |")
    return "\n".join(text) + "\n"


def main(arguments: list[str]) -> None:
    """Fit, then write the table."""
    if arguments != ["table"]:
        warnings.simplefilter("ignore")
        with PATH.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            for name in SETS:
                for epsilon in EPSILONS:
                    for weight in WEIGHTS:
                        writer.writerows([scores(name, epsilon, weight, seed) for seed in range(SEEDS)])
                        print(name, epsilon, weight, flush=True)
    (measured.RESULTS / "rare_classes.md").write_text(table(read()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
