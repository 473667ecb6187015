"""dpbench: a benchmark of differentially private optimisers."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__", "fit"]


def __getattr__(name: str):
    if name == "fit":  # loaded on first use: `dpbench --help` must not pay for it
        from dpbench.api import fit

        return fit
    raise AttributeError(f"module 'dpbench' has no attribute {name!r}")
