"""Zip files that go between strangers: written with equal bytes for equal content, read without unpacking anything.

Kind, sizes, names and links are checked on the directory, then each member is read into memory up to its limit.
Nothing is executed.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO

from dpbench import files
from dpbench.errors import UserError

STAMP = (1980, 1, 1, 0, 0, 0)  # equal content gives equal bytes
UNPACKED = 1 << 30  # bytes of all members together
DIRECTORY = 1 << 20  # bytes of the directory, which is read as a whole: ten thousand members
END, END_BYTES, FAR_END, FAR_BYTES = b"PK\x05\x06", 22, b"PK\x06\x07", 20


def write(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a zip file of these members, whole or not at all."""
    with files.replacing(path) as staged, zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, STAMP)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def read(path: Path, limit: Callable[[str], int], largest: int, needed: Iterable[str]) -> dict[str, bytes]:
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
