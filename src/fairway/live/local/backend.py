"""The embedded backend: one agent on this machine, started when it is not there, and again whenever it is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairway.back_off import BackOff
from fairway.errors import FairwayError
from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.backend.answers import BackendGoneError, CommandAnswer, RefusedError, SupersededError
from fairway.live.backend.commands import JobProgram, RunCommand
from fairway.live.backend.demand import Demand
from fairway.live.backend.logs import LogBlock
from fairway.live.backend.registry import MakeBackend
from fairway.live.backend.reports import BackendReport, Connected, Disconnected, Superseded
from fairway.live.backend.status import BackendStatus
from fairway.live.local.agent.client import (
    AgentAccess,
    AgentClient,
    AgentGoneError,
    AgentProcesses,
    AgentSilentError,
)
from fairway.live.local.agent.messages import SUPERSEDED, Greeting
from fairway.live.local.log_files import log_path, read_log
from fairway.live.local.programs import refuse_what_cannot_run

_BACK_OFF = BackOff(0.1, 5.0)
_PING_SECONDS = 2.0


class LocalBackend:
    """The processes of this machine, through the agent of a directory."""

    def __init__(self, directory: Path, *, emulate: str | None = None, time_scale: float = 1.0,
                 agents: AgentAccess | None = None) -> None:  # fmt: skip
        self._directory, self._emulate, self._time_scale = directory, emulate, time_scale
        self._agents = agents or AgentProcesses()
        self._wanted = None if emulate is None else {(one.type, one.number) for one in emulated_accelerators(emulate)}
        self._client: AgentClient | None = None
        self._superseded: str | None = None
        self._closed = False

    async def run(self, epoch: int, report: Callable[[BackendReport], None]) -> None:
        """Keep a connection, and an agent at its other end."""
        failures = 0
        while True:
            try:
                client, status = await self._connected(epoch)
            except RefusedError as refused:
                self._superseded = str(refused)
                report(Superseded(self._superseded))
                return
            except (FairwayError, OSError) as error:
                report(Disconnected(f"{error}; see {self._directory / 'agent.log'}"))
                failures += 1
                await asyncio.sleep(_BACK_OFF.seconds(failures))
                continue
            failures = 0
            self._client = client
            report(Connected(status))
            watching = asyncio.create_task(_watched(client))
            try:
                async for happened in client.reports():
                    report(happened)
            finally:
                self._client = None
                watching.cancel()
                await client.close()
            if self._closed:
                return
            silent = client.silence
            report(Disconnected(silent or "the agent is gone; its jobs run on, and it is started again"))

    async def give(self, command: RunCommand) -> CommandAnswer:
        """Give a command to the agent."""
        try:
            return await self._present().give(command)
        except (AgentGoneError, RefusedError) as error:
            raise _translated(error) from None

    async def status(self) -> BackendStatus:
        """Ask the agent how things stand."""
        try:
            return await self._present().status()
        except (AgentGoneError, RefusedError) as error:
            raise _translated(error) from None

    async def need(self, demand: Demand) -> None:
        """Nothing: this machine is what it is."""

    def check(self, program: JobProgram) -> None:
        """Refuse directories and commands that this machine does not have."""
        refuse_what_cannot_run(program)

    def read_log(self, job: str, rank: int, position: int, most: int) -> LogBlock:
        """Read a log from the agent's directory, whether the agent is there or not."""
        return read_log(log_path(self._directory, job, rank), position, most)

    async def shut_down(self) -> None:
        """Let the agent end."""
        self._closed = True
        if self._client is not None:
            with suppress(AgentGoneError, RefusedError):
                await self._client.shutdown()
        await self._agents.wait_for_end(self._directory)

    def _present(self) -> AgentClient:
        if self._superseded is not None:
            raise SupersededError(self._superseded)
        if self._client is None:
            raise BackendGoneError("the agent is gone")
        return self._client

    async def _connected(self, epoch: int) -> tuple[AgentClient, BackendStatus]:
        try:
            client, greeting = await AgentClient.connect(self._directory, epoch, access=self._agents)
        except AgentSilentError:
            raise  # it holds the directory, so that no other can take its place
        except AgentGoneError:
            await self._start()
            client, greeting = await AgentClient.connect(self._directory, epoch, access=self._agents)
        if self._fits(greeting):
            return client, greeting.status
        # It was started for other accelerators; its jobs do not notice the change of agents.
        await client.shutdown()
        async for _ in client.reports():
            pass
        await client.close()
        await self._start()
        client, greeting = await AgentClient.connect(self._directory, epoch, access=self._agents)
        return client, greeting.status

    def _fits(self, greeting: Greeting) -> bool:
        accelerators = greeting.status.accelerators
        there = {(one.type, one.number) for one in accelerators if one.emulated}
        others = [one for one in accelerators if not one.emulated]
        right = not there if self._wanted is None else there == self._wanted and not others
        return right and greeting.time_scale == self._time_scale

    async def _start(self) -> None:
        await self._agents.start(self._directory, emulate=self._emulate, time_scale=self._time_scale)


async def _watched(client: AgentClient) -> None:
    """Ask for a sign of life again and again; the connection is broken off when there is none."""
    with suppress(AgentGoneError):
        while True:
            await asyncio.sleep(_PING_SECONDS)
            with suppress(RefusedError):  # an answer, too
                await client.ping()


_MADE: MakeBackend = LocalBackend
"""For the type checker, which cannot see that the registry names this class."""


def _translated(error: AgentGoneError | RefusedError) -> FairwayError:
    """What an agent's failure to do something means for a controller."""
    if isinstance(error, AgentGoneError):
        return BackendGoneError(str(error))
    return SupersededError(str(error)) if error.code == SUPERSEDED else error
