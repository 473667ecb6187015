"""Who draws the noise of a release."""

from __future__ import annotations

from dpbench.privacy.exact.release import ExactMechanisms, SeededMechanisms
from dpbench.privacy.mechanisms import Mechanisms


def mechanisms_of(exact: bool, seed: int | None) -> type[Mechanisms]:
    """The class to release through. exact: for the bytes."""
    if exact:
        return ExactMechanisms if seed is None else SeededMechanisms
    return Mechanisms
