"""Does the ± that `compare` states cover what its printed code then does, on rows that it has not seen?

`python -m benchmarks.interval_coverage [SPLITS]` compares on two thirds of the rows, at ε = 1, by a schema that is
drafted and decided; runs the printed code `FITS` times, on these rows; and counts the fits whose log loss on the last
third is within two stated deviations of the stated loss. It prints a line for each split, then the sums, which
docs/guides/own_data.md quotes: some three minutes of one core. Noise is fresh, so counts differ from call to call.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import train_test_split

import dpbench

SPLITS, FITS = 8, 4


def _simulated() -> pd.DataFrame:
    """(3,000, 7): six features and a label that a line tells in part."""
    X, y = datasets.make_classification(3000, 6, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=0)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(6)]).assign(target=y)


SETS: dict[str, Callable[[], pd.DataFrame]] = {
    "breast cancer": lambda: datasets.load_breast_cancer(as_frame=True).frame,
    "simulated": _simulated,
}


def fits(table: pd.DataFrame, seed: int) -> tuple[float, float, list[float]]:
    """(stated loss, stated deviation, the losses of the printed code's fits on rows unseen); all in nats.

    No fits where the comparison finds no method of use, as there is no code then.
    """
    used, unseen = train_test_split(table, test_size=1 / 3, random_state=seed, stratify=table["target"])
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        os.chdir(folder)
        try:
            used.to_csv("my.csv", index=False)
            unseen.to_csv("unseen.csv", index=False)
            lines = dpbench.draft_schema("my.csv", "target")[0].toml().splitlines()
            Path("my.toml").write_text("\n".join(line for line in lines if not line.startswith("decide =")) + "\n")
            found = dpbench.compare("my.csv", schema="my.toml", results=folder, cache=False, jobs=1)
            if not found.snippet:
                return np.nan, np.nan, []
            best, losses = found.ranking.best, list[float]()
            rest = dpbench.read_table("unseen.csv", "my.toml")
            for _ in range(FITS):
                space: dict[str, Any] = {}
                with redirect_stdout(None):
                    exec(compile(found.snippet, "the printed code", "exec"), space)
                model = space["model"]
                scores = model.decision_function(rest)
                signs = np.where(rest["target"].astype(str) == str(model.classes_[1]), 1.0, -1.0)
                losses.append(float(np.logaddexp(0, -signs * scores).mean()))
            return best.mean, best.spread, losses
        finally:
            os.chdir(home)


def main(arguments: list[str]) -> None:
    """Print the fits of each split of each set, and how many of them the interval held."""
    for name, made in SETS.items():
        held = of = 0
        for seed in range(int(arguments[0]) if arguments else SPLITS):
            mean, spread, losses = fits(made(), seed)
            within = sum(abs(loss - mean) <= 2 * spread for loss in losses)
            held, of = held + within, of + len(losses)
            told = ", ".join(f"{loss:.3f}" for loss in losses)
            print(f"{name}, split {seed}: stated {mean:.3f} ± {spread:.3f}; {told or 'no code'}: {within}", flush=True)
        print(f"{name}: {held} of {of} within ± 2", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
