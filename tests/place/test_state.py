"""What workers know of each other: exact about oneself, as old as the last push about others, by column."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Fleet, InputError, Model, StateTable, Worker
from fairway.place.fleet import OUTSIDE
from fairway.place.state import ABSENT, NEVER, Load, Pushes, RunningLoad

FLEET = Fleet.of([Worker(f"w{number}", 100) for number in range(3)], [Model("a", 30), Model("b", 50), Model("c", 1)])


def test_others_see_a_load_after_its_delay_and_oneself_at_once() -> None:
    table = StateTable(FLEET, loads=Pushes(delay=0.01), caches=Pushes(delay=0.5))
    table.write_load(1, 2.0, NEVER, now=1.0)
    table.write_cache(1, 0, True, now=1.0)
    assert table.view(1, 1.0).load(1, 1.0) == 2.0
    assert table.view(1, 1.0).holds(1, 0)
    assert table.view(1, 1.0).free_bytes(1) == 70
    assert table.view(0, 1.009).load(1, 1.009) == 0.0
    assert table.view(0, 1.01).load(1, 1.01) == 2.0
    assert not table.view(0, 1.4).holds(1, 0)
    assert table.view(OUTSIDE, 1.5).holds(1, 0)
    assert table.view(OUTSIDE, 1.5).free_bytes(1) == 70


def test_columns_age_on_their_own_and_a_period_shows_the_last_value_before_each_push() -> None:
    table = StateTable(FLEET, loads=Pushes(period=0.1), caches=Pushes())
    table.write_load(0, 1.0, NEVER, now=0.31)
    table.write_load(0, 5.0, NEVER, now=0.36)
    table.write_cache(0, 1, True, now=0.31)
    assert table.view(2, 0.31).holds(0, 1)
    assert table.view(2, 0.39).load(0, 0.39) == 0.0
    assert table.view(2, 0.41).load(0, 0.41) == 5.0


def test_with_no_age_every_worker_sees_everything() -> None:
    table = StateTable(FLEET)
    table.write_load(0, 1.0, 9.0, now=5.0)
    assert table.view(OUTSIDE, 5.0).load(0, 5.0) == 5.0
    assert table.view(1, 8.0).load(0, 8.0) == 2.0
    assert table.view(1, 99.0).load(0, 99.0) == 1.0


def test_free_memory_is_what_the_models_there_leave() -> None:
    table = StateTable(FLEET)
    for model, held in ((0, True), (1, True), (0, True), (0, False), (2, True)):
        table.write_cache(2, model, held, now=0.0)
    assert table.view(0, 0.0).free_bytes(2) == 49
    assert [table.view(0, 0.0).holds(2, model) for model in range(3)] == [False, True, True]


def test_a_worker_that_left_is_infinitely_loaded_and_what_it_still_pushes_changes_nothing() -> None:
    table = StateTable(FLEET, loads=Pushes(delay=1.0), caches=Pushes(delay=1.0))
    table.write_load(1, 3.0, NEVER, now=0.0)
    table.write_cache(1, 0, True, now=0.0)
    table.leave(1)
    table.write_load(1, 4.0, NEVER, now=0.5)
    view = table.view(0, 5.0)
    assert view.load(1, 5.0) == ABSENT
    assert not view.is_present(1)
    assert not table.receive_load(1, 99, 1.0, NEVER)
    table.join(1)
    view = table.view(0, 5.0)
    assert view.is_present(1)
    assert (view.load(1, 5.0), view.holds(1, 0), view.free_bytes(1)) == (0.0, False, 100)


def test_what_was_under_way_when_a_worker_left_is_not_seen_after_it_came_back() -> None:
    table = StateTable(FLEET, loads=Pushes(delay=1.0), caches=Pushes(delay=1.0))
    table.write_load(1, 3.0, NEVER, now=0.0)
    table.write_cache(1, 0, True, now=0.0)
    table.leave(1)
    table.join(1)
    view = table.view(0, 2.0)
    assert (view.load(1, 2.0), view.holds(1, 0), view.free_bytes(1)) == (0.0, False, 100)


def test_of_messages_that_overtake_each_other_the_newest_counts() -> None:
    table = StateTable(FLEET)
    assert table.receive_load(1, 2, 7.0, NEVER)
    assert not table.receive_load(1, 1, 3.0, NEVER)
    assert table.receive_cache(1, 0, [0, 1])
    assert table.receive_cache(1, 5, [2])
    assert not table.receive_cache(1, 4, [0])
    view = table.view(0, 0.0)
    assert view.load(1, 0.0) == 7.0
    assert [view.holds(1, model) for model in range(3)] == [False, False, True]
    assert view.free_bytes(1) == 99


@pytest.mark.parametrize("field", ["period", "delay"])
@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_ages_are_seconds(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{field}: {value} given, expected seconds >= 0"):
        Pushes(**{field: value})


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 5)), max_size=20), st.floats(0.001, 2), st.floats(0, 12))
def test_others_see_the_last_value_that_is_old_enough(
    writes: list[tuple[float, float]], delay: float, now: float
) -> None:
    table = StateTable(FLEET, loads=Pushes(delay=delay))
    writes.sort(key=lambda write: write[0])
    for at, load in writes:
        table.write_load(0, load, NEVER, now=at)
    visible = [load for at, load in writes if at + delay <= now]
    assert table.view(1, now).load(0, now) == (visible[-1] if visible else 0.0)
    assert table.view(0, now).load(0, now) == (writes[-1][1] if writes else 0.0)


@pytest.mark.parametrize(("running", "during"), [("decays", 1.5), ("counts", 2.0), ("ignored", 1.0)])
def test_the_running_task_counts_as_the_scheduler_says(running: RunningLoad, during: float) -> None:
    load = Load(running)
    load.enqueue(1.0)
    load.enqueue(1.0)
    load.start(1.0, now=10.0)
    assert load.queued + max(0.0, load.busy_until - 10.5) == during
    load.finish()
    assert (load.queued, load.busy_until) == (1.0, NEVER)


def test_a_start_that_first_fetches_is_busy_for_longer() -> None:
    load = Load()
    load.enqueue(1.0)
    load.start(1.0, now=0.0, expected=1.6)
    assert (load.queued, load.busy_until) == (0.0, 1.6)


@given(st.lists(st.floats(0, 1e3), max_size=30), st.sampled_from(["decays", "counts", "ignored"]), st.randoms())
def test_a_load_is_never_negative_and_nothing_at_the_end(
    tasks: list[float], running: RunningLoad, order: object
) -> None:
    load = Load(running)
    for seconds in tasks:
        load.enqueue(seconds)
    order.shuffle(tasks)  # type: ignore[attr-defined]
    for now, seconds in enumerate(tasks):
        load.start(seconds, float(now))
        assert load.queued >= 0
        load.finish()
    assert load.queued == 0
    assert load.busy_until == NEVER
