"""What neighbours' releases differ by is at most what the ledger says, or nothing is released.

Each test is a mistake or a cheat that a method could make, on two tables that differ in a row: either it is refused, or
the exact values of the two are as near as the noise multiplier says. Some have an honest twin, which is released.
"""

import itertools
import math

import numpy as np
import pytest

from dpbench.algorithms.objective_perturbation import minimise
from dpbench.errors import PrivacyError
from dpbench.privacy.budget import Budget
from dpbench.privacy.exact_release import ExactMechanisms, SeededMechanisms, SeededReleases
from dpbench.privacy.exact_sums import PREMISES, RowSensitivity, Sum
from dpbench.privacy.ledger import (
    ConvexPerturbation,
    LogisticPerturbation,
    ObjectivePerturbation,
    PoissonReplaced,
    RadialPerturbation,
    Relation,
)
from dpbench.privacy.mechanisms import Mechanisms, Score
from dpbench.problems.exact import ExactProblem

N, D, RIDGE, GAMMA = 40, 2, 0.5, 1e-9
ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
LOGISTIC = LogisticPerturbation(2.0, 0.25 / (N * RIDGE))


class Taped(SeededReleases):
    """Keeps the exact value and the noise's scale of everything that is released."""

    def publish(self, kind, label, event, value, scale, release, group=None, mix=()):
        self.tape = [*getattr(self, "tape", []), (np.ravel(value), float(scale))]
        return super().publish(kind, label, event, value, scale, release, group, mix)


class TapedMechanisms(SeededMechanisms):
    seam = Taped


