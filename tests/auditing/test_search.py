"""Methods that are wrong on some neighbours alone: the pair that is thought out passes them, a search fails them."""

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm, BaseSettings, Disclosure, Needs
from dpbench.auditing.neighbours import declared
from dpbench.auditing.runs import audit
from dpbench.auditing.search import candidates, with_best_coins
from dpbench.auditing.worlds import SHORT, Setup, moved_in_each
from dpbench.privacy.ledger import Relation


class Moment(Algorithm):
    """Releases a sum over the rows, wrong or right in the constant alone, and steps along it."""

    name, needs, relation = "moment", Needs(losses=("logistic",)), Relation.REPLACE_ONE
    discloses = (Disclosure("moment", "a moment of the rows", replace_one="in the class"),)
    sensitivity = 2.0

    class Settings(BaseSettings):
        T: int = 2

    def value(self, problem, W):
        return np.tile(problem.X.sum(axis=0), (len(W), 1))

    def run(self, problem, W, mechanisms, settings, trace):
        for _ in range(settings.T):
            W = (
                W
                - mechanisms.gaussian(
                    self.value(problem, W),
                    sensitivity=self.sensitivity,
                    rho=mechanisms.budget.rho / settings.T,
                    label="moment",
                ).reshape(len(W), -1)[:, : W.shape[1]]
            )
        return W


class Mean(Moment):
    """Replaced by its opposite, a row moves the sum by 2."""


class MeanButForOppositeRows(Mean):
    sensitivity = 1.9


class Gram(Moment):
    """Replaced by one across it, a row moves XᵀX by √2 in Frobenius norm; all others by less, its opposite by 0."""

    sensitivity = np.sqrt(2)

    def value(self, problem, W):
        return np.tile((problem.X.T @ problem.X).ravel(), (len(W), 1))


class GramButForRowsAcross(Gram):
    sensitivity = 1.38


class SignedGram(Moment):
    """Σ y xxᵀ moves by 2 where the label alone differs, which is the pair that is thought out."""

    def value(self, problem, W):
        return np.tile(((problem.X * problem.y[:, None]).T @ problem.X).ravel(), (len(W), 1))


class LengthOfTheSum(Moment):
    """|Σ yx| moves by 2 if a row that points along the others is replaced by one against them, and by 0 if alone."""

    def value(self, problem, W):
        return np.full(len(W), np.linalg.norm(problem.X.T @ problem.y))


class LengthButForRowsAlongTheOthers(LengthOfTheSum):
    sensitivity = 1.9


WRONG = [MeanButForOppositeRows, GramButForRowsAcross, LengthButForRowsAlongTheOthers]


@pytest.fixture
def audited(monkeypatch):
    def run(cls, **options):
        monkeypatch.setattr("dpbench.auditing.runs.algorithms.resolve", lambda name: (cls(), {}))
        return audit("moment", 4.0, **options)

    return run


@pytest.mark.thorough_for("GramButForRowsAcross")  # that pair is found in the Gram matrix of two tests below
@pytest.mark.parametrize("cls", WRONG)
def test_what_is_wrong_on_some_neighbours_passes_the_pair_that_is_thought_out_and_not_the_search(audited, cls):
    assert audited(cls, search=False, inspect=False, near=False).passed
    done = audited(cls, tests=False)
    assert not done.passed
    assert "a neighbour moves it by 1.0" in done.defect


@pytest.mark.thorough
@pytest.mark.parametrize("cls", [Mean, Gram, SignedGram, LengthOfTheSum])
def test_what_is_right_passes_on_the_pair_that_was_found(audited, cls):
    done = audited(cls, near=False)
    assert done.passed, done.defect
    assert done.moved["moment"] == pytest.approx(1, abs=1e-6)
    assert done.pair or cls is SignedGram
    hand = audited(cls, near=False, search=False, inspect=False)
    assert done.verdicts["whole run"].bound >= hand.verdicts["whole run"].bound


@pytest.mark.thorough
def test_it_says_which_rows_it_found(audited):
    assert "or its opposite" in audited(Mean, tests=False, inspect=False).pair
    assert "across it" in audited(Gram, tests=False, inspect=False).pair


@pytest.mark.thorough
def test_the_same_pair_is_found_again(audited):
    found = audited(Gram, near=False, inspect=False)
    assert found.pair
    assert found == audited(Gram, near=False, inspect=False)


@pytest.mark.thorough_for("dp-gd", "dp-cd", "dp-nag", "dp-newton", "dp-sgd", "o2nc-tree", "opt-ls")
@pytest.mark.parametrize("name", ["dp-gd", "dp-newton", "dp-cd", "dp-nag", "adassp", "o2nc-tree", "dp-sgd", "opt-ls"])
def test_no_pair_moves_a_built_in_method_further_than_it_says(name):
    """Nor is a pair a leak: where something counts as public, it is equal on both."""
    done = audit(name, 4.0, tests=False)
    assert done.passed, done.defect


