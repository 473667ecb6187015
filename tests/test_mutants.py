"""The list of `tests.mutants` cannot rot: every text is there once, every mutant is code, every test exists."""

import ast
import fnmatch
import functools
import re
import time
from pathlib import Path

import pytest

from tests import judging, mutants, random_mutants
from tests.mutants import MUTANTS, ROOT


@functools.cache
def functions(file):
    """The functions of a test file, by name."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}


def test_each_mutant_can_be_made_and_its_test_is_there():
    for one in MUTANTS:
        ast.parse(one.mutated())
        assert one.text != one.instead
        file, _, name = one.test.partition("::")
        assert name.partition("[")[0] in functions(file), one.test


def test_no_mutant_waits_for_a_test_that_make_test_leaves_out():
    """Its test is neither thorough nor slow, nor thorough in some cases, unless the mutant names a case that stays."""
    for test in {one.test for one in MUTANTS}:
        file, _, name = test.partition("::")
        name, _, case = name.rstrip("]").partition("[")
        for mark in functions(file)[name].decorator_list:
            left_out = re.match(r"pytest\.mark\.(slow|thorough\w*)", ast.unparse(mark))
            assert not left_out or (case and "_" in left_out[1] and left_out[1] != "slow"), (test, left_out)
            if left_out:
                fits = any(fnmatch.fnmatchcase(case, pattern.value) for pattern in mark.args)
                assert fits == (left_out[1] == "thorough_but"), test


def test_the_list_is_long_covers_the_rooms_and_says_what_each_breaks():
    assert len(MUTANTS) >= 60
    assert len({one[:3] for one in MUTANTS}) == len({one.breaks for one in MUTANTS}) == len(MUTANTS)
    rooms = {one.file.partition("/")[0] for one in MUTANTS}
    assert rooms >= {"comparing", "datasets", "submitting", "reporting", "study", "leaderboard", "schema", "run",
                     "algorithms", "own"}  # fmt: skip


@pytest.mark.parametrize(("status", "became"), [(0, mutants.SURVIVES), (1, mutants.NOTICED), (2, mutants.BROKEN)])
def test_a_mutant_is_noticed_by_a_failure_alone(monkeypatch, capsys, status, became):
    """Its own tree is left as it is; a test that fails without the mistake, or does not run, notices nothing."""
    one = MUTANTS[0]
    before = (ROOT / "dpbench" / one.file).read_text()

    def ended(copy, *tests, keep=True, marks=""):
        assert (ROOT / "dpbench" / one.file).read_text() == before
        return 0 if (copy / "dpbench" / one.file).read_text() == before else status

    monkeypatch.setattr(mutants, "COPIED", ("dpbench/comparing",))
    monkeypatch.setattr(mutants, "_ended", ended)
    assert [word for _, word in mutants.tried([one])] == [became]
    monkeypatch.setattr(mutants, "_ended", lambda copy, *tests, keep=True, marks="": 1)
    assert [word for _, word in mutants.tried([one])] == [mutants.BROKEN]
    monkeypatch.setattr(mutants, "MUTANTS", [one])
    assert mutants.main([]) == 1
    assert "1 mutants, 0 noticed, 1 left" in capsys.readouterr().out


SOURCE = """
class Fit:
    scale: float = 1.5

    def run(self, a: float, b: int = 2) -> float:
        if a < b:
            self.done = True
        self.note(a, b)
        axis.plot(b, lw=2)
        return a - b
