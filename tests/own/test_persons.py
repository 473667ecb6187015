"""Persons as the unit: all rows of one replaced move no release further than is declared, and say nothing else."""

import itertools
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dpbench
from dpbench import PrivateClassifier, PrivateRegressor, algorithms
from dpbench.errors import DataError, PrivacyError, UserError
from dpbench.own import row_bound
from dpbench.own import window as windows
from dpbench.own.inputs import persons_of
from dpbench.own.registry import said
from dpbench.own.row_bound import centred_mean
from dpbench.privacy.exact_release import ExactReleases
from dpbench.privacy.ledger import Relation
from dpbench.problems import Problem, losses, persons
from dpbench.problems.persons import CountedOnce, OfPersons, Persons, PersonsProblem
from dpbench.schema import Column, Schema, Target, cells, load, read_table

SIZES = [1, 2, 5, 100]
LOSSES, SO_SET = ["logistic", "squared", "softmax-3"], {"dp-gcd-published"}  # the latter computes on with its noise
METHODS = {name: algorithms.resolve(name)[0] for name in algorithms.names(plugins=False)}
TAKEN = {
    loss: [name for name, one in METHODS.items() if one.persons and not one.needs.missing_for(losses.get(loss))]
    for loss in LOSSES
}
TAKEN = {loss: [name for name in names if name not in SO_SET] for loss, names in TAKEN.items()}
SETTINGS = {name: {"L": 500.0} for name, one in METHODS.items() if "L" in one.Settings.__struct_fields__}
SETTINGS["dp-cd"] = {"passes": 4.0}  # by the rule, one coordinate of these few rows
EACH = pytest.mark.parametrize(("loss", "name"), [(loss, name) for loss, names in TAKEN.items() for name in names])


class NoText:
    def __str__(self):
        raise RuntimeError


