"""The one archive format: a zip file with a manifest, rows with what their keys hash, and what its kind has beside.

A kind says which members an archive must and may have, how large each is, and which texts are free. Reading unpacks and
executes nothing: names, links and sizes are checked on the directory, then each member is read into memory up to its
limit, then digests and schema. Numbers are finite; what a row does not have, or has no finite number for, is left out.
Equal content gives equal bytes.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from dpbench import files
from dpbench.errors import UserError, counted
from dpbench.run.outcomes import StatusName
from dpbench.run.row import PARSED, RUNS, TRACES, Row

T = TypeVar("T")
FORMAT = 3
KB, MB = 1 << 10, 1 << 20

# What a stranger's text may hold: letters of the Latin and Greek alphabets, digits and a few marks. No control
# character, no direction mark, nothing that a terminal, a spreadsheet, TeX or a browser reads as a command.
LETTERS = "A-Za-z0-9À-ÖØ-öø-ÿΑ-ωϵ"
MARKS = r" .,:;()+/'’_%&@=*#^°™®†‡‖²³¹⁻₀₁₂ᵀℓ√·×±≤≥∞∇Σ→–-"
WORDS = rf"^([{LETTERS}(‖][{LETTERS}{MARKS}]*)?\Z"
NAME = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*\Z", min_length=2, max_length=40)]
TITLE = Annotated[str, msgspec.Meta(pattern=rf"^[{LETTERS}][{LETTERS} .,:()+'-]*\Z", max_length=60)]
TEXT = Annotated[str, msgspec.Meta(pattern=WORDS, max_length=400)]
IDENTIFIER = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z", max_length=80)]
HEX = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]+\Z", max_length=64)]
KEY = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
NUMBER = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
WHOLE = Annotated[int, msgspec.Meta(ge=-1, le=10**12)]
STAMP = (1980, 1, 1, 0, 0, 0)  # equal content gives equal bytes
UNPACKED = 1 << 30  # bytes of all members together
DIRECTORY = 1 << 20  # bytes of the directory, which is read as a whole: ten thousand members
END, END_BYTES, FAR_END, FAR_BYTES = b"PK\x05\x06", 22, b"PK\x06\x07", 20


def worded(text: str) -> str:
    """The text with what an archive's texts may not hold left out, at most 400 characters."""
    told = re.sub(rf"[^{LETTERS}{MARKS}]", " ", text.replace("<=", "≤").replace(">=", "≥"))
    # A cell that begins with = or @ is a formula to a spreadsheet.
    return re.sub(rf"^[^{LETTERS}(‖]+", "", " ".join(told.split()))[:400]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every archive says of itself. code_version: of the dpbench that made it; sha256: of its members, by name."""

    format: int
    kind: str
    code_version: TEXT
    sha256: Annotated[dict[str, HEX], msgspec.Meta(max_length=10_000)]


class PaperManifest(Manifest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the archive of an experiment is of. distribution: the package that has it, with its version."""

    kind: Literal["paper"]
    experiment: IDENTIFIER
    profile: IDENTIFIER
    title: TEXT
    distribution: TEXT


