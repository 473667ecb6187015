"""Parts of a sum over shards, added in a tree whose shape the shards' numbers alone decide.

A part belongs to a span: (level, i) stands for the 2^level shards from i·2^level on. Two halves of a span are added
wherever they meet, the left one to the right one, and nothing else is ever added. So the additions are the same ones
whichever workers hold the shards, however these pass their parts on, and in whatever order the parts arrive: the bits
of the sum do not depend on it, in floating point neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Span: TypeAlias = tuple[int, int]
Parts: TypeAlias = dict[Span, Any]
Merge: TypeAlias = Callable[[Any, Any], Any]  # of two neighbours' parts, such as their sum or their maximum


def joined(several: Iterable[Parts], merge: Merge | None) -> Parts:
    """All parts together, halves of one span merged until none are left; merge None keeps every part."""
    found: Parts = {}
    for parts in several:
        for span, value in parts.items():
            _put(found, span, value, merge)
    return found


def total(parts: Parts, merge: Merge) -> Any:
    """One part of those that are left (one at least), where no others come: a missing half counts for nothing."""
    left = dict(parts)
    while len(left) > 1:
        level, i = span = min(left)
        _put(left, (level + 1, i >> 1), left.pop(span), merge)
    return next(iter(left.values()))


def leaves(parts: Parts) -> list[int]:
    """The shards that the parts are of, in order; one that came twice may be there twice, as a part without a half."""
    return sorted(shard for level, i in parts for shard in range(i << level, (i + 1) << level))


def _put(found: Parts, span: Span, value: Any, merge: Merge | None) -> None:
    level, i = span
    while merge is not None and (level, i ^ 1) in found:
        other = found.pop((level, i ^ 1))
        value = merge(other, value) if i & 1 else merge(value, other)
        level, i = level + 1, i >> 1
    found[level, i] = value
