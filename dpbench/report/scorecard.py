"""The scorecard: every claim of a paper, judged on the rows, and its published means beside ours."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.base import Artefact, Claim, Verdict
from dpbench.report.compare import Comparison
from dpbench.report.output import Table


def artefacts(experiment) -> list[Artefact]:
    """What every experiment has beside its own artefacts."""
    found = []
    if experiment.claims:
        found.append(Artefact("scorecard", "Scorecard: the claims, judged on these rows", scorecard))
    if experiment.comparisons:
        found.append(Artefact("published_means", "Published means beside ours", published_means))
    return found


def verdicts(context) -> Iterator[tuple[Claim, Verdict]]:
    """Each claim of the context's experiment with its verdict."""
    for claim in context.experiment.claims:
        yield claim, claim.check(context)


def scorecard(context) -> Table:
    """The verdicts as a table."""
    import pandas as pd

    rows = [[claim.name, claim.text, verdict.word, verdict.numbers] for claim, verdict in verdicts(context)]
    words = pd.Series([row[2] for row in rows]).value_counts()
    caption = (
        ", ".join(f"{count} {word}" for word, count in words.items())
        + f". Judged on the rows of the {context.profile} profile by the functions in "
        f"{context.experiment.package.replace('.', '/')}/claims.py. A claim that is not held is a result, not an error."
    )
    return Table(pd.DataFrame(rows, columns=["claim", "text", "verdict", "numbers"]), caption)


def comparisons(context) -> Iterator[Comparison]:
    """Each published mean of the context's experiment beside ours."""
    if context.experiment.comparisons:
        yield from context.experiment.comparisons(context)


def published_means(context) -> Table:
    """The comparisons as a table."""
    import pandas as pd

    rows = [[one.name, one.match.word, one.match.numbers] for one in comparisons(context)]
    words = pd.Series([row[1] for row in rows], dtype=str).value_counts()
    caption = (
        ", ".join(f"{count} {word}" for word, count in words.items())
        + ". match: both one-sided Welch tests reject a difference beyond the margin at 5 %; differs: not so, and "
        "Welch's two-sided test rejects equality at 5 %; not comparable: neither, or one side has too few values."
    )
    return Table(pd.DataFrame(rows, columns=["published mean", "verdict", "numbers and test"]), caption)
