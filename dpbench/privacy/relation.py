"""When two data sets are neighbours."""

from __future__ import annotations

from enum import Enum


class Relation(str, Enum):
    """The neighbouring relation of a guarantee; the size n of the data set is public under both.

    A sensitivity is the largest change between neighbours, so a sum of vectors of norm at most 1 has sensitivity 1
    under `ADD_REMOVE` and 2 under `REPLACE_ONE`; a noise multiplier is always relative to the sensitivity *in the
    run's own relation*.
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    def __str__(self) -> str:
        return self.value

    @property
    def rows(self) -> int:
        """How many rows neighbours differ by: a row and what replaces it, or the row that one of them lacks."""
        return 2 if self is Relation.REPLACE_ONE else 1