"""


def test_random_mutants_change_what_runs_and_nothing_else(monkeypatch, tmp_path):
    (tmp_path / "dpbench").mkdir()
    (tmp_path / "dpbench/fit.py").write_text(SOURCE)
    monkeypatch.setattr(random_mutants, "ROOT", tmp_path)
    made = {(one.operator, one.line): one.mutated(tmp_path) for one in random_mutants.sites("fit.py")}
    changed = {}
    for at, text in made.items():
        ast.parse(text)
        (changed[at],) = (new for old, new in zip(SOURCE.split("\n"), text.split("\n"), strict=True) if old != new)
    assert {at: " ".join(line.split()) for at, line in changed.items()} == {
        ("constant", 3): "scale: float = (1.5 * 2 + 1e-3)",
        ("constant", 5): "def run(self, a: float, b: int = (2 + 1)) -> float:",
        ("comparison", 6): "if (a) <= (b):",
        ("constant", 7): "self.done = False",
        ("dropped line", 7): "pass",
        ("swapped arguments", 8): "self.note(b, a)",
        ("dropped line", 8): "pass",
        ("sign", 10): "return ((a) + (b))",
    }


@pytest.mark.thorough
def test_random_mutants_are_drawn_anew_from_their_seed_and_have_tests():
    one, again, other = random_mutants.drawn(12, 1), random_mutants.drawn(12, 1), random_mutants.drawn(12, 2)
    assert one == again != other
    for site in one:
        assert site.mutated() != (ROOT / "dpbench" / site.file).read_text()
    for site in one[:3]:  # each looks through all tests
        assert all((ROOT / "tests" / test).is_file() for test in random_mutants.covering(site.file))
    assert random_mutants.covering("privacy/verify.py")[0] == "privacy/test_verify.py"


@pytest.mark.thorough_for("0-0-*")
@pytest.mark.parametrize(("common", "thorough", "notices", "became"), [
    (0, 0, "", mutants.SURVIVES), (2, 0, "", mutants.SURVIVES), (2, 0, "a0", mutants.NOTICED),
    (90, 0, "a89", mutants.NOTICED), (2, 2, "b1", mutants.NOTICED), (0, 2, "b0", mutants.NOTICED),
    (2, 2, "", mutants.SURVIVES), (2, 0, "unknown", mutants.NOTICED), (2, 0, "never known", mutants.SURVIVES),
])  # fmt: skip
def test_a_random_mutant_is_judged_by_the_tests_that_run_its_statement_and_then_by_thorough_ones(
    monkeypatch, capsys, common, thorough, notices, became
):
    (one,) = random_mutants.drawn(1, 3)

    def running(copy, drawn, marks, among):
        assert bool(among) == (marks == random_mutants.THOROUGH)
        return [
            [f"a{i}" for i in range(common)] if marks == random_mutants.COMMON else [f"b{i}" for i in range(thorough)]
        ]

    def ended(copy, *tests, keep=True, marks=""):
        mistaken = (copy / "dpbench" / one.file).read_text() != (ROOT / "dpbench" / one.file).read_text()
        if "known" in notices:
            return 4 if mistaken or "never" in notices else 0  # pytest knows no such test
        return int(mistaken and notices in tests)

    monkeypatch.setattr(mutants, "WHOLE", ("dpbench",))
    monkeypatch.setattr(mutants, "_ended", ended)
    monkeypatch.setattr(random_mutants, "running", running)
    monkeypatch.setattr(judging, "judged", lambda copy, mistakes, marks: [judging.NOWHERE for _ in mistakes])
    assert mutants.main(["--random", "1", "--seed", "3"]) == (became != mutants.NOTICED)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()][-2] == became
    assert mutants.main(["--random", "1", "--seed", "3", "--from", "1"]) == 0
    assert capsys.readouterr().out.startswith("seed 3: 0 mutants")


RAN = """
import pytest

from dpbench import fit

@pytest.fixture(scope="module")
def noted():
    return fit.Fit().kept(1, 2)

def test_uses_it_first(noted):
    assert noted == [1, 2]

def test_uses_it_then(noted):
    assert noted == [1, 2]

def test_runs_it():
    assert fit.Fit().run(1, 2) == -1

def test_fails_and_so_notices_nothing():
    assert fit.Fit().run(1, 2) == 3

def test_runs_something_else():
    assert fit
