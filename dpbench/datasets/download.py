"""Bring one raw file into the cache, from a mirror folder, a mirror URL or its publisher, and check it.

Nothing waits on a network that is not there: a host that did not answer once is not asked again.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from dpbench import files
from dpbench.datasets import spec
from dpbench.datasets import spec as raw_files
from dpbench.datasets.spec import RawFile
from dpbench.errors import DataError, NotAtHand, UserError, reason

Progress = Callable[[str, int, int], None]  # file name, bytes so far, bytes in all (0 if the server does not say)

KNOCK = 8.0  # seconds for a connection
SILENCE = 10.0  # seconds without a byte after which a transfer has failed


class SourceFailed(Exception):
    """One source did not give the file; the next may."""


class Network:
    """What one `fetch` has learnt of the network, so that no dead end is tried twice."""

    def __init__(self) -> None:
        self.offline = False
        self.hosts: dict[str, str] = {}  # host -> "" if it answers, else why not

    def reach(self, url: str) -> None:
        """Raise SourceFailed unless the host of `url`, or the proxy in front of it, accepts a connection."""
        from requests.utils import get_environ_proxies, select_proxy

        parts = urlsplit(select_proxy(url, get_environ_proxies(url)) or url)
        host = parts.hostname or ""
        if host not in self.hosts:
            if self.offline:
                raise SourceFailed("no network")
            self.hosts[host] = self._knock(host, parts.port or (443 if parts.scheme == "https" else 80))
        if self.hosts[host]:
            raise SourceFailed(self.hosts[host])

    def _knock(self, host: str, port: int) -> str:
        try:
            socket.create_connection((host, port), timeout=KNOCK).close()
        except (socket.gaierror, UnicodeError) as error:  # UnicodeError: a host name that no resolver is asked for
            self.offline, self.hosts[host] = True, "no network"
            raise SourceFailed(f"cannot resolve {host}: no network? All further downloads are skipped") from error
        except OSError as error:
            return f"{host}: {error.strerror or error}"
        return ""


def download(url: str, path: Path, network: Network, progress: Progress | None = None) -> None:
    """`url` into the file `path`; a cut transfer is tried twice. Raises SourceFailed."""
    import requests

    network.reach(url)
    name = PurePosixPath(urlsplit(url).path).name
    # A cut transfer may be chance; an answer with an error status is not, and is not asked for again.
    for attempt in (1, 2):
        try:
            with requests.get(url, stream=True, timeout=(KNOCK, SILENCE)) as answer, open(path, "wb") as out:
                answer.raise_for_status()
                total, done = int(answer.headers.get("content-length", 0)), 0
                for chunk in answer.iter_content(spec.CHUNK // 16):
                    done += out.write(chunk)
                    if progress:
                        progress(name, min(done, total or done), total)
            return
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else "unknown"
            raise SourceFailed(f"{url}: HTTP status {status}") from error
        except requests.RequestException as error:
            if attempt == 2:
                raise SourceFailed(f"{url}: the transfer was cut ({type(error).__name__})") from error


DAMAGED = (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk that is written to, whatever the error names
BY_HAND, NOT_PINNED = "put there by hand", "hash not pinned"  # words of the manifest


def mirror_of(mirror: str | os.PathLike[str] | None) -> Path | str | None:
    """The mirror asked for, else that of DPBENCH_MIRROR: a folder, a URL without its last slash, or None."""
    name = "mirror" if mirror else "DPBENCH_MIRROR"
    address = str(mirror or os.environ.get("DPBENCH_MIRROR", ""))
    if not address:
        return None
    if address.startswith(("http://", "https://")):
        return address.rstrip("/")
    folder = Path(address).expanduser()
    if not folder.is_dir():
        raise UserError(f"{name}: there is no folder {address}; give a folder or an http(s) URL")
    return folder.resolve()


def is_at_hand(file: RawFile, raw: Path, mirror: Path | str | None) -> bool:
    """Is there a file of that name in the cache or in a mirror folder?"""
    return any(raw_files.find([raw / file.folder], file.name)) or any(_in_folder(file, mirror))


def obtain(
    file: RawFile,
    raw: Path,
    mirror: Path | str | None = None,
    network: Network | None = None,
    progress: Progress | None = None,
) -> tuple[Path, dict[str, str]]:
    """The path of `file` below the folder `raw`, and its entry in the manifest (file, sha256, source, hash).

    Without `network` only what is there counts: the cache and a mirror folder. Raises DataError if only wrong
    files were found, NotAtHand if none was.
    """
    folder = raw / file.folder
    wrong: list[str] = []
    absent: list[str] = []
    # What is there comes first, whatever else is asked for: a checked file is never fetched again.
    for path in raw_files.find([folder], file.name):
        try:
            return path, check(file, path, _read_note(path))
        except DataError as error:
            wrong.append(f"{error} ({path})")
    for source in [*_in_folder(file, mirror), *(_urls(file, mirror) if network else ())]:
        try:
            return _bring(source, file, folder, network, progress)
        except DataError as error:
            wrong.append(f"{error} ({source})")
        except SourceFailed as error:
            absent.append(str(error))
    if wrong:
        raise DataError(wrong[0])
    nowhere = "no publisher's URL is known; give a mirror that holds it" if network else "no copy found"
    raise NotAtHand(f"{file.name}: {'; '.join(dict.fromkeys(absent)) or nowhere}")


def check(file: RawFile, path: Path, source: str) -> dict[str, str]:
    """The manifest's entry for a raw file. Raises DataError unless it is what `file` says."""
    entry = {"file": file.name, "sha256": raw_files.sha256(path), "source": source}
    try:
        digests = {entry["sha256"]}
        if raw_files.compression(path):
            digests.add(raw_files.sha256(path, uncompressed=True))
        # A copy may be compressed by another program: then its content's digest is the publisher's.
        if digests & set(file.sha256):
            return entry | {"hash": "as listed"}
        if file.pinned:
            raise DataError(f"{file.name}: sha256 {entry['sha256']} found, {file.sha256[0]} expected")
        if file.rows is not None and (rows := raw_files.count_rows(path)) != file.rows:
            raise DataError(f"{file.name}: {rows} rows found, {file.rows} expected")
        return entry | {"hash": NOT_PINNED}
    except DAMAGED as error:
        raise DataError(f"{file.name}: cut or damaged ({error})") from error


