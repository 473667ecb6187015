"""What a claim comes to: a word and the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HELD, NOT_HELD = "held", "not held"
NOT_ENOUGH = "not enough data"  # rows are missing
OPEN = "open"  # the rows are there and do not decide
NOT_TESTABLE = "not testable"  # could not have come out otherwise
WORDS = (HELD, NOT_HELD, OPEN, NOT_ENOUGH, NOT_TESTABLE)

# The settings that a claim is judged under; a verdict's case begins with one of the first two.
AS_PUBLISHED, PROVEN, BOTH = "as published", "at a proven ε", "both"


@dataclass(frozen=True)
class Verdict:
    """word: one of `WORDS`; numbers: what was compared, in words and digits.

    case: which of a claim's verdicts this is, as "as published" beside "at a proven ε"; "" for the only one.
    """

    word: str
    numbers: str
    case: str = ""

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise ValueError(f"verdict: {self.word!r} is none of {', '.join(WORDS)}")

    @classmethod
    def of(cls, held: bool | None, numbers: str, case: str = "") -> Verdict:
        """held: whether the claim is; None where the rows do not decide."""
        return cls(OPEN if held is None else HELD if held else NOT_HELD, numbers, case)

    @classmethod
    def lacking(cls, why: NotEnough, case: str) -> Verdict:
        """Of one setting of a claim whose rows are missing, where another has its own."""
        return cls(NOT_ENOUGH, str(why), case)

    @property
    def held(self) -> bool | None:
        """True or False where the claim was decided, else None."""
        return {HELD: True, NOT_HELD: False}.get(self.word)


def settings_of(verdicts: Sequence[Verdict], alone: str = BOTH) -> list[str]:
    """The setting of each verdict of one claim: `AS_PUBLISHED`, `PROVEN`, or `BOTH`.

    alone: that of an only verdict without a case. One among several (rows were missing) has the setting still unseen.

    >>> settings_of([Verdict(HELD, "", "at a proven ε = 1"), Verdict(NOT_ENOUGH, "no rows")])
    ['at a proven ε', 'as published']
    """
    named = (AS_PUBLISHED, PROVEN)
    stated = [next((one for one in named if v.case.startswith(one)), "") for v in verdicts]
    rest = next((one for one in named if one not in stated), alone) if any(stated) else alone
    return [one or rest for one in stated]


class NotEnough(LookupError):
    """Rows that a claim needs are not there; shown as "not enough data", with the command that makes them.

    artefact: whose rows they are, "" for those of all; None for the artefact that the claim `shows`.
    """

    def __init__(self, what: str = "rows are missing", artefact: str | None = None) -> None:
        super().__init__(what)
        self.artefact = artefact
