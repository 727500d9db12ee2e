"""A channel over TCP whose two ends have shown each other that they know the application's secret (`handshake`).

Only then is a message unpickled, at either end. A stranger can have a connection for a few seconds, and a few bytes of
it are read; what it sends after them is never looked at. Neither end waits for the other: what is sent before the
secret was shown is kept until then, and if the connection is closed before, a thread sees it out.

The secret keeps out whoever can connect. Against one who can read or change what is under way there is TLS: each node
shows the same certificate, and takes no other.
"""

from __future__ import annotations

import os
import pickle
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from fairway.errors import InputError
from fairway.live.serving.nodes.handshake import NONCE_BYTES, Handshake
from fairway.live.serving.nodes.tls_socket import TlsSocket
from fairway.live.serving.seams.transport import Message, WireError
from fairway.live.serving.sockets.channel import CHUNK, Channel, framed

_CONNECT_SECONDS = 0.5
_BACKLOG = 1024
_LAST_WORDS_SECONDS = 5.0
_DEAD_AFTER_MILLISECONDS = 10_000
"""A machine that takes nothing for so long is gone."""

Pickled = Callable[[Message], bytes]
"""How a message that goes to another node is pickled."""


class Credentials(NamedTuple):
    """What the nodes of an application know each other by: a secret and, with TLS, a certificate with its key."""

    secret: bytes
    certificate: Path | None = None
    key: Path | None = None

    def secured(self, connection: socket.socket, *, is_caller: bool) -> socket.socket | TlsSocket:
        """A connection as the nodes use it: with TLS if there is a certificate, which the other end has to have too."""
        if self.certificate is None or self.key is None:
            return connection
        return TlsSocket(connection, tls_context(self.certificate, self.key, is_caller=is_caller), is_caller=is_caller)


@cache
def tls_context(certificate: Path, key: Path, *, is_caller: bool) -> ssl.SSLContext:
    """How to speak TLS with processes that have the same certificate, and no others; refuses one that is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if is_caller else ssl.PROTOCOL_TLS_SERVER)
    context.check_hostname = False  # nodes come and go, and go by address
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # this very certificate, whoever has signed it
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(certificate)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"certificate {certificate}, key {key}: cannot be used between nodes ({why}); give both in PEM form"
        ) from None
    return context


class GuardedChannel(Channel):
    """One end of a connection over TCP; `is_caller` says which, `pickled` how messages are."""

    __slots__ = ("_handshake", "_held", "_pickled", "_pid", "is_trusted")

    def __init__(
        self,
        connection: socket.socket,
        credentials: Credentials,
        *,
        is_caller: bool,
        peer: int | None = None,
        pickled: Pickled | None = None,
    ) -> None:
        connection.setblocking(False)
        secured = credentials.secured(connection, is_caller=is_caller)
        super().__init__(secured, peer)  # type: ignore[arg-type]  # what is used of a socket it has
        self.is_trusted = False
        self._pickled = _plain if pickled is None else pickled
        self._handshake = Handshake(credentials.secret, os.urandom(NONCE_BYTES), is_caller=is_caller)
        self._held: list[bytes] = []
        self._pid = os.getpid()
        first = self._handshake.first()
        if first:
            self._outgoing.append(first)

    def send_framed(self, content: bytes) -> bool:
        """Send a message, or keep it; in any case for as long as the other end has not shown that it belongs here."""
        if self.is_trusted:
            return super().send_framed(content)
        self._held.append(content)
        return self.flush()

    def close(self) -> None:
        """End the connection, once what was sent before has gone out."""
        if self._held and not self.closed and self._pid == os.getpid():
            self.closed = True
            Thread(target=self._see_out, name="fairway-last-words", daemon=True).start()
        else:
            super().close()

    def _see_out(self) -> None:
        end = time.monotonic() + _LAST_WORDS_SECONDS
        with suppress(WireError, OSError):
            while (self._held or self._outgoing) and (left := end - time.monotonic()) > 0:
                if self.receive(left) is None:
                    break
        self.socket.close()

    def flush(self) -> bool:
        """Write what is kept; nothing can be for as long as TLS is not agreed on, which what is read brings about."""
        return super().flush() and self._wants_to_write

    @property
    def _wants_to_write(self) -> bool:
        return bool(self._outgoing) and getattr(self.socket, "is_agreed", True)

    def _read(self) -> bytes:
        # What TLS has read and not given out yet wakes no poll, so that it is given out all at once.
        return self.socket.recv(CHUNK) if hasattr(self.socket, "is_agreed") else super()._read()

    def _encoded(self, message: Message) -> bytes:
        return framed(self._pickled(message))

    def _taken(self, content: bytes) -> list[Message] | None:
        handshake, incoming = self._handshake, self._incoming
        if not self.is_trusted:
            incoming += content
            content = b""
            while not handshake.is_done and len(incoming) >= (wanted := handshake.wanted):
                answer = handshake.take(bytes(incoming[:wanted]))
                del incoming[:wanted]
                if answer:
                    self._outgoing.append(answer)
            if handshake.is_done:
                self.is_trusted = True
                self._outgoing.extend(self._held)
                self._held.clear()
            try:
                self.flush()
            except OSError:
                return None
            if not self.is_trusted:
                return []
        return super()._taken(content)


def listen_at(host: str, port: int = 0) -> socket.socket:
    """A socket that other nodes connect to; raises `OSError` if the address is not one of this machine."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def accepted(listening: socket.socket, credentials: Credentials, pickled: Pickled | None = None) -> Channel | None:
    """The next connection that waits, of whomever; None if there is none."""
    try:
        connection, _ = listening.accept()
    except OSError:
        return None
    _tune(connection)
    return GuardedChannel(connection, credentials, is_caller=False, pickled=pickled)


def called(
    host: str, port: int, credentials: Credentials, peer: int | None = None, pickled: Pickled | None = None
) -> Channel:
    """A connection to a process on another node; raises `OSError` if none listens there."""
    connection = socket.create_connection((host, port), _CONNECT_SECONDS)
    _tune(connection)
    return GuardedChannel(connection, credentials, is_caller=True, peer=peer, pickled=pickled)


def _tune(connection: socket.socket) -> None:
    """Send small messages at once, and notice a machine that is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_AFTER_MILLISECONDS)


def _plain(message: Message) -> bytes:
    return pickle.dumps(message, protocol=5)
