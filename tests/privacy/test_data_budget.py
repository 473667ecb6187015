"""A budget per data set: all fits are charged, whatever happens to processes and to the file; nobody gets beyond it."""

import contextlib
import copy
import itertools
import json
import math
import multiprocessing
import os
import pickle
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr, ndtri

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import ledger
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_for, gaussian_mu
from dpbench.privacy.data_budget import BudgetSpent, Charge, DataBudget, _mark
from dpbench.privacy.ledger import BoundedRange, CountedRelease, Gaussian, Laplace, Relation
from dpbench.privacy.verify import spent

FORK = multiprocessing.get_context("fork")


def gaussian(epsilon, delta, releases=1):
    """A plan of Gaussians that costs (ε, δ)."""
    return (CountedRelease(Gaussian(math.sqrt(releases) / gaussian_mu(epsilon, delta)), releases, "gradient"),)


def spend(budget, epsilon=1.0, delta=1e-8, releases=None, **more):
    return budget.charge("a fit", gaussian(epsilon, delta) if releases is None else releases, epsilon, delta, **more)


def admitted(budget, epsilon=0.9):
    """1 if a fit that is charged ε is admitted, 0 if not."""
    try:
        budget.charge("a fit", (), epsilon, 0.0)
    except BudgetSpent:
        return 0
    return 1


@pytest.fixture
def budget():
    return DataBudget.create(None, epsilon=3, delta=1e-6)


@pytest.fixture
def file(tmp_path):
    """Of a budget of ε = 1 of which .4 is spent."""
    DataBudget.create(tmp_path / "b", epsilon=1, delta=1e-6).charge("the first fit", (), 0.4, 0.0)
    return tmp_path / "b"


def written(file, *statements):
    """Change the file with another program."""
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        for statement in statements:
            db.execute(statement)


# What fits cost


def test_gaussian_fits_cost_the_root_of_their_number(budget):
    for _ in range(4):
        spend(budget)
    assert budget.epsilon_spent == pytest.approx(gaussian_epsilon(2 * gaussian_mu(1, 1e-8), 5e-7), rel=1e-4)
    assert len(budget.charges) == 4


def test_the_fit_that_would_go_beyond_is_refused_before_it_and_not_charged(budget):
    def forever():
        while True:
            spend(budget)

    refused = r"ε = 1, δ = 1e-08\) and the \d+ before it the data would cost ε = .* more than 3; ask for"
    with pytest.raises(BudgetSpent, match=refused):
        forever()
    assert len(budget.charges) >= 4  # basic composition would end at 3
    assert budget.epsilon_spent <= 3 * (1 + 1e-6)
    spend(budget, 0.01)  # less is admitted


def test_what_is_not_gaussian_alone_adds_up():
    budget = DataBudget.create(None, epsilon=2.5, delta=1e-6)
    pure = (CountedRelease(Laplace(1.0), 1, "noise"),)
    spend(budget, 1.0, 0.0, pure)
    spend(budget, 1.0, 0.0, ())  # a method that says its releases only while it runs
    assert budget.epsilon_spent == pytest.approx(2)
    with pytest.raises(BudgetSpent):
        spend(budget, 1.0, 0.0, pure)
    spend(budget, 0.4, 1e-8)
    assert 2 < budget.epsilon_spent <= 2.4


def test_a_gaussian_beside_another_release_is_not_taken_for_gaussians_alone(budget):
    mixed = (*gaussian(0.5, 1e-8), CountedRelease(Laplace(2.0), 1, "noise"))
    for total in (1.0, 2.0):
        spend(budget, 1.0, 1e-8, mixed)
        assert budget.epsilon_spent == pytest.approx(total)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 3.0, 10.0, 30.0])
def test_no_test_tells_a_choice_better_than_the_gaussian_that_stands_for_it(epsilon):
    """All pairs of losses t and t - ε: the errors of the one test that is worth making, beside the Gaussian's."""
    t = np.linspace(0, epsilon, 20_001)[1:-1]
    alpha, beta = np.expm1(epsilon - t) / np.expm1(epsilon), np.expm1(t) / np.expm1(epsilon)
    apart = 1 / gaussian_for(BoundedRange(epsilon)).noise_multiplier
    of_gaussian = ndtr(-ndtri(alpha) - apart)
    assert np.all(of_gaussian <= beta * (1 + 1e-9))
    assert np.any(of_gaussian >= beta * (1 - 1e-6))  # so a smaller one would not do
    assert math.isfinite(gaussian_for(BoundedRange(1e6)).noise_multiplier)