class SubmissionManifest(Manifest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a submission is of: the class of method.py, and how tables call it.

    library: the distribution whose solver it is, "" for a method of its own. licence: as SPDX spells it.
    """

    kind: Literal["submission"]
    method: NAME
    title: TITLE
    class_name: IDENTIFIER
    library: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?\Z", max_length=60)] = ""
    author: TEXT = ""
    licence: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9.+ ()-]*\Z", max_length=60)] = ""

    def __post_init__(self) -> None:
        if not (self.author or self.library):
            raise ValueError("author: a submission has one, as tables show it; give --author NAME")


class Traced(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The recorded iterations of one run, by column."""

    key: KEY
    iteration: list[WHOLE]
    passes: list[NUMBER | None]
    seconds: list[NUMBER | None]
    excess: list[NUMBER | None]


def _record(kinds: Mapping[str, Any], closer: Mapping[str, Any]) -> Any:
    """The struct of a line of rows.jsonl: `identity`, the key, and the other columns of a row, under these types."""
    types = {name: closer.get(name, kinds[kind]) for name, kind in RUNS.items()}
    fields: list[Any] = [("identity", Annotated[dict[str, Any], msgspec.Meta(max_length=20)]), ("key", types["key"])]
    fields += [(name, types[name] | None, None) for name in types if name != "key"]
    return msgspec.defstruct("RowRecord", fields, frozen=True, forbid_unknown_fields=True, kw_only=True)


_FREE = Annotated[str, msgspec.Meta(max_length=64 * KB)]
_LIST = Annotated[list[NUMBER | None], msgspec.Meta(max_length=10_000)]
_KINDS = {"double": NUMBER, "int64": WHOLE, "bool": bool, "list": _LIST, "string": _FREE}
_ROW, MOST_ROWS = _record(_KINDS, {"key": KEY, "status": StatusName}), 1_000_000


class ArchiveKind(NamedTuple):
    """name: in the manifest; members: name → largest size, unpacked; optional: those that may be missing; code: whether
    a folder may be there.

    largest: bytes of the file.
    """

    name: str
    manifest: type[Manifest]
    members: Mapping[str, int]
    optional: frozenset[str]
    code: bool
    largest: int


PAPER = ArchiveKind(
    "paper",
    PaperManifest,
    {"manifest.json": MB, "rows.jsonl": 512 * MB, "traces.jsonl": 512 * MB, "lock.txt": MB},
    frozenset({"traces.jsonl"}), True, 256 * MB,
)  # fmt: skip
SUBMISSION = ArchiveKind(
    "submission", SubmissionManifest, {"manifest.json": 64 * KB, "method.py": MB}, frozenset(), False, 2 * MB
)
CODE, CODE_FILE = "code/", MB  # larger files of a package are data, and stay out
# Below the folder, whatever joins the two: an empty step would make the rest of the name a path from the root.
CODE_NAME = re.compile(r"(?=.{6,205}$)code(/\.?[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)+")


@dataclass(frozen=True)
class PaperArchive:
    """The archive of an experiment. digest: of its manifest, and so of all.

    rows: each with the `identity` that its key hashes; traces: by key; code: its files, by their place on the path.
    """

    manifest: PaperManifest
    digest: str
    rows: list[tuple[dict[str, Any], Row]]
    traces: dict[str, Traced]
    code: dict[str, bytes]


class Submission(NamedTuple):
    """What a submission holds: a method in one file, and what it is called. Nothing in it is believed.

    digest: of its manifest, and so of all.
    """

    manifest: SubmissionManifest
    method: bytes
    digest: str


def line(identity: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """A line of rows.jsonl: a row's columns that it has a value or a finite number for, beside what its key hashes."""
    values = {name: value for name, value in Row.read(record).record().items() if value is not None}
    for name in values:
        if RUNS[name] == "int64":  # a frame has floats where some are missing
            values[name] = int(values[name])
        elif RUNS[name] == "list":
            values[name] = [float(each) for each in values[name]]  # what is not finite is null
    finite = {name: value for name, value in values.items() if value not in (math.inf, -math.inf)}
    return msgspec.json.encode({"identity": identity, **finite}) + b"\n"


def row_of(record: Any) -> Row:
    """The row of a line; msgspec.ValidationError for settings that are no JSON."""
    values = {name: value for name in RUNS if (value := getattr(record, name)) is not None}
    for name in values.keys() & {*PARSED}:
        values[name] = msgspec.json.decode(values[name], type=dict[str, Any])
    if "values" in values:
        # JSON has no infinity, so `line` wrote null for what diverged.
        values["values"] = [math.inf if value is None else value for value in values["values"]]
    return Row(**values)


def write(path: Path, kind: ArchiveKind, manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> str:
    """Write an archive, whole or not at all; its digest. manifest: without `format`, `kind` and `sha256`."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())}
    # The digests are in the manifest, so its own hash stands for the whole archive.
    described = msgspec.convert({"format": FORMAT, "kind": kind.name, "sha256": digests, **manifest}, kind.manifest)
    encoded = msgspec.json.format(msgspec.json.encode(described, order="deterministic"), indent=1)
    write_zip(path, {"manifest.json": encoded, **members})
    return hashlib.sha256(encoded).hexdigest()


def read_paper(path: str | os.PathLike[str]) -> PaperArchive:
    """The archive of an experiment; UserError, in one line that names it, for one that is not as it should be."""
    return _read(path, PAPER, _paper)


def read_submission(path: str | os.PathLike[str]) -> Submission:
    """A submission, as an archive or as the folder that it was merged into; UserError, in one line, for any other."""

    def made(manifest: Any, members: dict[str, bytes]) -> Submission:
        return Submission(manifest, members["method.py"], hashlib.sha256(members["manifest.json"]).hexdigest())

    return _read(path, SUBMISSION, made)


def _read(path: str | os.PathLike[str], kind: ArchiveKind, made: Callable[..., T]) -> T:
    def limit(name: str) -> int:
        if name in kind.members:
            return kind.members[name]
        if not kind.code or not CODE_NAME.fullmatch(name):
            raise UserError(f"member {ascii(name)[:200]} has no place in it; it holds {', '.join(kind.members)}")
        return CODE_FILE

    try:
        members = read_zip(Path(path), limit, kind.largest, kind.members.keys() - kind.optional)
        return made(_manifest(members, kind), members)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:  # a stranger's bytes: whatever else happens is one line too
        raise UserError(f"{path}: cannot be read as an archive ({type(error).__name__})") from None


def _manifest(members: dict[str, bytes], kind: ArchiveKind) -> Any:
    """The manifest, where all members are those that it was made for."""
    whole = members.pop("manifest.json")
    # The format first: an archive of another version would fail on some field, in words that do not help.
    if (told := _as("manifest.json", whole, dict[str, Any]).get("format")) != FORMAT:
        raise UserError(f"format {ascii(told)[:20]}; this dpbench reads {FORMAT}")
    manifest = _as("manifest.json", whole, kind.manifest)
    # Unpacked, one of the two would take the place of the other.
    if both := sorted(members.keys() & {str(folder) for name in members for folder in PurePosixPath(name).parents}):
        raise UserError(f"member {both[0]!r} is a file, and a folder of another member")
    # Neither a member without a digest, which nobody vouches for, nor a digest without its member.
    if odd := sorted(members.keys() ^ manifest.sha256.keys()):
        raise UserError(f"{odd[0]}: the manifest and the members are not of each other")
    for name, content in members.items():
        if manifest.sha256[name] != hashlib.sha256(content).hexdigest():
            raise UserError(f"{name} is not what the manifest was made for (sha256)")
    members["manifest.json"] = whole
    return manifest


def _lines(name: str, content: bytes, kind: Any) -> list[Any]:
    if (count := content.count(b"\n")) > MOST_ROWS:
        raise UserError(f"{name}: {counted(count, 'line')}; at most {MOST_ROWS:,}")
    lines = []
    for number, each in enumerate(io.BytesIO(content), 1):
        # Before it is decoded: a deep line of JSON costs far more memory than its bytes.
        if len(each) > MB:
            raise UserError(f"{name}, line {number}: more than {MB:,} bytes")
        lines.append(_as(f"{name}, line {number}", each, kind))
    return lines


def _paper(manifest: Any, members: dict[str, bytes]) -> PaperArchive:
    rows = []
    for number, record in enumerate(_lines("rows.jsonl", members["rows.jsonl"], _ROW), 1):
        try:
            rows.append((record.identity, row_of(record)))
        except msgspec.MsgspecError as error:
            raise UserError(f"rows.jsonl, line {number}: {ascii(str(error))[1:-1][:200]}") from None
    traces = _lines("traces.jsonl", members.get("traces.jsonl", b""), Traced)
    if len({one.key for one in traces}) < len(traces):
        raise UserError("traces.jsonl: two traces of one run")
    for one in traces:
        columns = [getattr(one, name) for name in TRACES if name != "key"]
        if len({*map(len, columns)}) > 1 or one.iteration != sorted({*one.iteration}):
            raise UserError(f"traces.jsonl: that of {one.key[:8]} is no list of iterations")
    code = {name.removeprefix(CODE): each for name, each in members.items() if name.startswith(CODE)}
    digest = hashlib.sha256(members["manifest.json"]).hexdigest()
    return PaperArchive(manifest, digest, rows, {one.key: one for one in traces}, code)


def _as(what: str, content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, MemoryError) as error:
        told = str(error).encode("ascii", "backslashreplace").decode()  # an error may quote what it refuses
        raise UserError(f"{what}: {told[:300]}") from None


def write_zip(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a zip file of these members, whole or not at all."""
    with files.replacing(path) as staged, zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, STAMP)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def read_zip(path: Path, limit: Callable[[str], int], largest: int, needed: Iterable[str]) -> dict[str, bytes]:
    """The members by name; UserError where something is not as it should be.

    limit: of a name, the largest size of the member in bytes, unpacked; UserError for a name that has no place in it.
    largest: bytes of the file itself. needed: members that have to be there. A folder has these as files.
    """
    if path.is_dir():
        # A pipe would hold whoever reads it, a link show another file.
        if odd := [name for name in sorted(needed) if (path / name).is_symlink() or not (path / name).is_file()]:
            raise UserError(f"{odd[0]} is missing, or no plain file")
        return {name: _content((path / name).open("rb"), name, limit(name)) for name in needed}
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UserError(error.strerror or "cannot be read") from None
    if size > largest:
        raise UserError(f"{size:,} bytes; an archive has at most {largest:,}")
    try:
        _check_end(path)
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_directory(entries, limit, needed)
            return {one.filename: _content(archive.open(one), one.filename, limit(one.filename)) for one in entries}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UserError(f"not a sound zip file ({error})") from None


def _check_end(path: Path) -> None:
    """UserError for a directory that is too large, before any of it is read."""
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, FAR_BYTES + END_BYTES), 2)
        far, end = (tail := file.read())[:-END_BYTES], tail[-END_BYTES:]
    if not end.startswith(END) or far.startswith(FAR_END):
        raise UserError("not a sound zip file (it ends in a comment, or in another way than dpbench writes)")
    if (size := int.from_bytes(end[12:16], "little")) > DIRECTORY:
        raise UserError(f"a directory of {size:,} bytes; at most {DIRECTORY:,}")


def _check_directory(entries: list[zipfile.ZipInfo], limit: Callable[[str], int], needed: Iterable[str]) -> None:
    for entry in entries:
        name, mode = entry.filename, entry.external_attr >> 16
        if name.startswith(("/", "\\")) or ".." in name or ":" in name:
            raise UserError(f"member {name!r} points out of the archive")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise UserError(f"member {name!r} is a link or no plain file")
        most = limit(name)
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"member {name!r} is encrypted or packed in another way than zip's own")
        if entry.file_size > most:
            raise UserError(f"member {name!r} has {entry.file_size:,} bytes; at most {most:,}")
    if (size := sum(entry.file_size for entry in entries)) > UNPACKED:
        raise UserError(f"its members have {size:,} bytes together; at most {UNPACKED:,}")
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        raise UserError("a member is in it twice")
    if missing := sorted({*needed} - set(names)):
        raise UserError(f"{', '.join(missing)} missing")


def _content(member: IO[bytes], name: str, most: int) -> bytes:
    with member:  # of a zip file, its CRC is checked at its end
        content = member.read(most + 1)
    if len(content) > most:
        raise UserError(f"member {name!r} is larger than the archive says")
    return content
