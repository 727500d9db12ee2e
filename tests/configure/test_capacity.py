"""What is free on workers: kept by hand beside it, event by event."""

from __future__ import annotations

import numpy as np
import pytest

from fairway import Capacity, FairwayError, InputError


def test_what_tasks_take_is_not_free_until_they_end() -> None:
    for seed in range(20):
        draws = np.random.default_rng(seed)
        capacity = Capacity.idle(3, 4, 2)
        running: list[tuple[int, int, int]] = []
        for _ in range(40):
            worker, cpu, gpu = int(draws.integers(3)), int(draws.integers(0, 5)), int(draws.integers(0, 3))
            free = [
                (4 - sum(t[1] for t in running if t[0] == w), 2 - sum(t[2] for t in running if t[0] == w))
                for w in range(3)
            ]
            fits = [cpu <= of[0] and gpu <= of[1] for of in free]
            assert [capacity.fits(each, cpu, gpu) for each in range(3)] == fits
            assert capacity.has_room(cpu, gpu) is any(fits)
            assert capacity.used() == pytest.approx((1 - sum(f[0] for f in free) / 12, 1 - sum(f[1] for f in free) / 6))
            if running and draws.random() < 0.4:
                capacity.give(*running.pop(int(draws.integers(len(running)))))
            elif fits[worker]:
                capacity.take(worker, cpu, gpu)
                running.append((worker, cpu, gpu))
            else:
                with pytest.raises(
                    FairwayError, match=f"worker {worker} has {free[worker][0]} CPUs and {free[worker][1]}"
                ):
                    capacity.take(worker, cpu, gpu)


def test_a_worker_that_left_has_no_room_until_it_joins() -> None:
    capacity = Capacity.idle(2, 4, 2)
    capacity.take(0, 1, 1)
    capacity.leave(0)
    assert (capacity.free_cpu.tolist(), capacity.free_gpu.tolist()) == ([0, 4], [0, 2])
    capacity.join(0)
    assert (capacity.free_cpu.tolist(), capacity.free_gpu.tolist()) == ([4, 4], [2, 2])


def test_of_what_no_worker_has_nothing_is_in_use() -> None:
    assert Capacity.idle(2, 0, 3).used() == (0.0, 0.0)
    assert Capacity.idle(2, 3, 0).used() == (0.0, 0.0)
    assert len(Capacity.idle(1)) == 1
    assert (Capacity.idle(1).cpu, Capacity.idle(1).gpu) == (16, 7)
    with pytest.raises(InputError, match="workers: 0 given"):
        Capacity.idle(0)
