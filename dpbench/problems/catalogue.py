"""Problems by name: which data, loss, regularisers, bound on the rows and start each paper uses."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

from dpbench import datasets
from dpbench.datasets.recipes import clip_rows
from dpbench.errors import UserError, nearest
from dpbench.problems import losses, regularisers
from dpbench.problems.problem import BOUND_SLACK, Problem
from dpbench.problems.starts import RULES


@dataclass(frozen=True)
class Recipe:
    """What a problem name stands for.

    row_bound: declared bound on ‖x‖ in the norm `row_bound_norm`; "unit" means 1 if all rows obey it, else none.
    start: a key of `starts.RULES`.
    unit, target_unit: constants that rows and numeric targets are divided by. Rows beyond `row_bound` are then divided
        by what their norm exceeds it by.
    """

    dataset: str
    loss: str = "logistic"
    weights: dict[str, float] = field(default_factory=dict)
    row_bound: float | str | None = 1.0
    row_bound_norm: str = "l2"
    start: str = "unit"
    unit: float | None = None
    target_unit: float = 1.0


CATALOGUE: dict[str, Recipe] = {
    # second_order: no regulariser, ‖x‖₂ ≤ 1
    **{name: Recipe(name) for name in ("a1a", "adult", "covertype", "synthetic", "fmnist", "protein")},
    # its cubic-newton needs strong convexity; ‖w*‖ is 1.7 to 3.5 here, well inside that method's ball of radius 10
    **{f"{name}-ridge": Recipe(name, weights={"l2": 1e-2}) for name in ("a1a", "adult", "covertype", "synthetic")},
    # accelerated: λ‖w‖² with λ = 0.01 is (l2/2)‖w‖² with l2 = 2λ; ‖u‖₁ ≤ d = 20
    "accelerated": Recipe("accelerated", weights={"l2": 0.02}, row_bound=20.0, row_bound_norm="l1", start="tens"),
    # nonconvex: losses A and B
    "covertype12-logistic": Recipe("covertype12", weights={"w2": 1e-3}, start="normal"),
    "ijcnn-logistic": Recipe("ijcnn", weights={"w2": 1e-3}, start="normal"),
    "covertype12-sigmoid": Recipe("covertype12", loss="sigmoid", weights={"l2": 1e-3}, start="normal"),
    "ijcnn-sigmoid": Recipe("ijcnn", loss="sigmoid", weights={"l2": 1e-3}, start="normal"),
    # zeroth_order: (a) and (b) of its study; never from 0, where phase retrieval is flat by symmetry
    **{f"phase-{d}": Recipe(f"phase-{d}", loss="phase") for d in (5, 20, 100)},
    "a1a-ramp": Recipe("a1a-all", loss="ramp", start="zero"),
    # greedy_coordinate: its algorithms clip, so rows need no bound. The weights are not in the paper: see
    # experiments/greedy_coordinate/weights.py; l2 = (mean of M_j)/n, l1 from the published number of non-zeros
    "log1": Recipe("log1", weights={"l2": 2.5e-4}, row_bound=None, start="zero"),
    "log2": Recipe("log2", weights={"l2": 2.5e-4}, row_bound=None, start="zero"),
    "square": Recipe("square", loss="squared", weights={"l1": 41.23}, row_bound=None, start="zero"),
    "california": Recipe("california", loss="squared", weights={"l1": 0.1120}, row_bound=None, start="zero"),
    "mtp": Recipe("mtp", loss="squared", weights={"l2": 2.247e-4}, row_bound=None, start="zero"),
    "mtp-qsar": Recipe("mtp-qsar", loss="squared", weights={"l2": 2.272e-4}, row_bound=None, start="zero"),
    "madelon": Recipe("madelon", weights={"l2": 9.615e-5}, row_bound=None, start="zero"),
    "madelon-l1": Recipe("madelon", weights={"l1": 0.05139}, row_bound=None, start="zero"),
    "dorothea": Recipe("dorothea", weights={"l1": 0.05653}, row_bound=None, start="zero"),
}


def _in_units(name: str, unit: float, target_unit: float = 1.0) -> Recipe:
    """The problem `name` with ‖x‖₂ ≤ 1 in its unit: w is measured in target_unit/unit, the weights go with it."""
    base = CATALOGUE[name]
    scales = {"l1": unit * target_unit, "l2": unit**2}
    weights = {key: weight / scales[key] for key, weight in base.weights.items()}
    return replace(base, weights=weights, row_bound=1.0, unit=unit, target_unit=target_unit)


# leaderboard: the columns of these are standardised, so ‖x‖ is about √d, the unit; rows a little longer are shortened.
CATALOGUE |= {
    "log1-unit": _in_units("log1", 10.0),
    "madelon-unit": _in_units("madelon", 501**0.5),
    "square-unit": _in_units("square", 1000**0.5, target_unit=200.0),
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
        raise UserError(f"problem: there is no {name}; {nearest(name, known)}")
    loss = "squared" if datasets.describe(name).task == "regression" else "logistic"
    return Recipe(name, loss=loss, row_bound="unit", start="zero" if datasets.is_own(name) else "unit")


def _written_out(dataset: str, words: str) -> Recipe:
    """The recipe of "DATASET:LOSS[,l1=WEIGHT][,l2=WEIGHT][,w2=WEIGHT]"; UserError for anything else."""
    natural = recipe_of(dataset)
    loss, *pairs = words.split(",")
    losses.get(loss)
    weights = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            weights[name] = float(value)
        except ValueError:
            raise UserError(f"problem {dataset}:{words}: {pair!r} is not NAME=WEIGHT") from None
    regularisers.make(**weights)
    return replace(natural, loss=loss, weights=weights)


def dataset_of(name: str) -> str:
    """The name of the data set behind a problem."""
    return recipe_of(name).dataset


def start_of(name: str) -> str:
    """The rule of `starts` that a problem's runs start by."""
    return recipe_of(name).start


def build(name: str) -> Problem:
    """The problem called `name`, one object per process; NotAtHand if its data are not here."""
    recipe = recipe_of(name)
    return _build(name, datasets.load(recipe.dataset))


@functools.lru_cache(maxsize=32)
def _build(name: str, data: datasets.Dataset) -> Problem:
    recipe = recipe_of(name)
    bound = recipe.row_bound
    if bound == "unit":
        bound = 1.0 if data.row_norm <= 1 + BOUND_SLACK else None
    X, y, data_hash = data.X, data.y, data.sha256
    if recipe.unit is not None:
        X, y = clip_rows(X / (recipe.unit * bound)) * bound, y / recipe.target_unit
        data_hash = f"{data_hash} in units {recipe.unit!r}, {recipe.target_unit!r}, at most {bound!r}"
    return Problem(
        X,
        y,
        loss=recipe.loss,
        **recipe.weights,
        row_bound=bound,
        row_bound_norm=recipe.row_bound_norm,
        name=name,
        folder=data.folder,
        data_hash=data_hash,
    )
