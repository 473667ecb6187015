"""A submission from a folder of one's own: made, checked, merged; and doctored archives, each found."""

import json
import os
import re
import stat
import zipfile
from pathlib import Path

import pytest

import dpbench
from dpbench.archive import content
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.experiments.leaderboard import EXPERIMENT, board, tables
from dpbench.privacy import plain
from dpbench.run.store import Store
from dpbench.study.context import Context
from dpbench.submitting import checking, making, replaying
from tests.submitting import archives
from tests.submitting.archives import change, doctored, ledger, rows

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "my_algorithm.py"
SPENT = "epsilon_planned"


def test_a_sound_one_is_sound_and_nothing_in_it_runs(made, tmp_path, monkeypatch):
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    report = checking.check(made)
    assert report.problems == []
    assert len(report.submission.rows) == 5
    folder = dpbench.merge(made, results=tmp_path)
    assert not (tmp_path / "ran").exists()
    assert {path.name for path in folder.iterdir()} == {
        "audit.json", "checked.json", "manifest.json", "method.py", "runs"
    }  # fmt: skip
    assert (
        dpbench.results("leaderboard/submissions/averaged-gd", "quick", results=tmp_path)["excess"].notna().sum() == 5
    )
    context = Context(EXPERIMENT, "quick", Store(tmp_path, "quick", "leaderboard"))
    (row,) = tables.submitted(context)[0].frame.to_dict("records")
    assert row["standing"] == "not re-run: no place"
    assert "averaged-gd" not in set(board.board(context).scores["algorithm"])  # no place without a re-run
    assert row["method"] == "Averaged DP-GD †"
    assert row["planned ε"] == "1.00 to 1.00 of what was asked"
    assert board.marked({"title": "Theirs", "library": "a-library"}) == "Theirs ‡"
    with pytest.raises(UserError, match="there already"):
        dpbench.merge(made, results=tmp_path)
    dpbench.merge(made, results=tmp_path, replace=True)


def test_what_could_not_be_looked_at_is_said_to_be_unchecked(made, monkeypatch):
    monkeypatch.setattr(checking.datasets, "available", lambda name: False)
    report = checking.check(made)
    problems = sorted({row.problem for row in report.submission.rows})
    (line,) = [line for line in report.unchecked if "not fetched" in line]
    assert line.startswith(f"data, and F(w) - F*, of {', '.join(problems)}: ")


def test_a_slow_method_may_name_its_problems(tmp_path):
    def only(*problems):
        by = {"author": "Zoë O’Neil", "licence": "Apache-2.0"}
        return archives.made(f"{EXAMPLE}:MyAlgorithm", tmp_path / "mine.zip", tmp_path, problems=problems, **by)

    with pytest.raises(UserError, match="did you mean synthetic"):
        only("synthetik")
    report = checking.check(only("synthetic"))
    assert report.problems == []
    told = report.submission.manifest
    assert (told.author, told.licence) == ("Zoë O’Neil", "Apache-2.0")
    assert "CPUs" in told.hardware
    assert report.submission.manifest.left_out["breast-cancer-ridge"] == "not run"


def half_noise(found):
    found[0]["releases"][0]["release"]["noise_multiplier"] /= 2


def fewer(found):
    found[0]["releases"][0]["count"] -= 50


def lied_key(found):
    """All of a row's ε changed, and its key made to fit."""
    found[0]["epsilon"] = found[0]["identity"]["epsilon"] = 10.0
    found[0]["key"] = checking.Keys(found[0]["identity"])(0, 0)


