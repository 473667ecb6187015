"""Releases as plain data and back: what a file or an archive says was released, refused unless it is a release."""

from __future__ import annotations

import dataclasses
from typing import Any

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import ledger
from dpbench.privacy.ledger import Relation, Release

KINDS: dict[str, type] = {  # all but the bases
    name: kind for name, kind in vars(ledger).items()
    if isinstance(kind, type) and issubclass(kind, Release) and kind not in (Release, ledger.Sampled)
}  # fmt: skip
# What an archive may claim of one release, so that composing it is bounded: an honest one is far inside.
WITHIN = {"int": (1, 10**8), "float": (1e-12, 1e12)}
CLOSER = {"steps": (1, 10**5), "noise_multiplier": (1e-3, 1e9), "contraction": (0.0, 1.0), "mean": (1.0, 1e4)}
CLOSER |= {"draws": (1, 10**7), "ratio": (1e-9, 1.0)}
CLOSER |= dict.fromkeys(("delta", "failure", "leak"), (1e-60, 1.0))  # shares of a δ, which is n⁻² as a rule
DEEPEST = 3  # releases within releases
MOST = 16  # kinds of release in one run of a best of runs


def plain(release: Release) -> dict[str, Any]:
    """{"kind": its class, field: value, …}, nested where a release is on a sample or the best of runs."""
    fields = {field.name: getattr(release, field.name) for field in dataclasses.fields(release)}
    return {"kind": type(release).__name__} | {name: _plain(value) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    if type(value) in KINDS.values():
        return plain(value)
    if isinstance(value, tuple):
        return [[plain(release), count] for release, count in value]
    return value.value if isinstance(value, Relation) else value


def release_of(data: Any, depth: int = 0) -> Release:
    """The inverse of `plain`; UserError for anything that is not a release within bounds."""
    fields = dict(data) if isinstance(data, dict) else {}
    kind = KINDS.get(str(fields.pop("kind", "")))
    known = {} if kind is None else {field.name: str(field.type) for field in dataclasses.fields(kind)}
    if kind is None or fields.keys() != known.keys() or depth > DEEPEST:
        raise UserError(f"not a release: {ascii(data)[:80]}")
    values = {name: _value(f"{kind.__name__}: {name}", name, fields[name], of, depth) for name, of in known.items()}
    try:
        release: Release = kind(**values)
        return release
    except (PrivacyError, TypeError, ValueError) as error:
        raise UserError(ascii(str(error))[1:-1][:200]) from None


def _value(where: str, name: str, value: Any, of: str, depth: int) -> Any:
    """The value of one field whose annotation is `of`; UserError where it is of another kind, or out of bounds."""
    wrong = UserError(f"{where}: {ascii(value)[:40]} is not of its kind")
    if of in WITHIN:
        low, high = CLOSER.get(name, WITHIN[of])
        if isinstance(value, bool) or not isinstance(value, int if of == "int" else int | float):
            raise wrong
        if not low <= value <= high:
            raise UserError(f"{where} must be within {low:g} to {high:g}")
        return float(value) if of == "float" else value
    # A law by name is one that the release itself checks.
    if (of == "bool" and isinstance(value, bool)) or (of.startswith("Literal") and isinstance(value, str)):
        return value
    if of == "Relation" and value in [one.value for one in Relation]:
        return Relation(value)
    if of.startswith("tuple") and isinstance(value, list) and 0 < len(value) <= MOST and all(map(_pair, value)):
        return tuple((release_of(one, depth + 1), count) for one, count in value)
    if isinstance(value, dict) and type(inner := release_of(value, depth + 1)).__name__ in of.split(" | "):
        return inner
    raise wrong


def _pair(one: Any) -> bool:
    return isinstance(one, list) and len(one) == 2 and type(one[1]) is int and 0 < one[1] <= 10**6
