"""The leaderboard's methods on data of one's own: the ranking, a recommendation, and the code to run it.

Tuning and the choice of the method look at the data and are not covered by ε: see `PRICE`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.experiments.base import GridEntry, plan
from dpbench.experiments.leaderboard import entrants
from dpbench.experiments.leaderboard.ranking import board, tuned

if TYPE_CHECKING:
    import pandas

    from dpbench.jobs import Job
    from dpbench.results import Store

PRICE = (
    "Settings and method were chosen by looking at the data, which no ε above covers: each line is the privacy of one "
    "run, not of this comparison. To release a model, choose on public or older data of the same kind and run the "
    "choice once on the private data; or keep the comparison itself secret and count its runs into the budget."
)
RunJobs = Callable[[list["Job"]], Any]  # runs what the store has not got, as runner.run does


@dataclass(frozen=True)
class Comparison:
    """table: one row per method, best first (see `leaderboard.ranking.board`). left_out: method → reason.

    failed: method → error, of those none of whose runs ended. references: what `fit` calls each method of the table.
    has_excess: whether `mean` is of the excess loss.
    """

    table: pandas.DataFrame
    left_out: dict[str, str]
    failed: dict[str, str]
    references: dict[str, str]
    has_excess: bool = True

    @property
    def best(self):
        """The row with the lowest mean, None when there is none."""
        finite = self.table[self.table["mean"].lt(float("inf"))]
        return None if finite.empty else next(finite.itertuples())

    @property
    def tied(self) -> list[str]:
        """The other methods that are not worse than the best by more than two standard errors of the difference."""
        return list(self.table[self.table["beaten_by"] == 0]["algorithm"])[1:]


def compare(
    problem: str,
    epsilon: float,
    store: Store,
    run: RunJobs,
    *,
    extra: Iterable[str] = (),
    seeds: int = 5,
    profile: str = "quick",
) -> Comparison:
    """Tune every method that fits `problem`, time the best of each, and rank them.

    problem: a name of the catalogue, of kept data, or written out ("own-…:squared,l2=0.01").
    extra: further algorithms, names or "file.py:Class". profile: whose candidates of tuning.toml.
    Raises UserError when no method fits.
    """
    references = {name: name for name in entrants.entrants()}
    for name in extra:
        method, _ = algorithms.resolve(name)
        if not method.private:
            raise UserError(f"{name} is not private: a comparison at equal ε has no place for it")
        if references.setdefault(method.name, name) != name:
            raise UserError(f"{name}: the name {method.name} is taken; give the class another `name`")
    names = list(references.values())
    left_out = {name: why for name in names if (why := entrants.reason(problem, name))}
    fitting = [name for name in names if name not in left_out]
    if not fitting:
        raise UserError(f"no private method fits {problem}: {'; '.join(sorted(set(left_out.values()))[:3])}")
    block = GridEntry(artefacts=[], problems=[problem], algorithms=fitting, epsilon=[epsilon], seeds=seeds)
    tuning = plan(entrants.expand(block, profile), store)
    run(tuning.runnable)
    alone = GridEntry(artefacts=[], problems=[problem], algorithms=fitting, epsilon=[epsilon], seeds=1, timed=1)
    timed = plan(entrants.expand(alone, profile), store)
    run(timed.runnable)
    rows = store.runs()
    rows = rows[rows["key"].isin({job.key for job in (*tuning.jobs, *timed.jobs)})]
    table = board(rows)
    lost = rows[rows["status"].eq("failed") & ~rows["algorithm"].isin(table["algorithm"])]
    failed = dict(zip(lost["algorithm"], lost["error"], strict=True))
    return Comparison(table, left_out, failed, references, has_excess=bool(rows["excess"].notna().any()))


def shown_settings(row, reference: str, profile: str = "quick") -> str:
    """The tuned settings of a row of the table: "T=10, clip=0.3"."""
    return tuned(row, list(entrants.candidates(reference, profile)))


def arguments(row, reference: str) -> dict[str, Any]:
    """The arguments of `dpbench.fit` behind the data that repeat a row of the table; `reference`: the method's name."""
    method, fixed = algorithms.resolve(reference)
    defaults, tried = make_settings(method, fixed), entrants.candidates(reference, "full")
    settings = {
        name: value
        for name, value in json.loads(row.settings).items()
        if name not in fixed and (name in tried or value != getattr(defaults, name))
    }
    delta = 0.0 if row.delta == 0 else entrants.DELTA
    named = {"algorithm": reference, "epsilon": row.epsilon, "delta": delta, "relation": entrants.RELATION.value}
    return named | {"accounting": row.accounting} | settings


def snippet(source: str, row, reference: str, *, seeds: int, loss: str, weights: dict[str, float]) -> str:
    """Python that reads the data (`source`: the call that does) and fits the row's method at its settings."""
    given = arguments(row, reference) | ({"loss": loss} if loss != "logistic" else {}) | weights
    lines = ["import dpbench", "from dpbench.datasets import tables", "", f"table = {source}", "fit = dpbench.fit("]
    lines += ["    table.X,", "    table.y,", *(f"    {name}={value!r}," for name, value in given.items())]
    return "\n".join([*lines, f"    seeds={seeds},", ")", "print(fit.objective.mean(), fit.epsilon_spent)", ""])


def recommendation(comparison: Comparison, profile: str = "quick") -> Iterator[str]:
    """Sentences: which method, at which settings, and what is as good."""
    best = comparison.best
    if best is None:
        yield "No method ended with a finite loss: raise ε, or look at the bound on the rows."
        return
    settings = shown_settings(best, comparison.references[best.algorithm], profile)
    yield f"Use {best.algorithm}" + (f" with {settings}." if settings else ".")
    public = algorithms.resolve(comparison.references[best.algorithm])[0].counts_public
    if public:
        yield f"It takes {public} from the data and counts that as public: its ε does not cover it."
    if comparison.tied:
        faster = comparison.table[
            comparison.table["algorithm"].isin(comparison.tied)
            & (comparison.table["seconds"] < best.seconds / 2)
            & (comparison.table["mean"] < 2 * best.mean)  # some are tied for their spread alone
        ]
        yield f"As good within two standard errors: {', '.join(comparison.tied)}." + (
            f" Much faster: {faster.sort_values('seconds').iloc[0]['algorithm']}." if len(faster) else ""
        )
