"""The scorecard: every claim of a paper, judged on the rows, and its published means beside ours."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from dpbench.study.context import Context
from dpbench.study.declare import Artefact, Claim
from dpbench.study.experiment import Experiment
from dpbench.study.output import Table
from dpbench.study.verdict import Verdict, settings_of
from dpbench.study.welch import PublishedMean


def artefacts(experiment: Experiment) -> list[Artefact]:
    """What every experiment has beside its own artefacts."""
    found = []
    if experiment.claims:
        found.append(Artefact("scorecard", "Scorecard: the claims, judged on these rows", scorecard))
    if experiment.comparisons:
        found.append(Artefact("published_means", "Published means beside ours", published_means))
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
    rows, records = [], []
    for claim in context.experiment.claims:
        judged = claim.judge(context)
        for verdict, setting in zip(judged, settings_of(judged, context.experiment.alone), strict=True):
            why = claim.reason(verdict)
            place = context.experiment.cited(claim.place)
            rows.append([claim.name, statement(claim, verdict), place, verdict.word, verdict.numbers])
            records.append({
                "claim": claim.name, "text": claim.text, "setting": setting, "case": verdict.case,
                "verdict": verdict.word, "numbers": verdict.numbers, "place": place, "shows": claim.shows,
                "why": why.text if why else "", "demonstrated_by": why.artefact if why else "",
            })  # fmt: skip
    words = pd.Series([row[3] for row in rows]).value_counts()
    caption = (
        ", ".join(f"{count} {word}" for word, count in words.items())
        + f". Judged on the rows of the {context.profile} profile by the functions in "
        f"{context.experiment.package.replace('.', '/')}/claims.py. A claim that is not held is a result, not an error."
    )
    header = ["claim", "text", "in the paper", "verdict", "numbers"]
    return Table(pd.DataFrame(rows, columns=header), caption, pd.DataFrame(records))


def comparisons(context: Context) -> Iterator[PublishedMean]:
    """Each published mean of the context's experiment beside ours."""
    if context.experiment.comparisons:
        yield from context.experiment.comparisons(context)


def published_means(context: Context) -> Table:
    """The comparisons as a table."""
    found = list(comparisons(context))
    rows = [[one.name, one.match.word, one.match.numbers] for one in found]
    records = [
        one.place._replace(table=context.experiment.cited(one.place.table))._asdict()
        | {"value": one.name, "artefact": one.artefact, "verdict": one.match.word, "numbers": one.match.numbers}
        for one in found
    ]
    words = pd.Series([row[1] for row in rows], dtype=str).value_counts()
    caption = (
        ", ".join(f"{count} {word}" for word, count in words.items())
        + ". match: both one-sided Welch tests reject a difference beyond the margin at 5 %; explained: not so, but "
        "for runs with what the published code does otherwise; differs: neither, and Welch's two-sided test rejects "
        "equality at 5 %; no data: no runs of ours; not comparable: none of these, or one side has too few values."
    )
    frame = pd.DataFrame(rows, columns=["published mean", "verdict", "numbers and test"])
    return Table(frame, caption, pd.DataFrame(records))
