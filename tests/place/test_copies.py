"""Copies of models where tasks run side by side: each task has one to itself, and the longest unused goes first."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.place.memory import GRACE_SECONDS, DeviceMemory, DoesNotFitError, MemoryPolicy, Preparation

A, B, C = range(3)
LEAST_RECENT = MemoryPolicy("least-recent", 0, 0)
LOOK_AHEAD = MemoryPolicy()


def shared(capacity: float, sizes: list[float], policy: MemoryPolicy = LEAST_RECENT) -> DeviceMemory:
    return DeviceMemory(capacity, sizes, policy, shared=True)


def fill(device: DeviceMemory, *idle: tuple[int, float]) -> None:
    """Copies that are there and have been idle since then."""
    for model, since in idle:
        device.adopt(model, since)


def test_copies_are_counted_where_workers_are_shared_or_the_longest_unused_goes_first() -> None:
    assert not DeviceMemory(1, [1], LOOK_AHEAD).counts_use
    assert DeviceMemory(1, [1], LOOK_AHEAD, shared=True).counts_use
    assert DeviceMemory(1, [1], LEAST_RECENT).counts_use


def test_each_task_has_a_copy_to_itself() -> None:
    device = shared(3, [1.0])
    for turn in range(3):
        assert device.prepare([A], []) == Preparation((), (A,), ())
        assert not device.claim(A), "it is on its way"
        assert (device.copies(A), device.copying, device.free) == (turn + 1, {A: turn + 1}, 2 - turn)
    with pytest.raises(DoesNotFitError):
        device.prepare([A], [])
    for turn in range(3):
        device.copied(A, 1.0)
        assert device.copying == ({A: 2 - turn} if turn < 2 else {})
        assert device.idle(A) == 0, "each has a task that waited for it"
    device.release(A, 2.0)
    assert (device.idle(A), device.available(A), device.copies(A)) == (1, 1, 3)
    assert device.prepare([A], []) == Preparation((), (), ())
    assert device.claim(A), "it is there"
    assert device.idle(A) == 0


def test_a_copy_that_was_begun_ahead_is_had_by_the_task_that_comes() -> None:
    device = shared(2, [1.0])
    assert device.warm(A, 0.0, ahead=True) == ()
    assert (device.available(A), device.idle(A)) == (1, 0)
    assert device.prepare([A], []) == Preparation((), (), ()), "the one on its way will do"
    assert not device.claim(A)
    assert device.available(A) == 0, "it is promised"
    assert device.prepare([A], []).fetch == (A,), "the next task needs another one"
    assert not device.claim(A)
    device.copied(A, 1.0)
    device.copied(A, 1.0)
    assert (device.idle(A), device.copies(A)) == (0, 2)


def test_a_copy_that_comes_without_a_task_is_idle_from_then_on() -> None:
    device = shared(1, [1.0])
    device.warm(A, 0.0, ahead=True)
    device.copied(A, 5.0)
    assert device.idle(A) == 1
    assert device.next_expiry(10.0) == 15.0


def test_a_task_has_the_copy_that_was_used_last() -> None:
    device = shared(3, [1.0])
    fill(device, (A, 1.0), (A, 2.0), (A, 3.0))
    assert device.claim(A)
    assert device.expired(11.0, 10.0) == [A], "that of 1.0"
    assert device.next_expiry(10.0) == 12.0


def test_a_copy_that_failed_leaves_its_room_and_its_task_has_none() -> None:
    device = shared(2, [1.0])
    device.prepare([A], [])
    device.claim(A)
    device.failed(A)
    assert (device.free, device.copies(A), device.available(A), device.copying) == (2, 0, 0, {})
    device.prepare([A], [])
    assert device.available(A) == 1, "no task of before waits for it"


def test_a_copy_that_its_task_no_longer_waits_for_is_idle_when_it_comes() -> None:
    device = shared(3, [1.0])
    for _ in range(2):
        device.prepare([A], [])
        device.claim(A)
    device.disclaim(A)
    assert device.available(A) == 1
    device.copied(A, 1.0)
    assert device.idle(A) == 0, "the other task has it"
    device.copied(A, 2.0)
    assert (device.idle(A), device.copies(A)) == (1, 2)


def test_the_longest_unused_goes_first_and_copies_in_use_stay() -> None:
    device = shared(4, [1.0, 1.0, 1.0, 2.0])
    fill(device, (A, 3.0), (B, 1.0), (A, 2.0), (C, 4.0))
    assert device.claim(B)
    assert device.prepare([3], []).evict == (A, A), "B was idle for longer, but a task has it"
    device.release(B, 9.0)
    device.copied(3, 9.0)
    assert device.prepare([A, B], []).evict == (C,), "B itself is kept for the task"


def test_between_equals_the_model_with_the_lower_number_goes_first() -> None:
    device = shared(3, [1.0] * 4)
    fill(device, (C, 1.0), (B, 1.0), (A, 1.0))
    assert device.prepare([3], []).evict == (A,)


def test_memory_that_looks_ahead_gives_up_idle_copies_only() -> None:
    device = shared(4, [1.0, 1.0, 1.0, 2.0], LOOK_AHEAD)
    fill(device, (A, 0.0), (A, 0.0), (B, 0.0), (C, 0.0))
    device.claim(A)
    assert device.prepare([3], [[B]]).evict == (A, C), "B is needed, the other copy of A is in use"


def test_a_copy_for_a_waiting_job_drives_out_what_has_been_idle_for_a_while() -> None:
    device = shared(2, [1.0, 1.0, 1.0])
    fill(device, (A, 10.0), (B, 10.5))
    assert device.warm(C, 10.9, ahead=False) is None, "both became idle just now"
    assert device.warm(C, 10.0 + GRACE_SECONDS, ahead=True) is None, "nothing goes for what may not be needed"
    assert device.warm(C, 10.0 + GRACE_SECONDS, ahead=False) == (A,)
    assert (device.copies(A), device.copies(C), device.free) == (0, 1, 0)
    assert device.warm(A, 99.0, ahead=False) == (B,), "C is on its way"
    assert device.warm(B, 99.0, ahead=False) is None


def test_grace_is_for_copies_that_the_planner_wants_not_for_tasks_that_are_there() -> None:
    device = shared(1, [1.0, 1.0])
    fill(device, (A, 10.0))
    assert device.prepare([B], []).evict == (A,)


def test_copies_expire_one_by_one() -> None:
    device = shared(5, [1.0, 2.0])
    fill(device, (A, 1.0), (A, 4.0), (B, 2.0))
    assert device.next_expiry(10.0) == 11.0
    assert device.expired(10.9, 10.0) == []
    assert device.expired(12.0, 10.0) == [A, B]
    assert (device.copies(A), device.copies(B), device.free) == (1, 0, 4)
    assert device.claim(A)
    assert device.next_expiry(10.0) == math.inf, "a copy in use does not expire"
    assert device.expired(99.0, 10.0) == []


def test_pinned_models_neither_expire_nor_go() -> None:
    device = shared(2, [1.0, 1.0, 1.0])
    fill(device, (A, 1.0), (B, 2.0))
    device.pin(A)
    assert device.next_expiry(10.0) == 12.0
    assert device.expired(99.0, 10.0) == [B]
    fill(device, (B, 99.0))
    assert device.warm(C, 200.0, ahead=False) == (B,)
    with pytest.raises(DoesNotFitError):
        device.prepare([B], [])


def test_a_copy_on_its_way_can_be_given_up() -> None:
    device = shared(2, [1.0])
    device.warm(A, 0.0, ahead=True)
    fill(device, (A, 0.0))
    device.drop(A)
    assert (device.idle(A), device.copying) == (0, {A: 1}), "an idle one goes first"
    device.drop(A)
    assert (device.copies(A), device.copying, device.free) == (0, {}, 2)


OPERATIONS = st.tuples(
    st.sampled_from(["run", "end", "come", "fail", "warm", "ahead", "expire", "pin"]),
    st.integers(0, 4),
    st.integers(0, 4),
    st.floats(0.0, 3.0),
)


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.integers(40, 120),
    st.lists(OPERATIONS, max_size=60),
    st.sampled_from([LEAST_RECENT, LOOK_AHEAD, MemoryPolicy(replaces=True), MemoryPolicy("fifo", 0, 0)]),
)
def test_bytes_are_conserved_whatever_happens(
    sizes: list[int], capacity: int, operations: list[tuple[Any, ...]], policy: MemoryPolicy
) -> None:
    device, now = shared(capacity, [float(size) for size in sizes], policy), 0.0
    running: list[tuple[int, ...]] = []
    waiting: list[tuple[tuple[int, ...], set[int]]] = []  # tasks that have claimed copies, and what is not there yet
    pinned: set[int] = set()
    copies = dict.fromkeys(range(len(sizes)), 0)

    def counted(evicted: tuple[int, ...], fetched: tuple[int, ...]) -> None:
        for model in evicted:
            assert model not in pinned
            copies[model] -= 1
        for model in fetched:
            copies[model] += 1

    for name, first, second, seconds in operations:
        model, now = first % len(sizes), now + seconds
        match name:
            case "run":
                task = tuple(dict.fromkeys((model, second % len(sizes))))
                try:
                    evict, fetch, prefetch = device.prepare(task, [(second % len(sizes),)])
                except DoesNotFitError:
                    continue
                counted(evict, fetch + prefetch)
                assert not set(evict) & set(task)
                assert all(device.available(each) > 0 for each in task)
                lacks = {each for each in task if not device.claim(each)}
                if lacks:
                    waiting.append((task, lacks))
                else:
                    running.append(task)
            case "end" if running:
                for each in running.pop(first % len(running)):
                    device.release(each, now)
            case "come" if device.copying.get(model):
                device.copied(model, now)
                task_of = next((task for task in waiting if model in task[1]), None)
                if task_of is not None:
                    task_of[1].discard(model)
                    if not task_of[1]:
                        waiting.remove(task_of)
                        running.append(task_of[0])
            case "fail" if device.copying.get(model):
                device.failed(model)
                copies[model] -= 1
                if not copies[model]:
                    pinned.discard(model)
                task_of = next((task for task in waiting if model in task[1]), None)
                if task_of is not None:
                    waiting.remove(task_of)
                    for each in task_of[0]:
                        if each not in task_of[1]:
                            device.release(each, now)
                        elif each != model:
                            device.disclaim(each)
            case "warm" | "ahead":
                evicted = device.warm(model, now, ahead=name == "ahead")
                assert not (name == "ahead" and evicted)
                if evicted is not None:
                    counted(evicted, (model,))
            case "expire":
                counted(tuple(device.expired(now, 2.0)), ())
            case "pin" if model in device and not pinned:
                device.pin(model)
                pinned.add(model)

        used = dict.fromkeys(copies, 0)
        for task in running:
            for each in task:
                used[each] += 1
        for task, lacks in waiting:
            for each in set(task) - lacks:
                used[each] += 1
        for each, count in copies.items():
            assert device.copies(each) == count == device.idle(each) + device.copying.get(each, 0) + used[each]
            assert (each in device) == (count > 0)
            assert 0 <= device.available(each) <= count
        assert device.free + sum(sizes[each] * count for each, count in copies.items()) == capacity
        assert device.free >= 0
        assert pinned <= set(device.resident)
