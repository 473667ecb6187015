"""A problem as it is declared: what decides, without its data, whether a method's proof covers it."""

from __future__ import annotations

import math

from dpbench import datasets
from dpbench.problems import build, catalogue, losses, regularisers


class Declared:
    """n, d, loss, weights, the bound on the rows and the constants that follow; anything else from the data.

    `row_norm_l1` and `top_eigenvalue` are the largest that rows with ‖x‖₂ ≤ row_bound can have. Other attributes of
    `Problem` are those of the real one: NotAtHand where its data are not here.
    """

    def __init__(self, name: str):
        recipe = catalogue.recipe_of(name)
        spec = datasets.describe(recipe.dataset)
        self.name, self.n, self.d = name, spec.rows, spec.columns
        self.loss = losses.get(recipe.loss)
        weights = {"l1": 0.0, "l2": 0.0, "w2": 0.0} | recipe.weights
        self.l1, self.l2, self.w2 = weights["l1"], weights["l2"], weights["w2"]
        self.regularisers = regularisers.make(**recipe.weights)
        if recipe.row_bound is None or recipe.row_bound_norm != "l2" or None in (self.n, self.d):
            return  # nothing more is declared
        self.row_bound = 1.0 if recipe.row_bound == "unit" else recipe.row_bound
        self.row_norm, self.row_norm_l1 = self.row_bound, self.row_bound * math.sqrt(self.d)
        self.top_eigenvalue = self.row_bound**2
        self.lipschitz = self.loss.lipschitz * self.row_bound
        self.smoothness = self.loss.smoothness * self.row_bound**2
        self.objective_smoothness = self.smoothness + sum(r.smoothness for r in self.regularisers.values() if r.smooth)

    def __getattr__(self, attribute: str):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(build(self.__dict__["name"]), attribute)
