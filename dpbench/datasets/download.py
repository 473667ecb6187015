"""Bring one raw file into the cache, from a mirror folder, a mirror URL or its publisher."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from dpbench.errors import DataError, NotAtHand, UserError

from . import files
from .spec import RawFile

Progress = Callable[
    [str, int, int], None
]  # file name, bytes so far, bytes in all (0 where the server does not say)

KNOCK = 8.0  # seconds for name resolution and connection together
SILENCE = 10.0  # seconds without a byte after which a transfer has failed
UNREADABLE = (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, zipfile.BadZipFile)


class SourceFailed(Exception):
    """One source did not give the file; the next may."""


@dataclass
class Network:
    """What one `fetch` has learnt of the network, so that no dead end is tried twice."""

    offline: str = ""
    hosts: dict[str, str] = field(default_factory=dict)  # host -> "" if it answers, else why not

    def reach(self, url: str) -> None:
        """Raise SourceFailed unless the host of `url`, or the proxy in front of it, accepts a connection."""
        from requests.utils import get_environ_proxies, select_proxy

        parts = urlsplit(select_proxy(url, get_environ_proxies(url)) or url)
        host = parts.hostname or ""
        if host not in self.hosts:
            if self.offline:
                raise SourceFailed("no network")
            port = parts.port or (443 if parts.scheme == "https" else 80)
            self.hosts[host] = self._knock(host, port)
        if self.hosts[host]:
            raise SourceFailed(self.hosts[host])

    def _knock(self, host: str, port: int) -> str:
        outcome = [f"{host} does not answer within {KNOCK:g} s"]
        resolved = threading.Event()

        def knock() -> None:
            try:
                address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]
                resolved.set()
                socket.create_connection(address[:2], timeout=KNOCK).close()
                outcome[0] = ""
            except OSError as error:
                outcome[0] = f"{host}: {error.strerror or error}"

        # In a thread of its own, because name resolution takes no time limit.
        thread = threading.Thread(target=knock, daemon=True)
        thread.start()
        thread.join(KNOCK)
        if not resolved.is_set():
            self.offline = (
                f"the name {host} cannot be resolved: no network, all further downloads are skipped"
            )
            return self.offline
        return outcome[0]


class _Bar:
    """What pooch asks of a progress bar, passed on to a `Progress` function."""

    total = 0

    def __init__(self, name: str, progress: Progress):
        self.name, self.progress, self.done = name, progress, 0

    def update(self, n: int) -> None:
        self.done += n
        self.progress(self.name, self.done, int(self.total))

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        self.progress(self.name, self.done, self.done)


def download(url: str, path: Path, network: Network, progress: Progress | None = None) -> None:
    """`url` into the file `path`. Raises SourceFailed."""
    import pooch
    import requests

    network.reach(url)
    bar = _Bar(PurePosixPath(urlsplit(url).path).name, progress) if progress else False
    get = pooch.HTTPDownloader(progressbar=bar, chunk_size=files.CHUNK // 16, timeout=(KNOCK, SILENCE))
    for attempt in (1, 2):
        try:
            return get(url, str(path), None)
        except requests.HTTPError as error:
            raise SourceFailed(f"{url}: HTTP status {error.response.status_code}") from error
        except requests.RequestException as error:
            if attempt == 2:
                raise SourceFailed(f"{url}: the transfer was cut ({type(error).__name__})") from error


def _openml_url(number: str, folder: Path, network: Network) -> str:
    """OpenML's URL of the file of a data set, as its API says."""
    with files.temporary_beside(folder / "openml.json") as path:
        download(f"https://www.openml.org/api/v1/json/data/{number}", path, network)
        try:
            return json.loads(path.read_text())["data_set_description"]["url"]
        except (ValueError, KeyError, TypeError) as error:
            raise SourceFailed(f"OpenML says nothing of data set {number}") from error


def unpack(path: Path, name: str) -> None:
    """If `path` is a zip or tar archive, replace it by its member `name`, in whatever folder."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = {PurePosixPath(member).name: member for member in archive.namelist()}
            _replace(path, name, members, archive.open)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            members = {PurePosixPath(m.name).name: m for m in archive.getmembers() if m.isfile()}
            _replace(path, name, members, archive.extractfile)


def _replace(path: Path, name: str, members: dict, open_member: Callable) -> None:
    found = next((members[variant] for variant in files.variants(name) if variant in members), None)
    if found is None:
        raise SourceFailed(f"the archive does not hold {name}")
    with files.temporary_beside(path) as extracted:
        with open_member(found) as stream, open(extracted, "wb") as out:
            shutil.copyfileobj(stream, out)
        os.replace(extracted, path)


def check(file: RawFile, path: Path, source: str) -> dict:
    """The manifest's entry for a raw file. Raises DataError unless it is what `file` says."""
    try:
        found = {files.sha256(path), files.sha256(path, uncompressed=True)}
        entry = {"file": file.name, "sha256": files.sha256(path), "source": source}
        if found & set(file.sha256):
            return entry | {"hash": "as listed"}
        if file.pinned:
            raise DataError(f"{file.name}: sha256 {entry['sha256']} found, {file.sha256[0]} expected")
        if file.rows is not None and (rows := files.count_rows(path)) != file.rows:
            raise DataError(f"{file.name}: {rows} rows found, {file.rows} expected")
        return entry | {"hash": "hash not pinned"}
    except UNREADABLE as error:
        raise DataError(f"{file.name}: cut or damaged ({error})") from error


