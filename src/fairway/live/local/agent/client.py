"""A controller's end of the connection to an agent: requests with answers, and reports as they come."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from fairway.errors import FairwayError
from fairway.live.backend.answers import CommandAnswer, RefusedError
from fairway.live.backend.codec import REPORTS
from fairway.live.backend.commands import RunCommand
from fairway.live.backend.reports import BackendReport
from fairway.live.backend.status import BackendStatus
from fairway.live.local.agent.frames import connected_socket, encoded, peer_of, read_message
from fairway.live.local.agent.messages import (
    REQUESTS,
    AgentRequest,
    AskStatus,
    Drain,
    Greeting,
    Hello,
    Ping,
    Shutdown,
    read_reply,
)
from fairway.live.local.identity import identify, send_signal

SILENT_SECONDS = 10.0
"""An agent that does not answer for so long counts as lost. What it is asked takes milliseconds, or as long as a busy
disk needs for a small file."""

_ENDING_SECONDS = 10.0

_LOG = logging.getLogger(__name__)


class AgentGoneError(FairwayError):
    """The agent cannot be reached; what was asked of it may have been done or not, and can be asked again."""


class AgentSilentError(AgentGoneError):
    """The process of the agent is there and does not answer, as if it were stopped; it may answer again some day.

    A controller that finds it silent when it connects lets it go on (SIGCONT): a job may have stopped it, and with it
    all the others.
    """

    def __init__(self) -> None:
        super().__init__(
            f"the agent lives but has not answered for {SILENT_SECONDS:g} s; jobs run on, it is woken in case it was "
            "stopped, and it is used again when it answers"
        )


class AgentAccess(Protocol):
    """How agents are reached and started."""

    async def open(self, directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Both ends of a connection to the agent of a directory; raises `OSError` where none listens."""
        ...

    def wake(self, writer: asyncio.StreamWriter) -> None:
        """Let the agent at the other end of a connection go on, in case it was stopped."""

    async def start(self, directory: Path, *, emulate: str | None, time_scale: float) -> None:
        """Start an agent, and wait until it listens."""

    async def wait_for_end(self, directory: Path) -> None:
        """Wait for an agent to end that was started from here and told to."""


class AgentClient:
    """One connection; made by `connect`. After it broke, make another and ask for the `status`.

    `silence` says so where it was broken off because the agent did not answer.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reports: asyncio.Queue[BackendReport | None] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen())
        self.gone = False
        self.silence: str | None = None

    @classmethod
    async def connect(
        cls, directory: Path, epoch: int | None, *, access: AgentAccess | None = None
    ) -> tuple[AgentClient, Greeting]:
        """Connect as the controller of this epoch, or, without one, to look only; also gives how things stand."""
        access = access or AgentProcesses()
        try:
            reader, writer = await access.open(directory)
        except BlockingIOError:  # as many connections wait for it as the system lets wait
            raise AgentSilentError from None
        except OSError as error:
            raise AgentGoneError(f"no agent answers in {directory}: {error.strerror or error}") from None
        client = cls(reader, writer)
        try:
            greeting: Greeting = await client._ask(Hello(epoch))
        except BaseException as error:
            if isinstance(error, AgentSilentError):
                access.wake(writer)
            await client.close()
            raise
        return client, greeting

    async def give(self, command: RunCommand) -> CommandAnswer:
        """Give a command and wait for its answer; raises `RefusedError` if the agent does not do it."""
        answer: CommandAnswer = await self._ask(command)
        return answer

    async def status(self) -> BackendStatus:
        """Everything that a controller has to know to take over."""
        status: BackendStatus = await self._ask(AskStatus())
        return status

    async def ping(self) -> None:
        """Wait for a sign of life; raises `AgentSilentError` where there is none in time."""
        await self._ask(Ping())

    async def drain(self, *, on: bool = True) -> None:
        """Let the agent take no new runs, or take them again."""
        await self._ask(Drain(on))

    async def shutdown(self) -> None:
        """Let the agent end; jobs run on."""
        await self._ask(Shutdown())

    async def reports(self) -> AsyncIterator[BackendReport]:
        """The reports as they come, until the connection breaks."""
        while (report := await self._reports.get()) is not None:
            yield report

    async def close(self) -> None:
        """End the connection; neither the agent nor its jobs mind."""
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _ask(self, request: AgentRequest) -> Any:
        if self.gone:
            raise AgentGoneError("the agent is gone")
        number = next(self._numbers)
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                self._writer.write(encoded({"id": number, **REQUESTS.document_of(request)}))
                await self._writer.drain()
                content = await answer
        except TimeoutError:
            silent = AgentSilentError()
            self.silence = str(silent)
            self._writer.transport.abort()  # what it answers later is not waited for: a new connection asks again
            raise silent from None
        except ConnectionError:
            raise AgentGoneError("the agent is gone") from None
        finally:
            self._open.pop(number, None)
        if not content["ok"]:
            raise RefusedError(content["code"], content["error"])
        return read_reply(request, content["answer"])

    async def _listen(self) -> None:
        try:
            while (message := await read_message(self._reader)) is not None:
                if REPORTS.tag in message:
                    self._reports.put_nowait(REPORTS.read(message))
                elif (answer := self._open.get(message["reply"])) is not None and not answer.done():
                    answer.set_result(message)
        except FairwayError as error:
            _LOG.warning("the connection to the agent is given up: %s", error)
        finally:
            self.gone = True
            self._reports.put_nowait(None)
            for answer in self._open.values():
                if not answer.done():
                    answer.set_exception(AgentGoneError("the agent is gone"))


_started: list[tuple[Path, subprocess.Popen[bytes]]] = []
"""The agents that this process has started, each with its directory. They outlive the backend that did; they are
remembered here, so that a later one can wait for them, and ended ones do not stay zombies."""


class AgentProcesses:
    """Agents as processes of this machine, which listen on a socket in their directory."""

    async def open(self, directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the socket."""
        return await asyncio.open_unix_connection(sock=connected_socket(directory))

    def wake(self, writer: asyncio.StreamWriter) -> None:
        """SIGCONT; an agent that had died would not be silent, but its connection broken."""
        agent = identify(peer_of(writer.get_extra_info("socket"))[0])
        if agent is not None:
            send_signal(agent, signal.SIGCONT)

    async def start(self, directory: Path, *, emulate: str | None, time_scale: float) -> None:
        """Start a process, which outlives this one."""
        _started[:] = [(where, agent) for where, agent in _started if agent.poll() is None]
        agent = await asyncio.to_thread(start_agent, directory, emulate=emulate, time_scale=time_scale)
        _started.append((directory, agent))

    async def wait_for_end(self, directory: Path) -> None:
        """Wait, but not for ever."""
        for where, agent in list(_started):
            if where == directory:
                with suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(agent.wait, _ENDING_SECONDS)


def start_agent(
    directory: Path,
    *,
    emulate: str | None = None,
    time_scale: float = 1.0,
    patience: float = 30.0,
    bound_to: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start an agent that outlives this process, and wait until it listens; its log is `DIR/agent.log`.

    One that is `bound_to` another process kills its runs and ends when that process has ended.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fairway.live.local.agent", "--directory", str(directory)]
    command += ["--emulate", emulate] if emulate else []
    command += ["--time-scale", str(time_scale)]
    command += ["--bound-to", str(bound_to)] if bound_to is not None else []
    with os.fdopen(os.open(directory / "agent.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as log:
        (directory / "agent.log").chmod(0o600)
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