@pytest.mark.parametrize(
    ("edits", "found"),
    [
        ({"rows_jsonl": change(epsilon=0.1)}, "epsilon is 1.0 in its key and 0.1 here"),
        ({"rows_jsonl": change(**{SPENT: 1.2})}, "spends ε = 1.2, more than the 1.0 asked for"),
        ({"rows_jsonl": change(**{SPENT: 0.5})}, "its rows say ε = 0.5, its ledger 1"),
        ({"rows_jsonl": rows(lied_key)}, "not all of the seeds 0 to 4|no cell of the quick profile"),
        ({"rows_jsonl": change(excess=0.001)}, "excess 0.001 is not F"),
        ({"rows_jsonl": change(i=3, seed=9)}, "row 4: its key is not the hash"),
        ({"rows_jsonl": change(i=2, settings='{"T":50}', identity={"settings": {"T": 50}})}, "row 3: its key is not"),
        ({"rows_jsonl": change(settings='{"T":50}', identity={"settings": {}})}, "several settings"),
        ({"rows_jsonl": change(data_sha256="0" * 64)}, "made on other data"),
        ({"rows_jsonl": change(relation="add-remove")}, "add-remove neighbours"),
        ({"rows_jsonl": change(delta=0.01)}, "δ = 0.01"),
        ({"rows_jsonl": change(private=False)}, "private: False"),
        ({"rows_jsonl": rows(lambda found: found.pop(1))}, "has not all of the seeds 0 to 4"),
        ({"rows_jsonl": rows(lambda found: found.append(found[0]))}, "in the archive twice"),
        ({"ledgers_json": ledger(half_noise)}, "its noise composes to ε = 2"),
        ({"ledgers_json": ledger(fewer)}, "its rows say ε = 1, its ledger 0.6"),
        ({"ledgers_json": ledger(list.clear)}, "no ledger"),
        ({"audit_json": ledger(lambda found: found[0]["tests"][0].update(bound=0.9))}, "its audit at ε = 1 failed"),
        ({"method_py": lambda code: code + b"# changed\n"}, "method.py is not the code"),
        ({"manifest": lambda told: told.update(method="dp-gd")}, "the name is taken"),
        ({"manifest": lambda told: told["left_out"].clear()}, "no rows, and no reason"),
    ],
)  # fmt: skip
def test_what_is_doctored_is_found_without_running_it(made, tmp_path, monkeypatch, edits, found):
    report = checking.check(doctored(made, tmp_path / "forged.zip", **edits))
    monkeypatch.setattr(checking, "check", lambda path, rerun=None: report)  # merging asks for the same again
    assert re.search(found, "\n".join(report.problems)), report.problems
    with pytest.raises(UserError, match="is not merged"):
        dpbench.merge(tmp_path / "forged.zip", results=tmp_path)
    assert not (tmp_path / "quick").exists() or not list(tmp_path.glob("quick/leaderboard/submissions/*"))


def unlike(made, target, name, content=b"x", mode=stat.S_IFREG | 0o644, compress=zipfile.ZIP_DEFLATED):
    """The archive with one more member."""
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if entry.filename != name:
                new.writestr(entry, old.read(entry))
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        new.writestr(entry, content, compress)
    return target


@pytest.mark.parametrize(
    ("member", "found"),
    [
        ({"name": "../evil.py"}, "points out of the archive"),
        ({"name": "/etc/evil"}, "points out of the archive"),
        ({"name": "method.py", "content": b"/etc/passwd", "mode": stat.S_IFLNK | 0o777}, "is a link"),
        ({"name": "more.py"}, "has no place in it"),
        ({"name": "audit.json", "content": b"0" * (content.MB + 1)}, "1,048,577 bytes; at most"),
        ({"name": "rows.jsonl", "content": b"[]"}, "is not what the manifest was made for"),
        ({"name": "rows.jsonl", "compress": zipfile.ZIP_LZMA}, "packed in another way"),
    ],
)
def test_an_archive_is_refused_before_anything_is_unpacked(made, tmp_path, member, found):
    with pytest.raises(UserError, match=found):
        checking.check(unlike(made, tmp_path / "forged.zip", **member))
    assert [path.name for path in tmp_path.iterdir()] == ["forged.zip"]


