"""The agent: a process of its own that looks after the jobs of this machine, whatever becomes of the controller.

    python -m fairway.live.local.agent --directory DIR [--emulate v100=2,k80=1] [--time-scale 60] [--bound-to PID]

It listens on `DIR/agent.sock`, which only its owner can open. Killed and started again on the same directory, it goes
on where it was. Jobs do not depend on it, except that no controller can reach them while it is away. Bound to another
process, such as that by which a cluster knows that the machine is there, it kills its runs when that one ends: they are
given up for lost then, and begin anew elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from fairway.errors import FairwayError, InputError
from fairway.live.backend.accelerators import (
    Accelerator,
    accelerators_of,
    described,
    emulated_accelerators,
)
from fairway.live.backend.answers import Refusal, RefusedError
from fairway.live.backend.codec import REPORTS, Document
from fairway.live.backend.reports import AcceleratorsChanged, BackendReport
from fairway.live.devices.look import GpuWatch, looked_within
from fairway.live.local.agent.frames import SOCKET, encoded, listening_socket, peer_of, read_message
from fairway.live.local.agent.keepers import KeeperProcesses, Keepers
from fairway.live.local.agent.messages import (
    REQUESTS,
    SUPERSEDED,
    Acknowledged,
    AgentReply,
    AgentRequest,
    AskStatus,
    Drain,
    Greeting,
    Hello,
    Ping,
    Shutdown,
    reply_document,
)
from fairway.live.local.agent.nurseries import Nursery
from fairway.live.local.agent.run_table import RunTable
from fairway.live.local.identity import ProcessIdentity, identify, open_process
from fairway.live.machine.abandoned_groups import hold, remove_abandoned, undisturbed
from fairway.live.machine.containment import Containment
from fairway.live.machine.machine_size import machine_size
from fairway.wall_clock import MachineClock

_TICK_SECONDS = 0.05
_ENDING_SECONDS = 2.0
_MOST_UNREAD = 8 * 2**20
_MOST_REFUSED = 256
_LOOK_AT_GPUS_SECONDS = 2.0
_DRIVER_SECONDS = 30.0
_LOG = logging.getLogger(__name__)

Converse: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Listen: TypeAlias = Callable[[Converse], Awaitable[Callable[[], None]]]
"""Lets connections in, each to be conversed with; gives what ends that."""


@dataclass(slots=True, eq=False)
class _Connection:
    """`refused` are the last refusals, by the number of their request."""

    writer: asyncio.StreamWriter
    epoch: int | None = None
    greeted: bool = False
    refused: dict[int, Document] = field(default_factory=dict)


class Agent:
    """Speaks with controllers; the table of runs does the work."""

    def __init__(
        self,
        directory: Path,
        accelerators: list[Accelerator],
        *,
        time_scale: float = 1.0,
        keepers: Keepers | None = None,
        clock: MachineClock = time,
        instance: str | None = None,
        outside: Mapping[str, str] = os.environ,
        gpus: GpuWatch | None = None,
    ) -> None:
        """For the runs of a directory; with other `keepers` than processes of this machine, none are started.

        `gpus` are looked at again and again, so that a controller hears how they do.
        """
        self._gpus = gpus
        self._directory, self._time_scale = directory, time_scale
        self._connections: set[_Connection] = set()
        self._conversations: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._nursery = Nursery(directory, self.tick)
        with undisturbed(Containment.places()):
            containment = Containment.found(directory) if keepers is None else Containment()
            groups = (*containment.parents, *containment.bounding)
            self._holds = hold(groups)
        remove_abandoned(groups)
        self._runs = RunTable(
            directory,
            accelerators,
            emit=self._push,
            keepers=keepers or KeeperProcesses(self._watch, self._nursery, containment),
            time_scale=time_scale,
            outside=outside,
            clock=clock,
            instance=instance or str(os.getpid()),
            containment=containment,
            machine=machine_size(),
        )

    @property
    def runs(self) -> RunTable:
        """The runs that it looks after."""
        return self._runs

    async def serve(self, listen: Listen | None = None, *, tick_seconds: float = _TICK_SECONDS,
                    bound_to: ProcessIdentity | None = None) -> None:  # fmt: skip
        """Until a controller or a signal ends it; `listen` lets controllers in, by its socket if nothing is given.

        Once the process has ended that it is `bound_to`, it kills its runs, and ends when they are gone.
        """
        self.tick()
        close = await (listen or self._listen)(self.converse)
        looking = None if self._gpus is None else asyncio.create_task(self._look_at_gpus(self._gpus))
        try:
            while not self._over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), tick_seconds)
                self.tick()
                if bound_to is not None and not bound_to.alive and self._runs.kill_all():
                    _LOG.warning("process %d has ended, and so does this agent; its runs were killed", bound_to.pid)
                    self._over.set()
        finally:
            close()
            if looking is not None:
                looking.cancel()
            for connection in list(self._connections):
                connection.writer.close()
            if self._conversations:  # each ends when its connection does; one that were cancelled would log an error
                await asyncio.wait(self._conversations, timeout=_ENDING_SECONDS)
            self._runs.close(_ENDING_SECONDS)
            for descriptor in self._holds:
                os.close(descriptor)
            self._nursery.close()

    async def _listen(self, converse: Converse) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._over.set)

        async def let_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if _is_ours(writer):
                await converse(reader, writer)
            else:
                writer.close()

        server = await asyncio.start_unix_server(let_in, sock=listening_socket(self._directory))

        def close() -> None:
            server.close()
            (self._directory / SOCKET).unlink(missing_ok=True)

        return close

    def tick(self) -> None:
        """See what has happened to the runs."""
        try:
            self._runs.tick()
        except OSError:  # a full disk, for example; what is not written down now is written down with what comes next
            _LOG.exception("cannot look after the runs")

    async def _look_at_gpus(self, watch: GpuWatch) -> None:
        """Again and again, also after a look that failed; while the driver does not answer, its GPUs are sick."""

        def told() -> None:
            self._push(AcceleratorsChanged(self._runs.status().accelerators))

        def silent() -> None:
            self._runs.lose_sight(f"the driver has not answered for {_DRIVER_SECONDS:g} s")
            told()

        while True:
            await asyncio.sleep(_LOOK_AT_GPUS_SECONDS)
            try:
                self._runs.look_again(await looked_within(watch, _DRIVER_SECONDS, silent))
            except Exception:  # whatever a library does, the next look may be better
                _LOG.exception("cannot look at the GPUs")
            told()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what one connection asks, until it ends."""
        connection = _Connection(writer)
        self._connections.add(connection)
        conversation = asyncio.current_task()
        assert conversation is not None
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)
        try:
            while (message := await read_message(reader)) is not None:
                self._send(connection, self._answer(connection, message))
                await writer.drain()
        except (FairwayError, ConnectionError) as error:
            _LOG.warning("a connection is closed: %s", error)
        finally:
            self._connections.discard(connection)
            writer.close()

    def _answer(self, connection: _Connection, message: Document) -> Document:
        number = message.pop("id", None)
        if isinstance(number, int) and (before := connection.refused.get(number)) is not None:
            return before  # its controller counts on it that the request was not and will not be carried out
        answer: Document
        try:
            reply = self._carried_out(connection, REQUESTS.read(message))
            answer = {"ok": True, "answer": reply_document(reply)}
        except RefusedError as refused:
            answer = {"ok": False, "code": refused.code, "error": str(refused)}
        except InputError as error:
            answer = {"ok": False, "code": Refusal.BAD_INPUT, "error": str(error)}
        except OSError as error:  # a full disk, for example; the state on disk is whole, and so is the agent
            _LOG.exception("a command failed")
            answer = {"ok": False, "code": Refusal.SYSTEM, "error": str(error)}
        answer = {"reply": number, **answer}
        if isinstance(number, int) and not answer["ok"]:
            connection.refused[number] = answer
            if len(connection.refused) > _MOST_REFUSED:
                del connection.refused[next(iter(connection.refused))]
        return answer

    def _carried_out(self, connection: _Connection, request: AgentRequest) -> AgentReply:
        if isinstance(request, Hello):
            return self._greet(connection, request)
        if connection.epoch is not None and connection.epoch < self._runs.state.epoch:
            raise RefusedError(SUPERSEDED, self._superseded(connection.epoch))
        if not connection.greeted:
            raise RefusedError("no-hello", "say hello first")
        if connection.epoch is None and not isinstance(request, AskStatus):
            raise RefusedError("read-only", "this connection has no epoch and may only ask for the status")
        match request:
            case AskStatus():
                return self._runs.status()
            case Ping():
                return Acknowledged()
            case Drain():
                self._runs.drain(on=request.on)
            case Shutdown():
                asyncio.get_running_loop().call_soon(self._over.set)
            case _:
                return self._runs.carry_out(request)
        return Acknowledged()

    def _greet(self, connection: _Connection, hello: Hello) -> Greeting:
        if hello.epoch is not None:
            if hello.epoch < self._runs.state.epoch:
                raise RefusedError(SUPERSEDED, self._superseded(hello.epoch))
            self._runs.new_epoch(hello.epoch)
            for other in list(self._connections):
                if other is not connection and other.epoch is not None and other.epoch <= hello.epoch:
                    other.greeted = False  # what it still has to say is late, also if the same controller said it
                    other.writer.close()
        connection.epoch, connection.greeted = hello.epoch, True
        return Greeting(self._time_scale, self._runs.status())

    def _superseded(self, epoch: int) -> str:
        return f"a controller of epoch {self._runs.state.epoch} has taken over from epoch {epoch}"

    def _push(self, report: BackendReport) -> None:
        document = REPORTS.document_of(report)
        for connection in list(self._connections):
            if connection.greeted:
                self._send(connection, document)

    def _send(self, connection: _Connection, message: Document) -> None:
        transport = connection.writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > _MOST_UNREAD:  # a controller that does not read can come back and look
            transport.abort()
            return
        connection.writer.write(encoded(message))

    def _watch(self, keeper: ProcessIdentity) -> None:
        """Look again as soon as this process ends; should it be gone already, the next tick finds out."""
        descriptor = open_process(keeper)
        if descriptor is None:
            return
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            self.tick()

        loop.add_reader(descriptor, ended)


