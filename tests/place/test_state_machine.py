"""Rows, loads and paces after any history: worked out again from all that was written, received and forgotten."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from fairway import Fleet, Model, StateTable, Worker
from fairway.place.fleet import OUTSIDE
from fairway.place.pace import Pace
from fairway.place.state import ABSENT, NEVER, Load, Pushes

SIZES = (30, 50, 1)
FLEET = Fleet.of(
    [Worker(f"w{number}", 100) for number in range(3)],
    [Model(name, size) for name, size in zip("abc", SIZES, strict=True)],
)


def seen_at(pushes: Pushes, now: float) -> float:
    """Pushed with the next multiple of the period that is not before now, there after the delay."""
    pushed = now
    if pushes.period:
        number = int(now / pushes.period)
        while number * pushes.period < now:
            number += 1
        pushed = number * pushes.period
    return pushed + pushes.delay


class Written:
    """What was written of a worker since it came last: (visible at, value), the oldest first."""

    def __init__(self) -> None:
        self.present = True
        self.loads: list[tuple[float, tuple[float, float]]] = [(-math.inf, (0.0, NEVER))]
        self.caches: list[tuple[float, frozenset[int]]] = [(-math.inf, frozenset())]

    def load(self, now: float) -> tuple[float, float]:
        return [value for at, value in self.loads if at <= now][-1]

    def models(self, now: float) -> frozenset[int]:
        return [value for at, value in self.caches if at <= now][-1]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("loads", "caches"),
    [
        (Pushes(), Pushes()),
        (Pushes(delay=2.0), Pushes(period=4.0)),
        (Pushes(period=4.0, delay=1.0), Pushes(delay=3.0)),
        (Pushes(period=2.0), Pushes(period=8.0, delay=0.5)),
    ],
)
def test_every_reader_sees_itself_exactly_and_others_as_old_as_their_pushes(
    seed: int, loads: Pushes, caches: Pushes
) -> None:
    draws = random.Random(seed)
    table = StateTable(FLEET, loads=loads, caches=caches)
    rows = [Written() for _ in range(3)]
    now = 0.0
    for _ in range(80):
        now += draws.choice([0.0, 0.5, 1.0, 2.0])
        worker, model = draws.randrange(3), draws.randrange(3)
        row = rows[worker]
        match draws.choice(["load", "load", "cache", "cache", "cache", "leave", "join"]):
            case "load":
                value = (float(draws.randint(0, 9)), draws.choice([NEVER, now + 3.0]))
                table.write_load(worker, *value, now)
                if row.present:
                    row.loads.append((seen_at(loads, now), value))
            case "cache":
                held = draws.random() < 0.6
                table.write_cache(worker, model, held, now)
                if row.present:
                    before = row.caches[-1][1]
                    row.caches.append((seen_at(caches, now), before | {model} if held else before - {model}))
            case "leave" if draws.random() < 0.4:
                table.leave(worker)
                rows[worker] = Written()
                rows[worker].present = False
                rows[worker].loads = [(-math.inf, (ABSENT, NEVER))]
            case "join" if not row.present:
                table.join(worker)
                rows[worker] = Written()
        for me in (0, 1, 2, OUTSIDE):
            view = table.view(me, now)
            for other, facts in enumerate(rows):
                when = math.inf if other == me else now
                queued, busy_until = facts.load(when)
                assert view.load(other, now) == queued + max(0.0, busy_until - now)
                assert [view.holds(other, each) for each in range(3)] == [
                    each in facts.models(when) for each in range(3)
                ]
                assert view.free_bytes(other) == 100 - sum(SIZES[each] for each in facts.models(when))
                assert view.is_present(other) is facts.present is table.is_seen(other)
        queued_now, busy_now, held_now = table.exact_rows()
        for other, facts in enumerate(rows):
            assert (queued_now[other], busy_now[other]) == facts.load(math.inf)
            assert set(np.flatnonzero(held_now[other]).tolist()) == facts.models(math.inf)


def test_a_worker_may_look_as_if_it_had_written_its_load_already() -> None:
    table, load = StateTable(FLEET), Load()
    load.enqueue(4.0)
    table.write_load(0, 1.0, 9.0, 0.0)
    view = table.view(0, 5.0, load)
    assert view.load(0, 5.0) == 4.0
    assert table.view(0, 5.0).load(0, 5.0) == 1.0 + 4.0
    assert table.view(1, 5.0).load(0, 5.0) == 1.0 + 4.0


def test_messages_of_a_worker_that_came_back_are_numbered_anew() -> None:
    table = StateTable(FLEET)
    assert table.receive_load(1, 0, 5.0, 7.0)
    assert not table.receive_load(1, 0, 6.0, 7.0)
    assert table.receive_cache(1, 0, [0, 2])
    assert not table.receive_cache(1, 0, [1])
    assert table.view(0, 4.0).load(1, 4.0) == 5.0 + 3.0
    assert table.view(0, 4.0).free_bytes(1) == 69
    table.leave(1)
    assert not table.receive_cache(1, 9, [1])
    table.join(1)
    assert table.receive_load(1, 0, 2.0, NEVER)
    assert table.receive_cache(1, 0, [1])
    assert table.view(0, 4.0).load(1, 4.0) == 2.0
    assert table.view(0, 4.0).free_bytes(1) == 50


def test_homes_are_where_they_were_put() -> None:
    homes = np.array([[True, False, True], [False, True, False], [True, True, False]])
    table = StateTable(FLEET, homes=homes)
    assert [table.homes_at(worker) for worker in (0, 1, 2, OUTSIDE)] == [[0, 2], [1, 2], [0], []]
    assert table.view(1, 0.0).homes is homes
    assert not StateTable(FLEET).view(0, 0.0).homes.any()
    assert StateTable(FLEET).homes_at(0) == []


@pytest.mark.parametrize("running", ["decays", "counts", "ignored"])
@pytest.mark.parametrize("seed", range(4))
def test_a_load_is_the_sum_of_what_waits_at_the_pace_of_now(seed: int, running: str) -> None:
    draws = random.Random(seed)
    load = Load(running)  # type: ignore[arg-type]
    waiting: list[float] = []
    task: float | None = None
    began = now = 0.0
    for _ in range(80):
        now += 1.0
        match draws.choice(["enqueue", "enqueue", "start", "finish", "drop", "ran", "overrun", "fade"]):
            case "enqueue":
                waiting.append(float(draws.randint(1, 8)))
                load.enqueue(waiting[-1])
            case "start" if waiting and task is None:
                task, began = waiting.pop(draws.randrange(len(waiting))), now
                expected = draws.choice([None, task + 2.0])
                load.start(task, now, expected)
                if running == "decays":
                    assert load.busy_until == pytest.approx(now + (expected or task) + task * (load.pace.factor - 1))
                else:
                    assert load.busy_until == NEVER
            case "finish" if task is not None:
                task = None
                load.finish()
                assert load.busy_until == NEVER
            case "drop" if waiting:
                load.drop(waiting.pop())
            case "ran":
                load.pace.ran(1.0, now - 4.0, now)
                load.sum_up()
            case "overrun" if task is not None:
                load.overrun(now, began)
                assert load.busy_until == (now + now - began if running == "decays" else NEVER)
            case "fade" if task is None:
                load.fade(now + 5.0)
        runs = task if task is not None and running == "counts" else 0.0
        assert load.queued == pytest.approx(sum(waiting) * load.pace.factor + runs + load.pace.extra)


def test_a_pace_is_the_weighted_mean_of_the_last_excesses_after_five_tasks_on_time() -> None:
    for seed in range(30):
        draws = random.Random(seed)
        pace, now = Pace(), draws.choice([0.0, 50.0])
        past: list[tuple[float, float, float]] = []  # when it ended, its expected seconds, its excess
        for _ in range(12):
            now += draws.choice([0.0, 0.0, 1.0, 20.0])
            expected, excess = draws.choice([0.25, 0.5, 2.0]), draws.choice([-0.125, 0.0, 0.0, 1.0, 3.0])
            before = pace.extra
            slow = pace.ran(expected, now, now + expected + excess)
            now += expected + excess
            past.append((now, expected, excess))
            # Every task makes those before it count a tenth less; idle time halves the excess every ten seconds.
            tasks, total, over, last = 5.0, 5.0 * past[0][1], 0.0, past[0][0] - past[0][1] - past[0][2]
            for ended, usual, more in past:
                over *= 0.5 ** ((ended - usual - more - last) / 10.0)
                tasks, total, over, last = 0.9 * tasks + 1, 0.9 * total + usual, 0.9 * over + more, ended
            factor, extra = 1 + over / total, over / tasks
            if factor < 1.5 or extra < 1e-3:
                factor, extra = 1.0, 0.0
            assert (pace.factor, pace.extra) == (pytest.approx(factor), pytest.approx(extra))
            assert slow is bool(before or extra)
