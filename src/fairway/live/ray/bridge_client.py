"""The controller's end of the bridge: starts that process, asks it things from any thread, and follows its nodes."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairway.errors import FairwayError
from fairway.live.backend.logs import LogBlock
from fairway.live.local.agent.client import AgentGoneError, AgentProcesses
from fairway.live.local.agent.frames import connected_socket, encoded, read_message
from fairway.live.ray_cluster.client_process import end_client, ready_client, start_client

_COUNT = itertools.count(1)


class BridgeGoneError(FairwayError):
    """The bridge is not there, or does not answer."""


@dataclass(frozen=True, slots=True)
class NodeThere:
    """A node that can be used: its name, what its agent is to emulate, and where that keeps its files there.

    It `shares` the controller's directory if it finds it at the same path. `leaving` is the notice that it ends soon.
    """

    name: str
    address: str
    emulate: str | None
    directory: str
    shares: bool
    leaving: str | None = None


@dataclass(frozen=True, slots=True)
class NodesThere:
    """All nodes that can be used, and what is wrong with others, by their names."""

    nodes: tuple[NodeThere, ...]
    problems: dict[str, str]


class BridgeProcess:
    """A bridge that was started; it ends with this object's end of its standard input."""

    def __init__(self, directory: Path, process: subprocess.Popen[bytes]) -> None:
        self._directory, self._process = directory, process
        self._control = directory / "bridge"

    @classmethod
    async def start(cls, directory: Path, *, address: str, namespace: str, node_directory: str) -> BridgeProcess:
        """Start one; raises `InputError` with what is wrong where it cannot be a client of that Ray."""
        own = directory / "bridges" / f"{os.getpid()}-{next(_COUNT)}"  # another may still have its sockets
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = {"address": address, "namespace": namespace, "node_directory": node_directory, "directory": str(own)}
        path = directory / "bridge.log"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
            process = start_client("fairway.live.ray.bridge", options, log)
        bridge = cls(own, process)
        try:
            await asyncio.to_thread(ready_client, process, address, path)
        except BaseException:
            await bridge.stop()
            raise
        return bridge

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    async def stop(self) -> None:
        """End it; actors and agents stay."""
        await asyncio.to_thread(end_client, self._process)
        await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)

    def socket_directory(self, node: str) -> Path:
        """Where the socket is that stands for the agent of a node."""
        return self._directory / "nodes" / node

    async def nodes(self) -> AsyncIterator[NodesThere]:
        """The nodes, now and whenever they change, until the bridge ends."""
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connected_socket(self._control))
        except OSError:
            return
        try:
            writer.write(encoded({"ask": "watch"}))
            while (message := await read_message(reader)) is not None:
                yield NodesThere(tuple(NodeThere(**one) for one in message["nodes"]), message["problems"])
        finally:
            writer.close()

    async def ask(self, question: str, **fields: Any) -> Any:
        """Ask the bridge something."""
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connected_socket(self._control))
            try:
                writer.write(encoded({"ask": question, **fields}))
                answer = await read_message(reader)
            finally:
                writer.close()
        except OSError as error:
            raise BridgeGoneError(f"the bridge to Ray is gone: {error.strerror or error}") from None
        if answer is None:
            raise BridgeGoneError("the bridge to Ray has ended")
        if not answer["ok"]:
            raise BridgeGoneError(answer["error"])
        return answer["answer"]

    def ask_at_once(self, question: str, **fields: Any) -> Any:
        """The same for a thread without an event loop."""
        return asyncio.run(self.ask(question, **fields))

    def read_log(self, node: str, job: str, rank: int, position: int, most: int) -> LogBlock:
        """A part of a log of a node, for any thread."""
        block = self.ask_at_once("log", node=node, job=job, rank=rank, position=position, most=most)
        return LogBlock(base64.b64decode(block["content"]), block["size"], block["skipped"])

    def check(self, program: Any) -> dict[str, str | None]:
        """What each node says of a program, for any thread."""
        said: dict[str, str | None] = self.ask_at_once("check", program=asdict(program))
        return said


class NodeAccess(AgentProcesses):
    """The agent of a node, through the socket that the bridge has for it; it is started through its actor."""

    def __init__(self, node: str, bridge: BridgeProcess) -> None:
        self._node, self._bridge = node, bridge

    def wake(self, writer: asyncio.StreamWriter) -> None:
        """An agent of another machine cannot be signalled from here."""

    async def start(self, directory: Path, *, emulate: str | None, time_scale: float) -> None:  # noqa: ARG002
        """Have the agent started on its node."""
        try:
            why = await self._bridge.ask("start", node=self._node, emulate=emulate, time_scale=time_scale)
        except BridgeGoneError as error:
            raise AgentGoneError(str(error)) from None
        if why is not None:
            raise AgentGoneError(f"the agent of node {self._node} does not start: {why}")

    async def wait_for_end(self, directory: Path) -> None:  # noqa: ARG002
        """Wait until it has let go of its directory there."""
        with suppress(BridgeGoneError):
            await self._bridge.ask("wait", node=self._node)
