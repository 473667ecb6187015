"""What a user gets without a choice: every method's public settings, the method itself, and the terms of a comparison.

The public rule of a method gives the settings it runs at where nothing may look at the data, from (n, d, ε) alone: what
a user gets without tuning, and the default track of the leaderboard. None was fitted to a problem of the leaderboard:
each balances a method's own bound, with these public guesses throughout: δ = n⁻², replace-one neighbours, rows of
‖x‖₂ ≤ 1, and an optimum of norm RADIUS.

- Gradient steps of 1/L₁ = 4 on logistic loss: after T of them the bias is about RADIUS²/(8T); noise of σ² = 2T/(ρn²) a
  step and direction is a random walk that costs 4T²/(ρn²), as the trace of the Hessian is at most 1/4. Their sum is
  least at T³ = RADIUS² ρn²/64.
- Newton steps: the number of iterations in which nε grows by a factor of √10 each, from 30 on.
- A step on one coordinate costs (its noise)²/M_j, in all 8 (clip)² T²/(ρn²); at T = 0.17 n√ρ this is 0.02. M_j, which
  would be of the data, is bounded by L₁R² for every j. As the mean squares of all columns sum to R² at most, that is d
  times what M_j is on average, so the step is γ = d/2 in its unit: safe for columns of up to four times the average.
- Laplace noise of 40T/(nε) and steps of c/L, L about 0.3: the iterate's random walk stays within RADIUS/2. Momentum
  carries a step's noise on through up to T further steps, so there c is T times smaller. (The first version of this
  rule left that out; it is the one rule that was corrected after rows had shown that it was wrong.)

A method without a rule here says its own in `Algorithm.public_settings`.

Which method to take where nobody has a reason for another follows from n, d, the loss and its outputs, and whether
δ > 0. Never from ε: then a model is no worse at a larger ε, as each of the methods is none (their ridges fall, their
steps and their number rise). Nothing of the data enters, so that the choice costs no privacy. Each rule has its reason
beside it; what it was measured on is in docs/guides/defaults.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dpbench.algorithms import base as dp
from dpbench.algorithms.registry import resolve
from dpbench.errors import UserError
from dpbench.privacy.ledger import Relation
from dpbench.problems import Declaration

RADIUS = 8.0
WORK = 1e12  # flops of a run, public: minutes of one core
LAPLACE_STEPS = 30  # T with Laplace noise
CLIP = 0.3  # of the row gradients' norm, at most 1 where ‖x‖₂ ≤ 1 and |ℓ'| ≤ 1; halfway is typical


def public_settings(name: str, n: int, d: int, epsilon: float) -> dict[str, Any]:
    """The settings of the method or alias `name` for n ≥ 2 rows, d columns and ε > 0; what is left out: its defaults.

    Without what an alias fixes. UserError for an unknown name.
    """
    method, fixed = resolve(name)
    rule = RULES.get(method.name)
    # A method of a package says its own; those of dpbench stand together below.
    settings = rule(n, d, epsilon) if rule else method.public_settings(n, d, epsilon)
    return {key: _short(value) for key, value in settings.items() if key not in fixed}


def public_rho(n: int, epsilon: float) -> float:
    """ρ of (ε, n⁻²)-DP by ε = ρ + 2√(ρ ln(1/δ)) (Bun and Steinke 2016, Proposition 1.3)."""
    log = 2 * math.log(n)
    return (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2


def gradient_steps(n: int, d: int, epsilon: float) -> int:
    """T of gradient methods, 3 at least, and no more than WORK flops."""
    most = max(1, int(WORK / (4 * n * d)))
    return min(most, max(3, round((RADIUS**2 / 64 * public_rho(n, epsilon) * n**2) ** (1 / 3))))


def newton_steps(n: int, epsilon: float) -> int:
    """T of Newton's methods, between 2 and 10."""
    return round(_within(2, 2 * math.log10(n * epsilon) - 3, 10))


def least_eigenvalue(n: int, epsilon: float) -> float:
    """λ₀: what curvature is lifted to, 5/√(nε) between 0.01 and the largest there can be, 1/4."""
    return _within(0.01, 5 / math.sqrt(n * epsilon), 0.25)


def laplace_step(n: int, d: int, epsilon: float) -> float:
    """c of a step c/L with the Laplace noise of LAPLACE_STEPS."""
    T = LAPLACE_STEPS
    return _within(1e-4, 0.3 * math.sqrt(RADIUS**2 / (2 * d * T)) * n * epsilon / (40 * T), 1.0)


