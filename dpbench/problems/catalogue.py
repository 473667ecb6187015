"""Problems by name: which data, loss, regularisers, bound on the rows and start each paper uses.

Where a run starts: a rule per problem, drawn from the job's own stream.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpbench import datasets
from dpbench.datasets import bounded_tables, drawn
from dpbench.datasets.recipes import clip_rows
from dpbench.errors import UserError, nearest
from dpbench.problems import losses, regularisers
from dpbench.problems.problem import Problem
from dpbench.problems.regularisers import Declaration
from dpbench.problems.risk import BOUND_SLACK


def _unit(d: int, generator: np.random.Generator) -> np.ndarray:
    w = generator.standard_normal(d)
    return w / np.linalg.norm(w)


RULES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "zero": lambda d, generator: np.zeros(d),
    "unit": _unit,  # uniform on the unit sphere (second_order)
    "normal": lambda d, generator: generator.standard_normal(d),  # nonconvex
    "tens": lambda d, generator: np.full(d, 10.0),  # accelerated
}


def draw(rule: str, d: int, generator: np.random.Generator) -> np.ndarray:
    """A starting point (d,) by `rule`, a key of RULES; UserError for an unknown one."""
    if rule not in RULES:
        raise UserError(f"unknown start {rule!r}: {nearest(rule, RULES)}")
    return RULES[rule](d, generator)


SPLIT = 20261123  # seeds the choice of the rows kept apart: their positions decide, nothing in them


@dataclass(frozen=True)
class Recipe:
    """What a problem name stands for.

    row_bound: declared bound on ‖x‖ in the norm `row_bound_norm`; "unit" means 1 if all rows obey it, else none.
    start: a key of `catalogue.RULES`.
    unit, target_unit: constants that rows and numeric targets are divided by. Rows beyond `row_bound` are then divided
        by what their norm exceeds it by.
    apart: one row in `apart`, chosen by position, is kept for scores of what was trained on the others; 0 for none.
        Where rows are of persons, one person in `apart`, with one row of each.
    fold: which of the `apart` disjoint sets of such rows: with all of them, cross-validation.
    version: raised whenever a change other than of the data gives the name another meaning; part of a run's key.
    """

    dataset: str
    loss: str = "logistic"
    weights: dict[str, float] = field(default_factory=dict)
    row_bound: float | str | None = 1.0
    row_bound_norm: str = "l2"
    start: str = "unit"
    unit: float | None = None
    target_unit: float = 1.0
    apart: int = 0
    fold: int = 0
    version: int = 1

    @property
    def spec(self) -> datasets.DatasetSpec:
        """Of the data set: UserError for one that is not registered, NotAtHand for own data that are gone."""
        return datasets.describe(self.dataset)

    @property
    def declared(self) -> dict[str, Any]:
        """Loss, weights and the norm of the rows' bound, as a `Declaration` takes them."""
        return {"loss": self.loss, **self.weights, "row_bound_norm": self.row_bound_norm}

    @property
    def rows(self) -> int | None:
        """n: how many rows, or persons, there are to train on; None where it takes the data to know."""
        rows = self.spec.count
        return rows if rows is None or not self.apart else rows - rows // self.apart


