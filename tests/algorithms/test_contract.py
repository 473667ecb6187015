"""One file of contract tests, run over every registered algorithm."""

import fnmatch
import inspect

import numpy as np
import pytest

from dpbench.algorithms import names, resolve
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.privacy.disclosure import undeclared
from dpbench.privacy.verify import spent
from dpbench.run.bind import budget_of
from dpbench.study import style
from tests.algorithms.conftest import run, small_problem
from tests.batches import run_batch

FEW = {"T": 3, "cap": 20, "passes": 1.5, "inner": 20}  # iterations are enough to see the contract
LOSS = "logistic"
ROWS = {"tukey-em": 60_000}  # which makes a model of every few rows, and takes many of them; 400 for the others
# Passes over 400 rows of 5 columns that an iteration takes, where it is not one; searches take what they take.
PASSES = {
    "*-ls": None, "dp-newton-minibatch*": 0.2, "dp-newton*": 2, "*-newton": 2, "dp-gd-oracle": 2, "dp-tr": 2,
    "dp-tr-b": 0.02, "*opt-b": 0.01, "dp-cd": 1 / 5, "dp-mf": 0.1, "dp-sgd": 0.02, "dp-sgd-1*": 1 / 400,
}  # fmt: skip


def fitting_problem(algorithm):
    losses = algorithm.needs.covered
    regularisers = {"l2": 0.02} if "l2" in algorithm.needs.regularisers else {}
    n, loss = ROWS.get(algorithm.name, 400), LOSS if LOSS in losses else losses[0]
    return small_problem(n, loss=loss, bound=algorithm.needs.row_norm, **regularisers)


def settings_for(algorithm, fixed):
    return {k: v for k, v in FEW.items() if k in algorithm.Settings.__struct_fields__ and k not in fixed}


@pytest.fixture(params=names())
def case(request):
    algorithm, fixed = resolve(request.param)
    return request.param, algorithm, fitting_problem(algorithm), settings_for(algorithm, fixed)


def test_final_iterates_have_the_shape_of_the_start_and_are_finite(case):
    name, _, problem, settings = case
    result = run(name, problem, epsilon=10.0, **settings)
    assert result.W.shape == (2, problem.d)
    assert np.isfinite(result.W).all()
    assert len(result.status) == 2
    assert all(len(column) == 2 for column in result.columns.values())


def test_the_start_is_not_written_to(case):
    name, _, problem, settings = case
    start = np.full((2, problem.d), 0.1)
    run(name, problem, start=start, **settings)
    assert (start == 0.1).all()


def test_its_trace_begins_at_the_start_and_ends_at_its_iterates(case):
    name, algorithm, problem, settings = case
    _, fixed = resolve(name)
    settings = algorithm.complete(problem, make_settings(algorithm, {**fixed, **settings}))
    if not algorithm.iterations(problem, settings):
        pytest.skip("no iterations to record")
    start = np.full((2, problem.d), 0.1)
    budget = budget_of(algorithm, problem.n, 1.0)
    ran = run_batch(problem, algorithm, [settings] * 2, start, budget, ["test/0", "test/1"], traced=True)
    if algorithm.home == "zeroth_order" and not ran.trace.points:
        pytest.skip("it records nothing: its iterates are not what it returns")
    iterations, passes, _, values = zip(*ran.trace.points, strict=True)
    assert list(iterations) == sorted(set(iterations))
    assert iterations[0] == 0
    each = next((one for pattern, one in PASSES.items() if fnmatch.fnmatchcase(name, pattern)), 1)
    if each is None:
        assert (np.diff(passes, axis=0) >= 0).all()
    else:
        expected = passes[0] + each * np.array(iterations)[:, None]
        np.testing.assert_allclose(passes, np.where(np.isnan(passes), np.nan, expected), rtol=1e-12)
    assert values[0][0] in (problem.value(start)[0], problem.value(0 * start)[0])  # some begin at 0 whatever is given
    last = [[value[i] for spent, value in zip(passes, values, strict=True) if spent[i] == spent[i]][-1] for i in (0, 1)]
    np.testing.assert_allclose(last, ran.objective, rtol=1e-12)


def test_replicates_draw_their_own_noise_and_repeat_bit_by_bit(case):
    name, algorithm, problem, settings = case
    first, second = (run(name, problem, **settings).W for _ in range(2))
    np.testing.assert_array_equal(first, second)
    if algorithm.private:
        assert not np.array_equal(first[0], first[1])


