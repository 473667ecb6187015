"""Privacy: how much noise (accounting, budget), its drawing (mechanisms), and what was spent (ledger, verify)."""

from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Composition, Ledger, Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import stream

__all__ = ["Budget", "Composition", "Ledger", "Mechanisms", "Relation", "stream"]