def worlds(**declared):
    """The same rows, of which the first is replaced by its opposite with the other label."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.sign(rng.standard_normal(N))
    X[0], y[0] = np.eye(D)[0], 1.0
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = np.roll(X[0], 1), -y[0]
    return [ExactProblem(A, b, **({"row_bound": 1.0} | declared)) for A, b in ((X, y), (other, labels))]


def mechanisms(relation=REPLACE, declared=REPLACE, accounting="tight", delta=1e-6):
    return TapedMechanisms(["key"], Budget(1.0, delta, relation, accounting), declared=declared)


def told(run, norm=2, **how):
    """How far the last releases of two worlds are apart in units of the noise; None where `run` is refused.

    The same noise in both, so a linear term is the same, as it is given what is charged for it.
    """
    values = []
    for problem in worlds(**how.pop("declared_of", {})):
        m = mechanisms(**how)
        try:
            run(problem, m)
        except PrivacyError:
            return None
        values.append(m.releases.tape[-1])
    (one, scale), (other, second) = values
    assert scale == second
    return float(np.linalg.norm(one - other, norm)) / scale


# A linear term belongs to the one minimiser that was solved with it


def drawn(m, event=LOGISTIC, sensitivity=2 / N):
    return m.linear_term(D, sensitivity=sensitivity, event=event, label="objective")


def nearly(problem, b=None, ridge=RIDGE):
    return problem.approximate_minimiser(
        minimise, np.zeros((1, D)), np.zeros((1, D)) if b is None else b, ridge, GAMMA
    )[0]


def released(m, near, sensitivity=2 * GAMMA / RIDGE, z=3.9):
    return m.gaussian(near, sensitivity=sensitivity, noise_multiplier=z, label="output")


def test_with_the_term_that_was_drawn_a_minimiser_is_released():
    def run(problem, m):
        released(m, nearly(problem, drawn(m)))

    for problem in worlds():
        run(problem, mechanisms())
    assert told(run) > 1e3  # given the term alone; the term's own charge covers it: see test_exact


def test_a_term_hides_no_minimiser_that_was_solved_without_it():
    def cheat(problem, m):
        drawn(m)
        released(m, nearly(problem))

    def honest(problem, m):
        drawn(m)
        released(m, nearly(problem), sensitivity=2 / N / RIDGE)

    assert told(cheat) is None
    assert 0.01 < told(honest) <= 1 / 3.9


def test_a_term_hides_no_eigenvalue():
    def run(problem, m, sensitivity):
        gram = problem.second_moment()
        drawn(m, ConvexPerturbation(2.0, 1 / (N * RIDGE)))
        m.gaussian(problem.least_eigenvalue(gram), sensitivity=sensitivity, noise_multiplier=3.9, label="eigenvalue")

    how = {"declared_of": {"loss": "pseudo-huber"}}
    assert told(lambda problem, m: run(problem, m, 1e-6), **how) is None
    assert told(lambda problem, m: run(problem, m, 1 / N), **how) <= 1 / 3.9


@pytest.mark.parametrize("second", ["the same objective", "another ridge", "another start of the same"])
def test_a_term_is_used_once(second):
    """Given the first minimiser b differs between neighbours, so that a second one tells of that."""

    def run(problem, m):
        b = drawn(m)
        near = nearly(problem, b)
        released(m, near)
        again = {"the same objective": near, "another ridge": None}.get(second) or nearly(
            problem, b, RIDGE if second == "another start of the same" else 2 * RIDGE
        )
        released(m, again, sensitivity=10.0)

    assert told(run) is None


@pytest.mark.parametrize("change", ["half", "shifted", "an earlier one"])
def test_a_term_that_was_changed_is_no_term(change):
    def run(problem, m):
        first, b = drawn(m), drawn(m)
        released(m, nearly(problem, {"half": b / 2, "shifted": b + 0.1, "an earlier one": first - b}[change]))

    assert told(run) is None


def logistic(m, z=2.0, curvature=LOGISTIC.curvature, relation=REPLACE, sensitivity=2 / N):
    return drawn(m, LogisticPerturbation(z, curvature, relation), sensitivity)


def radial(m, curvature=LOGISTIC.curvature, proof=True, loss_curvature=1.0):
    event = RadialPerturbation(2.0, curvature * loss_curvature, REPLACE, proof)
    return m.linear_term(D, sensitivity=2 / N, event=event, label="objective")


def plain(m, jacobian):
    return m.linear_term(D, sensitivity=2 / N, event=ObjectivePerturbation(2.0, jacobian, 1e-7), label="objective")


PURE = {"accounting": "pure", "delta": 0.0}
HUBER = {"declared_of": {"loss": "pseudo-huber"}}


@pytest.mark.parametrize(
    ("term", "how", "covered"),
    [
        (logistic, {}, True),
        (lambda m: logistic(m, curvature=LOGISTIC.curvature / 2), {}, False),
        (lambda m: logistic(m, curvature=LOGISTIC.curvature * 2), {}, True),
        (lambda m: logistic(m, relation=ADD), {}, False),
        (lambda m: logistic(m, sensitivity=1 / N), {}, False),
        (lambda m: logistic(m, curvature=1 / (N * RIDGE)), HUBER, False),
        (lambda m: drawn(m, ConvexPerturbation(2.0, 1 / (N * RIDGE))), HUBER, True),
        (lambda m: drawn(m, ConvexPerturbation(2.0, 0.5 / (N * RIDGE))), HUBER, False),
        (radial, PURE, True),
        (lambda m: radial(m, curvature=LOGISTIC.curvature / 2), PURE, False),
        (lambda m: radial(m, loss_curvature=4.0), PURE | HUBER, False),
        (lambda m: radial(m, proof=False, loss_curvature=4.0), PURE | HUBER, True),
        (lambda m: plain(m, 2 * LOGISTIC.curvature), {}, True),
        (lambda m: plain(m, LOGISTIC.curvature), {}, False),
    ],
)
def test_each_event_holds_what_its_proof_presumes_of_the_objective(term, how, covered):
    def run(problem, m):
        near = nearly(problem, term(m))
        if how.get("accounting") == "pure":
            m.radial(near, sensitivity=2 * GAMMA / RIDGE, epsilon=0.5, label="output")
        else:
            released(m, near)

    assert (told(run, **how) is not None) is covered


def test_every_event_that_a_term_may_have_has_its_premises():
    assert set(PREMISES) == {LogisticPerturbation, ConvexPerturbation, RadialPerturbation, ObjectivePerturbation}


@pytest.mark.parametrize("loss", ["sigmoid", "squared"])
def test_no_minimiser_of_a_loss_without_its_proof(loss):
    def run(problem, m):
        released(m, nearly(problem), sensitivity=1e6)

    assert told(run, declared_of={"loss": loss}) is None
    assert told(run) is not None


def test_a_term_that_no_mechanism_drew_is_none():
    """Drawn past the ledger, it is nothing that was charged."""

    def run(problem, m):
        b = m.releases.hidden_noise((1, D), np.asarray(2.0 / N), _normal(), "objective perturbation")
        released(m, nearly(problem, b))

    assert told(run) is None


def _normal():
    from dpbench.privacy.noise import NORMAL

    return NORMAL


# Each distance in its own norm


def test_laplace_noise_needs_a_distance_in_sizes_which_no_minimiser_has():
    def run(problem, m, add):
        add(m, nearly(problem), 2 / N / RIDGE)

    def laplace(m, near, sensitivity):
        m.laplace(near, sensitivity=sensitivity, epsilon=1.0, label="output")

    def radial_noise(m, near, sensitivity):
        m.radial(near, sensitivity=sensitivity, epsilon=1.0, label="output")

    assert told(lambda p, m: run(p, m, laplace), norm=1, **PURE) is None
    assert told(lambda p, m: run(p, m, radial_noise), **PURE) <= 1.0


def test_laplace_noise_on_one_entry_is_as_good_as_any():
    def run(problem, m):
        value = problem.least_eigenvalue(problem.second_moment())
        m.laplace(value, sensitivity=1 / N, epsilon=1.0, label="eigenvalue")

    assert told(run, **PURE) <= 1.0


def test_no_minimiser_is_released_as_if_on_a_sample():
    def run(problem, m):
        rows = m.without_replacement(N, 2, "output")
        rows.draw()
        rows.gaussian(nearly(problem), sensitivity=2 / N / RIDGE, noise_multiplier=1.0)

    assert told(run) is None


# One charge, one choice


@pytest.mark.parametrize("choose", ["noisy_argmax", "exponential"])
@pytest.mark.parametrize("kind", ["bytes", "float"])
def test_one_charge_is_for_one_choice(kind, choose):
    budget = Budget(1.0, 1e-6, REPLACE, "tight")
    m = (ExactMechanisms if kind == "bytes" else Mechanisms)(["key"], budget)
    vector = np.zeros((1, 4), dtype=np.int64)
    moved = RowSensitivity(1, 4, 1)
    many = Score(lambda values: np.concatenate([values] * 3), lambda sizes: 0.0)
    table = Score(lambda values: np.stack([values] * 3, axis=1), lambda sizes: 0.0)
    made = (lambda a: Sum(a, 1.0, moved)) if kind == "bytes" else (lambda a: a.astype(float))
    cheats = [(vector, {"score": many}), (vector, {"score": table}), (np.zeros((1, 3, 3), dtype=np.int64), {})]
    for values, how in cheats:
        with pytest.raises(PrivacyError, match=r"a choice is of scores \(1, p\)"):
            getattr(m, choose)(made(values), sensitivity=2.0, epsilon=1.0, label="choice", **how)
    assert len(getattr(m, choose)(made(vector), sensitivity=2.0, epsilon=1.0, label="choice")) == 1


# Bounds


@pytest.mark.parametrize("bound", [-1.0, -1e-3, 0.0, math.nan, math.inf, -math.inf])
def test_bounds_that_are_not_positive_are_refused(bound):
    """With a negative one a row's part of a sum would have a negative size, and Laplace noise next to no scale."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (N, D)) / D, rng.standard_normal(N)
    problem = ExactProblem(X, y, row_bound=1.0, row_bound_norm="l1", loss="squared")
    for ask in (lambda: problem.bounded_gradient(np.zeros((1, D)), bound), lambda: problem.label_moments(bound)):
        with pytest.raises(PrivacyError):
            ask()


