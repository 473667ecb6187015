"""How a run ended: one word of a closed vocabulary, set where it is known and kept as the column `status`.

Another outcome is one more entry of `OUTCOMES`; nothing looks for an outcome in the text of an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from dpbench.errors import Defect, OutOfReach, UserError, WorkerDied

if TYPE_CHECKING:
    import pandas

StatusName: TypeAlias = Literal["done", "diverged", "out of reach", "refused", "died", "defect"]


@dataclass(frozen=True)
class Status:
    """meaning: in words. result: whether there are iterates to judge. blame: whether a method's code is at fault.

    raised: the exceptions that stand for it; the most special class decides.
    """

    meaning: str
    result: bool = False
    blame: bool = False
    raised: tuple[type[BaseException], ...] = ()


OUTCOMES: Mapping[StatusName, Status] = {  # from the best to the worst
    "done": Status("ended with finite iterates", result=True),
    "diverged": Status("ended, and its objective is infinite or too large to have a digit of the data", result=True),
    "out of reach": Status("no noise gives this ε under this accounting: not applicable", raised=(OutOfReach,)),
    "refused": Status("the method does not take this problem, these data or these settings", raised=(UserError,)),
    "died": Status("its process was killed, or had no memory", raised=(WorkerDied, MemoryError)),
    "defect": Status(
        "its code raised an error, or broke what it declares; a run that fails its privacy check is one",
        blame=True,
        raised=(Defect, Exception),
    ),
}
assert tuple(OUTCOMES) == get_args(StatusName)
RESULTS = frozenset(word for word, one in OUTCOMES.items() if one.result)
_RAISED: Mapping[type[BaseException], StatusName] = {cls: word for word, one in OUTCOMES.items() for cls in one.raised}


def status_of(error: BaseException) -> StatusName:
    """The outcome of a run that raised `error`."""
    return next((_RAISED[cls] for cls in type(error).__mro__ if cls in _RAISED), "defect")


def has_result(statuses: pandas.Series) -> pandas.Series:
    """Whether each run ended with iterates to judge, diverged ones among them."""
    return statuses.isin(RESULTS)


def worst(statuses: list[StatusName]) -> StatusName:
    """Of several runs', the one that says most against them."""
    return max(statuses, key=tuple(OUTCOMES).index)
