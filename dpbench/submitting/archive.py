"""The archive of a submission: what is in it, and reading one from a stranger.

A zip file with exactly the MEMBERS, all at its top. Reading unpacks nothing: kind, sizes, names and links are checked
on the directory, then each member is read into memory up to its limit, then hashes and schema. Nothing is executed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dpbench import files
from dpbench.errors import UserError
from dpbench.run.results import RUNS

FORMAT = 1
KB, MB = 1 << 10, 1 << 20
MEMBERS = {  # name → largest size, unpacked
    "manifest.json": 64 * KB,
    "rows.jsonl": 64 * MB,
    "ledgers.json": 16 * MB,
    "audit.json": 1 * MB,
    "method.py": 1 * MB,
}
LARGEST = 32 * MB  # the archive itself
STAMP = (1980, 1, 1, 0, 0, 0)  # equal content gives equal bytes


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the archive is of. source: the hash of method.py in job keys; sha256: of the other members, by name.

    library: the distribution whose solver it is, "" for a method of its own.
    """

    format: int
    method: str
    title: str
    class_name: str
    source: str
    profile: str
    code_version: str
    environment: str
    left_out: dict[str, str]
    sha256: dict[str, str]
    library: str = ""


class Test(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One test of the audit: a lower bound on the privacy loss, and what the ledger claims."""

    test: str
    bound: float
    claim: float
    unit: str


class AuditRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `dpbench audit` found at this ε."""

    epsilon: float
    runs: int
    passed: bool
    defect: str
    tests: list[Test]


class ReleaseCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`count` equal releases: `release` as of `ledgers.plain`."""

    release: dict[str, Any]
    count: int
    label: str


class LedgerRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that the run of this key released."""

    key: str
    releases: list[ReleaseCount]


_KINDS: dict[str, Any] = {"string": str, "double": float, "int64": int, "bool": bool, "list": list[float]}
RowRecord = msgspec.defstruct(
    "RowRecord",
    [("identity", dict[str, Any]), *((name, _KINDS[kind] | None, None) for name, kind in RUNS.items())],
    frozen=True,
    forbid_unknown_fields=True,
)


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
    with files.replacing(path) as staged, zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"manifest.json": encoded, **members}.items():
            entry = zipfile.ZipInfo(name, STAMP)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def read(path: str | os.PathLike[str]) -> Submission:
    """The content of an archive; UserError, in one line that names the archive, for one that is not as it should be."""
    try:
        return _decoded(_members(Path(path)))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _members(path: Path) -> dict[str, bytes]:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UserError(error.strerror or "cannot be read") from None
    if size > LARGEST:
        raise UserError(f"{size:,} bytes; an archive has at most {LARGEST:,}")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_directory(entries)
            return {entry.filename: _content(archive, entry) for entry in entries}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UserError(f"not a sound zip file ({error})") from None


def _check_directory(entries: list[zipfile.ZipInfo]) -> None:
    for entry in entries:
        name, mode = entry.filename, entry.external_attr >> 16
        if name.startswith(("/", "\\")) or ".." in name or ":" in name:
            raise UserError(f"member {name!r} points out of the archive")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise UserError(f"member {name!r} is a link or no plain file")
        if name not in MEMBERS:
            raise UserError(f"member {name!r} has no place in it; it holds {', '.join(MEMBERS)}")
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"member {name!r} is encrypted or packed in another way than zip's own")
        if entry.file_size > MEMBERS[name]:
            raise UserError(f"member {name!r} has {entry.file_size:,} bytes; at most {MEMBERS[name]:,}")
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        raise UserError("a member is in it twice")
    if missing := sorted(MEMBERS.keys() - set(names)):
        raise UserError(f"{', '.join(missing)} missing")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as member:  # checks the CRC at its end
        content = member.read(MEMBERS[entry.filename] + 1)
    if len(content) > MEMBERS[entry.filename]:
        raise UserError(f"member {entry.filename!r} is larger than the archive says")
    return content


def _decoded(members: dict[str, bytes]) -> Submission:
    manifest = _as("manifest.json", members["manifest.json"], Manifest)
    if manifest.format != FORMAT:
        raise UserError(f"format {manifest.format}; this dpbench reads {FORMAT}")
    for name in MEMBERS.keys() - {"manifest.json"}:
        if manifest.sha256.get(name) != hashlib.sha256(members[name]).hexdigest():
            raise UserError(f"{name} is not what the manifest was made for (sha256)")
    lines = members["rows.jsonl"].splitlines()
    return Submission(
        manifest,
        [_as(f"rows.jsonl, line {i + 1}", line, RowRecord) for i, line in enumerate(lines)],
        _as("ledgers.json", members["ledgers.json"], list[LedgerRecord]),
        _as("audit.json", members["audit.json"], list[AuditRecord]),
        members["method.py"],
    )


def _as(what: str, content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{what}: {error}") from None
