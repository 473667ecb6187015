"""The algorithms by name: built in, from entry points, or from a user's file."""

from dpbench.algorithms.registry import attribute, display_name, get, names, not_ours, reference, resolve

__all__ = ["attribute", "display_name", "get", "names", "not_ours", "reference", "resolve"]
