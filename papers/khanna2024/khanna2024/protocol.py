"""The review's protocol as methods of dpbench: a run is 20 splits, every setting of the grid, and a choice among them.

A run draws what the review's parent process draws: the state that all its pools begin with. Rows are split 60 : 20 : 20
by `train_test_split` with the seeds 0 to 19; the setting with the best mean over the validation rows is reported
(inferred: the released files keep no settings).
"""

import itertools
import json
from typing import Literal

import numpy as np
from dpbench.algorithms import base as dp
from dpbench.privacy.noise import stream
from sklearn.model_selection import train_test_split

from khanna2024.fits import FITS, Draws, Fit

TRIALS, FIRST = 20, 15  # splits, and how many of them are a worker's first: a pool has 15
STEPS = (1, 2, 5, 10, 20, 50, 100)
SPARSE, RATES, CUTS = (1, 2, 5, 10), (1e-3, 1e-2, 1e-1), (1.0, 10.0, 100.0)
METHODS = {  # title, and the grid: T, s, η, k (lin_autoproc.py, log_autoproc.py)
    "fw": ("FW", STEPS, (1,), (0.0,), (1.0,)),
    "polyfw": ("PolyFW", (1,), (1,), (0.0,), (1.0,)),
    "htfw": ("HTFW", STEPS, (1,), (0.0,), CUTS),
    "htpl": ("HTPL", STEPS, (1,), (0.0,), (1.0,)),
    "dpight": ("DP-IGHT", STEPS, SPARSE, RATES, (1.0,)),
    "htsl": ("HTSL", STEPS, SPARSE, RATES, (1.0,)),
    "htso": ("HTSO", STEPS, SPARSE, RATES, CUTS),
}
TITLES = {name: title for name, (title, *_) in METHODS.items()}
FIXED = ((10,), (5,), (0.1,), (1.0,))  # untuned: chosen by us before any run, from no data


def split(n: int, trial: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test rows of a trial."""
    train, rest = train_test_split(np.arange(n), train_size=0.6, random_state=trial)
    return train, *train_test_split(rest, train_size=0.5, random_state=trial)


def score(X: np.ndarray, y: np.ndarray, w: np.ndarray, logistic: bool) -> np.ndarray:
    """(V, S) Mean squared errors; for labels the accuracy, where 0 is the class of a tie."""
    z = X @ w
    return ((z > 0) == (y > 0)).mean(axis=1) if logistic else ((z - y) ** 2).mean(axis=1)


class Review(dp.Algorithm):
    """What the methods share.

    noise: shared, as released: 15 trials begin at one state of the generator and draw the same noise, the other 5 go on
    from where the first of them ended, and every setting and every ε begins there again; or independent.
    calibration: as released, or exact (see `fits`). tuned: over the grid, by validation rows; else one fixed setting.
    """

    home = "khanna2024"
    relation = dp.Relation.REPLACE_ONE
    private = False
    unpaid = "the choice of the setting by validation rows, and 20 fits of overlapping rows"
    paper_accounting = "tight"
    needs = dp.Needs(losses=("squared", "logistic"))
    diagnostics = (*dp.MEASURED, dp.Diagnostic("notes", "the chosen T, s, η and k, as JSON"))

    class Settings(dp.BaseSettings, frozen=True):
        """See the class."""

        noise: Literal["independent", "shared"] = "independent"
        calibration: Literal["exact", "published"] = "exact"
        tuned: bool = True

    def run(self, problem, W, mechanisms, settings, trace):
        method, logistic = self.name.removeprefix("review-"), problem.loss.binary
        X, y = np.asarray(problem.X), np.asarray(problem.y)[:, None]
        y = (y + 1) / 2 if logistic else y
        parts = [np.stack(rows) for rows in zip(*(split(len(X), trial) for trial in range(TRIALS)), strict=True)]
        keys = mechanisms.releases.run_keys
        if settings.noise == "shared":  # of the script's data set: the same at every ε
            keys = [f"{problem.name}/{seed}" for seed in mechanisms.seeds] or keys
        found = [
            self.reported(method, logistic, [(X[rows], y[rows]) for rows in parts], mechanisms, key, settings)
            for key in keys
        ]
        tests = np.stack([test for test, *_ in found])
        columns = {"measured": tests.mean(axis=1), "measured_error": tests.std(axis=1, ddof=1) / TRIALS**0.5}
        return dp.RunResult(np.stack([w for _, w, _ in found]), columns | {"notes": [note for *_, note in found]})

    def reported(self, method, logistic, parts, mechanisms, key, settings):
        """The test scores (20,) at the chosen setting, its weights in the first trial, and the setting."""
        (X, y), *scored = parts
        axes = METHODS[method][1:] if settings.tuned else FIXED
        eta, k = (np.array(one) for one in zip(*itertools.product(*axes[2:]), strict=True))
        shared, factor = (
            settings.noise == "shared",
            0.0 if mechanisms.releases.noiseless else mechanisms.releases.planted,
        )
        generator, best = stream(key, "noise"), None
        for T, s in itertools.product(*axes[:2]):
            generator = stream(key, "noise") if shared else generator
            w = np.concatenate([
                FITS[method](Fit(
                    X[trials], y[trials], logistic, mechanisms.budget, settings.calibration == "exact",
                    Draws(generator, (len(X[trials]), len(eta)), shared, factor), T, s, eta, k,
                ))
                for trials in (slice(FIRST), slice(FIRST, None))
            ])  # fmt: skip
            validated, tested = (score(*part, w, logistic) for part in scored)
            means = validated.mean(axis=0) * (-1 if logistic else 1)
            at = int(np.argmin(np.where(np.isnan(means), np.inf, means)))
            if best is None or means[at] < best[0]:
                note = json.dumps({"T": T, "s": s, "eta": eta[at], "k": k[at]})
                best = means[at], tested[:, at], w[0, :, at], note
        return best[1:]


for _name, _title in TITLES.items():  # what the entry points name: Fw, Polyfw, …
    _facts = {"name": f"review-{_name}", "title": _title, "__doc__": FITS[_name].__doc__, "__module__": __name__}
    globals()[_name.capitalize()] = type(_name.capitalize(), (Review,), _facts)
