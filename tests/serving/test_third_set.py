"""A third set of attacks on the server, by somebody who did not write it, of kinds that the first two sets have not."""

import contextlib
import math
import platform
import re
import subprocess
import sys
import warnings
from pathlib import Path

import msgspec
import numpy as np
import pytest

import dpbench
from dpbench import algorithms
from dpbench.algorithms import coordinate
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.exact_release import SeededMechanisms
from dpbench.privacy.ledger import (
    ZCDP,
    Allocated,
    BoundedRange,
    Gaussian,
    LogisticPerturbation,
    ObjectivePerturbation,
    PoissonReplaced,
    Radial,
    Relation,
    plain,
)
from dpbench.problems.exact import ExactProblem
from dpbench.serving import process, sandbox, wire
from dpbench.serving import server as serving
from tests.serving import test_process as processes
from tests.serving.sessions import D, N, against, answer, given, problem, requests, session
from tests.serving.test_attacks import (
    AT,
    CHOICE,
    CLIPPED,
    CORRELATE,
    GAUSSIAN,
    INF,
    LIPSCHITZ,
    MANY,
    NAN,
    ROUNDS,
    SAMPLE,
    TERM,
    a_round,
    asked,
    choose,
    drawn,
    minimiser,
    on_sample,
    planned,
    release,
)

FILE = Path(__file__).with_name("third_set.py")


def filled(value):
    return wire.numbers(np.full((1, D), value))


def moved(*moves):
    recipe = wire.CoordinateDerivative(state=1, at=AT, moves=list(moves), entry=0, bound=0.1)
    return release(asked(recipe), sensitivity=0.2 / N)


