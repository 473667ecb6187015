"""A third set of attacks on submissions, by somebody who did not write them: names, numbers, settings, files."""

import io
import json
import os
import time
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from dpbench.archive.content import read_submission
from dpbench.errors import UserError
from dpbench.leaderboard import places
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Relation
from dpbench.run.row import Row
from dpbench.serving import wire
from dpbench.serving.process import ServedRun
from dpbench.serving.sandbox import Limits
from dpbench.submitting import checking, making
from dpbench.submitting.checking import taken


@pytest.mark.parametrize("title", [
    "D\u03a1-GD",  # a Greek capital Rho for P
    "dp-gd-l\u03b1st", "\u0391daSSP", "DP\u2013GD", "dp-gd\u00b7", "\uff24\uff30-GD", "d\u0301p-gd", "DP GD.", "(dp)gd",
    "dp-gd-1ast",
], ids=ascii)  # fmt: skip
def test_a_title_that_looks_like_another_is_that_other(title):
    """A board shows titles: another alphabet, width, mark or digit makes another name for the machine alone."""
    assert "is that of" in taken("mine-own", title)


@pytest.mark.parametrize("title", ["Steps by Student", "Γ steps", "Noisy steps (α = 2)", "Éditions 3000"])
def test_a_title_of_its_own_is_free(title):
    assert not taken("mine-own", title)


def forged(made, target, change):
    """The archive with its manifest's text changed."""
    with zipfile.ZipFile(made) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["manifest.json"] = change(members["manifest.json"])
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target


def last(field, value):
    """A second value of a field at the end of the manifest."""
    return lambda text: text.rstrip()[:-1] + f', "{field}": {json.dumps(value)}}}'.encode()


