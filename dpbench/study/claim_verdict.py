"""What a claim comes to: a word and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True)
class Share:
    """In how many of some cases a claim holds: `held` of `seen`, and `missing` ones that nobody could look at."""

    held: int
    seen: int
    missing: int = 0

    @classmethod
    def of(cls, cases: Iterable[bool | None], missing: int = 0) -> Share:
        """cases: whether each holds; None where its rows do not say."""
        known = list(cases)
        seen = [one for one in known if one is not None]
        return cls(sum(map(bool, seen)), len(seen), missing + len(known) - len(seen))

    def reaches(self, bar: float) -> bool | None:
        """Whether the share is at least `bar`, with the missing cases put both ways: None where they can turn it."""
        of = max(1, self.seen + self.missing)
        if self.held >= bar * of:
            return True
        return None if self.held + self.missing >= bar * of else False

    def __str__(self) -> str:
        return f"{self.held} of {self.seen}" + (f" ({self.missing} missing)" if self.missing else "")


def all_of(*parts: bool | None) -> bool | None:
    """Several verdicts as one: not held (False) beats open (None), open beats held.

    >>> all_of(True, None), all_of(None, False), all_of(True)
    (None, False, True)
    """
    return False if False in parts else None if None in parts else True


def over_variants(verdicts: Mapping[str, bool | None]) -> tuple[bool | None, str]:
    """One verdict under several choices of ours, and what it depends on: None where they do not agree.

    >>> over_variants({"T to 8,000": True, "T to 10,000": False})
    (None, 'depends on our choice: held with T to 8,000, not held with T to 10,000')
    """
    words = {True: HELD, False: NOT_HELD, None: OPEN}
    if len({*verdicts.values()}) == 1:
        return next(iter(verdicts.values())), ""
    told = [
        f"{word} with {' and with '.join(names)}"
        for one, word in words.items()
        if (names := [name for name, value in verdicts.items() if value is one])
    ]
    return None, "depends on our choice: " + ", ".join(told)


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
