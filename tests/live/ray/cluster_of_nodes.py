"""The bridge and the agents of many nodes, as far as their backend sees them, and a backend that runs on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import CommandAnswer
from fairway.live.backend.commands import JobProgram, RunCommand, StartRun
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.reports import (
    BackendReport,
    Connected,
)
from fairway.live.backend.status import BackendStatus, RunState, RunStatus
from fairway.live.ray.backend import RayBackend
from fairway.live.ray.bridge_client import BridgeGoneError, NodesThere, NodeThere


class Agent:
    """The agent of a node: says what the test has it say."""

    def __init__(self, directory: Path, *, emulate: str | None, time_scale: float, agents: object) -> None:  # noqa: ARG002
        self.name, self.emulate, self.time_scale = directory.name, emulate, time_scale
        self.given: list[RunCommand] = []
        self.standing: BackendStatus | Exception = BackendStatus("i", 0, ())
        self.is_shut_down = False
        SITE[-1].agents[self.name] = self

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        self.epoch, self.say = epoch, report
        await asyncio.Event().wait()

    async def give(self, command: RunCommand) -> CommandAnswer:
        self.given.append(command)
        if isinstance(command, StartRun):
            run = RunStatus(command.lease, command.job, command.accelerator, command.workers, RunState.STARTING)
            return CommandAnswer("accepted", run)
        return CommandAnswer("accepted")

    async def status(self) -> BackendStatus:
        if isinstance(self.standing, Exception):
            raise self.standing
        return self.standing

    async def shut_down(self) -> None:
        self.is_shut_down = True


class Bridge:
    """A bridge: tells of nodes, and answers questions."""

    def __init__(self) -> None:
        self.news: asyncio.Queue[NodesThere | None] = asyncio.Queue()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.stopped = False
        self.said: dict[str, str | None] = {}
        self.checked: list[JobProgram] = []

    @classmethod
    async def start(cls, directory: Path, **options: str) -> Bridge:  # noqa: ARG003
        SITE[-1].options = options
        found = SITE[-1].starts.pop(0) if SITE[-1].starts else Bridge()
        if isinstance(found, Exception):
            raise found
        SITE[-1].bridges.append(found)
        return found

    async def nodes(self) -> AsyncIterator[NodesThere]:
        while (there := await self.news.get()) is not None:
            yield there

    async def stop(self) -> None:
        self.stopped = True
        self.news.put_nowait(None)

    def socket_directory(self, node: str) -> Path:
        return Path("/sockets") / node

    async def ask(self, question: str, **fields: Any) -> Any:
        if self.stopped:
            raise BridgeGoneError("it has ended")
        self.asked.append((question, fields))
        return (7001, 7002) if question == "ports" else None

    def check(self, program: JobProgram) -> dict[str, str | None]:
        self.checked.append(program)
        return self.said

    def read_log(self, node: str, job: str, rank: int, position: int, most: int) -> LogBlock:
        if self.stopped:
            raise BridgeGoneError("it has ended")
        content = f"{job} {rank} on {node}".encode()
        return LogBlock(content[position : position + most], len(content), 0)


@dataclass
class Site:
    """What the stand-ins have to do with."""

    directory: Path
    agents: dict[str, Agent] = field(default_factory=dict)
    bridges: list[Bridge] = field(default_factory=list)
    starts: list[Bridge | Exception] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    reports: list[BackendReport] = field(default_factory=list)

    def backend(self, **options: Any) -> RayBackend:
        return RayBackend(self.directory, **{"fence_seconds": 0.05, **options})

    @property
    def bridge(self) -> Bridge:
        return self.bridges[-1]

    async def nodes(self, *nodes: NodeThere, **problems: str) -> None:
        self.bridge.news.put_nowait(NodesThere(nodes, problems))
        await settled()

    def take(self) -> list[BackendReport]:
        taken, self.reports[:] = list(self.reports), []
        return taken

    @property
    def remembered(self) -> list[str]:
        found: list[str] = json.loads((self.directory / "nodes.json").read_text())["nodes"]
        return found


SITE: list[Site] = []


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0.001)


def node(name: str, *, shares: bool = True, leaving: str | None = None, emulate: str | None = "v100=1") -> NodeThere:
    return NodeThere(name, f"at-{name}", emulate, "/files", shares, leaving)


def standing(*runs: RunStatus, accelerators: int = 1, **fields: Any) -> BackendStatus:
    return BackendStatus("i", 0, tuple(Accelerator("v100", number) for number in range(accelerators)), runs, **fields)


def run_of(lease: int, job: str = "job", state: RunState = RunState.RUNNING) -> RunStatus:
    return RunStatus(lease, job, "v100", (0,), state)


Scene = Callable[[RayBackend], Awaitable[None]]


def play(site: Site, scene: Scene, **options: Any) -> None:
    """Run a backend while a scene is played."""

    async def both() -> None:
        backend = site.backend(**options)
        running = asyncio.create_task(backend.run(5, site.reports.append))
        await settled()
        try:
            await scene(backend)
            if running.done():
                running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(both())


async def connected(site: Site, *names: str, **runs: tuple[RunStatus, ...]) -> list[Connected]:
    """These nodes are there, and their agents answer."""
    await site.nodes(*(node(name) for name in names))
    for name in names:
        site.agents[name].say(Connected(standing(*runs.get(name, ()))))
    await settled()
    return [report for report in site.take() if isinstance(report, Connected)]
