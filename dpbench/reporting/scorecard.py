"""The scorecard: every claim of a paper, judged on the rows, and every value that it prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from dpbench.study.claims import Artefact, Claim, Verdict, settings_of
from dpbench.study.context import Context, memoised
from dpbench.study.experiment import PLANTED, Experiment
from dpbench.study.headline import headline
from dpbench.study.output import Table
from dpbench.study.value_verdict import Judged, judge


def artefacts(experiment: Experiment) -> list[Artefact]:
    """What every experiment has beside its own artefacts."""
    artefacts = []
    if experiment.claims:
        artefacts.append(Artefact("scorecard", "Scorecard: the claims, judged on these rows", scorecard))
    if experiment.published_values:
        artefacts.append(Artefact("published_values", "Published values, and what became of each", published_values))
        if any(PLANTED in block.artefacts for blocks in experiment.grid().values() for block in blocks):
            artefacts.append(Artefact(PLANTED, "Runs with wrong noise, made on purpose", planted))
    return artefacts


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
    columns = {"claim": "{claim}", "text": "{statement}", "in the paper": "{place}", "verdict": "{verdict}",
               "numbers": "{numbers}"}  # fmt: skip
    made = Table.of(records, columns, unsaved=["statement"])
    made.caption = (
        f"Verdicts on the paper's claims: {words or 'none'}. A claim that is not held is a result, not an error."
    )
    made.method = (
        f"Judged on the runs of the {context.profile} profile by the functions in "
        f"{context.experiment.package.replace('.', '/')}."
    )
    return made


# Three artefacts, the page and the summary ask, and bootstraps take seconds.
@memoised
def judged(context: Context) -> list[Judged]:
    """The verdict on each published value of the context's paper."""
    experiment = context.experiment
    return judge(experiment.published_values(context) if experiment.published_values else (), experiment.switches)


def published_values(context: Context) -> Table:
    """Every published value, its class, what it would have noticed, and whether runs at a proven ε give it."""
    verdicts = judged(context)
    records = [one.record() | {"table": context.experiment.cited(one.value.place.table)} for one in verdicts]
    rows = [
        [one.value.name, one.word, f"copy of {one.copy_of}" if one.copy_of else one.outcome.reason, record["notices"],
         record["misses"], in_words(one), one.outcome.numbers]
        for one, record in zip(verdicts, records, strict=True)
    ]  # fmt: skip
    header = ["published value", "class", "why", "notices", "does not notice", "at a proven ε", "numbers"]
    summary = headline(records)
    caption = summary.sentence() if verdicts else "No printed value of this paper is judged here; see its claims."
    return Table(
        pd.DataFrame(rows, columns=header),
        pd.DataFrame(records),
        caption=caption,
        method=f"{summary.paragraph()} {'. '.join(summary.lines())}.",
    )


def planted(context: Context) -> Table:
    """By recipe that is wrong on purpose: how many values would have passed it, of those that pass all else."""
    summary = headline(one.record() for one in judged(context))
    rows = [[name, f"{some} of {of}"] for name, (some, of) in summary.placebo.items()]
    rows += [[f"pooled ratio, {name}", str(one)] for name, one in summary.pooled.items()]
    caption = "Runs that are wrong on purpose, each judged as the right ones are: how many published values they pass."
    gaps = [] if len(context.rows(PLANTED)) else [context.gap(PLANTED, "runs with wrong noise")]
    return Table(pd.DataFrame(rows, columns=["wrong runs", "values that they would pass"]), None, gaps, caption)


def in_words(one: Judged) -> str:
    """What becomes of a value at a proven ε: "no; comes back with noise + weights (reduced; …)"."""
    by = f"; comes back with {' + '.join(one.by)}" if one.by else ""
    return one.survival + by + (f" ({one.how})" if one.how else "")
