"""What a worker keeps of requests (`tasks_here`), and what its ingress knows of those without a reply."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import Fleet, Stage, TaskGraph, Worker, Workflow
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.open_requests import OpenRequest
from fairway.engine.serving.stage_facts import StageFacts
from fairway.engine.serving.task_queue import Task, TaskQueue
from fairway.engine.serving.tasks_here import TasksHere
from fairway.place.plan import Request

FLEET = Fleet.of([Worker("w0", 0), Worker("w1", 0), Worker("w2", 0)])
A, B, C, D = range(4)


def graph(*edges: tuple[str, str]) -> TaskGraph:
    return TaskGraph.of(Workflow(tuple(Stage.of(name, 1.0) for name in "abcd"), edges), FLEET)


DIAMOND = graph(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))
FACTS = StageFacts.of_all(DIAMOND)[0]


def flow(key: int, workers: tuple[int, ...] = (0, 0, 1, 2), attempt: int = 0, of: TaskGraph = DIAMOND) -> Flow:
    return Flow(Request(key, of), of, list(workers), attempt)


def task(key: int, stage: int = A, ended: float | None = None) -> Task:
    made = Task(flow(key), stage, FACTS, 0.0)
    made.ended = ended
    return made


def here_of(*tasks: Task, kept: float = math.inf) -> TasksHere:
    here = TasksHere(kept)
    for each in tasks:
        here.add(each.flow.request.key, each, here.tasks.get(each.flow.request.key))
    return here


# A worker


def test_each_task_of_a_request_is_found_by_its_stage() -> None:
    tasks = [task(1, A), task(1, B), task(1, D), task(2, B)]
    here = here_of(*tasks)
    assert [here.get(1, stage) for stage in (A, B, C, D)] == [tasks[0], tasks[1], None, tasks[2]]
    assert here.get(3, A) is None
    assert {id(each) for each in here.of(1)} == {id(each) for each in tasks[:3]}
    assert here.of(3) == []


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_task_that_leaves_takes_no_other_with_it(which: int) -> None:
    tasks = [task(1, stage) for stage in (A, B, D)]
    here = here_of(*tasks, task(2))
    here.remove(tasks[which])
    left = [each for each in tasks if each is not tasks[which]]
    assert [here.get(1, stage) for stage in (A, B, D)] == [each if each in left else None for each in tasks]
    assert len(here.of(2)) == 1
    here.remove(tasks[which])
    assert len(here.of(1)) == 2, "it was gone already"
    for each in left:
        here.remove(each)
    assert 1 not in here.tasks


def test_something_is_here_as_long_as_a_task_or_a_newer_plan_is() -> None:
    here = TasksHere()
    assert not here
    here.follow(flow(1, attempt=1))
    assert here
    here.close(1)
    assert not here
    assert here_of(task(1))


def test_the_newest_plan_of_a_request_counts() -> None:
    here = TasksHere()
    first, second, third = (flow(1, attempt=attempt) for attempt in range(3))
    assert here.newest(first) is first
    assert not here.is_wary
    here.follow(second)
    assert here.is_wary
    assert [here.newest(each) for each in (first, second, third)] == [second, second, third]
    other = flow(1, attempt=1)
    assert here.newest(other) is other, "another of the same attempt"
    here.follow(other)
    assert here.newest(first) is second, "the first of an attempt stays"
    here.follow(first)
    assert here.newest(first) is second
    here.follow(third)
    assert here.newest(second) is third


def test_of_a_request_that_is_over_nothing_stays_and_no_plan_is_followed() -> None:
    tasks = [task(1, A), task(1, B), task(2)]
    here = here_of(*tasks)
    assert not here.is_wary
    here.follow(flow(1, attempt=1))
    assert {id(each) for each in here.close(1)} == {id(each) for each in tasks[:2]}
    assert here.is_wary
    assert 1 in here.over
    assert here.of(1) == []
    here.follow(flow(1, attempt=2))
    assert here.plans == {}
    assert here.close(1) == []
    assert len(here.of(2)) == 1


def test_the_last_4096_requests_that_are_over_are_remembered() -> None:
    here = TasksHere()
    for key in range(4096):
        here.close(key)
    assert len(here.over) == 4096
    here.close(4096)
    assert len(here.over) == 4096
    assert 0 not in here.over
    assert {1, 4096} <= here.over.keys()


def test_all_of_some_requests_is_let_go() -> None:
    here = here_of(task(1, A), task(1, B), task(2), task(3))
    here.follow(flow(3, attempt=1))
    here.follow(flow(4, attempt=1))
    gone = here.let_go(lambda each: each.request.key in {1, 3, 4})
    assert sorted((each.flow.request.key, each.stage) for each in gone) == [(1, A), (1, B), (3, A)]
    assert (list(here.tasks), here.plans) == ([2], {})


def test_what_concerns_a_plan_concerns_the_tasks_by_the_plan_that_they_came_with() -> None:
    here = here_of(task(1))
    here.follow(flow(1, attempt=1))
    assert here.let_go(lambda each: each.attempt == 1) == [], "the task was sent by the first plan"
    assert len(here.let_go(lambda each: each.attempt == 0)) == 1


def test_outputs_are_kept_for_so_many_requests_and_let_go_in_the_order_in_which_these_came() -> None:
    waits = task(0)
    here = here_of(waits, *(task(key, ended=1.0) for key in range(1, 4)), kept=2)
    assert list(here.tasks) == [0, 1, 2, 3], "twice as many may be there"
    assert not here.has_let_go
    here.add(4, task(4, ended=1.0), None)
    assert list(here.tasks) == [0, 4], "of five, three go, and none that waits"
    assert here.has_let_go


def test_a_request_with_a_task_that_waits_stays_whole() -> None:
    here = here_of(task(0, A, ended=1.0), task(0, B), *(task(key, ended=1.0) for key in (1, 2)), kept=1)
    assert list(here.tasks) == [0]
    assert len(here.of(0)) == 2


def test_where_many_wait_it_is_not_looked_each_time() -> None:
    here = here_of(*(task(key) for key in range(5)), kept=2)
    for each in [one for key in here.tasks for one in here.of(key)]:
        each.ended = 1.0
    for key in range(5, 10):
        here.add(key, task(key, ended=1.0), None)
    assert len(here.tasks) == 10, "twice the five that were there"
    here.add(10, task(10, ended=1.0), None)
    assert list(here.tasks) == [9, 10]


# Its queue


def test_tasks_run_by_priority_then_in_the_order_in_which_they_came() -> None:
    queue = TaskQueue()
    tasks = [task(1), task(2), task(3)]
    tasks[0].priority = 1.0
    for each in tasks:
        queue.join(each, ready=True)
    assert [each.flow.request.key for each in iter(queue.take, None)] == [2, 3, 1]


def test_what_has_left_before_its_turn_is_passed_over() -> None:
    queue = TaskQueue()
    tasks = [task(key) for key in range(4)]
    for each in tasks:
        queue.join(each, ready=True)
    queue.drop(tasks[0])
    assert queue.discard(tasks[1])
    assert not queue.discard(tasks[1])
    assert queue.first() is tasks[2]
    assert queue.take() is tasks[2]
    queue.drop(tasks[3])
    assert queue.first() is None
    assert queue.take() is None


def test_only_the_first_tasks_that_can_run_are_asked_whether_they_are_able_to() -> None:
    queue = TaskQueue()
    tasks = [task(1, D), task(2), task(3), task(4)]
    for each in tasks:
        queue.join(each, ready=each.stage != D)
    asked: list[Task] = []

    def able(each: Task) -> bool:
        asked.append(each)
        return each is tasks[3]

    assert queue.take_able(able, 3) is None
    assert asked == [tasks[1], tasks[2]], "the join has not all of its inputs"
    assert queue.take_able(able, 4) is tasks[3]
    assert tasks[3].place not in queue.waiting
    tasks[0].arrived = -1
    assert queue.take_able(lambda _: True, 4) is tasks[0]


def test_alike_are_tasks_of_the_same_stage_of_the_same_workflow_that_can_run() -> None:
    chain = graph(("a", "b"), ("b", "c"), ("c", "d"))
    other = Task(flow(9, of=chain), A, StageFacts.of_all(chain)[0], 0.0)
    queue = TaskQueue()
    tasks = [task(1, A), task(2, B), task(3, A), other, task(4, D)]
    for each in tasks:
        queue.join(each, ready=True)
    assert list(queue.alike(task(5, A))) == [tasks[0], tasks[2]]
    assert list(queue.alike(task(5, D))) == []


# Its ingress


def opened(*finished: int, at: tuple[int, ...] = (0, 0, 1, 2), left: int = 1 << D) -> OpenRequest:
    found = OpenRequest(flow(1, at), left, tracked=True)
    for stage in finished:
        found.finish[stage] = 1.0 + stage
    return found


def test_a_request_without_tracking_has_only_what_is_left() -> None:
    found = OpenRequest(flow(1), 8, tracked=False)
    assert (found.left, found.finished) == (8, -math.inf)
    assert not hasattr(found, "at")


@pytest.mark.parametrize(
    ("finished", "lost", "repeated"),
    [
        ((), 1, {C}),
        ((), 0, {A, B}),
        ((A,), 0, {A, B}),  # C may have its input already, but no worker is left to say so
        ((A, B), 0, {A, B}),
        ((A, B, C), 0, {A, B}),  # D still takes the output of B, and B that of A once more
        ((A, B, C, D), 1, set()),
        ((A, B, C), 1, {C}),
        ((A, B, C, D), 0, set()),
        ((A, B, C, D), 2, set()),  # the reply is on its way
        ((A, B, C), 2, {D}),
        ((A, B), 1, {C}),
    ],
)
def test_what_sat_on_a_lost_worker_runs_again_and_what_ran_there_if_its_output_is_still_needed(
    finished: tuple[int, ...], lost: int, repeated: set[int]
) -> None:
    found = opened(*finished)
    found.lose(lost)
    assert found.gone == {stage for stage, at in enumerate(found.at) if at == lost}
    assert found.to_repeat(lambda _: True) == repeated, "although the worker is back"
    absent = opened(*finished)
    assert absent.to_repeat(lambda worker: worker != lost) == repeated


@given(
    finished=st.sets(st.integers(0, 3)),
    at=st.tuples(*[st.integers(0, 2)] * 4),
    lost=st.sets(st.integers(0, 2)),
)
def test_what_runs_again_has_its_inputs_from_what_runs_again_or_from_workers_that_are_there(
    finished: set[int], at: tuple[int, ...], lost: set[int]
) -> None:
    found = opened(*finished, at=at)
    repeated = found.to_repeat(lambda worker: worker not in lost)
    for stage, before in enumerate(DIAMOND.workflow.predecessors):
        needed = stage in repeated or stage not in finished
        for source in before if needed else ():
            assert at[source] not in lost or source in repeated
        assert not (stage in repeated and at[stage] not in lost), "what is there stays there"
        if stage not in finished:
            assert at[stage] not in lost or stage in repeated
        if stage in repeated and stage in finished:
            after = DIAMOND.workflow.successors[stage]
            assert any(later in repeated or later not in finished for later in after)


def test_the_plan_to_keep_has_neither_worker_nor_finish_for_what_is_repeated() -> None:
    found = opened(A, B)
    kept = found.without({B, C})
    assert kept.workers.tolist() == [0, -1, -1, 2]
    assert kept.finish[A] == 1.0
    assert all(math.isnan(kept.finish[stage]) for stage in (B, C, D))
    assert found.finish[B] == 2.0, "the request itself is as it was"


def test_a_new_plan_is_followed_for_what_is_repeated() -> None:
    found = opened(A, B)
    found.lose(0)
    found.gone.add(D)
    newer = flow(1, (1, 2, 1, 2), attempt=3)
    found.follow(newer, {A, B})
    assert found.flow is newer
    assert found.at == [1, 2, 1, 2]
    assert found.named == {0, 1, 2}
    assert found.gone == {D}
    assert found.since == [3, 3, 0, 0]
    assert not any(map(found.is_done, (A, B)))


def test_a_task_has_ended_if_all_that_take_its_output_have_and_not_later_than_the_first_of_them() -> None:
    found = opened(B, C)
    found.conclude()
    assert found.finish[A] == 2.0
    assert not found.is_done(D)
    found = opened(C)
    found.conclude()
    assert not found.is_done(A), "B may not have begun"
    found = opened(D)
    found.conclude()
    assert found.finish[:3] == [4.0, 4.0, 4.0], "from the end to the beginning"
    found = opened(A, D)
    found.conclude()
    assert found.finish[A] == 1.0, "what is known stays"
    found = opened(B, C, left=1 << D | 1 << A)
    found.conclude()
    assert not found.is_done(A), "the reply itself still waits for it"
