import numpy as np
import pytest

from dpbench.run.bind import Clock, ObjectiveTrace, schedule


@pytest.mark.parametrize("last", [1, 5, 20, 21, 100, 30_000])
def test_schedule_is_increasing_and_holds_both_ends(last):
    iterations = schedule(last)
    assert iterations == sorted(set(iterations))
    assert iterations[0] == 0
    assert iterations[-1] == last
    assert len(iterations) < 120


def test_trace_records_scheduled_iterations_only():
    trace = ObjectiveTrace(lambda W: W.sum(axis=1), [0, 2], Clock())
    for t in range(4):
        trace(t, np.full((2, 1), float(t)), passes=t)
    assert [(p[0], p[1].tolist(), p[3].tolist()) for p in trace.points] == [
        (0, [0.0, 0.0], [0.0, 0.0]),
        (2, [2.0, 2.0], [2.0, 2.0]),
    ]


def test_the_clock_stands_still_while_the_run_is_observed():
    clock = Clock()
    before = clock.seconds
    clock.outside(lambda: sum(range(2_000_000)))
    assert clock.seconds - before < clock._paused


def test_the_final_iteration_is_recorded_even_where_the_schedule_goes_on():
    trace = ObjectiveTrace(lambda W: W.sum(axis=1), [0, 2, 10], Clock())
    for t in range(5):
        trace(t, np.ones((1, 1)), passes=t, final=t == 4)
    assert [p[0] for p in trace.points] == [0, 2, 4]
    trace = ObjectiveTrace(lambda W: W.sum(axis=1), [0, 2], Clock())
    for t in range(3):
        trace(t, np.ones((1, 1)), passes=t, final=t == 2)
    assert [p[0] for p in trace.points] == [0, 2]


def test_replicates_may_end_at_iterations_of_their_own():
    trace = ObjectiveTrace(lambda W: W.sum(axis=1), [0, 3], Clock())
    trace(0, np.ones((2, 1)), passes=np.zeros(2), final=np.array([False, False]))
    trace(1, np.ones((2, 1)), passes=np.ones(2), final=np.array([False, False]))
    trace(2, np.ones((2, 1)), passes=np.array([2.0, 5.0]), final=np.array([False, True]))
    trace(3, np.ones((2, 1)), passes=np.array([3.0, np.nan]), final=np.array([True, False]))
    recorded = [(point[0], i, point[1][i]) for point in trace.points for i in range(2) if not np.isnan(point[1][i])]
    assert recorded == [(0, 0, 0.0), (0, 1, 0.0), (2, 1, 5.0), (3, 0, 3.0)]
