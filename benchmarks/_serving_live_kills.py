"""Kills workers, again and again, while clients ask; every request must have one answer, and the right one.

A request counts as accepted when it was sent. What comes over the connections is counted too, so that a second answer
to a request would be seen, though the client would not show it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar
from unittest.mock import patch

from benchmarks._serving_live_fork import Fork
from fairway.errors import FairwayError
from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.local import backend
from fairway.live.serving.local.shared_table import SharedTable
from fairway.live.serving.sockets.channel import Channel
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.live.serving.supervise.supervisor import Supervisor

WORKERS = 3
CLIENTS = 16
BUDGET = 100_000_000
LONGEST_GAP = 2.0
CLEARED_SECONDS = 40.0
"""What dead workers have left is removed a while later, since others may be about to open it."""
PATIENCE = 90.0
"""Seconds after which a request counts as never answered."""


@dataclass(slots=True)
class Findings:
    """What was done, and what is wrong: nothing should be."""

    kills: int = 0
    requests: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    unanswered: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    files_left: list[str] = field(default_factory=list)


class CountingChannel(Channel):
    """A connection that writes down which requests it brings an end of."""

    __slots__ = ()
    ends: ClassVar[Counter[int]] = Counter()

    def receive(self, seconds: float | None = 0.0) -> list[tuple[Any, ...]] | None:
        messages = super().receive(seconds)
        for kind, name, *_ in messages or ():
            if kind in {"reply", "refused"}:
                self.ends[name] += 1
        return messages


def kill_workers(count: int, seed: int) -> Findings:
    """Kill workers so often, at random moments."""
    with (
        Supervisor.of("benchmarks._serving_live_fork:fork", workers=WORKERS, memory_bytes=BUDGET) as supervisor,
        patch.object(backend, "Channel", CountingChannel),
    ):
        CountingChannel.ends = Counter()
        return asyncio.run(_killed(supervisor, count, random.Random(seed)))


async def _killed(supervisor: Supervisor, count: int, draws: random.Random) -> Findings:
    settings = supervisor.settings
    table = SharedTable(settings.fleet(settings.application()), settings.table)
    client = AsyncServingClient(settings.directory)
    found, over = Findings(), asyncio.Event()
    begin = time.monotonic()
    asking = [asyncio.create_task(_ask(client, number, found, over)) for number in range(CLIENTS)]
    await asyncio.sleep(2.0)
    while found.kills < count:
        await asyncio.sleep(draws.uniform(0.0, LONGEST_GAP))
        victim = draws.randrange(WORKERS)
        while not table.is_seen(victim):  # it is started again, or not there yet
            await asyncio.sleep(0.01)
        with suppress(ProcessLookupError):
            os.kill(supervisor.pids()[victim], signal.SIGKILL)
            found.kills += 1
    over.set()
    await asyncio.gather(*asking)
    found.seconds = time.monotonic() - begin
    found.twice = [name for name, ends in CountingChannel.ends.items() if ends > 1]
    deadline = time.monotonic() + CLEARED_SECONDS
    while (left := _files(settings)) and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
    found.files_left = left
    await client.close()
    return found


def _files(settings: ServingSettings) -> list[str]:
    """What is in shared memory but for the state table."""
    return sorted(path.name for path in settings.memory_directory.iterdir() if path != settings.table)


async def _ask(client: AsyncServingClient, number: int, found: Findings, over: asyncio.Event) -> None:
    while not over.is_set():
        request = Fork(number)
        found.requests += 1
        begin = time.monotonic()
        try:
            request.check(await asyncio.wait_for(client.ask(request.workflow, **request.inputs), PATIENCE))
        except AssertionError as error:
            found.wrong.append(str(error))
        except (FairwayError, TimeoutError) as error:
            found.unanswered.append(f"{number}: {type(error).__name__}: {error}")
        found.slowest = max(found.slowest, time.monotonic() - begin)
        number += CLIENTS
