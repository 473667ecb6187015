"""A model as a file, with the statement of what its release cost: no pickle, checked before it is used.

The statement is what the fit said of itself, so what can be computed again is: `check_statement` composes its releases
by the second accountant and writes its sentence anew. The file's digest tells an accident, not a forger, who would
write a new one. What nobody can compute from the file, `Statement.lines` names as stated by it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dpbench import files
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.check import at_most
from dpbench.privacy.ledger import MOST, Composition, Relation, composition_of
from dpbench.privacy.verify import spent

FORMAT = 3
HOLDS = {"bytes": "holds for the bytes released", "real": "in exact arithmetic"}
AS_STATED = (
    "Stated by the file, and impossible to check: {} and the weights, settings that do not change the releases, that "
    "the weights came from these releases and from nothing else, the time, and the libraries"
)
RELATIONS = {
    Relation.REPLACE_ONE.value: "one row replaced by any other",
    Relation.ADD_REMOVE.value: "one row added or taken away",
}


class DoesNotHold(UserError, PrivacyError):
    """A statement of which something that can be computed again is not so."""


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a release of a model is said to be.

    made: when, in UTC. mechanism: the algorithm; settings: its own. epsilon, delta, relation: the guarantee. public:
    what was taken for public. arithmetic: "bytes" or "real", see `dpbench.fit`. guarantee: all of it in words.
    releases: the plan of what was released, as plain data. versions: of the libraries. rows: n, which is public. unit:
    what tells whose a row is; n is then the number of persons, and "" where each row is one's own. charge: the mark of
    the data budget that paid for it, "" without one.
    """

    made: str
    mechanism: str
    settings: dict[str, Any]
    epsilon: float
    delta: float
    relation: str
    public: list[str]
    arithmetic: str
    guarantee: str
    releases: list[dict[str, Any]]
    versions: dict[str, str]
    rows: int
    charge: str = ""
    unit: str = ""

    @property
    def composition(self) -> Composition:
        """The releases; UserError where they are none."""
        try:
            return composition_of(self.releases)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"its releases cannot be read ({error})") from None

    @property
    def neighbours(self) -> str:
        """What neighbouring tables differ in."""
        told = RELATIONS.get(self.relation, self.relation)
        if not self.unit:
            return told
        all_rows = f"all rows of one person (one value of {self.unit})"
        return told.replace("one row", all_rows).replace("any other", "any others, one or more")

    def lines(self) -> list[str]:
        """The statement for a reader who was not there."""
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        shown = [
            f"Made {self.made} by {self.mechanism}{settings and f' ({settings})'}",
            f"Guarantee: {self.guarantee}",
            f"Neighbours: {self.neighbours}",
            f"Counts as public: {', '.join(self.public)} ({'M' if self.unit else 'n'} = {self.rows:,})",
            "Releases, and the noise of each:",
        ]
        shown += [f"  {entry.count} × {entry.label}: {entry.release}" for entry in self.composition]
        shown += [f"Charged to a data budget: {self.charge}"] * bool(self.charge)
        shown.append("Libraries: " + ", ".join(f"{name} {version}" for name, version in self.versions.items()))
        return [*shown, AS_STATED.format("M, which rows are whose," if self.unit else "n")]


def sentence(
    epsilon: float,
    delta: float,
    relation: str,
    arithmetic: str,
    public: Sequence[str],
    *,
    word_of: str | None,
    unit: str = "",
) -> str:
    """A guarantee in words. word_of: the method whose code is not dpbench's, so that its ledger alone is checked.

    unit: as of a `Statement`.
    """
    of = f", protects all rows of one person (one value of {unit})" if unit else ""
    return (
        f"(ε = {epsilon:g}, δ = {delta:.3g})-DP under {relation} neighbours{of}, {HOLDS[arithmetic]}; "
        f"counts as public: {', '.join(public)}"
        + (f"; that it returns nothing but its releases is the word of {word_of} alone" if word_of else "")
    )


