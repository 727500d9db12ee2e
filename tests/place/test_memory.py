"""The memory of an accelerator: what goes, what comes, and that it is never overbooked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import InputError
from fairway.place.memory import DeviceMemory, DoesNotFitError, MemoryPolicy, Preparation

A, B, C, D, E = range(5)
LOOK_AHEAD = MemoryPolicy()
REPLACING = MemoryPolicy(replaces=True)
FIFO = MemoryPolicy("fifo", 0, 0)


def memory(
    capacity: float, sizes: list[float], policy: MemoryPolicy = LOOK_AHEAD, held: list[int] | None = None
) -> DeviceMemory:
    device = DeviceMemory(capacity, sizes, policy)
    for model in held or []:
        device.prepare([model], [])
        device.copied(model)
    return device


@pytest.mark.parametrize(("room", "evicted"), [(1, (C,)), (2, (C, A)), (3, (C, A, B))])
def test_first_goes_what_no_task_waits_for_then_what_is_used_last(room: int, evicted: tuple[int, ...]) -> None:
    device = memory(3, [1, 1, 1, room], held=[A, B, C])
    assert device.prepare([D], [[B], [A]]) == Preparation(evicted, (D,), ())
    assert set(device.resident) == {A, B, C, D} - set(evicted)
    assert device.free == 0


def test_fifo_evicts_in_order_of_arrival_and_never_prefetches() -> None:
    device = memory(3, [1, 1, 1, 2, 1], FIFO, held=[B, A, C])
    assert device.prepare([D], [[B], [A]]) == Preparation((B, A), (D,), ())
    device = memory(3, [1, 1, 1, 2, 1], FIFO)
    assert device.prepare([A], [[B]]) == Preparation((), (A,), ())


def test_models_that_no_task_waits_for_go_in_the_order_in_which_they_came() -> None:
    device = memory(3, [1, 1, 1, 1], held=[C, A, B])
    assert device.prepare([D], []).evict == (C,)


def test_guests_go_before_models_that_are_at_home_unless_a_task_waits_for_them() -> None:
    for queue, evicted in (([], (C, A)), ([[C]], (A, B)), ([[B], [C]], (A, C)), ([[A], [B], [C]], (C, B))):
        device = DeviceMemory(3, [1, 1, 1, 2], LOOK_AHEAD, homes=[B, D])
        for model in (C, B, A):
            device.prepare([model], [])
        assert device.prepare([D], queue).evict == evicted


def test_the_models_of_the_task_itself_stay() -> None:
    device = memory(3, [1, 1, 1, 1, 2], held=[A, B, C])
    assert device.prepare([A, D], []) == Preparation((B,), (D,), ())
    device = memory(3, [1, 1, 1, 1, 2], FIFO, held=[A, B, C])
    assert device.prepare([A, D], []) == Preparation((B,), (D,), ())


def test_pinned_models_stay() -> None:
    device = memory(3, [1, 1, 1, 2], held=[A, B, C])
    device.pin(A)
    assert device.prepare([D], [[B], [C]]).evict == (C, B)
    with pytest.raises(DoesNotFitError, match="1 more than the memory of 3 bytes has beside what is pinned"):
        device.prepare([B, D], [])
    assert device.prepare([B], []).evict == (D,)
    with pytest.raises(InputError, match="model 3 is not in memory, so it cannot be pinned"):
        device.pin(D)


def test_a_pinned_model_that_could_not_be_fetched_is_no_longer_pinned() -> None:
    device = memory(2, [1, 1, 2], held=[A])
    device.prepare([B], [])
    device.pin(B)
    device.failed(B)
    assert device.prepare([C], []).evict == (A,)


def test_what_cannot_fit_is_refused_and_changes_nothing() -> None:
    device = memory(3, [1, 1, 1, 4, 3], held=[A, B, C])
    with pytest.raises(DoesNotFitError, match=r"models \[3\] need 4 bytes together, 1 more than the memory of 3 bytes"):
        device.prepare([D], [])
    device.pin(B)
    with pytest.raises(DoesNotFitError):
        device.prepare([E], [])
    assert device.resident == (A, B, C)
    assert device.free == 0


def test_one_model_of_the_next_three_tasks_is_fetched_while_the_task_runs() -> None:
    device = memory(10, [1, 1, 1, 1, 1])
    assert device.prepare([A], [[A], [], [B, C], [D]]) == Preparation((), (A,), (B,))
    assert device.copying == {A: 1, B: 1}
    device.copied(A)
    device.copied(B)
    assert device.prepare([A], [[A], [B], [A], [D]]) == Preparation((), (), ())
    assert device.prepare([A], [[C]]).prefetch == (C,)


def test_a_prefetch_neither_evicts_nor_passes_over_an_earlier_model() -> None:
    device = memory(3, [1, 1, 1, 2], held=[A, B])
    assert device.prepare([A], [[D], [C]]).prefetch == ()
    assert device.prepare([A], [[C], [D]]).prefetch == (C,)
    several = MemoryPolicy(prefetch_models=2, prefetch_tasks=5)
    device = memory(4, [1, 1, 1, 2], several, held=[A])
    assert device.prepare([A], [[B], [D], [C]]).prefetch == (B, D)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ([[D]], Preparation((B,), (), (D,))),  # no task waits for B or C, and B came first
        ([[D], [B]], Preparation((C,), (), (D,))),
        ([[D], [B], [C]], Preparation((C,), (), (D,))),  # C is needed last
        ([[B], [D], [C]], Preparation((C,), (), (D,))),
        ([[B], [C], [D]], Preparation((), (), ())),  # both are needed first
        ([[B], [C], [A], [D]], Preparation((), (), ())),  # too far down the queue
        ([[E]], Preparation((), (), ())),  # does not fit beside A, which runs
    ],
)
def test_a_prefetch_may_replace_what_is_needed_later(queue: list[list[int]], expected: Preparation) -> None:
    device = memory(3, [1, 1, 1, 1, 3], REPLACING, held=[A, B, C])
    assert device.prepare([A], queue) == expected


def test_a_prefetch_replaces_nothing_while_a_copy_is_under_way_and_nothing_that_is_pinned() -> None:
    device = memory(3, [1, 1, 1, 1, 1], REPLACING, held=[A, B])
    assert device.prepare([A], [[C]]) == Preparation((), (), (C,))
    assert device.prepare([A], [[D]]) == Preparation((), (), ())
    device.copied(C)
    device.pin(B)
    assert device.prepare([A], [[D]]) == Preparation((C,), (), (D,))


def test_nothing_is_prefetched_by_a_task_that_had_to_evict() -> None:
    device = memory(3, [1, 1, 3, 1], held=[C])
    assert device.prepare([A], [[B]]) == Preparation((C,), (A,), ())


def test_a_copy_that_is_given_up_leaves_its_room() -> None:
    device = memory(4, [1, 1, 1, 4])
    device.prepare([A], [[B]])
    device.drop(B)
    assert device.free == 3
    assert device.copying == {A: 1}
    device.prepare([B], [])
    assert device.prepare([D], []) == Preparation((A, B), (D,), ())
    assert device.copying == {D: 1}


@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=8),
    st.integers(40, 90),
    st.lists(st.lists(st.integers(0, 7), max_size=3), max_size=25),
    st.sampled_from([LOOK_AHEAD, REPLACING, FIFO, MemoryPolicy(prefetch_models=3, prefetch_tasks=9)]),
    st.integers(0, 7),
)
def test_the_memory_is_never_overbooked(
    sizes: list[int], capacity: int, tasks: list[list[int]], policy: MemoryPolicy, pinned: int
) -> None:
    device = DeviceMemory(capacity, sizes, policy)
    tasks = [[model % len(sizes) for model in task] for task in tasks]
    device.prepare([pinned % len(sizes)], [])
    device.pin(pinned % len(sizes))
    for position, task in enumerate(tasks):
        before = set(device.resident)
        try:
            done = device.prepare(task, tasks[position + 1 :])
        except DoesNotFitError:
            assert set(device.resident) == before
            assert sum(sizes[model] for model in {*task, pinned % len(sizes)}) > capacity
            continue
        resident = set(device.resident)
        assert resident == (before - set(done.evict)) | set(done.fetch) | set(done.prefetch)
        assert set(task) <= resident
        assert pinned % len(sizes) in resident
        assert not set(done.evict) & set(task)
        assert policy.replaces or not (done.evict and done.prefetch)
        assert not (done.evict and done.prefetch and done.fetch)
        assert sum(sizes[model] for model in resident) + device.free == capacity
        assert device.free >= 0
