"""The embedded backend: one agent on this machine, started when it is not there, and again whenever it is killed."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairway.errors import FairwayError
from fairway.live.backend import BackendGoneError, Connected, Gone, Happened, Report, Superseded, SupersededError
from fairway.live.local.accelerators import emulated_accelerators
from fairway.live.local.agent_client import AgentClient, AgentGoneError, start_agent
from fairway.live.local.agent_messages import Command, RefusedError

_LOG = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 5.0
_ENDING_SECONDS = 10.0

_started: list[subprocess.Popen[bytes]] = []
"""Agents outlive whoever started them; remembered here, so that those that have ended do not stay zombies."""


class LocalBackend:
    """The processes of this machine, through the agent of a directory."""

    def __init__(self, directory: Path, *, emulate: str | None = None, time_scale: float = 1.0) -> None:
        self._directory, self._emulate, self._time_scale = directory, emulate, time_scale
        self._wanted = None if emulate is None else {(one.type, one.number) for one in emulated_accelerators(emulate)}
        self._client: AgentClient | None = None
        self._agent: subprocess.Popen[bytes] | None = None
        self._closed = False

    async def run(self, epoch: int, report: Callable[[Report], None]) -> None:
        """Keep a connection, and an agent at its other end."""
        wait = _FIRST_WAIT_SECONDS
        while True:
            try:
                client, status = await self._connected(epoch)
            except RefusedError as refused:
                report(Superseded(str(refused)))
                return
            except (FairwayError, OSError) as error:
                report(Gone(str(error)))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
                continue
            wait = _FIRST_WAIT_SECONDS
            self._client = client
            report(Connected(status))
            try:
                async for event in client.events():
                    report(Happened(event))
            finally:
                self._client = None
                await client.close()
            if self._closed:
                return
            report(Gone("the agent is gone; its jobs run on, and it is started again"))

    async def ask(self, command: Command) -> Mapping[str, Any]:
        """Give a command to the agent."""
        if self._client is None:
            raise BackendGoneError("the agent is gone")
        try:
            return await self._client.ask(command)
        except AgentGoneError as error:
            raise BackendGoneError(str(error)) from None
        except RefusedError as refused:
            if refused.code == "superseded":
                raise SupersededError(str(refused)) from None
            raise

    async def shut_down(self) -> None:
        """Let the agent end."""
        self._closed = True
        if self._client is not None:
            with suppress(AgentGoneError, RefusedError):
                await self._client.shutdown()
        if self._agent is not None:
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._agent.wait, _ENDING_SECONDS)

    async def _connected(self, epoch: int) -> tuple[AgentClient, Mapping[str, Any]]:
        try:
            client, status = await AgentClient.connect(self._directory, epoch)
        except AgentGoneError:
            await self._start()
            client, status = await AgentClient.connect(self._directory, epoch)
        if self._fits(status):
            return client, status
        # It was started for other accelerators; its jobs do not notice the change of agents.
        await client.shutdown()
        async for _ in client.events():
            pass
        await client.close()
        await self._start()
        return await AgentClient.connect(self._directory, epoch)

    def _fits(self, status: Mapping[str, Any]) -> bool:
        there = {(one["type"], one["number"]) for one in status["accelerators"] if one["emulated"]}
        others = [one for one in status["accelerators"] if not one["emulated"]]
        right = not there if self._wanted is None else there == self._wanted and not others
        return right and status["time_scale"] == self._time_scale

    async def _start(self) -> None:
        _started[:] = [agent for agent in _started if agent.poll() is None]
        self._agent = await asyncio.to_thread(
            start_agent, self._directory, emulate=self._emulate, time_scale=self._time_scale
        )
        _started.append(self._agent)
