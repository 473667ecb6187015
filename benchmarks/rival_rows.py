"""Rows of other libraries' solvers on the board's public problems, and the folder that the board reads them from.

`.venv-rivals/NAME/bin/python -m benchmarks.rival_rows METHOD [--seeds 5] [--held-out]` in the source folder, with a
method of the entry points of `rivals/`, as opacus-dp-sgd. Cells come in the order of n·ε, those with held-out rows
first; rows are kept in results/rivals, so that an interrupted call resumes. At the end the folder
results/full/leaderboard/submissions/METHOD has the rows that are there, and says by which losses they are complete.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import zipfile
from collections.abc import Collection
from importlib.metadata import entry_points
from pathlib import Path

import msgspec

from dpbench.archive.content import read_submission
from dpbench.leaderboard import entrants, tracks
from dpbench.leaderboard.nulls import scale
from dpbench.leaderboard.places import EXCESS, HELD
from dpbench.run import runner
from dpbench.run.execute import code_version, environment
from dpbench.run.store import Store
from dpbench.study.grid import GridEntry
from dpbench.study.plan import plan
from dpbench.submitting.checking import TRUSTED
from dpbench.submitting.making import submit

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "full" / "leaderboard" / "submissions"


def cells(method: str, seeds: int, problems: Collection[str] | None) -> list[GridEntry]:
    """A method's cells at its public rule, by n·ε; on these problems alone, on all for None."""
    every = [cell for cell in tracks.cells("full", tracks.grid()) if problems is None or cell.problems[0] in problems]
    some = [msgspec.structs.replace(cell, algorithms=[method], seeds=min(seeds, cell.seeds)) for cell in every]
    blocks = [block for cell in some for block in tracks.expand(cell)]
    return sorted(blocks, key=lambda block: tracks.size(block.problems[0])[0] * block.epsilon[0])


def indented(told: object) -> str:
    """As kept submissions have it."""
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def keep(method: str, store: Store) -> None:
    """Write the method, its rows and what is said of them where the board finds them."""
    target = FOLDER / method
    (point,) = (one for one in entry_points(group="dpbench.algorithms") if one.name == method)
    module, _, name = point.value.partition(":")
    file = ROOT / "rivals" / f"{module.replace('.', '/')}.py"
    rows = store.runs()
    made = set(zip(rows["problem"], rows["epsilon"], strict=True))
    asked = {c: cells(method, 1, scale(c).nulls) for c in (EXCESS, HELD)}
    scored = [c for c, every in asked.items() if {(b.problems[0], b.epsilon[0]) for b in every} <= made]
    names = sorted({cell.problems[0] for cell in tracks.cells("full", tracks.grid())} - set(rows["problem"]))
    checked = {
        "how": f"{TRUSTED}; rows on public data", "placed": bool(scored), "scored": scored, "nulls": {},
        "left_out": {name: entrants.reason(name, method) or "not run" for name in names},
        "code_version": code_version(), "environment": environment(),
    }  # fmt: skip
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(
        submit(f"{file}:{name}", out=Path(folder) / "archive.zip")
    ) as archive:  # fmt: skip
        archive.extractall(target)
    (target / "manifest.json").write_text(indented(json.loads((target / "manifest.json").read_text(encoding="utf-8"))))
    checked = {"archive_sha256": read_submission(target).digest, **checked}
    (target / "checked.json").write_text(indented(checked), encoding="utf-8")
    store.compact()
    shutil.copytree(store.folder / "runs", target / "runs")
    print(f"{target}: {len(rows):,} rows on {rows['problem'].nunique()} problems; complete by {scored or 'no loss'}")


def main() -> None:
    """Make what is missing, and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rival_rows", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("method")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--held-out", action="store_true", help="the problems with held-out rows alone")
    parser.add_argument("--folder-only", action="store_true", help="make no row")
    given = parser.parse_args()
    store = Store(ROOT / "results" / "rivals", "full", given.method)
    held = scale(HELD).nulls
    blocks = cells(given.method, given.seeds, held if given.held_out else None)
    for block in sorted(blocks, key=lambda one: one.problems[0] not in held):
        if not given.folder_only:
            runner.run(plan([block], store).runnable, store, workers=1)
    keep(given.method, store)


if __name__ == "__main__":
    main()