def windowed(epsilon=1.0, delta=1e-8):
    """A plan of a choice beside Gaussians that costs (ε, δ), and 30 % of whose μ² is the choice."""
    mu = gaussian_mu(epsilon, delta)
    return (CountedRelease(BoundedRange(mu * math.sqrt(1.2)), 1, "window"),
            CountedRelease(Gaussian(1 / (mu * math.sqrt(0.69))), 1, "mean"))  # fmt: skip


def test_fits_with_a_choice_beside_gaussians_compose_gaussian_fors_do(budget):
    spend(budget, releases=windowed())
    assert budget.epsilon_spent <= 1  # the first costs no more than its own ε
    spend(budget, releases=windowed())
    spend(budget, releases=windowed())
    together = spent(windowed() * 3, 1e-6, Relation.REPLACE_ONE).epsilon
    assert together <= budget.epsilon_spent < 2
    spend(budget, releases=gaussian(0.5, 1e-8))
    assert budget.epsilon_spent < 2.1
    before = budget.epsilon_spent
    spend(budget, 0.1, 0.0, (CountedRelease(BoundedRange(0.1), 1, "median"),))  # δ = 0: one more Gaussian
    assert before < budget.epsilon_spent < before + 0.1
    with pytest.raises(BudgetSpent, match=r"ε = 4\.2"):  # none of them: all add up
        spend(budget, 0.1, 1e-9, (CountedRelease(Laplace(100.0), 1, ""), *gaussian(0.05, 1e-9)))


def worst_delta(budget, epsilon, first):
    """δ(ε) of one Gaussian fit, and then of the better of all Gaussians or one pure fit that the budget admits.

    Which of them is better is seen from the first one's privacy loss: an analyst who chooses by what she saw.
    """
    spend(budget, gaussian_epsilon(first, 1e-9), 1e-9, (CountedRelease(Gaussian(1 / first), 1, "first"),))

    def admits(epsilon, delta, *releases):
        plain = [{"release": ledger.plain(one), "count": 1, "label": "more"} for one in releases]
        return budget._total([*budget.charges, Charge("", "", epsilon, delta, plain)]) <= budget.epsilon

    def most(admitted):
        low, high = 1e-9, 2.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if admitted(middle) else (low, middle)
        return low

    mu = most(lambda mu: admits(gaussian_epsilon(mu, 1e-9), 1e-9, Gaussian(1 / mu)))
    pure = most(lambda e: admits(e, 0.0))
    z = np.linspace(-9, 9, 200_001)
    left = epsilon - first**2 / 2 - first * z
    of_gaussian = ndtr(mu / 2 - left / mu) - np.exp(left + log_ndtr(-mu / 2 - left / mu))
    yes = 1 / (1 + math.exp(-pure))  # randomised response
    of_pure = yes * np.maximum(-np.expm1(left - pure), 0) + (1 - yes) * np.maximum(-np.expm1(left + pure), 0)
    weight = np.exp(-(z**2) / 2)
    return float(np.maximum(of_gaussian, of_pure) @ weight / weight.sum())


@pytest.mark.thorough_but("1.0-1e-06")
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (3.0, 1e-6), (1.0, 1e-3)])
def test_an_analyst_who_chooses_by_what_she_saw_gets_no_more_than_the_budget(epsilon, delta):
    """With all of δ for the better of two ways to count she got 1.7 to 2.5 times δ."""
    most = gaussian_mu(epsilon, delta)
    for share in (0.06, 0.25, 0.7):
        budget = DataBudget.create(None, epsilon=epsilon, delta=delta)
        assert worst_delta(budget, epsilon, share * most) <= delta


