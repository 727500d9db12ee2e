"""The order of events, the clock, and what happens to things that are cancelled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.sim.loop import LATE, NORMAL, URGENT, Loop

times = st.sampled_from([0.0, 0.5, 1.0, 2.0, 1e9])
entries = st.lists(st.tuples(times, st.sampled_from([URGENT, NORMAL, LATE])), max_size=30)


@given(entries)
def test_events_happen_by_time_then_priority_then_order_of_scheduling(scheduled: list[tuple[float, int]]) -> None:
    loop, seen = Loop(), []
    for number, (time, priority) in enumerate(scheduled):
        loop.at(time, lambda entry=(time, priority, number): seen.append((loop.now, *entry)), priority)
    loop.run()
    assert [entry[1:] for entry in seen] == sorted((*entry, number) for number, entry in enumerate(scheduled))
    assert all(now == time for now, time, _, _ in seen)
    assert loop.events == len(scheduled)


def test_what_an_event_causes_at_its_own_time_comes_after_what_was_scheduled_for_it_before() -> None:
    loop, seen = Loop(), []
    loop.at(1.0, lambda: (seen.append("first"), loop.after(0.0, lambda: seen.append("caused")))[0])
    loop.at(1.0, lambda: seen.append("second"))
    loop.run()
    assert seen == ["first", "second", "caused"]


def test_an_urgent_event_that_is_caused_overtakes_normal_ones_at_the_same_time() -> None:
    loop, seen = Loop(), []
    loop.at(1.0, lambda: (seen.append("first"), loop.after(0.0, lambda: seen.append("urgent"), URGENT))[0])
    loop.at(1.0, lambda: seen.append("second"))
    loop.run()
    assert seen == ["first", "urgent", "second"]


def test_what_is_cancelled_does_not_happen_and_does_not_move_the_clock() -> None:
    loop, seen = Loop(), []
    late = loop.at(5.0, lambda: seen.append("late"))
    loop.at(1.0, late.cancel)
    loop.run()
    assert seen == []
    assert loop.now == 1.0
    assert loop.events == 1
    late.cancel()


def test_a_run_stops_at_its_limit_and_can_go_on() -> None:
    loop, seen = Loop(start=10.0), []
    for time in (11.0, 12.0, 13.0):
        loop.at(time, lambda time=time: seen.append(time))
    loop.run(until=12.0)
    assert (seen, loop.now) == ([11.0, 12.0], 12.0)
    loop.run(until=12.5)
    assert (seen, loop.now) == ([11.0, 12.0], 12.5)
    loop.run()
    assert (seen, loop.now) == ([11.0, 12.0, 13.0], 13.0)


@pytest.mark.parametrize("time", [0.5, float("nan"), float("inf")])
def test_time_does_not_go_back_and_has_an_end(time: float) -> None:
    loop = Loop(start=1.0)
    with pytest.raises(ValueError, match="time does not go back"):
        loop.at(time, lambda: None)
