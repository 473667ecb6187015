"""Archives that a stranger may send: each ends in one line, before anything in it is run."""

import contextlib
import hashlib
import json
import random
import stat
import zipfile
from pathlib import Path

import pytest

from dpbench.archive import content
from dpbench.errors import UserError
from dpbench.submitting import making
from tests.submitting.conftest import STRANGERS


def doctored(made, target, manifest=None, **members):
    """The archive with its manifest changed in place by a function, and members by name (with _ for .) replaced."""
    with zipfile.ZipFile(made) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    told = json.loads(parts.pop("manifest.json"))
    parts |= {name.replace("_", "."): text for name, text in members.items()}
    told["sha256"] = {name: hashlib.sha256(text).hexdigest() for name, text in parts.items()}
    if manifest:
        manifest(told)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name, text in {"manifest.json": json.dumps(told).encode(), **parts}.items():
            new.writestr(name, text)
    return target


LONG = "x" * 60_000
MANIFESTS = {
    "method in Cyrillic": {"method": "dр-gd"}, "method in capitals": {"method": "Averaged-GD"},
    "method with a path": {"method": "../../evil"}, "method with a space": {"method": "a b"},
    "method and a line's end": {"method": "dp-gd\n"}, "title and a line's end": {"title": "DP\n"},
    "method of 60,000 characters": {"method": LONG}, "method empty": {"method": ""},
    # what a terminal, a spreadsheet, TeX or a browser would run
    "title with a terminal escape": {"title": "DP\x1b[2J"}, "title with a bell": {"title": "DP\x07"},
    "title with TeX": {"title": "\\input{/etc/passwd}"}, "title with a formula": {"title": "=HYPERLINK(1)"},
    "title with a formula by plus": {"title": "+1+cmd"}, "title with at": {"title": "@SUM(1)"},
    "title with HTML": {"title": "<script>alert(1)</script>"}, "title with a table's bar": {"title": "a | b"},
    "title with a line break": {"title": "a\nb"}, "title turned round": {"title": "abc\u202edcba"},
    "title without width": {"title": "a\u200bb"}, "title of 60,000 characters": {"title": LONG},
    "author with an escape": {"author": "Zoë\x1b]0;x\x07"}, "licence with TeX": {"licence": "\\write18{ls}"},
    "no author": {"author": ""}, "a blank for an author": {"author": " "}, "a blank for a title": {"title": " "},
    "no title": {"title": ""},
    "class with a call": {"class_name": "X()"}, "library with a path": {"library": "../x"},
    "unknown field": {"more": 1}, "format of tomorrow": {"format": 99}, "a paper": {"kind": "paper"},
    "rows of before": {"profile": "full"}, "a hash that is none": {"sha256": {"method.py": "z"}},
    "a hash of another file": {"sha256": {"method.py": "0" * 64}}, "a hash too many": {"sha256": {"rows.jsonl": "0"}},
}  # fmt: skip


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_is_none_is_refused_in_one_line(made, tmp_path, name):
    path = doctored(made, tmp_path / "other.zip", lambda told: told.update(MANIFESTS[name]))
    with pytest.raises(UserError) as caught:
        content.read_submission(path)
    assert str(caught.value).isprintable()


def test_what_is_as_it_should_be_is_read(made, tmp_path):
    path = doctored(made, tmp_path / "same.zip", lambda told: told.update(author="Zoë O’Neil", licence="Apache-2.0"))
    found = content.read_submission(path)
    assert (found.manifest.method, found.manifest.author) == ("honest-steps", "Zoë O’Neil")
    assert found.method == STRANGERS.read_bytes()
    with zipfile.ZipFile(made) as archive:
        assert sorted(archive.namelist()) == ["manifest.json", "method.py"]


def test_what_the_board_keeps_can_be_checked_again():
    kept = Path(__file__).parents[2] / "results" / "full" / "leaderboard" / "submissions"
    for folder in kept.iterdir():
        assert content.read_submission(folder).manifest.method == folder.name


@pytest.mark.parametrize(
    ("member", "told"),
    [
        ({"name": "../evil.py"}, "points out of the archive"),
        ({"name": "/etc/evil"}, "points out of the archive"),
        ({"name": "method.py", "text": b"/etc/passwd", "mode": stat.S_IFLNK | 0o777}, "is a link"),
        ({"name": "rows.jsonl"}, "has no place in it"),
        ({"name": "method.py", "text": b"0" * (content.MB + 1)}, "1,048,577 bytes; at most"),
        ({"name": "method.py", "text": b"changed"}, "is not what the manifest was made for"),
        ({"name": "method.py", "packed": zipfile.ZIP_LZMA}, "packed in another way"),
    ],
)
def test_an_archive_is_refused_before_anything_is_unpacked(made, tmp_path, member, told):
    given = {"text": b"x", "mode": stat.S_IFREG | 0o644, "packed": zipfile.ZIP_DEFLATED} | member
    target = tmp_path / "forged.zip"
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if entry.filename != given["name"]:
                new.writestr(entry, old.read(entry))
        entry = zipfile.ZipInfo(given["name"])
        entry.external_attr = given["mode"] << 16
        new.writestr(entry, given["text"], given["packed"])
    with pytest.raises(UserError, match=told):
        content.read_submission(target)
    assert [path.name for path in tmp_path.iterdir()] == ["forged.zip"]


def test_a_file_that_is_none(made, tmp_path):
    (tmp_path / "cut.zip").write_bytes(made.read_bytes()[:-100])
    with pytest.raises(UserError, match="not a sound zip file"):
        content.read_submission(tmp_path / "cut.zip")
    with pytest.raises(UserError, match="No such file"):
        content.read_submission(tmp_path / "none.zip")
    twice = tmp_path / "twice.zip"
    twice.write_bytes(made.read_bytes())
    with zipfile.ZipFile(twice, "a") as added, pytest.warns(UserWarning, match="Duplicate"):
        added.writestr("method.py", b"")
    with pytest.raises(UserError, match="in it twice"):
        content.read_submission(twice)


@pytest.mark.thorough
def test_a_fuzz_of_archives_ends_each_in_a_line(made, tmp_path):
    chance, whole, read = random.Random(34), made.read_bytes(), 0
    for i in range(300):
        at = chance.randrange(len(whole))
        change = bytes(chance.randrange(256) for _ in range(chance.choice((0, 1, 8, 64))))
        path = tmp_path / f"{i}.zip"
        path.write_bytes(whole[:at] + change + whole[at + chance.choice((1, 8, 64)) :])
        with contextlib.suppress(UserError):
            read += content.read_submission(path).manifest.method == "honest-steps"
    assert read < 30  # bytes of the directory that say nothing may change


@pytest.mark.parametrize("text", ["", " ", "a\nb", "=1+1", "\u202eevil", "x" * 401, "<b>"])
def test_an_author_is_words(tmp_path, text):
    with pytest.raises(UserError, match=r"^author: (letters|a submission has one)"):
        making.submit(f"{STRANGERS}:Honest", author=text, out=tmp_path / "a.zip")
    assert not list(tmp_path.iterdir())