CATALOGUE: dict[str, Recipe] = {
    # second_order: no regulariser, ‖x‖₂ ≤ 1. Its own scaling of adult and covertype is "-max", by the columns' maxima
    **{name: Recipe(name) for name in ("a1a", "adult-max", "covertype-max", "synthetic", "fmnist", "protein")},
    **{name: Recipe(name) for name in ("adult", "covertype")},  # standardised: the leaderboard's
    # its cubic-newton needs strong convexity; ‖w*‖ is 1.7 to 3.5 here, well inside that method's ball of radius 10
    **{f"{name}-ridge": Recipe(name, weights={"l2": 1e-2}) for name in ("a1a", "adult", "covertype", "synthetic")},
    # accelerated: λ‖w‖² with λ = 0.01 is (l2/2)‖w‖² with l2 = 2λ; ‖u‖₁ ≤ d = 20
    **{
        name: Recipe(name, weights={"l2": 0.02}, row_bound=20.0, row_bound_norm="l1", start="tens")
        for name in ("accelerated", "accelerated-2020")  # our draw, and the authors'
    },
    # X / 2: a wrong recipe, to see that it is not taken for the published one
    "accelerated-2020-half": Recipe(
        "accelerated-2020", weights={"l2": 0.02}, row_bound=20.0, row_bound_norm="l1", start="tens", unit=2.0
    ),
    # nonconvex: losses A and B. On ijcnn the rows carry the standardised label and are divided by 3, as the authors do.
    # Up to ‖x‖₂ = 3.22 the sigmoid keeps B_g = B_H = 1, see algorithms/nonconvex_base.py
    "covertype12-logistic": Recipe("covertype12", weights={"w2": 1e-3}, start="normal"),
    "ijcnn-logistic": Recipe("ijcnn-unclipped", weights={"w2": 1e-3}, start="normal", unit=1.0, version=2),
    # as the authors leave them, none longer than 5 and 11: only for runs that claim no guarantee
    "covertype12-logistic-unclipped": Recipe(
        "covertype12-unclipped", weights={"w2": 1e-3}, row_bound=5.0, start="normal"
    ),
    "ijcnn-logistic-unclipped": Recipe(
        "ijcnn-unclipped", weights={"w2": 1e-3}, row_bound=11.0, start="normal", version=2
    ),
    "covertype12-sigmoid-unclipped": Recipe(
        "covertype12-unclipped", loss="sigmoid", weights={"l2": 1e-3}, row_bound=5.0, start="normal"
    ),
    "ijcnn-sigmoid-unclipped": Recipe(
        "ijcnn-unclipped", loss="sigmoid", weights={"l2": 1e-3}, row_bound=11.0, start="normal"
    ),
    # X / 6: a wrong recipe, to see that it is not taken for the published one
    "ijcnn-logistic-sixth": Recipe("ijcnn-unclipped", weights={"w2": 1e-3}, row_bound=11.0, start="normal", unit=2.0),
    "covertype12-sigmoid": Recipe("covertype12", loss="sigmoid", weights={"l2": 1e-3}, start="normal"),
    "ijcnn-sigmoid": Recipe(
        "ijcnn-weighted", loss="sigmoid", weights={"l2": 1e-3}, row_bound=3.22, start="normal", unit=3.0
    ),
    # zeroth_order: (a) and (b) of its study; never from 0, where phase retrieval is flat by symmetry and every row's
    # ramp loss has its kink
    **{name: Recipe(name, loss="phase") for name in ("phase-5", "phase-20", "phase-100", "phase-5-long")},
    "a1a-ramp": Recipe("a1a-all", loss="ramp", start="normal", version=2),
    # greedy_coordinate: its algorithms clip, so rows need no bound. The paper prints no λ: those of its first author's
    # slides, which give the published numbers of non-zeros and starts; mtp's is not known: (mean of M_j)/n.
    "log1": Recipe("log1", weights={"l2": 1e-3}, row_bound=None, start="zero"),
    "log2": Recipe("log2", weights={"l2": 1e-3}, row_bound=None, start="zero"),
    "square": Recipe("square", loss="squared", weights={"l1": 30.0}, row_bound=None, start="zero"),
    "california": Recipe("california", loss="squared", weights={"l1": 0.1}, row_bound=None, start="zero", version=2),
    "mtp": Recipe("mtp", loss="squared", weights={"l2": 2.247e-4}, row_bound=None, start="zero"),
    "mtp-qsar": Recipe("mtp-qsar", loss="squared", weights={"l2": 2.272e-4}, row_bound=None, start="zero"),
    "madelon": Recipe("madelon", weights={"l2": 1.0}, row_bound=None, start="zero", version=2),
    "madelon-l1": Recipe("madelon", weights={"l1": 0.05}, row_bound=None, start="zero", version=2),
    "dorothea": Recipe("dorothea", weights={"l1": 0.01}, row_bound=None, start="zero"),
}


def _in_units(base: Recipe, unit: float, target_unit: float = 1.0) -> Recipe:
    """The problem with ‖x‖₂ ≤ 1 in its unit: w is measured in target_unit/unit, the weights go with it."""
    scales = {"l1": unit * target_unit, "l2": unit**2}
    weights = {key: weight / scales[key] for key, weight in base.weights.items()}
    return replace(base, weights=weights, row_bound=1.0, start="zero", unit=unit, target_unit=target_unit)


