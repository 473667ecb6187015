"""The scorecard: every claim of a paper, judged on the rows."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.base import Claim, Verdict
from dpbench.report.output import Table

TITLE = "Scorecard: the claims, judged on these rows"


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
