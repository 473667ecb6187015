"""The receiver's check: honest code has a place by runs on private copies alone; what is not honest has none."""

import json
import os
import re
import resource
import zipfile
from functools import partial
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

import dpbench
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.experiments.leaderboard import EXPERIMENT, artefacts, board
from dpbench.leaderboard import entrants, tracks
from dpbench.problems import Problem, build
from dpbench.run import execute
from dpbench.run.row import Row
from dpbench.run.store import Store
from dpbench.serving.process import OPEN, SERVED, ServedRun
from dpbench.study.context import Context
from dpbench.submitting import checking, copies, making
from tests.submitting.conftest import PROBLEM, STRANGERS
from tests.submitting.test_archives import doctored

SECRET = b"s" * 32
ROW = Row(key="k", status="done", excess=0.1)


def test_an_honest_method_has_a_place_by_runs_that_nobody_could_foresee(made, small, tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "isolation", lambda: SERVED)
    folder = dpbench.merge(made, profile="quick", results=tmp_path, jobs=1)
    rows = dpbench.results("leaderboard/submissions/honest-steps", "quick", results=tmp_path)
    assert rows["status"].tolist() == ["done"] * 2
    assert rows["seed"].min() > 1000  # drawn, not counted from 0
    assert rows["epsilon_planned"].max() <= 1.0 + 1e-9
    checked = json.loads((folder / "checked.json").read_text())
    assert (checked["how"], checked["placed"]) == (SERVED, True)
    context = Context(EXPERIMENT, "quick", Store(tmp_path, "quick", "leaderboard"))
    (line,) = artefacts.submitted(context)[0].frame.to_dict("records")
    assert (line["method"], line["how it was run"]) == ("honest-steps †", "served")
    assert board.marked({"title": "Theirs", "library": "a-library"}) == "Theirs ‡"
    # the transcript of one run per problem and ε: whoever has no data can follow it
    with zipfile.ZipFile(folder / "transcripts.zip") as kept:
        (name,) = kept.namelist()
        given, frames, _ = msgspec.msgpack.decode(kept.read(name))
    assert (name, given["d"], len(frames)) == (f"{PROBLEM}/1", build(PROBLEM).d, 6)
    with pytest.raises(UserError, match="is there already; --replace"):
        dpbench.merge(made, profile="quick", results=tmp_path, jobs=1)
    monkeypatch.setattr(checking, "_run_problem", lambda name, *_: [checking.Replicates(name, 1.0, [ROW], 1.0)])
    again = checking.check_submission(folder, profile="quick", results=tmp_path, jobs=1)  # by what was kept
    assert (again.problems, len(again.replicates)) == ([], 1)
    (folder / "method.py").write_text("")
    with pytest.raises(UserError, match="is not what the manifest was made for"):
        checking.check_submission(folder, profile="quick", results=tmp_path, jobs=1)


def test_two_checks_draw_other_copies_and_seeds(made, check, monkeypatch):
    drawn = []

    def noted(name, jobs, secret, _):
        drawn.append((secret, *(job.seed for job in jobs)))
        return [checking.Replicates(name, 1.0, [ROW], 1.0)]

    monkeypatch.setattr(checking, "_run_problem", noted)
    check(made)
    check(made)
    assert len({*drawn[0], *drawn[1]}) == 6
    assert min(len(secret) for secret, *_ in drawn) == 32


def test_without_a_sandbox_it_has_no_place():
    assert [checking.Report(None, how).placed for how in (OPEN, SERVED)] == [False, True]
    assert not checking.Report(None, SERVED, ["wrong"]).placed


def test_a_run_is_repeated_and_what_differs_is_wrong(made, check, monkeypatch):
    """What differs in two processes: tests.serving.test_process, and the thorough test below."""
    ran = ServedRun(None, None, ())
    monkeypatch.setattr(checking, "_run", lambda *_: (ROW, ran))
    monkeypatch.setattr(checking, "repeat", lambda _, run: "returns something else" if run is ran else "")
    assert check(made).problems == [f"{PROBLEM} at ε = 1: it returns something else"]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "told"), [
    ("Optimum", "problem.optimum works on the rows themselves"), ("TooMuch", "ended the run|beyond"),
    ("OwnRandomness", "it returns something else when it is run again"), ("Breaking", "ValueError: on purpose"),
])  # fmt: skip
def test_what_reads_rows_spends_more_or_does_not_repeat_is_found(check, name, told):
    (line,) = check(name).problems
    assert re.search(rf"^{PROBLEM} at ε = 1: .*({told})", line), line


