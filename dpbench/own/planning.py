"""A plan for a table of somebody's own: the arguments checked, the worlds made."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping

from dpbench import schema as schemas
from dpbench.errors import UserError, nearest, positive, several, silent
from dpbench.own import worlds as worlds_of
from dpbench.own.forecast import ROWS_ALLOWED, SCORES, TARGETS, Forecasts, Simulation, make
from dpbench.own.row_bound import RowBound, parse_mode
from dpbench.own.spec import Spec
from dpbench.schema import Schema, read_table


def plan(
    schema: str | os.PathLike[str] | Schema,
    n: int,
    *,
    epsilon: float | Iterable[float] = 1.0,
    delta: float | str | None = None,
    algorithm: str | Iterable[str] = (),
    like: str | os.PathLike[str] | None = None,
    share: Mapping[str, float] | None = None,
    signal: float | None = None,
    reach: str | None = None,
    worlds: int = 40,
    seed: int = 0,
    row_bound: RowBound | None = "auto",
    asked: Spec | None = None,
    jobs: int | None = None,
    progress: Callable[[str, float], None] = silent,
) -> Forecasts:
    """What each method releases and is expected to score on a table of this schema, before the table is touched.

    Releases and their noise follow from n, d, ε and δ, and are those that a fit is checked by. Scores are of the
    estimators, fitted to simulated tables that the schema allows, or to public rows.

    Args:
        schema: what is public of the table (`dpbench.schema`), or its TOML file.
        n: how many rows there will be, as a fit counts them: those without a label, or dropped by the schema, too; with
            a `unit` in the schema, how many persons.
            From 50 to 10¹².
        epsilon: one or several ε > 0. delta: as of the estimators; None takes n⁻².
        algorithm: methods to set beside the default, one or several names; "all" for each that is on the leaderboard,
            "auto" for the default alone. None: a few that are usual for the task.
        like: a csv, tsv or parquet file of public or older rows with the schema's columns, to draw worlds from.
        share: {class: share} that somebody guesses without the data; the other classes are drawn.
        signal: a guess of the AUC (for numbers R²) that a model without privacy has.
        reach: "auc=0.8", "accuracy=0.9", "r2=0.3" or "kept=0.9": also find the ε and the n at which the default
            reaches it. kept: the share of the AUC above 0.5, or of R², that a model without privacy has.
        worlds: how many tables are simulated. seed: of them and of the noise.
        row_bound: as of the estimators; a number is the schema's.
        asked: `model_.spec` of a fitted estimator: all worlds have its intercept, and its method its settings, l2 and
            class weights instead of the defaults.
        jobs: worker processes, all cores by default.
        progress: called with what is being done and the share of it.

    Raises:
        UserError, DataError: one line that names the argument.
    """
    described = schemas.load(schema)
    how = parse_mode(row_bound, described.row_bound)
    whole = (
        ("n", n, ROWS_ALLOWED),
        ("worlds", worlds, (2, 100_000)),
        ("seed", seed, (0, 2**64)),
        ("jobs", 1 if jobs is None else jobs, (1, 10_000)),
    )
    for name, value, (least, most) in whole:
        if not isinstance(value, int) or not least <= value <= most:
            raise UserError(f"{name} must be a whole number from {least:,} to {most:,}, got {value!r}")
    worlds_of.check_guesses(described, share or {}, signal)
    given = {"share": share, "signal": signal}
    if like is not None and (clash := [name for name, value in given.items() if value]):
        raise UserError(f"{clash[0]}: like takes it from the public rows; leave one of the two out")
    # Public rows are read by the schema too, so that a category means the same as in the fit.
    rows, first = None, asked is None or asked.intercept
    if like is not None:
        rows = worlds_of.rows_of(described, read_table(like, described), os.fspath(like), intercept=first)
    epsilons = sorted({positive("epsilon", each) for each in several(epsilon)})
    if not epsilons:
        raise UserError("epsilon: give one at least")
    frame = Simulation(described, int(n), delta, dict(share or {}), signal, rows, seed, how, asked)
    target = None if reach is None else parse_target(reach, "classes" if frame.classes else "numbers")
    return make(frame, epsilons, several(algorithm), worlds, target, jobs, progress)


def parse_target(text: str, task: str) -> tuple[str, float]:
    """("AUC", 0.8) of "auc=0.8"; UserError for anything that no model of the task can reach."""
    name, _, value = text.partition("=")
    scores = {key: score for key, score in TARGETS.items() if score in SCORES[task]}
    if name.lower() not in scores:
        raise UserError(f"reach: {name!r} is no score of this target; {nearest(name, scores)}, as in kept=0.9")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise UserError(f"reach: give a number between 0 and 1, as in {name}=0.8, got {text!r}")
    return scores[name.lower()], number
