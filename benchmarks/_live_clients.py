"""Many clients of the REST API in one process: prints how long each of their requests took, as JSON.

Each client has one connection, which it keeps, and sends its next request when the last one is answered. The requests
are written by hand: clients run on the machine that they measure, and should take as little of it as can be. What to do
comes as JSON on stdin: `{"address", "token", "clients", "requests": [[METHOD, PATH, BODY|null, KEY|null], ...]}`;
clients take the requests in turn.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit


async def _client(host: str, port: int, requests: Iterator[bytes], taken: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port, limit=2**24)
    for request in requests:
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status, *fields = head.decode("latin-1").split("\r\n")
        length = next(int(field.split(":")[1]) for field in fields if field.lower().startswith("content-length:"))
        body = await reader.readexactly(length)
        taken.append(time.perf_counter() - began)
        if status.split()[1] not in {"200", "201"}:
            raise SystemExit(f"{status}: {body.decode(errors='replace')}")
    writer.close()


def _encoded(request: list[str | None], token: str, host: str) -> bytes:
    method, path, body, key = request
    content = (body or "").encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    if key is not None:
        lines.append(f"Idempotency-Key: {key}")
    return "\r\n".join([*lines, "", ""]).encode() + content


async def _all(asked: dict[str, Any]) -> dict[str, Any]:
    place = urlsplit(asked["address"])
    assert place.hostname is not None
    assert place.port is not None
    requests = iter([_encoded(each, asked["token"], place.netloc) for each in asked["requests"]])
    taken: list[float] = []
    began = time.perf_counter()
    await asyncio.gather(*(_client(place.hostname, place.port, requests, taken) for _ in range(asked["clients"])))
    return {"seconds": time.perf_counter() - began, "each": taken}


if __name__ == "__main__":
    json.dump(asyncio.run(_all(json.load(sys.stdin))), sys.stdout)
