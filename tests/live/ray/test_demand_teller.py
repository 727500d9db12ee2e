"""When Ray's autoscaler hears of the queue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairway.live.backend.demand import JobDemand
from fairway.live.ray.bridge_client import BridgeGoneError
from fairway.live.ray.demand_teller import DemandTeller

ONE = JobDemand(("v100",))


class Bridge:
    def __init__(self, directory: Path) -> None:
        self.mark = directory / "asked"
        self.told: list[list[str]] = []
        self.is_there = True
        self.now = 0.0
        self.teller = self.another()

    def another(self) -> DemandTeller:
        return DemandTeller(self.mark, self._ask, lambda: self.now)

    async def _ask(self, question: str, demand: list[dict[str, Any]]) -> None:
        if not self.is_there:
            raise BridgeGoneError("it is gone")
        assert question == "need"
        self.told.append([one["types"][0] for one in demand])

    def hear(self, *demand: JobDemand) -> None:
        asyncio.run(self.teller.hear(demand))


@pytest.fixture
def bridge(tmp_path: Path) -> Bridge:
    return Bridge(tmp_path)


def test_it_hears_when_something_changes_and_that_nothing_is_needed_any_more(bridge: Bridge) -> None:
    for demand in ([ONE], [ONE], [ONE, ONE], [], []):
        bridge.hear(*demand)
    assert bridge.told == [["v100"], ["v100", "v100"], []]


def test_what_others_have_asked_for_stays_as_long_as_nothing_is_needed(bridge: Bridge) -> None:
    bridge.hear()
    assert bridge.told == []


def test_what_a_controller_of_before_has_asked_for_is_withdrawn(bridge: Bridge) -> None:
    bridge.hear(ONE)
    bridge.teller = bridge.another()
    bridge.hear()
    bridge.hear()
    assert bridge.told == [["v100"], []]


def test_it_hears_it_anew_once_a_minute_and_from_another_bridge(bridge: Bridge) -> None:
    bridge.hear(ONE)
    bridge.now = 59.0
    bridge.hear(ONE)
    assert len(bridge.told) == 1
    bridge.now = 61.0
    bridge.hear(ONE)
    assert len(bridge.told) == 2
    bridge.teller.forget()
    bridge.hear(ONE)
    assert len(bridge.told) == 3


def test_what_it_could_not_be_told_it_is_told_later(bridge: Bridge) -> None:
    bridge.is_there = False
    bridge.hear(ONE)
    bridge.is_there = True
    bridge.hear(ONE)
    bridge.is_there = False
    bridge.hear()
    bridge.is_there = True
    bridge.hear()
    assert bridge.told == [["v100"], []]
