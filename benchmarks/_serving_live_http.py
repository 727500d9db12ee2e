"""The three trivial stages over HTTP: `fairway serve`, and Ray Serve's own HTTP side, asked by the same small client.

The client keeps its connections open, and does little more than write and read, so that it costs neither side much.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import deque
from typing import Any

from benchmarks._live_system import free_port

PATIENCE = 120.0
_END = b"\r\n\r\n"


class HttpClient:
    """Posts JSON to one address, over as many connections as there are requests at a time."""

    def __init__(self, port: int, path: str) -> None:
        self._port, self._path = port, path
        self._free: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = deque()

    async def post(self, content: object) -> Any:
        body = json.dumps(content).encode()
        head = f"POST {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        while True:
            is_used = bool(self._free)
            connection = self._free.pop() if is_used else await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = connection
            try:
                writer.write(request)
                answer = await reader.readuntil(_END)
                break
            except (OSError, asyncio.IncompleteReadError):
                writer.close()
                if not is_used:  # one that was not used for long may have been closed by the other side
                    raise
        status, _, fields = answer.decode().partition("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in fields.strip().split("\r\n"))
        told = await _body(reader, headers)
        assert " 200 " in status, f"{status}: {told!r}"
        self._free.append(connection)
        return json.loads(told)

    async def wait(self, content: object) -> None:
        """Until a server answers well."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while True:
            try:
                await self.post(content)
                return
            except (OSError, AssertionError, asyncio.IncompleteReadError, KeyError):
                assert loop.time() < deadline, f"no server answers on port {self._port}"
                await asyncio.sleep(0.1)

    def close(self) -> None:
        while self._free:
            self._free.pop()[1].close()


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers["content-length"]))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append((await reader.readexactly(size + 2))[:-2])
    await reader.readline()
    return b"".join(parts)


class OursOverHttp:
    """`fairway serve` as a process of its own."""

    def __init__(self, workers: int) -> None:
        self._port = free_port()
        self._command = [
            sys.executable, "-m", "fairway.cli.main", "serve", "benchmarks._serving_live_trivial:trivial",
            "--workers", str(workers), "--port", str(self._port), "--no-token",
        ]  # fmt: skip

    async def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=2)
        self._client = HttpClient(self._port, "/workflows/trivial")
        await self._client.wait({"number": 0})

    async def ask(self, number: int) -> None:
        answer = await self._client.post({"number": number})
        assert answer == number + 3, f"{answer} came for {number}"

    async def counts(self) -> dict[str, Any]:
        return {}

    async def stop(self) -> None:
        self._client.close()
        os.kill(self._process.pid, signal.SIGINT)
        await asyncio.to_thread(self._process.wait, PATIENCE)
