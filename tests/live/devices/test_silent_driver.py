"""A driver that never answers, or a library that raises, ends neither the looking at GPUs nor the agent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event

import pytest

from fairway.live.backend.accelerators import accelerators_of
from fairway.live.devices.gpus import Findings, Gpu
from fairway.live.devices.look import GpuWatch
from fairway.live.local.agent import process
from fairway.live.local.agent.process import Agent

SEEN = Findings((Gpu("NVIDIA H100", "GPU-0"),))


class TroubledWatch(GpuWatch):
    """Raises at the first look, hangs at the second one until it is let go, and sees a GPU from then on."""

    def __init__(self) -> None:
        self.looks = 0
        self.goes_on = Event()

    def look(self) -> Findings:
        self.looks += 1
        if self.looks == 1:
            raise RuntimeError("a library")
        self.goes_on.wait(60.0)
        return SEEN


def test_gpus_whose_driver_does_not_answer_are_sick_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LOOK_AT_GPUS_SECONDS", 0.01)
    monkeypatch.setattr(process, "_DRIVER_SECONDS", 0.1)
    watch = TroubledWatch()

    async def check() -> None:
        agent = Agent(tmp_path, accelerators_of(SEEN), gpus=watch)
        looking = asyncio.create_task(agent._look_at_gpus(watch))

        async def sick(expected: str | None) -> None:
            async with asyncio.timeout(20.0):
                while agent.runs.status().accelerators[0].sick != expected:
                    await asyncio.sleep(0.01)

        try:
            await sick("the driver has not answered for 0.1 s")
            assert watch.looks == 2
            watch.goes_on.set()
            await sick(None)
        finally:
            looking.cancel()

    asyncio.run(check())
