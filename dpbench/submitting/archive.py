"""The archive of a submission: what is in it, and reading one from a stranger.

A zip file with exactly the MEMBERS, all at its top. Reading unpacks nothing: kind, sizes, names and links are checked
on the directory, then each member is read into memory up to its limit, then hashes and schema. Nothing is executed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from dpbench.errors import UserError
from dpbench.run.row import RUNS, Row
from dpbench.submitting import zipped

FORMAT = 2
KB, MB = 1 << 10, 1 << 20
MEMBERS = {  # name → largest size, unpacked
    "manifest.json": 64 * KB,
    "rows.jsonl": 32 * MB,
    "ledgers.json": 4 * MB,
    "audit.json": 256 * KB,
    "method.py": 1 * MB,
}
LARGEST = 16 * MB  # the archive itself
MOST_ROWS = 20_000
LONGEST_LINE = 16 * KB  # of rows.jsonl

# What a stranger's text may hold: letters of the Latin and Greek alphabets, digits and a few marks. No control
# character, no direction mark, nothing that a terminal, a spreadsheet, TeX or a browser reads as a command.
LETTERS = "A-Za-z0-9À-ÖØ-öø-ÿΑ-ωϵ"
MARKS = r" .,:;()+/'’_%&@=*#^°™®†‡‖²³¹⁻₀₁₂ᵀℓ√·×±≤≥∞∇Σ→–-"
WORDS = rf"^([{LETTERS}(‖][{LETTERS}{MARKS}]*)?$"
NAME = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", min_length=2, max_length=40)]
TITLE = Annotated[str, msgspec.Meta(pattern=rf"^[{LETTERS}][{LETTERS} .,:()+'-]*$", max_length=60)]
TEXT = Annotated[str, msgspec.Meta(pattern=WORDS, max_length=400)]
IDENTIFIER = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)]
HEX = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]+$", max_length=64)]
KEY = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$")]
PROBLEM = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+$", max_length=80)]
NUMBER = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
WHOLE = Annotated[int, msgspec.Meta(ge=-1, le=10**12)]
COUNT = Annotated[int, msgspec.Meta(ge=1, le=10**6)]


def worded(text: str) -> str:
    """The text with what an archive's texts may not hold left out, at most 400 characters."""
    told = re.sub(rf"[^{LETTERS}{MARKS}]", " ", text.replace("<=", "≤").replace(">=", "≥"))
    return re.sub(rf"^[^{LETTERS}(‖]+", "", " ".join(told.split()))[:400]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the archive is of. source: the hash of method.py in job keys; sha256: of the other members, by name.

    library: the distribution whose solver it is, "" for a method of its own. left_out: problem → why it has no rows;
    whatever the reason, a missing problem that the method's needs admit scores as the worst there is. licence: as SPDX
    spells it. public_key: minisign's, of the signature beside the archive; "" for none.
    """

    format: int
    method: NAME
    title: TITLE
    class_name: IDENTIFIER
    source: HEX
    profile: Annotated[str, msgspec.Meta(pattern=r"^[a-z]+$", max_length=20)]
    code_version: TEXT
    environment: TEXT
    left_out: Annotated[dict[PROBLEM, TEXT], msgspec.Meta(max_length=200)]
    sha256: Annotated[dict[str, HEX], msgspec.Meta(max_length=len(MEMBERS))]
    library: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=60)] = ""
    author: TEXT = ""
    licence: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9.+ ()-]*$", max_length=60)] = ""
    hardware: TEXT = ""
    public_key: Annotated[str, msgspec.Meta(pattern=r"^(RW[A-Za-z0-9+/]{54})?$")] = ""


class Test(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One test of the audit: a lower bound on the privacy loss, and what the ledger claims."""

    test: TEXT
    bound: NUMBER
    claim: NUMBER
    unit: Annotated[str, msgspec.Meta(pattern="^[με]$")]


class AuditRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `dpbench audit` found at this ε."""

    epsilon: NUMBER
    runs: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    passed: bool
    defect: TEXT
    tests: Annotated[list[Test], msgspec.Meta(max_length=50)]


class ReleaseCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`count` equal releases: `release` as of `ledgers.plain`."""

    release: dict[str, Any]
    count: COUNT
    label: TEXT


class LedgerRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that the run of this key released."""

    key: KEY
    releases: Annotated[list[ReleaseCount], msgspec.Meta(max_length=64)]


SUBMITTED = "submit-"  # what stands before the method's name in the column `experiment`
# The columns of a row that a check looks at, or that are words of its author's. What else an archive states of a run,
# as its accuracy, nobody has computed again: it is not kept.
KEPT = (
    "experiment", "problem", "algorithm", "epsilon", "delta", "seed", "settings", "objective", "excess", "status",
    "error", "epsilon_planned", "relation", "accounting", "private", "counts_public", "timed", "notes", "key",
    "code_version", "data_sha256", "environment",
)  # fmt: skip
_KINDS: dict[str, Any] = {
    "string": Annotated[str, msgspec.Meta(max_length=4 * KB)],
    "double": NUMBER,
    "int64": WHOLE,
    "bool": bool,
    "list": Annotated[list[NUMBER], msgspec.Meta(max_length=1000)],
}
_CLOSER: dict[str, Any] = {
    **{name: TEXT for name, kind in RUNS.items() if kind == "string" and name not in ("settings", "sweep")},
    "key": KEY,
    "problem": PROBLEM,
    "algorithm": NAME,
    "epsilon": Annotated[float, msgspec.Meta(gt=0, le=1e6)],
    "delta": Annotated[float, msgspec.Meta(ge=0, lt=1)],
    "seed": Annotated[int, msgspec.Meta(ge=0, le=10**6)],
    "timed": Annotated[int, msgspec.Meta(ge=0, le=0)],
}
_NEEDED = ("key", "problem", "algorithm", "epsilon", "delta", "seed", "settings", "timed", "status", "relation")
RowRecord = msgspec.defstruct(
    "RowRecord",
    [
        ("identity", Annotated[dict[str, Any], msgspec.Meta(max_length=20)]),
        *((name, _CLOSER.get(name, _KINDS[RUNS[name]])) for name in _NEEDED),
        *((name, _CLOSER.get(name, _KINDS[kind]) | None, None) for name, kind in RUNS.items() if name not in _NEEDED),
    ],
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
)


def kept(record: Any, **changes: Any) -> Row:
    """What a results folder keeps of a `RowRecord`, with these columns changed."""
    return Row.read({name: getattr(record, name) for name in KEPT} | changes)


def settings(record: Any) -> dict[str, Any]:
    """The column `settings` of a `RowRecord`; {} where it is no object of JSON."""
    try:
        found = msgspec.json.decode(record.settings)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Submission:
    """What an archive holds. rows: of `RowRecord`."""

    manifest: Manifest
    rows: list[Any]
    ledgers: list[LedgerRecord]
    audit: list[AuditRecord]
    method: bytes


def write(path: Path, manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
    """Write an archive, whole or not at all; manifest: without `format` and `sha256`."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    described = Manifest(format=FORMAT, sha256=hashes, **manifest)
    encoded = msgspec.json.format(msgspec.json.encode(described, order="deterministic"), indent=1)
    zipped.write(path, {"manifest.json": encoded, **members})


def read(path: str | os.PathLike[str]) -> Submission:
    """The content of an archive; UserError, in one line that names the archive, for one that is not as it should be."""
    try:
        return _decoded(zipped.read(Path(path), _limit, LARGEST, MEMBERS))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:  # a stranger's bytes: whatever else happens is one line too
        raise UserError(f"{path}: cannot be read as an archive ({type(error).__name__})") from None


def _limit(name: str) -> int:
    if name not in MEMBERS:
        raise UserError(f"member {name!r} has no place in it; it holds {', '.join(MEMBERS)}")
    return MEMBERS[name]


def _decoded(members: dict[str, bytes]) -> Submission:
    manifest = _as("manifest.json", members["manifest.json"], Manifest)
    if manifest.format != FORMAT:
        raise UserError(f"format {manifest.format}; this dpbench reads {FORMAT}")
    for name in MEMBERS.keys() - {"manifest.json"}:
        if manifest.sha256.get(name) != hashlib.sha256(members[name]).hexdigest():
            raise UserError(f"{name} is not what the manifest was made for (sha256)")
    if members["rows.jsonl"].count(b"\n") > MOST_ROWS:
        raise UserError(f"rows.jsonl: more than {MOST_ROWS:,} lines")
    lines = members["rows.jsonl"].split(b"\n")  # where was counted, and nowhere else
    lines = lines if lines[-1] else lines[:-1]
    if any(len(line) > LONGEST_LINE for line in lines):
        raise UserError(f"rows.jsonl: a line of more than {LONGEST_LINE:,} bytes")
    return Submission(
        manifest,
        [_as(f"rows.jsonl, line {i + 1}", line, RowRecord) for i, line in enumerate(lines)],
        _as("ledgers.json", members["ledgers.json"], Annotated[list[LedgerRecord], msgspec.Meta(max_length=1000)]),
        _as("audit.json", members["audit.json"], Annotated[list[AuditRecord], msgspec.Meta(max_length=20)]),
        members["method.py"],
    )


def _as(what: str, content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, MemoryError) as error:
        told = str(error).encode("ascii", "backslashreplace").decode()  # an error may quote what it refuses
        raise UserError(f"{what}: {told[:300]}") from None
