"""Problems: data + loss + regularisers, their constants and their optima."""

from dpbench.problems.catalogue import build, register
from dpbench.problems.problem import Problem

__all__ = ["Problem", "build", "register"]
