"""Models of other libraries on prepared rows, for `benchmarks.other_libraries`: no part of dpbench is loaded.

`python -m dpbench_rivals.predictions FOLDER MODEL` reads every FOLDER/NAME.npz and writes FOLDER/NAME.out: an array "ε"
for each, what is predicted for the test rows: (m, k) probabilities of classes 0 to k-1, or (m,). X, Xt: rows of
‖x‖₂ ≤ 1, an intercept first; times unit their other columns are in [-1, 1]. table, tablet: the same rows as columns of
the file, categories by their number. ridge: of dpbench's rule at each ε, on sums.
"""

import sys
import warnings
from pathlib import Path

import numpy as np


def logistic(data, epsilon, seed, C=1.0):
    """diffprivlib's LogisticRegression, ‖x‖₂ ≤ 1 declared; at C = 1 all is its default."""
    from diffprivlib.models import LogisticRegression

    return classes(
        data, LogisticRegression(epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=False, max_iter=1000,
                                 random_state=seed), data["X"], data["Xt"],
    )  # fmt: skip


def linear(data, epsilon, seed):
    """diffprivlib's LinearRegression: bounds are per column, and it has an intercept of its own."""
    from diffprivlib.models import LinearRegression

    X, Xt = columns(data)
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=seed)
    return model.fit(X, data["y"]).predict(Xt)


def at_our_ridge(data, epsilon, seed):
    """The logistic regression at dpbench's ridge, of two classes."""
    (ridge,) = data["ridge"][data["epsilons"] == epsilon]
    return logistic(data, epsilon, seed, C=1 / float(ridge))


def bayes(data, epsilon, seed):
    """diffprivlib's GaussianNB at its defaults."""
    from diffprivlib.models import GaussianNB

    return classes(data, GaussianNB(epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed), *columns(data))


def forest(data, epsilon, seed):
    """diffprivlib's RandomForestClassifier at its defaults: ten trees of depth 5."""
    from diffprivlib.models import RandomForestClassifier

    known = list(range(int(data["classes"])))
    model = RandomForestClassifier(epsilon=epsilon, bounds=(-1.0, 1.0), classes=known, random_state=seed)
    return classes(data, model, *columns(data))


def ebm(data, epsilon, seed):
    """InterpretML's DP-EBM (Nori et al. 2021) at its defaults, of numbers and of two classes, at the same δ."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    nominal = data["nominal"]
    X, Xt = data["table"].astype(object), data["tablet"].astype(object)
    for part in (X, Xt):
        part[:, nominal] = part[:, nominal].astype(float).astype(str)
    public = {
        "epsilon": epsilon, "delta": float(data["delta"]), "random_state": seed, "n_jobs": 1,
        "feature_types": ["nominal" if one else "continuous" for one in nominal],
        "privacy_bounds": {i: tuple(ends) for i, ends in enumerate(data["bounds"]) if not nominal[i]},
    }  # fmt: skip
    if data["classes"]:
        return classes(data, DPExplainableBoostingClassifier(**public), X, Xt)
    return DPExplainableBoostingRegressor(**public, privacy_target_min=-1.0, privacy_target_max=1.0).fit(
        X, data["y"]
    ).predict(Xt)  # fmt: skip


MODELS = {  # of classes, of numbers
    "diffprivlib": (logistic, linear),
    "diffprivlib, our ridge": (at_our_ridge, None),
    "diffprivlib, naive Bayes": (bayes, None),
    "diffprivlib, random forest": (forest, None),
    "DP-EBM": (ebm, ebm),
}


def columns(data):
    """(X, Xt) with columns in [-1, 1] and no intercept."""
    return tuple(data[name][:, 1:] * float(data["unit"]) for name in ("X", "Xt"))


def classes(data, model, X, Xt):
    """(m, k) probabilities for the rows Xt by a model fitted to X; 0 for a class it has not seen."""
    found = np.zeros((len(Xt), int(data["classes"])))
    model.fit(X, data["y"])
    found[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(Xt)
    return found


def main(folder, name):
    """All files of a folder."""
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path) as data:
            data = dict(data)
        model = MODELS[name][not data["classes"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {f"{one:g}": model(data, float(one), int(data["seed"])) for one in data["epsilons"]}
        with open(path.with_suffix(".out"), "wb") as file:
            np.savez(file, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