@pytest.mark.parametrize("clip", [-1.0, math.nan])
def test_thresholds_of_coordinates_too(clip):
    problem = worlds()[0]
    with pytest.raises(PrivacyError):
        problem.clipped_gradient(np.zeros((1, D)), np.array([clip]), even=True)
    with pytest.raises(PrivacyError):
        problem.coordinate_state(np.zeros((1, D))).derivative(0, np.array([clip]))


@pytest.mark.parametrize("wrong", [{"sensitivity": math.nan}, {"sensitivity": math.inf}, {"sensitivity": -1.0}])
def test_a_sensitivity_that_is_no_number_is_refused(wrong):
    for value in (worlds()[0].gradient_sum(np.zeros((1, D))), nearly(worlds()[0])):
        with pytest.raises(PrivacyError, match="sensitivity"):
            mechanisms().gaussian(value, noise_multiplier=1.0, label="g", **wrong)


def test_a_unit_at_the_end_of_the_floats_is_refused():
    """There the product with the noise's scale would lose digits, and with them noise."""
    value = worlds()[0].gradient_sum(np.zeros((1, D)))
    for factor in (5e-324, 1e-300, 1e300):
        with pytest.raises(PrivacyError, match=r"within 2\*\*900"):
            value * factor


# Eigenvalues


def test_the_least_eigenvalue_of_curvature_of_both_signs_is_refused():
    """A row replaced may move it by twice its own part, against the once that is proved."""

    def run(problem, m):
        value = problem.least_eigenvalue(problem.hessian_sum(np.zeros(D)))
        m.gaussian(value, sensitivity=problem.smoothness, noise_multiplier=1.0, label="eigenvalue")

    assert told(run, declared_of={"loss": "sigmoid"}) is None
    assert told(run) <= 1.0


# One of two rows alone in a sample


@pytest.mark.parametrize("part", ["Hessian", "gradient"])
def test_on_a_poisson_sample_under_replace_one_a_row_alone_moves_a_sum_by_half_the_sensitivity(part):
    """Two positive semidefinite rows are √2 apart, and one of them is a whole row from none."""

    def run(problem, m, share):
        sampler = m.poisson(N, 0.1, "g")
        sampler.rule = lambda _: np.array([0])  # the row that differs; none of it on the sample of the other world
        rows = sampler.draw()[0]
        if part == "gradient":
            one, value = problem.lipschitz, problem.gradient_sum(np.zeros(D), rows)
        else:
            one, value = problem.smoothness, problem.hessian_sum(np.zeros(D), rows)
        sampler.gaussian(value, sensitivity=share * one, noise_multiplier=1.0, symmetric=part == "Hessian")

    how = {"declared": ADD}
    assert told(lambda problem, m: run(problem, m, 1 / math.sqrt(2)), **how) is None
    m = mechanisms(**how)
    run(worlds()[0], m, 1.0)
    (entry,) = m.ledger.of(0)
    assert isinstance(entry.release, PoissonReplaced)
    value, scale = m.releases.tape[-1]
    assert np.linalg.norm(value) / scale <= 0.5  # against a sample without the row


def test_every_pair_of_worlds_has_one_row_that_differs():
    for one, other in itertools.pairwise(worlds()):
        assert ((one.X != other.X).any(axis=1) | (one.y != other.y)).sum() == 1
