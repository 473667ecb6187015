"""A tiny data set in a file, a registry that forgets, and a web server on the loopback interface."""

import functools
import hashlib
import http.server
import threading

import numpy as np
import pytest

from dpbench.datasets import DatasetSpec, RawFile, loading, recipes, registry

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
    known = dict(registry._known())
    monkeypatch.setattr(registry, "_known", lambda: known)
    yield registry.register
    loading._load.cache_clear()


@pytest.fixture
def serve(tmp_path):
    """A function: folder -> URL of a web server; `serve.asked` lists the paths asked for, `serve.cut` cuts bodies."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

        def copyfile(self, source, out):
            content = source.read()
            out.write(content[: len(content) // 2] if start.cut else content)

    asked, servers = [], []

    def start(folder) -> str:
        handler = functools.partial(Handler, directory=str(folder))
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    start.asked, start.cut = asked, False
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
