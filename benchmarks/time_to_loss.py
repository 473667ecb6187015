"""Private fits against plain ones: processor seconds until the loss of lbfgs, everything included, on one core.

`python -m benchmarks.time_to_loss` measures `SHAPES` and writes results/time_to_loss.csv and .md; with ROWS and COLUMNS
it measures one shape and writes nothing, or with the word `keep` behind them its lines of the table; with the word
`estimator`, that alone. 10⁸ x 20 takes
8 GB below TMPDIR, where such rows are mapped, and as much memory. The rows are float32 for all, as scikit-learn takes
them too, and planted: y is +1 with probability σ(<x, w>), margins of deviation 1.5. They run in turns, each `ROUNDS`
times, and the least time of each counts. δ moves a little from fit to fit, so that no calibration is found in a cache.
excess: of the mean loss over lbfgs's, the mean of the rounds. At ε = 1 and δ = n⁻². Then the same rows in float64, as
most tables are, through `PrivateClassifier` as it comes, beside lbfgs as it comes: both with an intercept.

Vowpal Wabbit and diffprivlib run in the environment that VW_PYTHON names, each in a process that times itself; without
it they are left out.
"""

from __future__ import annotations

import csv
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import dpbench
from benchmarks import machine
from dpbench import files
from dpbench.algorithms import rules
from dpbench.own import inputs
from dpbench.problems import Declaration, losses
from dpbench.problems.rows import Rows

RESULTS = Path(__file__).parent / "results"
SHAPES = ((1_000_000, 20), (10_000_000, 20), (1_000_000, 100))
ROUNDS, DEVIATION, ENOUGH = 3, 1.5, 1e-3
WIDE = "float64"  # rows as most tables have them, of which the estimator takes all
MANY, PART = 1_000_000, 10  # of more rows, one in so many alone; of no more, one in four
MAPPED = 10**9  # entries from which rows are in a file, the quickest alone are measured, and once
# Chosen on these very rows, which nobody may do with private ones. By columns: λ₀, and of samples the rates.
NEWTON = {20: {"modification": "add", "lambda0": 1e-3}, 100: {"modification": "add", "lambda0": 3e-4}}
MINIBATCH = {
    20: {"lambda0": 1e-3, "gradient_rate": 0.1, "curvature_rate": 0.02},
    100: {"lambda0": 5e-4, "gradient_rate": 0.15, "curvature_rate": 0.05},
}
FIELDS = ("rows", "columns", "method", "private", "settings", "seconds", "ratio", "excess")
LOGISTIC = losses.get("logistic")
OTHERS = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
name, path, delta = sys.argv[1], sys.argv[2], float(sys.argv[3])
X, y = np.load(path + "/X.npy", mmap_mode="r"), np.load(path + "/y.npy")
X = np.array(X)
start = time.process_time()
if name == "diffprivlib":
    from diffprivlib.models import LogisticRegression
    start = time.process_time()
    model = LogisticRegression(epsilon=1.0, data_norm=1.0, C=float(len(X)), fit_intercept=False, max_iter=100)
    w = model.fit(X, y).coef_[0]
else:
    from vowpalwabbit import Workspace
    start = time.process_time()
    vw = Workspace("--loss_function logistic --noconstant --quiet --bit_precision 10")
    columns = list(range(1, X.shape[1] + 1))
    for x, label in zip(X.tolist(), y.tolist()):
        example = vw.example({"f": list(zip(columns, x))})
        example.set_label_string(str(int(label)))
        vw.learn(example)
        vw.finish_example(example)
    w = [vw.get_weight(j) for j in columns]
print(json.dumps([time.process_time() - start, None if w is None else [float(v) for v in w]]))
"""


class Point(NamedTuple):
    """A method at some settings; fit: the model (d,) for a δ."""

    method: str
    private: bool
    settings: dict[str, Any]
    fit: Callable[[float], np.ndarray]


def table(n: int, d: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Planted rows of length about 1/2, so that none is beyond the bound of 1, and their labels."""
    rng = np.random.default_rng(0)
    if n * d >= MAPPED:
        with tempfile.NamedTemporaryFile() as file:  # its name is gone at once, its bytes with the last array
            X = np.memmap(file, np.float32, "w+", shape=(n, d))
    else:
        X = np.empty((n, d), dtype)
    y, w = np.empty(n), rng.standard_normal(d)
    w *= DEVIATION * 2 * np.sqrt(d) / np.linalg.norm(w)
    for start in range(0, n, 100_000):
        A = X[start : start + 100_000]
        A[...] = rng.standard_normal(A.shape, dtype=np.float32) / np.float32(2 * np.sqrt(d))
        y[start : start + len(A)] = np.where(rng.random(len(A)) < 1 / (1 + np.exp(-(A @ w))), 1.0, -1.0)
    return X, y


