"""The order of tasks by when they have to start: against a list that is looked through, and by hand at boundaries."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Fleet, Stage, TaskGraph, Worker, Workflow
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.stage_facts import StageFacts
from fairway.engine.serving.task_queue import Task
from fairway.engine.serving.urgent_queue import UrgentQueue, latest_start
from fairway.place.plan import Request

GRAPH = TaskGraph.of(Workflow((Stage.of("s", 1.0),), ()), Fleet.of([Worker("w0", 0)]))
TIMES = [1.0, 1.5, 2.0, 4.0]
"""Together 1, 2, 3 and 4 take so long: each gets 1, 3/4, 2/3 and 1 second."""
FACTS = StageFacts(
    seconds=[1.0], ranks=[0.0], models=[(0,)], inputs=[0], entries=[0], exits=1, after=((),),
    sizes=[2], largest=[4], times=[TIMES], kept=[2.0], kept_after=[0.5], groups=[7],
)  # fmt: skip


def task(key: int, due: float, facts: StageFacts = FACTS, queued: float = 0.0, patience: float = 0.0) -> Task:
    return Task(Flow(Request(key, GRAPH, due=due), GRAPH, [0]), 0, facts, queued, patience)


def queue_of(*tasks: Task, sheds: bool = True, models: int = 1) -> UrgentQueue:
    queue = UrgentQueue(models, sheds=sheds)
    for each in tasks:
        queue.join(each, ready=True)
    return queue


def keys(tasks: object) -> list[int]:
    return [each.flow.request.key for each in tasks]  # type: ignore[attr-defined]


def test_a_task_has_to_start_when_it_is_due_less_what_is_kept_for_it() -> None:
    assert latest_start(task(1, 10.0)) == 8.0


def test_what_is_never_due_goes_by_its_arrival_and_its_rank() -> None:
    patient = replace(FACTS, ranks=[3.0])
    assert latest_start(task(1, math.inf, patient, queued=5.0, patience=2.0)) == 11.0


def test_of_two_that_have_to_start_at_once_the_first_to_come_goes_first() -> None:
    queue = queue_of(task(1, 10.0), task(2, 9.0), task(3, 9.0, replace(FACTS, groups=[8])), task(4, 9.0))
    assert keys(iter(queue.take, None)) == [2, 3, 4, 1]
    assert len(queue) == 0


@pytest.mark.parametrize(
    ("now", "waiting", "inputs", "late"),
    [  # due at 10, half a second is kept after it: it has to end by 9.5
        (8.0, 1, 0, False),  # an entry counts the planned batch of two, 1.5 s
        (8.25, 1, 0, True),
        (8.0, 9, 0, False),
        (8.5, 1, 1, False),  # a later stage counts those that wait: itself alone
        (8.75, 1, 1, True),
        (8.0, 2, 1, False),
        (8.25, 2, 1, True),
        (8.0, 3, 1, False),  # and no more than the planned batch
    ],
)
def test_a_task_is_late_when_the_batch_behind_it_would_not_be_in_time(
    now: float, waiting: int, inputs: int, late: bool
) -> None:
    each = task(1, 10.0, replace(FACTS, inputs=[inputs]))
    assert queue_of().is_late(each, now, waiting) is late


def test_without_a_count_a_task_is_late_if_it_alone_would_be() -> None:
    each = task(1, 10.0, replace(FACTS, inputs=[1]))
    assert not queue_of().is_late(each, 8.5)
    assert queue_of().is_late(each, 8.625)


def test_a_task_is_lost_when_it_would_not_be_in_time_alone() -> None:
    assert not queue_of().is_lost(task(1, 10.0), 8.5)
    assert queue_of().is_lost(task(1, 10.0), 8.625)


def test_late_tasks_step_back_behind_all_others_where_the_queue_sheds() -> None:
    def tasks() -> list[Task]:
        return [task(1, 4.0), task(2, 10.0), task(3, 20.0, replace(FACTS, groups=[8]))]

    queue = queue_of(*tasks())
    assert keys([queue.first()]) == [1], "of an order that asks no time, nothing is late"
    assert keys(iter(lambda: queue.take(3.0), None)) == [2, 3, 1]
    without = queue_of(*tasks(), sheds=False)
    assert keys(iter(lambda: without.take(3.0), None)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("others", "now", "together", "seconds"),
    [
        ([], 0.0, [], 1.0),
        ([20.0], 0.0, [2], 1.5),
        ([20.0, 20.0], 0.0, [2, 3], 2.0),
        ([20.0, 20.0, 20.0], 0.0, [2, 3], 2.0),  # a fourth makes each dearer
        ([20.0, 20.0], 17.5, [2, 3], 2.0),  # exactly in time for 19.5
        ([20.0, 20.0], 17.75, [2], 1.5),
        ([20.0, 20.0], 18.0, [2], 1.5),
        ([20.0, 20.0], 18.25, [], 1.0),
        ([19.0, 20.0], 17.0, [2], 1.5),  # the first of the others has less time
    ],
)
def test_as_many_run_together_as_are_cheapest_and_in_time(
    others: list[float], now: float, together: list[int], seconds: float
) -> None:
    queue = queue_of(*(task(number, due) for number, due in enumerate(others, 2)), sheds=False)
    found, took = queue.mates(task(1, 20.0), now)
    assert (keys(found), took) == (together, seconds)
    assert keys(queue) == [number for number in range(2, 2 + len(others)) if number not in together]
    assert sorted(keys(queue.ready_tasks())) == keys(queue)


def test_what_may_not_run_together_does_not() -> None:
    alone = replace(FACTS, largest=[1])
    assert queue_of(task(2, 20.0, alone)).mates(task(1, 20.0, alone), 0.0) == ((), 1.0)
    assert queue_of(task(2, 20.0, replace(FACTS, groups=[8]))).mates(task(1, 20.0), 0.0) == ((), 1.0)


def test_late_tasks_run_with_late_ones_in_planned_batches_whatever_the_time() -> None:
    queue = queue_of(*(task(number, 3.0) for number in range(1, 5)), task(5, 50.0))
    first = queue.take(10.0)
    assert first is not None
    assert keys([first]) == [5]
    late = queue.take(10.0)
    assert late is not None
    found, took = queue.mates(late, 10.0)
    assert (keys([late]), keys(found), took) == ([1], [2], 1.5), "the planned batch is two"


def test_the_row_says_how_many_wait_how_urgent_the_first_is_and_what_they_take() -> None:
    third = replace(FACTS, groups=[8], models=[(2,)], sizes=[1], kept=[1.0])
    plain = replace(FACTS, groups=[9], models=[()])
    same = replace(FACTS, groups=[10])
    queue = queue_of(
        task(1, 10.0), task(2, 9.0), task(3, 12.0), task(4, 20.0, third), task(5, 30.0, plain), task(6, 8.5, same),
        models=3,
    )  # fmt: skip
    # Model 0: a batch of two and one alone, and one of another stage; model 2: one; no model: one, in the last column.
    assert queue.row().tolist() == [[4, 0, 1, 1], [6.5, 0, 19.0, 28.0], [1.5 + 1.0 + 1.0, 0, 1.0, 1.0]]
    queue = queue_of(task(6, 8.5, same), task(1, 10.0), task(2, 9.0))
    assert queue.row()[:, 0].tolist() == [3, 6.5, 1.0 + 1.5]


def test_late_tasks_are_not_in_the_row() -> None:
    queue = queue_of(task(1, 3.0), task(2, 50.0))
    queue.next(10.0)
    assert queue.row()[0].tolist() == [1, 0]


def test_a_task_without_all_inputs_waits_and_is_not_next() -> None:
    queue = queue_of(task(2, 20.0))
    waits = task(1, 10.0)
    queue.join(waits, ready=False)
    assert keys([queue.first()]) == [2]
    assert keys(queue) == [2, 1]
    queue.complete(waits)
    assert keys([queue.first()]) == [1]


def test_a_task_leaves_once() -> None:
    first, second = task(1, 10.0), task(2, 11.0)
    queue = queue_of(first, second)
    assert queue.discard(first)
    assert not queue.discard(first)
    assert keys(queue.alike(second)) == [2]
    assert keys(queue.ready_tasks()) == [2]
    assert keys(queue_of().alike(second)) == []


@given(data=st.data(), sheds=st.booleans())
def test_the_next_task_is_that_of_a_list_that_is_looked_through(data: st.DataObject, sheds: bool) -> None:
    facts = [
        replace(
            FACTS, groups=[group], sizes=[data.draw(st.integers(1, 4))], inputs=[data.draw(st.integers(0, 1))],
            times=[np.cumsum(data.draw(st.lists(st.integers(1, 4), min_size=4, max_size=4))).tolist()],
            largest=[data.draw(st.integers(1, 4))],
        )
        for group in (3, 4, 5)
    ]  # fmt: skip
    queue = UrgentQueue(1, sheds=sheds)
    ready: list[Task] = []
    late: set[int] = set()
    now = 0.0

    def order(each: Task) -> tuple[bool, float, int]:
        return each.place in late, latest_start(each), each.place

    def alike(number: int, is_late: bool) -> list[Task]:
        return sorted(
            (one for one in ready if one.facts.groups[0] == number and (one.place in late) is is_late), key=order
        )

    for key in range(data.draw(st.integers(1, 12))):
        each = task(key, float(data.draw(st.integers(0, 30))), data.draw(st.sampled_from(facts)))
        queue.join(each, ready=True)
        ready.append(each)
        if data.draw(st.booleans()):
            continue
        now += data.draw(st.integers(0, 4))
        while True:
            expected = min(ready, key=order)
            count = len(alike(expected.facts.groups[0], False))
            if expected.place in late or not sheds or not queue.is_late(expected, now, count):
                break
            late.add(expected.place)
        assert queue.take(now) is expected
        ready.remove(expected)
        own = expected.facts
        is_late = sheds and queue.is_late(expected, now)
        others = alike(own.groups[0], is_late)
        ends = [each.flow.request.due - 0.5 for each in (expected, *others[:1])]
        sizes = [1]
        if own.largest[0] > 1:
            sizes += [
                size
                for size in range(2, min(own.largest[0], len(others) + 1) + 1)
                if (size <= own.sizes[0] if is_late else now + own.times[0][size - 1] <= min(ends))
            ]
        size = min(sizes, key=lambda size: (own.times[0][size - 1] / size, size))
        assert queue.mates(expected, now) == (tuple(others[: size - 1]), own.times[0][size - 1])
        for mate in others[: size - 1]:
            ready.remove(mate)
        assert {each.place for each in queue.ready_tasks()} == {each.place for each in ready}
        if not ready:
            assert queue.first() is None