def table(rng, sizes, d=3, loss="squared"):
    """(X, y, ids) of persons of so many rows, in no order."""
    n = sum(sizes)
    X = rng.normal(size=(n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = {"squared": rng.uniform(-1, 1, n), "logistic": rng.choice([-1.0, 1.0], n)}.get(loss, rng.integers(0, 3, n))
    place = rng.permutation(n)
    return X[place], y[place].astype(float), np.repeat([f"p{i}" for i in range(len(sizes))], sizes)[place]


def replaced(rng, data, m, loss, *, extreme):
    """The table with m other rows in the place of all of p0's: drawn, or all one row at either end of what may be."""
    X, y, ids = data
    others = ids != "p0"
    new, labels, _ = table(rng, [m], X.shape[1], loss)
    if extreme:
        new = np.tile(np.eye(X.shape[1])[0], (m, 1))
        ends = {"squared": (9.0, -9.0), "logistic": (1.0, -1.0)}.get(loss, (2.0, 0.0))
        labels = np.full(m, ends[extreme < 0])
    return np.vstack([new, X[others]]), np.append(labels, y[others]), np.append(["p0"] * m, ids[others])


def problem(data, loss="squared", **declared):
    X, y, ids = data
    of = Persons.of(ids.astype(object)).weighted(X, y)
    return PersonsProblem(X, y, of, loss=loss, row_bound=1.0, **declared)


SUMS = {
    "gradient": ("logistic", lambda p, w: p.gradient_sum(w)),
    "bounded": ("squared", lambda p, w: p.bounded_gradient(w, 0.3)),
    "classes": ("softmax-3", lambda p, w: p.bounded_gradient(w, 2**0.5)),
    "gram": ("squared", lambda p, w: p.hessian_sum(w)),
    "hessian": ("logistic", lambda p, w: p.hessian_sum(w)),
    "moment": ("logistic", lambda p, w: p.second_moment()),
    "labels": ("squared", lambda p, w: p.label_moments(1.0)),
    "value": ("logistic", lambda p, w: p.clipped_value(w, 2.0)),
    "scores": ("squared", lambda p, w: p.score_moment(w, 0.3)),
    "slopes": ("logistic", lambda p, w: p.score_moment(w, 1.0)),
    "curvature": ("squared", lambda p, w: p.clipped_curvature(w, 0.3)),
    "coordinates": ("squared", lambda p, w: p.clipped_gradient(w, np.array([0.5]), even=True)),
    "coordinate": ("squared", lambda p, w: moved(p.coordinate_state(w)).derivative(0, np.array([0.3]))),
}


def moved(state):
    """The state after one step along another coordinate."""
    state.move(1, np.array([2.5]))
    return state


def apart(one, other):
    """(what the distance of two sums is of that which is declared, in ℓ₂ and in ℓ₁)."""
    assert one.moved == other.moved
    moved = (one.integers - other.integers).astype(float)
    l1 = np.abs(moved).sum() / one.moved.sum_of_sizes(Relation.REPLACE_ONE) if one.moved.l1 else 0.0
    return np.sqrt((moved**2).sum() / one.moved.two), l1


@pytest.mark.parametrize("what", SUMS)
def test_all_rows_of_one_person_move_a_sum_no_further_than_is_declared_and_as_far(what):
    loss, ask = SUMS[what]
    worst = 0.0
    for seed, (m, k) in enumerate(itertools.product(SIZES, SIZES)):
        rng = np.random.default_rng(seed)
        data = table(rng, [3, 1, 2, 7], loss=loss)
        for ends in ((0, 0), (1, -1)):
            first = replaced(rng, data, m, loss, extreme=ends[0])
            second = replaced(rng, data, k, loss, extreme=ends[1])
            w = rng.normal(size=(1, 9 if "soft" in loss else 3)) * (1 if ends[0] == 0 else 0)
            if what == "value" and ends[0]:
                w = np.array([[9.0, 0, 0]])  # a loss of 0 and of the clip
            distances = apart(*(ask(problem(one, loss), w) for one in (first, second)))
            assert max(distances) <= 1
            worst = max(worst, *distances)
    assert worst > (
        0.99 if what in ("bounded", "labels", "value", "coordinate") else 0.65 if what == "scores" else 0.3
    )  # these it attains, as a row does


def test_a_weight_of_one_for_each_row_would_move_sums_further_than_is_declared(monkeypatch):
    monkeypatch.setattr(
        Persons, "weighted", lambda self, X, y: OfPersons(np.full(len(y), 1 << 12), 12, self.count, self.codes)
    )
    with pytest.raises(AssertionError):
        test_all_rows_of_one_person_move_a_sum_no_further_than_is_declared_and_as_far("gradient")


def followed(monkeypatch):
    """Every sum that a fit releases, in a list; what is released is made up, and the same for all data."""
    seen, release, choose = [], ExactReleases.release, ExactReleases.choose

    def made_up(self, value, noise, event, label, **how):
        seen.append(value)
        drawn = release(self, value, noise, event, label, **how)
        return np.random.default_rng(len(seen)).normal(size=np.shape(drawn)) * 0.1

    def chosen(self, values, *of, **how):
        seen.append(values)
        return choose(self, values, *of, **how) * 0 + len(seen) % values.shape[1]

    monkeypatch.setattr(ExactReleases, "release", made_up)
    monkeypatch.setattr(ExactReleases, "choose", chosen)
    return seen


def fit(data, algorithm, loss, **given):
    X, y, ids = data
    how = {"epsilon": 1.0, "rule": True, "loss": loss, "seed": 1, "bound": "rescale"} | given
    how["l2"] = how.get("l2", 0.01 if loss != "squared" else 0.0)
    return dpbench.fit(X, y, groups=ids, algorithm=algorithm, **how, **SETTINGS.get(algorithm, {}))


@pytest.mark.thorough_for("*-dp-adam", "logistic-dp-[hmn]*", "logistic-dp-accelerated-*", "squared-dp-gd-average")
@EACH
def test_no_release_of_a_method_that_takes_a_unit_moves_further_for_any_number_of_rows(monkeypatch, loss, name):
    seen, distances = followed(monkeypatch), []
    for m, k in [(1, 1), (2, 1), (5, 2), (100, 5), (1, 100)]:
        rng = np.random.default_rng(m)
        data, worlds = table(rng, [3, 1, 2, 7], loss=loss), []
        for size, end in ((m, 1), (k, -1)):
            seen.clear()
            made = fit(replaced(rng, data, size, loss, extreme=end), name, loss)
            worlds.append((list(seen), made.released.composition, made.released.epsilon, made.guarantee))
        assert worlds[0][1:] == worlds[1][1:]
        assert len(worlds[0][0]) == len(worlds[1][0]) == sum(one.count for one in worlds[0][1])
        for one, other in zip(worlds[0][0], worlds[1][0], strict=True):
            if hasattr(one, "moved"):
                distances.append(max(apart(one, other)))
            else:  # a least eigenvalue, near one that moves by so much
                gap = abs(int((one.integers - other.integers)[0])) * one.unit
                distances.append(gap / (one.neighbour_distance(Relation.REPLACE_ONE) + 2 * one.radius))
    assert (
        (0.02 if "L" in SETTINGS.get(name, {}) else 0.2) < max(distances) <= 1
    )  # the former have rows of ‖x‖₁ up to 20


@pytest.mark.parametrize(
    ("epsilon", "labels"),
    [(1.0, ["median"]), (4.5, ["window", "length"]), (60.0, ["window", "mean", "middles", "length"])],
)
def test_no_release_of_a_window_moves_further_for_any_number_of_rows(monkeypatch, epsilon, labels):
    seen, worst = followed(monkeypatch), dict.fromkeys(labels, 0.0)
    monkeypatch.setattr(windows.Window, "centred", lambda self, X, unit, numbers: unit * X)  # pulled to no middle
    for m, k in itertools.product(SIZES, SIZES):
        data, worlds = table(np.random.default_rng(m), [3, 1, 2, 7, *[1] * 20]), []
        for size, end in ((m, 1.0), (k, -1.0)):
            seen.clear()
            X, y, ids = replaced(np.random.default_rng(0), data, size, "squared", extreme=end)
            X[ids == "p0"] = end if m != k else max(end, 0.0)  # far apart in a column, or long beside 0
            model = PrivateRegressor(epsilon, bounds=(-1, 1), target_bounds=(-1, 1), unit=True, random_state=0)
            worlds.append((list(seen) if model.fit(X, y, groups=ids) else [], model.releases_))
        assert worlds[0][1] == worlds[1][1]
        for label, one, other in zip(labels, *(world[0] for world in worlds), strict=False):
            if label in ("window", "median"):
                distance = np.abs(one.integers - other.integers).max() / one.each(Relation.REPLACE_ONE)
            else:
                distance = max(apart(one, other))
            assert distance <= 1
            worst[label] = max(worst[label], distance)
    assert min(worst.values()) > 0.6


def test_every_other_method_is_refused_in_one_line_before_it_looks(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(persons.PersonsProblem, "__init__", lambda *of, **how: pytest.fail("it looked"))
    takes = {name for names in TAKEN.values() for name in names}
    refused = 0
    for name, method in METHODS.items():
        loss = next((one for one in TAKEN if not method.needs.missing_for(losses.get(one))), "logistic")
        if name in takes or not method.private:
            continue
        with pytest.raises(UserError, match=r"^unit: |^loss") as error:
            fit(table(rng, [3, 1, 2], loss=loss), name, loss)
        assert "\n" not in str(error.value)
        refused += 1
    assert refused > 25
    for name, loss in [("objpert", "logistic"), ("dp-sgd", "logistic"), ("output-perturbation", "logistic"),
                       ("dp-mf", "logistic"), ("objpert-pure", "logistic")]:  # fmt: skip
        with pytest.raises(UserError, match="several rows of one person"):
            fit(table(rng, [3, 1, 2], loss=loss), name, loss)


@pytest.mark.parametrize("given", [{"m": 2, "L": 500.0}, {"m": 3, "L": 500.0}])
def test_samples_of_rows_are_refused(given):
    X, y, ids = table(np.random.default_rng(0), [3, 1, 2, 4], loss="logistic")
    with pytest.raises(UserError, match="takes some of the rows at a time"):
        dpbench.fit(X, y, groups=ids, algorithm="dp-gd-laplace", epsilon=1.0, l2=0.01, rule=True, **given)


def test_what_else_is_asked_of_rows_is_refused():
    one, w = problem(table(np.random.default_rng(0), [3, 1, 2], loss="logistic"), "logistic"), np.zeros((1, 3))
    for ask in (
        lambda: one.gradient_sum(w, np.array([0])),
        lambda: one.hessian_sum(w, np.array([0])),
        lambda: one.clipped_gradient(w, np.ones(1)),
        lambda: one.real,
        lambda: one.minimiser(None, w, w, 1.0, 1e-9),
        lambda: one.approximate_minimiser(None, w, w, 1.0, 1e-9),
        lambda: one.predictions(w),
        lambda: one.clip_shares,
        lambda: one.mean_label,
    ):
        with pytest.raises(PrivacyError, match="only sums over all persons"):
            ask()


def test_a_sum_that_nobody_derived_for_persons_cannot_be_read():
    one, w = problem(table(np.random.default_rng(0), [3, 1, 2])), np.zeros((1, 3))
    made = super(PersonsProblem, one).clipped_curvature(w, 1.0)
    with pytest.raises(PrivacyError, match="nobody said what the integers"):
        made.integers  # noqa: B018


def test_the_objective_counts_each_person_once():
    data = table(np.random.default_rng(0), [4, 1, 2])
    X, y, ids = data
    W = np.array([[0.3, -0.2, 0.1], [2.0, 0.0, -1.0]])

    def of_persons(values):
        return np.mean([values[ids == one].mean() for one in np.unique(ids)])

    expected = [of_persons((y - X @ w) ** 2 / 2) for w in W]
    np.testing.assert_allclose(problem(data).value(W), expected, atol=1e-4)
    several = table(np.random.default_rng(0), [4, 1, 2], loss="softmax-3")
    X, y, ids = several
    W = np.random.default_rng(1).normal(size=(2, 9))
    z = X @ W.reshape(2, 3, 3).transpose(0, 2, 1)
    expected = [of_persons(np.log(np.exp(one).sum(axis=1)) - one[np.arange(len(y)), y.astype(int)]) for one in z]
    np.testing.assert_allclose(problem(several, "softmax-3").value(W), expected, atol=1e-4)


AS_COPIES = {
    "value": lambda p, W: p.value(W),
    "gradient": lambda p, W: p.gradient(W),
    "both": lambda p, W: np.hstack([p.value_and_gradient(W)[0][:, None], p.value_and_gradient(W)[1]]),
    "bounded": lambda p, W: p.bounded_gradient(W, 0.3),
    "clipped value": lambda p, W: p.clipped_value(W, 0.4),
    "sum": lambda p, W: p.gradient_sum(W) / p.n,
    "hessian": lambda p, W: p.hessian(W),
    "curvature": lambda p, W: p.clipped_curvature(W, 0.3),
    "scores": lambda p, W: p.score_moment(W, 0.3),
    "moment": lambda p, W: p.second_moment(),
    "labels": lambda p, W: p.label_moments(1.0) / p.n,
    "label": lambda p, W: p.mean_label,
    "constants": lambda p, W: p.coordinate_constants,
    "eigenvalue": lambda p, W: p.top_eigenvalue,
    "clipped": lambda p, W: p.clipped_gradient(W, np.array([0.2, 0.5])),
    "clipped evenly": lambda p, W: p.clipped_gradient(W, np.array([0.2, 0.5]), even=True),
    "optimum": lambda p, W: p.optimum().w,
}


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_where_persons_count_once_it_is_as_if_all_had_as_many_rows(loss):
    """Persons of 1, 2, 3 and 6 rows beside a problem in which each of these stands 6, 3, 2 times or once."""
    sizes = np.array([1, 2, 3, 6, 2, 1, 1])
    X, y, ids = table(np.random.default_rng(0), sizes, loss=loss)
    times = 6 // sizes[np.unique(ids, return_inverse=True)[1]]
    one = CountedOnce(X, y, ids, loss=loss, l2=0.1, row_bound=1.0)
    same = Problem(np.repeat(X, times, axis=0), np.repeat(y, times), loss=loss, l2=0.1, row_bound=1.0)
    assert (one.n, same.n) == (7, 42)
    W = np.array([[0.3, -0.2, 0.1], [2.0, 0.0, -1.0]])
    for name, of in AS_COPIES.items():
        np.testing.assert_allclose(of(one, W), of(same, W), rtol=1e-9, atol=1e-9, err_msg=name)
    states = [p.coordinate_state(W) for p in (one, same)]
    for j in range(3):
        first, second = (state.derivative(j, np.array([0.1, 0.3])) for state in states)
        np.testing.assert_allclose(first, second, rtol=1e-9)
        for state in states:
            state.move(j, np.array([0.5, -0.5]))
    with pytest.raises(UserError, match="all are summed, not some"):
        one.gradient_sum(W, np.array([0]))


def test_of_many_persons_the_hessian_is_the_mean_of_theirs_and_fits_64_bits():
    rng, sizes = np.random.default_rng(0), [100, *[3] * 3000, *[1] * 2000]
    X, y, ids = data = table(rng, sizes, loss="logistic")
    w = np.array([[0.8, -1.2, 0.4]])
    p = 1 / (1 + np.exp(-X @ w[0]))
    m = np.bincount(names := np.unique(ids, return_inverse=True)[1])[names]
    made = problem(data, "logistic").data_hessian(w)
    np.testing.assert_allclose(made.integers[0] * made.unit, (X.T * p * (1 - p) / m) @ X / len(sizes), atol=2e-4)
    place = rng.permutation(len(y))
    again = problem((X[place], y[place], ids[place]), "logistic").data_hessian(w)
    assert (again.integers == made.integers).all()


def test_the_scores_are_squares_of_a_persons_mean_gradient():
    rng = np.random.default_rng(0)
    X, y, ids = data = table(rng, [4, 1, 2, 90])
    w, clip = np.array([[0.3, -0.2, 0.1]]), 0.3
    gradients = np.clip(X @ w[0] - y, -clip, clip)[:, None] * X
    means = np.array([gradients[ids == one].mean(axis=0) for one in np.unique(ids)])
    made = problem(data).score_moment(w, clip)
    np.testing.assert_allclose(made.integers[0] * made.unit, means.T @ means / 4, atol=2e-4 * clip**2)
    place = rng.permutation(len(y))
    again = problem((X[place], y[place], ids[place])).score_moment(w, clip)
    assert (again.integers == made.integers).all()
    inside = np.abs(X @ w[0] - y) <= clip
    means = [(X[one].T * inside[one]) @ X[one] / one.sum() for one in (ids == name for name in np.unique(ids))]
    made = problem(data).clipped_curvature(w, clip)
    np.testing.assert_allclose(made.integers[0] * made.unit, np.mean(means, axis=0), atol=1e-3)


@pytest.mark.parametrize("name", ["dp-gd", "dp-gd-average", "dp-gcd", "dp-frank-wolfe"])
def test_one_row_each_is_the_fit_of_today_byte_for_byte(name):
    X, y, _ = table(np.random.default_rng(5), [1] * 40, loss="logistic")
    ours = fit((X, y, np.arange(40)), name, "logistic").w
    how = {"epsilon": 1.0, "rule": True, "l2": 0.01, "seed": 1, "bound": "rescale", "arithmetic": "bytes"}
    assert (ours == dpbench.fit(X, y, algorithm=name, **how).w).all()


@EACH
def test_the_order_of_rows_and_the_names_of_persons_change_no_byte_of_a_fit(loss, name):
    rng = np.random.default_rng(3)
    X, y, ids = table(rng, [1, 3, 7, 5, 2, 11, 6, 9], loss=loss)
    place, names = rng.permutation(len(y)), rng.permutation(8)
    again = X[place], y[place], [f"{names[int(one[1:])]} é" for one in ids[place]]
    assert fit((X, y, ids), name, loss).w.tobytes() == fit(again, name, loss).w.tobytes()


KINDS = {"classes": (PrivateClassifier, {"classes": [0, 1, 2]}), "two": (PrivateClassifier, {"classes": [0, 1]}),
         "numbers": (PrivateRegressor, {"target_bounds": (-1, 1)})}  # fmt: skip


def fitted(kind, X, y, ids, **given):
    make, how = KINDS[kind]
    y = np.clip(np.rint(y + 1), 0, 2 if kind == "classes" else 1) if kind != "numbers" else y
    given = {"bounds": (-1, 1), "random_state": 4, "unit": True} | given
    return make(**how, **given).fit(X, y, groups=ids)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_and_the_names_of_persons_change_no_byte(kind):
    rng = np.random.default_rng(2)
    X, y, ids = table(rng, [1, 3, 7, 5, 2, 11, 6, 9], 4)
    first = fitted(kind, X, y, ids)
    place = rng.permutation(len(y))
    renamed = {name: f"{i} é" for i, name in enumerate(rng.permutation(np.unique(ids)))}
    again = fitted(kind, X[place], y[place], [renamed[one] for one in ids[place]])
    assert first.coef_.tolist() == again.coef_.tolist()
    assert np.all(first.intercept_ == again.intercept_)
    # One row each, of ids in any order, is the fit without a unit.
    alone = fitted(kind, X, y, rng.permutation(len(y)))
    how = {"arithmetic": "bytes", "algorithm": alone.algorithm_}
    plain = fitted(kind, X, y, None, unit=False, **how)
    assert alone.coef_.tolist() == plain.coef_.tolist()
    assert alone.row_bound_ == plain.row_bound_


def test_thirty_rows_more_of_one_person_show_nowhere_but_in_the_noise(tmp_path):
    rng = np.random.default_rng(0)
    data = table(rng, [3, 1, 2, 7, 4])
    shown = []
    for m in (1, 31):
        X, y, ids = replaced(rng, data, m, "squared", extreme=0)
        model = fitted("two", X, y, ids, random_state=None)
        model.save(tmp_path / f"{m}.json")
        stated = model.statement().lines()
        saved = json.loads((tmp_path / f"{m}.json").read_text())
        saved["model"].update(W=[], bound=0)
        saved["statement"].update(made="")
        shown.append([stated[1:], {**saved, "sha256": ""}, model.ledger_, repr(model), model.plan_.lines()])
        assert str(len(y)) not in json.dumps([saved["statement"]["rows"], saved["model"]["spec"]["n"]])
    assert shown[0] == shown[1]


def test_a_person_of_more_rows_than_a_weight_can_share_gives_as_many_by_their_content(monkeypatch):
    monkeypatch.setattr(persons, "BITS", 3)
    X, y, ids = table(np.random.default_rng(0), [20, 8, 3, 1])
    found = Persons.of(ids.astype(object)).weighted(X, y)
    by = {one: sorted(found.weights[ids == one]) for one in np.unique(ids)}
    assert by == {"p0": [0] * 12 + [1] * 8, "p1": [1] * 8, "p2": [2, 3, 3], "p3": [8]}
    place = np.random.default_rng(1).permutation(len(y))
    assert (Persons.of(ids[place].astype(object)).weighted(X[place], y[place]).weights == found.weights[place]).all()
    # What weighs is decided by the person's own rows: others may change as they like.
    others = ids != "p0"
    X[others] *= 0.5
    again = Persons.of(ids.astype(object)).weighted(X, y).weights
    assert (again[~others] == found.weights[~others]).all()


@pytest.mark.parametrize(("count", "bits"), [(2, 12), (2**18, 12), (2**18 + 1, 11), (2**24, 6), (2**31, 0)])
def test_the_grid_of_weights_follows_from_the_number_of_persons(count, bits):
    assert Persons(np.zeros(0, int), count).bits == bits


def test_a_row_without_an_id_is_nobodys():
    X, y, ids = table(np.random.default_rng(0), [3, 1, 2])
    strange = np.vstack([X, np.eye(3)]), np.append(y, [1.0, 1, 1]), np.append(ids.astype(object), ["", None, np.nan])
    of = Persons.of(cells.ids("groups", strange[2]))
    assert (of.count, of.codes[-3:].tolist()) == (3, [-1] * 3)
    assert fitted("numbers", *strange).coef_.tolist() == fitted("numbers", X, y, ids).coef_.tolist()


@pytest.mark.parametrize(("values", "texts"), [
    (["a", "NA", "nan", " a", "", None], ["a", "NA", "nan", "a", "", ""]),
    (["3", "3.0", " 3 ", "10", "v1.0", "1.5"], ["3", "3", "3", "10", "v1.0", "1.5"]),
    (np.array([17, 5]), ["17", "5"]),
    (np.ma.array([2**53 + 1, 5], mask=[False, True]), ["9007199254740993", ""]),
    (pd.array([12345678901234567, None, 12345678901234568], "Int64"), ["12345678901234567", "", "12345678901234568"]),
    ([1, "1", np.nan, 2], ["1", "1", "", "2"]),
    (pd.Series(["x", "y"], dtype="category"), ["x", "y"]),
])  # fmt: skip
def test_ids_are_texts_cell_by_cell(values, texts):
    assert cells.ids("id", values).tolist() == texts


@pytest.mark.parametrize(
    "strange", [10**5000, Decimal("sNaN"), NoText(), [1], np.array([1, 2])], ids=lambda one: type(one).__name__
)
def test_one_id_that_cannot_be_read_refuses_no_fit(strange):
    """Else it would tell that its row is there."""
    values = ["a", None, strange, "b"]
    found = cells.ids("id", values)
    assert found[[0, 1, 3]].tolist() == ["a", "", "b"]
    assert isinstance(found[2], str)
    assert cells.ids("id", pd.Series(np.fromiter(values, object)))[[0, 1, 3]].tolist() == ["a", "", "b"]


@pytest.mark.parametrize("values", [
    np.array([1.0, 2.0]), np.array([1.0, np.nan]), np.array([True, False]),
])  # fmt: skip
def test_ids_that_are_other_numbers_are_refused_by_their_type(values):
    with pytest.raises(UserError, match="its ids are numbers with decimal points or gaps"):
        cells.ids("id", values)


TOML = """unit = "patient_id"
[target]
name = "ill"
classes = ["no", "yes"]
[columns.age]
bounds = [0, 100]
"""


def patients(tmp_path, rng, n=60, persons=12):
    frame = pd.DataFrame({
        "patient_id": rng.choice(["NA", "null", "007", "7", *(f"a{i}" for i in range(persons - 4))], n),
        "age": rng.integers(0, 100, n), "ill": rng.choice(["no", "yes"], n),
    })  # fmt: skip
    file, schema = tmp_path / "patients.csv", tmp_path / "patients.toml"
    frame.to_csv(file, index=False)
    schema.write_text(TOML)
    return frame, file, schema


def test_a_schema_names_the_unit_which_goes_with_the_rows(tmp_path):
    frame, file, schema = patients(tmp_path, np.random.default_rng(0))
    found = read_table(file, schema)
    assert found["patient_id"].tolist() == frame["patient_id"].tolist()
    assert load(schema).unit == "patient_id"
    (alike,) = dpbench.check_data(file, schema)
    assert alike.startswith("patient_id: some ids differ in Unicode form or leading zeros alone")
    assert "7" not in alike
    (tmp_path / "gap.csv").write_text("patient_id,age,ill\n,1,no\nNA,2,yes\n,3,no\n")
    line = dpbench.check_data(tmp_path / "gap.csv", schema)[-1]
    assert line == "patient_id: 2 rows without an id; they are nobody's, and move no model"
    (tmp_path / "again.toml").write_text(load(schema).toml())
    assert load(tmp_path / "again.toml") == load(schema)
    model = PrivateClassifier(schema=schema).fit(found)
    assert (model.algorithm_, model.statement().rows) == ("dp-gd-average", 12)
    assert "protects all rows of one person (one value of patient_id)" in model.guarantee_
    model.save(tmp_path / "model.json")
    again = dpbench.load_model(tmp_path / "model.json")
    assert (again.predict(found.drop(columns="patient_id")) == model.predict(found)).all()  # a model needs no ids
    lines, _ = dpbench.statement(tmp_path / "model.json")
    assert "all rows of one person (one value of patient_id) replaced by any others, one or more" in lines.lines()[2]
    assert "M = 12" in lines.lines()[3]
    with pytest.raises(UserError, match="leave groups out"):
        PrivateClassifier(schema=schema).fit(found, groups=found["patient_id"])
    with pytest.raises(UserError, match="no column 'patient_id'"):
        PrivateClassifier(schema=schema).fit(found.drop(columns="patient_id"))
    frame.drop(columns="patient_id").to_csv(file, index=False)
    with pytest.raises(UserError, match="no column 'patient_id'"):
        read_table(file, schema)
    for wrong in ("age", "ill", ""):
        schema.write_text(TOML.replace("patient_id", wrong))
        with pytest.raises(UserError, match="unit must be a column beside"):
            load(schema)


def test_the_card_and_the_plan_are_of_persons(tmp_path):
    _, file, schema = patients(tmp_path, np.random.default_rng(0), 400, 200)
    model = PrivateClassifier(schema=schema).fit(read_table(file, schema))
    model.save(tmp_path / "model.json")
    text = dpbench.card(tmp_path / "model.json", worlds=2, jobs=1)
    assert f"all rows of {model.statement().rows} persons" in text
    assert "all rows of one value of patient_id together" in text
    assert "impossible to check: M, which rows are whose, and the weights" in text
    assert "No score: simulated tables were never held against real ones with several rows of a person." in text
    assert "protects one row" not in text
    stated, holds = dpbench.statement(tmp_path / "model.json")
    entry = said(stated, holds, load(schema))
    assert entry["privacy_loss.privacy_unit"] == "One person, all rows"
    assert "replaced by any others" in entry["privacy_loss.privacy_unit_details"]
    foreseen = dpbench.plan(schema, 200, worlds=2, jobs=1)
    assert foreseen.forecasts[0].method == "dp-gd-average"
    assert any("never held" in note for note in foreseen.notes)
    assert any("persons without a label count in n" in note for note in foreseen.notes)
    assert "several rows of one person" in foreseen.left_out["objpert"]


def test_a_saved_model_of_persons_cannot_say_that_it_is_of_rows(tmp_path):
    import msgspec

    from dpbench.own import model as models

    X, y, ids = table(np.random.default_rng(0), [3, 1, 2])
    model = fitted("two", X, y, ids, random_state=None)
    for wrong in ("", "patient"):
        with pytest.raises(models.DoesNotHold):
            models.check_model(model.model_, msgspec.structs.replace(model.statement_, unit=wrong))
    with pytest.raises(ValueError, match="unit"):
        msgspec.structs.replace(model.model_, spec=msgspec.structs.replace(model.model_.spec, unit="patient"))


def test_a_budget_is_for_one_unit(tmp_path):
    X, y, ids = table(np.random.default_rng(0), [3, 1, 2])
    budget = dpbench.DataBudget.create(tmp_path / "budget", epsilon=3, delta=0.5, unit="groups")
    fitted("two", X, y, ids, budget=budget)
    assert dpbench.DataBudget(tmp_path / "budget").unit == "groups"
    assert len(budget.charges) == 1
    with pytest.raises(UserError, match="the fit protects one row, the budget all rows of one groups"):
        fitted("two", X, y, None, unit=False, budget=budget)
    with pytest.raises(UserError, match="the budget one row"):
        fitted("two", X, y, ids, budget=dpbench.DataBudget.create(None, epsilon=3, delta=0.5))
    assert len(budget.charges) == 1


@pytest.mark.parametrize(("given", "ids", "why"), [
    ({}, None, "unit=True needs the id of each row"),
    ({"unit": False}, "ids", "with unit=True"),
    ({"unit": "patient"}, None, "unit must be True or False"),
    ({"unit": np.arange(26)}, None, "ids are groups= of fit"),
    ({"arithmetic": "real"}, "ids", "arithmetic"),
    ({"timing": "constant"}, "ids", "timing"),
    ({"algorithm": "objpert"}, "ids", "unit: objpert"),
    ({"delta": 0}, "ids", "no rule chooses one"),
    ({}, "short", "one id for each row"),
    ({}, "same", "give two persons at least"),
    ({}, "nobody", "give two persons at least"),
])  # fmt: skip
def test_a_fit_of_persons_is_refused_in_one_line_that_tells_no_number_of_rows(given, ids, why):
    X, y, there = table(np.random.default_rng(0), [13, 11, 2])
    of = {"ids": there, "short": there[:-1], "same": ["a"] * len(y), "nobody": [""] * len(y), None: None}[ids]
    with pytest.raises((UserError, ValueError), match=why) as error:
        fitted("two", X, y, of, **given)
    assert "26" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("given", "why"), [
    ({"groups": [[1], *range(25)]}, None),
    ({"groups": np.arange(26)[:, None]}, "groups: give one id for each row of X"),
    ({"y": np.zeros((26, 2))}, "y: give one label for each row of X"),
    ({"y": 3.0}, "y: give one label for each row of X"),
    ({"X": sparse.csr_matrix(np.zeros((26, 3)))}, "Sparse data"),
])  # fmt: skip
def test_a_wrong_shape_is_refused_in_one_line_that_tells_no_number_of_rows(given, why):
    X, y, ids = table(np.random.default_rng(0), [13, 11, 2])
    model = PrivateRegressor(bounds=(-1, 1), target_bounds=(-1, 1), unit=True)
    given = {"X": X, "y": y, "groups": ids} | given
    if why is None:  # a cell that is a list is a cell like any other
        assert model.fit(**given).plan_.spec.n == 26
        return
    with pytest.raises((TypeError, ValueError), match=why) as error:
        model.fit(**given)
    assert "26" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_of_a_wrong_shape_is_refused_in_one_line_that_tells_no_number_of_rows():
    schema = Schema(target=Target(name="t", bounds=(-1, 1)), columns={"a": Column(bounds=(-1, 1))}, unit="p")
    frame = pd.DataFrame({"p": [f"p{i // 2}" for i in range(26)], "a": 0.5, "t": 0.1})
    model = PrivateRegressor(schema=schema)
    for X, y, why in (
        (frame, np.zeros((26, 2)), "y: give one label"),
        (frame, frame[["t"]], "y: give one label"),
        (pd.concat([frame, frame[["p"]]], axis=1), None, "p: give one id"),
    ):
        with pytest.raises(ValueError, match=why) as error:
            model.fit(X, y)
        assert "26" not in str(error.value)


@pytest.mark.parametrize("seed", [None, 0])
def test_no_message_about_rows_that_do_not_fit_tells_their_number(seed):
    X, y, ids = table(np.random.default_rng(0), [13, 11, 2])
    X[3], X[5] = 9.0, np.nan
    given = {"groups": ids, "algorithm": "dp-gd", "epsilon": 1.0, "l2": 0.01, "seed": seed}
    assert np.isfinite(dpbench.fit(X, 0 * y + 2, **given).w).all()  # repaired row by row, as in a release
    with pytest.raises(UserError, match=r"^bound: .* not public") as error:
        dpbench.fit(X, y, bound="check", **given)
    assert "26" not in str(error.value)


def test_searches_of_scikit_learn_forward_no_groups_so_their_fits_are_refused():
    from sklearn.model_selection import GroupKFold, cross_val_score

    X, y, ids = table(np.random.default_rng(0), [3, 1, 2, 5])
    model = PrivateRegressor(target_bounds=(-1, 1), bounds=(-1, 1), unit=True)
    with pytest.raises(ValueError, match="unit=True needs the id of each row"):
        cross_val_score(model, X, y, groups=ids, cv=GroupKFold(2), error_score="raise")


def test_the_mean_of_squares_for_a_row_bound_is_over_persons():
    rng = np.random.default_rng(0)
    for m, k in itertools.product(SIZES, SIZES):
        sums = []
        for size, end in ((m, 0.0), (k, 1.0)):
            Z = np.vstack([rng.uniform(-1, 1, (9, 2)) * 0 + 0.5, np.full((size, 2), end)])
            of = Persons.of(np.array([*"aabbbbccc", *["p0"] * size], object)).weighted(Z, np.zeros(len(Z)))
            sums.append(centred_mean(Z, 2, True, 1.0, of))
        moved = abs(int((sums[0].integers - sums[1].integers)[0]))
        assert moved**2 == sums[0].moved.two  # attained
        means = [np.mean([0.5, 0.5, 0.5, end * 2]) for end in (0.0, 1.0)]
        found = [float(one.integers[0] * one.unit) + 1.0 for one in sums]
        assert found == pytest.approx(means)


def test_the_mean_of_squares_is_over_all_rows_however_many_more_than_persons_there_are(monkeypatch):
    monkeypatch.setattr(row_bound, "BLOCK", 4)  # two rows of two columns at a time
    ids = np.array([*["p0"] * 50, *"abc"], object)
    Z = np.vstack([np.zeros((50, 2)), np.full((3, 2), 1.0)])
    for order in (np.arange(53), np.arange(53)[::-1]):
        of = Persons.of(ids[order]).weighted(Z[order], np.zeros(53))
        found = centred_mean(Z[order], 2, True, 1.0, of)
        assert float(found.integers[0] * found.unit) + 1.0 == 1.5


def test_groups_go_with_arrays_of_a_label_a_row():
    X, y, ids = table(np.random.default_rng(0), [3, 1, 2], loss="logistic")
    with pytest.raises(UserError, match="one label for each row"):
        dpbench.fit(X, y[:-1], groups=ids, algorithm="dp-gd", epsilon=1.0)
    assert persons_of(X, None, None, asked=False) == ("", None)


def test_a_column_of_labels_is_read_by_place_and_not_by_its_index():
    """Read by index, another person's label would decide what a person's rows weigh."""
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-0.5, 0.5, (62, 2)), np.sign(rng.normal(size=62))
    groups = np.r_[np.zeros(3, int), np.repeat(np.arange(1, 30), 2), 30]
    fits = [
        dpbench.fit(X, labels, groups=groups, algorithm="dp-gd", epsilon=1.0, T=3, seed=0).w
        for labels in (y, pd.Series(y, index=rng.permutation(62)), pd.Series(y, index=range(900, 962)))
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])
    with pytest.raises(TypeError, match="weighed in arrays"):
        Persons(groups, 31).weighted(X, pd.Series(y))