"""


@pytest.mark.thorough
def test_a_mark_tells_which_tests_run_a_statement(monkeypatch, tmp_path):
    source = SOURCE.replace("self.note(a, b)", "note = [a, b]").replace("axis.plot(b, lw=2)", "pass")
    source += "\n    def kept(self, a, b):\n        return [a, b + 0]\n"
    plugin = "dpbench/cli/pytest_plugin.py"  # which pytest loads wherever dpbench is installed
    for name, text in (("dpbench/__init__.py", ""), ("dpbench/fit.py", source), (plugin, ""), ("tests/test_a.py", RAN)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(random_mutants, "ROOT", tmp_path)
    sites = {one.line: one for one in random_mutants.sites("fit.py")}
    monkeypatch.setattr(random_mutants, "covering", lambda file: ["test_a.py"])
    ran = random_mutants.running(tmp_path, [sites[3], sites[6], sites[10], sites[13]], workers=0)
    names = ("runs_it", "runs_something_else", "uses_it_first", "uses_it_then")
    tests = [f"tests/test_a.py::test_{name}" for name in names]
    assert [sorted(one) for one in ran] == [tests, tests[:1], tests[:1], tests]  # the last one is of a shared fixture
    assert (tmp_path / "dpbench/fit.py").read_text() == source
    monkeypatch.setattr(random_mutants, "ENOUGH", -1.0)
    assert random_mutants.running(tmp_path, [sites[6]], workers=0) == [[]]


def test_what_a_paper_says_is_tried_first_and_the_quick_tests_near_by_then(monkeypatch):
    site = random_mutants.Site("sign", "experiments/nonconvex/claims.py", 1, 0, 1, "")
    monkeypatch.setattr(random_mutants, "covering", lambda file: ["a.py", "b.py"])
    said = "tests/test_outputs.py::test_a_paper_says_what_it_said[nonconvex]"
    seconds = {said: 300.0, "tests/a.py::slow": 90.0, "tests/a.py::quick": 1.0, "tests/b.py::one": 20.0,
               "tests/c.py::other": 15.0, "tests/c.py::never": 0.0}  # fmt: skip
    near = ["tests/a.py::quick", "tests/b.py::one", "tests/c.py::other"]
    assert random_mutants._enough(site, {*seconds} - {"tests/c.py::never"}, seconds) == [said, *near]
    assert random_mutants._enough(site._replace(file="study/laws.py"), {said, *near}, seconds) == near
    loaded = ["tests/a.py::quick", "tests/b.py::one", "tests/a.py::slow"]  # with the module: all tests near by
    assert random_mutants._enough(site, None, seconds) == [said, *loaded]


FORKED = """
import subprocess
import sys

import pytest

from dpbench.fit import Fit, scale

@pytest.mark.parametrize("b", [1, 2])
def test_here(b):
    assert Fit().less(b - 1, b) == -1

def test_elsewhere():
    program = "from dpbench.fit import Fit; raise SystemExit(Fit().less(0, 1) + 1)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0

def test_fails_anyway():
    assert Fit().less(0, 1) == 1

def test_for_ever():
    while scale(1) != 2:
        pass
"""
FIT = """
TWO = 2

def scale(a):
    return 2 * a

class Fit:
    def less(self, a, b):
        return a - b
"""


@pytest.mark.thorough
def test_mistakes_are_judged_in_forks_and_leave_their_tree_as_it_was(tmp_path):
    texts = {"dpbench/__init__.py": "", "dpbench/fit.py": FIT, "dpbench/cli/pytest_plugin.py": "", "pytest.ini": "",
             "tests/__init__.py": "", "tests/test_a.py": FORKED}  # fmt: skip
    texts["tests/judging.py"] = Path(judging.__file__).read_text().replace("LIMIT = 120", "LIMIT = 1")
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    expected = {
        ("a - b", "a + b", "here[1]"): judging.NOTICED,
        ("a - b", "b - a", "here[2]"): judging.NOTICED,
        ("a - b", "a + b", "elsewhere"): judging.NOTICED,
        ("a - b", "a - b + 0", "here[2]"): judging.SURVIVES,
        ("a - b", "a + b", "fails_anyway"): judging.SURVIVES,
        ("a - b", "a + b", "fails_anyway here[1]"): judging.NOTICED,
        ("2 * a", "3 * a", "here[1]"): judging.SURVIVES,
        ("2 * a", "3 * a", "for_ever"): judging.NOTICED,
        ("TWO = 2", "TWO = 3", "here[1]"): judging.NOWHERE,
    }
    mistakes = [judging.Mistake("fit.py", FIT.replace(a, b), [f"tests/test_a.py::test_{one}" for one in of.split()])
                for a, b, of in expected]  # fmt: skip
    found = {}
    for one, word in zip(expected, judging.judged(tmp_path, mistakes, ""), strict=True):
        found[one] = word
        time.sleep(0.1)  # the next one, which may take a second, begins when it is asked for
        assert (tmp_path / "dpbench/fit.py").read_text() == FIT
    assert found == expected