def test_a_replicate_does_not_depend_on_its_batch(case):
    name, _, problem, settings = case
    start = np.random.default_rng(5).standard_normal((3, problem.d))
    together = run(name, problem, start=start, **settings).W
    alone = run(name, problem, start=start[:1], **settings).W
    np.testing.assert_allclose(together[0], alone[0], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_what_is_released_composes_to_at_most_what_was_asked(case, epsilon):
    name, algorithm, problem, settings = case
    result = run(name, problem, epsilon=epsilon, **settings)
    budget = result.mechanisms.budget
    composition = result.mechanisms.ledger.of(0)
    assert not undeclared(composition, algorithm.labels)  # its tables name what a method without an ε releases, too
    if algorithm.private:
        assert composition
    if algorithm.private and not algorithm.flaw(make_settings(algorithm, settings), budget.accounting):
        assert spent(composition, budget.delta, budget.relation).epsilon <= epsilon * (1 + 1e-6)


def test_settings_it_does_not_know_are_refused_in_one_line(case):
    _, algorithm, _, _ = case
    with pytest.raises(UserError, match="unknown setting 'nonsense'"):
        make_settings(algorithm, {"nonsense": 1})


def test_it_is_documented_and_has_a_look(case):
    name, algorithm, _, _ = case
    assert inspect.getdoc(type(algorithm)), f"{name} has no docstring"
    assert algorithm.title
    variants = [look for look in style.LOOKS if look == name or look.startswith(algorithm.name)]
    assert variants, f"{name} has no colour and marker in report/style.py"
    for look in variants:
        if look == name:
            flaw = algorithm.flaw(make_settings(algorithm, resolve(name)[1]))
            assert style.look(look).private == (algorithm.private and not flaw)


def test_without_a_bound_on_the_rows_it_must_clip(case):
    """Else its noise would be scaled by the largest norm at hand, which is private."""
    _, algorithm, _, _ = case
    clips = "clip" in algorithm.Settings.__struct_fields__ or algorithm.name == "tukey-em"  # whose noise has no scale
    assert algorithm.needs.row_norm is not None or clips or not algorithm.private


def test_a_problem_its_proof_does_not_cover_is_refused(case):
    name, algorithm, problem, _ = case
    if algorithm.needs.row_norm is None:
        pytest.skip("it clips, so it needs no bound on the rows")
    from dpbench.problems import Problem

    beyond = Problem(3 * problem.X, problem.y, loss=problem.loss)
    with pytest.raises(UserError, match="rescale"):
        algorithm.needs.check(beyond, name)


def test_its_work_grows_with_rows_columns_and_iterations(case):
    """Jobs wait for time and memory by it: a sign that is wrong shows in one of these."""
    _, algorithm, problem, settings = case
    _, fixed = resolve(case[0])
    n, d = problem.n, problem.d

    def work(n, d, **more):
        return algorithm.work(
            n, d, algorithm.complete(problem, make_settings(algorithm, {**fixed, **settings, **more}))
        )

    assert 0 < work(n, 1) <= work(n, d) <= work(4 * n, d) <= work(64 * n, d)  # a batch may have a size of its own
    assert work(n, d) < work(n, 4 * d) < work(n, 64 * d)
    longer = {name: 4 * value for name, value in settings.items() if name in ("T", "passes", "cap")}
    assert work(n, d) <= work(n, d, **longer)


ROOM = {  # MB of (d, d) matrices, of iterates (k, d) or of predictions (k, n), and the most replicates
    "dp-gd-average": {"d": 200, "most": 128}, "dp-adam": {"d": 200, "most": 128},
    "dp-frank-wolfe": {"d": 200, "most": 128}, "tukey-em": {"n": 200, "most": 128},
    "dp-gcd": {"d": 100, "most": 512}, "dp-sgd-1": {"d": 100, "most": 512},
    "dp-cd": {"n": 12, "d": 400, "most": 512}, "dp-newton": {"dd": 200, "most": 128},
}  # fmt: skip


@pytest.mark.parametrize("name", ROOM)
def test_as_many_replicates_advance_together_as_there_is_memory_for(name):
    """A batch that is too large swaps; one that is too small reads all rows for each replicate anew."""
    room, (algorithm, _) = ROOM[name], resolve(name)
    for n, d in ((10, 2), (10**3, 500), (10**5, 10), (10**5, 10**5), (10**8, 10**8)):
        size = {"n": n, "d": d, "dd": d * d}
        most = min(room["most"], *(10**6 * mega // (8 * size[what]) for what, mega in room.items() if what != "most"))
        assert algorithm.batch_size(n, d) == max(1, most), (n, d)
