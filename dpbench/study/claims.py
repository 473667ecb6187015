"""What is declared of a paper: artefacts, claims and errata; and what a claim comes to: a word, the numbers behind it.

`study.paper.Paper` declares them, with their words. A declaration stays with its function; `declared` collects those of
some modules, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from dpbench.errors import NotAtHand

HELD, NOT_HELD = "held", "not held"
NOT_ENOUGH = "not enough data"  # rows are missing
OPEN = "open"  # the rows are there and do not decide
NOT_TESTABLE = "not testable"  # could not have come out otherwise
WORDS = (HELD, NOT_HELD, OPEN, NOT_ENOUGH, NOT_TESTABLE)

# The settings that a claim is judged under; a verdict's case begins with one of the first two.
AS_PUBLISHED, PROVEN, BOTH = "as published", "at a proven ε", "both"
Context: TypeAlias = Any  # a `study.context.Context`, whose experiment is made of declarations
F = TypeVar("F", bound=Callable[..., Any])
D = TypeVar("D", "Artefact", "Claim", "Erratum")
_KEPT = "_declared"  # the attribute of a function that holds what is declared of it


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


@dataclass(frozen=True)
class Artefact:
    """A figure or table: `render(context)` returns what `study.output` can save."""

    name: str
    title: str
    render: Callable[[Context], Any]


class Why(NamedTuple):
    """What one verdict comes from, and the artefact whose runs demonstrate it; shown only beside that verdict."""

    verdict: str
    text: str
    artefact: str
    case: str = ""  # of the verdict, as "as published"; "" for any


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: `check(context)` returns a `Verdict` or several, or raises NotEnough; see `judge`.

    place: where the paper makes it, as "Section 6.2, Fig. 2"; shows: our artefact that a reader looks at; why: what
    verdicts come from. interval, power: the words behind the numbers of how sure they are, and of what becomes of the
    claim on wrong runs, with {names}; or "none, as" and the reason.
    """

    name: str
    text: str
    check: Callable[[Context], Verdict | Iterable[Verdict]]
    place: str = ""
    shows: str = ""
    why: tuple[Why, ...] = ()
    interval: str = ""
    power: str = ""

    def reason(self, verdict: Verdict) -> Why | None:
        """What a verdict of this claim comes from, where that is demonstrated."""
        fitting = (one for one in self.why if one.verdict == verdict.word and one.case in ("", verdict.case))
        return next(fitting, None)

    def judge(self, context: Context) -> list[Verdict]:
        """The verdicts, one or (as published, at a proven ε) several; missing rows are one, too."""
        verdicts: list[Verdict] = []
        try:
            checked = self.check(context)
            # One by one: what was judged before the rows of another setting were found missing stands.
            for verdict in [checked] if isinstance(checked, Verdict) else checked:
                verdicts.append(verdict)
        except NotEnough as missing:
            command = context.command(self.shows if missing.artefact is None else missing.artefact)
            verdicts.append(Verdict(NOT_ENOUGH, f"{missing}; run: {command}"))
        return verdicts


@dataclass(frozen=True)
class Case:
    """One published setting: the ε that is stated, and the lower and upper bounds on the ε it has at the same δ.

    part: whether the statement is of a part of a run alone, as of one release.
    """

    setting: str
    stated: float
    at_least: float
    at_most: float
    part: bool = False

    @property
    def verdict(self) -> str:
        # The slack is for an accountant's rounding: an ε that is exactly kept is no false statement.
        if self.at_least > self.stated * (1 + 1e-9):
            return "false"
        if self.at_most > self.stated * (1 + 1e-9):
            return "unproved"
        return "holds, with noise to spare"


FALSE, UNPROVED, HARMLESS, NEEDS_DATA = "false statement", "unproved", "harmless", "needs data"  # of errata


@dataclass(frozen=True)
class Erratum:
    """Published settings whose noise does not give the stated guarantee.

    ran: what noise was drawn; misses: the theorem and where it fails; bounds: where the numbers come from.
    """

    name: str
    title: str
    ran: str
    misses: str
    bounds: str
    cases: Callable[[], Iterator[Case]]

    def computed(self) -> tuple[Case, ...] | str:
        """The cases, or a line that says which data they need."""
        try:
            return tuple(self.cases())
        except NotAtHand as error:
            return str(error)

    @staticmethod
    def category(cases: tuple[Case, ...] | str) -> str:
        """By the worst of the cases of a whole run: some neighbours break a stated ε; one is not proved; all hold."""
        if isinstance(cases, str):
            return NEEDS_DATA
        verdicts = {case.verdict for case in cases if not case.part} or {case.verdict for case in cases}
        return FALSE if "false" in verdicts else UNPROVED if "unproved" in verdicts else HARMLESS


def each(declarations: Iterable[Callable[[F], F]]) -> Callable[[F], F]:
    """Several declarations of one function, in this order."""

    def declare(function: F) -> F:
        for declaration in reversed(list(declarations)):
            function = declaration(function)
        return function

    return declare


def declared(modules: Iterable[ModuleType], kind: type[D]) -> tuple[D, ...]:
    """What the modules' own functions declare, in the order of the modules and, in each, of the definitions."""
    return tuple(
        one
        for module in modules
        for function in vars(module).values()
        if getattr(function, "__module__", None) == module.__name__
        for one in getattr(function, _KEPT, ())
        if isinstance(one, kind)
    )


def keep(function: F, one: Artefact | Claim | Erratum) -> F:
    """Stacked decorators are applied from the last to the first and read from the first to the last."""
    setattr(function, _KEPT, [one, *vars(function).get(_KEPT, ())])
    return function