def _is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether the other side belongs to the same user, or to root; the mode of the socket says so too."""
    peer: socket.socket = writer.get_extra_info("socket")
    _, user = peer_of(peer)
    return user in {0, os.getuid()}


def _options(arguments: list[str]) -> argparse.Namespace:
    # Not typer: an agent is started by programs, and should be there in a fraction of a second.
    parser = argparse.ArgumentParser(
        prog="python -m fairway.live.local.agent", description="Runs jobs on this machine."
    )
    parser.add_argument("--directory", type=Path, required=True, help="where it keeps its state, logs and socket")
    parser.add_argument("--emulate", metavar="TYPE=COUNT,...", help="emulated accelerators, in place of those found")
    parser.add_argument("--time-scale", type=float, default=1.0, help="how much faster than real emulated ones run")
    parser.add_argument("--bound-to", type=int, metavar="PID", help="kill all runs and end when this process ends")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run an agent; 2 if it cannot be."""
    options = _options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        if not hasattr(os, "pidfd_open"):
            raise InputError("jobs run as processes on Linux only: this system does not say which process is which")
        if not (math.isfinite(options.time_scale) and options.time_scale > 0):
            raise InputError(f"time-scale: {options.time_scale} given, expected a number above 0")
        gpus = None if options.emulate else GpuWatch()
        findings = None if gpus is None else gpus.look()
        accelerators = emulated_accelerators(options.emulate) if findings is None else accelerators_of(findings)
        directory: Path = options.directory.absolute()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{directory}: another agent works in this directory") from None
        _LOG.info("agent %d in %s: %s", os.getpid(), directory, described(accelerators))
        bound_to = None
        if options.bound_to is not None and (bound_to := identify(options.bound_to)) is None:
            raise InputError(f"bound-to: there is no process {options.bound_to}")
        for remark in () if findings is None else findings.remarks:
            _LOG.info("%s", remark)
        asyncio.run(_served(directory, accelerators, options.time_scale, bound_to, gpus))
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


async def _served(
    directory: Path,
    accelerators: list[Accelerator],
    time_scale: float,
    bound_to: ProcessIdentity | None,
    gpus: GpuWatch | None,
) -> None:
    await Agent(directory, accelerators, time_scale=time_scale, gpus=gpus).serve(bound_to=bound_to)
