"""Signatures of submissions, and retractions."""

import json
import shutil
import sys

import minisign
import pytest

import dpbench
from dpbench.errors import UserError
from dpbench.experiments.leaderboard import EXPERIMENT, tables
from dpbench.run.results import Store
from dpbench.study.context import Context
from dpbench.submitting import checking, making, signature
from tests.submitting.archives import doctored


@pytest.fixture(scope="module")
def pairs():
    return minisign.KeyPair.generate(), minisign.KeyPair.generate()


def signed(made, target, pair, by=None):
    """The archive with the key of `pair` in its manifest, signed by `by` (the same)."""
    key = pair.public_key.to_base64().decode()
    path = doctored(made, target, manifest=lambda told: told.update(public_key=key))
    made_by = (by or pair).secret_key.sign(path.read_bytes(), trusted_comment="of a test")
    path.with_name(path.name + signature.SUFFIX).write_bytes(bytes(made_by))
    return path


def test_a_signature_is_verified_by_the_key_in_the_manifest(made, tmp_path, pairs):
    path = signed(made, tmp_path / "mine.zip", pairs[0])
    report = checking.check(path)
    assert report.problems == []
    assert report.signed_by == pairs[0].public_key.to_base64().decode()
    assert report.checked[0] == f"signature by {report.signed_by}"


@pytest.mark.parametrize("what", ["none", "of another key", "of other bytes", "garbage", "too large"])
def test_a_signature_that_is_none_is_refused_in_a_line(made, tmp_path, pairs, what):
    path = signed(made, tmp_path / "mine.zip", pairs[0], by=pairs[1] if what == "of another key" else None)
    beside = path.with_name(path.name + signature.SUFFIX)
    if what == "none":
        beside.unlink()
    elif what == "of other bytes":
        doctored(path, path, manifest=lambda told: told.update(author="somebody else"))
    elif what == "garbage":
        beside.write_bytes(b"\xff\x1b[2J" * 40)
    elif what == "too large":
        beside.write_bytes(b"x" * 5000)
    report = checking.check(path)
    (line,) = report.problems
    assert "signature" in line or ".minisig" in line
    assert line.isprintable()
    assert not report.signed_by


def test_without_the_library_it_is_not_checked(made, tmp_path, pairs, monkeypatch):
    path = signed(made, tmp_path / "mine.zip", pairs[0])
    monkeypatch.setitem(sys.modules, "minisign", None)
    report = checking.check(path)
    assert report.problems == []
    assert "needs py-minisign" in report.unchecked[0]
    assert not report.signed_by


def test_who_signed_the_first_signs_the_next(made, tmp_path, pairs):
    first, other = (signed(made, tmp_path / f"{i}.zip", pair) for i, pair in enumerate(pairs))
    dpbench.merge(first, results=tmp_path)
    for path in (other, made):
        with pytest.raises(UserError, match="is signed by RW"):
            dpbench.merge(path, results=tmp_path, replace=True)
    dpbench.merge(first, results=tmp_path, replace=True)


def test_a_key_file_is_minisigns(tmp_path, pairs):
    file = tmp_path / "minisign.pub"
    key = pairs[0].public_key.to_base64().decode()
    file.write_text(f"untrusted comment: minisign public key\n{key}\n")
    assert signature.public_key(file) == key
    file.write_text("untrusted comment: none\n")
    for wrong in (file, tmp_path / "nothing.pub"):
        with pytest.raises(UserError, match="no public key"):
            signature.public_key(wrong)


@pytest.mark.parametrize("text", ["a\nb", "=1+1", "\u202eevil", "x" * 401, "<b>"])
def test_an_author_is_words(text):
    assert making._fitting("author", "Zoë O’Neil, zoe@example.org") == "Zoë O’Neil, zoe@example.org"
    with pytest.raises(UserError, match=r"^author: letters"):
        making._fitting("author", text)


def test_what_is_retracted_is_listed_with_its_reason_and_has_no_place(made, tmp_path):
    folder = dpbench.merge(made, results=tmp_path)
    checked = json.loads((folder / "checked.json").read_text())
    (folder / "checked.json").write_text(json.dumps(checked | {"placed": True}))
    for method, reason, told in (
        ("averaged-gt", "a bug", "did you mean averaged-gd"),
        ("averaged-gd", " ", "one line"),
    ):
        with pytest.raises(UserError, match=told):
            dpbench.board_retract(method, reason=reason, profile="quick", results=tmp_path)
    dpbench.board_retract("averaged-gd", reason="noise of half the size", profile="quick", results=tmp_path)
    context = Context(EXPERIMENT, "quick", Store(tmp_path, "quick", "leaderboard"))
    (row,) = tables.submitted(context).frame.to_dict("records")
    assert row["standing"].startswith("retracted on 2")
    assert row["standing"].endswith("noise of half the size")
    with pytest.raises(UserError, match="was retracted on"):
        dpbench.board_retract("averaged-gd", reason="again", profile="quick", results=tmp_path)
    shutil.rmtree(folder)
