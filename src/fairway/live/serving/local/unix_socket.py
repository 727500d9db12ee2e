"""Unix sockets between the processes of one user on one machine.

Both sides check that the other one belongs to the same user, so pickle is as safe here as the application's own code.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from struct import Struct

_BACKLOG = 4096
_CREDENTIALS = Struct("=iII")
_PATIENCE_SECONDS = 0.5


def listen(path: Path) -> socket.socket:
    """A socket that other processes of the same user connect to."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # never open to other users, not even for a moment
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(_BACKLOG)
    listening.setblocking(False)
    return listening


def accept(listening: socket.socket) -> socket.socket | None:
    """The next connection that waits, if there is one; those of other users are closed at once."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return None
        if is_same_user(connection):
            return connection
        connection.close()


def connect(path: Path) -> socket.socket:
    """A connection to a socket; raises `OSError` if no process listens there, or one of another user does."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_PATIENCE_SECONDS)
            connection.connect(str(path))
            if not is_same_user(connection):
                raise PermissionError(f"{path}: another user listens there")
            return connection
        except BlockingIOError:  # too many want to connect at this moment
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(1e-3)
        except OSError:
            connection.close()
            raise


def is_same_user(connection: socket.socket) -> bool:
    """Whether this user, or the administrator, is at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    return user in {os.geteuid(), 0}
