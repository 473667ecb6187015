"""Attacks by a method that knows the protocol: each is refused before a row is read, and the run ends with it."""

import os
import time

import msgspec
import numpy as np
import pytest

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.ledger import (
    ConvexPerturbation,
    Gaussian,
    Laplace,
    LogisticPerturbation,
    ObjectivePerturbation,
    Poisson,
    PureDP,
    Relation,
    WithoutReplacement,
    at_rho,
    plain,
)
from dpbench.problems.exact import ExactProblem
from dpbench.problems.losses import Logistic
from dpbench.serving import server as serving
from dpbench.serving import wire
from tests.serving.sessions import D, N, problem, requests, session

AT = wire.numbers(np.zeros((1, D)))
STEP = 2.0**-32
LIPSCHITZ = 2 / N  # how far a row replaced moves the mean gradient of logistic loss
INF, NAN = float("inf"), float("nan")


def asked(recipe=None, unit=STEP / N, offset=None):
    return wire.RequestedValue(recipe=recipe or wire.GradientSum(at=AT), unit=unit, offset=offset)


def release(value=None, noise="normal", sensitivity=LIPSCHITZ, z=20.0, replaced=None, label="gradient"):
    return wire.ReleaseRequest(value=value or asked(), noise=noise, label=label, sensitivity=sensitivity, multiplier=z,
                               replaced=replaced)  # fmt: skip


def planned(*entries):
    return wire.PlanRequest(
        entries=[wire.PlannedRelease(label=label, release=plain(one), count=count) for label, one, count in entries]
    )


def drawn(label="sample", kind="WithoutReplacementSampler", size=4.0):
    return wire.DrawRequest(sampler=kind, size=size, label=label)


def sampled(client):
    """A release on the last draw, which `drawn` made just before."""
    return on_sample(client.ask(drawn()))


def on_sample(token, z=40.0):
    value = asked(wire.GradientSum(at=AT, rows=token), unit=STEP / 4)
    return release(value, sensitivity=0.5, z=z, label="sample")


GAUSSIAN, MANY = ("gradient", Gaussian(20.0), 1), ("gradient", Gaussian(20.0), 3)
SAMPLE = ("sample", WithoutReplacement(N, 4, Gaussian(40.0)), 1)
CLIPPED = wire.ClippedGradient(at=AT, clip=0.1)


def scaled(root):
    return wire.ScaledScore(root=wire.numbers(root))


def greedy(at, l1=0.0):
    return wire.GreedyScore(rule="gs-r", at=wire.numbers(at), constants=wire.numbers(np.ones(D)), l1=l1)


CHOSEN = {"value": asked(CLIPPED), "score": scaled(np.ones(D)), "choice": "argmax", "label": "choice",
          "sensitivity": 0.2 / N, "epsilon": 0.5}  # fmt: skip
CHOICE = ("choice", PureDP(0.5), 1)


def choose(**changes):
    return wire.ChoiceRequest(**CHOSEN | changes)


def test_honest_requests_pass():
    """The controls of this file: what the attacks change of these is what is refused."""
    for on, *asks in (
        (problem(), release()),
        (problem(), planned(GAUSSIAN), release()),
        (problem(), planned(SAMPLE), sampled),
        (problem(), planned(CHOICE), choose()),
        (problem(), planned(ROUNDS), CORRELATE, *[a_round([i, i + 4]) for i in range(4)]),
        (
            problem(),
            release(asked(wire.GradientSum(at=AT, rows=[1, 5]), unit=STEP), sensitivity=2.0),
        ),
        (problem(), planned(("term", TERM, 1), ("output", Gaussian(40.0), 1)), TERM_ASKED, minimiser(True)),
        (problem(), release(asked(wire.ClippedValue(at=AT, clip=1.0), unit=2.0**-16 / N), sensitivity=1 / N)),
        (problem(), release(minimiser(False).value, sensitivity=4.0, z=40.0)),
    ):
        found = session(requests(*asks), on)
        assert found.ended is None, (found.ended, asks)
        assert found.W is not None
        assert np.isfinite(found.released[-1]).all()


