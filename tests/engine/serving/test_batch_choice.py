"""How the two floors meet over one queue: which of the sizes that may start does, and where."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairway.configure.budgets.margins import NoiseEstimate
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import Configuration, Prices
from fairway.configure.queues import Candidates, Choice, Decision, Wait
from fairway.engine.serving.batch_choice import BatchChoice, Chosen
from fairway.place.batch import NOWHERE, Batch, Room

SMALL, MIDDLE, LARGE = Configuration(1, 2, 1), Configuration(2, 4, 3), Configuration(8, 9, 6)


class _Floors:
    """Floor 2 that answers what the test says, and floor 3 that knows a worker for each size, or none."""

    def __init__(self, decision: Decision, workers: dict[Configuration, int]) -> None:
        self.decision, self.workers = decision, workers
        self.asked: list[Any] = []
        self.batches: list[tuple[Batch, Room]] = []

    def decide(self, queue: Any, _: Capacity) -> Decision:
        self.asked.append(queue)
        return self.decision

    def place_batch(self, batch: Batch, room: Room, *_: Any) -> int:
        self.batches.append((batch, room))
        return next(
            (at for size, at in self.workers.items() if (size.cpu, size.gpu) == (batch.cpu, batch.gpu)), NOWHERE
        )


def _choose(floors: _Floors, capacity: Capacity, *, jobs: int = 4, recent: list[float] | None = None) -> Any:
    now = 100.0
    request = SimpleNamespace(deadline=now + 5.0, ready=[now - 3.0], key=7)
    waiting = [SimpleNamespace(request=request, since=now - 2.0, sources=(1,)) for _ in range(jobs)]
    queue: Any = SimpleNamespace(
        jobs=deque(waiting), recent=deque(recent or []), model=-1, plan=None, before=("x",), most_jobs=3, home=1,
        stage=0, group_head=0, graph=None, decider=floors, seconds_of=lambda *size: float(sum(size)),
    )  # fmt: skip
    engine: Any = SimpleNamespace(now=now, view=lambda: None, draws=None)
    placer: Any = floors
    return BatchChoice(placer, capacity, Prices(1.0, 1.0), None, NoiseEstimate(), holds_cold=False).choose(
        engine, queue, 0
    )


def _choices(*sizes: Configuration) -> tuple[Choice, ...]:
    return tuple(Choice(size, "planned") for size in sizes)


def test_the_first_size_that_some_worker_has_room_for_starts() -> None:
    floors = _Floors(Candidates(_choices(LARGE, MIDDLE, SMALL)), {MIDDLE: 1, SMALL: 0})
    assert _choose(floors, Capacity.idle(2)) == Chosen(Choice(MIDDLE, "planned"), 1)
    assert [(batch.cpu, batch.gpu) for batch, _ in floors.batches] == [(9, 6), (4, 3)]


def test_where_what_stays_free_counts_the_size_that_is_worth_most_starts() -> None:
    capacity = Capacity.idle(2)
    capacity.take(1, 5, 2)
    cpu, gpu = capacity.free_cpu.tolist(), capacity.free_gpu.tolist()
    told: list[tuple[int, int, int]] = []

    def value(position: int, cpu_left: int, gpu_left: int) -> float:
        told.append((position, int(cpu_left), int(gpu_left)))
        return [1.0, 3.0, 3.0][position]

    floors = _Floors(Candidates(_choices(LARGE, MIDDLE, SMALL), value), {LARGE: 0, MIDDLE: 1, SMALL: 0})
    assert _choose(floors, capacity) == Chosen(Choice(MIDDLE, "planned"), 1), "of two that are worth as much, the first"
    assert told == [(0, cpu[0] - 9, gpu[0] - 6), (1, cpu[1] - 4, gpu[1] - 3), (2, cpu[0] - 2, gpu[0] - 1)]


def test_nothing_starts_where_nothing_fits() -> None:
    assert _choose(_Floors(Candidates(_choices(LARGE, SMALL)), {}), Capacity.idle(2)) is None
    worthless = Candidates(_choices(SMALL), lambda *_: 1.0)
    assert _choose(_Floors(worthless, {}), Capacity.idle(2)) is None


def test_what_floor_2_says_instead_of_a_size_is_what_is_done() -> None:
    assert _choose(_Floors(Wait(0.5), {}), Capacity.idle(2)) == Wait(0.5)


def test_floor_2_hears_of_the_oldest_job_and_of_the_rate_of_the_last_second() -> None:
    floors = _Floors(Wait(0.5), {})
    _choose(floors, Capacity.idle(2), jobs=5, recent=[98.0, 99.0, 99.25, 100.0])
    (asked,) = floors.asked
    assert (asked.stage, asked.length, asked.seconds_left, asked.waited, asked.in_group) == (0, 5, 5.0, 2.0, 3.0)
    assert asked.rate == 2.0, "those of a second ago are over"
    assert list(asked.sources) == [(1,)] * 3, "as many as the largest batch takes"


def test_a_batch_is_no_larger_than_what_waits_and_only_workers_that_are_named_have_room() -> None:
    only = np.array([False, True])
    floors = _Floors(Candidates(_choices(LARGE), None, only), {LARGE: 1})
    assert _choose(floors, Capacity.idle(2), jobs=3) == Chosen(Choice(LARGE, "planned"), 1)
    ((batch, room),) = floors.batches
    assert batch.seconds == pytest.approx(3 + 9 + 6)
    assert len(batch.sources) == 3
    assert room.cpu.tolist()[0] == -1
    assert room.cpu.tolist()[1] > 0
