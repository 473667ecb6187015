"""The rows and the groups of a table under types: a NamedTuple has the columns that its reader takes, and their types.

Only pandas knows what a cell is, and only when it runs: each row is checked against the NamedTuple as it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    import pandas

Line = TypeVar("Line", bound=NamedTuple)


def records(frame: pandas.DataFrame, kind: type[Line]) -> list[Line]:
    """The rows of a table, each with the columns that `kind` names; a text that is missing is None.

    Raises msgspec.ValidationError where a cell has another type than `kind` says.

    >>> import pandas as pd
    >>> class Cell(NamedTuple):
    ...     problem: str
    ...     epsilon: float
    >>> records(pd.DataFrame({"epsilon": [1, 0.5], "problem": ["adult", "covertype"], "seed": [0, 0]}), Cell)
    [Cell(problem='adult', epsilon=1.0), Cell(problem='covertype', epsilon=0.5)]
    """
    found = frame[[*kind._fields]]
    texts = found.select_dtypes(exclude=["number", "bool"]).astype(object)
    rows = found.assign(**texts.where(texts.notna(), None)).to_dict("split")["data"]
    return [msgspec.convert(row, kind) for row in rows]


def mappings(frame: pandas.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as {column: cell}."""
    names = [str(name) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in frame.to_dict("split")["data"]]


def groups(frame: pandas.DataFrame, kind: type[Line], *, sort: bool = False) -> Iterator[tuple[Line, pandas.DataFrame]]:
    """The groups of rows that share the columns of `kind`: (these columns, the rows), as they stand or sorted."""
    import pandas as pd

    found = list(frame.groupby([*kind._fields], sort=sort))
    keys = pd.DataFrame([key for key, _ in found], columns=[*kind._fields])
    return zip(records(keys, kind), (part for _, part in found), strict=True)
