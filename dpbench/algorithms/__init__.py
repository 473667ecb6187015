"""The algorithms by name: built in, from entry points, or from a user's file."""

from dpbench.algorithms.registry import SERVED, attribute, display_name, get, names, not_ours, reference, resolve

__all__ = ["SERVED", "attribute", "display_name", "get", "names", "not_ours", "reference", "resolve"]
