"""Where raw files come from, and what happens when they do not."""

import gzip
import io
import socket
import tarfile
import zipfile

import pytest

from dpbench import datasets
from dpbench.datasets import download, loading
from dpbench.errors import DataError, NotAtHand, UserError
from tests.datasets.conftest import TABLE, sha256, tiny_file, tiny_spec

WRONG = b"<html>gone</html>\n"


@pytest.fixture
def dead_network(monkeypatch):
    """Names other than the loopback address do not resolve; returns the list of names asked for."""
    real, asked = socket.getaddrinfo, []

    def getaddrinfo(host, *args, **options):
        if host == "127.0.0.1":
            return real(host, *args, **options)
        asked.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror"
    folder.mkdir()
    return folder


def raw_files(home):
    return sorted(path.name for path in (home / "raw").rglob("*") if path.is_file() and path.suffix != ".source")


def statuses(results):
    return [(result.name, result.status) for result in results]


@pytest.mark.parametrize("place", [".", "tiny", "other/deeper"])
def test_a_mirror_folder_holds_files_up_to_two_levels_down(home, registered, mirror, place):
    registered(tiny_spec(tiny_file()))
    (mirror / place).mkdir(parents=True, exist_ok=True)
    (mirror / place / "tiny.csv").write_bytes(TABLE)
    assert statuses(datasets.fetch(["tiny"], mirror=mirror)) == [("tiny", "ready")]
    assert statuses(datasets.fetch(["tiny"], mirror=mirror)) == [("tiny", "already there")]
    assert raw_files(home) == ["tiny.csv"]
    assert datasets.load("tiny").X.shape == (4, 2)


def test_load_takes_what_a_mirror_folder_holds_and_never_the_network(home, registered, mirror, monkeypatch, serve):
    url = serve(mirror)
    registered(tiny_spec(tiny_file(sources=(f"{url}/tiny.csv",))))
    (mirror / "tiny.csv").write_bytes(TABLE)
    assert not datasets.available("tiny")
    with pytest.raises(NotAtHand, match=r"^data set tiny is not fetched .*; run: dpbench fetch tiny$"):
        datasets.load("tiny")
    monkeypatch.setenv("DPBENCH_MIRROR", url)
    with pytest.raises(NotAtHand):
        datasets.load("tiny")
    assert serve.asked == []
    monkeypatch.setenv("DPBENCH_MIRROR", str(mirror))
    assert datasets.available("tiny")
    assert not (home / "prepared").exists()  # available() prepares nothing
    assert datasets.load("tiny").X.shape == (4, 2)


def test_a_file_may_be_compressed_where_the_publisher_does_not(home, registered, mirror):
    registered(tiny_spec(tiny_file()))
    (mirror / "tiny.csv.gz").write_bytes(gzip.compress(TABLE))
    assert statuses(datasets.fetch(["tiny"], mirror=mirror)) == [("tiny", "ready")]
    assert raw_files(home) == ["tiny.csv.gz"]


@pytest.mark.parametrize("place", [".", "tiny"])
def test_a_url_mirror(home, registered, mirror, serve, place):
    registered(tiny_spec(tiny_file()))
    (mirror / place).mkdir(exist_ok=True)
    (mirror / place / "tiny.csv").write_bytes(TABLE)
    seen = []
    results = datasets.fetch(["tiny"], mirror=serve(mirror), progress=lambda *event: seen.append(event))
    assert statuses(results) == [("tiny", "ready")]
    assert seen[-1] == ("tiny.csv", len(TABLE), len(TABLE))


def zipped(member):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(member, TABLE)
    return out.getvalue()


def tarred(member):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(TABLE)
        archive.addfile(info, io.BytesIO(TABLE))
    return out.getvalue()


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_publishers_archive_is_searched_for_the_file(home, registered, mirror, serve, pack):
    (mirror / "5976039").write_bytes(pack("Some/Folder/tiny.csv"))
    (mirror / "empty").write_bytes(pack("Some/Folder/other.csv"))
    url = serve(mirror)
    registered(tiny_spec(tiny_file(sources=(f"{url}/empty", f"{url}/5976039"))))
    assert statuses(datasets.fetch(["tiny"])) == [("tiny", "ready")]
    assert raw_files(home) == ["tiny.csv"]


