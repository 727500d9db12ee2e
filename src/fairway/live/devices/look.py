"""Looks at the GPUs of this machine, of every maker whose library is there, once or again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self

from fairway.live.devices.amd import AmdSmi
from fairway.live.devices.gpus import Findings
from fairway.live.devices.nvml import Nvml


class GpuWatch:
    """The libraries, opened once; a context that lets go of them."""

    def __init__(self) -> None:
        self.nvml = Nvml()
        self.amd = AmdSmi()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def look(self) -> Findings:
        """All GPUs as they are now; remarks say why there are none."""
        ours, theirs = self.nvml.look(), self.amd.look()
        gpus = ours.gpus + theirs.gpus
        remarks = ours.remarks + theirs.remarks if not theirs.gpus else theirs.remarks
        return Findings(gpus, remarks, ours.driver)

    def close(self) -> None:
        """Let go of the libraries."""
        self.nvml.close()
        self.amd.close()


async def looked_within(watch: GpuWatch, seconds: float, silent: Callable[[], None]) -> Findings:
    """What a watch sees, in a thread of its own: a driver that is in trouble takes its time, or never answers.

    `silent` is called if it has not answered in so many seconds. A thread that hangs in the driver cannot be ended; it
    keeps nothing from its end but itself.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Findings] = loop.create_future()

    def take(findings: Findings | None, error: Exception | None) -> None:
        if answer.done():
            return
        if findings is not None:
            answer.set_result(findings)
        elif error is not None:
            answer.set_exception(error)

    def look() -> None:
        findings, problem = None, None
        try:
            findings = watch.look()
        except Exception as error:
            problem = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(take, findings, problem)

    Thread(target=look, name="fairway-gpus", daemon=True).start()
    await asyncio.wait({answer}, timeout=seconds)
    if not answer.done():
        silent()
    return await answer


def found_gpus() -> Findings:
    """The GPUs of this machine, looked at once."""
    with GpuWatch() as watch:
        return watch.look()
