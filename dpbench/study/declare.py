"""What is declared of a paper: artefacts, claims and errata. `study.paper.Paper` declares them, with their words.

A declaration stays with its function; `declared` collects those of some modules, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from dpbench.errors import NotAtHand
from dpbench.study.claim_verdict import NOT_ENOUGH, NotEnough, Verdict

Context: TypeAlias = Any  # a `study.context.Context`, whose experiment is made of declarations
F = TypeVar("F", bound=Callable[..., Any])
D = TypeVar("D", "Artefact", "Claim", "Erratum")
_KEPT = "_declared"  # the attribute of a function that holds what is declared of it


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

    def explains(self, verdict: Verdict) -> bool:
        return self.verdict == verdict.word and self.case in ("", verdict.case)


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
        return next((one for one in self.why if one.explains(verdict)), None)

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