def mirror_of(mirror: str | os.PathLike | None) -> Path | str | None:
    """The mirror asked for, else that of DPBENCH_MIRROR: a folder, a URL without its last slash, or None."""
    name = "mirror" if mirror else "DPBENCH_MIRROR"
    given = str(mirror or os.environ.get("DPBENCH_MIRROR", ""))
    if not given:
        return None
    if given.startswith(("http://", "https://")):
        return given.rstrip("/")
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise UserError(f"{name}: there is no folder {given}; give a folder or an http(s) URL")
    return folder.resolve()


def in_mirror(file: RawFile, mirror: Path | str | None) -> list[Path]:
    """The copies of a file in a mirror folder, at most two levels below it."""
    if not isinstance(mirror, Path):
        return []
    folders = [mirror, mirror / file.folder, *sorted(mirror.glob("*/")), *sorted(mirror.glob("*/*/"))]
    return list(dict.fromkeys(files.find(folders, file.name)))


def _urls(file: RawFile, mirror: Path | str | None) -> Iterator[str]:
    if isinstance(mirror, str):
        for place in (f"{mirror}/{file.folder}", mirror):
            yield from (f"{place}/{variant}" for variant in files.variants(file.name))
    yield from file.sources


def obtain(
    file: RawFile,
    raw: Path,
    mirror: Path | str | None = None,
    network: Network | None = None,
    progress: Progress | None = None,
) -> tuple[Path, dict]:
    """The path of `file` in the folder `raw`, and its entry in the manifest (file, sha256, source, hash).

    Without `network` only what is at hand counts: the cache and a mirror folder. Raises DataError if only
    wrong files were found, NotAtHand if none was.
    """
    folder = raw / file.folder
    wrong: list[str] = []
    absent: list[str] = []
    for path in files.find([folder], file.name):
        try:
            note = path.with_name(f"{path.name}.source")
            return path, check(
                file, path, note.read_text().strip() if note.exists() else "found in the cache"
            )
        except DataError as error:
            wrong.append(f"{error} (in the cache)")
    for source in [*in_mirror(file, mirror), *(_urls(file, mirror) if network else ())]:
        try:
            return _bring(source, file, folder, network, progress)
        except DataError as error:
            wrong.append(f"{error} (from {source})")
        except SourceFailed as error:
            absent.append(str(error))
    if wrong:
        raise DataError(wrong[0])
    nowhere = "no source is known" if network else "neither cached nor in the mirror"
    reasons = "; ".join(dict.fromkeys(absent)) or nowhere
    raise NotAtHand(f"{file.name}: {reasons}")


def _bring(source, file: RawFile, folder: Path, network, progress) -> tuple[Path, dict]:
    """Copy, check, and only then give the file its name."""
    try:
        with files.temporary_beside(folder / file.name) as path:
            if isinstance(source, Path):
                shutil.copyfile(source, path)
                origin = f"mirror: {source.name}"
            else:
                url = source
                if source.startswith("openml:"):
                    url = _openml_url(source.removeprefix("openml:"), folder, network)
                download(url, path, network, progress)
                origin = url
            if files.sha256(path) not in file.sha256:
                unpack(path, file.name)
            entry = check(file, path, origin)
            final = folder / (files.stem(file.name) + files.compression(path))
            for other in files.find([folder], file.name):
                other.unlink()
            os.replace(path, final)
            final.with_name(f"{final.name}.source").write_text(origin + "\n")
            return final, entry
    except UNREADABLE as error:
        if isinstance(error, OSError) and getattr(error, "errno", None) is not None:
            raise UserError(
                f"{folder}: {error.strerror}; set DPBENCH_DATA to a writable folder with room"
            ) from error
        raise DataError(f"{file.name}: cut or damaged ({error})") from error


def is_at_hand(file: RawFile, raw: Path, mirror: Path | str | None) -> bool:
    """Is there a file of that name in the cache or in a mirror folder?"""
    return any(files.find([raw / file.folder], file.name)) or bool(in_mirror(file, mirror))
