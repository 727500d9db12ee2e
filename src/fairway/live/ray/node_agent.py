"""The actor of a node: brings the bytes of a controller to the agent program of the node, and those of the agent back.

Ray keeps one such actor alive on every node. It decides nothing: the agent (`fairway.live.local.agent`) is a process
of its own beside it, which Ray's end of the actor does not reach (`launch`), and which alone knows of epochs and runs.
So an actor that is late, or comes twice, can do no harm. What it answers to the rest, logs and whether a program can
run there, it reads from the disk of its node.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import subprocess
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.live.backend.accelerators import found_accelerators
from fairway.live.backend.commands import JobProgram
from fairway.live.local.agent.frames import connected_socket
from fairway.live.local.log_files import log_path, read_log
from fairway.live.local.programs import refuse_what_cannot_run
from fairway.live.ray.work_package import ReceivedPackages

_MOST_BYTES = 1 << 20
_POLL_SECONDS = 20.0
"""How long a call that waits for bytes may take: shorter than what Ray, or a proxy on the way, would break off."""

_START_SECONDS = 60.0
_END_SECONDS, _LOOK_SECONDS = 10.0, 0.05


class NodeAgent:
    """What runs on a node as an actor; `name` is that of the node, `base` the directory for those of its agents."""

    def __init__(self, name: str, base: str) -> None:
        self._name = name
        self._directory = Path(base).expanduser() / name
        self._packages = ReceivedPackages(self._directory / "workdirs")
        self._open: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._count = 0
        self._starting = asyncio.Lock()

    async def describe(self) -> dict[str, Any]:
        """What a bridge has to know of the node before it uses it."""
        return {
            "name": self._name,
            "fairway": version("fairway"),
            "found": len(await asyncio.to_thread(found_accelerators)),
            "directory": str(self._directory),
            "hostname": socket.gethostname(),
        }

    async def sees(self, path: str, content: str) -> bool:
        """Whether a file of the controller's machine is here, too: both have that directory in common."""
        try:
            return await asyncio.to_thread(Path(path).read_text, "utf-8") == content
        except (OSError, ValueError):
            return False

    async def start(self, emulate: str | None, time_scale: float) -> str | None:
        """Start the agent program of this node; what is wrong, if it does not start."""
        async with self._starting:
            command = [sys.executable, "-m", "fairway.live.ray.launch", str(self._directory), str(os.getppid())]
            command += [str(time_scale), *([emulate] if emulate else [])]
            launch = await asyncio.create_subprocess_exec(
                *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            try:
                _, said = await asyncio.wait_for(launch.communicate(), _START_SECONDS)
            except TimeoutError:
                launch.kill()
                return f"the agent did not start within {_START_SECONDS:g} s"
            lines = said.decode(errors="replace").strip().splitlines()
            return None if launch.returncode == 0 else lines[-1] if lines else "the agent did not start"

    async def ports(self) -> tuple[int, int]:
        """Two ports of this node at which nothing listens."""
        with socket.socket() as one, socket.socket() as other:
            for probe in (one, other):
                probe.bind(("", 0))
            return one.getsockname()[1], other.getsockname()[1]

    async def wait_for_end(self) -> None:
        """Wait, but not for ever, until an agent that was told to end has let go of its directory."""
        for _ in range(int(_END_SECONDS / _LOOK_SECONDS)):
            with contextlib.suppress(OSError), (self._directory / "agent.lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def open(self) -> int | str:
        """Connect to the agent of this node: the number of the connection, or why there is none."""
        try:
            streams = await asyncio.open_unix_connection(sock=connected_socket(self._directory))
        except OSError as error:
            return error.strerror or str(error)
        self._count += 1
        self._open[self._count] = streams
        return self._count

    async def read(self, number: int) -> bytes | None:
        """The next bytes of the agent: none after a while without any, None when the connection is over."""
        if number not in self._open:
            return None
        reader, _ = self._open[number]
        try:
            found = await asyncio.wait_for(reader.read(_MOST_BYTES), _POLL_SECONDS)
        except TimeoutError:
            return b""
        except OSError:
            found = b""
        return found or None

    async def write(self, number: int, content: bytes) -> bool:
        """Pass bytes on to the agent; False when the connection is over."""
        if number not in self._open:
            return False
        _, writer = self._open[number]
        try:
            writer.write(content)
            await writer.drain()
        except OSError:
            return False
        return True

    async def close(self, number: int) -> None:
        """End a connection."""
        streams = self._open.pop(number, None)
        if streams is not None:
            with contextlib.suppress(OSError):
                streams[1].close()

    async def log(self, job: str, rank: int, position: int, most: int) -> dict[str, Any]:
        """A part of a log of this node."""
        return asdict(await asyncio.to_thread(read_log, log_path(self._directory, job, rank), position, most))

    async def has_directory(self, path: str) -> bool:
        """Whether a directory is on this node."""
        return await asyncio.to_thread(Path(path).is_dir)

    async def work_directory(self, job: str, digest: str) -> str | None:
        """Where the package of a job's work directory was unpacked."""
        return await asyncio.to_thread(self._packages.find, job, digest)

    async def receive(self, job: str, digest: str, position: int, content: bytes, last: bool) -> str | None:
        """Take in a part of such a package; where it was unpacked, with the last."""
        return await asyncio.to_thread(self._packages.receive, job, digest, position, content, last=last)

    async def drop_package(self, job: str) -> None:
        """A job never comes back."""
        await asyncio.to_thread(self._packages.drop, job)

    async def check(self, program: JobProgram) -> str | None:
        """What keeps a program from running on this node; None if nothing does."""
        try:
            await asyncio.to_thread(refuse_what_cannot_run, program)
        except InputError as error:
            return str(error)
        return None
