"""The table of iterations as text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

from benchmarks.iteration_bench import BATCH, Line
from benchmarks.machine import Roofline

HEADER = (
    "algorithm",
    "per",
    "ours, k = 1",
    f"ours, k = {BATCH}",
    "textbook",
    "speed-up, k = 1",
    f"k = {BATCH}",
    "roofline",
)


def cells(line: Line) -> list[str]:
    """A row of the table; "-" where there is no textbook version."""
    return [
        line.algorithm,
        line.unit,
        *(_time(value) for value in (line.single, line.batched, line.textbook)),
        *("-" if value is None else f"{value:.1f}" for value in (line.speedup_single, line.speedup_batched)),
        "-" if line.share is None else f"{100 * line.share:.0f} %",
    ]


def _time(seconds: float | None) -> str:
    """Seconds with three digits and a unit.

    >>> _time(0.00123)
    '1.23 ms'
    """
    if seconds is None:
        return "-"
    scale, unit = next(((1e-3**i, u) for i, u in enumerate(("s", "ms", "µs")) if seconds >= 1e-3**i), (1e-6, "µs"))
    return f"{seconds / scale:.3g} {unit}"


def aligned(rows: list[list[str]], separator: str = "  ") -> list[str]:
    """Columns of equal width: the first two to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        separator.join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]


def markdown(lines: list[Line], machine: dict[str, Any], roofline: Roofline, load: tuple[float, float]) -> str:
    """The table with the machine above it."""
    rows = [list(HEADER), *(cells(line) for line in lines)]
    head, *body = aligned(rows, " | ")
    rule = " | ".join(("-" * len(c)) if i < 2 else "-" * (len(c) - 1) + ":" for i, c in enumerate(head.split(" | ")))
    facts = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    return f"""# Iterations against textbook NumPy and the roofline

One core, processor time of one iteration of one replicate; medians of rounds taken in turns. `k` replicates advance
together. Roofline: the share of the machine's speed that a replicate of {BATCH} reaches, by the arithmetic and the
reading of data that the iteration cannot do without (exponentials, noise and Python left out). Made by `make bench`.

| {head} |
| {rule} |
{chr(10).join(f"| {line} |" for line in body)}

{facts}
- roofline: dgemm {roofline.flops / 1e9:.1f} GFLOP/s, memory read {roofline.bandwidth / 1e9:.1f} GB/s
- load average: {load[0]:.2f} at the start, {load[1]:.2f} at the end
"""


def save(folder: Path, lines: list[Line], machine: dict, roofline: Roofline, load: tuple[float, float]) -> None:
    """iterations.md, .csv and .json in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [dataclasses.asdict(line) | {"share_of_roofline": line.share} for line in lines]
    (folder / "iterations.md").write_text(markdown(lines, machine, roofline, load), encoding="utf-8")
    with open(folder / "iterations.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, records[0])
        writer.writeheader()
        writer.writerows(records)
    content = {"machine": machine, "roofline": roofline._asdict(), "load": load, "iterations": records}
    (folder / "iterations.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