COPY = """
from dpbench.algorithms.gradient_descent import {base}


class Mine({base}):
    name = "my-own"
    title = "My own"
"""


def evidence(reference):
    """What passed in one served run of a method."""
    (runs,) = checking._tasks(f"served:{reference}", "quick", [PROBLEM], {}).values()
    return checking._run(runs[0], copies.draw(PROBLEM, SECRET))[1]


def test_a_renamed_copy_of_a_built_in_method_is_found_by_its_transcript(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(COPY.format(base="DPGradientDescent"))
    found = evidence(f"{tmp_path / 'mine.py'}:Mine")
    assert checking._copied(found, SimpleNamespace(method="my-own"), tmp_path) == "dp-gd"
    # Settings of the method's own choice do not keep the receiver at work: dp-hb would calibrate for hours.
    monkeypatch.setattr(checking.algorithms, "names", lambda **_: ["dp-gd", "dp-hb"])
    large = found._replace(given=msgspec.structs.replace(found.given, settings={"T": 10**9}))
    assert not checking._copied(large, SimpleNamespace(method="my-own"), tmp_path)


def test_a_renamed_copy_of_a_submission_is_found_by_its_transcript(tmp_path, monkeypatch):
    found, there = evidence(f"{STRANGERS}:Honest"), tmp_path / "theirs"
    there.mkdir()
    (there / "manifest.json").write_text(json.dumps({"method": "theirs", "title": "T", "class_name": "Honest"}))
    labels = STRANGERS.read_text().replace('"gradient"', '"another label"')
    monkeypatch.setattr(checking.algorithms, "names", lambda **_: [])  # built-in ones are asked above
    for text, known in ((labels, "theirs"), (labels.replace("W = W - ", "W = W - 1.001 * "), "")):
        (there / "method.py").write_text(text)
        assert checking._copied(found, SimpleNamespace(method="mine"), tmp_path) == known
    (there / "method.py").write_text(labels)
    assert checking._copied(found, SimpleNamespace(method="theirs"), tmp_path) == ""  # an earlier version of itself


def test_a_check_says_what_is_copied(made, check, monkeypatch):
    ran = ServedRun(None, None, ())
    monkeypatch.setattr(ServedRun, "encoded", b"")
    monkeypatch.setattr(checking, "_run_problem", lambda name, *_: [checking.Replicates(name, 1.0, [ROW], 1.0, ran)])
    monkeypatch.setattr(checking, "_copied", lambda *_: "dp-gd")
    assert check(made).problems == ["it asks for and returns what dp-gd does: a copy under another name"]


@pytest.mark.parametrize(("changes", "told"), [
    ({"method": "dpgd"}, "the name dpgd is that of dp-gd of this dpbench"),
    ({"title": "dp gd"}, "the title dp gd is that of dp-gd of this dpbench"),
    ({"title": "The Default (auto)"}, "is that of the default"),
    ({"title": "default auto the"}, "its code calls itself honest-steps"),
    ({"method": "other-steps"}, "its code calls itself honest-steps"),
    ({"title": "Their Steps"}, "the title Their Steps is that of another submission"),
])  # fmt: skip
def test_a_name_or_title_that_is_another_s_is_refused_before_anything_runs(made, check, tmp_path, changes, told):
    there = tmp_path / "quick" / "leaderboard" / "submissions" / "theirs"
    there.mkdir(parents=True)
    (there / "manifest.json").write_text(json.dumps({"method": "theirs", "title": "their-steps"}))
    found = check(doctored(made, tmp_path / "other.zip", lambda one: one.update(changes)))
    assert told in found.problems[0]
    assert not found.replicates


def test_an_author_gets_no_archive_under_a_name_that_is_taken(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(COPY.format(base="DPGradientDescent").replace("My own", "The default (auto)"))
    with pytest.raises(UserError, match="the title The default"):
        making.submit(f"{file}:Mine", out=tmp_path / "a.zip")
    with pytest.raises(UserError, match="a submission is one file"):
        making.submit("dp-gd")
    with pytest.raises(UserError, match="is not private"):
        making.submit(f"{STRANGERS}:Loud", out=tmp_path / "a.zip")


LIBRARY = """
from dpbench.algorithms.base import BaseSettings, Needs
from dpbench.algorithms.library import LibrarySolver, Solved, released
from dpbench.privacy.ledger import Laplace


class Theirs(LibrarySolver):
    name, library, accountings, paper_accounting, delta = "their-sum", "a-library", ("pure",), "pure", 0.0
    needs = Needs(losses=("logistic",), regularisers=("l2",))
    discloses = released("Laplace", "2", "one column")

    class Settings(BaseSettings, frozen=True):
        T: int = 1

    def solve(self, problem, budget, settings, rng):
        scale = 2 / budget.epsilon
        w = rng.laplace(scale=scale, size=problem.d)
        return Solved(w, [(Laplace(scale / 2), 1)], "")
"""


def test_another_library_s_solver_is_run_as_trusted_code_only(check, tmp_path):
    (tmp_path / "theirs.py").write_text(LIBRARY)
    path = making.submit(f"{tmp_path / 'theirs.py'}:Theirs", out=tmp_path / "theirs.zip")
    with pytest.raises(UserError, match="run it as trusted code"):
        check(path)
    found = check(path, trusted=True)
    assert (found.problems, found.how, found.placed) == ([], "foreign code, trusted, run by us", True)
    assert {row.code for row in found.replicates[0].rows} == {"foreign code, trusted"}


def test_trusted_code_that_says_more_than_its_budget_is_wrong(check, tmp_path):
    (tmp_path / "theirs.py").write_text(LIBRARY.replace("Laplace(scale / 2)", "Laplace(scale / 4)"))
    path = making.submit(f"{tmp_path / 'theirs.py'}:Theirs", out=tmp_path / "theirs.zip")
    (line,) = check(path, trusted=True).problems
    assert "ε" in line


def test_a_copy_is_of_the_public_problem_s_kind_and_of_rows_that_nobody_has_seen():
    public, first, again, other = (build("breast-cancer-ridge"), *(
        copies.draw("breast-cancer-ridge", key) for key in (SECRET, SECRET, b"o" * 32)))  # fmt: skip
    assert (first.n, first.d, first.l2, first.loss.name) == (public.n, public.d, public.l2, public.loss.name)
    assert np.array_equal(first.X, again.X)
    assert not np.allclose(first.X[:5], other.X[:5])
    assert first.row_norm <= 1 + 1e-12
    # Inner products are what a turn of the public rows would keep.
    inner, own = (np.abs(np.asarray(one.X @ one.X.T)).round(9) for one in (public, first))
    assert np.isin(own[np.triu_indices(first.n, 1)], inner).mean() < 0.01
    # As much spread as the public rows: as hard, so that scores compare.
    spread, theirs = (np.linalg.svd(np.asarray(one.X), compute_uv=False) for one in (first, public))
    assert np.allclose(spread[:5], theirs[:5], rtol=0.15)
    # An optimum that was looked up is none of the copy's.
    null = first.value(np.zeros((1, first.d)))[0]
    assert first.value(public.optimum().w[None])[0] - first.optimum().value > 0.2 * (null - first.optimum().value)
    assert copies.draw("square-unit", SECRET).l1 > 0


def test_who_finds_the_basis_by_moments_has_not_the_optimum():
    """The public optimum, permuted as the sizes of exact label moments say: more than a noisy release could tell."""
    public, copy = build("digits-l1"), copies.draw("digits-l1", SECRET)
    known, seen = (np.asarray(one.X.T @ np.asarray(one.y)).ravel() for one in (public, copy))
    order, place = np.argsort(np.abs(known)), np.argsort(np.abs(seen))
    w = np.zeros(copy.d)
    w[place] = (public.optimum().w * np.sign(known))[order]
    w *= np.sign(seen)
    best, null = copy.optimum().value, copy.value(np.zeros((1, copy.d)))[0]
    assert copy.value(w[None])[0] - best > 0.3 * (null - best)


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run a verb in an empty folder; (exit code, all that it said)."""
    monkeypatch.chdir(tmp_path)

    def called(*args):
        with pytest.raises(SystemExit) as end:
            main([*args, "--profile", "quick", "--jobs", "1"])
        out, err = capsys.readouterr()
        return end.value.code or 0, out + err

    return called


@pytest.mark.parametrize(("problems", "how", "code", "told"), [
    ([], SERVED, 0, ["0 runs on private copies; served", "sound, with a place"]),
    ([], OPEN, 0, ["sound; without a sandbox"]),
    (["one thing"], SERVED, 1, ["  WRONG     one thing", "its check fails"]),
])  # fmt: skip
def test_the_command_says_what_the_check_found(made, command, tmp_path, monkeypatch, problems, how, code, told):
    seen, submission = [], SimpleNamespace(manifest=SimpleNamespace(method="honest-steps", title="Honest"))
    monkeypatch.setattr(dpbench, "check_submission", lambda archive, **given: (
        seen.append((archive, given["profile"])), checking.Report(submission, how, problems))[1])  # fmt: skip
    exited, said = command("submit", "--algo", f"{STRANGERS}:Honest", "--author", "Ada")
    assert (exited, [one for one in told if one not in said]) == (code, [])
    assert seen == [("honest-steps.dpbench.zip", "quick")]
    assert (tmp_path / "honest-steps.dpbench.zip").read_bytes()[:2] == b"PK"


def test_what_the_command_cannot_do_is_one_line(made, command):
    told = "error: --author: a submission has one, as tables show it; give --author NAME\n"
    assert command("submit", "--algo", f"{STRANGERS}:Honest") == (2, told)
    assert command("submit")[0] == 2
    assert command("submit", "--check", str(made), "--author", "me")[0] == 2


@pytest.mark.thorough
def test_the_command_checks_and_merges_as_the_board_does(small, command, tmp_path):
    code, told = command("submit", "--algo", f"{STRANGERS}:Honest", "--author", "Ada")
    assert (code, "sound" in told) == (0, True), told
    code, told = command("submit", "--algo", f"{STRANGERS}:Breaking", "--author", "Ada")
    assert (code, "WRONG" in told, "its check fails" in told) == (1, True, True), told
    code, told = command("board", "merge", "raises.dpbench.zip")
    assert (code, "is not merged: " in told, list(tmp_path.glob("results/*"))) == (2, True, []), told


def test_a_profile_that_is_none_is_named_with_the_nearest():
    with pytest.raises(UserError, match=r"unknown profile 'quik': did you mean quick\?"):
        checking._tasks("dp-gd", "quik", [], {})


@pytest.mark.thorough
def test_the_check_s_processes_are_those_of_every_run(made, small, tmp_path, monkeypatch):
    """Without room for a worker it would wait for ever; one that dies ends the check in a line."""
    checked = partial(checking.check_submission, made, profile="quick", results=tmp_path, jobs=2)
    monkeypatch.setattr(checking, "_tasks", lambda *_: {"one": [], "two": []})
    monkeypatch.setattr(checking, "_run_problem", dies)
    with pytest.raises(UserError, match="honest-steps: a process of the check died; try --jobs 1"):
        checked()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (execute.WORKER - 1, -1))
    with pytest.raises(MemoryError, match="does not fit into the limit"):
        checked()


def dies(*_):
    os._exit(1)


def test_a_check_says_of_each_problem_its_scores_and_keeps_no_more_than_it_may(made, check, monkeypatch):
    cases = (1.0, 0.1, "done"), (0.25, None, "done"), (0.1, 0.1, "diverged")
    runs = [[Row(key="k", status=status, excess=excess)] for _, excess, status in cases]
    ran = [checking.Replicates(PROBLEM, case[0], rows, 1.0, ServedRun(None, None, ()))
           for case, rows in zip(cases, runs, strict=True)]  # fmt: skip
    monkeypatch.setattr(checking.algorithms, "resolve", lambda _: (None, {}))  # no process has to say what it is
    monkeypatch.setattr(checking, "_otherwise", lambda *_: "")
    monkeypatch.setattr(checking, "_tasks", lambda *_: {PROBLEM: []})
    monkeypatch.setattr(checking, "_run_problem", lambda *_: ran)
    monkeypatch.setattr(checking, "_copied", lambda first, *_: "" if first is ran[0].evidence else "another")
    monkeypatch.setattr(ServedRun, "size", 5)
    monkeypatch.setattr(checking, "KEPT", 15)
    said = []
    assert check(made, notify=said.append).problems == []
    ran[1] = ran[1]._replace(error="one thing")
    monkeypatch.setattr(checking, "KEPT", 14)
    told = ["one thing", "its transcripts have more than 14 bytes, which are not kept"]
    assert check(made, notify=said.append).problems == told
    line = f"{PROBLEM}: score -1.00 at ε = 1; {{}}; score 3.00 at ε = 0.1"
    assert said == [line.format("score 3.00 at ε = 0.25"), line.format("one thing")]


def test_why_a_problem_is_not_run_is_said_of_each(monkeypatch):
    names = ["gen-tiny", "iris", "diabetes-ridge", "breast-cancer-ridge"]
    blocks = {one.problems[0]: one for one in tracks.default_blocks("full", tracks.grid())}
    monkeypatch.setattr(tracks, "default_blocks", lambda *_: [blocks[name] for name in names])
    monkeypatch.setattr(checking.datasets, "available", lambda name: name != "iris")
    left_out = {}
    tasks = checking._tasks("dp-gd", "full", names[:3], left_out)
    assert list(tasks) == ["gen-tiny"]
    assert len({job.seed for job in tasks["gen-tiny"]}) == len(tasks["gen-tiny"]) == blocks["gen-tiny"].seeds
    assert all(0 <= job.seed < 2**39 for job in tasks["gen-tiny"])
    assert left_out == {
        "iris": "its data are not fetched (dpbench fetch iris)", "breast-cancer-ridge": "not run",
        "diabetes-ridge": entrants.reason("diabetes-ridge", "dp-gd"),
    }  # fmt: skip
    with pytest.raises(UserError, match="problems: there is no 'gen-tinny' on the full board; did you mean gen-tiny"):
        checking._tasks("dp-gd", "full", ["gen-tinny"], {})


@pytest.fixture
def drawn(monkeypatch):
    """The copy of a problem that is made up, by one secret."""

    def copied(X, y, loss, **changes):
        monkeypatch.setattr(copies, "build", lambda name: Problem(X, y, loss=loss, l2=0.1, row_bound=1.0))
        for name, value in changes.items():
            monkeypatch.setattr(copies, name, value)
        return copies.draw("made-up", SECRET)

    return copied


def test_labels_of_a_copy_are_those_of_its_rows_some_planted_and_some_flipped(drawn):
    rng = np.random.default_rng(0)
    X, y = 0.5 * rng.uniform(-1, 1, (400, 4)), np.where(rng.random(400) < 0.3, 1.0, -1.0)
    sure = drawn(X, y, "logistic", PLANTED=0.0, FLIPPED=(0.0, 0.0))
    assert np.array_equal(drawn(X, y, "logistic", FLIPPED=(1.0, 1.0)).y, -sure.y)
    planted = drawn(X, y, "logistic", PLANTED=1.0, FLIPPED=(0.0, 0.0))
    assert np.array_equal(planted.X, sure.X)
    assert (planted.y < 0).mean() == pytest.approx((y < 0).mean(), abs=1 / 400)
    rows = np.column_stack([planted.X, np.full(400, 0.5)])
    w = Problem(rows, planted.y, loss="logistic", l2=1e-7, row_bound=1.5).optimum().w
    assert (np.sign(rows @ w) == planted.y).mean() > 0.99
    some = drawn(X, y, "logistic", PLANTED=0.2, FLIPPED=(0.0, 0.0))
    assert 0.04 < (some.y != sure.y).mean() < 0.13  # 0.2 of the labels, of which about two in five become others
    norms = np.linalg.norm(X, axis=1)
    assert np.isin(np.linalg.norm(sure.X, axis=1).round(9), norms.round(9)).all()


def test_a_mix_keeps_the_mean_of_each_class(drawn):
    """Rows that are alike in each class are alike in the copy, at the same angle to those of the other class."""
    first, second = np.array([0.6, 0.2, -0.3]), np.array([-0.1, 0.7, 0.2])
    y = np.resize([1.0, -1.0, -1.0], 60)
    found = drawn(np.where(y[:, None] > 0, first, second), y, "logistic", PLANTED=0.0, FLIPPED=(0.0, 0.0))
    rows = [found.X[found.y == label] for label in (1.0, -1.0)]
    assert all(np.ptp(part, axis=0).max() < 1e-12 for part in rows)
    assert rows[0][0] @ rows[1][0] == pytest.approx(first @ second)


def test_numbers_of_a_copy_follow_its_rows_as_the_public_ones_do_but_for_what_is_planted(drawn):
    rng = np.random.default_rng(0)
    X = 0.3 * rng.uniform(-1, 1, (500, 3)) + [0.2, 0, 0]
    y = X @ [1.0, -2.0, 0.5]
    plain = drawn(X, y, "squared", PLANTED=0.0)
    inside = (plain.y > y.min()) & (plain.y < y.max())
    w, *_ = np.linalg.lstsq(plain.X[inside], plain.y[inside], rcond=None)
    assert inside.mean() > 0.9
    np.testing.assert_allclose(plain.X[inside] @ w, plain.y[inside], atol=1e-9)
    assert np.linalg.norm(w) == pytest.approx(np.linalg.norm([1.0, -2.0, 0.5]))  # turned
    moved = (drawn(X, y, "squared", PLANTED=0.1).y - plain.y)[inside]
    assert moved.std() == pytest.approx(0.2 * y.std(), rel=0.1)
    assert abs(moved.mean()) < 0.03 * y.std()