MANIFESTS = {
    "a mark of byte order": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "half of a pair of letters": lambda text: text.replace(b"honest-steps", b"\\ud800onest", 1),
    "a name of 100,000 letters": lambda text: text.replace(b'"honest-steps"', b'"' + b"a" * 100_000 + b'"', 1),
    "a name of a device": lambda text: text.replace(b'"honest-steps"', b'"../honest"', 1),
    "a name with a NUL": lambda text: text.replace(b'"honest-steps"', b'"honest\\u0000"', 1),
    "a number of a million digits": lambda text: text.replace(b'"honest-steps"', b"9" * 1_000_000, 1),
    "lists 30,000 deep": lambda text: text.rstrip()[:-1] + b', "x": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "a class of a module": lambda text: text.replace(b'"Honest"', b'"os.system"', 1),
    "a class with letters of another alphabet": lambda text: text.replace(b'"Honest"', '"Hοnest"'.encode(), 1),
    "NaN": lambda text: text.replace(b'"honest-steps"', b"NaN", 1),
    "a digest of another file for another member": last("sha256", {"method.py": "0" * 64, "evil.pth": "0" * 64}),
    "a Cyrillic title": last("title", "D\u0420-GD"),
    "a title that turns what follows": last("title", "a\u202eb"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_refused_in_a_line(made, tmp_path, name):
    archive = forged(made, tmp_path / "forged.zip", MANIFESTS[name])
    with pytest.raises(UserError) as caught:
        read_submission(archive)
    assert "\n" not in str(caught.value)
    assert str(caught.value).isascii() or str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("name", [
    "__pycache__/method.cpython-311.pyc", "sitecustomize.py", "evil.pth", "Method.py", "method.py\u200b",
    "code/evil.py", "./method.py", "method\uff0epy",
], ids=ascii)  # fmt: skip
def test_a_member_beside_the_method_has_no_place(made, tmp_path, name):
    """Compiled files, hooks of Python's start, and names that a file system may take for the method's."""
    target = tmp_path / "more.zip"
    target.write_bytes(made.read_bytes())
    with zipfile.ZipFile(target, "a") as archive:
        archive.writestr(name, b"")
    with pytest.raises(UserError, match="has no place in it"):
        read_submission(target)


def test_a_member_that_is_a_pipe_or_a_device_is_refused(made, tmp_path):
    for mode in (0o010644, 0o020644, 0o120777, 0o060644):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive, zipfile.ZipFile(made) as good:
            for one in good.infolist():
                one.external_attr = mode << 16
                archive.writestr(one, good.read(one.filename))
        (tmp_path / "odd.zip").write_bytes(content.getvalue())
        with pytest.raises(UserError, match="is a link or no plain file"):
            read_submission(tmp_path / "odd.zip")


def test_a_pipe_in_an_archive_s_place_does_not_hold_the_receiver(tmp_path):
    os.mkfifo(tmp_path / "pipe.zip")
    writer = os.open(tmp_path / "pipe.zip", os.O_RDWR)  # so that nobody waits for one
    try:
        with pytest.raises(UserError):
            read_submission(tmp_path / "pipe.zip")
    finally:
        os.close(writer)


def evidence(**settings):
    """Of a run that asked for nothing."""
    start = wire.numbers(np.zeros((1, 3)))
    given = wire.RunMethod(
        reference="method.py:Mine", n=40, d=3, declared={"loss": "logistic", "row_bound": 1.0},
        budget=Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight"), settings=settings, start=start,
    )  # fmt: skip
    return ServedRun(given, start.array, ())


@pytest.mark.parametrize("size", ["99999999", "1e300", "inf", "nan", 10**9, float("nan"), 1e-9, "-5e-324"])
def test_a_size_in_words_does_not_keep_the_receiver_calibrating(tmp_path, monkeypatch, size):
    """Settings of text are read as numbers, so a T of text would be the T of every method that it is compared with."""
    seen = []
    monkeypatch.setattr(checking, "PreparedMethod", lambda given: seen.append(given.settings))
    assert checking._copied(evidence(T=5, size=size), None, tmp_path) == ""
    assert seen == [None] * len(seen)
    assert seen
    checking._copied(evidence(T=5, size="all"), None, tmp_path)
    assert {"T": 5, "size": "all"} in seen


SLEEPER = """
import time
from dpbench.algorithms.base import Algorithm

class Mine(Algorithm):
    name = "sleeper"

    def plan(self, problem, mechanisms, settings):
        time.sleep(600)
"""


@pytest.mark.thorough
def test_an_earlier_submission_that_sleeps_does_not_hold_up_the_next(tmp_path, monkeypatch):
    (tmp_path / "sleeper").mkdir()
    (tmp_path / "sleeper" / "method.py").write_text(SLEEPER)
    told = {"method": "sleeper", "title": "Sleeper", "class_name": "Mine"}
    (tmp_path / "sleeper" / "manifest.json").write_text(json.dumps(told))
    monkeypatch.setattr(checking, "COPYING", Limits(seconds=5, wall=3))
    begin = time.monotonic()
    assert checking._copied(evidence(T=5), SimpleNamespace(method="mine"), tmp_path) == ""
    assert time.monotonic() - begin < 60


def test_an_archive_that_changes_while_it_is_checked_changes_nothing(made, tmp_path, monkeypatch):
    """It is read once, so what is checked is what is merged."""
    archive = tmp_path / "honest.zip"
    archive.write_bytes(made.read_bytes())

    def checked(submission, **_):
        archive.write_bytes(b"another")
        row = Row(key="k", status="done", excess=0.1)
        return checking.Report(submission, "served", replicates=[checking.Replicates("gen-tiny", 1.0, [row], 1.0)])

    monkeypatch.setattr(making, "check_submission", checked)
    folder = making.merge(archive, profile="quick", results=tmp_path)
    assert (folder / "method.py").read_bytes() == read_submission(made).method


@pytest.mark.parametrize("excess", [float("nan"), float("inf"), 1e300])
def test_iterates_that_are_no_numbers_have_the_worst_score(excess):
    assert places.score(excess, 1.0) == places.score(float("inf"), 1.0)


def test_a_name_and_a_title_are_those_of_whoever_handed_them_in_first(tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/manifest.json").write_text(json.dumps({"method": "theirs", "title": "The First"}))
    assert not taken("mine-own", "Mine Own", tmp_path)
    assert "the name Theirs- is that of another submission" in taken("Theirs-", "Mine Own", tmp_path)
    assert "the title the first is that of another submission" in taken("mine-own", "the first", tmp_path)
    assert not taken("theirs", "The First", tmp_path)  # a later version of it