def test_a_schema_or_a_file_that_is_none(made, tmp_path):
    more = doctored(made, tmp_path / "more.zip", rows_jsonl=change(extra=1))
    with pytest.raises(UserError, match=r"rows.jsonl, line 1: .*unknown field"):
        checking.check(more)
    (tmp_path / "cut.zip").write_bytes(made.read_bytes()[:-100])
    with pytest.raises(UserError, match="not a sound zip file"):
        checking.check(tmp_path / "cut.zip")
    with pytest.raises(UserError, match="No such file"):
        checking.check(tmp_path / "none.zip")
    twice = tmp_path / "twice.zip"
    twice.write_bytes(made.read_bytes())
    with zipfile.ZipFile(twice, "a") as added, pytest.warns(UserWarning, match="Duplicate"):
        added.writestr("method.py", b"")
    with pytest.raises(UserError, match="in it twice"):
        checking.check(twice)


def test_releases_go_there_and_back():
    from dpbench.privacy.ledger import DrawAfterTest, Gaussian, Laplace, ObjectivePerturbation, PureDP
    from dpbench.privacy.ledger import WithoutReplacement as Subset

    of_many_rows = (DrawAfterTest(0.2, 0.3, 1e-16, 1e-16), ObjectivePerturbation(2.0, 0.1, 1e-16))
    for one in (Gaussian(1.5), PureDP(0.1), Subset(10, 2, Laplace(3.0)), *of_many_rows):
        assert plain.release_of(json.loads(json.dumps(plain.plain(one)))) == one
    for wrong in (
        {"kind": "Gaussian"},
        {"kind": "os.system", "x": 1},
        {"kind": "Gaussian", "noise_multiplier": -1},
        {"kind": "WithoutReplacement", "n": 1.5, "m": 1, "release": {"kind": "Gaussian", "noise_multiplier": 1}},
        {"kind": "Poisson", "rate": "1", "release": {"kind": "Gaussian", "noise_multiplier": 1}},
    ):
        with pytest.raises(UserError):
            plain.release_of(wrong)


def test_the_command_from_a_folder_of_ones_own(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*args):
        with pytest.raises(SystemExit) as end:
            main(list(args))
        out, err = capsys.readouterr()
        return end.value.code or 0, out + err

    code, told = call("submit", "--check", os.fspath(made))
    assert code == 0
    assert "sound; not re-run, so without a place" in told
    forged = doctored(made, tmp_path / "forged.zip", rows_jsonl=change(excess=0.001))
    code, told = call("submit", "--check", os.fspath(forged))
    assert code == 1
    assert "WRONG    synthetic at ε = 1, seed 0: excess 0.001" in told
    for archive, expected in ((made, (0, "ready; its check")), (forged, (1, "written, but its check fails"))):
        monkeypatch.setattr(dpbench, "submit", lambda *args, archive=archive, **more: archive)
        code, told = call("submit", "--algo", "mine.py:Mine")
        assert (code, expected[1] in told) == (expected[0], True), told
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert call("submit")[0] == 2
    assert call("submit", "--algo", "dp-gd")[1].startswith("error: --algo: dp-gd: a submission is one file")
    code, told = call("board", "merge", os.fspath(made))
    assert (code, Path("results/quick/leaderboard/submissions/averaged-gd").is_dir()) == (0, True)


@pytest.mark.parametrize("text", ["a\nb", "=1+1", "\u202eevil", "x" * 401, "<b>"])
def test_an_author_is_words(text):
    assert making._fitting("author", "Zoë O’Neil, zoe@example.org") == "Zoë O’Neil, zoe@example.org"
    with pytest.raises(UserError, match=r"^author: letters"):
        making._fitting("author", text)


def test_what_the_receivers_own_runs_object_to_is_a_problem_and_takes_the_place(made):
    done = replaying.ReceiverRuns(done=True)
    assert checking.check(made, rerun=lambda submission: done).placed
    found = checking.check(made, rerun=lambda submission: replaying.ReceiverRuns(done=True, problems=["another loss"]))
    assert (found.problems, found.sound, found.placed) == (["another loss"], False, False)
    assert not checking.check(made, rerun=lambda submission: replaying.ReceiverRuns(done=True, flags=["a flag"])).placed
