"""Problems: data + loss + regularisers, their constants and their optima."""

from dpbench.problems.catalogue import build, register
from dpbench.problems.optimum import NoOptimum, Optimum
from dpbench.problems.problem import Problem
from dpbench.problems.regularisers import Declaration

__all__ = ["Declaration", "NoOptimum", "Optimum", "Problem", "build", "register"]