def test_openml_is_asked_where_the_file_lies(home, registered, mirror, serve, monkeypatch):
    url = serve(mirror)
    (mirror / "405").write_text(f'{{"data_set_description": {{"url": "{url}/tiny.csv"}}}}')
    (mirror / "tiny.csv").write_bytes(TABLE)
    real = download.download
    api = "https://www.openml.org/api/v1/json/data/"
    monkeypatch.setattr("dpbench.datasets.download.download", lambda u, *rest: real(u.replace(api, f"{url}/"), *rest))
    registered(tiny_spec(tiny_file(sources=("openml:405",))))
    assert statuses(datasets.fetch(["tiny"])) == [("tiny", "ready")]


def test_sources_are_tried_in_order_mirror_first(home, registered, mirror, tmp_path, serve):
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    (upstream / "wrong.csv").write_bytes(WRONG)
    (upstream / "right.csv").write_bytes(TABLE)
    (mirror / "tiny.csv").write_bytes(WRONG)
    url = serve(upstream)
    registered(tiny_spec(tiny_file(sources=tuple(f"{url}/{name}.csv" for name in ("absent", "wrong", "right")))))
    assert statuses(datasets.fetch(["tiny"], mirror=mirror)) == [("tiny", "ready")]
    assert serve.asked[-1].endswith("right.csv")
    assert datasets.load("tiny").X.shape == (4, 2)


def test_a_wrong_file_is_refused_by_its_digest(home, registered, mirror):
    registered(tiny_spec(tiny_file()))
    (mirror / "tiny.csv").write_bytes(WRONG)
    (result,) = datasets.fetch(["tiny"], mirror=mirror)
    assert result.status == "failed"
    assert f"tiny.csv: sha256 {sha256(WRONG)} found, {sha256(TABLE)} expected" in result.detail
    assert "\n" not in result.detail
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_cut_download_leaves_nothing(home, registered, mirror, serve):
    (mirror / "tiny.csv").write_bytes(TABLE)
    serve.cut = True
    registered(tiny_spec(tiny_file(pinned=False)))  # no digest to catch it
    (result,) = datasets.fetch(["tiny"], mirror=serve(mirror))
    assert result.status == "missing"
    assert "the transfer was cut" in result.detail
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_cut_gzip_file_is_refused_where_no_digest_is_known(home, registered, mirror):
    registered(tiny_spec(tiny_file(pinned=False)))
    (mirror / "tiny.csv.gz").write_bytes(gzip.compress(TABLE)[:-6])
    (result,) = datasets.fetch(["tiny"], mirror=mirror)
    assert (result.status, "tiny.csv: cut or damaged" in result.detail) == ("failed", True)


OTHER = TABLE.replace(b"8", b"9")


def test_without_a_pinned_digest_the_content_judges_and_the_manifest_says_so(home, registered, mirror):
    registered(tiny_spec(tiny_file(pinned=False)))
    (mirror / "tiny.csv").write_bytes(OTHER)
    assert datasets.fetch(["tiny"], mirror=mirror) == [
        datasets.FetchResult("tiny", "ready", "hash not pinned: tiny.csv")
    ]
    assert loading.cache.manifest_of(datasets.load("tiny").folder)["raw"][0]["hash"] == "hash not pinned"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TABLE[:-7], "tiny.csv: 3 rows found, 4 expected"),
        (TABLE.replace(b"\n", b",1\n"), "tiny: 3 columns found, 2 expected"),
        (TABLE.replace(b"-1", b"1"), "tiny: class counts {-1: 0, 1: 4} found, {-1: 2, 1: 2} expected"),
        (TABLE.replace(b"-1", b"0"), "tiny: labels other than -1 and +1 found"),
        (TABLE.replace(b"8", b"nan"), "tiny: NaN or infinite values found"),
        (TABLE.replace(b"8", b"?"), "tiny: tiny.csv cannot be read: "),
        (b"\n".join([WRONG.strip()] * 4), "tiny: tiny.csv cannot be read: "),
    ],
)
def test_wrong_content_is_refused_and_not_met_again(home, registered, mirror, content, message):
    registered(tiny_spec(tiny_file(pinned=False)))
    (mirror / "tiny.csv").write_bytes(content)
    (result,) = datasets.fetch(["tiny"], mirror=mirror)
    assert result.status == "failed"
    assert message in result.detail
    assert "\n" not in result.detail
    assert [path for path in home.rglob("*") if path.is_file()] == []
    (mirror / "tiny.csv").write_bytes(TABLE)
    assert statuses(datasets.fetch(["tiny"], mirror=mirror)) == [("tiny", "ready")]