def test_public_randomness_is_fixed_where_it_tells_most():
    """Half as far in the median where every run draws its own; the noise is drawn in every run."""
    method = algorithms.get("o2nc-tree")
    (case,) = method.canaries
    setup = Setup(method, case, {}, 4.0)
    found = with_best_coins(setup, 0)
    fixed, drawn = (moved_in_each(*one.compared(one.pair, 1, 200)) for one in (found, setup))
    assert np.median(fixed) > 0.95
    assert np.median(drawn) < 0.6
    run = found.recorder(3, 0)
    assert len({run.coins[i].random() for i in range(3)}) == 1
    first, *others = run.single_pass(64, "oracle").take(64)
    assert all((first == other).all() for other in others)
    assert len(set(run.gaussian(np.zeros(3), sensitivity=1.0, rho=1.0, label="oracle"))) == 3
    plain = Setup(method, method.audit_case, {}, 4.0)
    assert with_best_coins(plain, 0) is plain


# Of what is said of a pair: whether it holds of both rows (x, z), their labels (y, u) and another row o of length r.
SAID = {
    "on an axis": lambda x, z, y, u, o, r: np.count_nonzero(x) == 1,
    "at a corner": lambda x, z, y, u, o, r: np.ptp(np.abs(x)) < 1e-9 * r,
    "the others pull nowhere": lambda x, z, y, u, o, r: not o.any(),
    "the others along it": lambda x, z, y, u, o, r: (o == x).all(),
    "against it, a row at": lambda x, z, y, u, o, r: (o == -x).all(),
    "across it, a row": lambda x, z, y, u, o, r: abs(o @ x) < 1e-9 * r**2 < o @ o,
    "the others short": lambda x, z, y, u, o, r: SHORT * r / 2 < np.linalg.norm(o) <= SHORT * r * (1 + 1e-9),
    "label +1 or not": lambda x, z, y, u, o, r: y > 0 and not z.any(),
    "label -1 or not": lambda x, z, y, u, o, r: y < 0 and not z.any(),
    "with either label": lambda x, z, y, u, o, r: (x == z).all() and u in (-y, SHORT * y),
    "or its opposite": lambda x, z, y, u, o, r: (x == -z).all() and u == y,
    "or one that pulls nowhere": lambda x, z, y, u, o, r: (x == z).all() and u == 0 != y,
    "or one across it": lambda x, z, y, u, o, r: abs(x @ z) < 1e-9 * r**2 < z @ z and abs(u) == y,
    "across it with the other label": lambda x, z, y, u, o, r: u == -y,
    "on another axis": lambda x, z, y, u, o, r: np.count_nonzero(z) == 1 and x @ z == 0 and u == y,
    "there or not": lambda x, z, y, u, o, r: not z.any() and u == 0 != y,
}


@pytest.mark.parametrize(
    ("name", "pairs"),  # of each slope of the loss, at five places; at the rungs of one row; beside others
    [
        ("dp-gd", 4 * 5 * 2 + 15 + 3),
        ("dp-nag", 5 * 2 + 3 * 5 * 3 + 15 + 3),  # columns are public: the sign of a row differs, or its label
        ("opt", 5 * 4 + 3 * 5 * 5 + 15 + 3 * 2),
        ("adassp", 5 * 2 + 15 + 1),  # without a bound on gradients the loss is as it is
        ("dp-cd", 5 * 2 + 15 + 1),
        ("dp-sgd-1", 5 * 4 + 15 + 2),
    ],
)
def test_pairs_differ_in_one_row_within_the_bound_as_their_words_say(name, pairs):
    method, _ = algorithms.resolve(name)
    found = {one.words: one for one in candidates(method, method.audit_case, method.relation)}
    assert len(found) == pairs
    most = declared(method, method.audit_case).loss.smoothness
    for words, (_, (first, second, _, _), far, many) in found.items():
        differs = (first.X != second.X).any(axis=1) | (first.y != second.y)
        assert differs[0], words
        assert not differs[1:].any(), words
        method.needs.check(first, name)
        method.needs.check(second, name)
        (x, *_, other), z = first.X, second.X[0]
        for part in [part for part in SAID if part in words]:
            assert SAID[part](x, z, first.y[0], second.y[0], other, np.linalg.norm(x)), (words, part)
        curved = words.startswith(("most curved", "curved for one label"))
        assert (far, many) == (words.startswith("the loss"), words.startswith("the others")), words
        assert getattr(first.loss, "curvature", 0.0) == (most if curved else 0.0), words  # as declared, and no more
        assert z.any() == (method.relation is Relation.REPLACE_ONE), words
        assert (first.y[-1] < 0) == ("short, against it" in words)
        assert second.y[0] in (0, -first.y[0]) or not words.startswith("a row at")
        if words.endswith("of the bound") and not method.counts_public:
            rung = np.linalg.norm(x) / next(iter(found.values())).pair.first.row_bound
            assert f"a row at {rung:.2g} of the bound" == words
