"""Who draws the noise of a release."""

from __future__ import annotations

from dpbench.privacy.exact.releases import ExactMechanisms, SeededMechanisms
from dpbench.privacy.mechanisms import Mechanisms


def mechanisms_of(exact: bool, seed: int | None, release_noise: str | None) -> type[Mechanisms]:
    """The class to release through. exact: for the bytes; release_noise: as of `dpbench.fit`, otherwise."""
    if exact:
        return ExactMechanisms if seed is None else SeededMechanisms
    if release_noise == "opendp":
        from dpbench.privacy.opendp import OpenDPMechanisms

        return OpenDPMechanisms
    return Mechanisms
