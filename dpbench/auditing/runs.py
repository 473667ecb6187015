"""The audit of an algorithm as it is implemented: runs on two neighbours, distinguished by all they release.

Three looks at it, of which any can fail it. Inspection: on many pairs, with the releases given, nothing else that
comes out may differ, and no value may move further than the ledger says. Noise: it is of the law recorded, and fresh.
Tests, one a case: a threshold on the likelihood ratio of whole runs, or of a canary's label on the pair that shows it
best, bounds the privacy loss from below; the bound may not be above the claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import SEARCHED, Algorithm, AuditCase, make_settings
from dpbench.algorithms.library import LibrarySolver
from dpbench.auditing import claims, noise, scores, worlds
from dpbench.auditing.claims import AuditClaim, AuditVerdict
from dpbench.auditing.clean import told_apart
from dpbench.auditing.search import at_sizes, searched, setups_of, sizes, with_best_coins
from dpbench.auditing.transcript import Leak, Recorder, Returned
from dpbench.errors import UserError, at_least, in_words
from dpbench.privacy.ledger import Composition, PoissonReplaced, PureDP
from dpbench.problems import Problem, losses
from dpbench.run.execute import one_thread

LEVEL = 0.01
SHORT = 0.15  # of a Gaussian claim, what the bound of a sound release on its worst pair stays below it by
POWER = 0.99  # to notice halved noise
HIDDEN, SELECTED = 0.8, 0.7  # of the claim, what a final iterate may give away, and selections beside other releases
LEAST_GAP = 0.3  # of the loss over the claim, of cases that tell little
PURE_RUNS = 20_000  # two Laplace releases in two dimensions: 1 run in 16 has the largest loss
MOST_RUNS = 200_000
WHOLE, LAST = "whole run", "last iterate"
EVERY = (claims.EVERY, claims.BEST)  # run is not judged; the latter where noise is hidden


class Audit(NamedTuple):
    """verdicts: of the whole run, and of each label of its releases that has a canary.

    defect: what is wrong before any test, in words. moved: by label, the largest share of what the ledger says that a
    neighbour moved a release by; near 1 where a pair is the worst there is. least: the fewest runs with which some
    bound can be above the claim of the whole run; 0 if `runs` is enough. pair: the neighbours that a search chose.
    public: what the method counts as public, which is not audited. served: of a method that ran where no rows are,
    size → the result of its run; code: how it ran then.
    """

    algorithm: str
    epsilon: float
    delta: float
    runs: int
    verdicts: dict[str, AuditVerdict]
    defect: str = ""
    moved: Mapping[str, float] = MappingProxyType({})
    least: int = 0
    pair: str = ""
    public: str = ""
    served: Mapping[str, str] = MappingProxyType({})
    code: str = ""

    @property
    def reach(self) -> float:
        """The largest ε that so many runs of somebody else's learner can refute."""
        return claims.reach(self.runs, self.delta, LEVEL, every=2)

    @property
    def passed(self) -> bool:
        return not self.defect and all(verdict.passed for verdict in self.verdicts.values())


