"""A controller's end of the connection to an agent: commands with answers, and events as they come."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fairway.errors import FairwayError
from fairway.live.local.agent_messages import (
    NAMES,
    Command,
    Drain,
    End,
    Extend,
    Forget,
    HandOver,
    Hello,
    RefusedError,
    Retire,
    Shutdown,
    Start,
    Status,
)
from fairway.live.local.frames import connected_socket, encoded, read_message

Answer = dict[str, Any]


class AgentGoneError(FairwayError):
    """The agent cannot be reached; what was asked of it may have been done or not, and can be asked again."""


class AgentClient:
    """One connection; made by `connect`. After it broke, make another and ask for the `status`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[Answer]] = {}
        self._events: asyncio.Queue[Answer | None] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen())
        self.gone = False

    @classmethod
    async def connect(cls, directory: Path, epoch: int | None) -> tuple[AgentClient, Answer]:
        """Connect as the controller of this epoch, or, without one, to look only; also gives the status."""
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connected_socket(directory))
        except OSError as error:
            raise AgentGoneError(f"no agent answers in {directory}: {error.strerror or error}") from None
        client = cls(reader, writer)
        try:
            return client, await client.ask(Hello(epoch))
        except BaseException:
            await client.close()
            raise

    async def ask(self, command: Command) -> Answer:
        """Give a command and wait for its answer; raises `RefusedError` if the agent does not do it."""
        if self.gone:
            raise AgentGoneError("the agent is gone")
        number = next(self._numbers)
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        fields: Answer = TypeAdapter(type(command)).dump_python(command, mode="json")
        try:
            self._writer.write(encoded({"id": number, "command": NAMES[type(command)], **fields}))
            await self._writer.drain()
            content: Answer = await answer
        except ConnectionError:
            raise AgentGoneError("the agent is gone") from None
        finally:
            self._open.pop(number, None)
        if not content.pop("ok"):
            raise RefusedError(content["code"], content["error"])
        content.pop("reply")
        return content

    async def start(self, command: Start) -> Answer:
        """Run a job under a lease: `result` is "accepted", "known" or "stale", `run` how it stands."""
        return await self.ask(command)

    async def end(self, lease: int, job: str, *, save: bool = True) -> Answer:
        """End a lease; the event "exited" tells when it is over."""
        return await self.ask(End(lease, job, save))

    async def extend(self, until: float, leases: list[int] | None = None) -> Answer:
        """Let leases, or all, run on."""
        return await self.ask(Extend(until, leases))

    async def hand_over(
        self, job: str, old: int, lease: int, *, until: float | None = None, steps_per_second: float | None = None
    ) -> Answer:
        """Let a job go on under a new lease without a stop."""
        return await self.ask(HandOver(job, old, lease, until, steps_per_second))

    async def status(self) -> Answer:
        """Everything that a controller has to know to take over."""
        return await self.ask(Status())

    async def forget(self, lease: int, job: str) -> Answer:
        """How the run ended is written down elsewhere."""
        return await self.ask(Forget(lease, job))

    async def retire(self, job: str) -> Answer:
        """The job will not come back."""
        return await self.ask(Retire(job))

    async def drain(self, *, on: bool = True) -> Answer:
        """Take no new runs, or take them again."""
        return await self.ask(Drain(on))

    async def shutdown(self) -> Answer:
        """Let the agent end; jobs run on."""
        return await self.ask(Shutdown())

    async def events(self) -> AsyncIterator[Answer]:
        """The events as they come, until the connection breaks."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """End the connection; neither the agent nor its jobs mind."""
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _listen(self) -> None:
        try:
            while (message := await read_message(self._reader)) is not None:
                if "event" in message:
                    self._events.put_nowait(message)
                elif (answer := self._open.get(message["reply"])) is not None and not answer.done():
                    answer.set_result(message)
        finally:
            self.gone = True
            self._events.put_nowait(None)
            for answer in self._open.values():
                if not answer.done():
                    answer.set_exception(AgentGoneError("the agent is gone"))


def start_agent(
    directory: Path, *, emulate: str | None = None, time_scale: float = 1.0, patience: float = 30.0
) -> subprocess.Popen[bytes]:
    """Start an agent that outlives this process, and wait until it listens; its log is `DIR/agent.log`."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fairway.live.local.agent", "--directory", str(directory)]
    command += ["--emulate", emulate] if emulate else []
    command += ["--time-scale", str(time_scale)]
    with (directory / "agent.log").open("ab") as log:
        agent = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    deadline = time.monotonic() + patience
    while True:
        with suppress(OSError):
            connected_socket(directory).close()
            return agent
        if agent.poll() is not None or time.monotonic() > deadline:
            lines = (directory / "agent.log").read_text(errors="replace").strip().splitlines()
            raise AgentGoneError(f"the agent did not start: {lines[-1] if lines else 'it said nothing'}")
        time.sleep(0.01)