TERM = LogisticPerturbation(30.0, 0.5, Relation.REPLACE_ONE)
CONVEX = ConvexPerturbation(30.0, 0.5, Relation.REPLACE_ONE)
RIDGE = 0.25 / N / 0.5
TERM_ASKED = wire.TermRequest(event=plain(TERM), label="term")


def minimiser(term, ridge=RIDGE, gamma=1e-6, solver="objective_perturbation", at=AT):
    term = None if term is True else wire.numbers(np.zeros((1, D))) if term is False else term
    recipe = wire.PerturbedMinimiser(solver=solver, ridge=ridge, tolerance=gamma, at=at, term=term)
    return release(
        wire.RequestedValue(recipe=recipe), sensitivity=2 * gamma / max(ridge, gamma), z=40.0, label="output"
    )


ROUNDS = ("rounds", at_rho(0.001), 1)
Z = at_rho(0.001).noise_multiplier
CORRELATE = wire.CorrelateRequest(steps=4, separation=4, bands=2, sensitivity=2.0, multiplier=Z, label="rounds")


def a_round(rows):
    return wire.RoundRequest(token=1, value=asked(wire.GradientSum(at=AT, rows=rows), unit=STEP))


def two(*requests_):
    return list(requests_)


TERM_PLAN = planned(("term", TERM, 1), ("output", Gaussian(40.0), 2))
ATTACKS = {
    # sensitivities and noise
    "a sensitivity of a third": (release(sensitivity=LIPSCHITZ / 3), "it moves by up to"),
    "a sensitivity of a tenth": (release(sensitivity=LIPSCHITZ / 10), "it moves by up to"),
    "a sensitivity of 0": (release(sensitivity=0.0), "it moves by up to"),
    "a negative sensitivity": (release(sensitivity=-1.0), "sensitivity must be"),
    "no number for a sensitivity": (release(sensitivity=NAN), "sensitivity must be"),
    "an infinite sensitivity": (release(sensitivity=INF), "sensitivity must be"),
    "no noise": (release(z=0.0), "multiplier"),
    "negative noise": (release(z=-1.0), "multiplier"),
    "no number for the noise": (release(z=NAN), "$.multiplier"),
    "noise without an end": (release(z=INF), "multiplier"),
    "a unit at the least denormal": (release(asked(unit=5e-324)), "unit"),
    "a negative unit": (release(asked(unit=-STEP)), "unit"),
    "no number for a unit": (release(asked(unit=NAN)), "unit"),
    "a noise nobody has": (release(noise="uniform"), "KeyError"),
    "Laplace noise on rows of an l2 bound": (release(noise="laplace"), "no bound on the"),
    "symmetric noise on a vector": (release(noise="symmetric"), "symmetric"),
    # the budget
    "twice what is planned": (two(planned(GAUSSIAN), release(), release()), "beyond its plan"),
    "less noise than planned": (two(planned(GAUSSIAN), release(z=10.0)), "beyond its plan"),
    "another label than planned": (two(planned(GAUSSIAN), release(label="other")), "beyond its plan"),
    "a plan beyond the budget": (planned(("gradient", Gaussian(1.0), 30)), "more than the"),
    "a plan after a release": (two(release(), planned(MANY)), "a plan comes first"),
    "a plan twice": (two(planned(GAUSSIAN), planned(GAUSSIAN)), "a plan comes first"),
    "more than the budget without a plan": (two(*[release(z=2.0)] * 60), "beyond its budget"),
    "Laplace noise without a plan": (
        release(asked(wire.CoordinateDerivative(state=1, at=AT, moves=[], entry=0, bound=0.1), unit=STEP / N),
                noise="laplace", sensitivity=0.2 / N), "only Gaussian noise"),
    "a choice without a plan": (choose(), "only Gaussian noise"),
    # samples
    "a sample without a plan": (sampled, "plans its releases"),
    "a draw used twice": (two(planned((*SAMPLE[:2], 2)), drawn(), on_sample(1), on_sample(1)), "used up"),
    "a draw that was not made": (two(planned(SAMPLE), on_sample(7)), "not drawn"),
    "a draw before the last": (two(planned((*SAMPLE[:2], 2)), drawn(), drawn(), on_sample(1)), "used up"),
    "all rows at the price of a sample": (
        two(planned(SAMPLE), drawn(), release(z=40.0, label="sample")), "beyond its plan"),
    "own rows at the price of a sample": (
        two(planned(SAMPLE), drawn(), release(asked(wire.GradientSum(at=AT, rows=[0])), z=40.0,
                                              sensitivity=2.0, label="sample")), "beyond its plan"),
    "a row twice": (release(asked(wire.GradientSum(at=AT, rows=[0, 0]))), "once each"),
    "a row that there is not": (release(asked(wire.GradientSum(at=AT, rows=[N]))), "once each"),
    "no rows": (release(asked(wire.GradientSum(at=AT, rows=[]))), "once each"),
    "a sampler of the other relation": (
        two(planned(SAMPLE), drawn(kind="PoissonSampler", size=0.1)), "accounted under"),
    "a sampler that is not private": (two(planned(SAMPLE), drawn(kind="WithReplacementSampler")), "KeyError"),
    "many samplers": (two(planned(SAMPLE), *[drawn(label=f"sample{i}") for i in range(20)]), "more than 16"),
    "a smaller sample than planned": (two(planned(SAMPLE), drawn(size=8.0), on_sample(1)), "beyond its plan"),
    # terms and minimisers
    "a term left out": (two(TERM_PLAN, TERM_ASKED, minimiser(False)), "it moves by up to"),
    "a term used twice": (two(TERM_PLAN, TERM_ASKED, minimiser(True), minimiser(True)), "belongs to one minimiser"),
    "a term drawn twice": (
        two(planned(("term", TERM, 2)), TERM_ASKED, TERM_ASKED), "no proof covers"),
    "a term that was not drawn": (two(TERM_PLAN, minimiser(True)), "no term was drawn"),
    "a minimiser of less ridge": (two(TERM_PLAN, TERM_ASKED, minimiser(True, ridge=RIDGE / 4)), "less curvature"),
    "a minimiser too far away": (release(minimiser(False, ridge=1e-5).value, sensitivity=1e7), "too far"),
    "a minimiser without ridge": (release(minimiser(False, ridge=0.0).value, sensitivity=1e7), "strongly convex"),
    "a negative ridge": (release(minimiser(False, ridge=-1.0).value, sensitivity=1e7), "strongly convex"),
    "a minimiser with Laplace noise": (
        two(planned(("output", Laplace(40.0), 1)),
            release(minimiser(False).value, noise="laplace", sensitivity=4.0, z=40.0, label="output")), "add Gaussian"),
    "a negative tolerance": (release(minimiser(False, gamma=-1.0).value, sensitivity=4.0), "tolerance"),
    "a tolerance that is no number": (release(minimiser(False, gamma=NAN).value, sensitivity=4.0), ".tolerance`"),
    "a tolerance without an end": (release(minimiser(False, gamma=INF).value, sensitivity=4.0), "tolerance"),
    "a solver of its own": (release(minimiser(False, solver="mine").value, sensitivity=4.0), "KeyError"),
    "a public term too far away": (
        release(minimiser(wire.numbers(np.full((1, D), 1e3))).value, sensitivity=1e7), "too far"),
    "a public term that is no number": (
        release(minimiser(wire.numbers(np.full((1, D), NAN))).value, sensitivity=1e7), "beyond 1e100"),
    "a public term of many models": (
        release(minimiser(wire.numbers(np.zeros((7, D)))).value, sensitivity=1e7), "is asked for"),
    "a minimiser from too far away": (
        release(minimiser(False, at=wire.numbers(np.full((1, D), 1e4))).value, sensitivity=4.0), "too far"),
    "a random term beside a public one": (
        two(TERM_PLAN, TERM_ASKED, minimiser(wire.numbers(np.ones((1, D))))), "it moves by up to"),
    "a term without noise": (
        wire.TermRequest(event={**plain(TERM), "noise_multiplier": 0.0}, label="term"), "noise_multiplier"),
    "a minimiser with a public part": (
        release(msgspec.structs.replace(minimiser(False).value, offset=AT), sensitivity=4.0), "released as it is"),
    "a scaled minimiser": (
        release(msgspec.structs.replace(minimiser(False).value, unit=0.01), sensitivity=0.04), "released as it is"),
    "the event of another release as a term": (
        two(planned(("term", Gaussian(30.0), 1)), wire.TermRequest(event=plain(Gaussian(30.0)), label="term")),
        "no proof covers"),
    # choices
    "tiny scales": (two(planned(CHOICE), choose(score=scaled(np.full(D, 1e-6)))), "a score moves by up to"),
    "a scale of 0": (two(planned(CHOICE), choose(score=scaled(np.zeros(D)))), "constant"),
    "many scores for one entry": (two(planned(CHOICE), choose(score=scaled(np.ones((5, D))))), "of its own"),
    "a choice of a matrix": (two(planned(CHOICE), choose(value=asked(wire.SecondMoment()))), "of a vector"),
    "a score that is flat where it is tried": (
        two(planned(CHOICE), choose(sensitivity=1e-9, score=wire.GreedyScore(
            rule="gs-r", at=wire.numbers(np.ones((1, D))), constants=wire.numbers(np.ones(D)), l1=1e6))),
        "a score moves by up to"),
    "vertices of a larger ball": (
        two(planned(CHOICE), choose(score=wire.VertexScore(radius=1e3, l1=0.0))), "a score moves by up to"),
    "a rule nobody has": (two(planned(CHOICE), choose(score=wire.GreedyScore(
        rule="mine", at=AT, constants=wire.numbers(np.ones(D)), l1=0.0))), "no such rule"),
    "a score at a model that is no number": (two(planned(CHOICE), choose(score=greedy(np.full((1, D), NAN)))), "no su"),
    "a choice on a sample": (two(planned(SAMPLE, CHOICE), drawn(), choose(value=on_sample(1).value)), "on no sample"),
    "a choice of a minimiser": (two(planned(CHOICE), choose(value=minimiser(False).value)), "of a vector"),
    "a score at many models": (two(planned(CHOICE), choose(score=greedy(np.zeros((7, D))))), "no such"),
    "a score of a negative weight": (two(planned(CHOICE), choose(score=greedy(np.zeros((1, D)), l1=-1.0))), ".l1`"),
    "a score of no weight": (two(planned(CHOICE), choose(score=greedy(np.zeros((1, D)), l1=NAN))), "l1"),
    "a choice at no cost": (two(planned(CHOICE), choose(epsilon=0.0)), "epsilon"),
    "a choice at a negative cost": (two(planned(CHOICE), choose(epsilon=-1.0)), "epsilon"),
    "a choice of a kind nobody has": (two(planned(CHOICE), choose(choice="exact")), "KeyError"),
    # correlated noise
    "a row in rounds too near": (two(planned(ROUNDS), CORRELATE, a_round([0, 1]), a_round([1, 2])), "apart at least"),
    "all rows in rounds too near": (two(planned(ROUNDS), CORRELATE, a_round(None), a_round(None)), "apart at least"),
    "a row in two blocks of a single pass": (
        two(planned(ROUNDS), msgspec.structs.replace(CORRELATE, bands=1), a_round([0, 1]), a_round([2]), a_round([1])),
        "apart at least"),
    "many correlated noises": (two(planned(ROUNDS), *[CORRELATE] * 20), "more than 16"),
    "more bands than rounds apart": (
        two(planned(ROUNDS), msgspec.structs.replace(CORRELATE, separation=1)), "bands must be in"),
    "more rounds than paid for": (
        two(planned(ROUNDS), CORRELATE, *[a_round([i]) for i in range(5)]), "its ε is spent"),
    "a smaller sensitivity of rounds": (
        two(planned(ROUNDS), msgspec.structs.replace(CORRELATE, sensitivity=1.0), a_round([0])), "it moves by up to"),
    "rounds that were not planned": (
        two(planned(GAUSSIAN), CORRELATE, a_round([0])), "beyond its plan"),
    "rounds on a sample": (
        two(planned(SAMPLE, ROUNDS), CORRELATE, drawn(), wire.RoundRequest(token=1, value=on_sample(2).value)),
        "on no sample"),
    "rounds of a minimiser": (
        two(planned(ROUNDS), CORRELATE, wire.RoundRequest(token=1, value=minimiser(False).value)), "of a vector"),
    "rounds of a matrix": (
        two(planned(ROUNDS), CORRELATE, wire.RoundRequest(token=1, value=asked(wire.SecondMoment()))), "of a vector"),
    "a noise that was not made": (two(planned(ROUNDS), a_round([0])), "no such correlated noise"),
    "rounds without noise": (two(planned(ROUNDS), msgspec.structs.replace(CORRELATE, multiplier=0.0)), "multiplier"),
    # bounds, columns, models
    "a negative bound": (release(asked(wire.BoundedGradient(at=AT, bound=-1.0)), sensitivity=2.0), "bound"),
    "a negative bound on values": (release(asked(wire.ClippedValue(at=AT, clip=-1.0)), sensitivity=2.0), "bound"),
    "values at half of their sensitivity": (
        release(asked(wire.ClippedValue(at=AT, clip=1.0), unit=2.0**-16 / N), sensitivity=0.5 / N),
        "it moves by up to"),
    "values of a batch": (release(asked(wire.ClippedValue(at=wire.numbers(np.zeros((7, D))), clip=1.0))), "asked for"),
    "values on a sample": (
        two(planned(SAMPLE), drawn(), release(asked(wire.ClippedValue(at=AT, clip=1.0), unit=2.0**-16 / N),
                                              sensitivity=1 / N, z=40.0, label="sample")), "beyond its plan"),
    "a negative bound on labels": (release(asked(wire.LabelMoments(bound=-1.0)), sensitivity=2.0), "bound"),
    "a negative threshold": (release(asked(wire.ClippedGradient(at=AT, clip=-1.0))), "threshold"),
    "a column twice": (release(asked(wire.ClippedGradient(at=AT, clip=0.1, columns=[0, 0]))), "once each"),
    "no columns": (release(asked(wire.ClippedGradient(at=AT, clip=0.1, columns=[]))), "once each"),
    "a column that there is not": (release(asked(wire.ClippedGradient(at=AT, clip=0.1, entry=D))), "once each"),
    "a negative bound on a coordinate": (
        release(asked(wire.CoordinateDerivative(state=1, at=AT, moves=[], entry=0, bound=-0.1))), "threshold"),
    "many models": (
        two(*[release(asked(wire.CoordinateDerivative(state=i, at=AT, moves=[], entry=0, bound=0.1)), z=1e3)
              for i in range(20)]), "more than 16"),
    "a batch of models": (release(asked(wire.GradientSum(at=wire.numbers(np.zeros((7, D)))))), "is asked for"),
    "a model of another size": (
        release(asked(wire.GradientSum(at=wire.numbers(np.zeros((1, D + 1)))))), "is asked for"),
    "a model that is no number": (release(asked(wire.GradientSum(at=wire.numbers(np.full((1, D), NAN))))), ""),
    "an offset of more rows": (release(asked(offset=wire.numbers(np.zeros((9, D))))), "another shape"),
    "vertices of no ball": (two(planned(CHOICE), choose(score=wire.VertexScore(radius=NAN, l1=0.0))), "radius"),
    "an eigenvalue of a sample": (
        two(planned(SAMPLE), drawn(),
            release(wire.RequestedValue(recipe=wire.LeastEigenvalue(
                of=wire.HessianSum(at=AT, rows=1), unit=STEP)))), "of all rows"),
    "a curvature nobody has": (release(asked(wire.HessianSum(at=AT, curvature="mine"))), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_before_a_row_is_read(name):
    asks, told = ATTACKS[name]
    found = session(requests(*(asks if isinstance(asks, list) else [asks])))
    malformed = "malformed" in str(found.ended)  # a number that is out of its range in the frame
    assert malformed or isinstance(found.ended, serving.RefusedRequest), (found.ended, found.released)
    assert told in str(found.ended)
    assert found.W is None
    assert len(found.reads) == len(found.released)  # what was refused read nothing


def test_a_plan_beyond_the_budget_has_no_release():
    found = session(requests(planned(("gradient", Gaussian(1.0), 30)), release(z=1.0)))
    assert "more than the" in str(found.ended)
    assert not found.released


def test_a_term_of_a_loss_without_a_proof():
    plan = planned(("term", CONVEX, 1), ("output", Gaussian(40.0), 1))
    term = wire.TermRequest(event=plain(CONVEX), label="term")
    for loss in ("sigmoid", "phase", "squared"):
        found = session(requests(plan, term, minimiser(True)), problem(loss))
        assert isinstance(found.ended, PrivacyError)
        assert not found.released
    logistic = planned(("term", TERM, 1), ("output", Gaussian(40.0), 1))  # a proof for logistic loss alone
    found = session(requests(logistic, TERM_ASKED, minimiser(True)), problem("pseudo-huber"))
    assert "proof" in str(found.ended)
    assert not found.released


@pytest.mark.parametrize(("on", "steady"), [({}, False), ({"l1": 0.1}, True)])
def test_a_minimiser_that_takes_time_by_the_data(on, steady):
    rows = problem(**on)
    rows.steady = steady
    found = session(requests(minimiser(False)), rows)
    assert "takes time that depends on the data" in str(found.ended)
    assert not found.reads


@pytest.mark.parametrize("event", [
    LogisticPerturbation(30.0, 0.5, Relation.ADD_REMOVE), ObjectivePerturbation(30.0, 1e-6, 1e-6),
], ids=["of the other relation", "of too small a Jacobian"])  # fmt: skip
def test_a_term(event):
    plan = planned(("term", event, 1), ("output", Gaussian(40.0), 1))
    found = session(requests(plan, wire.TermRequest(event=plain(event), label="term"), minimiser(True)))
    assert isinstance(found.ended, PrivacyError)
    assert not found.released


def test_an_eigenvalue_of_a_loss_that_is_not_convex():
    gram = wire.HessianSum(at=AT)
    value = wire.RequestedValue(recipe=wire.LeastEigenvalue(of=gram, unit=2.0**-32))
    found = session(requests(release(value, sensitivity=1.0)), problem("sigmoid"))
    assert "positive semidefinite" in str(found.ended)
    assert not found.reads


def test_an_eigenvalue_after_a_term_is_not_seen_through_it():
    gram = wire.HessianSum(at=AT)
    unit = 2.0**-32 * 0.25 * 2.0**-8
    value = wire.RequestedValue(recipe=wire.LeastEigenvalue(of=gram, unit=unit))
    plan = planned(("term", TERM, 1), ("output", Gaussian(40.0), 1))
    found = session(requests(plan, TERM_ASKED, release(value, sensitivity=1e-9, z=40.0, label="output")))
    assert "it moves by up to" in str(found.ended)
    assert not found.reads


def test_a_poisson_sample_of_hessians_at_the_price_of_one_over_root_two():
    """Under replace-one a row of two may be in the sample alone: the sensitivity is twice one row's part."""
    from dpbench.privacy.ledger import PoissonReplaced

    event = PoissonReplaced(0.1, Gaussian(40.0))
    value = wire.RequestedValue(recipe=wire.HessianSum(at=AT, rows=1), unit=2.0**-32 * 0.25 * 2.0**-8)
    ask = release(value, noise="symmetric", sensitivity=0.25 / 2**0.5 / 2, z=40.0, label="sample")
    draw = wire.DrawRequest(sampler="PoissonReplacedSampler", size=0.1, label="sample")
    found = session(requests(planned(("sample", event, 1)), draw, ask))
    assert isinstance(found.ended, PrivacyError)
    assert not found.reads


def test_labels_of_many_classes_are_not_released_with_the_noise_of_one():
    """The same sum over ten outputs would move by √10 times what is charged."""
    on = ExactProblem(np.eye(4, 1), np.full(4, 9.0), loss="softmax-10", row_bound=1.0, steady=True)
    found = session(requests(release(asked(wire.LabelMoments(bound=9.0), unit=STEP), sensitivity=18.0)), on)
    assert isinstance(found.ended, PrivacyError)
    assert not found.reads


def test_a_loss_that_is_not_built_in_is_not_computed():
    class Mine(Logistic):
        name = "mine"

    on = problem()
    on.loss = Mine()
    with pytest.raises(UserError, match="dpbench's own alone"):
        session(requests(release()), on)


def test_another_plan_than_that_which_was_checked():
    from dpbench import algorithms
    from dpbench.privacy.exact_release import SeededMechanisms
    from dpbench.run.bind import budget_of
    from tests.serving.sessions import against

    budget = budget_of(algorithms.get("dp-gd"), N, 1.0, 1e-5, Relation.REPLACE_ONE, "tight")
    mechanisms = SeededMechanisms(["k"], budget)
    mechanisms.plan("gradient", Gaussian(20.0), 1)
    found = against(serving.MechanismServer(problem(), mechanisms), requests(planned(MANY)))
    assert "another plan" in str(found.ended)


@pytest.mark.parametrize("frame", [
    b"", b"\x00\x00\x00\x05ab", b"\xff\xff\xff\xff", b"\x00\x00\x00\x03\x93\x01\x02\x03", b"\x00\x00\x00\x01\xc0",
    b"\x00\x00\x00\x04\xdd\xff\xff\xff\xff"[:8],
])  # fmt: skip
def test_a_malformed_or_cut_frame_ends_the_run_in_one_line(frame):
    def play(channel):
        os.write(channel.outgoing.fileno(), frame)

    found = session(play)
    assert isinstance(found.ended, PrivacyError)
    assert "\n" not in str(found.ended)
    assert found.W is None
    assert not found.reads


@pytest.mark.parametrize("change", [
    {"extra": 1}, {"multiplier": "2"}, {"value": None}, {"label": "a" * 100}, {"sensitivity": [1.0]},
    {"kind": "Exact"}, {"kind": "ReleaseRequest", "count": 0},
])  # fmt: skip
def test_a_request_has_exactly_the_fields_of_its_kind(change):
    found = msgspec.to_builtins(release(), builtin_types=(bytes,)) | change

    def play(channel):
        sent = msgspec.msgpack.encode(found)
        channel.outgoing.send_bytes(sent)

    assert "malformed" in str(session(play).ended)


# Of Laplace releases the accountants would compose so many for hours, outside of the method's process and its limits.
TOO_MANY = msgspec.to_builtins(planned(("gradient", Gaussian(1e9), 1)), builtin_types=(bytes,))
TOO_MANY["entries"][0]["count"] = 10**8


@pytest.mark.parametrize("request_", [
    planned(("gradient", Gaussian(1.0), -30)), planned(("gradient", Gaussian(1.0), 0)), TOO_MANY,
    release(asked(wire.GradientSum(at=AT, rows=[N - 1, -1]))),
    release(asked(wire.ClippedGradient(at=AT, clip=0.1, columns=[0, -D]))),
    wire.CorrelateRequest(steps=10**6, separation=4, bands=2, sensitivity=2.0, multiplier=1.0, label="rounds"),
    wire.CorrelateRequest(steps=4, separation=0, bands=1, sensitivity=2.0, multiplier=1.0, label="rounds"),
    release(asked(wire.GradientSum(at=wire.SentArray(shape=[1, D, 1, 1], f8=bytes(8 * D))))),
], ids=["-30 releases", "no release", "a billion releases", "a row twice, once from behind",
        "a column twice, once from behind", "a million rounds", "no rounds apart", "four dimensions"])  # fmt: skip
def test_numbers_are_of_the_ranges_that_the_protocol_has(request_):
    def play(channel):
        sent = msgspec.msgpack.encode(request_)
        channel.outgoing.send_bytes(sent)

    found = session(play)
    assert "malformed" in str(found.ended)
    assert not found.reads


def test_a_refusal_ends_the_run_though_the_method_asks_on():
    def play(channel):
        for one in (release(sensitivity=0.0), release(), wire.DoneRequest(W=AT)):
            channel.send(one)
        channel.receive(wire.Reply | wire.Refused)

    found = session(play)
    assert isinstance(found.ended, serving.RefusedRequest)
    assert not found.released
    assert found.W is None


def test_rows_and_a_draw_cannot_be_named_in_one_request():
    found = msgspec.to_builtins(release(), builtin_types=(bytes,))
    found["value"]["recipe"] |= {"rows": [0], "token": 1}

    def play(channel):
        sent = msgspec.msgpack.encode(found)
        channel.outgoing.send_bytes(sent)

    assert "malformed" in str(session(play).ended)


def test_a_frame_that_is_too_large_is_not_read():
    def play(channel):
        os.write(channel.outgoing.fileno(), (wire.FRAME + 1).to_bytes(4, "big"))
        channel.outgoing.close()  # whoever waits for the frame is not kept waiting
        channel.incoming.poll(10)

    assert "at most" in str(session(play).ended)


def test_a_plan_of_many_kinds_is_refused_at_once():
    kinds = [("gradient", at_rho(0.001 * (i + 1)), 1) for i in range(17)]
    begin = time.monotonic()
    assert "malformed" in str(session(requests(planned(*kinds))).ended)
    assert time.monotonic() - begin < 2


def test_time_and_requests_have_an_end(monkeypatch):
    found = session(requests(release()), seconds=-1.0)
    assert "more time" in str(found.ended)
    assert not found.reads
    monkeypatch.setattr(serving, "BYTES", 100)
    found = session(requests(*[release(z=1e3)] * 9))
    assert "more requests" in str(found.ended)
    assert len(found.released) == 1
    monkeypatch.undo()
    monkeypatch.setattr(wire, "MOST", 3)
    found = session(requests(*[release(z=1e3)] * 9))
    assert "more requests" in str(found.ended)
    assert len(found.released) == 3


def test_the_ledger_has_a_release_before_a_row_is_read():
    found = session(requests(*[release(z=100.0)] * 3))
    assert found.reads == [1] * 3  # the entry of these three, from the first on
    assert found.server.books.of(0)[0].count == 3


def test_why_a_request_failed_on_the_rows_is_not_told(monkeypatch):
    def broken(self):
        raise ValueError("row 17 has label -1")

    from dpbench.privacy.exact_sums import Deferred

    class Broken(Deferred):
        integers = property(broken)

    on = problem()
    whole = on._whole
    monkeypatch.setattr(on, "_whole", lambda shape, *a: Broken(shape, lambda: whole(shape, *a).integers), raising=False)
    found = session(requests(release()), on)
    assert "its ε is spent" in str(found.ended)
    assert "17" not in str(found.ended)
    assert found.server.books.of(0)  # it stays charged


def test_iterates_of_another_shape_are_none():
    def play(channel):
        channel.send(wire.DoneRequest(W=wire.numbers(np.zeros((2, D)))))

    found = session(lambda channel: requests(release(), done=False)(channel) or play(channel))
    assert found.W is None
    assert "iterates of shape (2, 3)" in str(found.ended)


def test_a_run_that_released_nothing_has_failed():
    assert "nothing was released" in str(session(requests()).ended)


@pytest.mark.parametrize(("told", "kind"), [
    ("no ε", UserError), ("a\x1b[2J", PrivacyError), ("a\nb", PrivacyError), ("a\u202eb", PrivacyError),
    ("a" * 401, PrivacyError),
])  # fmt: skip
def test_a_method_that_fails_is_told_in_its_own_words_on_one_line(told, kind):
    found = session(lambda channel: channel.send(wire.FailedRequest(error=told)))
    assert isinstance(found.ended, kind)
    assert str(found.ended).isprintable()
    assert (str(found.ended) == told) == (kind is UserError)


def test_samples_under_add_remove():
    event = Poisson(0.1, Gaussian(40.0))
    draw = wire.DrawRequest(sampler="PoissonSampler", size=0.1, label="sample")
    value = asked(wire.GradientSum(at=AT, rows=1), unit=STEP / 4)
    ask = release(value, sensitivity=0.25, z=40.0, label="sample")
    assert session(requests(planned(("sample", event, 1)), draw, ask), relation="add-remove").ended is None
    found = session(requests(planned(("sample", event, 1)), draw, msgspec.structs.replace(ask, sensitivity=0.2)),
                    relation="add-remove")  # fmt: skip
    assert isinstance(found.ended, PrivacyError)
    assert not found.reads
