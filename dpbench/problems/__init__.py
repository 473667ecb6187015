"""Problems: data + loss + regularisers, their constants and their optima."""

from dpbench.problems.problem import Problem

__all__ = ["Problem"]