# leaderboard: the columns of these are standardised, so ‖x‖ is about √d, the unit; rows a little longer are shortened.
# l2 = (mean of M_j)/n, l1 such that the optimum has 7 non-zeros.
CATALOGUE |= {
    # the census prints 500,001 $ for all that is more: a public bound on the target, its unit
    "california-unit": Recipe(
        "california", loss="squared", weights={"l2": 1e-3}, start="zero", unit=8**0.5, target_unit=5.00001
    ),
    "log1-unit": _in_units(Recipe("lognormal", weights={"l2": 2.5e-4}), 10.0),
    "madelon-unit": _in_units(Recipe("madelon", weights={"l2": 9.615e-5}), 501**0.5),
    "square-unit": _in_units(
        Recipe("sparse-linear", loss="squared", weights={"l1": 41.23}), 1000**0.5, target_unit=200.0
    ),
}
# its further problems, for twenty and more: units are public, √d for standardised columns; numeric targets in units of
# 3 standard deviations. Ridges are the same for all of a kind, l1 such that a few coordinates are left.
_SQUARED = {
    "california": ("california-centred", 8),
    "mtp": ("mtp-qsar", 202),
    "diabetes": ("diabetes", 10),
    **{f"conditioned-{kappa}": (f"conditioned-{kappa}", 40) for kappa in (10, 100, 1000)},
}
CATALOGUE |= {
    "ijcnn-ridge": Recipe("ijcnn", weights={"l2": 1e-3}, start="zero"),
    "protein-ridge": Recipe("protein-sample", weights={"l2": 1e-2}, start="zero"),
    "breast-cancer-ridge": Recipe("breast-cancer", weights={"l2": 1e-2}, start="zero", unit=31**0.5),
    "digits-ridge": Recipe("digits", weights={"l2": 1e-3}, start="zero", unit=65**0.5),
    **{
        f"{name}-ridge": Recipe(
            data, loss="squared", weights={"l2": 1e-3}, start="zero", unit=columns**0.5, target_unit=3.0
        )
        for name, (data, columns) in _SQUARED.items()
    },
    "california-l1": Recipe(
        "california-centred", loss="squared", weights={"l1": 0.01}, start="zero", unit=8**0.5, target_unit=3.0
    ),
    "madelon-l1-unit": Recipe("madelon", weights={"l1": 2e-3}, start="zero", unit=501**0.5),
    "digits-l1": Recipe("digits", weights={"l1": 5e-3}, start="zero", unit=65**0.5),
    "dorothea-unit": Recipe("dorothea", weights={"l1": 2e-3}, start="zero", unit=30.0),
}
# its drawn problems, one per data set of datasets/drawn.py, and its real tables in human bounds, a quarter of
# the rows held out; the latter have their units already
_LASSO = {"gen-lasso": 2e-3, "gen-wide": 5e-4, "gen-very-wide": 1e-3}
CATALOGUE |= {
    spec.name: Recipe(
        spec.name,
        loss="squared" if spec.task == "regression" else "logistic",
        weights={"l1": _LASSO[spec.name]} if spec.name in _LASSO else {"l2": 1e-3},
        start="zero",
        unit=(10.0 if spec.name == "gen-very-wide" else (spec.columns or 1) ** 0.5) if drawn else None,
        target_unit=3.0 if drawn and spec.task == "regression" else 1.0,
        apart=0 if drawn else 4,
    )
    for drawn, specs in ((True, drawn.GENERATED_SPECS), (False, bounded_tables.SPECS))
    for spec in specs
}


def register(name: str, recipe: Recipe) -> None:
    """Add a problem; UserError if the name stands for another one already, or the recipe names unknown things."""
    if CATALOGUE.get(name, recipe) != recipe:
        raise UserError(f"problem: the name {name} is taken; choose another")
    losses.get(recipe.loss)
    regularisers.make(**recipe.weights)
    if recipe.start not in RULES:
        raise UserError(f"problem {name}: unknown start {recipe.start!r}; known: {', '.join(sorted(RULES))}")
    CATALOGUE[name] = recipe


def names() -> list[str]:
    """The registered problem names, sorted. Any other data set name is a problem too, see `recipe_of`."""
    return sorted(CATALOGUE)


