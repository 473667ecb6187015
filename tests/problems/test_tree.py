"""Parts of sums have the same total, to the bit, whoever adds them and in whatever order."""

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.problems.sharded import Question
from dpbench.problems.tree import joined, total


def leaves(count, seed=0):
    rng = np.random.default_rng(seed)
    return {(0, i): rng.standard_normal(3) * 10.0 ** rng.integers(-8, 8) for i in range(count)}


def passed_on(parts, rng):
    """The parts of a random tree: shards in random hands, each of which joins what it has and passes it on."""
    hands = rng.integers(0, 1 + rng.integers(len(parts)), len(parts))
    groups = [
        [{span: parts[span]} for span, hand in zip(parts, hands, strict=True) if hand == one] for one in set(hands)
    ]
    waiting = [joined(group, np.add) for group in groups]
    while len(waiting) > 1:
        rng.shuffle(waiting)
        several = int(rng.integers(2, 5))
        waiting.append(joined([waiting.pop() for _ in range(min(several, len(waiting)))], np.add))
    return waiting[0]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 37])
def test_bits_do_not_depend_on_orders_or_shapes_of_trees(count):
    rng, parts = np.random.default_rng(count), leaves(count)
    here = total(joined([parts], np.add), np.add).tobytes()
    for _ in range(20):
        assert total(passed_on(parts, rng), np.add).tobytes() == here
    some = {span: parts[span] for span in sorted(parts) if rng.random() < 0.5 or span == (0, 0)}
    there = total(joined([some], np.add), np.add).tobytes()
    for _ in range(20):
        assert total(passed_on(some, rng), np.add).tobytes() == there
    one_by_one = [sum(parts[0, int(i)] for i in rng.permutation(count)).tobytes() for _ in range(20)]
    assert (len(set(one_by_one)) > 1) == (count > 2)  # where the order is left to chance, it shows


def test_integers_are_added_exactly_and_maxima_taken():
    rng = np.random.default_rng(0)
    parts = {(0, i): rng.integers(-(2**55), 2**55, 3) for i in range(13)}
    whole = sum(parts.values())
    for _ in range(10):
        np.testing.assert_array_equal(total(passed_on(parts, rng), np.add), whole)
    largest = total(joined([parts], np.maximum), np.maximum)
    np.testing.assert_array_equal(largest, np.max(list(parts.values()), axis=0))


def test_two_halves_become_their_span_and_nothing_else_does():
    parts = {(0, 1): 1.0, (0, 2): 2.0, (0, 3): 4.0}
    assert joined([parts], np.add) == {(0, 1): 1.0, (1, 1): 6.0}
    assert joined([{(0, 3): 4.0}, {(1, 0): 8.0, (0, 2): 2.0}], np.add) == {(2, 0): 14.0}
    assert joined([parts], None) == parts


@pytest.mark.parametrize("came", [[0, 1, 2], [0, 1, 2, 3, 0], [0, 1, 2, 3, 5], [0, 1, 2, 5], []])
def test_an_answer_that_is_missing_or_comes_twice_is_no_sum_of_the_others(came):
    question = Question(len, (), dict.fromkeys(range(4), ()), np.add)
    whole = joined(({(0, i): 10.0**i} for i in (2, 0, 3, 1)), np.add)
    assert question.answer(whole) == 1111.0
    with pytest.raises(UserError, match="answers of 4 shards came"):
        question.answer(joined(({(0, i): 10.0**i} for i in came), np.add))
    assert question.answer(joined(({(0, i): 10.0**i} for i in (1, 1, 0, 2, 3)), np.add)) == 1111.0  # one answer, twice
