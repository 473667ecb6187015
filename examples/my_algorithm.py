"""A private optimiser of your own in one file: dp-gd whose iterates are averaged.

dpbench run --algo examples/my_algorithm.py:MyAlgorithm --eps 1
dpbench compare --data my.csv --target label --algo examples/my_algorithm.py:MyAlgorithm
"""

from typing import ClassVar

from dpbench.algorithms.base import Algorithm, BaseSettings, Count, Disclosure, Needs


class MyAlgorithm(Algorithm):
    """w ← w - (∇f(w) + N(σ²I))/L₁; returns the mean of the last half of the iterates."""

    name = "averaged-gd"
    title = "Averaged DP-GD"
    needs = Needs(losses=("logistic",))  # ‖x‖₂ ≤ 1 is the default bound on the rows
    # What a run may release: one under another label is a failed run. The formula is for readers.
    discloses = (Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),)
    tuning: ClassVar = {"T": [30, 100]}  # what compare tries

    class Settings(BaseSettings):
        T: Count = 100

    def run(self, problem, W, mechanisms, settings, trace):
        rho = mechanisms.budget.rho / settings.T  # zCDP adds up over the T releases
        total, counted = 0 * W, 0
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            gradient = mechanisms.gaussian(
                problem.data_gradient(W), sensitivity=problem.lipschitz / problem.n, rho=rho, label="gradient"
            )
            W = W - gradient / problem.smoothness
            if 2 * t > settings.T:
                total, counted = total + W, counted + 1
            trace(t, W, passes=t)
        return total / counted