def unpack(path: Path, name: str) -> None:
    """If `path` is a zip or tar archive, replace it by its member `name`, in whatever folder."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            # By the last part of the path alone: archives differ in their folders, and none may lead out of ours.
            members = {PurePosixPath(member).name: member for member in archive.namelist()}
            _replace(path, name, members, archive.open)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            files_in = {PurePosixPath(m.name).name: m for m in archive.getmembers() if m.isfile()}
            _replace(path, name, files_in, archive.extractfile)


def _replace(path: Path, name: str, members: Mapping[str, Any], open_member: Callable[..., Any]) -> None:
    member = next((members[variant] for variant in raw_files.variants(name) if variant in members), None)
    if member is None:
        raise SourceFailed(f"the archive does not hold {name}")
    with files.replacing(path) as extracted, open_member(member) as stream, open(extracted, "wb") as out:
        shutil.copyfileobj(stream, out)


def forget(path: Path) -> None:
    """Remove a raw file and the note of its source."""
    for name in (path, _note(path)):
        name.unlink(missing_ok=True)


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.source")


def _read_note(path: Path) -> str:
    return _note(path).read_text(encoding="utf-8").strip() if _note(path).exists() else BY_HAND


def _in_folder(file: RawFile, mirror: Path | str | None) -> Iterator[Path]:
    """The copies of a file in a mirror folder, at most two levels below it; looked for as they are asked for."""
    if isinstance(mirror, Path):
        yield from raw_files.find([mirror, mirror / file.folder], file.name)
        # Mirrors are laid out in any way; two levels are found without walking a whole disk.
        for level in ("*/", "*/*/"):
            yield from raw_files.find(sorted(mirror.glob(level)), file.name)


def _urls(file: RawFile, mirror: Path | str | None) -> Iterator[str]:
    if isinstance(mirror, str):
        for place in (f"{mirror}/{file.folder}", mirror):
            yield from (f"{place}/{variant}" for variant in raw_files.variants(file.name))
    yield from file.sources


def _bring(
    source: Path | str, file: RawFile, folder: Path, network: Network | None, progress: Progress | None
) -> tuple[Path, dict[str, str]]:
    """Copy, check, and only then give the file its name."""
    try:
        # Under another name until it has been checked: a cut download never passes for the file.
        with files.temporary(folder / file.name) as path:
            origin = _copy(source, path, network, progress)
            if raw_files.sha256(path) not in file.sha256:
                unpack(path, file.name)
            entry = check(file, path, origin)
            final = folder / (raw_files.stem(file.name) + raw_files.compression(path))
            os.replace(path, final)
            _note(final).write_text(origin + "\n", encoding="utf-8")
            for other in raw_files.find([folder], file.name):  # a wrong one, or it would not have come to this
                if other != final:
                    forget(other)
            return final, entry
    except DAMAGED as error:
        if not isinstance(error, OSError) or error.errno is None:
            raise DataError(f"{file.name}: cut or damaged ({error})") from error
        if error.filename == str(source) and error.errno not in FULL:  # a copy names its source for either side
            raise SourceFailed(f"{source}: {reason(error)}") from error
        hint = "set DPBENCH_DATA to a writable folder with room"
        raise UserError(f"{folder}: {reason(error)}; {hint}") from error


def _copy(source: Path | str, path: Path, network: Network | None, progress: Progress | None) -> str:
    """Copy or download to `path`; returns what the manifest calls the source."""
    if isinstance(source, Path):
        shutil.copyfile(source, path)
        return f"mirror: {source.name}"
    if network is None:
        raise SourceFailed(f"{source}: not asked to use the network")
    url = source
    if source.startswith("openml:"):
        # OpenML's files move; its API says where one is now.
        url = _openml_url(source.removeprefix("openml:"), path, network)
    download(url, path, network, progress)
    return url


def _openml_url(number: str, path: Path, network: Network) -> str:
    """Where OpenML keeps the file of a data set, as its API says."""
    download(f"https://www.openml.org/api/v1/json/data/{number}", path, network)
    try:
        return str(json.loads(path.read_bytes())["data_set_description"]["url"])
    except (ValueError, KeyError, TypeError) as error:
        raise SourceFailed(f"OpenML says nothing of data set {number}") from error