JACOBIAN = ObjectivePerturbation(30.0, 1e-9, 1e-6)
POISSON = ("sample", PoissonReplaced(0.1, Gaussian(40.0)), 1)
ATTACKS = {
    # sizes that are none, or more than there are
    "a sample of NaN rows": ([planned(SAMPLE), drawn(size=NAN)], "ValueError"),
    "a sample of inf rows": ([planned(SAMPLE), drawn(size=INF)], "OverflowError"),
    "a sample of -4 rows": ([planned(SAMPLE), drawn(size=-4.0)], "m must be in"),
    "a sample of 10**18 rows": ([planned(SAMPLE), drawn(size=1e18)], "m must be in"),
    "a sample of a share that is no number": (
        [planned(POISSON), drawn(kind="PoissonReplacedSampler", size=NAN)], "rate must be in"),
    "a sample of a negative share": (
        [planned(POISSON), drawn(kind="PoissonReplacedSampler", size=-0.1)], "rate must be in"),
    # a noise whose amplification nobody proved
    "radial noise on a sample": (
        [planned(SAMPLE), drawn(), msgspec.structs.replace(on_sample(1), noise="radial")], "beyond its plan"),
    "Laplace noise on a sample that was planned with Gaussian": (
        [planned(SAMPLE), drawn(), msgspec.structs.replace(on_sample(1), noise="laplace")], "no bound on"),
    "a plan of radial noise on a sample": (
        [wire.PlanRequest(entries=[wire.PlannedRelease(label="sample", count=1, release={
            **plain(SAMPLE[1]), "release": plain(Radial(40.0))})])], "not of its kind"),
    # numbers at the ends of float64
    "a public part that is no number, in a choice": (
        [planned(CHOICE), choose(value=asked(CLIPPED, offset=filled(NAN)))], "leave the range"),
    "a public part without an end, in a choice": (
        [planned(CHOICE), choose(value=asked(CLIPPED, offset=filled(INF)))], "leave the range"),
    "a ridge that is no number": ([release(minimiser(False, ridge=NAN).value, sensitivity=4.0)], "strongly convex"),
    "a ridge at which the distance is denormal": (
        [release(minimiser(False, ridge=1e308).value, sensitivity=0.0, z=40.0)], "it moves by up to"),
    "a model beyond float64's squares": ([release(asked(wire.GradientSum(at=filled(1e308))))], "beyond 1e100"),
    "a sensitivity one unit in the last place below the bound, and a millionth": (
        [release(sensitivity=math.nextafter(LIPSCHITZ, 0) * (1 - 1e-6))], "it moves by up to"),
    "a denormal sensitivity": ([release(sensitivity=5e-324)], "it moves by up to"),
    "a multiplier that is denormal": ([release(z=5e-324)], "multiplier"),
    "values clipped below the grid": (
        [release(asked(wire.ClippedValue(at=AT, clip=5e-324)), sensitivity=1.0)], "clipped at 2**-16 or more"),
    "a threshold below the grid": ([release(asked(wire.ClippedGradient(at=AT, clip=5e-324)))], "below 2**-32"),
    "a threshold beyond the grid": ([release(asked(wire.ClippedGradient(at=AT, clip=1e300)))], "does not fit"),
    # tokens and states of another kind, or of another life
    "a term's place as a sample": (
        [planned(("term", TERM, 1), ("sample", Gaussian(40.0), 1)),
         wire.TermRequest(event=plain(TERM), label="term"), on_sample(1)],
        "not drawn"),
    "a sample's token as correlated noise": ([planned(SAMPLE, ROUNDS), drawn(), a_round([0])], "no such correlated"),
    "a token of correlated noise as a sample": ([planned(SAMPLE, ROUNDS), CORRELATE, on_sample(1)], "not drawn"),
    "a token of 2**40": ([planned(SAMPLE), drawn(), on_sample(2**40)], "not drawn"),
    "a sample after it was in a release of a Hessian": (
        [planned((*SAMPLE[:2], 2)), drawn(), on_sample(1), release(asked(wire.HessianSum(
            at=AT, rows=1)), "symmetric", 1.0, 40.0, label="sample")], "used up"),
    # plans
    "labels that look alike": (
        [planned(GAUSSIAN), release(label="gr\u0430dient")], "beyond its plan"),
    "a plan of one label in two parts, and a third": (
        [planned(GAUSSIAN, GAUSSIAN), release(), release(), release()], "another plan"),
    "a plan as if noise were a date": (
        [wire.PlanRequest(entries=[wire.PlannedRelease(label="a", count=1, release={
            "kind": "Gaussian", "noise_multiplier": msgspec.msgpack.Ext(5, b"ab")})])], "not of its kind"),
    "a plan of a class of the module that is no release": (
        [wire.PlanRequest(entries=[wire.PlannedRelease(label="a", count=1, release={"kind": "Ledger"})])],
        "not a release"),
    "an allocation under replace-one": (
        [planned(("sample", Allocated(4, Gaussian(40.0)), 1))], "add-remove"),
    # words and numbers that mean something else to another part of the server
    "a curvature that is another attribute of the loss": (
        [release(asked(wire.HessianSum(at=AT, curvature="derivative")), "symmetric", 10.0)], "must be hess or qu"),
    "a curvature that is an attribute of all objects": (
        [release(asked(wire.HessianSum(at=AT, curvature="__class__")), "symmetric", 10.0)], "must be hess or qu"),
    "a sample of 3.9999999 rows at the price of 4": (
        [planned(SAMPLE), drawn(size=3.9999999), on_sample(1)], "beyond its plan"),
    "a tolerance that no solver reaches, and the noise of it": (
        [release(minimiser(False, gamma=1e-30).value, sensitivity=1e-29)], "it moves by up to"),
    "a term of the other relation": (
        [planned(("term", LogisticPerturbation(30.0, 0.5, Relation.ADD_REMOVE), 1))], "accounted under add-remove"),
    "a term whose proof knows another Jacobian": (
        [planned(("term", JACOBIAN, 1), ("output", Gaussian(40.0), 1)),
         wire.TermRequest(event=plain(JACOBIAN), label="term"), minimiser(True)], "a smaller Jacobian"),
    "a release paid as a mechanism of which only ρ is known": (
        [planned(("gradient", ZCDP(0.00125), 1)), release()], "beyond its plan"),
    "a choice paid as one of bounded range": ([planned(("choice", BoundedRange(0.5), 1)), choose()], "beyond its plan"),
    "an eigenvalue of one row as that of all": (
        [release(asked(wire.LeastEigenvalue(of=wire.HessianSum(at=AT, rows=[0]), unit=1.0), 1.0),
                 sensitivity=1.0 / N)], "it moves by up to"),
    "an offset that would broadcast": ([release(asked(offset=wire.numbers(np.ones(D))))], "of another shape"),
    "a model without axes": (
        [release(asked(wire.GradientSum(at=wire.SentArray(shape=[], f8=bytes(8)))))], "is asked for"),
    "an entry beyond the columns that are named": (
        [release(asked(wire.ClippedGradient(at=AT, clip=0.1, columns=[2], entry=1)))], "once each"),
    "a choice of infinite sensitivity": ([planned(CHOICE), choose(sensitivity=INF)], "OverflowError"),
    "constants at both ends of float64": (
        [planned(CHOICE), choose(score=wire.GreedyScore(
            rule="gs-s", at=AT, constants=wire.numbers([2.0**900, 2.0**-900, 1.0]), l1=1.0))], "a score moves by"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_request_is_refused_before_a_row_is_read(name):
    asks, told = ATTACKS[name]
    found = session(requests(*asks))
    assert isinstance(found.ended, PrivacyError), (found.ended, found.released)
    assert told in str(found.ended)
    assert "\n" not in str(found.ended)
    assert len(found.reads) == len(found.released)


# What is answered, and tells no more than the honest request of the same noise.
HARMLESS = {
    "a public part that is no number": release(asked(offset=filled(NAN))),
    "a model of denormals, whose products would be slow": release(asked(wire.GradientSum(at=filled(5e-324)))),
    "a model whose squares underflow": release(asked(wire.GradientSum(at=filled(1e-165)))),
    "what is replaced as a negative number, where no row is": release(replaced=-1.0),
    "a negative zero": release(asked(wire.GradientSum(at=filled(-0.0)))),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_an_odd_request_gets_what_the_honest_one_gets(name):
    honest, odd = session(requests(release())), session(requests(HARMLESS[name]))
    assert odd.ended is None
    (mine,) = odd.released
    assert np.isnan(mine).all() or np.array_equal(mine, honest.released[0])
    assert odd.server.books.of(0) == honest.server.books.of(0)


@pytest.mark.parametrize("moves", [[(0, NAN)], [(0, 1e300), (0, -1e300)], [(0, INF)]], ids=str)
def test_a_followed_model_that_leaves_the_numbers_ends_the_run_in_the_same_words_for_all_rows(moves):
    told = {str(session(requests(moved(*moves)), problem(seed=seed)).ended) for seed in range(4)}
    assert len(told) == 1
    assert "its ε is spent" in told.pop()


def of_two_kinds(first):
    """Rows e1, so many of them, and e2."""
    X = np.zeros((N, D))
    X[:first, 0] = X[first:, 1] = 1.0
    return ExactProblem(X, np.ones(N), loss="logistic", row_bound=1.0, steady=True)


@pytest.mark.parametrize(("rule", "exponent"), [("gs-q", 512.0), ("gs-r", 1022.0)])
def test_a_score_does_not_leave_the_range_of_float64_on_one_of_two_neighbours(rule, exponent):
    """A unit at which the square of a gradient overflows for 21 rows of a kind and not for 20: a score of infinity.

    It came before all noise: 40 of 40 runs chose it, where 27 of 40 did on the neighbour, for ε = .5.
    """
    most = math.floor(0.5 / D**0.5 * 2**32)
    unit = 2.0 ** (exponent - (800 if rule == "gs-r" else 0)) / (20.5 * most)
    M = 2.0**-800 if rule == "gs-r" else 1.0
    score = wire.GreedyScore(rule=rule, at=filled(1e-12), constants=wire.numbers(np.full(D, M)), l1=0.0)
    ask = choose(value=asked(wire.ClippedGradient(at=AT, clip=0.5), unit=unit), score=score,
                 sensitivity=2 * most * unit * 1.00001 / M**0.5)  # fmt: skip
    for rows in (20, 21):
        found = session(requests(planned(CHOICE), ask), of_two_kinds(rows))
        assert "leave the range" in str(found.ended)
        assert not found.reads


def test_below_the_range_of_float64_a_jump_of_a_score_is_counted_in():
    """A gradient whose square is no number above 0: its score jumps from 0 where the square is one again."""
    G, ones = np.array([[2.0**-536.9, 2.0**-537.1, 0.0]]), np.ones(D)
    jump = np.ptp(coordinate.scores("gs-q", G, np.full((1, D), 1e-300), ones, 0.0))
    off = coordinate.rounding("gs-q", G[0], np.full(D, 1e-300), ones, 0.0)
    assert off > jump > 0


def frame(base, **changes):
    return msgspec.msgpack.encode(msgspec.to_builtins(base, builtin_types=(bytes,)) | changes)


HONEST = frame(release())
ROWS = frame(release(asked(wire.GradientSum(at=AT, rows=[]))))
LISTED = frame(wire.PlanRequest(entries=[wire.PlannedRelease(label="a", count=1, release={"x": []})]))
RAW = {
    "a list that claims four billion rows": ROWS.replace(b"\xa4rows\x90", b"\xa4rows\xdd\xff\xff\xff\xff"),
    "a list that claims four billion things": LISTED.replace(b"\xa1x\x90", b"\xa1x\xdd\xff\xff\xff\xff"),
    "a map that claims four billion things": LISTED.replace(b"\xa1x\x90", b"\xa1x\xdf\xff\xff\xff\xff"),
    "lists 900,000 deep": LISTED.replace(b"\xa1x\x90", b"\xa1x" + b"\x91" * 900_000),
    "its kind twice": bytes([HONEST[0] + 1]) + HONEST[1:] + b"\xa4kind\xabDoneRequest",
    "half of a pair of letters": HONEST.replace(b"gradient", b"\xed\xa0\x80dient"),
    "a label with a NUL": frame(release(), label="gradient\0"),
    "a truth for a number": frame(release(), sensitivity=True),
    "a complex number": frame(release(), sensitivity=[0.1, 0.2]),
    "an array of an object's kind": frame(wire.DoneRequest(W=AT), W={"shape": [1, 3], "f8": bytes(24), "dtype": "O"}),
    "dimensions that are no counts": frame(wire.DoneRequest(W=AT), W={"shape": [1, 3.5], "f8": bytes(24)}),
    "a token that is a truth": frame(wire.RoundRequest(token=0, value=asked()), token=True),
    "a reply in a request's place": msgspec.msgpack.encode(wire.Reply(value=AT)),
    "a refusal in a request's place": msgspec.msgpack.encode(wire.Refused()),
    "bytes behind the frame": HONEST + b"\xc0",
}


@pytest.mark.parametrize("name", RAW)
def test_a_frame_is_malformed(name):
    def play(channel):
        channel.outgoing.send_bytes(RAW[name])

    found = session(play)
    assert "malformed" in str(found.ended)
    assert not found.reads
    assert not found.server.books.of(0)


def test_the_last_of_a_field_that_is_there_twice_is_what_is_checked():
    def play(channel):
        sent = bytes([HONEST[0] + 1]) + HONEST[1:] + b"\xabsensitivity" + msgspec.msgpack.encode(1e-9)
        channel.outgoing.send_bytes(sent)
        channel.incoming.poll(10)

    assert "it moves by up to" in str(session(play).ended)


def test_a_shape_whose_product_wraps_round_is_no_array():
    found = session(
        requests(release(), wire.DoneRequest(W=wire.SentArray(shape=[2**40, 2**40, 0], f8=b"")), done=False)
    )
    assert found.W is None
    assert "bytes are not those of its shape" in str(found.ended)


def test_who_reads_no_reply_has_spent_what_it_asked_for():
    """A method that goes away after its request, so that what it was told is in no transcript: the ledger has it."""
    on = problem()
    server = serving.MechanismServer(on, SeededMechanisms(["k"], processes.BUDGET))

    def play(channel):
        channel.send(release(z=100.0))
        channel.outgoing.close()
        channel.incoming.close()

    with contextlib.suppress(BrokenPipeError):  # which `process` tells as "it ended before its run did"
        against(server, play)
    assert server.books.of(0)[0].count == 1


def test_how_many_steps_a_run_took_changes_nothing_of_what_is_guaranteed():
    """The count of releases follows from replies; the guarantee is of the plan, whatever was left of it."""
    few, all_ = (session(requests(planned(MANY), *[release()] * count)) for count in (1, 3))
    assert few.server.books.planned(0) == all_.server.books.planned(0)
    assert few.server.books.of(0) != all_.server.books.of(0)


def test_a_refusal_is_the_same_bytes_whatever_was_refused():
    told = set()
    for asks in ([release(sensitivity=0.0)], [planned(GAUSSIAN), release(z=9.0)], [minimiser(True)], [choose()]):
        replies = []

        def play(channel, asks=asks, replies=replies):
            for one in asks:
                channel.send(one)
                replies.append(channel.read())

        session(play)
        told.add(replies[-1])
    assert told == {msgspec.msgpack.encode(wire.Refused())}


def test_correlated_noise_of_the_largest_sizes_is_made_in_a_second():
    wide = msgspec.structs.replace(CORRELATE, steps=wire.MOST_ROUNDS, separation=10**8, bands=10**4)
    assert session(requests(planned(ROUNDS), wide, a_round([0])), seconds=20).ended is None


class Asked:
    """The channel of a method's process, whose first frame is this."""

    def __init__(self, channel, first):
        self.frames, self.channel, self.send = [first], channel, channel.send

    def receive(self, kind):
        return self.frames.pop() if self.frames else self.channel.receive(kind)


def in_thread(name, on=None):
    """A session with a class of the third set."""
    on = on or problem()
    mechanisms = SeededMechanisms(["k"], processes.BUDGET, declared=algorithms.get("dp-gd").relation)
    first = given(f"{FILE}:{name}", on, processes.BUDGET)

    def play(channel):
        with contextlib.suppress(SystemExit):
            channel.send(answer(Asked(channel, first)))

    return against(serving.MechanismServer(on, mechanisms), play)


@pytest.mark.parametrize("replaced", [-1.0, NAN, INF, 1e-9])
def test_what_a_row_replaced_does_is_no_way_to_less_noise(replaced):
    mechanisms = SeededMechanisms(["k"], processes.BUDGET, declared=algorithms.get("dp-gd").relation)
    found = against(serving.MechanismServer(problem(), mechanisms), requests(release(replaced=replaced)))
    assert "sensitivity" in str(found.ended)
    assert not found.reads


@pytest.mark.parametrize(("name", "told"), [
    ("Complex", "real numbers"), ("Objects", "real numbers"), ("Structured", "real numbers"),
    ("Nothing", "real numbers"), ("Exits", "SystemExit: 0"), ("Unpacks", "not be read"),
    ("OfOtherModels", "is asked for"), ("SignBits", "positive"), ("InExcess", "beyond its plan"),
    ("Replanned", "plan comes first"),
])  # fmt: skip
def test_a_method_gets_nothing_by_what_it_returns_or_asks(name, told):
    found = in_thread(name)
    assert found.W is None
    assert isinstance(found.ended, PrivacyError | UserError)
    assert told in str(found.ended)


LIMITS = sandbox.Limits(seconds=20, wall=20)
OURS = re.sub(r"^from tests.*\n", "", FILE.read_text(), flags=re.MULTILINE)  # a sandbox has no tests
SOURCE = f"{processes.FILE.read_text()}\n{OURS}".encode()


def served(name, limits=LIMITS, on=None):
    """(the run, what differs in its repeat) of a class of the third set, in a process."""
    on = on or problem()
    code = process.MethodCode(name, SOURCE)
    asked_for = given(code.called, on, processes.BUDGET)
    relation = algorithms.get("dp-gd").relation
    mechanisms = SeededMechanisms(["k"], processes.BUDGET, declared=relation)
    found = process.serve(code, asked_for, on, mechanisms, limits)
    return found, process.repeat(code, found, limits)


@pytest.mark.skipif(platform.machine() not in sandbox.CALLS, reason="system calls are filtered on two machines")
def test_a_run_leaves_nothing_with_the_kernel():
    """In the sandbox too, a run found the key that the run before had left in the session's keyring."""
    assert served("Kernel")[1] == ""


def test_a_machine_whose_calls_are_not_known_has_no_sandbox(monkeypatch):
    """There a method could make processes and leave keys, and its row would say that it was served."""
    works = not subprocess.run([sys.executable, sandbox.__file__]).returncode
    assert works == (platform.machine() in sandbox.CALLS)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert not sandbox.alone()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Breaking", "TooMuch", "Honest"])
def test_a_method_that_fails_after_its_replies_has_spent_its_budget(name):
    """Run again until it does not fail, it would compose beyond ε."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (200, 3)), np.where(rng.random(200) < 0.5, 1, -1)
    budget = dpbench.DataBudget.create(None, epsilon=5, delta=1e-3)
    reference = f"{processes.FILE}:{name}"
    model = dpbench.PrivateClassifier(
        1.0, delta=1e-4, bounds=(-1, 1), classes=[-1, 1], budget=budget, algorithm=reference
    )
    with contextlib.suppress(PrivacyError, UserError), warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
    assert budget.epsilon_spent > 0.5


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Hooked", "Descriptors", "Threads", "Sparse", "Kept"])
def test_a_method_reaches_nothing_beside_its_two_pipes(name):
    first, differs = served(name)
    assert differs == ""
    assert np.array_equal(first.W, served("Honest")[0].W)


@pytest.mark.thorough
def test_randomness_of_a_method_s_own_is_found_by_the_repeat():
    assert "returns something else" in served("SeedOfTime")[1]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "told"), [("Searches", "list index"), ("Stopped", "not permitted")])
def test_a_method_that_searches_or_stops_ends_in_a_line(name, told):
    with pytest.raises((PrivacyError, UserError), match=told):
        served(name, sandbox.Limits(seconds=20, wall=6))


@pytest.mark.parametrize(("name", "on"), [
    ("Narrow", {}), ("BigEndian", {}), ("Wordy", {}), ("Once", {}), ("Averaged", {}), ("Fewer", {}), ("Scaled", {}),
    ("Careful", {}), ("Honest", {"n": 1, "d": 1}), ("Honest", {"row_bound": 0.25}), ("Honest", {"l2": 0.1}),
])  # fmt: skip
def test_an_honest_method_passes(name, on):
    found = in_thread(name, problem(**on))
    assert found.ended is None
    assert np.isfinite(found.W).all()
    assert len(found.released) in (1, 5)