def test_a_file_put_there_by_hand_is_never_removed(home, registered, mirror):
    registered(tiny_spec(tiny_file(pinned=False)))
    (home / "raw/tiny").mkdir(parents=True)
    (home / "raw/tiny/tiny.csv").write_bytes(TABLE.replace(b"-1", b"1"))
    with pytest.raises(DataError, match="class counts"):
        datasets.load("tiny")
    assert raw_files(home) == ["tiny.csv"]


def test_without_network_one_name_is_looked_up_and_the_rest_skipped(home, registered, mirror, dead_network):
    (mirror / "at_hand.csv").write_bytes(TABLE)
    for name in ("one", "two", "at_hand", "three"):
        sources = (f"https://a.example/{name}.csv", f"https://b.example/{name}.csv")
        registered(tiny_spec(tiny_file(f"{name}.csv", sources=sources), name=name))
    results = datasets.fetch(["one", "two", "at_hand", "three", "log1"], mirror=mirror)
    assert [result.status for result in results] == ["missing", "missing", "ready", "missing", "ready"]
    assert dead_network == ["a.example"]
    assert "cannot resolve a.example" in results[0].detail
    assert results[1].detail == "two.csv: no network"  # said at length once


def test_a_mirror_on_this_machine_goes_on_without_network(home, registered, mirror, serve, dead_network):
    (mirror / "two.csv").write_bytes(TABLE)
    for name in ("one", "two"):
        registered(tiny_spec(tiny_file(f"{name}.csv", sources=("https://a.example/x",)), name=name))
    results = datasets.fetch(["one", "two"], mirror=serve(mirror))
    assert statuses(results) == [("one", "missing"), ("two", "ready")]


def test_a_host_that_refuses_is_asked_once_and_the_next_one_tried(home, registered, mirror, serve, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    knocks, real = [], socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda a, **o: knocks.append(a[1]) or real(a, **o))
    (mirror / "tiny.csv").write_bytes(TABLE)
    refused = f"http://localhost:{port}"
    url = serve(mirror)
    registered(tiny_spec(tiny_file(sources=(f"{refused}/a", f"{refused}/b", f"{url}/tiny.csv"))))
    assert statuses(datasets.fetch(["tiny"])) == [("tiny", "ready")]
    assert set(knocks) == {port, int(url.rsplit(":", 1)[1])}


def test_time_limits_keep_the_promise_of_ten_seconds():
    assert max(download.KNOCK, download.SILENCE) <= 10


def test_a_file_of_no_known_publisher(home, registered):
    registered(tiny_spec(tiny_file()))
    (result,) = datasets.fetch(["tiny"])
    assert (result.status, "give a mirror that holds it" in result.detail) == ("missing", True)


def test_bad_arguments_are_refused_before_anything_is_done(home, tmp_path):
    with pytest.raises(UserError, match="unknown data set 'coverype': did you mean covertype"):
        datasets.fetch(["log1", "coverype"])
    with pytest.raises(UserError, match=r"mirror: there is no folder .*; give a folder or an http\(s\) URL"):
        datasets.fetch(["log1"], mirror=tmp_path / "absent")
    assert not home.exists()


def test_a_misspelt_mirror_variable_is_named(home, registered, monkeypatch, tmp_path):
    registered(tiny_spec(tiny_file()))
    monkeypatch.setenv("DPBENCH_MIRROR", str(tmp_path / "absent"))
    assert not datasets.available("tiny")
    with pytest.raises(UserError, match="DPBENCH_MIRROR: there is no folder"):
        datasets.load("tiny")