@pytest.mark.parametrize("kind", ["coo_array", "bsr_array", "dia_array"])
def test_any_sparse_matrix_goes_with_groups(kind):
    X = getattr(sparse, kind)(np.linspace(-0.5, 0.5, 14).reshape(7, 2))
    assert dpbench.fit(X, np.ones(7), groups=[1, 1, 1, 2, 2, 2, 2], algorithm="dp-gd", epsilon=1.0, T=2).w.shape == (2,)


ODD = ["a", None, [1.0, 2.0], 10**400, 1j, "nan", b"x", float("inf")]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_one_odd_cell_of_a_list_refuses_no_fit_and_is_zero(odd, grouped):
    X, y = np.linspace(-0.5, 0.5, 12).reshape(6, 2), np.array([1.0, -1, 1, -1, 1, -1])
    more = {"groups": [1, 1, 1, 2, 2, 3]} if grouped else {}
    cells, labels = [list(row) for row in X], list(y)
    cells[3][0] = labels[1] = odd
    assert np.isfinite(dpbench.fit(cells, labels, algorithm="dp-gd", epsilon=1.0, T=2, **more).w).all()


@pytest.mark.parametrize("cell", ["1.5", "x"])
@pytest.mark.parametrize("kind", ["U5", "S5"])
def test_text_is_refused_by_its_type_whatever_a_cell_says(kind, cell):
    X, y = np.linspace(-0.5, 0.5, 12).reshape(6, 2), np.array([1.0, -1, 1, -1, 1, -1])
    rows, labels = X.astype(kind), y.astype(kind)
    rows[0, 0] = labels[0] = cell
    for given in (rows, y), (X, labels):
        with pytest.raises(DataError, match="not numbers"):
            dpbench.fit(*given, algorithm="dp-gd", epsilon=1.0, T=2)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0]] * 60 + [[1.0]], [1.0] * 61),
        (np.zeros((61, 0)), [1.0] * 61),
        (np.zeros((61, 2)), [[1, 2]] * 61),
        (np.zeros((61, 2)), np.array(["secret"] * 61)),
    ],
)
def test_what_is_refused_with_groups_tells_neither_rows_nor_cells(X, y):
    with pytest.raises(UserError) as caught:
        dpbench.fit(X, y, groups=[*range(30), *range(31)], algorithm="dp-gd", epsilon=1.0)
    shown = caught.value
    while shown is not None:  # a traceback shows these
        assert "61" not in str(shown)
        assert "secret" not in str(shown)
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


@pytest.mark.parametrize(
    ("ids", "codes", "count"),
    [([], [], 0), (["", ""], [-1, -1], 0), (["b", "", "a", "b"], [1, -1, 0, 1], 2), (["b", "a"], [1, 0], 2)],
)
def test_rows_without_an_id_are_nobodys_and_persons_are_counted_without_them(ids, codes, count):
    found = Persons.of(np.array(ids, dtype=object))
    assert (found.codes.tolist(), found.count) == (codes, count)