def _coordinate(n: int, d: int, epsilon: float) -> dict[str, Any]:
    return {"passes": _within(0.1, 0.17 * n * math.sqrt(public_rho(n, epsilon)) / d, 3.0), **_by_the_bound(d)}


def _greedy(n: int, d: int, epsilon: float) -> dict[str, Any]:
    """A coordinate a pass, as many as there is signal for; thresholds rise with nε, as a bias stays.

    The cost of noise grows as T³/(nε)² while few releases compose, so below nε = 900 T grows as nε. A row's entry is
    clipped at C/√d: C from CLIP to 1, where a step of half a column's curvature is still safe.
    """
    signal = n * min(epsilon, 600.0)  # beyond it nothing is left to gain
    # The three bounds: few releases, many releases, and the work.
    passes = min(signal / 150, math.sqrt(signal) / 5, WORK / (4 * n * d))
    clip = _within(CLIP, CLIP * math.sqrt(signal / 2500), 1.0)
    return {"passes": float(max(1, round(passes))), **_by_the_bound(d), "clip": clip}


def _by_the_bound(d: int) -> dict[str, Any]:
    return {"clip": CLIP, "scales": "bound", "step": max(1.0, d / 2)}


def _one_row(n: int, d: int, epsilon: float) -> dict[str, Any]:
    """0.3 passes at a noise multiplier of about 1/√ε, at least 1: a random walk of RADIUS/3 at most."""
    return {"passes": 0.3, "clip": 1.0, "step": math.sqrt(0.1 / (0.3 * n * d)) * RADIUS / 2 * min(1, epsilon**0.5)}


def _within(low: float, value: float, high: float) -> float:
    return min(max(value, low), high)


def _short(value: Any) -> Any:
    """Two digits are enough of a rule of thumb."""
    return float(f"{value:.2g}") if isinstance(value, float) else value


