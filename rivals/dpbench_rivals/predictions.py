"""diffprivlib's estimators on prepared rows, for `benchmarks.other_libraries`: no part of dpbench is loaded.

`python -m dpbench_rivals.predictions FOLDER` reads every FOLDER/NAME.npz (X, y, Xt, epsilons, seed, kind) and writes
FOLDER/NAME.out.npz: an array "ε" for each, what is predicted for Xt: (m, k) probabilities of classes 0 to k-1, or (m,).
"""

import sys
import warnings
from pathlib import Path

import numpy as np


def predicted(data, epsilon, seed):
    """Predictions of one fit at the library's defaults, everything public declared. Rows: an intercept first."""
    from diffprivlib import models

    X, y, Xt = data["X"], data["y"], data["Xt"]
    if str(data["kind"]) == "class":  # ‖x‖₂ ≤ 1, the intercept included
        model = models.LogisticRegression(
            epsilon=epsilon, data_norm=1.0, fit_intercept=False, max_iter=1000, random_state=seed
        )
        found = np.zeros((len(Xt), int(data["classes"])))
        model.fit(X, y)
        found[:, model.classes_] = model.predict_proba(Xt)
        return found
    unit = float(data["unit"])  # its bounds are per column: columns in [-1, 1], and an intercept of its own
    model = models.LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=seed)
    return model.fit(X[:, 1:] * unit, y).predict(Xt[:, 1:] * unit)


def main(folder):
    """All files of a folder."""
    for path in sorted(Path(folder).glob("*.npz")):
        out = path.with_suffix(".out")
        with np.load(path) as data:
            found = {}
            for epsilon in data["epsilons"]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found[f"{epsilon:g}"] = predicted(data, float(epsilon), int(data["seed"]))
            with open(out, "wb") as file:
                np.savez(file, **found)


if __name__ == "__main__":
    main(sys.argv[1])