def test_the_first_fit_costs_its_own_epsilon_and_no_second_is_admitted_by_that():
    budget = DataBudget.create(None, epsilon=1, delta=1e-8)
    spend(budget, releases=windowed())
    assert budget.epsilon_spent == 1
    with pytest.raises(BudgetSpent):
        spend(budget, 1e-6, 1e-9, gaussian(1e-6, 1e-9))


def test_a_plan_that_costs_more_than_is_asked_for_is_refused(budget):
    for releases in (gaussian(2.0, 1e-8), (CountedRelease(Laplace(0.5), 1, "noise"),)):
        with pytest.raises(PrivacyError, match="plans to release ε = 2"):
            spend(budget, 1.0, 1e-8, releases)
    assert budget.charges == []


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(-5.0, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, -1e-8), (1.0, 1.0), (1.0, math.nan), (1.0, math.inf)],
)
def test_a_charge_that_is_negative_or_not_finite_is_refused(budget, epsilon, delta):
    with pytest.raises(UserError, match=r"a fit costs ε >= 0 and δ in \[0, 1\)"):
        budget.charge("a fit", (), epsilon, delta)
    assert budget.charges == []


def test_a_fit_under_other_neighbours_is_refused(budget):
    with pytest.raises(UserError, match="under add-remove neighbours, the budget under replace-one"):
        spend(budget, relation="add-remove")


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"epsilon": math.inf}, {"delta": 0}, {"delta": 1}, {"relation": "friends"}]
)
def test_an_argument_that_does_not_fit_is_named_and_nothing_is_made(tmp_path, wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        DataBudget.create(tmp_path / "b", **{"epsilon": 1, "delta": 1e-6} | wrong)
    assert list(tmp_path.iterdir()) == []


# Threads and processes


@pytest.mark.parametrize("kept", ["file", "temporary"])
def test_of_24_threads_one_is_admitted(tmp_path, kept):
    budget = DataBudget.create(tmp_path / "b" if kept == "file" else None, epsilon=1, delta=1e-6)
    with ThreadPoolExecutor(24) as pool:
        assert sum(pool.map(admitted, [budget] * 24)) == 1
    assert budget.epsilon_spent == pytest.approx(0.9)


@pytest.mark.parametrize("kept", ["file", "temporary"])
def test_of_6_forks_one_is_admitted_and_the_parent_sees_it(tmp_path, kept):
    budget = DataBudget.create(tmp_path / "b" if kept == "file" else None, epsilon=1, delta=1e-6)
    with FORK.Pool(6) as pool:
        assert sum(pool.map(admitted, [budget] * 6, chunksize=1)) == 1
    assert budget.epsilon_spent == pytest.approx(0.9)
    assert admitted(budget) == 0


def test_a_fork_that_ends_leaves_the_temporary_file_which_goes_with_its_maker():
    budget = DataBudget.create(None, epsilon=1, delta=1e-6)
    child = FORK.Process(target=budget.__class__.charges.fget, args=(budget,))
    child.start()
    child.join()
    folder = Path(budget.file).parent
    assert budget.charges == []
    assert folder.exists()
    del budget, child
    assert not folder.exists()


def test_clones_and_pickles_spend_the_same_budget(budget):
    assert copy.deepcopy(budget) is budget
    spend(pickle.loads(pickle.dumps(budget)))
    assert len(budget.charges) == 1


def charging(file, name, said):
    """Charge for ever, and say so on a pipe after each."""
    budget = DataBudget(file)
    for i in itertools.count():
        budget.charge(f"{name}/{i}", (), 1e-6, 0.0)
        os.write(said, f"{name}/{i}\n".encode())
        time.sleep(0.001)  # the other's turn


def test_no_acknowledged_charge_is_lost_when_processes_are_killed_while_charging(tmp_path):
    DataBudget.create(tmp_path / "b", epsilon=1, delta=1e-6)
    acknowledged = []
    for round_ in range(3):
        end, said = os.pipe()
        running = [FORK.Process(target=charging, args=(tmp_path / "b", f"{round_}.{i}", said)) for i in "ab"]
        for process in running:
            process.start()
        os.close(said)
        with open(end, encoding="utf-8") as lines:
            for line in lines:
                acknowledged.append(line.strip())
                if len({one.partition("/")[0] for one in acknowledged}) == 2 * (round_ + 1):  # both are charging
                    break
            time.sleep(0.05 * (1 + round_))
            for process in running:
                process.kill()
                process.join()
            acknowledged += [line.strip() for line in lines]
    kept = [one.what for one in DataBudget(tmp_path / "b").charges]
    assert set(acknowledged) <= set(kept)
    assert len(kept) == len(set(kept))
    assert len(acknowledged) <= len(kept) <= len(acknowledged) + 6  # one of each may have been killed before it said so


@pytest.mark.thorough
def test_a_charge_to_ten_thousand_takes_less_than_a_second(tmp_path):
    budget = DataBudget.create(tmp_path / "b", epsilon=3, delta=1e-6)
    mark, rows = budget.mark, []
    for i in range(10_000):
        known = [{"release": {"kind": "Gaussian", "noise_multiplier": 1e3 + i / 100}, "count": 1, "label": "gradient"}]
        charge = {"when": "", "what": "a fit", "epsilon": 0.01, "delta": 1e-9, "releases": known}
        body = json.dumps(charge)
        mark = _mark(mark, body)
        rows.append((i + 1, body, mark))
    with contextlib.closing(sqlite3.connect(budget.file)) as db, db:
        db.executemany("INSERT INTO charges VALUES (?, ?, ?)", rows)
    spend(budget, 0.1)
    started = time.process_time()
    spend(budget, 0.1)
    assert time.process_time() - started < 1
    assert len(budget.charges) == 10_002


# The file


@pytest.mark.parametrize("name", ["b", "a budget?mode=ro#%20", "ü"])
def test_a_relative_file_stays_where_it_is_when_the_process_goes_elsewhere(tmp_path, monkeypatch, name):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    budget = DataBudget.create(name, epsilon=1, delta=1e-6)
    assert admitted(budget) == 1
    monkeypatch.chdir("elsewhere")
    assert budget.epsilon_spent == pytest.approx(0.9)
    assert admitted(budget) == 0
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == [name]


def test_a_symbolic_link_is_the_file_that_it_leads_to(file):
    link = file.with_name("link")
    link.symlink_to(file)
    through = DataBudget(link)
    link.unlink()
    assert admitted(through, 0.5) == 1
    assert DataBudget(file).epsilon_spent == pytest.approx(0.9)


def test_a_second_name_is_refused(file):
    budget = DataBudget(file)
    os.link(file, file.with_name("second"))
    for name in ("b", "second"):
        with pytest.raises(UserError, match="has a second name"):
            DataBudget(file.with_name(name))
    with pytest.raises(UserError, match="has a second name"):
        admitted(budget)


def test_a_renamed_file_goes_on(file):
    file.rename(file.with_name("renamed"))
    assert DataBudget(file.with_name("renamed")).epsilon_spent == pytest.approx(0.4)


def test_a_deleted_file_is_no_new_budget(file):
    budget = DataBudget(file)
    file.unlink()
    for use in (lambda: admitted(budget), lambda: budget.epsilon_spent, lambda: DataBudget(file)):
        with pytest.raises(UserError, match="is gone; restore it: without it nobody knows what is spent"):
            use()
    assert not file.exists()


def test_a_file_made_anew_is_refused_by_whoever_saw_the_first(file):
    budget = DataBudget(file)
    file.unlink()
    DataBudget.create(file, epsilon=1, delta=1e-6)
    with pytest.raises(UserError, match="lacks what was charged to it before"):
        admitted(budget)


def test_a_file_rolled_back_is_refused_by_the_object_its_pickle_and_the_mark(file):
    before = file.read_bytes()
    budget = DataBudget(file)
    mark = budget.charge("another fit", (), 0.3, 0.0)
    assert mark == budget.mark
    uses = (
        budget.charge,
        lambda *fit: DataBudget(file, seen=mark).charge(*fit),
        pickle.loads(pickle.dumps(budget)).charge,
    )
    file.write_bytes(before)  # the same inode
    for _ in range(2):  # the second time with another history
        for use in uses:
            with pytest.raises(UserError, match="lacks what was charged to it before"):
                use("a fit", (), 0.3, 0.0)
        DataBudget(file).charge("another history", (), 0.2, 0.0)


def test_a_copy_is_refused_until_it_is_adopted(file):
    copied = Path(shutil.copy(file, file.with_name("copy")))
    with pytest.raises(UserError, match=r"is a copy, .* run DataBudget\(file, adopt=True\) once"):
        DataBudget(copied)
    mark = DataBudget(file).charge("after the copy was made", (), 0.1, 0.0)
    with pytest.raises(UserError, match="lacks what was charged to it before"):
        DataBudget(copied, seen=mark, adopt=True)
    shutil.copyfile(file, copied)  # into the same inode, which is not the first file's
    file.unlink()
    adopted = DataBudget(copied, seen=mark, adopt=True)
    assert adopted.epsilon_spent == pytest.approx(0.5)
    assert admitted(adopted, 0.5) == 1
    assert len(DataBudget(copied).charges) == 3


def test_a_journal_that_a_copy_may_lack_is_refused(file):
    written(file, "PRAGMA journal_mode=WAL")
    with pytest.raises(UserError, match=r"journal_mode wal by another program; .* PRAGMA journal_mode=DELETE"):
        DataBudget(file)
    written(file, "PRAGMA journal_mode=DELETE")
    assert DataBudget(file).epsilon_spent == pytest.approx(0.4)


def test_a_main_file_without_its_wal_is_refused(file):
    """The charge is in the -wal alone: what stays behind would admit its ε again."""
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("DELETE FROM charges")
        db.commit()
        alone = file.read_bytes()
    file.write_bytes(alone)
    with pytest.raises(UserError, match="journal_mode wal"):
        DataBudget(file)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE budget SET epsilon = 100.0",
        "UPDATE budget SET delta = 0.5",
        "UPDATE budget SET relation = 'friends'",
        "UPDATE budget SET epsilon = 'all'",
        "INSERT INTO budget SELECT * FROM budget",
        "DELETE FROM budget",
        "UPDATE charges SET body = replace(body, '0.4', '0.1')",
        "UPDATE charges SET mark = 'x' WHERE number = 2",
        "UPDATE charges SET number = 9 WHERE number = 2",
        "DELETE FROM charges WHERE number = 1",
    ],
)
def test_a_changed_file_is_refused(file, change):
    DataBudget(file).charge("the second fit", (), 0.2, 0.0)
    written(file, change)
    with pytest.raises(UserError, match="b was changed or is damaged; restore it: without it nobody knows"):
        DataBudget(file)


