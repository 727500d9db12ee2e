"""The copies that an engine that plans knows of, and when it wants more: two models on three workers, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway import Fleet, Model, Worker
from fairway.engine.serving.messages import PeerCopies, Warm
from fairway.engine.serving.warming import Warming

A, B = 0, 1
FLEET = Fleet.of([Worker("w0", 100.0), Worker("w1", 100.0), Worker("w2", 60.0)], [Model("a", 40), Model("b", 60)])


class Wishes:
    """A `Warming`, and what it told which worker."""

    def __init__(self, fleet: Fleet = FLEET, most: int = 2, *, prewarms: bool = True, initial: int = 0, epoch: int = 0):
        self.warming = Warming(fleet, most, prewarms=prewarms, initial=initial, epoch=epoch)
        self.told: list[tuple[int, Warm]] = []

    def tell(self, worker: int, wish: Warm) -> None:
        self.told.append((worker, wish))

    def new(self) -> list[tuple[int, int, bool]]:
        """Where a copy of which model was asked for since, and whether ahead."""
        told, self.told = self.told, []
        return [(worker, wish.model, wish.ahead) for worker, wish in told]

    def has(self, worker: int, model: int, there: int, coming: int = 0, answered: int = 0, now: float = 0.0) -> None:
        self.warming.reported(PeerCopies(worker, model, there, coming, answered), now)

    def wait(self, model: int, waiting: int = 1, near: int = 0, now: float = 0.0) -> list[tuple[int, int, bool]]:
        self.warming.job_waits(model, waiting, near, now, self.tell)
        return self.new()


def test_what_is_there_at_first_is_as_much_as_fits() -> None:
    # Of a, two copies fit on the larger workers and one on the smallest; of b, none fits beside two of a.
    assert Wishes(initial=1).warming.there.tolist() == [[1, 1, 1], [1, 1, 0]]
    assert Wishes(initial=2).warming.there.tolist() == [[2, 2, 1], [0, 0, 0]]
    assert Wishes().warming.there.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_copy_is_idle_until_a_batch_takes_it_and_when_the_batch_has_ended() -> None:
    wishes = Wishes()
    wishes.has(1, A, there=2, coming=1)
    warming = wishes.warming
    assert warming.warm(A).tolist() == [False, True, False]
    warming.take(A, 1)
    warming.take(A, 1)
    assert warming.warm(A).tolist() == [False, False, False]
    warming.give(A, 1)
    assert warming.warm(A).tolist() == [False, True, False]
    assert warming.busy.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert warming.warm(B).tolist() == [False] * 3


def test_a_job_that_waits_has_a_copy_begun_near_it_but_no_more_than_jobs_wait() -> None:
    wishes = Wishes()
    assert wishes.wait(A, waiting=1, near=1) == [(1, A, False)]
    assert wishes.warming.unanswered.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert wishes.wait(A, waiting=1, near=0) == []
    assert wishes.wait(A, waiting=2, near=1) == [(1, A, False)]
    wishes.has(1, A, there=0, coming=2, answered=2)
    assert not wishes.warming.unanswered.any()
    assert wishes.wait(A, waiting=2) == []
    wishes.has(1, A, there=1, coming=1, answered=2)
    assert wishes.wait(A, waiting=2, near=1) == [(0, A, False)], "two at most at one worker; then where fewest are"


def test_it_is_begun_where_the_fewest_copies_are_if_not_near() -> None:
    wishes = Wishes(most=1)
    for worker, model in ((0, A), (1, A), (1, B)):
        wishes.has(worker, model, there=1)
    assert wishes.wait(A, near=0) == [(2, A, False)]
    assert wishes.wait(B, near=1) == [(0, B, False)], "the nearest has its copy; what is idle on the next may go"


def test_only_what_is_idle_may_go_for_a_job() -> None:
    wishes = Wishes()
    for worker in range(3):
        wishes.has(worker, A, there=2 if worker < 2 else 1)
    assert wishes.wait(B, near=0, now=5.0) == [(0, B, False)]
    wishes = Wishes()
    for worker in range(3):
        wishes.has(worker, A, there=2 if worker < 2 else 1)
        wishes.warming.take(A, worker)
    # One of two is idle on each of the larger workers: its 40 and the 20 that are free are just the 60 that b takes.
    assert wishes.wait(B, near=2, now=5.0) == [(0, B, False)]
    wishes = Wishes()
    for worker in range(3):
        wishes.has(worker, A, there=1)
        wishes.warming.take(A, worker)
    for worker in range(2):
        wishes.has(worker, B, there=1)
    assert wishes.wait(B, near=0, now=5.0) == [], "its own idle copies do not go for another"
    assert wishes.warming.due == 6.0, "it looks again after a second"
    wishes.warming.give(A, 2)
    assert wishes.wait(B, waiting=3, near=0, now=5.9) == []
    assert wishes.wait(B, waiting=3, near=0, now=6.0) == [(2, B, False)]


def test_a_worker_that_had_no_room_is_asked_again_after_a_second() -> None:
    wishes = Wishes()
    assert wishes.wait(A, near=1) == [(1, A, False)]
    wishes.has(1, A, there=0, coming=0, answered=1, now=3.0)
    assert wishes.warming.due == 4.0
    assert wishes.wait(A, near=1, now=3.9) == [(0, A, False)]
    wishes.has(0, A, there=1, coming=0, answered=1, now=3.95)
    assert wishes.wait(A, near=1, now=4.0) == [(1, A, False)]
    wishes.warming.time_passed(4.0, wishes.tell)
    assert wishes.new() == []
    assert wishes.warming.due == math.inf


def test_an_old_answer_is_no_news_of_room() -> None:
    wishes = Wishes(epoch=3)
    assert wishes.wait(A, near=1) == [(1, A, False)]
    wishes.has(1, A, there=0, answered=7)  # to the engine before
    assert wishes.warming.unanswered[A, 1] == 1
    assert wishes.warming.due == math.inf
    wishes.has(1, A, there=0, coming=1, answered=(3 << 40) + 1)
    assert wishes.warming.unanswered[A, 1] == 0
    assert wishes.warming.due == math.inf, "a copy is on its way"


def test_messages_are_numbered_by_model_and_worker_from_the_epoch_on() -> None:
    wishes = Wishes(epoch=2)
    wishes.warming.job_waits(A, 5, 1, 0.0, wishes.tell)
    wishes.warming.job_waits(A, 5, 1, 0.0, wishes.tell)
    wishes.warming.job_waits(B, 5, 0, 0.0, wishes.tell)
    first = 2 << 40
    assert [(worker, wish.number) for worker, wish in wishes.told] == [(1, first + 1), (1, first + 2), (0, first + 1)]


def test_a_batch_that_takes_the_last_idle_copy_has_another_begun_there_and_those_after_it_in_time() -> None:
    cold = FLEET.fetch_seconds
    wishes = Wishes()
    wishes.has(0, A, there=1)
    wishes.warming.take(A, 0)
    wishes.warming.batch_started(A, 0, [], 5.0, 10.0, wishes.tell)
    assert wishes.new() == [(0, A, True)]
    wishes.warming.batch_started(A, 0, [], 5.0, 10.0, wishes.tell)
    assert wishes.new() == [], "one at a time"
    wishes = Wishes()
    wishes.has(0, A, there=1)
    wishes.warming.batch_started(A, 0, [B], 5.0, 10.0, wishes.tell)
    assert wishes.new() == [], "one is still idle, and b has time"
    assert wishes.warming.due == pytest.approx(10.0 + 5.0 - cold[B])
    wishes.warming.time_passed(wishes.warming.due - 0.001, wishes.tell)
    assert wishes.new() == []
    wishes.warming.time_passed(wishes.warming.due, wishes.tell)
    assert wishes.new() == [(0, B, True)]
    wishes = Wishes()
    wishes.has(0, A, there=1)
    wishes.warming.batch_started(A, 0, [B], float(cold[B]), 10.0, wishes.tell)
    assert wishes.new() == [(0, B, True)], "it takes as long as the batch: at once"
    wishes.has(0, B, there=1, answered=1)
    wishes.warming.batch_started(A, 0, [B], 0.0, 10.0, wishes.tell)
    assert wishes.new() == [], "b is idle there"


def test_nothing_goes_for_what_is_begun_ahead_and_no_more_come_than_could_run() -> None:
    wishes = Wishes()
    wishes.has(0, A, there=1)
    wishes.warming.take(A, 0)
    wishes.warming.batch_started(A, 0, [B], 0.0, 0.0, wishes.tell)
    assert wishes.new() == [(0, A, True)], "two of a leave 20, and b takes 60"
    wishes.has(0, A, there=2, answered=1)
    wishes.warming.take(A, 0)
    wishes.warming.batch_started(A, 0, [], 0.0, 0.0, wishes.tell)
    assert wishes.new() == [], "two could run at once"
    wishes = Wishes(most=9)
    wishes.has(0, A, there=1)
    wishes.warming.take(A, 0)
    wishes.warming.batch_started(A, 0, [B], 0.0, 0.0, wishes.tell)
    assert wishes.new() == [(0, A, True)]
    wishes = Wishes()
    wishes.has(2, A, there=0)
    wishes.warming.batch_started(B, 2, [], 0.0, 0.0, wishes.tell)
    assert wishes.new() == [(2, B, True)], "just the memory that there is"


def test_an_entry_stage_has_a_copy_in_time_for_the_next_request_unless_one_is_idle() -> None:
    cold = float(FLEET.fetch_seconds[A])
    wishes = Wishes()
    wishes.warming.entry_arrived(7, A, 1, 10.0, wishes.tell)
    assert (wishes.new(), wishes.warming.due) == ([], math.inf), "no gap is known yet"
    wishes.warming.entry_arrived(7, A, 1, 30.0, wishes.tell)
    assert wishes.new() == []
    assert wishes.warming.due == pytest.approx(30.0 + 20.0 - cold)
    wishes.warming.time_passed(wishes.warming.due, wishes.tell)
    assert wishes.new() == [(1, A, True)]
    wishes.has(1, A, there=1, answered=1)
    wishes.warming.entry_arrived(7, A, 1, 40.0, wishes.tell)
    assert wishes.warming.due == math.inf, "one is idle"
    wishes.warming.take(A, 1)
    wishes.warming.entry_arrived(7, A, 1, 50.0, wishes.tell)
    # Gaps of 20, 10 and 10: the mean is 0.3 * 10 + 0.7 * (0.3 * 10 + 0.7 * 20) = 14.9.
    assert wishes.warming.due == pytest.approx(50.0 + 14.9 - cold)
    wishes.warming.entry_arrived(8, A, 1, 51.0, wishes.tell)
    assert wishes.warming.due == pytest.approx(50.0 + 14.9 - cold), "each queue has its own gaps"


def test_without_prewarming_nothing_is_begun_ahead() -> None:
    wishes = Wishes(prewarms=False)
    wishes.warming.batch_started(A, 0, [B], 0.0, 0.0, wishes.tell)
    wishes.warming.entry_arrived(0, A, 0, 0.0, wishes.tell)
    wishes.warming.entry_arrived(0, A, 0, 1.0, wishes.tell)
    assert (wishes.new(), wishes.warming.due) == ([], math.inf)
    assert wishes.wait(A) == [(0, A, False)]


def test_with_a_worker_its_copies_go_and_what_was_to_be_begun_there() -> None:
    wishes = Wishes()
    wishes.has(0, A, there=1, coming=1)
    wishes.warming.take(A, 0)
    wishes.wait(B, near=1)
    for home, at in ((0, 10.0), (1, 20.0)):
        wishes.warming.entry_arrived(home, B, home, at - 9.0, wishes.tell)
        wishes.warming.entry_arrived(home, B, home, at, wishes.tell)
    wishes.warming.worker_lost(0)
    warming = wishes.warming
    assert [counts[:, 0].tolist() for counts in (warming.there, warming.coming, warming.busy)] == [[0, 0]] * 3
    assert warming.due == pytest.approx(29.0 - float(FLEET.fetch_seconds[B])), "what is for the other worker stays"
    warming.worker_lost(1)
    assert not warming.unanswered.any()
    assert warming.due == math.inf
    assert wishes.wait(A, near=0) == [(2, A, False)], "the others are not there"
    warming.batch_started(A, 0, [], 0.0, 0.0, wishes.tell)
    assert wishes.new() == []
    assert wishes.wait(B, near=0, now=1.0) == []
    warming.worker_joined(0)
    assert wishes.wait(B, near=0, now=1.5) == [(0, B, False)], "it is asked at once, although none had room just now"
    np.testing.assert_array_equal(warming._absent, [False, True, False])
