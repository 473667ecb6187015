"""A tiny data set in a file, a registry that forgets, and a web server on the loopback interface."""

import contextlib
import functools
import hashlib
import http.server
import socket
import struct
import threading

import numpy as np
import pytest

from dpbench.datasets import DatasetSpec, RawFile, loading, recipes

TABLE = b"1,2,1\n3,4,-1\n5,6,1\n7,8,-1\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tiny_file(name="tiny.csv", **changes) -> RawFile:
    return RawFile(**{"name": name, "folder": "tiny", "sha256": (sha256(TABLE),), "rows": 4} | changes)


def tiny_spec(file: RawFile, **changes) -> DatasetSpec:
    def prepare(raw):
        table = recipes.read_table(raw[file.name])
        return np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()

    facts = {"rows": 4, "columns": 2, "classes": {-1: 2, 1: 2}}
    about = {"name": "tiny", "title": "tiny", "prepare": prepare, "recipe": "as it is", "files": (file,)}
    return DatasetSpec(**about | facts | changes)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache and no mirror."""
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("DPBENCH_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def registered(monkeypatch):
    """A function that registers a data set for the length of a test."""
    known = dict(loading._known())
    monkeypatch.setattr(loading, "_known", lambda: known)
    yield loading.register
    loading.load_spec.cache_clear()


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; `server.asked` lists the paths asked for, `server.cut` says how bodies end too early."""

    def log_message(self, *args):
        self.server.asked.append(self.path)

    def copyfile(self, source, out):
        content = source.read()
        share = {False: len(content), "at once": 0}.get(self.server.cut, len(content) // 2)
        out.write(content[:share])
        if self.server.cut == "reset":  # closing without lingering sends RST
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            out.flush()
            self.connection.close()


@contextlib.contextmanager
def loopback(folder):
    """A web server with the content of `folder`; its `url`, `asked` and `cut` are attributes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
    server.handle_error = lambda *args: None
    server.url, server.asked, server.cut = f"http://127.0.0.1:{server.server_port}", [], False
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def serve():
    """A function: folder -> URL of a web server; `serve.asked` lists the paths asked for, `serve.cut` cuts bodies."""
    with contextlib.ExitStack() as servers:

        def start(folder) -> str:
            server = servers.enter_context(loopback(folder))
            server.asked, server.cut = start.asked, start.cut
            return server.url

        start.asked, start.cut = [], False
        yield start


@pytest.fixture
def raw(tmp_path):
    """A function: file name, content -> {file name: path}."""

    def write(*pairs):
        paths = {}
        for name, content in zip(pairs[::2], pairs[1::2], strict=True):
            paths[name] = tmp_path / name
            paths[name].write_bytes(content if isinstance(content, bytes) else content.encode())
        return paths

    return write
