"""The algorithms by name: built in, from entry points, or from a user's file."""

from dpbench.algorithms.registry import display_name, get, names, reference, resolve

__all__ = ["display_name", "get", "names", "reference", "resolve"]
