"""One URL into one file, without waiting on a network that is not there."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from dpbench.datasets import raw

Progress = Callable[[str, int, int], None]  # file name, bytes so far, bytes in all (0 if the server does not say)

KNOCK = 8.0  # seconds for name resolution and connection together
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
        outcome = [f"{host} does not answer within {KNOCK:g} s"]
        resolved = threading.Event()
        deadline = time.monotonic() + KNOCK

        def knock() -> None:
            try:
                addresses: set[Any] = {info[4][:2] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
                resolved.set()
                for address in addresses:
                    try:
                        socket.create_connection(address, timeout=max(0.1, deadline - time.monotonic())).close()
                        outcome[0] = ""
                        return
                    except OSError as error:
                        outcome[0] = f"{host}: {error.strerror or error}"
            except (OSError, UnicodeError):  # UnicodeError: a host name that no resolver is asked for
                pass

        # In a thread of its own, because name resolution takes no time limit.
        thread = threading.Thread(target=knock, daemon=True)
        thread.start()
        thread.join(KNOCK)
        if not resolved.is_set():
            self.offline, self.hosts[host] = True, "no network"
            raise SourceFailed(f"cannot resolve {host}: no network? All further downloads are skipped")
        return outcome[0]


class _Bar:
    """What pooch asks of a progress bar, passed on to a `Progress` function."""

    total = 0

    def __init__(self, name: str, progress: Progress) -> None:
        self.name, self.progress, self.done = name, progress, 0

    def update(self, n: int) -> None:
        self.done += n
        self.progress(self.name, min(self.done, self.total or self.done), self.total)

    def reset(self) -> None:
        """pooch follows this with update(total), which says nothing new."""
        self.done = 0

    def close(self) -> None:
        pass


def download(url: str, path: Path, network: Network, progress: Progress | None = None) -> None:
    """`url` into the file `path`; a cut transfer is tried twice. Raises SourceFailed."""
    import pooch
    import requests

    network.reach(url)
    bar = _Bar(PurePosixPath(urlsplit(url).path).name, progress) if progress else False
    get = pooch.HTTPDownloader(progressbar=bar, chunk_size=raw.CHUNK // 16, timeout=(KNOCK, SILENCE))
    for attempt in (1, 2):
        try:
            get(url, str(path), None)
            return
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else "unknown"
            raise SourceFailed(f"{url}: HTTP status {status}") from error
        except requests.RequestException as error:
            if attempt == 2:
                raise SourceFailed(f"{url}: the transfer was cut ({type(error).__name__})") from error
