"""A stranger's method in a process of its own: what it can reach, how it ends, and that a second run tells."""

import contextlib
from multiprocessing import Pipe
from pathlib import Path

import msgspec
import numpy as np
import pytest

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.exact_release import ExactMechanisms, SeededMechanisms
from dpbench.run.bind import bind, budget_of
from dpbench.serving import process, sandbox, wire
from dpbench.serving.client import MechanismClient, PreparedMethod
from dpbench.serving.method import ServedMethod
from dpbench.serving.server import MechanismServer
from tests.serving.sessions import against, given, problem

FILE = Path(__file__).with_name("strangers.py")
LIMITS = sandbox.Limits(seconds=20, wall=20)
BUDGET = budget_of(algorithms.get("dp-gd"), 40, 1.0, None, "replace-one", "tight")


def served(name, limits=LIMITS, on=None):
    on = on or problem()
    code = process.MethodCode(name, FILE.read_bytes())
    asked = given(code.called, on, BUDGET)
    declared = algorithms.get("dp-gd").relation
    found = process.serve(code, asked, on, ExactMechanisms(["k"], BUDGET, declared=declared), limits)
    return found, process.repeat(code, found, limits)


def in_thread(name):
    """The same without a process: what the client's own types refuse."""
    on = problem()
    server = MechanismServer(on, SeededMechanisms(["k"], BUDGET, declared=algorithms.get("dp-gd").relation))
    asked = given(f"{FILE}:{name}", on, BUDGET)

    def play(channel):
        try:
            W = PreparedMethod(asked).run(MechanismClient(channel), np.zeros((1, on.d)))
        except Exception as error:
            channel.send(wire.FailedRequest(error=str(error)[:300]))
        else:
            channel.send(wire.DoneRequest(W=wire.numbers(W)))

    return against(server, play)


@pytest.mark.parametrize("name", [
    "Rows", "Margins", "Optimum", "Norms", "AsArray", "Comparing", "Adding", "OwnNoise", "HiddenNoise", "TooMuch",
    "Third", "Replaced", "SometimesExact", "Ledger", "TwoPasses", "SymmetricPass",
])  # fmt: skip
def test_a_method_that_reaches_for_the_rows_gets_nothing(name):
    found = in_thread(name)
    assert found.W is None
    assert isinstance(found.ended, PrivacyError | UserError)


def test_a_single_pass_costs_one_release():
    found = in_thread("OnePass")
    assert found.ended is None
    (entry,) = found.server.books.of(0)
    assert (entry.count, len(found.released)) == (1, 5)


def test_an_honest_method_is_served_and_repeats():
    assert in_thread("Honest").ended is None
    found, differs = served("Honest")
    assert not differs
    assert len(found.transcript) == 6


@pytest.mark.thorough_for("OwnRandomness")
@pytest.mark.parametrize("name", ["Clock", "OwnRandomness"])
def test_the_repeat_without_rows_finds_what_is_not_of_the_replies(name):
    assert "returns something else" in served(name)[1]


def test_the_repeat_without_rows_finds_what_is_not_asked_by_the_replies():
    assert "asks for something else" in served("AsksByChance")[1]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "told"), [
    ("Dying", r"SystemExit: 3 \(method"), ("Flooding", "."), ("Breaking", "on purpose"), ("Hungry", "MemoryError"),
])  # fmt: skip
def test_a_broken_process_ends_the_run_in_one_line(name, told):
    with pytest.raises((PrivacyError, UserError), match=told) as caught:
        served(name)
    assert "\n" not in str(caught.value)


def test_a_method_makes_no_process_so_the_limits_on_one_are_limits_on_all():
    assert served("Forking")[1] == ""


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "limits"), [("Sleeping", (20, 4)), ("Burning", (4, 300))])
def test_a_run_that_hangs_or_computes_for_ever_is_ended(name, limits):
    with pytest.raises(PrivacyError, match=r"ended before|more time"):
        served(name, sandbox.Limits(*limits))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Outward", "Remembering", "Filling"])
def test_the_sandbox_has_nothing_to_find_or_to_leave(name):
    if sandbox.at_hand() is None:
        pytest.skip("bubblewrap is not installed, or does not work here")
    for _ in range(2):
        assert served(name)[1] == ""


@pytest.mark.thorough
def test_a_file_s_text_is_read_once(tmp_path):
    """What is run, repeated and hashed is one text: a file that changes meanwhile changes nothing."""
    file = tmp_path / "mine.py"
    file.write_bytes(FILE.read_bytes())
    method = algorithms.get(f"served:{file}:Honest")
    assert isinstance(method, ServedMethod)
    assert method.code.source == file.read_bytes()
    file.write_text("raise SystemExit")
    on = problem()
    bound = bind(method, on, [method.Settings()], [BUDGET], np.zeros((1, on.d)), ["k"])
    assert bound.run().status == ["done"]


