"""A fourth set of attacks: on what a method says of itself in several processes, on sizes, on files, on the end."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.archive.content import read_submission
from dpbench.errors import UserError
from dpbench.run.row import Row
from dpbench.serving import method, wire
from dpbench.serving.process import ServedRun
from dpbench.submitting import checking, making
from tests.serving.sessions import problem, requests, session
from tests.serving.test_attacks import AT, GAUSSIAN, asked, planned, release
from tests.submitting.conftest import STRANGERS
from tests.submitting.test_archives import doctored

MINE = '\n\nclass Mine(Honest):\n    name = "mine-own"\n    title = "Mine"\n'
METHODS = {
    "raises what is no Exception": ("    raise KeyboardInterrupt\n", r"KeyboardInterrupt \(method.py:\d+\)"),
    "ends its process in its plan": (
        "\n    def plan(self, problem, mechanisms, settings):\n        os._exit(0)\n", r"SystemExit: 0 \(method"),
    "plans without an end": (
        "\n    def plan(self, problem, mechanisms, settings):\n        self.plan(problem, mechanisms, settings)\n",
        "RecursionError"),
    "plans more than a plan has": (
        "\n    def plan(self, problem, mechanisms, settings):\n        for i in range(17):\n"
        "            mechanisms.plan(f'gradient{i}', at_rho(1e-3), 1)\n", "malformed"),
    "returns its process's number": (
        "\n    def taken(self, problem, W, mechanisms):\n"
        "        return float(Path('/proc/self/stat').read_text().split()[21])\n", "returns something else"),
    "sends the time of a reply": (
        "\n    def gradient(self, problem, W, mechanisms, settings):\n        began = time.perf_counter()\n"
        "        super().gradient(problem, W, mechanisms, settings)\n"
        "        return super().gradient(problem, W + time.perf_counter() - began, mechanisms, settings)\n\n"
        "    def rho(self, mechanisms, settings):\n        return mechanisms.budget.rho / settings.T / 2\n",
        "beyond its plan|asks for something else"),
}  # fmt: skip


def archive(tmp_path, body):
    """Its file, beside the honest ones."""
    file = tmp_path / "mine.py"
    file.write_text(STRANGERS.read_text() + MINE + body)
    return file


@pytest.mark.thorough_but("raises what is no Exception", "plans without an end")
@pytest.mark.parametrize("name", METHODS)
def test_a_method_gets_no_place_and_one_line(check, tmp_path, name):
    body, told = METHODS[name]
    try:
        sent = making.submit(f"{archive(tmp_path, '')}:Mine", author="Ada", out=tmp_path / "mine.zip")
        text = (STRANGERS.read_text() + MINE + body).encode()
        wrong = doctored(sent, tmp_path / "wrong.zip", method_py=text)
        (line,) = check(wrong).problems
    except UserError as error:
        line = str(error)
    assert re.search(told, line), line
    assert "\n" not in line


@pytest.mark.thorough
@pytest.mark.parametrize("iterates", ["nan", "inf", "1e308", "-1e300"])
def test_iterates_of_no_size_have_the_worst_score(check, tmp_path, iterates):
    body = f"\n    def taken(self, problem, W, mechanisms):\n        return float('{iterates}')\n"
    found = check(making.submit(f"{archive(tmp_path, body)}:Mine", author="Ada", out=tmp_path / "mine.zip"))
    scores = [one.score for one in found.replicates]
    assert found.problems or scores == [checking.places.score(float("inf"), 1.0)] * len(scores), (found, scores)


def test_a_method_that_has_another_name_in_another_process_is_wrong(check, tmp_path, monkeypatch):
    """Rows go by the name: the process that makes them asks for it anew."""
    sent = making.submit(f"{archive(tmp_path, '')}:Mine", author="Ada", out=tmp_path / "mine.zip")
    run = checking._run_problem

    def elsewhere(*given):
        made = algorithms.get

        def renamed(name):
            one = made(name)
            if isinstance(one, method.ServedMethod):
                one.name = "yours"
            return one

        with monkeypatch.context() as other:
            other.setattr(checking.algorithms, "get", renamed)
            return run(*given)

    monkeypatch.setattr(checking, "_run_problem", elsewhere)
    (line,) = check(sent).problems
    assert "its code calls itself yours (Mine), its manifest otherwise" in line


def test_a_manifest_that_names_a_library_is_wrong(made, check, tmp_path):
    """The board marks solvers of other libraries, and asks their archives for no author."""
    lies = doctored(made, tmp_path / "lies.zip", lambda one: one.update(library="opacus", author=""))
    (line,) = check(lies).problems
    assert "its manifest otherwise" in line


@pytest.mark.parametrize(("size", "told"), [(51, "more than 100 bytes"), (49, "")])
def test_transcripts_have_a_size_together(made, check, monkeypatch, size, told):
    """Those at two ε together."""
    monkeypatch.setattr(checking, "KEPT", 100)
    ran = ServedRun(None, None, [(b"asked", b"r" * (size - 5))])
    replicates = [
        checking.Replicates("gen-tiny", epsilon, [Row(key="k", excess=0.1)], 1.0, ran) for epsilon in (1.0, 2.0)
    ]
    monkeypatch.setattr(checking, "_run_problem", lambda *_: replicates)
    monkeypatch.setattr(checking, "_copied", lambda *_: "")
    assert told in "".join(problems := check(made).problems)
    assert bool(problems) == bool(told)


@pytest.mark.parametrize("how", [os.mkfifo, lambda path: path.symlink_to("/etc/hostname"), os.mkdir])
@pytest.mark.parametrize("name", ["method.py", "manifest.json"])
def test_a_folder_s_files_are_plain_files(made, tmp_path, how, name):
    """Whoever opens a pipe waits for its writer; a link shows another file."""
    folder, sent = tmp_path / "merged", read_submission(made)
    folder.mkdir()
    shutil.unpack_archive(made, folder, "zip")
    assert read_submission(folder) == sent
    (folder / name).unlink()
    how(folder / name)
    with pytest.raises(UserError, match=f"{name} is missing, or no plain file"):
        read_submission(folder)


def test_a_sum_of_more_numbers_than_a_frame_holds_is_refused_by_its_shape():
    """The Hessian of 3,000 columns takes 72 MB, of 20,000 more than 3 GB, and the server has no limit of its own."""
    on = problem("squared", n=4, d=3000)
    at = wire.numbers(np.zeros((1, 3000)))
    for recipe in (wire.HessianSum(at=at), wire.SecondMoment(), wire.LeastEigenvalue(of=wire.SecondMoment(), unit=1.0)):
        ended = session(requests(release(wire.RequestedValue(recipe=recipe), noise="normal", z=1e3)), on)
        assert "more numbers than a frame holds" in str(ended.ended)
        assert not ended.reads


def test_nothing_that_is_asked_after_the_end_is_read():
    def play(channel):
        for one in (planned(GAUSSIAN), release(z=20.0)):
            channel.send(one)
            channel.read()
        for one in (wire.DoneRequest(W=AT), release(z=20.0), release(asked(), z=0.1)):
            channel.send(one)

    ended = session(play)
    assert ended.ended is None
    assert [entry.count for entry in ended.server.books.of(0)] == [1]
    assert (len(ended.released), len(ended.reads)) == (1, 1)


def test_a_manifest_s_class_may_be_one_that_its_file_imports_and_then_has_that_one_s_name(made, check, tmp_path):
    imports = b"from dpbench.algorithms.gradient_descent import DPGradientDescent as Honest\n"
    with pytest.raises(UserError, match="the name dp-gd is taken"):
        check(doctored(made, tmp_path / "imports.zip", method_py=imports))


@pytest.mark.thorough
def test_a_command_that_serves_a_method_ends_with_its_own_code(tmp_path):
    """In a process of its own: what breaks when Python ends, no test in this one sees."""
    file = archive(tmp_path, "    private = False\n")
    command = [sys.executable, "-m", "dpbench", "audit", "--algo", f"{file}:Mine"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (ended.returncode, "not private" in ended.stderr, ended.stderr.count("\n")) == (2, True, 1), ended.stderr