def recipe_of(name: str) -> Recipe:
    """The recipe of a problem; for the bare name of a data set, its natural loss without regulariser.

    Raises UserError, with the nearest name, if `name` is neither.
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    dataset, colon, words = name.partition(":")
    if colon:
        return _written_out(dataset, words)
    known = sorted({*CATALOGUE, *datasets.names()})
    if name not in known and not datasets.is_own(name):
        if name.lower().endswith((".csv", ".tsv", ".parquet")):
            raise UserError(f"there is no problem {name!r}; for a file of yours use dpbench compare --data FILE")
        raise UserError(f"there is no problem {name!r}; {nearest(name, known)}")
    loss = "squared" if datasets.describe(name).task == "regression" else "logistic"
    return Recipe(name, loss=loss, row_bound="unit", start="zero" if datasets.is_own(name) else "unit")


def _written_out(dataset: str, words: str) -> Recipe:
    """The recipe of "DATASET:LOSS[,l1=WEIGHT][,l2=WEIGHT][,w2=WEIGHT][,apart=N[,fold=J]]"; UserError for anything else.

    apart: one row in so many is kept for scores, and fold says which of these, see `Recipe`.
    """
    natural = recipe_of(dataset)
    loss, *pairs = words.split(",")
    losses.get(loss)
    weights, counts = {}, {"apart": natural.apart, "fold": natural.fold}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name in counts:
            low, high = (2, 1000) if name == "apart" else (0, counts["apart"] - 1)
            if not (value.isdecimal() and low <= int(value) <= high):
                most = f"from {low} to {high}" if name == "apart" else "below that of apart before it"
                raise UserError(f"problem {dataset}:{words}: {name} takes a whole number {most}, got {value!r}")
            counts[name] = int(value)
            continue
        try:
            weights[name] = float(value)
        except ValueError:
            raise UserError(f"problem {dataset}:{words}: {pair!r} is not NAME=WEIGHT") from None
    regularisers.make(**weights)
    return replace(natural, loss=loss, weights=weights, apart=counts["apart"], fold=counts["fold"])


def declare(name: str) -> Declaration:
    """What is known of a problem without its data; the problem itself where its size or its rows' bound is not.

    Raises NotAtHand if that needs data that are not here.
    """
    recipe = recipe_of(name)
    spec = recipe.spec
    # Without a declared bound the largest norm is measured, which takes the rows.
    if recipe.row_bound is None or recipe.rows is None or spec.columns is None:
        return build(name)
    bound = 1.0 if isinstance(recipe.row_bound, str) else recipe.row_bound
    return Declaration(recipe.rows, spec.columns, **recipe.declared, row_bound=bound, name=name)


def build(name: str) -> Problem:
    """The problem called `name`, one object per process; NotAtHand if its data are not here."""
    recipe = recipe_of(name)
    return _build(name, datasets.load(recipe.dataset))


@functools.lru_cache(maxsize=32)
def _build(name: str, data: datasets.Dataset) -> Problem:
    recipe = recipe_of(name)
    unit = 1.0 if data.row_norm <= 1 + BOUND_SLACK else None
    bound = unit if isinstance(recipe.row_bound, str) else recipe.row_bound
    X, y, data_hash = data.X, data.y, data.sha256
    if recipe.unit is not None and bound is not None:
        # Units are public constants; the clip takes each row alone, so neither needs a release.
        X, y = clip_rows(X / (recipe.unit * bound)) * bound, y / recipe.target_unit
        # The optimum's cache is keyed by it: other units are other data.
        data_hash = f"{data_hash} in units {recipe.unit!r}, {recipe.target_unit!r}, at most {bound!r}"
    held_out, whose = None, data.whose
    if recipe.apart:
        # A split of its own seed and of n alone: the same rows are kept apart in every run and under every loss.
        draw = np.random.Generator(np.random.PCG64DXSM(SPLIT))
        each = np.arange(len(y)) if whose is None else np.unique(whose, return_inverse=True)[1]
        n = int(each.max()) + 1
        order = np.roll(draw.permutation(n), -recipe.fold * (n // recipe.apart))
        apart = np.isin(each, order[: n // recipe.apart])
        away, kept = np.flatnonzero(apart), np.flatnonzero(~apart)
        if whose is not None:
            # So that each counts once, and by no rule of the file's order.
            place, whose = draw.permutation(away), whose[kept]
            away = np.sort(place[np.unique(each[place], return_index=True)[1]])
        held_out, X, y = (X[away], y[away]), X[kept], y[kept]
        data_hash = f"{data_hash} without one row in {recipe.apart}"
        if recipe.fold:
            data_hash = f"{data_hash}, fold {recipe.fold}"
    declared = recipe.declared | {"row_bound": bound, "name": name}
    given = {"folder": data.folder, "data_hash": data_hash, **declared}
    problem = Problem(X, y, **given) if whose is None else _counted_once(X, y, whose, **given)
    problem.held_out = held_out
    return problem


def _counted_once(*of: Any, **given: Any) -> Problem:
    from dpbench.problems.persons import CountedOnce  # exact sums, which others start without

    return CountedOnce(*of, **given)
