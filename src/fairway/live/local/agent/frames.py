"""How messages travel between a controller and an agent: four bytes of length, then an object in JSON.

The socket is a file in the agent's directory that only its owner can open.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any

from fairway.errors import FairwayError

SOCKET = "agent.sock"
_MOST_BYTES = 16 * 2**20
_CREDENTIALS = Struct("3i")


class FrameError(FairwayError):
    """What came is no message; the connection is of no more use."""


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as it travels."""
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > _MOST_BYTES:
        raise FrameError(f"a message of {len(body)} bytes, expected at most {_MOST_BYTES}")
    return len(body).to_bytes(4, "big") + body


async def read_message(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message; None when the other side has gone."""
    try:
        length = int.from_bytes(await reader.readexactly(4), "big")
        if length > _MOST_BYTES:
            raise FrameError(f"a message of {length} bytes announced, expected at most {_MOST_BYTES}")
        message = json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except (ValueError, RecursionError) as error:  # of brackets, a few thousand are enough
        raise FrameError(f"a message that is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise FrameError("a message that is not an object")
    return message


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """The process at the other end, and its user; of a socket that was connected to, the process that listens there."""
    pid, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, user


@contextmanager
def _short_path(directory: Path) -> Iterator[str]:
    """A path of the socket that the system accepts: the address of a socket has room for about a hundred bytes."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def listening_socket(directory: Path) -> socket.socket:
    """The agent's end, in place of one that a dead agent left behind."""
    (directory / SOCKET).unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with _short_path(directory) as path:
            listening.bind(path)
    except BaseException:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.setblocking(False)
    return listening


def connected_socket(directory: Path) -> socket.socket:
    """A controller's end; raises `OSError` where no agent listens, and `BlockingIOError` where one takes nothing in."""
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connecting.setblocking(False)
    try:
        with _short_path(directory) as path:
            connecting.connect(path)
    except BaseException:
        connecting.close()
        raise
    return connecting