def audit(
    name: str, epsilon: float, *, runs: int | None = None, seed: int = 0, case: AuditCase | None = None,
    inspect: bool = True, tests: bool = True, near: bool = True, search: bool | None = None, papers: bool = False,
    loss: str = "", thorough: bool = False, clean: bool = False,
) -> Audit:  # fmt: skip
    """One `Audit` of the algorithm `name`; epsilon, runs, seed, loss, thorough: as of `dpbench.audit`.

    Args:
        case: instead of the algorithm's own, canaries included.
        inspect, tests: False leaves out the one or the other of these.
        near: whether `runs` of None are enough for a bound near the claim, or only to notice halved noise.
        search: whether to look for a pair that moves the releases more than the algorithm's own (`search`). None does
            for every algorithm without an `audit_case` of its own, and for all where `near`.
        papers: as of `worlds.Setup`; inspected it is under both.
        clean: whether to run it in a process of its own on either of two data sets as well (`clean`).

    Where every bound is tight, an audit of a sound algorithm fails with a probability of at most LEVEL; that of m
    audits, at most m times that. In fact it is far less: both error rates have to be underestimated, each beyond its
    limit at LEVEL/2, or one by more; for one tight Gaussian release that is 1.4e-4 at 0.01, hence 1 % for 80 audits.
    """
    algorithm, fixed = algorithms.resolve(name)
    if not algorithm.private:
        raise UserError(f"algo: {name} is not private: it makes no claim to audit")
    if runs is not None:
        at_least("runs", runs, 40)
    if loss and (why := algorithm.needs.missing_for(losses.get(loss))):
        covered = ", ".join(algorithm.needs.covered)
        raise UserError(f"{name}: loss {loss} is not covered by its privacy proof: {why}; use one of: {covered}")
    shares: dict[str, float] = {}
    farthest: set[str] = set()
    if search is None:
        search = case is None and (near or algorithm.audit_case is SEARCHED)
    done = Audit(name, epsilon, 0.0, 0, {}, moved=shares)
    with one_thread():
        try:
            setups, further, papers_own = setups_of(algorithm, fixed, epsilon, case, papers, loss)
            done = done._replace(delta=setups[0].budget.delta, public=algorithm.public(setups[0].settings))
            setups = [with_best_coins(setup.sharpest(seed).placed(seed), seed) for setup in setups]
            for setup in [*setups, *further, *papers_own] if inspect else []:
                inspected = worlds.within(setup.inspect(seed))
                worlds.raise_shares(shares, {} if setup in papers_own else inspected)
            if search:
                best = searched(setups[0], seed)
                setups[0], farthest = best.setup, set(best.farthest.values())
                done = done._replace(pair=best.words)
                worlds.raise_shares(shares, best.moved)
            if inspect and case is None:
                at_sizes([*setups, *further], sizes(thorough=thorough), farthest, seed)
            if clean and (fault := told_apart(name, epsilon, seed, loss)):
                raise Leak(fault)
            for label, share in shares.items():
                if share < worlds.LEAST and inspect and case is None:  # a case of one's own need not show all
                    raise Leak(f"{label}: no pair moves it, so it is not audited; give a pair that does (audit_case)")
            shares.pop(worlds.COMPUTED_ON, None)
            for setup in setups if tests else []:
                done = _tested(done, setup, runs, seed, LEVEL / len(setups), near)
        except Leak as leak:
            return done._replace(defect=str(leak))
        except UserError:
            raise
        except Exception as error:
            return done._replace(defect=f"it raises {in_words(error)}")
    return done


def learner(name: str) -> Any:
    """What "file.py:name" names where that is no `Algorithm`: somebody else's; None for all other names."""
    found = algorithms.attribute(name) if ".py:" in name else None
    return None if isinstance(found, type) and issubclass(found, Algorithm) else found


def auditable() -> list[str]:
    """The names of all private algorithms; of names for the same settings, the one that says most."""
    distinct: dict[str, None] = {}
    for name in algorithms.names(wrappers=True):
        algorithm, fixed = algorithms.resolve(name)
        defaults = make_settings(algorithm, fixed)
        if isinstance(algorithm, LibrarySolver):  # see `functions.of_solver`
            continue
        if algorithm.private and not algorithm.flaw(defaults, algorithm.accounting(rules.accounting(algorithm))):
            distinct[algorithms.display_name(algorithm.name, defaults)] = None
    return list(distinct)