def number_of(unit: str) -> str:
    """What of the size of a table counts as public: n, or with a unit the number of persons alone."""
    return f"the number of persons, M (values of {unit})" if unit else "n"


def check_statement(statement: Statement, *, word_of: str | None = None) -> list[str]:
    """What was computed again and holds, one line each; DoesNotHold where something does not.

    word_of: as of `sentence`.
    """
    # A line break in a name could write a second, false line below the true ones.
    said = (text for leaf in leaves(msgspec.to_builtins(statement)) for text in leaf if isinstance(text, str))
    if odd := [text for text in said if not text.isprintable()]:
        raise DoesNotHold(f"it has a line break or another control character in {ascii(odd[0])[:80]}")
    if statement.relation not in RELATIONS:
        raise DoesNotHold(f"its relation {statement.relation!r} is none of {', '.join(RELATIONS)}")
    if not (0 < statement.epsilon < math.inf and 0 <= statement.delta < 1):
        raise DoesNotHold(f"ε = {statement.epsilon:g}, δ = {statement.delta:g} are no guarantee")
    if statement.arithmetic not in HOLDS:
        raise DoesNotHold(f"its arithmetic {statement.arithmetic!r} is none of {', '.join(HOLDS)}")
    if not 2 <= statement.rows <= MOST:
        few = statement.rows < 2
        raise DoesNotHold(
            f"n = {statement.rows} protects nobody: a model needs two rows at least" if few else f"n is beyond {MOST:g}"
        )
    if not statement.releases:
        raise DoesNotHold("it lists no release: a model that nothing was released for used the data some other way")
    # The ε of the file is not believed: its releases compose to one, by the second accountant.
    try:
        result = spent(statement.composition, statement.delta, Relation(statement.relation))
    except (ArithmeticError, MemoryError) as error:
        raise DoesNotHold(f"its releases are beyond all that can be composed ({type(error).__name__})") from None
    if not at_most(result.epsilon, statement.epsilon):
        raise DoesNotHold(
            f"its releases compose to ε = {result.epsilon:.6g} at δ = {statement.delta:.3g}, more than the "
            f"{statement.epsilon:g} stated"
        )
    of = (statement.epsilon, statement.delta, statement.relation, statement.arithmetic, statement.public)
    # Written anew from the numbers and compared whole: a forged sentence cannot differ by a word.
    if statement.guarantee != (right := sentence(*of, word_of=word_of, unit=statement.unit)):
        raise DoesNotHold(f"its guarantee says {statement.guarantee!r}, but what it states amounts to {right!r}")
    return [
        f"its releases compose to ε = {result.epsilon:.6g} at δ = {statement.delta:.3g} ({result.checked_by})",
        "its guarantee claims no more than its ε, δ, neighbours, arithmetic and what counts as public",
        "its digest matches its content",
    ]


def leaves(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in plain data, each with its name; an empty list or table is one."""
    if isinstance(data, dict | list | tuple) and data:
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(value, f"{name}/{key}")
    else:
        yield name, data


def write(path: str | os.PathLike[str], model: dict[str, Any], statement: Statement) -> None:
    """A JSON file with a model of plain values, its statement, and a digest of both; UserError if it cannot be."""
    content = {"format": FORMAT, "model": model, "statement": msgspec.to_builtins(statement)}
    files.written(json.dumps(content | {"sha256": _digest(content)}, indent=1, ensure_ascii=False) + "\n", path)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Statement]:
    """(model, statement) of a file that `write` made; UserError, in one line, for any other."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        digest = content.pop("sha256")
        if content.get("format") != FORMAT:
            raise UserError(f"{path}: not a model of this version of dpbench; fit and save it again")
        # Against accidents: who edits on purpose writes a new digest, and meets the checks of the statement.
        if digest != _digest(content):
            raise UserError(f"{path}: its digest does not match its content; it is damaged, or was edited")
        return dict(content["model"]), msgspec.convert(content["statement"], Statement)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: not a model that dpbench saved") from None


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