@pytest.mark.parametrize("body", ["{}", "[", '{"when": "", "what": "", "epsilon": -1, "delta": 0, "releases": []}',
    '{"when": "", "what": "", "epsilon": 1, "delta": 0, "releases": [{"release": {"kind": "Gaussian"}}]}',
    '{"when": "", "what": "", "epsilon": 0.1, "delta": 0, "releases": [{"release": {"kind": "Gaussian", '
    '"noise_multiplier": 1.0}, "count": -1, "label": ""}]}'])  # fmt: skip
def test_a_body_that_is_no_charge_is_refused_though_its_mark_fits(file, body):
    mark = _mark(DataBudget(file).mark, body)
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO charges VALUES (2, ?, ?)", (body, mark))
    with pytest.raises(UserError, match="b was changed or is damaged"):
        DataBudget(file)


@pytest.mark.parametrize("content", [b"x", b"SQLite format 3\0", b"{" * 5000, None])
def test_what_is_no_budget_is_refused(tmp_path, content):
    if content is None:
        written(tmp_path / "b", "CREATE TABLE t (x)")
    else:
        (tmp_path / "b").write_bytes(content)
    with pytest.raises(UserError, match=r"b: .*; it is no budget, or damaged\. DataBudget\.create\(file, "):
        DataBudget(tmp_path / "b")


def test_nothing_is_admitted_while_another_process_holds_the_file(file, monkeypatch):
    monkeypatch.setattr("dpbench.privacy.data_budget.PATIENCE", 0.05)
    budget = DataBudget(file)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="database is locked"):
            admitted(budget)
    assert len(budget.charges) == 1