@pytest.mark.thorough
def test_lists_and_tables_are_settings(tmp_path):
    method = algorithms.get(f"served:{FILE}:Listed")
    settings = method.Settings()
    assert (settings.steps, settings.more) == ([1.0, 0.5], {})
    assert settings.steps is not method.Settings().steps
    mine, served_ = algorithms.get(f"{FILE}:Listed"), method  # of which the latter leaves text to the method's process
    assert [make_settings(one, {"steps": "[0.5, 1]"}).steps for one in (mine, served_)] == [[0.5, 1.0], "[0.5, 1]"]
    with pytest.raises(UserError, match="setting steps: must be a list, got 'a'"):
        make_settings(mine, {"steps": "a"})
    on = problem()
    served_, here = (
        bind(algorithms.get(f"{where}{FILE}:Listed"), on, [made], [BUDGET], np.zeros((1, on.d)), ["k"])
        for where, made in (("served:", settings), ("", algorithms.get(f"{FILE}:Listed").Settings()))
    )
    assert np.array_equal(*(one.run(mechanisms_class=SeededMechanisms).W for one in (served_, here)))


TELLS = {"kind": "DescribedSetting", "name": "a", "number": False}


@pytest.fixture(scope="module")
def honest():
    """What a method's process says of it."""
    code = process.MethodCode("Honest", FILE.read_bytes())
    return msgspec.to_builtins(process.ask(code, wire.DescribeMethod(reference=code.called), wire.DescribedMethod))


@pytest.mark.parametrize(("forged", "told"), [
    ({"name": "dp-gd"}, "the name dp-gd is taken"), ({"name": "../evil"}, "malformed"),
    ({"title": "a\x1b[2J"}, "malformed"), ({"labels": ["a\u202eb"]}, "malformed"), ({"private": False}, "not private"),
    ({"labels": ["a"] * 65}, "malformed"), ({"accountings": ["x" * 20_000]}, "at most"),
    ({"needs": {"losses": 1}}, "malformed"), ({"needs": {"losses": []}}, "no loss that its proof covers"),
    ({"accountings": ["as-released-code"]}, "accounting as-released-code: "), ({"paper_accounting": "free"}, "unknown"),
    ({"settings": [wire.DescribedSetting(name="a b", default=1, number=True)]}, "malformed"),
    ({"settings": [TELLS | {"default": "\x1b[2J"}]}, "malformed"),
    ({"settings": [TELLS | {"default": [[[[1]]]]}]}, "malformed"),
    ({"settings": [TELLS | {"name": "__post_init__", "default": 1}]}, "malformed"),
    ({"fixed": {"T": "\x1b[2J"}}, "malformed"), ({"needs": {"regularisers": ["\x1b[2J"]}}, "malformed"),
    ({"name": "private-tuning"}, "is taken"), ({"name": "probe-noise"}, "is taken"),
])  # fmt: skip
def test_what_a_process_says_of_its_method_is_not_believed(monkeypatch, honest, forged, told):
    """Its file may change the code that describes it, as the next test does."""

    @contextlib.contextmanager
    def says(code, limits, largest):
        ours, theirs = Pipe()
        with ours, theirs:
            theirs.send_bytes(msgspec.msgpack.encode(honest | forged))
            yield wire.Channel(ours, ours, largest)

    monkeypatch.setattr(process, "_process", says)
    with pytest.raises(UserError, match=told) as caught:
        ServedMethod(process.MethodCode("Honest", FILE.read_bytes()))
    assert "\n" not in str(caught.value)


FORGED = """
from dpbench.serving import wire
from dpbench.serving.wire import DescribedSetting

truth = wire.DescribedMethod
wire.DescribedMethod = lambda **told: truth(**told | {forged})
"""


def test_a_stranger_s_delta_is_one_of_ours():
    forged = FORGED.format(forged={"delta": 0.9}).encode()
    assert ServedMethod(process.MethodCode("Honest", FILE.read_bytes() + forged)).delta == "n^-2"
    assert ServedMethod(process.MethodCode("dp-gd-laplace")).delta == algorithms.get("dp-gd-laplace").delta


@pytest.mark.parametrize(("name", "told"), [
    ("Loud", "not private"), ("Taken", "is taken"), ("learner", "no class derived"), ("Missing", "Missing"),
    ("Solver", "draws its own noise; run it as trusted code"),
])  # fmt: skip
def test_what_cannot_be_served_is_refused_in_one_line(name, told):
    with pytest.raises(UserError, match=told) as caught:
        algorithms.get(f"served:{FILE}:{name}")
    assert "\n" not in str(caught.value)
