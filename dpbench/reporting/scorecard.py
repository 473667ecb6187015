"""The scorecard: every claim of a paper, judged on the rows, and every cell that it prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from dpbench.study.context import Context, kept
from dpbench.study.declare import Artefact, Claim
from dpbench.study.experiment import Experiment
from dpbench.study.headline import CELL, PLACEBO, headline
from dpbench.study.output import Table
from dpbench.study.verdict import Verdict, settings_of
from dpbench.study.verdicts import EXPLAINED, POWER, Judged, judge, placebo


def artefacts(experiment: Experiment) -> list[Artefact]:
    """What every experiment has beside its own artefacts."""
    found = []
    if experiment.claims:
        found.append(Artefact("scorecard", "Scorecard: the claims, judged on these rows", scorecard))
    if experiment.cells:
        found.append(Artefact("published_values", "Published values, and what became of each", published_values))
    return found


def verdicts(context: Context) -> Iterator[tuple[Claim, Verdict]]:
    """Each claim of the context's experiment with its verdict, or with each of several."""
    for claim in context.experiment.claims:
        for verdict in claim.judge(context):
            yield claim, verdict


def statement(claim: Claim, verdict: Verdict) -> str:
    """The claim's text, and which of its verdicts is meant."""
    return f"{claim.text} ({verdict.case})" if verdict.case else claim.text


def scorecard(context: Context) -> Table:
    """The verdicts as a table."""
    records = []
    for claim in context.experiment.claims:
        judged = claim.judge(context)
        for verdict, setting in zip(judged, settings_of(judged, context.experiment.alone), strict=True):
            why = claim.reason(verdict)
            records.append({
                "claim": claim.name, "text": claim.text, "setting": setting, "case": verdict.case,
                "verdict": verdict.word, "numbers": verdict.numbers, "place": context.experiment.cited(claim.place),
                "shows": claim.shows, "statement": statement(claim, verdict),
                "why": why.text if why else "", "demonstrated_by": why.artefact if why else "",
            })  # fmt: skip
    words = ", ".join(f"{count} {word}" for word, count in Counter(one["verdict"] for one in records).most_common())
    caption = f"Verdicts on the paper's claims: {words or 'none'}. A claim that is not held is a result, not an error."
    method = (
        f"Judged on the runs of the {context.profile} profile by the functions in "
        f"{context.experiment.package.replace('.', '/')}."
    )
    columns = {"claim": "{claim}", "text": "{statement}", "in the paper": "{place}", "verdict": "{verdict}",
               "numbers": "{numbers}"}  # fmt: skip
    return Table.of(records, columns, caption, unsaved=["statement"], method=method)


@kept
def judged(context: Context) -> tuple[list[Judged], list[Judged]]:
    """The verdict on each published value of the context's paper, and those on wrong ones (see `verdicts.placebo`)."""
    experiment = context.experiment
    cells = list(experiment.cells(context)) if experiment.cells else []
    return judge(cells, experiment.switches), placebo(cells, experiment.switches)


def published_values(context: Context) -> Table:
    """Every published value, its class, and whether it survives; the headline numbers are the method."""
    cells, wrong = judged(context)
    records = [
        one.record(kind) | {"table": context.experiment.cited(one.cell.place.table)}
        for kind, each in ((CELL, cells), (PLACEBO, wrong))
        for one in each
    ]
    rows = [
        [one.cell.name, one.outcome.word, one.outcome.reason or one.cell.trivial, in_words(one), one.outcome.numbers]
        for one in cells
    ]
    frame = pd.DataFrame(rows, columns=["published value", "class", "why", "from runs that keep their ε", "numbers"])
    found = headline(records)
    caption = found.sentence() if cells else "No printed value of this paper is judged here; see its claims."
    return Table(frame, caption, pd.DataFrame(records), method=f"{'. '.join(found.lines())}. {POWER}")


def in_words(one: Judged) -> str:
    """What becomes of a value in runs that keep their ε: "explained by noise + weights (reduced; …)"."""
    if one.survival == EXPLAINED:
        return f"explained by {' + '.join(one.by)}" + (f" ({one.how})" if one.how else "")
    return one.survival
