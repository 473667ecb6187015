"""Seconds of other libraries' solvers on the board's timed problems, beside the method of dpbench most like each.

`.venv-rivals/NAME/bin/python -m benchmarks.rival_seconds` in the source folder, for each library of `make rivals`: what
its environment cannot import is left out. One run at ε = 1 and the public rules, alone on one core, the least of three;
the first run of each, which may compile, is not measured. Ratios are of one process.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.rules import public_settings
from dpbench.leaderboard import entrants, tracks
from dpbench.run import runner
from dpbench.run.job import Job, make_job
from dpbench.run.store import Store

RIVALS = Path(__file__).parents[1] / "rivals" / "dpbench_rivals"
BESIDE = {  # solver → the method most like it
    "diffprivlib.py:DiffprivlibLogistic": "objpert-pure",
    "diffprivlib.py:DiffprivlibLinear": "adassp",
    "opacus.py:OpacusDPSGD": "dp-sgd",
    "jax_privacy.py:JaxDPSGD": "dp-sgd",
    "jax_privacy.py:JaxBandMF": "dp-mf",
}
TIMES = 3


def problems() -> list[str]:
    """Those that the board times."""
    return next(block.problems for block in tracks.grid()["full"] if block.timed)


def jobs(name: str, problem: str) -> list[Job]:
    """The timed runs of a method on a problem; none where it is not admitted."""
    if entrants.reason(problem, name):
        return []
    method, _ = algorithms.resolve(name)
    settings = public_settings(name, *tracks.size(problem), 1.0)
    return [
        make_job(
            problem=problem, algorithm=name, epsilon=1.0, seed=0, settings=settings, timed=one,
            accounting=rules.accounting(method), delta=rules.delta(method), relation=rules.RELATION.value,
        )
        for one in range(1, TIMES + 1)
    ]  # fmt: skip


def main() -> None:
    """A line per solver and problem: its seconds, those of the method beside it, the ratio."""
    print("| method | problem | seconds | beside | ratio |\n|---|---|---|---|---|")
    for reference, beside in BESIDE.items():
        library = reference.partition(".")[0]
        if importlib.util.find_spec(library) is None:
            continue
        name = f"{RIVALS / reference}"
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder), "adhoc", "seconds")
            runner.run([one for p in problems() for each in (name, beside) for one in jobs(each, p)], store, workers=1)
            rows = store.runs()
        least = rows.groupby(["problem", "algorithm"])["seconds"].min()
        mine = algorithms.get(name).name
        for problem in problems():
            found = {str(each): float(value) for (p, each), value in least.items() if p == problem}
            theirs = next((value for each, value in found.items() if each != beside), None)
            if theirs is not None:
                own = found.get(beside)
                other = f"{beside}, {own:.2g}" if own else "–"
                print(f"| `{mine}` | {problem} | {theirs:.2g} | {other} | {f'{theirs / own:.2g}' if own else '–'} |")


if __name__ == "__main__":
    main()