def _tested(done: Audit, setup: worlds.Setup, runs: int | None, seed: int, level: float, near: bool) -> Audit:
    """`done` with the verdict of this case: of its whole run, or of its canary."""
    runs = runs or _enough(setup, level, near)
    sides = [_world(setup, problem, runs // 2, (seed, i)) for i, problem in enumerate(setup.pair[:2])]
    for run, _, _ in sides:
        setup.sound(run)
    if fault := noise.alike(*(run for run, _, _ in sides)):
        raise Leak(fault)
    told = _claim(setup, [one for _, came, _ in sides for one in came.ledger])
    first, second = (_shown(setup, *world) for world in sides)
    if hidden := sides[0][2] is None:
        first, second = scores.with_telling_bits(*scores.aligned(first, second))
    verdict = (claims.decide_by_best if hidden else claims.decide)(first, second, told, level)
    name = setup.case.label or (LAST if hidden else WHOLE)
    if name not in done.verdicts or done.verdicts[name].passed:
        done.verdicts[name] = verdict
    if not setup.case.label and (needed := claims.least_runs(told, level, EVERY[hidden])) > runs:
        done = done._replace(least=needed)
    return done._replace(runs=max(done.runs, runs))


def _claim(setup: worlds.Setup, compositions: list[Composition]) -> AuditClaim:
    """Of the releases of the case's label, or of all; of runs that released one or another composition."""
    everything = claims.joint(list(dict.fromkeys(compositions)))
    mine = tuple(entry for entry in everything if setup.case.label in ("", entry.label))
    return claims.claim(mine, setup.relation, setup.budget.delta)


def _world(
    setup: worlds.Setup, problem: Problem, k: int, seed: Any
) -> tuple[Recorder, Returned, list[Recorder] | None]:
    """Runs on one data set, and their replays on the three of the pair (None where what is computed on is hidden)."""
    run = setup.recorder(k, seed, row=setup.pair.row)
    came = setup.run(problem, run)
    return run, came, None if worlds.hides(run) else setup.replays(setup.pair, run, came, on=problem)


def _shown(setup: worlds.Setup, run: Recorder, came: Returned, replays: list[Recorder] | None) -> Any:
    """(k,) scores; of what is hidden k vectors that a score has to be learnt for."""
    if replays is not None:
        label = setup.case.label
        return scores.of_label(label, run, *replays) if label else scores.likelihood_ratio(run, *replays)
    # First final iterates along the difference of the gradients, as a step goes against the gradient.
    start = np.zeros((1, came.W.shape[1]))
    line = (setup.pair.second.data_gradient(start) - setup.pair.first.data_gradient(start))[0]
    released = [[one.output[i] for one in run.tape.get(None, [])] + [one.output[0] for one in run.tape.get(i, [])]
                for i in range(run.k)]  # fmt: skip
    return [np.concatenate([[w @ line], w, *map(np.ravel, beside)]) for w, beside in zip(came.W, released, strict=True)]


def _enough(setup: worlds.Setup, level: float, near: bool) -> int:
    """Runs after which the bound of a release on its worst pair is within SHORT of the claim, by normal approximation.

    Or, where not `near`, after which halved noise is seen with a probability of POWER: what a neighbour moves of the
    claim is known, and doubles. The thresholds of best power for a loss of 2m
    have error rates Φ(-m) both; each is estimated on n runs with a standard error of s = √(Φ(-m)Φ(m)/n)/φ(m) on the
    scale of Φ⁻¹, of which the level takes z for both (`decide`) and the power √2 times its quantile.
    """
    run, came, replays = _world(setup, setup.pair.first, 2, 0)
    told = _claim(setup, came.ledger)
    if told.unit == "ε":
        return PURE_RUNS
    share = HIDDEN
    if replays:
        moved = worlds.shares_moved(run, replays)
        share = moved[setup.case.label] if setup.case.label else worlds.moved_in_all(run, replays)
    z, power = 2 * norm.isf(brentq(lambda p: claims.fisher(p * p) - level, 1e-9, 0.5)), math.sqrt(2) * norm.ppf(POWER)

    def judged(m: float, gap: float) -> int:
        spread = math.sqrt(norm.cdf(-m) * norm.cdf(m)) / norm.pdf(m)
        return claims.runs_of(math.ceil(((z + power) * spread / gap) ** 2), EVERY[not replays])

    mu = float(told.at(np.array(0.3)))
    kinds = {type(entry.release) for one in came.ledger for entry in one}
    share *= SELECTED if PureDP in kinds else 1.0
    # With half of the noise a loss doubles, but for that of a row in a Poisson sample, which the rate bounds.
    gap = max(0.0 if PoissonReplaced in kinds else 2 * share - 1, LEAST_GAP) * mu
    best_near = judged(mu / 2, SHORT * mu) if near else 0
    return min(MOST_RUNS, max(judged((mu + gap) / 2, gap), min(best_near, setup.case.near_runs)))
