"""Audit every private method and keep the bounds beside the page of their privacy: minutes of one core."""

import csv
import sys
from pathlib import Path

from dpbench import algorithms, files
from dpbench.algorithms.base import make_settings
from dpbench.auditing.runs import audit, auditable

EPSILON = 4.0
TARGET = Path(__file__).resolve().with_name("audited.csv")


def _at_defaults(name: str) -> bool:
    """Whether `name` is what a method with its default settings is called."""
    method, _ = algorithms.resolve(name)
    return algorithms.display_name(method.name, make_settings(method, {})) == name


def main(names: list[str]) -> None:
    """Audit `names`, or all, and write the table whole or not at all; of the others the rows that there are stay."""
    rows = list(csv.reader(TARGET.read_text("utf-8").splitlines()))[1:] if TARGET.is_file() else []
    for name in names or [one for one in auditable() if _at_defaults(one)]:
        for done in [audit(name, EPSILON, papers=True)]:
            name = algorithms.resolve(name)[0].name
            rows = [row for row in rows if row[0] != name]
            for label, verdict in done.verdicts.items():
                numbers = f"{verdict.bound:.4g}", f"{verdict.claim:.4g}"
                rows.append([name, f"{EPSILON:g}", str(done.runs), label, verdict.unit, *numbers])
        header = ["algorithm", "epsilon", "runs", "label", "unit", "bound", "claim"]
        with files.replacing(TARGET) as staged, open(staged, "w", encoding="utf-8", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows([header, *sorted(rows)])


if __name__ == "__main__":
    main(sys.argv[1:])