def points(X: np.ndarray, y: np.ndarray) -> list[Point]:
    """What is measured, lbfgs first."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    def plain(make: Callable[[], Any]) -> Callable[[float], np.ndarray]:
        return lambda _: make().fit(X, y).coef_[0]

    def logistic(solver: str) -> Callable[[], Any]:
        return lambda: LogisticRegression(C=np.inf, solver=solver, fit_intercept=False)

    def ours(algorithm: str, settings: dict[str, Any], part: int = 1) -> Point:
        def fit(delta: float) -> np.ndarray:
            call = {"epsilon": 1.0, "delta": delta, "precision": "float32", **settings}
            return dpbench.fit(X[::part], y[::part], algorithm=algorithm, **call).w

        return Point(algorithm, True, settings | ({"rows": f"one in {part}"} if part > 1 else {}), fit)

    n, d = X.shape
    default = rules.method(Declaration(n, d), 1 / n**2)
    sgd = {"loss": "log_loss", "penalty": None, "fit_intercept": False, "max_iter": 5, "tol": None}
    part = PART if n > MANY else 4
    if n * d >= MAPPED:
        newton = NEWTON[d] | {"T": 4}
        return [
            Point("lbfgs", False, {}, plain(logistic("lbfgs"))),
            ours("dp-newton", newton),
            ours("dp-newton", newton, part),
            Point("auto", True, {"method": default}, ours(default, {}).fit),
            Point("auto", True, {"method": default, "rows": f"one in {part}"}, ours(default, {}, part).fit),
        ]
    return [
        *(Point(solver, False, {}, plain(logistic(solver))) for solver in ("lbfgs", "newton-cholesky")),
        Point("SGDClassifier", False, {"max_iter": 5}, plain(lambda: SGDClassifier(**sgd, random_state=0))),
        *(ours("dp-newton", NEWTON[d] | {"T": T}) for T in (3, 4, 5)),
        *(ours("dp-newton-minibatch", MINIBATCH[d] | {"T": T}) for T in ((4, 5) if d <= 20 else (5, 6)) if n <= MANY),
        *(ours("dp-newton", NEWTON[d] | {"T": T}, part) for T in (5,) if d <= 20),
        Point("auto", True, {"method": default}, ours(default, {}).fit),
        Point("auto", True, {"method": default, "rows": f"one in {part}"}, ours(default, {}, part).fit),
        *(ours("dp-gd", {"T": T}) for T in (10,)),
    ]


def measure(n: int, d: int, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """A record per method and settings."""
    X, y = table(n, d)
    rows = Rows(X, y)
    warm = table(2_000, d)
    for one in points(*warm):
        one.fit(1e-8)
    todo = points(X, y)
    seconds, excess = [[] for _ in todo], [[] for _ in todo]
    for turn in range(rounds):
        reference = 0.0
        for i, one in enumerate(todo):
            gc.collect()
            begin = time.process_time()
            w = one.fit(n**-2.0 * (1 + 1e-4 * turn + 1e-6 * i))
            seconds[i].append(time.process_time() - begin)
            loss = float(rows.sum(LOGISTIC.value, np.asarray(w, dtype=float)[None])[0]) / n
            reference = loss if i == 0 else reference
            excess[i].append(loss - reference)
    found = [
        record(n, d, one.method, one.private, one.settings, min(s), min(s) / min(seconds[0]), float(np.mean(e)))
        for one, s, e in zip(todo, seconds, excess, strict=True)
    ]
    others = elsewhere(X, y, rows, reference, min(seconds[0])) if n <= SHAPES[0][0] and d <= 20 else []
    set_up(X, y, rows)
    return found + others


def by_estimator(n: int, d: int, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """A record of lbfgs and of `PrivateClassifier` on float64 rows, whose columns have a public range of 4 deviations.

    The settings of the estimator's say how much memory a process takes that makes X and fits, in times X.
    """
    from sklearn.linear_model import LogisticRegression

    X, y = table(n, d, np.float64)
    seconds, found = [[], []], [[], []]
    for turn in range(rounds):
        for i, model in enumerate((LogisticRegression(C=np.inf), estimator(n, d, turn))):
            gc.collect()
            begin = time.process_time()
            model.fit(X, y)
            seconds[i].append(time.process_time() - begin)
            found[i].append(float(np.logaddexp(0, -y * model.decision_function(X)).mean()))
    plain, ours = map(min, seconds)
    del X, y
    before, peak = files.peak_of(fit_alone, n, d, warm_up=(2_000, d))
    settings = {"rows": WIDE, "peak memory": f"{(peak - before) / (8 * n * d):.2f} X"}
    return [
        record(n, d, "lbfgs", False, {"rows": WIDE}, plain, 1.0, 0.0),
        record(n, d, "PrivateClassifier", True, settings, ours, ours / plain, np.mean(found[1]) - found[0][0]),
    ]


def estimator(n: int, d: int, turn: int = 0) -> dpbench.PrivateClassifier:
    """As it comes, at ε = 1."""
    end = 2 / np.sqrt(d)
    return dpbench.PrivateClassifier(1.0, n**-2.0 * (1 + 1e-4 * turn), bounds=(-end, end), classes=[-1, 1])


def fit_alone(n: int, d: int) -> None:
    """One fit to float64 rows, for `files.peak_of`."""
    estimator(n, d).fit(*table(n, d, np.float64))


def record(*values: Any) -> dict[str, Any]:
    """Of `FIELDS`, printed."""
    found = dict(zip(FIELDS, values, strict=True))
    found["settings"] = ", ".join(f"{name} = {value}" for name, value in found["settings"].items())
    print(
        f"seconds over lbfgs's, {found['rows']:,} x {found['columns']}, {found['method']} {found['settings']}: "
        f"{found['ratio']:.2f}  ({found['seconds']:.2f} s, excess loss {found['excess']:.1e})",
        flush=True,
    )
    return (
        found
        | {"seconds": round(found["seconds"], 3), "ratio": round(found["ratio"], 5)}
        | {"excess": float(f"{found['excess']:.1e}")}
    )


def set_up(X: np.ndarray, y: np.ndarray, rows: Rows) -> None:
    """Print what a look at the rows costs in gradients, and a gradient in passes over X."""
    W = np.zeros((1, X.shape[1]))
    call: dict[str, Any] = {"declared": Declaration(*X.shape, row_bound=1.0), "method": "", "check": False}
    call |= {"release": True, "exact": False, "precision": "float32", "steady": False}
    flat = X.reshape(-1)
    step = 8192 * X.shape[1]
    times: dict[str, list[float]] = defaultdict(list)
    starts, block = range(0, len(flat), step), np.empty(step, np.float32)
    for _ in range(5 if X.size < MAPPED else 2):
        for name, work in (
            ("set-up", lambda: inputs.problem_of(X, y, **call)),
            ("gradient", lambda: rows.weighted_sum(LOGISTIC.derivative, W)),
            ("Hessian", lambda: rows.gram(LOGISTIC.second_derivative, W)),
            ("reading it (dot products)", lambda: [flat[i : i + step] @ flat[i : i + step] for i in starts]),
            ("its sum by NumPy", lambda: [flat[i : i + step].sum() for i in starts]),
            ("a copy of it, block by block", lambda: [np.copyto(block[: len(A)], A) for A in _cut(flat, step)]),
        ):
            begin = time.process_time()
            work()
            times[name].append(time.process_time() - begin)
    least = {name: min(found) for name, found in times.items()}
    shape = f"{len(X):,} x {X.shape[1]}, float32"
    print(f"a fit's look at the rows over a gradient, {shape}: {least['set-up'] / least['gradient']:.1f}")
    print(f"Hessian over a gradient, {shape}: {least['Hessian'] / least['gradient']:.1f}")
    square = np.ones((1500, 1500), np.float32)
    products = 2 * 1500**3 / machine.best(lambda: square @ square, 3)  # sgemm's flop/s
    share = len(X) * X.shape[1] ** 2 / products / least["Hessian"]
    print(f"least time of a symmetric product over a Hessian's, at sgemm's rate, {shape}: {share:.2f}")
    for name in list(least)[3:]:
        ratio = least["gradient"] / least[name]
        print(f"gradient over a pass over X, {name}, {shape}: {ratio:.2f}  ({X.nbytes / least[name] / 1e9:.0f} GB/s)")


def _cut(flat: np.ndarray, step: int) -> Iterator[np.ndarray]:
    return (flat[i : i + step] for i in range(0, len(flat), step))


def elsewhere(X: np.ndarray, y: np.ndarray, rows: Rows, reference: float, lbfgs: float) -> list[dict[str, Any]]:
    """Records of the libraries that need an environment of their own."""
    python, found = os.environ.get("VW_PYTHON"), []
    if python is None:
        print("diffprivlib, Vowpal Wabbit: not measured; VW_PYTHON names no environment that has them")
        return []
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        np.save(f"{folder}/y.npy", y)
        for name, private in (("diffprivlib", True), ("Vowpal Wabbit", False)):
            command = [python, "-c", OTHERS, name, folder, "0"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}: not measured: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
                continue
            seconds, w = json.loads(done.stdout.splitlines()[-1])
            loss = float(rows.sum(LOGISTIC.value, np.array([w]))[0]) / len(X) if w else np.nan
            found.append(record(*X.shape, name, private, {}, seconds, seconds / lbfgs, loss - reference))
    return found


def markdown(records: list[dict[str, Any]]) -> str:
    """The table of the guide."""
    lines = ["| rows × columns | method | seconds | ratio to lbfgs | excess loss |", "|---|---|--:|--:|--:|"]
    for one in records:
        name = f"`{one['method']}`" + (f", {one['settings']}" if one["settings"] else "")
        name = f"{name} *(private)*" if one["private"] else name
        ratio = f"**{one['ratio']:.2f}**" if one["private"] and one["excess"] <= ENOUGH else f"{one['ratio']:.2f}"
        shape = f"{one['rows']:,} × {one['columns']}"
        lines.append(f"| {shape} | {name} | {one['seconds']:.2f} | {ratio} | {one['excess']:.1e} |")
    return "\n".join(lines) + "\n"


def main(shapes: tuple[tuple[int, int], ...] = SHAPES, words: Sequence[str] = ("keep",)) -> None:
    """Print a line per method; words: "keep" writes results/time_to_loss.csv and .md, "estimator" measures it alone."""
    warnings.simplefilter("ignore")
    records = []
    with threadpool_limits(1):
        for n, d in shapes:
            if "estimator" not in words:
                records += measure(n, d, ROUNDS if n * d <= 10**8 else 2 if n * d < MAPPED else 1)
            if n * d < MAPPED:
                records += by_estimator(n, d)
    if "keep" in words:
        with open(RESULTS / "time_to_loss.csv", newline="") as old:
            others = [_numbers(row) for row in csv.DictReader(old)]
        anew = {_part(row) for row in records}
        records += [row for row in others if _part(row) not in anew]
        records.sort(key=_part)
        with files.replacing(RESULTS / "time_to_loss.csv") as staged, open(staged, "w", newline="") as out:
            writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        (RESULTS / "time_to_loss.md").write_text(markdown(records), encoding="utf-8")


def _part(row: dict[str, Any]) -> tuple[int, int, bool]:
    """What is measured at once: columns, rows, and whether through the estimator."""
    return row["columns"], row["rows"], WIDE in row["settings"]


def _numbers(row: dict[str, str]) -> dict[str, Any]:
    """A row of the csv file with the types that it was written from."""
    whole = {name: int(row[name]) for name in ("rows", "columns")}
    return (
        row
        | whole
        | {name: float(row[name]) for name in ("seconds", "ratio", "excess")}
        | {"private": row["private"] == "True"}
    )


if __name__ == "__main__":
    numbers = [int(float(word)) for word in sys.argv[1:3]]
    from benchmarks.time_to_loss import main as run  # by its name, which another process finds

    run(((numbers[0], numbers[1]),), sys.argv[3:]) if numbers else run()
