"""A socket with TLS that behaves as one without: what cannot go on now raises `BlockingIOError`, and nothing waits.

TLS takes in whole records, of which a part may be left when a reader has had enough: a poll of the socket would not say
so. So a read takes all that has come.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

_RECORD = 1 << 14


class TlsSocket:
    """A connection that is set not to block, with TLS over it.

    It `is_agreed` once both ends have agreed on TLS; before, what is to be written waits for what is to be read.
    """

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, *, is_caller: bool) -> None:
        self._tls = context.wrap_socket(connection, server_side=not is_caller, do_handshake_on_connect=False)
        self.is_agreed = False

    def fileno(self) -> int:
        """For a selector."""
        return self._tls.fileno()

    def setblocking(self, flag: bool) -> None:
        """As that of a socket."""
        self._tls.setblocking(flag)

    def send(self, content: Any) -> int:
        """Write what can be written now."""
        try:
            self._agree()
            return self._tls.send(content)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def recv(self, _: int) -> bytes:
        """Read all that has come."""
        pieces: list[bytes] = []
        try:
            self._agree()
            while piece := self._tls.recv(_RECORD):
                pieces.append(piece)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not pieces:
                raise BlockingIOError from None
        except OSError:  # what came before counts; the end is found at the next read
            if not pieces:
                raise
        return b"".join(pieces)

    def close(self) -> None:
        """End the connection."""
        self._tls.close()

    def _agree(self) -> None:
        if not self.is_agreed:
            self._tls.do_handshake()
            self.is_agreed = True
