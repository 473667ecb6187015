"""What an algorithm declares of its releases, before any run: the source of the page "The privacy of each algorithm".

A private run whose ledger has a label that its algorithm never declared is a failed run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dpbench.errors import PrivacyError, nearest
from dpbench.privacy.ledger import Composition


class Mechanism(NamedTuple):
    """norm: in which its sensitivity is. theorem: what makes noise in proportion to it private."""

    norm: str
    theorem: str


_SAMPLED = (
    "Poisson sample under add/remove: Mironov, Talwar and Zhang (2019), tight: Zhu, Dong and Wang (2022), Theorem 11; "
    "under replace-one: a sample of a fixed size, Wang, Balle and Kasiviswanathan (2019), Theorems 9 and 27, tight: "
    "Zhu, Dong and Wang (2022), Theorem 11, both directions composed, and Poisson samples as they are "
    "(privacy/accounting/loss_distribution.py)"
)
MECHANISMS: Mapping[str, Mechanism] = {
    "Gaussian": Mechanism(
        "ℓ₂", "Bun and Steinke (2016), Proposition 1.6; exact: Dong, Roth and Su (2022), Theorem 2.7"
    ),
    "Gaussian, symmetric": Mechanism(
        "Frobenius", "the Gaussian mechanism on the upper triangle, whose ℓ₂ norm the Frobenius norm bounds"
    ),
    "Gaussian on a sample": Mechanism("ℓ₂", _SAMPLED),
    "Gaussian, symmetric, on a sample": Mechanism("Frobenius", "the two above together"),
    "Gaussian in a single pass": Mechanism(
        "ℓ₂", "disjoint rows cost as much as the most expensive of them: Zhang, Tran and Cutkosky (2024), Lemma C.1"
    ),
    "tree": Mechanism("ℓ₂", "running sums: Zhang, Tran and Cutkosky (2024), Theorem 4.3"),
    "correlated Gaussian": Mechanism(
        "ℓ₂", "Choquette-Choo et al. (2023), Theorem 2; adaptively: Denisov et al. (2022), Theorem 2.1"
    ),
    "last iterate": Mechanism("ℓ₂", "Bok, Su and Altschuler (2024), Theorem 4.2"),
    "objective perturbation": Mechanism(
        "ℓ₂", "Kifer, Smith and Thakurta (2012), Theorem 2; tight: privacy/accounting/objective_perturbation.py"
    ),
    "Laplace": Mechanism("ℓ₁", "Dwork and Roth (2014), Theorem 3.6"),
    "Laplace on a sample": Mechanism("ℓ₁", "Balle, Barthe and Gaboardi (2018), Theorem 9"),
    "radial": Mechanism("ℓ₂", "Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 1"),
    "objective perturbation, radial": Mechanism("ℓ₂", "privacy/accounting/pure.py, radial_epsilon"),
    "exponential": Mechanism("each score", "McSherry and Talwar (2007); bounded range: Dong, Durfee and Rogers (2020)"),
    "draw by depth": Mechanism("distance", "dpbench/privacy/tukey.py; Amin, Joseph, Ribero and Vassilvitskii (2023)"),
    "noisy max": Mechanism("each score", "Dwork and Roth (2014), Claim 3.9; twice the scale where scores may part"),
    "best of runs": Mechanism(
        "the method's", "Papernot and Steinke (2022), Theorem 6; pure DP: Liu and Talwar (2019), Theorem 3.2"
    ),
    "sparse vector": Mechanism("each query", "Dwork and Roth (2014), Theorem 3.23"),
}


@dataclass(frozen=True)
class Disclosure:
    """One kind of release of an algorithm.

    label: that of its ledger entries. value: what is released, in words. mechanism: one of `MECHANISMS`.
    count: how often, as a formula. add_remove, replace_one: the sensitivity in the mechanism's norm, as formulas of
    names, numbers, + - · / √ and powers, so that a test can hold them against what was drawn. Of an add/remove
    algorithm replace_one may be left out: it is twice as much then. why: the theorem behind the sensitivity.
    when: the settings or accountings under which, "" for all.
    """

    label: str
    value: str
    mechanism: str = "Gaussian"
    count: str = "T"
    add_remove: str = ""
    replace_one: str = ""
    why: str = ""
    when: str = ""

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise PrivacyError(f"{self.label}: unknown mechanism {nearest(self.mechanism, MECHANISMS)}")
        if self.add_remove and not self.replace_one:
            twice = self.add_remove if _is_product(self.add_remove) else f"({self.add_remove})"
            object.__setattr__(self, "replace_one", f"2·{twice}")


def _is_product(formula: str) -> bool:
    """Whether no + or - stands outside of brackets, so that "2·" before it doubles all of it."""
    depth = 0
    for sign in formula:
        depth += (sign == "(") - (sign == ")")
        if not depth and sign in "+-":
            return False
    return True


def undeclared(composition: Composition, labels: Collection[str]) -> str:
    """One line that names the labels in `composition` that were never declared, "" if there is none."""
    unknown = sorted({entry.label for entry in composition} - set(labels))
    if not unknown:
        return ""
    return f"{', '.join(unknown)}: released, but never declared; add a Disclosure for it to the algorithm's `discloses`"
