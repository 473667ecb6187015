"""The privacy profile and the trade-off curve of one run, as csv and figure."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from dpbench.privacy.check import profile, trade_off
from dpbench.privacy.ledger import Composition, Relation
from dpbench.run import execute
from dpbench.run.row import Row

DELTAS = np.geomspace(1e-12, 0.5, 60)
ALPHAS = np.linspace(0, 1, 201)


def privacy_profile(key: str, *, results: str | os.PathLike[str] = "results") -> list[Path]:
    """The privacy profile ε(δ) and the trade-off curve of the run whose row has `key`, as csv and png; their paths.

    key: of a row in `results`, or its beginning. The run is made again, for what it planned to release; the files are
    in `results/profiles`. Of a fit: `Fit.profile`, `Fit.trade_off`.
    """
    row = execute.row_of(key, results)
    composition, budget = execute.planned(row)
    return _save(row, composition, budget.relation, Path(results) / "profiles")


def _save(row: Row, composition: Composition, relation: Relation, folder: Path) -> list[Path]:
    """profile-KEY.csv (curve, x, y) and profile-KEY.png in `folder`; their paths."""
    from matplotlib import pyplot

    from dpbench import files
    from dpbench.study.style import figure_style

    epsilons, betas = profile(composition, relation, DELTAS), trade_off(composition, relation, ALPHAS)
    table = pd.concat(
        [
            pd.DataFrame({"curve": "profile: ε at δ", "x": DELTAS, "y": epsilons}),
            pd.DataFrame({"curve": "trade-off: β at α", "x": ALPHAS, "y": betas}),
        ]
    )
    stem = folder / f"profile-{row.key[:12]}"
    with files.replacing(stem.with_suffix(".csv")) as staged:
        table.to_csv(staged, index=False, float_format="%.8g")
    with figure_style():
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(7.0, 3.0), layout="constrained")
        shown = np.isfinite(epsilons)
        left.plot(DELTAS[shown], epsilons[shown], color="black")
        if row.delta:
            left.plot([row.delta], [row.epsilon or 0.0], "o")
        left.set(xscale="log", xlabel="δ", ylabel="ε", title="Profile; dot: what was asked for")
        right.plot(ALPHAS, betas, color="black")
        right.plot([0, 1], [1, 0], color="grey", linestyle=":", linewidth=1)
        right.set(xlabel="false positives", ylabel="false negatives", title="Trade-off; dotted: no information")
        figure.suptitle(f"{row.algorithm} on {row.problem}, ε = {row.epsilon:g}, {relation} neighbours")
        with files.replacing(stem.with_suffix(".png")) as staged:
            figure.savefig(staged, format="png", dpi=200)
        pyplot.close(figure)
    return [stem.with_suffix(".csv"), stem.with_suffix(".png")]
