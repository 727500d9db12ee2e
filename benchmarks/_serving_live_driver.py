"""A system under test in a process of its own: serves an application, and sends it requests when told to.

    python -m benchmarks._serving_live_driver SYSTEM OPTIONS

It reads one command in JSON per line, and answers each with one line. Ours and the peer's are driven by the same code,
each by one process: what a command means is in `answered`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import IO, Any, Protocol, Self

from benchmarks import _serving_live_load as load

_SYSTEMS = {
    "ours": "benchmarks._serving_live_ours:Ours",
    "ours-http": "benchmarks._serving_live_http:OursOverHttp",
    "ray": "benchmarks._serving_live_ray:RayTrivial",
    "ray-http": "benchmarks._serving_live_ray:RayOverHttp",
    "ray-documents": "benchmarks._serving_live_ray_documents:RayDocuments",
}
PATIENCE = 180.0


class System(Protocol):
    """Something that serves; made with options as plain values."""

    async def start(self) -> None: ...
    async def ask(self, number: int) -> None:
        """Ask for what a number stands for, and fail unless the answer is right."""
        ...

    async def counts(self) -> dict[str, Any]:
        """What it has counted since it started."""
        ...

    async def stop(self) -> None: ...


async def answered(system: System, command: Mapping[str, Any]) -> dict[str, Any]:
    """Do what a command says."""
    match command:
        case {"clients": count, "seconds": seconds}:
            return (await load.clients(system.ask, count, seconds)).to_dict()
        case {"one_client": seconds}:
            ask = getattr(system, "ask_and_wait")  # noqa: B009 - not every system has it
            return load.one_client(ask, seconds).to_dict()
        case {"arrivals": moments, "inputs": inputs, "deadline": deadline}:
            return {"in_time": await load.in_time(system.ask, moments, inputs, deadline)}
        case {"arrivals": moments, "inputs": inputs}:
            return (await load.arrivals(system.ask, moments, inputs)).to_dict()
        case {"counts": True}:
            return await system.counts()
    raise AssertionError(f"unknown command: {command}")


async def serve(name: str, options: Mapping[str, Any], answers: IO[str]) -> None:
    """Answer commands until there are no more."""
    module, _, kind = _SYSTEMS[name].partition(":")
    system: System = getattr(import_module(module), kind)(**options)
    loop = asyncio.get_running_loop()
    try:
        await system.start()
        print(json.dumps({"ready": True}), file=answers, flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(await answered(system, json.loads(line))), file=answers, flush=True)
    finally:
        await system.stop()


class Driver:
    """The other end: starts the process, and asks it; use it as a context."""

    def __init__(self, system: str, environment: Mapping[str, str] | None = None, **options: Any) -> None:
        self._command = [sys.executable, "-m", "benchmarks._serving_live_driver", system, json.dumps(options)]
        self._environment = {**os.environ, **(environment or {})}
        self._log = tempfile.TemporaryFile(prefix="fairway-")  # noqa: SIM115 - lives as long as the process

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=self._environment,
        )
        self._heard()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()  # it takes that as the end
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def clients(self, count: int, seconds: float) -> load.Load:
        """So many clients for so long."""
        return load.Load(**self.tell(clients=count, seconds=seconds))

    def one_client(self, seconds: float) -> load.Load:
        """One client that waits for each answer, without asyncio."""
        return load.Load(**self.tell(one_client=seconds))

    def arrivals(self, moments: list[float], inputs: list[int]) -> load.Load:
        """Requests at these moments."""
        return load.Load(**self.tell(arrivals=moments, inputs=inputs))

    def counts(self) -> dict[str, Any]:
        """What the system has counted."""
        return self.tell(counts=True)

    def tell(self, **command: Any) -> dict[str, Any]:
        """Give a command, and wait for the answer."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        return self._heard()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            tail = b"\n".join(self._log.read().splitlines()[-30:]).decode(errors="replace")
            raise SystemExit(f"the driver has ended with {self._process.returncode}:\n{tail}")
        told: dict[str, Any] = json.loads(line)
        return told


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print is not an answer
    asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2]), answers))