Rule = Callable[[int, int, float], dict[str, Any]]
RULES: dict[str, Rule] = {
    "dp-gd": lambda n, d, e: {"T": gradient_steps(n, d, e)},
    "dp-gd-last": lambda n, d, e: {"T": gradient_steps(n, d, e)},
    "dp-sgd": lambda n, d, e: {"T": gradient_steps(n, d, e), "rate": 0.1},
    "dp-mf": lambda n, d, e: {"epochs": max(1, round(gradient_steps(n, d, e) / 4)), "batches": 4},
    "dp-newton": lambda n, d, e: {"T": newton_steps(n, e)},
    "dp-newton-minibatch": lambda n, d, e: {"T": newton_steps(n, e), "lambda0": least_eigenvalue(n, e)},
    "dp-newton-general": lambda n, d, e: {"T": newton_steps(n, e), "lambda0": least_eigenvalue(n, e)},
    "cubic-newton": lambda n, d, e: {"T": max(1, newton_steps(n, e) // 2)},
    "dp-gd-laplace": lambda n, d, e: {"T": LAPLACE_STEPS, "c": laplace_step(n, d, e)},
    **dict.fromkeys(
        ("dp-hb", "dp-nag", "dp-masg"),
        lambda n, d, e: {"T": LAPLACE_STEPS, "c": laplace_step(n, d, e) / LAPLACE_STEPS},
    ),
    **dict.fromkeys(("dp-nag-opt", "dp-masg-opt"), lambda n, d, e: {"T": 100, "c": laplace_step(n, d, e)}),
    "dp-cd": _coordinate,
    "dp-gcd": _greedy,
    "dp-sgd-1": _one_row,
    "o2nc-tree": lambda n, d, e: {"radius": 1.0},
    "o2nc-naive": lambda n, d, e: {"radius": 1.0},
    **dict.fromkeys(
        ("opt", "opt-b", "2opt", "2opt-b", "dp-tr", "dp-tr-b", "dp-gd-2ns"), lambda n, d, e: {"alpha": 0.1}
    ),
    **dict.fromkeys(("opt-ls", "2opt-ls"), lambda n, d, e: {"alpha": 0.2}),
}


COLUMNS = 1500  # beyond it a square matrix a replicate, and the cube of it in operations, take too long
ROWS, ENTRIES = 20_000, 1e6  # and rows times columns, up to which thousands of passes over them take seconds
FEW = 50  # columns up to which noise on each costs little beside an l1 penalty


class Choice(NamedTuple):
    """Takes `method` for a loss of the `family`, where the side of its matrix is at most `side`; δ > 0 unless `pure`.

    l1: with an l1 penalty alone (True), without one alone (False), or both. few: with FEW columns alone. small: with
    ROWS and ENTRIES alone. rows: whether the matrix has a side of min(n, d), as a minimiser's, and not of d.
    """

    family: str
    method: str
    side: float = math.inf
    l1: bool | None = None
    few: bool = False
    small: bool = False
    rows: bool = False
    pure: bool = False
    why: str = ""

    def takes(self, problem: Declaration, delta: float) -> bool:
        """Whether it applies, the method apart."""
        side = min(problem.n, problem.d) if self.rows else problem.d
        return (
            self.family == problem.loss.family
            and side <= self.side
            and self.l1 in (None, bool(problem.l1))
            and (problem.d <= FEW or not self.few)
            and ((problem.n <= ROWS and problem.n * problem.d <= ENTRIES) or not self.small)
            and self.pure == (delta == 0)
            and not problem.w2
        )


SPARSE = "it moves one coordinate at a time, so that noise on the others costs no l1"
CHOICES = (  # the first that applies
    Choice(
        "logistic", "objpert", COLUMNS, l1=False, rows=True, why="its noise is one Gaussian's, its ridge follows it"
    ),
    Choice("logistic", "objpert", l1=True, few=True, why="the same, with l1 in the objective"),
    Choice("logistic", "objpert-pure", COLUMNS, l1=False, pure=True, why="a Jacobian that is free at δ = 0 too"),
    Choice("logistic", "dp-gcd", l1=True, why=SPARSE),
    Choice("logistic", "dp-gd-average", why="no matrix of d × d, and no column scales from the data"),
    Choice("softmax", "dp-gd-average", why="one gradient of all classes, whose sensitivity does not grow"),
    Choice("squared", "dp-gd-average", l1=False, small=True, why="many passes, whose clip and steps noise bounds"),
    Choice("squared", "boosted-ssp", COLUMNS, l1=False, why="one Gram matrix, then moments of clipped residuals"),
    Choice("squared", "dp-gd-average", l1=True, few=True, why="any d, and l1"),
    Choice("squared", "dp-gcd", l1=True, why=SPARSE),
    Choice("squared", "dp-gd-average", why="any d"),
    *(
        Choice(family, method, side, l1=l1, few=method == "objpert" and l1 is True, rows=side == COLUMNS, why=why)
        for family in ("pseudo-huber", "quantile")
        for method, side, l1, why in (
            ("objpert", COLUMNS, False, "as of the logistic loss; its Jacobian is paid"),
            ("objpert", math.inf, True, "the same, with l1 in the objective"),
            ("dp-gcd", math.inf, True, SPARSE),
            ("dp-gd-average", math.inf, None, "any d"),
        )
    ),
)


def method(problem: Declaration, delta: float = 1e-6, suits: Callable[[str], bool] = lambda name: True) -> str:
    """The name of the method; UserError, in one line, where no rule covers the problem.

    suits: whether a method may be taken; one that may not is passed over.

    >>> method(Declaration(1_000, 25)), method(Declaration(1_000, 75, loss="softmax-3"))
    ('objpert', 'dp-gd-average')
    """
    for rule in CHOICES:
        # The first that applies: the order is the order of preference.
        if rule.takes(problem, delta) and suits(rule.method):
            return rule.method
    pure, other = (" at δ = 0", "give delta > 0, as delta='n^-2'") if delta == 0 else ("", "name one")
    raise UserError(f"algorithm: no rule chooses one for {problem.loss.name} loss{pure} at d = {problem.d}; {other}")


RELATION = Relation.REPLACE_ONE
DELTA = "n^-2"
# The best first: an accounting is the first of these that the algorithm has.
ACCOUNTINGS = ("tight", "rdp", "cks20", "bs16", "standard", "text", "advanced", "basic", "pure")
# Where it is not the best: tight draws less noise at small ε and on few rows, but takes seconds for each ε, n and T.
INSTEAD = {"dp-sgd-1": "rdp"}


def accounting(method: dp.Algorithm) -> str:
    """The best of the accountings the method has; "paper" where it has none of ours."""
    if method.name in INSTEAD:
        return INSTEAD[method.name]
    return next((mode for mode in ACCOUNTINGS if mode in method.accountings), "paper")


def delta(method: dp.Algorithm) -> str | float:
    """n⁻² for all; 0 for a pure-DP method, whose (ε, 0) is (ε, n⁻²) too."""
    return 0.0 if method.accounting(accounting(method)) == "pure" else DELTA
