"""How often the audit fails a sound method: every private method by eight seeds, in results/sound_audits.csv.

`python -m benchmarks.sound_audits` makes the audits that the file lacks, at ε = 4, each with its inspection, its tests
of the noise and its bounds; ten minutes of one core for all. share: the largest bound of the eight over its claim.
"""

from __future__ import annotations

import csv
from pathlib import Path

from dpbench import files
from dpbench.auditing.runs import audit, auditable

RESULTS = Path(__file__).parent / "results" / "sound_audits.csv"
EPSILON, SEEDS = 4.0, 8
HEADER = ("algorithm", "epsilon", "audits", "failed", "runs", "share")


def row(name: str) -> tuple[str, ...]:
    """The audits of one method, by all seeds."""
    found = [audit(name, EPSILON, near=False, seed=seed) for seed in range(SEEDS)]
    share = max((v.bound / v.claim for done in found for v in done.verdicts.values()), default=0.0)
    failed = sum(not done.passed for done in found)
    return name, f"{EPSILON:g}", str(SEEDS), str(failed), str(sum(done.runs for done in found)), f"{share:.3f}"


def main() -> None:
    """Write a row as soon as it is there."""
    rows = list(csv.reader(RESULTS.read_text("utf-8").splitlines()))[1:] if RESULTS.is_file() else []
    for name in auditable():
        if name in {one[0] for one in rows}:
            continue
        rows.append(list(row(name)))
        print("  ".join(rows[-1]), flush=True)
        with files.replacing(RESULTS) as staged, open(staged, "w", encoding="utf-8", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows([HEADER, *sorted(rows)])
    print(f"{sum(int(one[3]) for one in rows)} of {sum(int(one[2]) for one in rows)} audits failed")


if __name__ == "__main__":
    main()
