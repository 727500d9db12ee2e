"""Runs that share an accelerator slow each other down, as a hand calculation says."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import pytest

from fairway.sim.interference import Interference
from fairway.sim.scenario import DeviceSharing


class Clock:
    """What `Interference` needs of a world: a heap of what is to come."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[tuple[int, int]] = []
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, moment: float, target: int, message: Callable[[], None], priority: int = 0) -> None:
        del target, priority
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, message))

    def tell(self, worker: int, event: Any) -> None:
        self.told.append((worker, event.run))

    def run(self) -> None:
        while self._heap:
            self.now, _, message = heapq.heappop(self._heap)
            message()


def _ends(slowdown: float, *runs: tuple[int, float, float, float], models: str = "") -> list[float]:
    """When runs end, given as worker, moment, seconds and part."""
    clock, ends = Clock(), dict[int, float]()
    sharing = DeviceSharing(slowdown=slowdown, pairs={("a", "b"): 1.5})
    interference = Interference(clock, sharing.cost)  # type: ignore[arg-type]
    for number, (worker, moment, seconds, part) in enumerate(runs):

        def ended(at: float, number: int = number) -> float:
            ends[number] = at
            return at

        model = models[number] if models else None
        interference.begins(worker, number, moment, seconds, model, part, ended)
    clock.run()
    assert sorted(clock.told) == sorted((worker, number) for number, (worker, *_) in enumerate(runs))
    return [ends[number] for number in range(len(runs))]


def test_a_run_alone_takes_what_its_profile_says() -> None:
    assert _ends(0.2, (0, 1.0, 2.0, 0.5), (1, 1.5, 2.0, 0.5)) == [3.0, 3.5]
    assert _ends(0.0, (0, 0.0, 2.0, 0.5), (0, 0.0, 2.0, 0.5)) == [2.0, 2.0]


def test_two_that_begin_together_are_slower_by_the_part_of_the_other() -> None:
    assert _ends(0.2, (0, 0.0, 1.0, 0.5), (0, 0.0, 1.0, 0.5)) == pytest.approx([1.1, 1.1])
    # A quarter beside three quarters: 1 + 0.2 · 0.75; the other one 1 + 0.2 · 0.25, and alone in the end.
    first, second = _ends(0.2, (0, 0.0, 1.0, 0.25), (0, 0.0, 2.0, 0.75))
    assert first == pytest.approx(1.15)
    assert second == pytest.approx(1.15 + (2.0 - 1.15 / 1.05))


def test_what_is_left_is_worked_out_anew_when_a_neighbour_comes() -> None:
    # The first has half a second left when the second comes; the second half of it when the first has gone.
    first, second = _ends(0.2, (0, 0.0, 1.0, 0.5), (0, 0.5, 1.0, 0.5))
    assert first == pytest.approx(0.5 + 0.5 * 1.1)
    assert second == pytest.approx(first + 0.5)


def test_what_was_measured_of_two_models_goes_before_what_their_parts_say() -> None:
    first, second = _ends(0.2, (0, 0.0, 1.0, 0.5), (0, 0.0, 3.0, 0.5), models="ab")
    assert first == pytest.approx(1.5)
    assert second == pytest.approx(1.5 + (3.0 - 1.5 / 1.1)), "only the first was measured beside the other"
